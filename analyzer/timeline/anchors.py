"""Which readings of different clocks belong to one instant: the evidence that ties the clocks of a bundle together.

Transports tie a line's own reading to theirs while it is read (`Timeline.pair`). Here are the rest: lines that show two
clocks, messages that two logs share, the creation times in /metrics, and a process that the kernel and the server name.
Whatever is taken for granted is said in the anchor's `assumption`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from analyzer.timeline.clocks import BOOT, TIME_OF_DAY, kind_of
from analyzer.timeline.dump_anchors import core_dumps
from analyzer.timeline.timeline import UTC_DOMAIN, ZONE_STEP, Anchor, Timeline
from parsers.event import Event
from parsers.pattern import lazy
from parsers.stamp import ClockKind, Stamp

NEAR_METRICS = 30.0
"""Seconds between the creation of the server's counters and its log lines about being ready."""
NEAR_FAULT = 60.0
"""Seconds within which a server logs the fault for which the kernel named its process."""
SHARED_DELAY = 2.0
"""Seconds by which two loggers may stamp one message apart."""
SYSLOG_DELAY = 5.0
READY = ("engine_ready", "api_start")
FAULTS = ("server_log.cuda_error", "server_log.exception", "server_log.process_died", "server_log.engine_dead")
_LEVEL = lazy(r"^(?:[a-z]{2,8} {0,3}:[a-z]{3,7} {0,3}: |<\d{1,4}>)")
_ISO = lazy(r"^\d{4}-\d\d-\d\dT\S{8,30} ")
_BRACKETS = lazy(r"^\s{0,8}\[[^\]]{1,40}\] ?")


def find(timeline: Timeline, by_kind: Mapping[str, Sequence[Event]]) -> None:
    """Adds every anchor that the events hold to the timeline."""
    _lines_with_two_clocks(timeline, by_kind)
    _shared_messages(timeline, by_kind)
    _counters(timeline, by_kind)
    _named_processes(timeline, by_kind)
    core_dumps(timeline, by_kind)


def _kernel(by_kind: Mapping[str, Sequence[Event]]) -> Iterable[Event]:
    return (event for kind, events in by_kind.items() if kind.startswith("kernel_log.") for event in events)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _lines_with_two_clocks(timeline: Timeline, by_kind: Mapping[str, Sequence[Event]]) -> None:
    """journald entries, syslog lines with an inner `[uptime]`, `uptime`, and the GSP's history (epoch microseconds)."""
    for event in _kernel(by_kind):
        stamp, line = event.stamp, event.span.first_line
        if stamp is None:
            continue
        uptime, epoch = _number(event.fields.get("uptime")), _number(event.fields.get("epoch"))
        doubt = _number(event.fields.get("uncertainty")) or stamp.precision
        if uptime is not None and stamp.clock is not ClockKind.BOOT:
            since = Stamp(f"{uptime:f}", ClockKind.BOOT, uptime, 1e-6)
            # A logger stamps a kernel message when it reads it: at boot, and under load, that is later.
            delay = SYSLOG_DELAY if uptime > 60 else 60.0
            slack = max(doubt, stamp.precision)
            _tie(timeline, event.span.source, since, line, event.span.source, stamp, line, early=delay, late=slack,
                 basis="lines that show wall clock and uptime")
        if epoch is not None and stamp.clock is not ClockKind.UTC:
            when = Stamp(f"{epoch:f}", ClockKind.UTC, epoch, 1e-6)
            _tie(timeline, event.span.source, stamp, line, event.span.source, when, line, early=doubt, late=doubt,
                 basis="the GSP's call history (Unix time)")


def _tie(timeline: Timeline, source: str, stamp: Stamp, line: int, other_source: str, other: Stamp, other_line: int, *,
         early: float, late: float, basis: str, assumption: str = "") -> None:
    domain = timeline.domain_of(source, stamp, line)
    value = timeline.clock_of(source, stamp).value(stamp, line)
    target = timeline.domain_of(other_source, other, other_line)
    instant = other.value if target == UTC_DOMAIN else timeline.clock_of(other_source, other).value(other, other_line)
    timeline.tie(Anchor(domain, value, target, instant, early, late, basis, assumption))


def message_of(event: Event) -> str:
    """The message of a kernel-log line without what its container put in front."""
    text = event.text[:1000]
    if "kernel: " in text[:160]:
        text = text.split("kernel: ", 1)[1]
    text = _ISO.sub("", _LEVEL.sub("", text, count=1), count=1)
    return _BRACKETS.sub("", _BRACKETS.sub("", text, count=1), count=1).strip()


def _shared_messages(timeline: Timeline, by_kind: Mapping[str, Sequence[Event]]) -> None:
    """One kernel message in two logs: dmesg and the journal, syslog and a serial console."""
    found: dict[tuple[str, str], dict[str, list[Event]]] = {}
    for event in _kernel(by_kind):
        if event.stamp is not None and event.kind not in ("kernel_log.boot", "kernel_log.clock_pair"):
            message = message_of(event)
            # Short texts and texts without a number come again at every boot.
            if len(message) >= 24 and re.search(r"\d{3}|0x", message):
                found.setdefault((event.kind, message), {}).setdefault(event.span.source, []).append(event)
    tied: dict[tuple[str, str], int] = {}
    for sources in found.values():
        names = sorted(sources)
        for index, one in enumerate(names):
            for two in names[index + 1:]:
                mine, theirs = sources[one], sources[two]
                if len(mine) == len(theirs) and tied.get((one, two), 0) < 16:
                    tied[one, two] = tied.get((one, two), 0) + 1
                    _same_message(timeline, mine[0], theirs[0])


def _same_message(timeline: Timeline, one: Event, two: Event) -> None:
    for mine, yours in ((one, two), (two, one)):
        stamp, other = mine.stamp, yours.stamp
        if stamp is None or other is None or kind_of(stamp) == kind_of(other) == BOOT:
            continue
        if stamp.clock is ClockKind.UTC:
            continue
        if stamp.clock is ClockKind.WALL and other.clock is ClockKind.WALL and kind_of(stamp) == kind_of(other):
            apart = abs(stamp.value - other.value) % ZONE_STEP
            if min(apart, ZONE_STEP - apart) > SHARED_DELAY:
                continue
        slack = stamp.precision + other.precision + (SHARED_DELAY if stamp.clock is ClockKind.WALL else SYSLOG_DELAY)
        _tie(timeline, mine.span.source, stamp, mine.span.first_line, yours.span.source, other, yours.span.first_line,
             early=slack, late=slack, basis="one kernel message in two logs",
             assumption="a kernel message that two logs hold equally often is the same message")
        return
    first, second = _uptime(one), _uptime(two)
    if first is not None and second is not None and abs(first.value - second.value) < 0.01:
        _tie(timeline, one.span.source, first, one.span.first_line, two.span.source, second, two.span.first_line,
             early=0.001, late=0.001, basis="one kernel message with one uptime in two logs")


def _uptime(event: Event) -> Stamp | None:
    if event.stamp is not None and event.stamp.clock is ClockKind.BOOT:
        return event.stamp
    uptime = _number(event.fields.get("uptime"))
    return Stamp(f"{uptime:f}", ClockKind.BOOT, uptime, 1e-6) if uptime is not None else None


def zone_shift(local: float, instant: float, within: float) -> float | None:
    """`local - instant` as a whole number of quarter hours, when it is one within so many seconds; else None."""
    apart = local - instant
    steps = round(apart / ZONE_STEP)
    return steps * ZONE_STEP if abs(apart - steps * ZONE_STEP) <= within and -12 * 3600 <= apart <= 15 * 3600 else None


def _counters(timeline: Timeline, by_kind: Mapping[str, Sequence[Event]]) -> None:
    """`*_created` of the server's own counters is Unix time of its start: the year and the zone of its log.

    The log and the counters are written by one process on one host clock, so the two differ by the zone and nothing
    else; the lines that say "ready" stand within seconds of the creation.
    """
    created: list[tuple[float, float | None]] = []
    for scrape in by_kind.get("metrics.scrape", ()):
        values = scrape.fields.get("values")
        if isinstance(values, dict):
            times = [float(v) for name, v in values.items()
                     if name.startswith(("vllm:", "sglang:")) and name.endswith("_created") and 1.4e9 < v < 4e9]
            started = values.get("process_start_time_seconds")
            if times:
                created.append((min(times), float(started) if isinstance(started, int | float) else None))
    if not created:
        return
    marks = [e for e in by_kind.get("server_log.phase", ()) if e.fields.get("phase") in READY]
    best: dict[tuple[str, str], tuple[float, Event, float]] = {}
    for mark in marks:
        stamp = mark.stamp
        if stamp is None or stamp.clock is not ClockKind.WALL or kind_of(stamp) == TIME_OF_DAY:
            continue
        clock = timeline.clock_of(mark.span.source, stamp)
        value = clock.value(stamp, mark.span.first_line)
        for at, _ in created:
            local = _with_year(timeline, mark, value, at)
            shift = zone_shift(local, at, NEAR_METRICS) if local is not None else None
            if local is None or shift is None:
                continue
            apart = abs(local - shift - at)
            key = (mark.span.source, clock.kind)
            if key not in best or apart < best[key][0]:
                best[key] = (apart, mark, local - shift)
    for apart, mark, instant in best.values():
        if mark.stamp is None:
            continue
        when = Stamp(f"{instant:f}", ClockKind.UTC, instant, 1e-6)
        _tie(timeline, mark.span.source, mark.stamp, mark.span.first_line, mark.span.source, when, 0,
             early=0.1, late=0.1, basis="the creation times in /metrics",
             assumption=f"the server's counters were created within {apart:.0f} s of line {mark.span.first_line}, and "
                        "both are written by one host's clock")


def _with_year(timeline: Timeline, event: Event, value: float, instant: float) -> float | None:
    """The reading on a calendar of its own zone, its year taken from `instant` where it has none."""
    stamp = event.stamp
    if stamp is None or stamp.year_known:
        return value
    clock = timeline.clock_of(event.span.source, stamp)
    return clock.calendar(value) if clock.year is not None else clock.in_year(value, instant)


def _named_processes(timeline: Timeline, by_kind: Mapping[str, Sequence[Event]]) -> None:
    """A pid on an Xid, OOM or segfault line and on the server's line about the fault."""
    faults: dict[int, Event] = {}
    for kind in FAULTS:
        for event in by_kind.get(kind, ()):
            if event.stamp is not None and event.actor.pid is not None:
                known = faults.get(event.actor.pid)
                if known is None or event.span.first_line < known.span.first_line:
                    faults[event.actor.pid] = event
    seen: set[tuple[str, int]] = set()
    for kind in ("kernel_log.xid", "kernel_log.oom_kill", "kernel_log.segfault", "kernel_log.invalid_opcode"):
        for event in by_kind.get(kind, ()):
            pid, stamp = event.actor.pid, event.stamp
            fault = faults.get(pid) if pid is not None else None
            if stamp is None or pid is None or fault is None or fault.stamp is None or (event.span.source, pid) in seen:
                continue
            seen.add((event.span.source, pid))
            _same_process(timeline, event, fault, pid)


def _same_process(timeline: Timeline, kernel: Event, server: Event, pid: int) -> None:
    stamp, other = kernel.stamp, server.stamp
    if stamp is None or other is None or stamp.clock is other.clock is ClockKind.UTC:
        return
    places = f"{kernel.span.source}:{kernel.span.first_line} and {server.span.source}:{server.span.first_line}"
    assumption = f"pid {pid} is one process in {places}, and the server logged the fault within {NEAR_FAULT:.0f} s"
    if stamp.clock is ClockKind.UTC:
        stamp, other, kernel, server = other, stamp, server, kernel
    slack = NEAR_FAULT
    value = timeline.clock_of(kernel.span.source, stamp).value(stamp, kernel.span.first_line)
    instant = other.value
    if stamp.clock is ClockKind.WALL and kind_of(stamp) != TIME_OF_DAY:
        local = _with_year(timeline, kernel, value, instant) if other.year_known and other.date_known else value
        same = other.year_known == stamp.year_known or other.year_known
        shift = zone_shift(local, instant, NEAR_FAULT) if local is not None and same else None
        if shift is None:
            return
        # One host's clock in two zones: the difference is the zone and nothing else.
        apart = (local or 0.0) - shift - instant
        other = Stamp(other.text, other.clock, instant + apart, other.precision, other.year_known, other.date_known)
        slack = 1.0
        assumption += f"; {'the zones are equal' if not shift else f'the zones differ by {shift / 3600:+g} h'}"
    _tie(timeline, kernel.span.source, stamp, kernel.span.first_line, server.span.source, other, server.span.first_line,
         early=slack, late=slack, basis=f"pid {pid} in both", assumption=assumption)
