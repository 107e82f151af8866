"""Stage 1: all engines see the same literals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.intake.patterns import PatternSet, Sought
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


@pytest.mark.parametrize(("size", "name"), [(100, "FindScanner"), (100_000, "AhoScanner")])
def test_a_short_source_builds_no_more_than_it_needs(size: int, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STUCKWARP_SCANNER", raising=False)
    pytest.importorskip("ahocorasick_rs")
    assert type(scanner_for(LITERALS, size)).__name__ == name


def test_the_automaton_of_a_kind_is_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STUCKWARP_SCANNER", raising=False)
    patterns = PatternSet([Sought("r/a", "out of memory", frozenset())])
    assert patterns.scanner("server_log", 100) is not patterns.scanner("server_log", 100)
    pytest.importorskip("ahocorasick_rs")
    assert patterns.scanner("server_log", 100_000) is patterns.scanner("server_log", 90_000)
    assert patterns.scanner("server_log", 100_000) is not patterns.scanner("kernel_log", 100_000)
