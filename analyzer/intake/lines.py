"""Blocks to lines: decoded, transports taken off, records that a transport split joined again, clock pairs kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from analyzer.intake.budget import Budget
from analyzer.intake.text import Block, clip, decode, without_ansi
from analyzer.intake.transport import Layer, Transport
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
        from analyzer.intake.readings import reading_of

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
    """Lines without the transports of `stack`, outermost first. State is kept between blocks."""

    def __init__(self, stack: tuple[Transport, ...], budget: Budget) -> None:
        self._layers = [Layer(one, budget.line_kept) for one in stack]

    def lines(self, lines: Iterable[Line]) -> Iterator[Line]:
        """The payload lines. A payload of several lines gives several lines with one number."""
        return self._through(self._layers, iter(lines))

    def finish(self) -> Iterator[Line]:
        """What was begun and never ended."""
        for depth, layer in enumerate(self._layers, 1):
            yield from self._through(self._layers[depth:], layer.finish())

    @staticmethod
    def _through(layers: list[Layer], lines: Iterator[Line]) -> Iterator[Line]:
        for layer in layers:
            lines = layer.lines(lines)
        return lines


def lines_of(block: Block, stack: tuple[Transport, ...], budget: Budget) -> Iterator[Line]:
    """Every line of one block, transports taken off, partial records joined."""
    if not stack:
        yield from physical(block, budget)
        return
    unwrapping = Unwrapping(stack, budget)
    yield from unwrapping.lines(physical(block, budget))
    yield from unwrapping.finish()
