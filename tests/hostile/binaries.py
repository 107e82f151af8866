"""Builders of the hostile binaries N32 to N35."""

from __future__ import annotations

import pickle
import random
import struct
from pathlib import Path


def n32(folder: Path) -> None:
    """Pickles that run code, reach outside, or ask for memory."""
    good = pickle.dumps({"version": "2.5", "entries": [{"state": "completed", "record_id": 1}]}, protocol=2)
    assert good[:2] == b"\x80\x02"
    body = good[2:-1]
    hostile = {
        "system": b"\x80\x02" + b"cposix\nsystem\nX\x0b\0\0\0touch owned\x85R.",
        "eval": b"\x80\x02" + body + b"0cbuiltins\neval\nX\x011\0\0\x85R.",
        "persistent": b"\x80\x02" + body + b"0X\x01\0\0\0aQ.",
        "memo": b"\x80\x02" + body + b"r" + struct.pack("<I", 1 << 27) + b".",
        "length": b"\x80\x04\x8d" + struct.pack("<Q", 1 << 60) + b"a.",
        "nested": b"\x80\x02" + b"(" * 300_000 + b"t" * 300_000 + b".",
        "doubling": b"\x80\x02]q\0" + b"".join(b"](h%ch%ceq%c" % (n, n, n + 1) for n in range(40)) + b".",
        "cut": good[:-9],
    }
    for name, data in hostile.items():
        (folder / f"nccl_trace_rank_{len(name)}_{name}").write_bytes(data)


def _elf(**fields: int) -> bytes:
    values = {
        "e_type": 4,
        "e_machine": 190,
        "e_version": 1,
        "e_entry": 0,
        "e_phoff": 0,
        "e_shoff": 64,
        "e_flags": 0,
        "e_ehsize": 64,
        "e_phentsize": 56,
        "e_phnum": 0,
        "e_shentsize": 64,
        "e_shnum": 4,
        "e_shstrndx": 1,
        **fields,
    }
    ident = b"\x7fELF\x02\x01\x01\x33\x07" + bytes(7)
    return ident + struct.pack("<HHIQQQIHHHHHH", *values.values())


def _section(
    name: int = 0, kind: int = 1, flags: int = 0, offset: int = 0, size: int = 0, link: int = 0, entsize: int = 0
) -> bytes:
    return struct.pack("<IIQQQQIIQQ", name, kind, flags, 0, offset, size, link, 0, 1, entsize)


def n33(folder: Path) -> None:
    """ELF headers that lie about their tables."""
    tables = (
        _section()
        + _section(1, 3, 0, 64, 1 << 60)
        + _section(5, 1, 0, 1 << 61, 1 << 62)
        + _section(9, 1, 0x800, 64, 64)
    )
    hostile = {
        "no-size": _elf(e_shentsize=0) + tables,
        "many": _elf(e_shnum=65535) + tables,
        "extended": _elf(e_shnum=0) + _section(size=1 << 60) + tables,
        "names-of-names": _elf(e_shstrndx=65535) + tables,
        "outside": _elf(e_shoff=1 << 62) + tables,
        "bomb": _elf()
        + _section()
        + _section(1, 3, 0, 320, 16)
        + _section(1, 1, 0x800, 320, 24)
        + _section()
        + struct.pack("<IIQQ", 1, 0, 1 << 62, 1)
        + bytes(64),
        "stub": _elf()[:64],
        "magic": b"\x7fELF",
        "host-core": _elf(e_machine=62, e_phnum=65535) + bytes(200),
    }
    for name, data in hostile.items():
        (folder / f"core.{name}").write_bytes(data)
    (folder / "core.empty").write_bytes(b"")


def n34(folder: Path, sample: bytes) -> None:
    """A real GPU core dump, cut, thinned out, of an unknown architecture, of the other byte order."""
    (folder / "cut-10.nvcudmp").write_bytes(sample[: len(sample) // 10])
    (folder / "cut-half.nvcudmp").write_bytes(sample[: len(sample) // 2])
    middle = len(sample) // 3
    (folder / "sparse.nvcudmp").write_bytes(sample[:middle] + bytes(len(sample) - middle))
    swapped = bytearray(sample)
    swapped[5] = 2
    (folder / "endian.nvcudmp").write_bytes(swapped)
    (folder / "unknown-sm.nvcudmp").write_bytes(
        sample.replace(b"sm_90", b"sm_77").replace(b"sm_120", b"sm_777").replace(b"sm_80", b"sm_70")
    )


def n35(folder: Path, sample: bytes) -> None:
    """A real GPU core dump with random bytes for instructions and tables."""
    chance = random.Random(35)
    for number in range(4):
        data = bytearray(sample)
        for _ in range(4_000):
            data[chance.randrange(0x1000, len(data))] = chance.randrange(256)
        (folder / f"mutant-{number}.nvcudmp").write_bytes(data)
