"""Stage 1: all engines see the same literals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.intake.scan import FindScanner, engines, scanner_for

LITERALS = [b"xid (", b"out of memory", b"nvrm", b"rm: x", b"aaaa"]


@pytest.mark.parametrize("engine", engines(), ids=lambda e: e.__name__)
def test_overlaps_and_case(engine: type) -> None:
    assert engine(LITERALS).scan(b"NVRM: Xid (PCI aaaaa") == [(4, 2), (7, 3), (11, 0), (19, 4), (20, 4)]


@given(st.lists(st.sampled_from([*LITERALS, b"AAAA", b"XID", b" (", b"\n", b"zz", b"\xff\x00"]), max_size=30))
def test_every_engine_gives_the_same_hits(pieces: list[bytes]) -> None:
    block = b"".join(pieces)
    expected = FindScanner(LITERALS).scan(block)
    for engine in engines():
        assert engine(LITERALS).scan(block) == expected


def test_override(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUCKWARP_SCANNER", "find")
    assert isinstance(scanner_for(LITERALS, None), FindScanner)
