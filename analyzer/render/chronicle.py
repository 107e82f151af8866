"""The timeline as text: one line an event, with the time since the one before, gaps, and what is uncertain."""

from __future__ import annotations

from analyzer.render import phrases
from analyzer.render.columns import Page, fit
from analyzer.render.sanitise import terminal
from analyzer.report import Moment, Timeline, TimelineEvent

GAP = 30.0
"""Seconds without an event from which a gap gets a line of its own."""


def render_chronicle(timeline: Timeline, *, width: int | None = None, colour: bool = False) -> str:
    """Events in the timeline's order, `+` the seconds from the onset (or the first event), gaps of 30 s and more shown.

    A time is printed with its zone; a reading that could not be placed stands as it was written, after the placed ones.
    """
    page = Page(width)
    for clock in timeline.clocks:
        doubt = f" ±{phrases.seconds(clock.uncertainty_s)}" if clock.uncertainty_s is not None else ""
        page.row("CLOCK", f"{clock.domain} {'by ' + clock.aligned_by if clock.aligned_by else 'not aligned'}{doubt}")
        for assumption in clock.assumptions:
            page.row("", f"assumed: {assumption}")
    page.blank()
    placed = [(found, event) for event in timeline.events if (found := _at(event)) is not None]
    origin, origin_name = _origin(timeline, placed)
    marks = [
        (found, name, moment)
        for name, moment in (("LAST PROGRESS", timeline.last_progress), ("ONSET", timeline.onset))
        if moment and (found := phrases.unix_seconds(moment.time)) is not None
    ]
    marks.sort(key=lambda item: item[0])
    previous: float | None = None
    for found, event in placed:
        while marks and marks[0][0] <= found:
            _mark(page, *marks.pop(0)[1:])
        if previous is not None and found - previous >= GAP:
            page.row("", f"··· {phrases.seconds(found - previous)} without an event", style="quiet")
        previous = found
        _event(page, event, found - origin)
    for mark in marks:
        _mark(page, *mark[1:])
    unplaced = [event for event in timeline.events if _at(event) is None]
    if unplaced:
        page.blank()
        page.row("", "no instant known (year, zone or boot time not in the input), in their own order:")
        for event in unplaced:
            _event(page, event, None)
    if not timeline.events:
        page.row("", "no event")
    elif placed:
        page.blank()
        page.row("", f"seconds are counted from {origin_name}", style="quiet")
    return page.text(colour)


def _at(event: TimelineEvent) -> float | None:
    for time in (event.time, event.earliest, event.latest):
        if (found := phrases.unix_seconds(time)) is not None:
            return found
    return None


def _origin(timeline: Timeline, placed: list[tuple[float, TimelineEvent]]) -> tuple[float, str]:
    if timeline.onset and (found := phrases.unix_seconds(timeline.onset.time)) is not None:
        return found, "the onset"
    return (placed[0][0] if placed else 0.0), "the first event"


def _mark(page: Page, name: str, moment: Moment) -> None:
    page.row("", f"=== {name}  {phrases.moment(moment)}  {moment.what}", style="verdict", at_most=1)


def _event(page: Page, event: TimelineEvent, offset: float | None) -> None:
    # The relative column is fixed at 12 columns: sign, six digits, point, three digits.
    relative = f"{offset:+11.3f}" if offset is not None and abs(offset) < 1e6 else " " * 11
    where = phrases.place(event.source) if event.source else ""
    head = f"{phrases.moment(event)}  {event.kind}" + (f"  {event.actor}" if event.actor else "")
    page.row(relative, head, right=fit(terminal(where), page.width // 3), at_most=2)
    if event.text:
        page.quote("", event.text, indent=14)
