"""Rows of the dump's tables, read by `sh_entsize`: newer drivers append fields, older ones lack some.

Offsets are those of `cudacoredump.h`; the branch that first wrote a field is named in the comments. A field that the
row is too short for is None.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from parsers.cuda_core.elf_index import Section, SectionIndex
from parsers.cuda_core.exceptions import EXCEPTIONS

MAX_TABLE_BYTES = 32 << 20

GRID_STATUS = {0: "invalid", 1: "pending", 2: "active", 3: "sleeping", 4: "terminated", 5: "undetermined"}
KERNEL_TYPE = {1: "system", 2: "application"}
ORIGIN = {0: "cpu", 1: "gpu"}

LANE_STATES = {
    0: "exited",
    1: "ready",
    2: "yielded",
    3: "sleep",
    4: "sleep-yield",
    5: "ready-at-next",
    6: "blocked-plus",
    7: "blocked-all",
    8: "blocked-collective",
}
"""`cbuThreadState`; 9 to 24 stand for convergence barriers B0 to B15, 0xffffffff for none."""

FLAGS = {
    0x01: "nonrelocated_elf_images",
    0x02: "global_memory",
    0x04: "shared_memory",
    0x08: "local_memory",
    0x10: "abort",
    0x20: "constbank_memory",
    0x100: "tensor_memory",
}
"""`CUcoredumpGenerationFlags`: each bit leaves something out (`skip_…`)."""
OTHER_FLAGS = {0x40: "gzip_compress", 0x80: "faulted_contexts_only", 0x40000000: "no_errbar_at_exit"}

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Layout:
    """A row: (name, offset, struct code) in the order of the offsets, and the least size that makes sense of it."""

    name: str
    fields: tuple[tuple[str, int, str], ...]
    least: int


DEVICE = Layout(
    "device",
    (
        ("name", 0, "Q"),
        ("chip", 8, "Q"),
        ("sm_type", 16, "Q"),
        ("dev_id", 24, "I"),
        ("pci_bus", 28, "I"),
        ("pci_device", 32, "I"),
        ("num_sms", 36, "I"),
        ("warps_per_sm", 40, "I"),
        ("lanes_per_warp", 44, "I"),
        ("registers_per_lane", 48, "I"),
        ("sm_major", 56, "I"),
        ("sm_minor", 60, "I"),
        ("instruction_bytes", 64, "I"),
        ("status", 68, "I"),
    ),
    48,
)
CONTEXT = Layout("context", (("context_id", 0, "Q"), ("device", 32, "I"), ("tid", 36, "I")), 8)
MODULE = Layout("module", (("handle", 0, "Q"),), 8)
GRID = Layout(
    "grid",
    (
        ("grid_id", 0, "Q"),
        ("context_id", 8, "Q"),
        ("function", 16, "Q"),
        ("entry", 24, "Q"),
        ("module", 32, "Q"),
        ("parent_grid", 40, "Q"),
        ("kernel_type", 56, "I"),
        ("origin", 60, "I"),
        ("status", 64, "I"),
        ("num_regs", 68, "I"),
        ("grid_dim", 72, "III"),
        ("block_dim", 84, "III"),
        ("tid", 100, "I"),
        ("cluster_dim", 104, "III"),  # r525
        ("preferred_cluster_dim", 120, "III"),  # r565
    ),
    40,
)
SM = Layout(
    "SM",
    (
        ("sm", 0, "I"),
        ("exception", 8, "I"),  # r555, with the two below
        ("error_pc_valid", 12, "I"),
        ("error_pc", 16, "Q"),
        ("target_block_valid", 24, "I"),  # r565
        ("target_block", 28, "III"),
        ("exception_text", 40, "Q"),  # r580
    ),
    4,
)
CTA = Layout(
    "CTA",
    (
        ("grid_id", 0, "Q"),
        ("block", 8, "III"),
        ("cluster", 24, "III"),  # r525
        ("cluster_dim", 40, "III"),  # r565
    ),
    20,
)
WARP = Layout(
    "warp",
    (
        ("error_pc", 0, "Q"),
        ("warp", 8, "I"),
        ("valid", 12, "I"),
        ("active", 16, "I"),
        ("broken", 20, "I"),
        ("error_pc_valid", 24, "I"),
        ("num_regs", 32, "I"),  # r525
        ("shared_bytes", 40, "I"),  # r570
        ("in_syscall", 48, "I"),  # r575, with those below
        ("cbu_exited", 56, "I"),
        ("cbu_collective", 60, "I"),
    ),
    20,
)
LANE = Layout(
    "lane",
    (
        ("pc", 0, "Q"),
        ("physical_pc", 8, "Q"),
        ("lane", 16, "I"),
        ("thread", 20, "III"),
        ("exception", 32, "I"),
        ("call_depth", 36, "I"),
        ("state", 48, "I"),  # r575
    ),
    20,
)
FRAME = Layout("backtrace", (("return_offset", 0, "Q"), ("return_pc", 8, "Q"), ("level", 16, "I")), 16)
METADATA = Layout(
    "metadata",
    (
        ("generator", 0, "Q"),
        ("driver_major", 8, "I"),
        ("driver_minor", 12, "I"),
        ("cuda_major", 16, "I"),
        ("cuda_minor", 20, "I"),
        ("flags", 24, "I"),
        ("timestamp", 28, "I"),
    ),
    16,
)


@lru_cache(maxsize=256)
def _reader(layout: Layout, row_bytes: int) -> tuple[struct.Struct, tuple[tuple[str, int], ...]]:
    """The struct of one row of `row_bytes`, and (name, number of values) of the fields that fit into it."""
    code, at, names = "<", 0, []
    for name, offset, codes in layout.fields:
        width = struct.calcsize("<" + codes)
        if offset + width > row_bytes:
            break
        code += f"{offset - at}x{codes}"
        at = offset + width
        names.append((name, len(codes)))
    return struct.Struct(f"{code}{row_bytes - at}x"), tuple(names)


def read_rows(index: SectionIndex, section: Section | None, layout: Layout, most: int) -> Iterator[Row]:
    """The rows of a table as dicts with every field of the layout (None where the driver wrote none).

    At most `most` rows; the rest is noted. `.cudbg.meta` has no row size and is one row.
    """
    if section is None or section.size == 0:
        return
    row_bytes = section.entsize or (section.size if layout is METADATA else 0)
    if row_bytes < layout.least:
        index.notes.add("corrupt", f"{layout.name} table with rows of {row_bytes} bytes", section.offset)
        return
    data = index.bytes_of(section, MAX_TABLE_BYTES)
    if len(data) % row_bytes:
        index.notes.add("corrupt", f"{layout.name} table ends inside a row of {row_bytes} bytes", section.offset)
    if row_bytes > len(data):
        return
    reader, names = _reader(layout, row_bytes)
    blank: Row = {name: None for name, _, _ in layout.fields}
    for number, values in enumerate(reader.iter_unpack(data[: len(data) // row_bytes * row_bytes])):
        if number >= most:
            rows = section.size // row_bytes
            index.notes.add("limit", f"{layout.name} table of {rows} rows, read up to {most}", section.offset)
            return
        row, at = dict(blank), 0
        for name, width in names:
            row[name] = values[at] if width == 1 else values[at : at + width]
            at += width
        row["offset"] = section.offset + number * row_bytes
        row["offset_end"] = row["offset"] + row_bytes
        yield row


_LANE_LONG = struct.Struct("<Q8xI12xII8xI")
_LANE_SHORT = struct.Struct("<Q8xI12xII")


def read_lanes(index: SectionIndex, section: Section | None, most: int) -> list[tuple[int, ...]]:
    """The lanes of a warp as bare tuples (pc, lane, exception, call depth, state), states -1 when not written.

    A full dump has tens of thousands of lanes, so they never become objects.
    """
    if section is None or section.size == 0:
        return []
    row_bytes = section.entsize
    if row_bytes < _LANE_SHORT.size:
        index.notes.add("corrupt", f"lane table with rows of {row_bytes} bytes", section.offset)
        return []
    size = min(section.size, row_bytes * most)
    if size < section.size:
        index.notes.add("limit", f"lane table of {section.size // row_bytes} rows, read up to {most}", section.offset)
    if size > MAX_TABLE_BYTES:
        index.notes.add("corrupt", f"lane table with rows of {row_bytes} bytes", section.offset)
        return []
    data = index.read_at(section.offset, size)
    if len(data) < size:
        index.notes.add("corrupt", "a lane table reaches beyond the end of the file", section.offset)
    count = len(data) // row_bytes
    if row_bytes >= _LANE_LONG.size:
        return [_LANE_LONG.unpack_from(data, row * row_bytes) for row in range(count)]
    return [(*_LANE_SHORT.unpack_from(data, row * row_bytes), -1) for row in range(count)]


def exception_name(code: int) -> str:
    """The debugger's name in lower case; an unknown number stays a number."""
    return EXCEPTIONS.get(code, f"exception {code}")


def lane_state(state: int) -> str | None:
    """The convergence unit's word for a lane, None when the driver wrote none."""
    if state < 0 or state == 0xFFFFFFFF:
        return None
    if 9 <= state <= 24:
        return f"blocked-on-b{state - 9}"
    return LANE_STATES.get(state, f"state {state}")
