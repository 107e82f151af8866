"""Which literals stage 1 looks for in one long text, and how that adapts to what the text is full of.

The literals of a pattern are chosen for logs in general (`intake/literals.py`); what this one log is full of shows
only while it is read. A literal that hits too often is given up for another literal that the same pattern needs as
well, or, when all its patterns have been seen as often as is kept, for none. Both are decided from the content of
whole blocks, so every engine decides the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from analyzer.intake.literals import NoLiteral, required_literals
from analyzer.intake.patterns import Sightseer
from analyzer.intake.scan import Hit, Scanner, scanner_for

NOISY = 48
"""Hits of one literal in one block (1 MiB, some 10,000 lines) from which on it is worth looking for a better one."""
SETTLED, THEN_EVERY = 64, 32
"""The first blocks are all weighed, later ones now and then: an old log may turn noisy."""
REBUILDS = 24


class Watch:
    """The scanner for one source and what its hits mean.

    `wanted[i]` = patterns to be tried where literal `i` stands; `marks[i]` = the spellings in which it is a mark of the
    parser (matching is case-insensitive, marks are not); `lengths[i]` = its bytes; `foreign` = the literals after which
    another parser's lines may follow.
    """

    def __init__(
        self, sightseer: Sightseer, kind: str, marks: Iterable[bytes], foreign: Iterable[bytes] = ()
    ) -> None:
        self._sightseer = sightseer
        self._patterns = {literal: list(indexes) for literal, indexes in sightseer.patterns.literals_for(kind).items()}
        self._marks: dict[bytes, set[bytes]] = {}
        for mark in marks:
            self._marks.setdefault(mark.lower(), set()).add(mark)
        self._foreign = frozenset(literal.lower() for literal in foreign)
        self._noisy: set[bytes] = set()
        self._kept: set[bytes] = set()
        self._blocks = self._rebuilt = 0
        self.given_up: set[int] = set()
        """Patterns that are no longer looked for, as they were seen often enough."""
        self._build()

    def _build(self) -> None:
        self.names = list(dict.fromkeys([*self._patterns, *self._marks, *sorted(self._foreign)]))
        self.scanner: Scanner = scanner_for(self.names, None)
        self.wanted = [tuple(self._patterns.get(name, ())) for name in self.names]
        self.marks = [frozenset(self._marks.get(name, ())) for name in self.names]
        self.foreign = frozenset(index for index, name in enumerate(self.names) if name in self._foreign)
        self.lengths = [len(name) for name in self.names]

    def weigh(self, hits: list[Hit], data: bytes) -> None:
        """Take note of the hits in `data`, one block, and change the literals where that pays."""
        self._blocks += 1
        if self._rebuilt >= REBUILDS or (self._blocks > SETTLED and self._blocks % THEN_EVERY) or len(hits) < NOISY:
            return
        counts = Counter([literal for _, literal in hits])
        noisy = [self.names[index] for index, count in counts.items() if count >= NOISY]
        new = [
            name
            for name in noisy
            if name in self._patterns
            and (name not in self._kept or all(map(self._sightseer.enough, self._patterns[name])))
        ]
        self._noisy.update(noisy)
        changed = False
        low = data.lower() if new else b""
        for name in sorted(new):
            changed |= self._relieve(name, low)
        if changed:
            self._rebuilt += 1
            self._build()

    def _relieve(self, name: bytes, low: bytes) -> bool:
        """Move the patterns of a noisy literal to literals that are rare in `low`; whether any could be moved."""
        moved = False
        most = low.count(name) // 4
        for index in list(self._patterns.get(name, ())):
            if self._sightseer.enough(index):
                self.given_up.add(index)
                self._drop(index)
                moved = True
                continue
            try:
                others = required_literals(self._sightseer.patterns.sought[index].pattern, frozenset(self._noisy))
            except NoLiteral:
                continue
            if sum(low.count(other) for other in others) > most:
                continue
            self._drop(index)
            for other in others:
                self._patterns.setdefault(other, []).append(index)
            moved = True
        if name in self._patterns:
            self._kept.add(name)
        return moved

    def _drop(self, index: int) -> None:
        for literal in [literal for literal, indexes in self._patterns.items() if index in indexes]:
            self._patterns[literal].remove(index)
            if not self._patterns[literal]:
                del self._patterns[literal]
