"""`stuckwarp inspect`: one artifact as its parser sees it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from analyzer.cli.output import limit_option, write

if TYPE_CHECKING:
    from analyzer.inspection import Addition
    from analyzer.intake.budget import Budget


@click.command("inspect")
@click.argument("file")
@click.option("--format", "format_", type=click.Choice(("text", "json")), default="text", show_default=True)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file.")
@click.option("--sass", is_flag=True, help="Instructions around the PCs of a GPU core dump (extra: stuckwarp[sass]).")
@click.option("--sass-symbol", metavar="NAME", help="The same for a function by name, even without line information.")
@limit_option
def command(
    file: str, format_: str, output: Path | None, sass: bool, sass_symbol: str | None, budget: Budget
) -> int:
    """What FILE holds: a GPU core dump, a server or kernel log, stacks, samples, a scrape.

    \b
    stuckwarp inspect core_731.nvcudmp
    stuckwarp inspect pyspy.txt --format json
    stuckwarp inspect core_731.nvcudmp --sass-symbol my_kernel
    """
    from analyzer.inspection import inspect

    if Path(file).is_dir():
        raise click.ClickException(
            f"{file} is a folder. Give one artifact of it; `stuckwarp analyze {file}` reads them all."
        )
    if file != "-" and not Path(file).is_file():
        raise click.ClickException(f"there is no file {file}. Give one artifact; a folder is for `stuckwarp analyze`.")
    views = inspect(file, budget, addition=_sass(sass_symbol) if sass or sass_symbol is not None else None)
    if not views:
        raise click.ClickException(f"nothing in {file} was recognised. `stuckwarp analyze` reads it as notes.")
    if format_ == "json":
        shown = views[0] if len(views) == 1 else {**views[0], "more": views[1:]}
        write(json.dumps(shown, ensure_ascii=False, indent=1, default=str), output)
    else:
        from analyzer.render.inspection import inspection_text

        write("\n\n".join(inspection_text(view) for view in views), output)
    return 0 if all(view["artifact"]["complete"] for view in views) else 3


def _sass(symbol: str | None) -> Addition:
    """Asks for instructions; the disassembler is looked for before anything is read."""
    from analyzer.disassembly import DisassemblerMissing, find_disassembler, sass_of

    try:
        program = find_disassembler()
    except DisassemblerMissing as problem:
        raise click.ClickException(str(problem)) from problem

    def addition(kind: str, file: BinaryIO) -> dict[str, Any]:
        return {"sass": sass_of(file, symbol, program)} if kind == "cuda_core" else {}

    return addition
