"""Stage 2: the rules' regular expressions, run only on lines that hold one of their literals."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from analyzer.intake.budget import Budget
from analyzer.intake.literals import ALL, Need, NoLiteral, may_match, needed, required_literals
from analyzer.intake.scan import FindScanner, Scanner, scanner_for
from analyzer.intake.user_text import without_user_text
from parsers.contract import Line
from parsers.span import SourceSpan
from parsers.stamp import Stamp

PROSE = "notes"
KEPT = 24
ENOUGH = 40
"""Candidate lines that lack what a pattern needs after which it is compiled: its own search then costs less."""


class Sought(NamedTuple):
    """One pattern of one clause. `kinds` = artifact kinds it is searched in; empty = all."""

    key: str
    pattern: str
    kinds: frozenset[str]


@dataclass(slots=True)
class Sighting:
    """One record in which a pattern was found."""

    span: SourceSpan
    text: str
    kind: str
    outer: Stamp | None = None
    groups: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Sightings:
    """Where a pattern was found: the first `KEPT` records, others whose groups differ, and how many there were."""

    count: int = 0
    kept: list[Sighting] = field(default_factory=list)
    last: Sighting | None = None
    sampled: bool = False


@lru_cache(maxsize=8192)
def compiled(pattern: str) -> Any:
    """The compiled pattern; compilation costs about a millisecond, so only candidates pay for it."""
    import regex

    return regex.compile(pattern)


class PatternSet:
    """All sought patterns with an index by literal. One per rulebook; sightings are kept by the caller."""

    def __init__(
        self,
        sought: Sequence[Sought],
        known: dict[str, list[str]] | None = None,
    ) -> None:
        """`known` = by pattern what was worked out beforehand: `needed(pattern)` as JSON, then its required
        literals."""
        self.sought = tuple(sought)
        self._known = known or {}
        self._ready: dict[int, Any] = {}
        self._need: dict[int, Need] = {}
        self._passed = [0] * len(self.sought)
        self._literals: dict[str, dict[bytes, tuple[int, ...]]] = {}
        self._scanners: dict[str, Scanner] = {}
        self.without_literal: list[str] = []
        by_literal: dict[bytes, list[int]] = {}
        for index, one in enumerate(self.sought):
            try:
                beforehand = self._known.get(one.pattern)
                literals = (
                    [literal.encode() for literal in beforehand[1:]] if beforehand else required_literals(one.pattern)
                )
                for literal in literals:
                    by_literal.setdefault(literal, []).append(index)
            except NoLiteral:
                self.without_literal.append(one.key)
        self._by_literal = {literal: tuple(indexes) for literal, indexes in by_literal.items()}

    def pattern(self, index: int, text: str) -> Any | None:
        """The compiled pattern; None where it was not used yet and `text` lacks a literal that every match holds (two
        thirds of the candidates of a short log, and compiling is most of what they would cost)."""
        ready = self._ready.get(index)
        if ready is None:
            need = self._need.get(index)
            if need is None:
                need = self._need[index] = self._need_of(self.sought[index].pattern)
            if not may_match(need, text.lower()) and self._passed[index] < ENOUGH:
                self._passed[index] += 1
                return None
            ready = self._ready[index] = compiled(self.sought[index].pattern)
        return ready

    def _need_of(self, pattern: str) -> Need:
        if pattern in self._known:
            need: Need = json.loads(self._known[pattern][0])
            return need
        try:
            return needed(pattern)
        except NoLiteral:
            return [ALL]

    def literals_for(self, kind: str) -> dict[bytes, tuple[int, ...]]:
        """literal -> patterns that are searched in artifacts of `kind`."""
        if kind in self._literals:
            return self._literals[kind]
        chosen: dict[bytes, tuple[int, ...]] = self._literals.setdefault(kind, {})
        for literal, indexes in self._by_literal.items():
            here = tuple(
                i for i in indexes if kind == PROSE or not self.sought[i].kinds or kind in self.sought[i].kinds
            )
            if here:
                chosen[literal] = here
        return chosen

    def scanner(self, kind: str, size: int) -> Scanner:
        """Stage 1 for a short source of `size` bytes; hits bear the place of their literal in `literals_for(kind)`."""
        if kind not in self._scanners:
            made = scanner_for(list(self.literals_for(kind)), size)
            if isinstance(made, FindScanner):
                return made  # for a source as small as this one only
            self._scanners[kind] = made
        return self._scanners[kind]


class Sightseer:
    """Runs candidate patterns on lines and keeps what it sees, within the budget."""

    def __init__(self, patterns: PatternSet, budget: Budget) -> None:
        self.patterns = patterns
        self.seen: dict[str, Sightings] = {}
        self.slow: set[str] = set()
        self._budget = budget

    def look(self, source: str, kind: str, line: Line, candidates: Iterable[int]) -> bool:
        """Search the candidate patterns in `line`; True if any was found."""
        found = self.found(line.text, candidates)
        if found:
            self.keep(source, kind, line, found)
        return bool(found)

    def enough(self, index: int) -> bool:
        """Whether a pattern was seen so often that another sighting of it would only be counted."""
        seen = self.seen.get(self.patterns.sought[index].key)
        return seen is not None and seen.count >= self._budget.hits_per_clause

    def found(self, text: str, candidates: Iterable[int]) -> list[tuple[int, Any]]:
        """The patterns of `candidates` that `text` matches, each with its match. What a user of the server wrote (a
        prompt, a body, a request's address) proves nothing, whatever it says, and is not searched."""
        hits: list[tuple[int, Any]] = []
        searched: str | None = None
        for index in set(candidates):
            sought = self.patterns.sought[index]
            if sought.key in self.slow:
                continue
            pattern = self.patterns.pattern(index, text)
            if pattern is None:
                continue
            try:
                match = pattern.search(text, timeout=self._budget.regex_seconds)
                if match is not None and searched is None:
                    searched = without_user_text(text)  # only now: it costs more than the search
                if match is not None and searched is not text:
                    match = pattern.search(searched, timeout=self._budget.regex_seconds)
            except TimeoutError:
                self.slow.add(sought.key)
                continue
            if match is not None:
                hits.append((index, match))
        return hits

    def keep(self, source: str, kind: str, line: Line, found: list[tuple[int, Any]]) -> None:
        """Remember what was found in `line`: the first `KEPT` records of each pattern and any with new groups."""
        for index, match in found:
            key = self.patterns.sought[index].key
            seen = self.seen.get(key)
            if seen is None:
                seen = self.seen[key] = Sightings()
            seen.count += 1
            groups = {name: value for name, value in match.groupdict().items() if value is not None}
            text = line.text
            if "\r" in text:  # progress bars: quote the state that matched
                begin = text.rfind("\r", 0, match.start() + 1) + 1
                end = text.find("\r", match.end())
                text = text[begin : end if end >= 0 else len(text)]
            seen.last = Sighting(line.span(source), text, kind, line.outer, groups)
            if len(seen.kept) < KEPT or (
                groups and len(seen.kept) < 4 * KEPT and not any(groups == one.groups for one in seen.kept)
            ):
                seen.kept.append(seen.last)
            else:
                seen.sampled = True
