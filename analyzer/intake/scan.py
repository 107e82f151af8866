"""Stage 1: which literals stand where in a block of bytes. Three engines, same answers (docs/architecture.md).

All matching is case-insensitive on ASCII letters, so that one set of literals serves patterns with and without (?i).
hyperscan's wheel needs AVX2 and dies with SIGILL without it: the CPU flag is looked up before the import.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

Hit = tuple[int, int]
"""(byte offset just past the literal, index of the literal)"""


class Scanner(Protocol):
    """Finds every occurrence of its literals."""

    def scan(self, block: bytes) -> list[Hit]:
        """All hits in `block`, ordered by offset."""
        ...


class FindScanner:
    """`bytes.find` per literal: nothing to build, so the quickest for a very short text."""

    def __init__(self, literals: Sequence[bytes]) -> None:
        self._literals = [literal.lower() for literal in literals]

    def scan(self, block: bytes) -> list[Hit]:
        """All hits in `block`."""
        low = block.lower()
        hits: list[Hit] = []
        for index, literal in enumerate(self._literals):
            at = low.find(literal)
            while at >= 0:
                hits.append((at + len(literal), index))
                at = low.find(literal, at + 1)
        hits.sort()
        return hits


class AhoScanner:
    """ahocorasick-rs on lower-cased blocks."""

    def __init__(self, literals: Sequence[bytes]) -> None:
        from ahocorasick_rs import BytesAhoCorasick, Implementation

        self._automaton: Any = BytesAhoCorasick(
            [literal.lower() for literal in literals], implementation=Implementation.ContiguousNFA
        )

    def scan(self, block: bytes) -> list[Hit]:
        """All hits in `block`."""
        found = self._automaton.find_matches_as_indexes(block.lower(), overlapping=True)
        hits = [(end, index) for index, _start, end in found]
        hits.sort()
        return hits


class HyperScanner:
    """Intel hyperscan's pure-literal matcher in block mode."""

    def __init__(self, literals: Sequence[bytes]) -> None:
        import hyperscan

        self._database: Any = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        self._database.compile(
            expressions=list(literals),
            ids=list(range(len(literals))),
            flags=[hyperscan.HS_FLAG_CASELESS] * len(literals),
            literal=True,
        )

    def scan(self, block: bytes) -> list[Hit]:
        """All hits in `block`."""
        hits: list[Hit] = []
        append = hits.append

        def on_match(index: int, _start: int, end: int, _flags: int, _context: object) -> None:
            append((end, index))

        self._database.scan(block, match_event_handler=on_match)
        hits.sort()
        return hits


@cache
def _has_avx2() -> bool:
    try:
        return " avx2" in Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return False


def engines() -> list[type]:
    """The engines that can run here, the fastest on long input first."""
    usable: list[type] = []
    if _has_avx2():
        try:
            import hyperscan  # noqa: F401

            usable.append(HyperScanner)
        except ImportError:
            pass
    try:
        import ahocorasick_rs  # noqa: F401

        usable.append(AhoScanner)
    except ImportError:
        pass
    return [*usable, FindScanner]


SMALL, LONG = 6 * 1024, 512 * 1024
"""Bytes up to which searching 2,000 literals one by one is cheaper than building an automaton (some 8 ms), and from
which hyperscan's (200 ms) pays."""
_NAMED = {"hyperscan": "HyperScanner", "ahocorasick": "AhoScanner", "find": "FindScanner"}


def scanner_for(literals: Sequence[bytes], size: int | None) -> Scanner:
    """The engine that suits a source of `size` bytes (None = unknown, taken as long). `STUCKWARP_SCANNER` =
    `hyperscan`, `ahocorasick` or `find` overrides it."""
    wanted = _NAMED.get(os.environ.get("STUCKWARP_SCANNER", ""))
    if wanted is None and size is not None and size <= LONG:
        if size <= SMALL:
            return FindScanner(literals)
        try:
            return AhoScanner(literals)
        except ImportError:
            return FindScanner(literals)
    for engine in engines():
        if wanted in (None, engine.__name__):
            return engine(literals)  # type: ignore[no-any-return]
    return FindScanner(literals)
