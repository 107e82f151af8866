"""Stage 2: the rules' regular expressions, run only on lines that hold one of their literals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from analyzer.intake.budget import Budget
from analyzer.intake.user_text import without_user_text
from analyzer.reasoning.literals import NoLiteral, required_literals
from parsers.contract import Line
from parsers.span import SourceSpan
from parsers.stamp import Stamp

PROSE = "notes"
KEPT = 24


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

    def __init__(self, sought: Sequence[Sought], literals: dict[str, tuple[bytes, ...]] | None = None) -> None:
        """`literals` = required literals that were worked out beforehand, by pattern."""
        known = literals or {}
        self.sought = tuple(sought)
        self.without_literal: list[str] = []
        by_literal: dict[bytes, list[int]] = {}
        for index, one in enumerate(self.sought):
            try:
                for literal in known.get(one.pattern) or required_literals(one.pattern):
                    by_literal.setdefault(literal, []).append(index)
            except NoLiteral:
                self.without_literal.append(one.key)
        self._by_literal = {literal: tuple(indexes) for literal, indexes in by_literal.items()}

    def literals_for(self, kind: str) -> dict[bytes, tuple[int, ...]]:
        """literal -> patterns that are searched in artifacts of `kind`."""
        chosen: dict[bytes, tuple[int, ...]] = {}
        for literal, indexes in self._by_literal.items():
            here = tuple(
                i for i in indexes if kind == PROSE or not self.sought[i].kinds or kind in self.sought[i].kinds
            )
            if here:
                chosen[literal] = here
        return chosen


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
            try:
                match = compiled(sought.pattern).search(text, timeout=self._budget.regex_seconds)
                if match is not None and searched is None:
                    searched = without_user_text(text)  # only now: it costs more than the search
                if match is not None and searched is not text:
                    match = compiled(sought.pattern).search(searched, timeout=self._budget.regex_seconds)
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
