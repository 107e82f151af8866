"""The sections of a GPU core dump: one pass over the header table, an index by (type, parent, row), nothing else.

Layout facts: `cudacoredump.h` of the CUDA toolkit (`extras/Debugger/include`) and dumps of driver 580. A dump is a
64-bit little-endian ELF of type ET_CORE for machine EM_CUDA without program headers. The header table stands at the
end of the file, behind everything it describes, so a dump that was cut short has lost it. Every lane of every warp
has three or four sections of its own; 100,000 sections and more are normal and use ELF's extended numbering.
"""

from __future__ import annotations

import io
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import BinaryIO, NamedTuple

from parsers.cuda_core.header import looks_like_dump

HEADER_BYTES = 64

SECTION_BASE = 0x80000000
MAX_SECTIONS = 4_000_000
MAX_KEPT = 400_000
MAX_STACKS = 300_000
_CHUNK = 16_384
_HEADER = struct.Struct("<IIQQQQIIQQ")
_ELF_HEADER = struct.Struct("<HHIQQQIHHHHHH")


class Kind(IntEnum):
    """`sh_type - 0x80000000` (`CudbgSectionHeaderTypes` of the header)."""

    MANAGED_MEMORY = 1
    GLOBAL_MEMORY = 2
    LOCAL_MEMORY = 3
    SHARED_MEMORY = 4
    LANE_REGISTERS = 5
    IMAGE = 6
    RELOCATED_IMAGE = 7
    BACKTRACE = 8
    DEVICES = 9
    CONTEXTS = 10
    SMS = 11
    GRIDS = 12
    CTAS = 13
    WARPS = 14
    LANES = 15
    MODULES = 16
    PREDICATES = 17
    PARAMETERS = 18
    UNIFORM_REGISTERS = 19
    UNIFORM_PREDICATES = 20
    CONSTANT_BANKS = 21
    METADATA = 22
    CONVERGENCE = 23


_KEPT = frozenset(
    {
        *(Kind.IMAGE, Kind.RELOCATED_IMAGE, Kind.DEVICES, Kind.CONTEXTS, Kind.SMS, Kind.GRIDS, Kind.CTAS, Kind.WARPS),
        *(Kind.LANES, Kind.MODULES, Kind.METADATA),
    }
)
_SHT_STRTAB = 3


class Section(NamedTuple):
    """One section header; `kind` is the raw type less 0x80000000 (negative for ELF's own types)."""

    number: int
    kind: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    entsize: int
    name: int


class DumpUnreadable(Exception):
    """The file is no GPU core dump or holds no header table; `tag` as in `Trouble`."""

    def __init__(self, tag: str, text: str) -> None:
        super().__init__(text)
        self.tag = tag
        self.text = text


@dataclass(slots=True)
class Note:
    """Something that could not be read, for `Trouble` and for the view's `notes`."""

    tag: str
    text: str
    offset: int = 0


@dataclass(slots=True)
class Notes:
    """The notes of one dump: each text once, at most `limit` of them."""

    limit: int = 40
    items: list[Note] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    damaged: bool = False

    def add(self, tag: str, text: str, offset: int = 0) -> None:
        """Keep the note; `truncated`, `corrupt` and `limit` mean that the dump was not read whole."""
        if tag in ("truncated", "corrupt", "limit"):
            self.damaged = True
        if text in self.seen or len(self.items) >= self.limit:
            return
        self.seen.add(text)
        self.items.append(Note(tag, text, offset))


class SectionIndex:
    """The section headers that matter, by number and by (kind, parent section, row in the parent)."""

    def __init__(self, file: BinaryIO, notes: Notes) -> None:
        """Read the header table. Raises `DumpUnreadable` when the file holds none."""
        self.file = file
        self.notes = notes
        self.size = file.seek(0, io.SEEK_END)
        self.counts: Counter[int] = Counter()
        self.total = 0
        self.by_number: dict[int, Section] = {}
        self.stacks: dict[tuple[int, int], tuple[int, int]] = {}
        self._children: dict[tuple[int, int, int], Section] = {}
        self._roots: dict[int, list[Section]] = {}
        self._string_tables: list[Section] = []
        self._strings = b""
        self._read_table()

    def _read_table(self) -> None:
        head = self.read_at(0, HEADER_BYTES)
        if looks_like_dump(head) == 0.0:
            raise DumpUnreadable("unsupported", "not a GPU core dump (ELF of type core for machine CUDA)")
        if len(head) < HEADER_BYTES:
            raise DumpUnreadable("truncated", f"GPU core dump, cut short inside its first {HEADER_BYTES} bytes")
        fields = _ELF_HEADER.unpack_from(head, 16)
        start, entry_bytes, count, names_at = fields[5], fields[10], fields[11], fields[12]
        if entry_bytes != HEADER_BYTES:
            self.notes.add("corrupt", f"section headers of {entry_bytes} bytes where {HEADER_BYTES} are due", 58)
        first = self.read_at(start, HEADER_BYTES) if start else b""
        if len(first) < HEADER_BYTES:
            expected = start + HEADER_BYTES * (count or 1)
            least = "" if count else "at least "
            raise DumpUnreadable(
                "truncated",
                f"GPU core dump, cut short: {self.size} of {least}{expected} bytes are here; the section headers "
                "stand at the end of the file and are lost, so no table of it can be located",
            )
        zero = _HEADER.unpack(first)
        if count == 0:
            count = zero[5]
        if names_at == 0xFFFF:
            names_at = zero[6]
        there = (self.size - start) // HEADER_BYTES
        if there < count:
            self.notes.add(
                "truncated",
                f"GPU core dump, cut short: {self.size} of {start + HEADER_BYTES * count} bytes are here; "
                f"{there} of {count} section headers could be read",
                self.size,
            )
            count = there
        if count > MAX_SECTIONS:
            self.notes.add("limit", f"{count} sections: only the first {MAX_SECTIONS} were read", start)
            count = MAX_SECTIONS
        self.total = count
        for section in self._walk(start, count, names_at):
            self._keep(section)
        self._find_strings(names_at)

    def _walk(self, start: int, count: int, names_at: int) -> Iterator[Section]:
        """The headers worth keeping. Lanes' registers and memory are only counted: they are nine tenths of a dump."""
        kept = stacks = 0
        kept_kinds, counts, backtrace = _KEPT, self.counts, int(Kind.BACKTRACE)
        for base in range(0, count, _CHUNK):
            rows = min(_CHUNK, count - base)
            chunk = self.read_at(start + base * HEADER_BYTES, rows * HEADER_BYTES)
            chunk = chunk[: len(chunk) // HEADER_BYTES * HEADER_BYTES]
            for number, row in enumerate(_HEADER.iter_unpack(chunk), base):
                kind = row[1] - SECTION_BASE
                counts[kind] += 1
                if kind == backtrace:
                    # Lanes come in order, so row 0 is the lowest valid lane, which speaks for its warp.
                    if row[5] and (stacks < MAX_STACKS or row[7] == 0) and stacks < 2 * MAX_STACKS:
                        stacks += 1
                        self.stacks.setdefault((row[6], row[7]), (row[4], row[5]))
                    continue
                if kind not in kept_kinds and row[1] != _SHT_STRTAB and number != names_at:
                    continue
                if kept >= MAX_KEPT:
                    self.notes.add("limit", f"more than {MAX_KEPT} tables: the rest was left out", row[4])
                    return
                kept += 1
                yield Section(number, kind, row[3], row[4], row[5], row[6], row[7], row[9], row[0])

    def _keep(self, section: Section) -> None:
        self.by_number[section.number] = section
        if section.kind < 0:
            self._string_tables.append(section)
            return
        if section.link == 0:
            self._roots.setdefault(section.kind, []).append(section)
            return
        key = (section.kind, section.link, section.info)
        if key in self._children:
            self.notes.add("corrupt", f"two sections claim to be {_said(section.kind)} of the same row", section.offset)
            return
        self._children[key] = section

    def _find_strings(self, names_at: int) -> None:
        """`.strtab` holds the texts that rows point to; the other string table holds the section names."""
        named = next((table for table in self._string_tables if table.number == names_at), None)
        others = [table for table in self._string_tables if table.number != names_at and table.size]
        for table in others:
            if named and self.read_at(named.offset + table.name, 8) == b".strtab\0":
                others = [table]
                break
        found = others[0] if others else named
        self._strings = self.read_at(found.offset, min(found.size, 1 << 20)) if found else b""

    def root(self, kind: Kind) -> Section | None:
        """The table of that kind which has no parent (devices, metadata)."""
        found = self._roots.get(kind)
        return found[0] if found else None

    def child(self, kind: Kind, parent: Section, row: int) -> Section | None:
        """The section of that kind which belongs to row `row` of `parent`."""
        return self._children.get((kind, parent.number, row))

    def text(self, index: int | None) -> str:
        """A string of `.strtab`, at most 200 characters; '' when the index leads nowhere."""
        if not index or index >= len(self._strings):
            return ""
        end = self._strings.find(b"\0", index)
        raw = self._strings[index : end if end >= 0 else len(self._strings)][:200]
        return raw.decode("utf-8", "backslashreplace")

    def read_at(self, offset: int, count: int) -> bytes:
        """Up to `count` bytes at `offset`; fewer at the end of the file, none beyond it."""
        if offset >= self.size or count <= 0:
            return b""
        try:
            self.file.seek(offset)
            return self.file.read(min(count, self.size - offset))
        except (OSError, ValueError, OverflowError) as problem:
            self.notes.add("unreadable", f"reading {count} bytes at {offset} failed: {problem}", offset)
            return b""

    def bytes_of(self, section: Section, limit: int) -> bytes:
        """The contents of a table, cut at `limit` bytes and at the end of the file, each with a note."""
        size = section.size
        if size > limit:
            self.notes.add("limit", f"{_said(section.kind)}: {size} bytes, read up to {limit}", section.offset)
            size = limit
        data = self.read_at(section.offset, size)
        if len(data) < size:
            self.notes.add("corrupt", f"{_said(section.kind)} reaches beyond the end of the file", section.offset)
        return data


def _said(kind: int) -> str:
    try:
        return f"the {Kind(kind).name.lower().replace('_', ' ')} table"
    except ValueError:
        return f"section type {kind + SECTION_BASE:#x}"
