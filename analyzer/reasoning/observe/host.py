"""A whole-host stop: the log ends in mid-stream, the next boot cleans up after it, a heartbeat ends for good."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.reasoning.bundle import Bundle, Observation
from analyzer.timeline.timeline import before
from parsers.event import Event

RECOVERY_WITHIN = 4_000
"""Lines of a boot within which it recovers file systems; later recoveries are of disks that were plugged in."""

LOST = 10
"""Probes without an answer, to the end of their source, from which a host counts as gone."""


def observe(bundle: Bundle) -> Iterator[Observation]:
    """`host_stopped`, once a source; the telling event first, `last` = the last reading before the stop."""
    told: set[str] = set()
    for boot in bundle.events("kernel_log.boot"):
        if boot.span.first_line > 2 and (found := _between_boots(boot, bundle)) is not None:
            told.add(boot.span.source)
            yield found
    for event in bundle.events("kernel_log.unclean_start"):
        if event.span.source not in told and not _ended_in_order(bundle, event.span.source, event.span.first_line):
            told.add(event.span.source)
            yield Observation("host_stopped", [event, *_last_beats(bundle)[:1]], {"last": event.fields.get("what")})
    if not told:
        yield from _from_heartbeats(bundle)


def _of(bundle: Bundle, kind: str, source: str, first: int, last: int) -> list[Event]:
    return [event for event in bundle.events(kind)
            if event.span.source == source and first <= event.span.first_line <= last]


def _boot_before(bundle: Bundle, source: str, line: int) -> int:
    """The first line of the boot that a line belongs to; 0 where none is marked."""
    return max((event.span.first_line for event in _of(bundle, "kernel_log.boot", source, 0, line - 1)), default=0)


def _ended_in_order(bundle: Bundle, source: str, line: int) -> bool:
    """Whether a stop in order stands in the boot that ends before the one of `line`."""
    begins = _boot_before(bundle, source, line)
    since = _boot_before(bundle, source, begins)
    return bool(_of(bundle, "kernel_log.shutdown", source, since, max(begins, 1)))


def _between_boots(boot: Event, bundle: Bundle) -> Observation | None:
    """The log of the boot before this one has no stop in order, and this boot recovers what was left open."""
    source, line = boot.span.source, boot.span.first_line
    if _of(bundle, "kernel_log.shutdown", source, _boot_before(bundle, source, line), line - 1):
        return None
    recovered = _of(bundle, "kernel_log.unclean_start", source, line, line + RECOVERY_WITHIN)
    if not recovered:
        return None
    early, _ = bundle.timeline.neighbours(source, line - 1)
    beats = _last_beats(bundle)[:1]
    last = beats[0].fields.get("last") if beats else early[1].text if early is not None else None
    fields: dict[str, object] = {"last": last, "what": recovered[0].fields.get("what")}
    return Observation("host_stopped", [recovered[0], boot, *beats], fields)


def _beats(bundle: Bundle, what: str) -> list[Event]:
    """Runs of beats that end with their source."""
    return [event for event in bundle.events("heartbeat.beat")
            if event.fields.get("ended") == "cut" and event.fields.get("what") == what]


def _last_beats(bundle: Bundle) -> list[Event]:
    return _beats(bundle, "alive")


def _from_heartbeats(bundle: Bundle) -> Iterator[Observation]:
    """A heartbeat that ends while another machine's probe goes on without an answer, to its end."""
    dead = _beats(bundle, "unreachable")
    for beat in _last_beats(bundle):
        for probe in dead:
            if beat.span.source != probe.span.source and before(bundle.place(beat), bundle.place(probe)) is True:
                yield Observation("host_stopped", [beat, probe], {"last": beat.fields.get("last")})
                return
    for probe in dead:
        if int(str(probe.fields.get("count") or 0)) >= LOST and not _last_beats(bundle):
            yield Observation("host_stopped", [probe], {"last": probe.fields.get("first")})
            return
