"""The middle of a long text: only the lines that hold a literal of a rule or a mark of the parser become `Line`s.

Everything happens on the bytes of a block (about 1 MiB); there is no loop over lines, only over hits of stage 1.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Protocol

from analyzer.intake.budget import Budget
from analyzer.intake.bursts import KNOWN, Bursts
from analyzer.intake.foreign import Foreign
from analyzer.intake.patterns import Sightseer
from analyzer.intake.text import Block, clip, decode, without_ansi
from analyzer.intake.watch import Watch
from parsers.contract import Line, TextParser, Trouble


class Steady(Protocol):
    """What a parser may offer as its attribute `steady`: the lines of which a healthy server writes thousands.

    A line that holds `mark` tells only what `state` reads in it. The parser needs those where the state of a `who`
    changes, the one before, the first in each `stretch` of the source, and the last.
    """

    mark: str

    def stretch(self, offset: int) -> int:
        """The number of the stretch that a byte offset lies in."""
        ...

    def state(self, text: str) -> tuple[str, Hashable] | None:
        """(who, state) of one line; None = the line tells nothing."""
        ...


@dataclass(slots=True)
class _Row:
    """A line that holds a hit. `patterns` = to be tried on it, `passed` = its parser gets it."""

    start: int
    stop: int
    number: int
    patterns: tuple[int, ...]
    passed: bool


class Skim:
    """Reads the middle of one source."""

    def __init__(
        self,
        name: str,
        kind: str,
        parser: TextParser | None,
        sightseer: Sightseer,
        budget: Budget,
        foreign: Foreign,
        by_line: Callable[[Block], Iterator[Line]],
    ) -> None:
        self._name, self._kind, self._sightseer, self._budget = name, kind, sightseer, budget
        self.watch = Watch(sightseer, kind, parser.marks if parser is not None else (), foreign.literals)
        self._stretches, self._by_line = foreign, by_line
        self._bursts = Bursts()
        self._steady: Steady | None = getattr(parser, "steady", None)
        self._mark = self._steady.mark.encode() if self._steady is not None else b""
        self._states: dict[str, tuple[Hashable, int]] = {}

    def lines(self, block: Block) -> Iterator[Line]:
        """The lines of `block` that the parser needs; the rules' patterns are looked for on the way. A block that may
        hold another parser's lines is read line by line."""
        data = without_ansi(block.data)
        hits = self.watch.scanner.scan(data)
        foreign = self.watch.foreign
        if self._stretches.open or not foreign.isdisjoint([literal for _, literal in hits]):
            yield from self._by_line(block)
            self.watch.weigh(hits, data)
            return
        if not hits:
            self.watch.weigh(hits, data)
            return
        rows = self._rows(data, block, hits)
        self._weed(rows, data)
        starts = None if data is block.data else _starts(block.data)
        kept = self._budget.line_kept
        for row in rows:
            if not row.passed and not row.patterns:
                continue
            text = clip(decode(data[row.start : row.stop]), kept).removesuffix("\r")
            found = self._sightseer.found(text, row.patterns) if row.patterns else []
            if not found and not row.passed:
                continue
            if starts is None:
                begin, end = row.start, row.stop
            else:
                begin, end = starts[row.number - block.first_line], starts[row.number - block.first_line + 1] - 1
            line = Line(row.number, block.offset + begin, block.offset + end, text)
            if found:
                self._sightseer.keep(self._name, self._kind, line, found)
            if row.passed:
                yield line
        self.watch.weigh(hits, data)

    def _rows(self, data: bytes, block: Block, hits: list[tuple[int, int]]) -> list[_Row]:
        rows: list[_Row] = []
        wanted, marks, lengths = self.watch.wanted, self.watch.marks, self.watch.lengths
        steady, mark = self._steady, self._mark
        last: dict[str, _Row] = {}
        number, counted, position, count = block.first_line, 0, 0, len(hits)
        while position < count:
            end, literal = hits[position]
            start = data.rfind(b"\n", 0, end - 1) + 1
            stop = data.find(b"\n", end - 1)
            if stop < 0:
                stop = len(data)
            number += data.count(b"\n", counted, start)
            counted = start
            patterns: tuple[int, ...] = ()
            passed = told = False
            while True:
                patterns += wanted[literal]
                if marks[literal]:
                    spelling = data[end - lengths[literal] : end]
                    if spelling in marks[literal]:
                        passed = True
                        told = told or spelling == mark
                position += 1
                if position == count:
                    break
                end, literal = hits[position]
                if end > stop:
                    break
            if told and steady is not None:
                row = _Row(start, stop, number, patterns, False)
                self._note(steady, row, decode(data[start:stop]), block.offset + start, last)
                rows.append(row)
            elif passed or patterns:
                rows.append(_Row(start, stop, number, patterns, passed))
        for row in last.values():
            row.passed = True
        return rows

    def _note(self, steady: Steady, row: _Row, text: str, offset: int, last: dict[str, _Row]) -> None:
        read = steady.state(text)
        if read is None:
            return
        who, state = read
        now = (state, steady.stretch(offset))
        if self._states.get(who) != now:
            if len(self._states) > 8192 and who not in self._states:
                row.passed = True  # more engines than any server has: no economy
                return
            self._states[who] = now
            row.passed = True
            if who in last:
                last[who].passed = True
        last[who] = row

    def _weed(self, rows: list[_Row], data: bytes) -> None:
        passed = [row for row in rows if row.passed]
        for position in self._bursts.weed([(row.number, data[row.start : row.stop]) for row in passed]):
            passed[position].passed = False
            passed[position].patterns = ()

    def troubles(self) -> list[Trouble]:
        """What was counted but not looked at one by one."""
        told: list[Trouble] = []
        if self._bursts.left_out:
            told.append(
                Trouble(
                    self._name,
                    "skipped",
                    f"{self._bursts.left_out} lines repeat, but for time, process id and "
                    f"client address, what stands there more than {KNOWN} times: the first {KNOWN} and the "
                    "last of each MiB were analysed",
                )
            )
        if self.watch.given_up:
            keys = sorted(self._sightseer.patterns.sought[index].key for index in self.watch.given_up)
            told.append(
                Trouble(self._name, "skipped", "seen often enough and not counted further: " + ", ".join(keys[:8]))
            )
        return told


def _starts(raw: bytes) -> list[int]:
    """Byte offset of each line of `raw`, and one past its end."""
    starts, at = [0], 0
    for line in raw.split(b"\n"):
        at += len(line) + 1
        starts.append(at)
    return starts
