"""Blocks to lines: decoded, transports taken off, records that a transport split joined again, clock pairs kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from analyzer.intake.budget import Budget
from analyzer.intake.text import Block, clip, decode, without_ansi
from analyzer.intake.transport import Transport, unwrap
from parsers.contract import Line
from parsers.stamp import ClockKind, Stamp

PAIRS = 32


@dataclass(slots=True)
class Pairs:
    """Readings of two clocks in one record (line, payload, transport): the first, the last, and at most 30 between.

    Every `stride`-th record is looked at; when the list is full, every second pair is dropped and the stride doubled.
    """

    kept: list[tuple[int, Stamp, Stamp]] = field(default_factory=list)
    _stride: int = 1
    _seen: int = 0
    _last: Line | None = None

    def take(self, line: Line) -> None:
        """Look at one record."""
        if line.outer is None or line.outer.clock is not ClockKind.UTC:
            return
        self._seen += 1
        if self._seen % self._stride:
            self._last = line
            return
        self._keep(line)

    def _keep(self, line: Line) -> None:
        from analyzer.timeline.readings import reading_of

        self._last = None
        # Only a reading at the front is the record's own; one further in may be part of what it says.
        inner = reading_of(line.text[:120])
        if inner is None or line.outer is None or inner.clock is ClockKind.UTC:
            return
        self.kept.append((line.number, inner, line.outer))
        if len(self.kept) > PAIRS:
            self.kept = self.kept[:1] + self.kept[2::2]
            self._stride *= 2

    def finish(self) -> list[tuple[int, Stamp, Stamp]]:
        """The pairs, with that of the last record."""
        if self._last is not None:
            self._keep(self._last)
        return self.kept


def physical(block: Block, budget: Budget, kept: int | None = None) -> Iterator[Line]:
    """Every line of a block as it stands: decoded, colours and line end taken off. `kept` = characters of a line that
    are kept, where that is not the budget's limit."""
    kept = budget.line_kept if kept is None else kept
    offset, number = block.offset, block.first_line
    pieces = block.data.split(b"\n")
    if pieces and not pieces[-1]:
        pieces.pop()
    for raw in pieces:
        end = offset + len(raw)
        yield Line(number, offset, end, clip(decode(without_ansi(raw)), kept).removesuffix("\r"))
        offset, number = end + 1, number + 1


class Unwrapping:
    """Lines without the transports of `stack`. State is kept between blocks: a record may go on in the next."""

    def __init__(self, stack: tuple[Transport, ...], budget: Budget) -> None:
        self._stack, self._kept = stack, budget.line_kept
        self._folds = [one.fold() for one in stack if one.fold is not None]
        self._stack = tuple(one for one in stack if one.fold is None)
        self._held: dict[str, Line] = {}

    def lines(self, lines: Iterable[Line]) -> Iterator[Line]:
        """The payload lines. A payload of several lines gives several lines with one number."""
        for fold in self._folds:
            lines = fold.lines(lines)
        if not self._stack:
            yield from lines
            return
        for line in lines:
            inner = unwrap(self._stack, line.text)
            stream = inner.stream
            held = self._held.pop(stream, None)
            if held is None:
                line.text = inner.text
                line.outer, line.host = inner.stamp or line.outer, inner.host or line.host
            else:
                held.text, held.end = clip(held.text + inner.text, self._kept), line.end
                line = held
            if inner.partial and len(line.text) < self._kept:
                self._held[stream] = line
                continue
            yield from split(line)

    def finish(self) -> Iterator[Line]:
        """What was begun and never ended."""
        for fold in self._folds:
            yield from fold.finish()
        for line in self._held.values():
            yield from split(line)
        self._held.clear()


def split(line: Line) -> Iterator[Line]:
    """A payload of several lines as several lines with the place of the one that carried them."""
    if "\n" not in line.text:
        yield line
        return
    for text in line.text.split("\n"):
        yield Line(line.number, line.start, line.end, text.removesuffix("\r"), line.outer, line.host)


def lines_of(block: Block, stack: tuple[Transport, ...], budget: Budget) -> Iterator[Line]:
    """Every line of one block, transports taken off, partial records joined."""
    if not stack:
        yield from physical(block, budget)
        return
    unwrapping = Unwrapping(stack, budget)
    yield from unwrapping.lines(physical(block, budget))
    yield from unwrapping.finish()
