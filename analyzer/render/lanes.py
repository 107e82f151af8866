"""The swim lanes of the HTML page as plain data: what its script draws, without a sentence of mark-up."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from analyzer.render import phrases
from analyzer.render.curves import readings
from analyzer.render.sanitise import shorten, visible
from analyzer.render.slices import phase_slices
from analyzer.report import Moment, Report, TimelineEvent

LANES = 40
"""Lanes drawn; the rest share the last one."""
CURVES = 16
"""Curves drawn, one a quantity and actor; the numbers of the rest are in their records."""
_FIRST = ("generation tokens/s", "tokens generated", "requests running", "utilisation %", "power W")
"""The curves that tell most, in this order; any other that is 0 throughout is not drawn."""
_TEXT = 800


def lanes_of(report: Report) -> dict[str, Any]:
    """`lanes`: names; `events`: rows of [lane, from, to, at, kind number, when, who, where, text, row of the table],
    times in seconds from `zero` (Unix seconds); `at` is null for an event known by its interval only.

    `phases` [lane, from, to, name]; `clock` says which one the axis shows where it is not `zone` minutes east of UTC;
    `kinds`, `curves` {name: [[second, value]]}, `marks` [[second, name, from, to]], `unplaced` the number of events
    that the axis cannot show.
    """
    placed: list[tuple[float, float, float | None, TimelineEvent]] = []
    for event in report.timeline.events:
        at = phrases.unix_seconds(event.time)
        first, last = phrases.unix_seconds(event.earliest), phrases.unix_seconds(event.latest)
        known = [value for value in (at, first, last) if value is not None]
        if known:
            placed.append((min(known), max(known), at, event))
    clock = "" if placed else _place_as_written(report, placed)
    placed.sort(key=lambda item: (item[0], item[1]))
    zero = placed[0][0] if placed else 0.0
    rows = {id(event): number for number, event in enumerate(report.timeline.events)}
    lanes: dict[str, int] = {}
    kinds: dict[str, int] = {}
    curves: dict[tuple[str, str], list[list[float]]] = {}
    events: list[list[Any]] = []
    for first_at, last_at, at, event in placed:
        name = visible(shorten(_lane(event), 60))
        if name not in lanes and len(lanes) >= LANES - 1:
            name = "other"
        lane = lanes.setdefault(name, len(lanes))
        kind = kinds.setdefault(visible(shorten(event.kind, 60)), len(kinds))
        span = [round(first_at - zero, 3), round(last_at - zero, 3), None if at is None else round(at - zero, 3)]
        where = visible(phrases.place(event.source)) if event.source else ""
        text = event.text or (event.source.text if event.source else "")
        when = visible(phrases.moment(event))
        shown = visible(shorten(text, _TEXT))
        events.append([lane, *span, kind, when, visible(event.actor), where, shown, rows[id(event)]])
        for quantity, value in readings(event).items():
            curves.setdefault((quantity, visible(shorten(event.actor, 40))), []).append([span[0] or 0.0, value])
    marks = [
        [round(found - zero, 3), name, *(round(edge - zero, 3) for edge in _edges(moment, found))]
        for name, moment in (("last progress", report.timeline.last_progress), ("onset", report.timeline.onset))
        if (found := _at(moment, clock)) is not None
    ]
    slices = [
        [lanes[name], round(one.start - zero, 3), round(one.stop - zero, 3), visible(shorten(one.name, 60))]
        for one in phase_slices([(first_at, event) for first_at, _, _, event in placed])
        if (name := visible(shorten(_lane(one.first), 60))) in lanes
    ]
    return {
        "zero": zero,
        "zone": _zone(report),
        "clock": "as written" if clock else "",
        "lanes": list(lanes),
        "kinds": list(kinds),
        "events": events,
        "phases": slices,
        "curves": {
            f"{quantity} · {actor}" if actor else quantity: points
            for (quantity, actor), points in sorted(curves.items(), key=_urgency)[:CURVES]
            if any(value for _, value in points) or quantity in _FIRST
        },
        "marks": marks if placed else [],
        "unplaced": len(report.timeline.events) - len(placed),
    }


def _urgency(curve: tuple[tuple[str, str], object]) -> tuple[int, str]:
    (quantity, actor), _ = curve
    return (_FIRST.index(quantity) if quantity in _FIRST else len(_FIRST)), actor


def _lane(event: TimelineEvent) -> str:
    source = event.source.artifact.rpartition("/")[2] if event.source else event.kind.partition(".")[0]
    return f"{event.actor} · {source}" if event.actor else source


def _at(moment: Moment | None, clock: str) -> float | None:
    if moment is None or not clock:
        return phrases.unix_seconds(moment.time) if moment else None
    same = moment.source is not None and moment.source.artifact == clock
    return _written_seconds(moment.as_written) if same else None


def _place_as_written(report: Report, placed: list[tuple[float, float, float | None, TimelineEvent]]) -> str:
    """Where no event has an instant, because no year or zone is known: the events of the source that has most of them,
    on its own clock. Only one source, as the order between two such clocks is not known. Its name, or an empty one."""
    by_source: dict[str, list[tuple[float, TimelineEvent]]] = {}
    for event in report.timeline.events:
        if event.source and (at := _written_seconds(event.as_written)) is not None:
            by_source.setdefault(event.source.artifact, []).append((at, event))
    if not by_source:
        return ""
    name = max(by_source, key=lambda source: len(by_source[source]))
    placed += [(at, at, at, event) for at, event in by_source[name]]
    return name


_WRITTEN = re.compile(r"(?:(\d{4})[-/])?(\d\d)[-/]?(\d\d)[T ](\d\d):(\d\d):(\d\d(?:[.,]\d{1,6})?)\d*")
_BARE = re.compile(r"\d{1,9}(?:\.\d{1,9})?")


def _written_seconds(text: str | None) -> float | None:
    """A reading without year or zone as seconds on an axis of its own: `11-30 20:08:09`, `2026/11/30 20:08:09.527`,
    NCCL's `1130 20:08:09.1`, boot seconds; None for any other."""
    if text is None:
        return None
    if _BARE.fullmatch(text):
        return float(text)
    found = _WRITTEN.fullmatch(text)
    if not found:
        return None
    year, month, day, hour, minute, second = found.groups()
    try:
        # A leap year stands for one that is not known, so that 29 February is a day.
        start = datetime(int(year or 2024), int(month), int(day), int(hour), int(minute), tzinfo=UTC)
    except ValueError:
        return None
    return start.timestamp() + float(second.replace(",", "."))


def _edges(moment: Moment | None, at: float) -> tuple[float, float]:
    """Between which instants the moment lies; both are `at` where nothing is said of that."""
    edges = [phrases.unix_seconds(edge) for edge in (moment.earliest, moment.latest)] if moment else [None, None]
    return (at if edges[0] is None else edges[0]), (at if edges[1] is None else edges[1])


def _zone(report: Report) -> int:
    """Minutes east of UTC in which the axis is labelled: the zone that the timeline's own times are written in."""
    for time in (report.timeline.first, *(event.time for event in report.timeline.events[:1])):
        if time and phrases.unix_seconds(time) is not None and time[-6] in "+-":
            return (1 if time[-6] == "+" else -1) * (int(time[-5:-3]) * 60 + int(time[-2:]))
    return 0
