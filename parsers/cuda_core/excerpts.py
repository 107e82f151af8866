"""Code bytes around the PCs where warps stand, for a disassembler.

Only code that carries line information (it was built here, with `-lineinfo` or `-G`, or is Triton's) or whose symbol
the user names; code of libraries without line information is counted and left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from parsers.cuda_core.dump import Dump, Warp, said
from parsers.cuda_core.elf_index import DumpUnreadable
from parsers.cuda_core.images import ModuleImage
from parsers.cuda_core.names import readable
from parsers.cuda_core.sass import INSTRUCTION_BYTES

MOST_EXCERPTS = 8
MOST_BYTES = 16 << 10


@dataclass(slots=True)
class Excerpt:
    """A stretch of one function: `code` begins `start` bytes behind the function's first byte.

    `warps` counts warps by the offset of their PC in the function; `faults` holds the offsets of error PCs.
    """

    device: int
    capability: tuple[int, int]
    function: str
    start: int
    code: bytes
    warps: dict[int, int] = field(default_factory=dict)
    faults: set[int] = field(default_factory=set)
    places: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Excerpts:
    """What was cut out, and the functions that were left alone because they carry no line information."""

    found: list[Excerpt] = field(default_factory=list)
    without_lines: list[str] = field(default_factory=list)
    more: int = 0


def cut_out(file: BinaryIO, symbol: str | None, around: int) -> Excerpts:
    """Excerpts of `around` instructions on each side of the PCs, the places with most warps first.

    `symbol` is a mangled or readable name or a part of one; with it only functions of that name are taken. Nothing
    is raised for a damaged dump: what can be named is given.
    """
    end = Excerpts()
    try:
        dump = Dump(file)
    except (DumpUnreadable, OSError, MemoryError):
        return end
    functions: dict[tuple[int, str], _Function] = {}
    for warp in dump.warps:
        for pc, fault in ((warp.pc, False), (warp.error_pc, True)):
            if pc is not None:
                _sort_in(dump, warp, pc, fault, symbol, functions, end)
    for (number, name), function in sorted(functions.items(), key=lambda item: -sum(item[1].warps.values())):
        row = dump.devices[number].row
        if (row["sm_major"] or 0) < 7 or row["instruction_bytes"] not in (None, INSTRUCTION_BYTES):
            continue
        for first, last in _stretches(function, around):
            if len(end.found) >= MOST_EXCERPTS:
                end.more += 1
                continue
            span = (last - first) // INSTRUCTION_BYTES
            start, code = function.image.code(function.start + first, around, span + around + 1, INSTRUCTION_BYTES)
            if not code:
                continue
            made = Excerpt(number, (row["sm_major"], row["sm_minor"] or 0), name, start - function.start, code)
            made.warps = {at: count for at, count in function.warps.items() if first <= at <= last}
            made.faults = {at for at in function.faults if first <= at <= last}
            made.places = [text for at, text in sorted(function.places.items()) if first <= at <= last]
            end.found.append(made)
    return end


@dataclass(slots=True)
class _Function:
    image: ModuleImage
    start: int
    warps: Counter[int] = field(default_factory=Counter)
    faults: set[int] = field(default_factory=set)
    places: dict[int, str] = field(default_factory=dict)


def _sort_in(
    dump: Dump,
    warp: Warp,
    pc: int,
    fault: bool,
    symbol: str | None,
    functions: dict[tuple[int, str], _Function],
    end: Excerpts,
) -> None:
    grid = dump.grid_of(warp)
    image = dump.image_for(warp.device, pc, grid)
    text = image.text_at(pc) if image else None
    place = dump.place(warp.device, pc, grid)
    if image is None or text is None or place is None:
        return
    if symbol is None and warp.line is None:
        name = readable(place.symbol)
        if name not in end.without_lines:
            end.without_lines.append(name)
        return
    if symbol is not None and not any(symbol in name for name in _names(place.symbol, text.name)):
        return
    function = functions.setdefault((warp.device, text.name), _Function(image, text.start))
    offset = pc - text.start
    if fault:
        function.faults.add(offset)
        function.places.setdefault(offset, f"the faulting instruction of {readable(place.symbol, 90)}")
    else:
        function.warps[offset] += 1
        function.places.setdefault(offset, said(warp))


def _stretches(function: _Function, around: int) -> Iterator[tuple[int, int]]:
    """First and last offsets of the PCs that stand close enough together for one excerpt."""
    offsets = sorted({*function.warps, *function.faults})
    first = last = offsets[0]
    for offset in offsets[1:]:
        if offset - last > (2 * around + 32) * INSTRUCTION_BYTES or offset - first > MOST_BYTES:
            yield first, last
            first = offset
        last = offset
    yield first, last


def _names(*symbols: str) -> list[str]:
    return [name for symbol in symbols for name in (symbol, readable(symbol, 4096))]
