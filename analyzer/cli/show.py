"""`stuckwarp show`: a saved report again, in any form, without the inputs."""

from __future__ import annotations

from pathlib import Path

import click

from analyzer.cli.output import FORMATS, finish, redact_option


@click.command("show")
@click.argument("report", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--format", "format_", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file.")
@click.option("--full", is_flag=True, help="Text: everything, not only the first screen.")
@redact_option
def command(report: Path, format_: str, output: Path | None, full: bool, no_redact: bool) -> int:
    """Render REPORT (the JSON of `analyze --format json`) again."""
    from analyzer.render.saved import load_report

    try:
        document = load_report(report)
    except ValueError as problem:
        raise click.ClickException(str(problem)) from problem
    finish(document, format_, output, full, None, no_redact)
    return 0
