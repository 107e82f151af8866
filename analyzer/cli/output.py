"""Options and writing that the commands share: format, output file, rule folders, exit code."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from parsers.contract import UNREAD

if TYPE_CHECKING:
    from analyzer.intake.budget import Budget
    from analyzer.reasoning.rulebook import Rulebook
    from analyzer.report import Report

FORMATS = ("text", "json", "markdown", "html", "slack")


SHARED = ("markdown", "html", "slack")
"""Forms that are made to be passed on: redacted unless `--no-redact`."""

redact_option = click.option(
    "--no-redact", is_flag=True, help="Keep secrets, prompts and names in markdown, html and slack."
)


def _budget(_context: click.Context, _parameter: click.Parameter, settings: tuple[str, ...]) -> Budget:
    from analyzer.intake.budget import budget_of

    try:
        return budget_of(settings)
    except ValueError as problem:
        raise click.ClickException(f"{problem} docs/safety.md says what each does.") from problem


limit_option = click.option(
    "--limit",
    "budget",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_budget,
    help="Another limit on reading, e.g. member-out=64GiB (docs/safety.md). Again for more.",
)
"""Gives the command a `Budget`, as `budget`."""


def report_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--format`, `-o`, `--full`, `--rules`, `--fail-on`, `--limit`, `--no-redact`."""
    for option in (
        redact_option,
        limit_option,
        click.option(
            "--format",
            "format_",
            type=click.Choice(FORMATS),
            default="text",
            show_default=True,
            help="Form of the report.",
        ),
        click.option(
            "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the report to a file."
        ),
        click.option("--full", is_flag=True, help="Text: everything, not only the first screen."),
        click.option(
            "--rules",
            "rule_folders",
            multiple=True,
            type=click.Path(file_okay=False),
            help="A further folder of rules.",
        ),
        click.option(
            "--fail-on", type=click.Choice(("low", "medium", "high")), help="Exit 1 when a hypothesis reaches this."
        ),
    ):
        function = option(function)
    return function


def rulebook_of(folders: tuple[str, ...]) -> Rulebook:
    """The shipped rules and those of the folders; faults of extra folders go to standard error."""
    from analyzer.reasoning.rulebook import load

    for folder in folders:
        if not Path(folder).is_dir():
            raise click.ClickException(
                f"there is no folder of rules {folder}. Give a folder of .toml rule files, "
                "or leave --rules out for the shipped ones."
            )
    rulebook = load(folders)
    for fault in rulebook.faults[:20]:
        note(fault)
    return rulebook


def note(text: str) -> None:
    """A note on standard error, made safe for a terminal."""
    from analyzer.render.sanitise import terminal

    click.echo(terminal(text), err=True)


def colour_wanted(to_file: bool) -> bool:
    """Whether to colour: a terminal, unless NO_COLOR or TERM=dumb says otherwise; FORCE_COLOR overrides."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return not to_file and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def write(text: str, output: Path | None) -> None:
    """To standard output, or to a file that is written as a whole or not at all."""
    if output is None:
        try:
            click.echo(text.encode("utf-8", "backslashreplace"), nl=not text.endswith("\n"))
        except BrokenPipeError:
            raise
        except OSError as problem:
            raise click.ClickException(
                f"the report could not be written to standard output: {problem.strerror}. "
                "Write it elsewhere with -o FILE."
            ) from problem
        return
    partial = output.with_name(f"{output.name}.partial")
    try:
        partial.write_text(text if text.endswith("\n") else f"{text}\n", encoding="utf-8", errors="backslashreplace")
        partial.replace(output)
    except OSError as problem:
        raise click.ClickException(
            f"the report was not written to {output}: {problem.strerror}. "
            "Choose a folder that exists and that you may write to."
        ) from problem


def finish(
    report: Report, format_: str, output: Path | None, full: bool, fail_on: str | None, no_redact: bool = False
) -> int:
    """Render, write, and give the exit code. What is made to be shared is redacted (docs/safety.md)."""
    from analyzer.render import render

    if format_ in SHARED and not no_redact:
        from analyzer.redact import redact_report

        report = redact_report(report)

    colour = colour_wanted(output is not None)
    width = shutil.get_terminal_size().columns if output is None and sys.stdout.isatty() else None
    write(render(report, format_, width=width, colour=colour, full=full), output)
    return exit_code(report, fail_on)


def exit_code(report: Report, fail_on: str | None) -> int:
    """0 ran; 1 a hypothesis reaches `fail_on`; 2 nothing readable; 3 nothing found but not all was read."""
    level = {"low": 0, "medium": 1, "high": 2}
    live = [h for h in report.hypotheses if not h.ruled_out]
    if fail_on is not None and any(level[h.confidence] >= level[fail_on] for h in live):
        return 1
    if report.verdict == "unreadable":
        return 2
    cut = any(t.tag in UNREAD for t in report.troubles)
    return 3 if not live and cut else 0
