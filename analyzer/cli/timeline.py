"""`stuckwarp timeline`: all sources on one axis of time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from analyzer.cli.output import colour_wanted, limit_option, note, rulebook_of, write
from parsers.contract import UNREAD

if TYPE_CHECKING:
    from analyzer.intake.budget import Budget

FORMATS = ("text", "json", "jsonl", "chrome", "timesketch")


@click.command("timeline")
@click.argument("paths", nargs=-1, required=True)
@click.option("--around", help="Only events within five minutes of TIME (HH:MM:SS, RFC 3339) or of `onset`.")
@click.option("--since", help="Only events from this time on.")
@click.option("--until", help="Only events up to this time.")
@click.option("--kind", "kinds", multiple=True, help="Only kinds that begin so (kernel_log, server_log.stats …).")
@click.option("--source", "sources", multiple=True, help="Only sources whose path holds this.")
@click.option("--gpu", help="Only events of this GPU.")
@click.option("--rank", help="Only events of this rank.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="chrome opens in Perfetto.",
)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file.")
@click.option(
    "--rules", "rule_folders", multiple=True, type=click.Path(file_okay=False), help="A further folder of rules."
)
@limit_option
def command(
    paths: tuple[str, ...],
    around: str | None,
    since: str | None,
    until: str | None,
    kinds: tuple[str, ...],
    sources: tuple[str, ...],
    gpu: str | None,
    rank: str | None,
    format_: str,
    output: Path | None,
    rule_folders: tuple[str, ...],
    budget: Budget,
) -> int:
    """PATHS merged on one axis: gaps, uncertainty and clocks shown, never guessed.

    \b
    stuckwarp timeline bundle/ --around onset
    stuckwarp timeline bundle/ --format chrome -o trace.json
    """
    from analyzer.analyze import investigate
    from analyzer.render import render_timeline
    from analyzer.story import story
    from analyzer.timeline.select import Selection, select

    for path in paths:
        if path != "-" and not Path(path).exists():
            raise click.ClickException(
                f"there is no {path}. Give a folder, an archive, a file, or - for standard input."
            )
    analysis = investigate(paths, rulebook_of(rule_folders), budget)
    whole = story(analysis, limit=None)
    try:
        chosen = select(whole, Selection(around, since, until, kinds, sources, gpu, rank))
    except ValueError as problem:
        raise click.ClickException(str(problem)) from problem
    write(render_timeline(chosen, format_, colour=colour_wanted(output is not None)), output)
    if not any(one.nonblank for one in analysis.bundle.reads):
        why = analysis.troubles[0].text if analysis.troubles else "it is empty"
        note(f"nothing in the input could be read: {why}. Give a folder, an archive or a file that holds something.")
        return 2
    return 3 if not whole.events and any(one.tag in UNREAD for one in analysis.troubles) else 0
