"""`stuckwarp triage`: one pasted text in, ranked hypotheses out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from analyzer.cli.output import finish, report_options, rulebook_of

if TYPE_CHECKING:
    from analyzer.intake.budget import Budget


@click.command("triage")
@click.argument("file", default="-")
@report_options
def command(
    file: str,
    format_: str,
    output: Path | None,
    full: bool,
    rule_folders: tuple[str, ...],
    fail_on: str | None,
    no_redact: bool,
    budget: Budget,
) -> int:
    """Rank what went wrong in one pasted text: FILE, or standard input.

    The text may mix server log, kernel log, stacks, nvidia-smi and debugger output, in chat or issue mark-up.

    \b
    kubectl logs vllm-0 --tail 500 | stuckwarp triage
    """
    from analyzer.analyze import analyze

    if file == "-" and sys.stdin.isatty():
        click.echo("Paste the text, then press Ctrl-D.", err=True)
    if Path(file).is_dir():
        raise click.ClickException(f"{file} is a folder. `stuckwarp analyze {file}` reads it.")
    if file != "-" and not Path(file).is_file():
        raise click.ClickException(f"there is no file {file}. Give a file, or - for standard input.")
    return finish(analyze([file], rulebook_of(rule_folders), budget), format_, output, full, fail_on, no_redact)
