"""The last sign of life: the last progress of the server and the last record of each of its processes."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.intake.readings import reading_of
from analyzer.reasoning.bundle import Bundle
from analyzer.timeline.timeline import Place, before
from parsers.event import Event


def number(event: Event, name: str) -> float:
    """A field as a number; 0 where it is none."""
    value = event.fields.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def moves(event: Event) -> bool:
    """Whether a throughput line counts tokens."""
    return number(event, "generation_tps") > 0 or number(event, "prompt_tps") > 0


def place_of(event: Event, bundle: Bundle) -> Place:
    """Where an event stands in time, by its stamp or one inside its text."""
    return bundle.timeline.place(event.span, event.stamp or reading_of(event.text))


def stats_of(bundle: Bundle) -> Iterator[list[Event]]:
    """The throughput lines of each source, in order."""
    by_source: dict[str, list[Event]] = {}
    for event in bundle.events("server_log.stats"):
        by_source.setdefault(event.span.source, []).append(event)
    for events in by_source.values():
        yield sorted(events, key=lambda one: one.span.first_line)


def latest(events: list[Event], bundle: Bundle) -> Event | None:
    """The event that is surely later than those before it."""
    last: Event | None = None
    for event in events:
        if last is None or before(place_of(last, bundle), place_of(event, bundle)) is True:
            last = event
    return last


def last_progress(bundle: Bundle) -> Event | None:
    """The last record that shows progress: tokens per second above zero, else a phase mark or readiness."""
    moving = [next(e for e in reversed(events) if moves(e)) for events in stats_of(bundle) if any(map(moves, events))]
    if moving:
        return latest(moving, bundle)
    marks = bundle.events("server_log.phase", "server_log.ready", "server_log.jit", "server_log.progress_bar")
    return latest(sorted(marks, key=lambda e: (e.span.source, e.span.first_line)), bundle)


def last_of_each(bundle: Bundle) -> dict[str, Event]:
    """The last stamped record of every process that the server's logs name, by its role and rank."""
    last: dict[str, Event] = {}
    for kind, events in bundle.by_kind.items():
        if kind.startswith("server_log.") and kind != "server_log.shutdown":
            for event in events:
                name = event.actor.process
                if name and event.stamp is not None:
                    known = last.get(name)
                    if known is None or (known.span.source == event.span.source
                                         and known.span.first_line < event.span.first_line):
                        last[name] = event
    return dict(sorted(last.items()))
