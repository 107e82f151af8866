"""Module images inside a dump: which function an address belongs to, and the code around it.

Relocated images are ELF files for machine EM_CUDA with absolute addresses in the `.text.*` headers and in the
symbols. Only headers, symbols, line programs and a few instructions are read, each within its own limit. Functions
that were never loaded (lazy loading) have address 0 and are passed over: small numbers would fit them otherwise.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass, field

from parsers.cuda_core.elf_index import Section, SectionIndex
from parsers.cuda_core.header import EM_CUDA

MAX_IMAGE_SECTIONS = 300_000
MAX_SYMBOL_BYTES = 48 << 20
MAX_STRING_BYTES = 64 << 20
MAX_LINE_BYTES = 32 << 20
_HEADER = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SHT_SYMTAB = 2
_SHT_NOBITS = 8
_STT_FUNC = 2


@dataclass(slots=True, frozen=True)
class TextRange:
    """A loaded function: [start, end) on the device and where its code stands in the dump (-1 when it has none)."""

    start: int
    end: int
    name: str
    at: int


@dataclass(slots=True, frozen=True)
class Place:
    """What an address means: the kernel's section, the symbol that covers it best, and the offset into that."""

    section: str
    symbol: str
    offset: int
    image: int


@dataclass(slots=True)
class ModuleImage:
    """One image, read step by step as questions come."""

    index: SectionIndex
    section: Section
    number: int
    _ranges: list[TextRange] | None = None
    _starts: list[int] = field(default_factory=list)
    _symbols: list[tuple[int, int, int]] | None = None
    _symbol_starts: list[int] = field(default_factory=list)
    _symbol_names: bytes = b""
    _symbol_table: tuple[int, int] | None = None
    _name_table: tuple[int, int] | None = None
    _line_table: tuple[int, int] | None = None
    _line_strings: dict[str, tuple[int, int]] = field(default_factory=dict)

    def _bytes(self, offset: int, count: int) -> bytes:
        """Bytes of the image; a stretch that leaves the image is cut at its end."""
        if offset < 0 or offset >= self.section.size:
            return b""
        return self.index.read_at(self.section.offset + offset, min(count, self.section.size - offset))

    def ranges(self) -> list[TextRange]:
        """Loaded `.text.*` sections in order of their addresses."""
        if self._ranges is None:
            self._ranges = []
            self._read_headers()
            self._ranges.sort(key=lambda text: text.start)
            self._starts = [text.start for text in self._ranges]
        return self._ranges

    def _read_headers(self) -> None:
        assert self._ranges is not None
        head = self._bytes(0, 64)
        if len(head) < 64 or head[:5] != b"\x7fELF\x02" or struct.unpack_from("<H", head, 18)[0] != EM_CUDA:
            self.index.notes.add("corrupt", "a module image is no CUDA ELF file", self.section.offset)
            return
        table = struct.unpack_from("<Q", head, 40)[0]
        entry, count, names_at = struct.unpack_from("<HHH", head, 58)
        if entry != _HEADER.size or table >= self.section.size:
            self.index.notes.add("corrupt", "a module image has no section headers", self.section.offset)
            return
        if count == 0 or names_at == 0xFFFF:
            first = self._bytes(table, entry)
            if len(first) < entry:
                return
            zero = _HEADER.unpack(first)
            count, names_at = count or zero[5], zero[6] if names_at == 0xFFFF else names_at
        if count > MAX_IMAGE_SECTIONS:
            self.index.notes.add("limit", f"a module image of {count} sections was read in part", self.section.offset)
            count = MAX_IMAGE_SECTIONS
        raw = self._bytes(table, count * entry)
        rows = list(_HEADER.iter_unpack(raw[: len(raw) // entry * entry]))
        if names_at >= len(rows):
            self.index.notes.add("corrupt", "a module image has no section names", self.section.offset)
            return
        names = self._bytes(rows[names_at][4], min(rows[names_at][5], MAX_STRING_BYTES))
        for row in rows:
            name = _string(names, row[0])
            if row[1] == _SHT_SYMTAB and row[6] < len(rows):
                self._symbol_table = (row[4], row[5])
                self._name_table = (rows[row[6]][4], rows[row[6]][5])
            elif name == ".debug_line":
                self._line_table = (row[4], row[5])
            elif name in (".debug_str", ".debug_line_str"):
                self._line_strings[name] = (row[4], row[5])
            elif name.startswith(".text.") and row[3] and 0 < row[5] < 1 << 40 and row[3] + row[5] < 1 << 64:
                at = -1 if row[1] == _SHT_NOBITS else row[4]
                self._ranges.append(TextRange(row[3], row[3] + row[5], name[6:], at))

    def text_at(self, address: int) -> TextRange | None:
        """The loaded function section that covers the address."""
        ranges = self.ranges()
        at = bisect_right(self._starts, address) - 1
        return ranges[at] if at >= 0 and address < ranges[at].end else None

    def place(self, address: int) -> Place | None:
        """Names for a code address; a local function inside a kernel's section is named by its own symbol."""
        text = self.text_at(address)
        if text is None:
            return None
        self._read_symbols()
        symbols = self._symbols or []
        at = bisect_right(self._symbol_starts, address) - 1
        for back in range(at, max(-1, at - 16), -1):
            value, size, name_at = symbols[back]
            if value < text.start:
                break
            if address < value + size or size == 0:
                name = _string(self._symbol_names, name_at)
                if name:
                    return Place(text.name, name, address - value, self.number)
        return Place(text.name, text.name, address - text.start, self.number)

    def _read_symbols(self) -> None:
        if self._symbols is not None:
            return
        self._symbols = []
        if self._symbol_table is None or self._name_table is None:
            return
        offset, size = self._symbol_table
        if size > MAX_SYMBOL_BYTES:
            self.index.notes.add("limit", f"a symbol table of {size} bytes was read in part", self.section.offset)
        raw = self._bytes(offset, min(size, MAX_SYMBOL_BYTES))
        self._symbol_names = self._bytes(self._name_table[0], min(self._name_table[1], MAX_STRING_BYTES))
        rows = _SYMBOL.iter_unpack(raw[: len(raw) // _SYMBOL.size * _SYMBOL.size])
        self._symbols = sorted((row[4], row[5], row[0]) for row in rows if row[1] & 15 == _STT_FUNC and row[4])
        self._symbol_starts = [symbol[0] for symbol in self._symbols]

    def code(self, address: int, before: int, after: int, step: int) -> tuple[int, bytes]:
        """The instructions around an address, inside its section: (address of the first byte, bytes)."""
        text = self.text_at(address)
        if text is None or text.at < 0 or step <= 0:
            return address, b""
        start = max(text.start, address - before * step)
        end = min(text.end, address + after * step)
        return start, self._bytes(text.at + start - text.start, end - start)

    def line_program(self) -> tuple[bytes, dict[str, bytes]]:
        """`.debug_line` and the string sections that version 5 refers to; empty when the image carries none."""
        self.ranges()
        if self._line_table is None:
            return b"", {}
        offset, size = self._line_table
        if size > MAX_LINE_BYTES:
            self.index.notes.add("limit", f"line information of {size} bytes was read in part", self.section.offset)
        strings = {name: self._bytes(at, min(n, MAX_LINE_BYTES)) for name, (at, n) in self._line_strings.items()}
        return self._bytes(offset, min(size, MAX_LINE_BYTES)), strings


def _string(table: bytes, at: int) -> str:
    """A name of at most 16 KiB (mangled names of template libraries reach several)."""
    if at >= len(table):
        return ""
    end = table.find(b"\0", at, at + 16384)
    return table[at : end if end >= 0 else at].decode("utf-8", "backslashreplace")
