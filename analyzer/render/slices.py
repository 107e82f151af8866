"""Phases as slices: from the record that begins one to the record that ends it, for the trace and the swim lanes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from analyzer.report import TimelineEvent


@dataclass(slots=True, frozen=True)
class Slice:
    """One phase of one actor; `start` and `stop` in the seconds of the input, `first` the record that begins it."""

    actor: str
    start: float
    stop: float
    name: str
    first: TimelineEvent


def phase_slices(placed: Iterable[tuple[float, TimelineEvent]]) -> list[Slice]:
    """The slices of events in order of time, given with the second at which each is shown.

    A phase that never ended goes on to the last event and says so. Slices of one actor nest, as the Trace Event Format
    wants it of complete events: an inner one ends with its outer one at the latest.
    """
    opened: dict[tuple[str, str], tuple[float, TimelineEvent]] = {}
    found: dict[str, list[Slice]] = {}
    last = 0.0
    for at, event in placed:
        last = max(last, at)
        key = (event.actor, event.phase or "")
        if event.phase and event.edge == "begin":
            opened.setdefault(key, (at, event))
        elif event.phase and event.edge == "end" and key in opened:
            start, first = opened.pop(key)
            found.setdefault(event.actor, []).append(Slice(event.actor, start, at, event.phase, first))
    for (actor, phase), (start, first) in opened.items():
        found.setdefault(actor, []).append(Slice(actor, start, last, f"{phase} (no end seen)", first))
    return [nested for slices in found.values() for nested in _nested(slices)]


def _nested(slices: list[Slice]) -> Iterable[Slice]:
    open_until: list[float] = []
    for one in sorted(slices, key=lambda item: (item.start, -item.stop)):
        while open_until and open_until[-1] <= one.start:
            open_until.pop()
        stop = min([one.stop, *open_until])
        open_until.append(stop)
        yield Slice(one.actor, one.start, stop, one.name, one.first)
