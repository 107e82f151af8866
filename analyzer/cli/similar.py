"""`stuckwarp similar`: have we seen this before?"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from analyzer.report import Report


@click.command("similar")
@click.argument("inputs", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--store", required=True, type=click.Path(exists=True, path_type=Path), help="The folder of a batch.")
@click.option("--limit", type=click.IntRange(1, 100), default=5, show_default=True, help="Incidents to show for each.")
@click.option("--format", "format_", type=click.Choice(("text", "json")), default="text", show_default=True)
def command(inputs: tuple[Path, ...], store: Path, limit: int, format_: str) -> int:
    """Find earlier incidents like INPUTS (saved reports or bundles) in a store that `batch` made.

    \b
    stuckwarp similar report.json --store fleet/
    stuckwarp similar bundle.tar.gz --store fleet/
    """
    from analyzer.fleet.signature import signature
    from analyzer.fleet.similar import similar
    from analyzer.render.sanitise import terminal

    answers = []
    for path in inputs:
        report = _report(path)
        try:
            found = similar(report, store, limit)
        except (sqlite3.Error, OSError) as problem:
            raise click.ClickException(
                f"the store {store} cannot be read: {problem}. Make one with `stuckwarp batch`."
            ) from problem
        answers.append({"input": str(path), "signature": signature(report), "matches": [asdict(one) for one in found]})
        if format_ == "json":
            continue
        click.echo(terminal(f"{path}: {signature(report)}"))
        for one in found:
            how = "same" if one.signature == signature(report) else f"{one.likeness:.2f}"
            where = ", ".join(part for part in (one.node, one.gpu, one.version, one.time) if part)
            click.echo(terminal(f"  {how:>5}  {one.title or one.cause or one.signature}  ({where})"))
            click.echo(terminal(f"         {one.bundle}"))
            click.echo(terminal(f"         ended by: {one.ended_by or 'not recorded'}"))
        if not found:
            click.echo("  nothing like it in this store")
    if format_ == "json":
        click.echo(json.dumps(answers, ensure_ascii=False, indent=1))
    return 0


def _report(path: Path) -> Report:
    from analyzer.analyze import analyze
    from analyzer.report import Report

    if path.is_file() and path.stat().st_size < 64 << 20:
        with path.open("rb") as file:
            begins = file.read(200).lstrip().startswith(b"{")
        if begins:
            try:
                return Report.model_validate_json(path.read_bytes())
            except ValueError:
                pass  # no report: an artifact that happens to be JSON
    return analyze([str(path)])
