"""Source lines of code addresses from `.debug_line` (DWARF 2 to 5), one pass, within a budget of steps.

nvcc's `-lineinfo` writes line programs without `.debug_info`, already relocated in the images of a dump, so the
programs are walked one behind the other as they stand. Fact: DWARF standard, section 6.2.

NVIDIA's extended opcode 0x90 stands before the row of an inlined function: the number of the calling row, counted from
1 in its sequence (0 = not inlined), and the function's name in `.debug_str`. Followed, it leads from a line of a
library's header to the line of the kernel's own source. Verified on images of nvcc 13.0.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterable

MAX_STEPS = 2_000_000
_MAX_FILES = 100_000
_MAX_INLINED = 32
_NV_INLINED_CALL = 0x90
_U64 = 0xFFFFFFFFFFFFFFFF

Inlined = list[tuple[str, int]]
"""The calls that an inlined line stands in, the nearest first: (file, line) of each."""


class _Damaged(Exception):
    pass


class _Reader:
    """A cursor over bytes that never leaves them."""

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self.data, self.at, self.end = data, at, min(end, len(data))

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > self.end:
            raise _Damaged
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "little")

    def leb(self, signed: bool = False) -> int:
        value = shift = 0
        while shift < 70:
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value - (1 << shift) if signed and byte & 0x40 else value
        raise _Damaged

    def text(self) -> str:
        end = self.data.find(b"\0", self.at, self.end)
        if end < 0:
            raise _Damaged
        raw = self.data[self.at : end]
        self.at = end + 1
        return raw[:4096].decode("utf-8", "backslashreplace")


def find_lines(
    data: bytes,
    strings: dict[str, bytes],
    addresses: Iterable[int],
    steps: int = MAX_STEPS,
    inlined: dict[int, Inlined] | None = None,
) -> tuple[dict[int, tuple[str, int]], bool]:
    """For each address the (file, line) of the row that covers it, and whether everything was walked.

    Of several rows at one address the last counts: the innermost function. `inlined` takes up what calls it.

    False means that a program was damaged or the budget of steps ran out; what was found so far is given all the same.
    """
    wanted = sorted(set(addresses))
    found: dict[int, tuple[str, int]] = {}
    at, left, whole = 0, steps, True
    while at + 4 <= len(data) and wanted:
        length = struct.unpack_from("<I", data, at)[0]
        start, width = at + 4, 4
        if length == 0xFFFFFFFF and at + 12 <= len(data):
            length, start, width = struct.unpack_from("<Q", data, at + 4)[0], at + 12, 8
        at = start + length
        if at > len(data):
            whole = False
        if length == 0:
            continue
        try:
            left = _program(_Reader(data, start, at), width, strings, wanted, found, left, inlined)
        except _Damaged:
            whole = False
        if left <= 0:
            return found, False
    return found, whole


def _program(
    cursor: _Reader,
    width: int,
    strings: dict[str, bytes],
    wanted: list[int],
    found: dict[int, tuple[str, int]],
    steps: int,
    inlined: dict[int, Inlined] | None,
) -> int:
    """Run one program; the steps that are left."""
    version = cursor.number(2)
    if not 2 <= version <= 5:
        raise _Damaged
    if version >= 5:
        cursor.take(2)
    header_end = cursor.number(width) + cursor.at
    least = cursor.number(1)
    if version >= 4:
        cursor.take(1)
    cursor.take(1)
    line_base = int.from_bytes(cursor.take(1), "little", signed=True)
    line_range, opcode_base = cursor.number(1), cursor.number(1)
    lengths = cursor.take(max(0, opcode_base - 1))
    if line_range == 0:
        raise _Damaged
    files = _files_v5(cursor, width, strings) if version >= 5 else _files(cursor)
    if header_end > cursor.end:
        raise _Damaged
    cursor.at = header_end
    address, file, line, previous = 0, 1, 1, -1
    row: tuple[int, int] = (1, 1)
    context = 0
    # File, line and calling row of every row of the sequence, three numbers each.
    sequence = array("Q")
    while cursor.at < cursor.end and steps > 0:
        steps -= 1
        opcode = cursor.number(1)
        emit = ends = False
        if opcode >= opcode_base:
            opcode -= opcode_base
            address += opcode // line_range * least
            line += line_base + opcode % line_range
            emit = True
        elif opcode == 0:
            size = cursor.leb()
            body = cursor.take(size)
            if body[:1] == b"\x01":
                emit = ends = True
            elif body[:1] == b"\x02" and size in (5, 9):
                address = int.from_bytes(body[1:], "little")
            elif body[:1] == bytes((_NV_INLINED_CALL,)) and inlined is not None:
                context = _Reader(body, 1, size).leb()
        elif opcode == 1:
            emit = True
        elif opcode == 2:
            address += cursor.leb() * least
        elif opcode == 3:
            line += cursor.leb(signed=True)
        elif opcode == 4:
            file = cursor.leb()
        elif opcode == 8:
            address += (255 - opcode_base) // line_range * least
        elif opcode == 9:
            address += cursor.number(2)
        else:
            for _ in range(lengths[opcode - 1]):
                cursor.leb()
        if emit:
            if previous >= 0 and address > previous:
                for at in range(bisect_left(wanted, previous), len(wanted)):
                    if wanted[at] >= address:
                        break
                    found[wanted[at]] = (files.get(row[0], ""), row[1])
                    if inlined is not None and sequence and sequence[-1]:
                        inlined[wanted[at]] = _calls(sequence, files)
            previous, row = address, (file, line)
            if inlined is not None:
                sequence.extend((file & _U64, line & _U64, context & _U64))
            if ends:
                address, file, line, previous, context = 0, 1, 1, -1, 0
                del sequence[:]
    return steps


def _calls(sequence: array[int], files: dict[int, str]) -> Inlined:
    """From the last row of the sequence to the calls around it. A row may only point back, so this ends."""
    calls: Inlined = []
    at = len(sequence) // 3
    while len(calls) < _MAX_INLINED:
        context = sequence[at * 3 - 1]
        if not 0 < context < at:
            break
        at = context
        calls.append((files.get(sequence[at * 3 - 3], ""), sequence[at * 3 - 2]))
    return calls


def _files(cursor: _Reader) -> dict[int, str]:
    """Versions 2 to 4: directories and files count from 1, directory 0 is the compilation's own."""
    folders = [""]
    while len(folders) < _MAX_FILES:
        folder = cursor.text()
        if not folder:
            break
        folders.append(folder)
    files: dict[int, str] = {}
    while len(files) < _MAX_FILES:
        name = cursor.text()
        if not name:
            break
        folder_at = cursor.leb()
        cursor.leb()
        cursor.leb()
        files[len(files) + 1] = _join(folders, folder_at, name)
    return files


def _files_v5(cursor: _Reader, width: int, strings: dict[str, bytes]) -> dict[int, str]:
    """Version 5: both tables describe their own entries."""
    folders = [entry[0] for entry in _entries(cursor, width, strings)]
    files = _entries(cursor, width, strings)
    return {number: _join(folders, folder_at, name) for number, (name, folder_at) in enumerate(files)}


def _entries(cursor: _Reader, width: int, strings: dict[str, bytes]) -> list[tuple[str, int]]:
    shape = [(cursor.leb(), cursor.leb()) for _ in range(cursor.number(1))]
    count = cursor.leb()
    if count > _MAX_FILES or (count and not shape):
        raise _Damaged
    entries = []
    for _ in range(count):
        name, folder = "", 0
        for content, form in shape:
            value = _form(cursor, form, width, strings)
            if content == 1 and isinstance(value, str):
                name = value
            elif content == 2 and isinstance(value, int):
                folder = value
        entries.append((name, folder))
    return entries


def _form(cursor: _Reader, form: int, width: int, strings: dict[str, bytes]) -> str | int:
    sizes = {0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8, 0x1E: 16}
    if form in sizes:
        return cursor.number(sizes[form])
    if form == 0x08:
        return cursor.text()
    if form == 0x0F:
        return cursor.leb()
    if form in (0x0E, 0x1F):
        table = strings.get(".debug_line_str" if form == 0x1F else ".debug_str", b"")
        return _Reader(table, cursor.number(width), len(table)).text()
    raise _Damaged


def _join(folders: list[str], at: int, name: str) -> str:
    folder = folders[at] if at < len(folders) else ""
    return f"{folder}/{name}" if folder and not name.startswith("/") else name
