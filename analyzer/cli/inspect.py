"""`stuckwarp inspect`: one artifact as its parser sees it."""

from __future__ import annotations

import json
from pathlib import Path

import click

from analyzer.cli.output import write


@click.command("inspect")
@click.argument("file")
@click.option("--format", "format_", type=click.Choice(("text", "json")), default="text", show_default=True)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file.")
def command(file: str, format_: str, output: Path | None) -> int:
    """What FILE holds: a GPU core dump, a server or kernel log, stacks, samples, a scrape.

    \b
    stuckwarp inspect core_731.nvcudmp
    stuckwarp inspect pyspy.txt --format json
    """
    from analyzer.inspection import inspect

    if file != "-" and not Path(file).is_file():
        raise click.ClickException(f"there is no file {file}. Give one artifact; a folder is for `stuckwarp analyze`.")
    views = inspect(file)
    if not views:
        raise click.ClickException(f"nothing in {file} was recognised. `stuckwarp analyze` reads it as notes.")
    if format_ == "json":
        shown = views[0] if len(views) == 1 else {**views[0], "more": views[1:]}
        write(json.dumps(shown, ensure_ascii=False, indent=1, default=str), output)
    else:
        from analyzer.render.inspection import inspection_text

        write("\n\n".join(inspection_text(view) for view in views), output)
    return 0 if all(view["artifact"]["complete"] for view in views) else 3
