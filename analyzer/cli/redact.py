"""`stuckwarp redact`: a copy of a bundle or report fit for sharing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from analyzer.cli.output import limit_option, note, write
from parsers.contract import UNREAD

if TYPE_CHECKING:
    from analyzer.intake.budget import Budget


@click.command("redact")
@click.argument("paths", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    help="A new folder, a new .tar.gz, or (for one saved report) a new .json.",
)
@limit_option
def command(paths: tuple[str, ...], output: Path, budget: Budget) -> int:
    """Write a copy of PATHS (folders, archives, files, or one saved report) without secrets, users' text and names.

    One value has one placeholder everywhere. redactions.json lists what was replaced where, without the values. It is
    best effort: look through the result before you share it.

    \b
    stuckwarp redact support-bundle.tar.gz -o shareable.tar.gz
    stuckwarp redact report.json -o report-shareable.json
    """
    from analyzer.redact import redact_bundle
    from analyzer.redact.bundle import RedactionError

    for path in paths:
        if not Path(path).exists():
            raise click.ClickException(f"there is no {path}. Give a folder, an archive, a file or a saved report.")
    if output.suffix == ".json":
        if len(paths) > 1:
            raise click.ClickException(
                "a .json output is for one saved report. Give a folder or a .tar.gz for several inputs."
            )
        return _report(Path(paths[0]), output)
    try:
        done = redact_bundle(paths, output, budget)
    except RedactionError as problem:
        raise click.ClickException(str(problem)) from problem
    except OSError as problem:
        raise click.ClickException(f"nothing was written to {output}: {problem.strerror}.") from problem
    for name, why in done.left_out:
        note(f"left out {name}: {why}")
    for trouble in done.troubles[:20]:
        note(f"{trouble.source}: {trouble.tag}: {trouble.text}")
    write(
        f"{len(done.written)} texts, {done.replaced} replacements, {len(done.left_out)} left out: {output}\n"
        "Look through the result before you share it: no redaction finds everything (docs/safety.md).",
        None,
    )
    if not done.written:
        return 2
    return 3 if any(t.tag in UNREAD for t in done.troubles) else 0


def _report(path: Path, output: Path) -> int:
    from analyzer.redact import redact_report
    from analyzer.render import render
    from analyzer.render.saved import load_report

    if output.exists():
        raise click.ClickException(f"{output} is there already. Choose another output: nothing is overwritten.")
    try:
        report = load_report(path)
    except ValueError as problem:
        raise click.ClickException(
            f"{problem}\nA .json output is for a saved report; give a folder for other inputs."
        ) from problem
    write(render(redact_report(report), "json"), output)
    return 0
