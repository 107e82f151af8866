"""Cut, mutated and hostile dumps end in a note: never a traceback, a hang or a flood.

The counts are small here; `STUCKWARP_DAMAGE=full` runs 2,000 cuts and 10,000 mutations.
"""

from __future__ import annotations

import io
import lzma
import os
import random
import resource
import struct
import time
from pathlib import Path

import pytest

from parsers.contract import Trouble
from parsers.cuda_core import PARSER

FIXTURES = Path(__file__).parents[3] / "fixtures" / "cuda_core"
FULL = os.environ.get("STUCKWARP_DAMAGE") == "full"
CUTS, MUTATIONS = (2000, 10000) if FULL else (40, 120)
BASES = ("trap", "hang-mbarrier", "stack-overflow", "two-devices", "hang-grid-sync")


def load(name: str) -> bytes:
    return lzma.decompress((FIXTURES / f"{name}.nvcudmp.xz").read_bytes())


def survive(data: bytes) -> dict[str, object]:
    """Read it both ways; what it took and what came out must be within reason."""
    started = time.monotonic()
    view = PARSER.inspect_binary(io.BytesIO(data), "core")
    events = list(PARSER.read_binary(io.BytesIO(data), "core"))
    assert time.monotonic() - started < 20
    assert view["complete"] in (True, False)
    if not view["complete"]:
        assert view["notes"] and any(isinstance(event, Trouble) for event in events)
    return view


def boundaries(data: bytes) -> list[int]:
    """Starts and ends of the header, of every section and of every section header."""
    table = struct.unpack_from("<Q", data, 40)[0]
    count = struct.unpack_from("<H", data, 60)[0]
    found = {0, 1, 16, 20, 64, table, len(data)}
    for number in range(count):
        offset, size = struct.unpack_from("<QQ", data, table + number * 64 + 24)
        found |= {offset, offset + size, table + number * 64}
    return sorted(at for at in found if at <= len(data))


def test_every_structure_boundary() -> None:
    names = BASES if FULL else ("trap",)
    for name in names:
        data = load(name)
        cuts = sorted({at + step for at in boundaries(data) for step in (-1, 0, 1)})
        for at in cuts if FULL else cuts[::3] + cuts[-9:]:
            if 0 <= at < len(data):
                view = survive(data[:at])
                assert view["complete"] is False


def test_random_cuts() -> None:
    chance = random.Random(1)
    data = {name: load(name) for name in BASES}
    for _ in range(CUTS):
        whole = data[chance.choice(BASES)]
        assert survive(whole[: chance.randrange(len(whole))])["complete"] is False


def mutate(data: bytes, chance: random.Random) -> bytes:
    """A few bytes or words changed, most of them where structure is: headers, tables, images' headers."""
    out = bytearray(data)
    table = struct.unpack_from("<Q", data, 40)[0]
    count = struct.unpack_from("<H", data, 60)[0]
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        where = chance.random()
        if where < 0.2:
            at = chance.randrange(64)
        elif where < 0.6:
            field = chance.choice((0, 4, 8, 24, 32, 40, 44, 56)) + chance.randrange(4)
            at = table + chance.randrange(count) * 64 + field
        elif where < 0.9:
            row = table + chance.randrange(count) * 64
            offset, size = struct.unpack_from("<QQ", data, row + 24)
            at = min(offset + chance.randrange(max(1, min(size, 256))), len(out) - 1)
        else:
            at = chance.randrange(len(out))
        if chance.random() < 0.5:
            out[at] = chance.randrange(256)
        else:
            word = chance.choice((0, 1, 0xFF, 0x7FFFFFFF, 0xFFFFFFFF, 0x80000007, chance.randrange(1 << 32)))
            out[at : at + 4] = struct.pack("<I", word)[: max(0, min(4, len(out) - at))]
    return bytes(out)


def test_mutations() -> None:
    chance = random.Random(2)
    data = {name: load(name) for name in BASES}
    for _ in range(MUTATIONS):
        survive(mutate(data[chance.choice(BASES)], chance))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 512 * 1024


@pytest.mark.parametrize("head", [b"", b"\x7fELF", b"\x7fELF\x02\x01\x01\x33", b"PK\x03\x04" * 20, bytes(4096)])
def test_no_dump_at_all(head: bytes) -> None:
    view = PARSER.inspect_binary(io.BytesIO(head), "x")
    assert view["complete"] is False and view["notes"]
    assert [type(event) for event in PARSER.read_binary(io.BytesIO(head), "x")] == [Trouble]
