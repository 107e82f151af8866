"""`stuckwarp analyze`: artifacts in, ranked hypotheses out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from analyzer.cli.output import finish, report_options, rulebook_of

if TYPE_CHECKING:
    from analyzer.intake.budget import Budget


@click.command("analyze")
@click.argument("paths", nargs=-1, required=True)
@report_options
def command(
    paths: tuple[str, ...],
    format_: str,
    output: Path | None,
    full: bool,
    rule_folders: tuple[str, ...],
    fail_on: str | None,
    no_redact: bool,
    budget: Budget,
) -> int:
    """Rank what went wrong in PATHS: folders, archives, files, or - for standard input.

    \b
    stuckwarp analyze support-bundle.tar.gz
    stuckwarp analyze server.log dmesg.txt core.nvcudmp --format json -o report.json
    """
    from analyzer.analyze import analyze

    for path in paths:
        if path != "-" and not Path(path).exists():
            raise click.ClickException(
                f"there is no {path}. Give a folder, an archive, a file, or - for standard input."
            )
    return finish(analyze(paths, rulebook_of(rule_folders), budget), format_, output, full, fail_on, no_redact)
