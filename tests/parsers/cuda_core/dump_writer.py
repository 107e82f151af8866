"""Writes GPU core dumps for tests: any number of devices, SMs, warps and lanes, other row sizes, hostile numbers.

Layouts are packed here by hand, from `cudacoredump.h`, and not through the reader's own tables, so that a slip in one
shows against the other. `test_writer_against_real.py` holds the writer against real dumps.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import BinaryIO

BASE = 0x80000000
CODE = 0x7F0000000000

# sm_90 instructions, as nvcc 13.0 encodes them.
BAR_SYNC = (0x0000000000007B1D, 0x000FEC0000010000)
BAR_ARV = (0x00C2000000007B1D, 0x000FEC0000002000)
BAR_RED = (0x0000000000007B1D, 0x000FEC0000014000)
NOP = (0x0000000000007918, 0x000FC00000000000)
EXIT = (0x000000000000794D, 0x000FEA0003800000)
BRA_SELF = (0xFFFFFFFC00FC7947, 0x000FC0000383FFFF)
PHASECHK = (0x00000000030085A7, 0x000E64000800007F)
BRA_BACK_2 = (0xFFFFFFFC00F48947, 0x000FEA000383FFFF)
NANOSLEEP = (0x000000640000795D, 0x000FEA0003800000)
LDG_STRONG = (0x0000000402007981, 0x000EA4000C1EF900)
LDG_WEAK = (0x0000000402007981, 0x000EA4000C1E1900)
WARPSYNC = (0x000000000B007348, 0x000FEA0003800000)
CLUSTER_WAIT = (0x0000000000007DC7, 0x000FEC0000000000)
KERNEL = (NOP, BAR_SYNC, NOP, NOP, NOP, NOP, NOP, NOP, PHASECHK, BRA_BACK_2, NOP, NANOSLEEP, NOP, EXIT, BRA_SELF)
AT_BARRIER, AT_MBARRIER, AT_SLEEP = 2 * 16, 9 * 16, 12 * 16


@dataclass
class Shape:
    """What to write. `rows` overrides row sizes by table name, as another driver would."""

    devices: int = 1
    sms: int = 4
    blocks: int = 1
    warps: int = 4
    lanes: int = 32
    kernel: str = "_Z15layernorm_fusedPKfPfPVii"
    code: tuple[tuple[int, int], ...] = KERNEL
    pc: int = AT_BARRIER
    odd_pc: int | None = None
    exception: int = 0
    sm_exception: int = 0
    broken: int = 0
    sm_version: tuple[int, int] = (9, 0)
    instruction_bytes: int = 16
    driver: tuple[int, int] = (580, 159)
    flags: int = 0x3F
    timestamp: int = 1796068728
    metadata: bool = True
    grids: bool = True
    images: bool = True
    depth: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    grid_status: int = 2
    extended: bool | None = None
    per_lane: int = 3


@dataclass
class _Section:
    kind: int
    data: bytes
    link: int
    info: int
    entsize: int
    name: str
    size: int | None = None
    address: int = 0
    offset: int = 0


def module_image(kernel: str, code: tuple[tuple[int, int], ...], base: int) -> bytes:
    """A relocated module image: one kernel at `base` with a symbol, the rest as small as ELF allows."""
    text = b"".join(struct.pack("<QQ", *pair) for pair in code)
    names = b"\0.shstrtab\0.strtab\0.symtab\0.text." + kernel.encode() + b"\0"
    strings = b"\0" + kernel.encode() + b"\0"
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 4, base, len(text))
    at = 64
    places = []
    for data in (names, strings, symbols, text):
        places.append(at)
        at += len(data)
    rows = [
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (names.index(b".shstrtab"), 3, 0, 0, places[0], len(names), 0, 0, 1, 0),
        (names.index(b".strtab"), 3, 0, 0, places[1], len(strings), 0, 0, 1, 0),
        (names.index(b".symtab"), 2, 0, 0, places[2], len(symbols), 2, 1, 8, 24),
        (names.index(b".text."), 1, 6, base, places[3], len(text), 3, 0, 128, 0),
    ]
    ident = b"\x7fELF\x02\x01\x01\x41\x08".ljust(16, b"\0")
    header = ident + struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, at, 0, 64, 0, 0, 64, len(rows), 1)
    return header + names + strings + symbols + text + b"".join(struct.pack("<IIQQQQIIQQ", *row) for row in rows)


def _row(shape: Shape, table: str, size: int, packed: bytes) -> bytes:
    """The row as a driver with that row size would write it: cut or padded."""
    size = shape.rows.get(table, size)
    return packed.ljust(size, b"\xee")[:size]


class _Writer:
    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.sections: list[_Section] = [_Section(-BASE, b"", 0, 0, 0, "")]

    def add(self, kind: int, rows: list[bytes], link: int, info: int, name: str, entsize: int | None = None) -> int:
        size = len(rows[0]) if rows else 8
        data = b"".join(rows)
        self.sections.append(_Section(kind, data, link, info, size if entsize is None else entsize, name))
        return len(self.sections) - 1

    def build(self) -> None:
        shape = self.shape
        strings = [f"sm_{shape.sm_version[0]}{shape.sm_version[1]}", "NVIDIA TEST", "GX100", "UD"]
        table = b"\0" + b"".join(text.encode() + b"\0" for text in strings)
        at = [table.index(text.encode()) for text in strings]
        device = struct.pack(
            "<3Q16I", at[1], at[2], at[0], 0, 0x41, 0, shape.sms, 64, 32, 255, 7, *shape.sm_version,
            shape.instruction_bytes, 0, 63, 7, 16, 0,
        )  # fmt: skip
        rows = [device[:24] + struct.pack("<3I", n, 0x41 + n, 0) + device[36:] for n in range(shape.devices)]
        devices = self.add(9, [_row(shape, "device", 88, row) for row in rows], 0, 0, ".cudbg.devtbl")
        for number in range(shape.devices):
            self.device(devices, number)
        if shape.metadata:
            meta = struct.pack("<Q6I", at[3], *shape.driver, 13, 0, shape.flags, shape.timestamp)
            self.add(22, [_row(shape, "metadata", 32, meta)], 0, 0, ".cudbg.meta", 0)
        self.add(3 - BASE, [table], 0, 0, ".strtab", 0)

    def device(self, devices: int, number: int) -> None:
        shape = self.shape
        base = CODE + 0x1000
        context = struct.pack("<4Q2I", 0x5000 + number, 0, 0, 0, number, 1000 + number)
        contexts = self.add(10, [_row(shape, "context", 40, context)], devices, number, f".cudbg.ctxtbl.dev{number}")
        modules = self.add(16, [struct.pack("<Q", 0x77)], contexts, 0, f".cudbg.modtbl.dev{number}.ctx0")
        if shape.images:
            image = module_image(shape.kernel, shape.code, base)
            self.add(7, [image], modules, 0, f".cudbg.relfimg.dev{number}.ctx0", 0)
        grid = struct.pack(
            "<7Q4I3I3I2I3II3II", 4, 0x5000 + number, 0, base, 0x77, 0, 0, 2, 0, shape.grid_status, 16,
            shape.sms * shape.blocks, 1, 1, shape.warps * 32, 1, 1, 0, 1000 + number, 0, 0, 0, 0, 0, 0, 0, 0,
        )  # fmt: skip
        grids = [_row(shape, "grid", 136, grid)] if shape.grids else []
        self.add(12, grids, devices, number, f".cudbg.gridtbl.dev{number}", shape.rows.get("grid", 136))
        rows = [
            struct.pack("<II2IQ4IQ", n, 0, shape.sm_exception, int(bool(shape.sm_exception)), base + 16, 0, 0, 0, 0, 0)
            for n in range(shape.sms)
        ]
        sms = self.add(11, [_row(shape, "sm", 48, row) for row in rows], devices, number, f".cudbg.smtbl.dev{number}")
        for sm in range(shape.sms):
            self.sm(sms, number, sm, base)

    def sm(self, sms: int, number: int, sm: int, base: int) -> None:
        shape = self.shape
        tag = f"dev{number}.sm{sm}"
        blocks = shape.blocks if shape.grids else 0
        rows = [struct.pack("<Q3II3II3II", 4, sm * blocks + n, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) for n in range(blocks)]
        ctas = self.add(13, [_row(shape, "cta", 56, row) for row in rows], sms, sm, f".cudbg.ctatbl.{tag}")
        mask = (1 << shape.lanes) - 1
        for block in range(blocks):
            rows = [
                struct.pack(
                    "<Q14I", base + 16, warp, mask, mask, shape.broken, int(bool(shape.exception)), 0, 16, 0, 0, 0,
                    0, mask, 0, 0,
                )
                for warp in range(shape.warps)
            ]  # fmt: skip
            name = f".cudbg.wptbl.{tag}.cta{block}"
            warps = self.add(14, [_row(shape, "warp", 64, row) for row in rows], ctas, block, name)
            for warp in range(shape.warps):
                self.warp(warps, f"{tag}.cta{block}.wp{warp}", warp, base)

    def warp(self, warps: int, tag: str, warp: int, base: int) -> None:
        shape = self.shape
        pc = base + (shape.odd_pc if shape.odd_pc is not None and warp == shape.warps - 1 else shape.pc)
        rows = [
            struct.pack(
                "<QQI3I6I", pc, pc - base, lane, warp * 32 + lane, 0, 0, shape.exception, shape.depth, 0, 0, 1, 0
            )
            for lane in range(shape.lanes)
        ]
        lanes = self.add(15, [_row(shape, "lane", 56, row) for row in rows], warps, warp, f".cudbg.lntbl.{tag}")
        frames = [struct.pack("<QQII", 0x30, base + 0x30, level, 0) for level in range(shape.depth)]
        for lane in range(shape.lanes):
            self.add(8, frames, lanes, lane, f".cudbg.bt.{tag}.ln{lane}", 24)
            if shape.per_lane > 1:
                self.add(5, [bytes(56)], lanes, lane, f".cudbg.regs.{tag}.ln{lane}", 4)
            if shape.per_lane > 2:
                self.add(17, [bytes(32)], lanes, lane, f".cudbg.pred.{tag}.ln{lane}", 4)

    def write(self, file: BinaryIO, gap: int = 0) -> int:
        """Write it all; `gap` leaves a hole for global memory before the tables. The file's size."""
        names, at = bytearray(b"\0"), 64 + gap
        seen: dict[str, int] = {"": 0}
        self.sections.append(_Section(3 - BASE, b"", 0, 0, 0, ".shstrtab"))
        for section in self.sections:
            if section.name not in seen:
                seen[section.name] = len(names)
                names += section.name.encode() + b"\0"
        self.sections[-1].data = bytes(names)
        if gap:
            self.sections.insert(1, _Section(2, b"", 0, 0, 1, "", gap, 0x7F1000000000, 64))
            for section in self.sections[2:]:
                section.link += 1 if section.link else 0
        out = [b""]
        for section in self.sections[1:]:
            if section.size is None:
                section.offset = at
                out.append(section.data)
                at += len(section.data)
        count = len(self.sections)
        extended = self.shape.extended if self.shape.extended is not None else count >= 0xFF00
        ident = b"\x7fELF\x02\x01\x01\x33\x07".ljust(16, b"\0")
        numbers = (0, 0xFFFF) if extended else (count, count - 1)
        header = ident + struct.pack("<HHIQQQIHHHHHH", 4, 190, 1, 0, 0, at, 0, 64, 0, 0, 64, *numbers)
        file.write(header)
        file.seek(64 + gap)
        file.write(b"".join(out))
        table = bytearray()
        for number, section in enumerate(self.sections):
            size, link = section.size if section.size is not None else len(section.data), section.link
            if number == 0 and extended:
                size, link = count, count - 1
            table += struct.pack(
                "<IIQQQQIIQQ", seen.get(section.name, 0), section.kind + BASE, 0, section.address, section.offset, size,
                link, section.info, 1, section.entsize,
            )  # fmt: skip
        file.write(bytes(table))
        return at + len(table)


def write_dump(file: BinaryIO, shape: Shape, gap: int = 0) -> int:
    """Write a dump of that shape; `gap` bytes of global memory come first (a hole, where the file system has holes)."""
    writer = _Writer(shape)
    writer.build()
    return writer.write(file, gap)
