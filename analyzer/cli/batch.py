"""`stuckwarp batch`: many bundles in, one report each, one table at the end."""

from __future__ import annotations

import os
from pathlib import Path

import click


@click.command("batch")
@click.argument("bundles", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    "out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the results. Give the same one again to go on or to add.",
)
@click.option("-j", "--jobs", type=click.IntRange(1, 512), default=None, help="Bundles at a time (default: one a CPU).")
@click.option(
    "--time-limit", type=click.FloatRange(0.1), default=300.0, show_default=True, help="Seconds for one bundle."
)
@click.option(
    "--memory-limit", type=click.IntRange(0), default=2048, show_default=True, help="MiB for one bundle; 0 = none."
)
@click.option(
    "--rules", "rule_folders", multiple=True, type=click.Path(file_okay=False), help="A further folder of rules."
)
@click.option("--limit", "settings", multiple=True, metavar="NAME=VALUE", help="As for analyze.")
@click.option(
    "--engine",
    type=click.Choice(("processes", "ray")),
    default="processes",
    show_default=True,
    help="Where the work is done.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="Form of the table.",
)
def command(
    bundles: tuple[str, ...],
    out: Path,
    jobs: int | None,
    time_limit: float,
    memory_limit: int,
    rule_folders: tuple[str, ...],
    settings: tuple[str, ...],
    engine: str,
    format_: str,
) -> int:
    """Analyse many bundles: each entry of a folder, each path, each line of @LIST.

    Writes OUT/reports/*.json, OUT/incidents.jsonl and OUT/fleet.sqlite, and prints one table. A run that was stopped
    goes on where it was.

    \b
    stuckwarp batch support-bundles/ -o fleet/
    stuckwarp batch 'nodes/*.tar.gz' @more.txt -o fleet/ --engine ray
    """
    from analyzer.cli.output import note
    from analyzer.fleet.bundles import expand
    from analyzer.fleet.cluster import NoRay, ray_pool
    from analyzer.fleet.progress import progress
    from analyzer.fleet.store import Store
    from analyzer.fleet.table import render_table
    from analyzer.fleet.worker import Limits, pool
    from analyzer.intake.budget import budget_of

    try:
        budget_of(settings)
    except ValueError as problem:
        raise click.ClickException(str(problem)) from problem
    try:
        found = list(expand(bundles))
    except OSError as problem:
        raise click.ClickException(f"the list {problem.filename} cannot be read: {problem.strerror}.") from problem
    if not found:
        raise click.ClickException("no bundle was found there. Give a folder of bundles, paths, a glob, or @LIST.")
    if not any(path.exists() or path.is_symlink() for path in found):
        raise click.ClickException(f"there is no {found[0]}. Give a folder of bundles, paths, a glob, or @LIST.")
    limits = Limits(time_limit, memory_limit << 20)
    try:
        store = Store(out, tuple(str(Path(folder).resolve()) for folder in rule_folders), settings)
    except OSError as problem:
        raise click.ClickException(f"{out} cannot be written: {problem.strerror}. Choose another folder.") from problem
    with progress(len(found)) as tick:
        tasks = store.plan(found, lambda: tick(1))
        try:
            done = ray_pool(tasks, limits) if engine == "ray" else pool(tasks, limits, jobs or os.cpu_count() or 1)
            for task, report in done:
                store.put(task, report)
                tick(1)
        except NoRay as problem:
            raise click.ClickException(str(problem)) from problem
    rows, new = store.finish()
    note(
        f"{len(found)} bundles, {len(tasks)} analysed now, {len(found) - len(tasks)} known already or the same as "
        f"another; {sum(1 for row in rows if row.broken)} could not be analysed. "
        f"Results: {out}/incidents.jsonl, {out}/fleet.sqlite"
    )
    click.echo(render_table(rows, new, format_))
    return 2 if all(row.broken for row in rows) else 0
