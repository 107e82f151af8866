"""When did it really stop: the last progress and the first sign of trouble, not the time-out that fires minutes later.

Two kinds of evidence are weighed. A *sign* is an event that is trouble by itself; one that says how long it has waited
(a 60-s broadcast wait, an RPC time-out, a collective watchdog, a hung task) leads back to the start of the wait.
*Progress* bounds the stop from below. Where the server stalls without a word, the stop lies in the last interval
that still showed tokens; where something dies, the death is the onset.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from analyzer.intake.readings import reading_of
from analyzer.reasoning.bundle import Bundle
from analyzer.reasoning.last_progress import last_progress, latest, moves, number, place_of, stats_of
from analyzer.reasoning.lives import belongs_to_stop, stops_of
from analyzer.reasoning.rank import Candidate
from analyzer.reasoning.verdict import Signs
from analyzer.timeline.clocks import kind_of
from analyzer.timeline.timeline import Place, before, written
from parsers.event import Event
from parsers.pattern import lazy
from parsers.stamp import ClockKind, Stamp

STATS_EVERY = 10.0
"""Seconds between throughput lines (VLLM_LOG_STATS_INTERVAL)."""
STALLED_FOR = 25.0
"""Seconds without tokens, requests running, from which a zero line is a stall and no long prefill."""
BOUND = 60.0
"""Seconds within which the first sign of trouble after the last progress bounds the stop from above."""
PIPELINE = 15.0
"""Seconds by which a throughput line may still count tokens from before a fault."""
FULL_STALL = ("flat_counter", "zero_throughput_running", "waits_after_ready", "open_phase", "open_bar",
              "download_without_end", "nccl_silence_after_init", "host_stopped")
SILENT_START = {"open_phase", "open_bar", "host_stopped", "download_without_end"}
SUDDEN = ("kernel_log.xid", "kernel_log.sxid", "kernel_log.fallen_off_bus", "kernel_log.gsp", "kernel_log.oom_kill",
          "kernel_log.lockup", "kernel_log.panic", "kernel_log.segfault", "kernel_log.invalid_opcode", "kernel_log.mce",
          "kernel_log.iommu_fault", "kernel_log.sysrq_crash", "kernel_log.init_failure",
          "server_log.process_died", "server_log.killed", "server_log.cuda_error", "server_log.exception",
          "server_log.engine_dead", "server_log.usage_error", "cuda_gdb.exception", "collective.rank_behind")
# Events that fire after a wait, with the field that says how long it was and what one unit of it is in seconds.
WAITED: dict[str, tuple[str, float, float]] = {
    "server_log.shm_broadcast_wait": ("seconds", 1.0, 60.0),
    "server_log.rpc_timeout": ("seconds", 1.0, 0.0),
    "server_log.watchdog": ("seconds", 1.0, 0.0),
    "collective.watchdog_timeout": ("timeout_ms", 0.001, 0.0),
    "kernel_log.hung_task": ("seconds", 1.0, 0.0),
    "kernel_log.lockup": ("seconds", 1.0, 0.0),
}
_RAN_FOR = lazy(r"ran for (\d{1,12}) milliseconds|timed out after (\d{1,9}) seconds|stuck for (\d{1,6})s")
_RPC = lazy(r"execute_model|RPC call|Engine iteration timed out")
EXECUTE_TIMEOUT = 300.0
"""VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS as shipped."""


@dataclass(slots=True)
class Onset:
    """The stop: the event that shows it, so many seconds before it (`back`), with what bounds it in words.

    `slack` is how many seconds earlier than that it may have been, `until` the instant (Unix seconds) at which it was
    over at the latest, where a later sign bounds it.
    """

    event: Event
    back: float
    slack: float
    what: str
    until: float | None = None


@dataclass(slots=True)
class _Sign:
    event: Event
    back: float
    place: Place


def _stall_progress(bundle: Bundle) -> tuple[Event, float] | None:
    """The last throughput line with tokens before the first stall, and how far back the stop may lie."""
    found: list[tuple[Event, float]] = []
    for events in stats_of(bundle):
        stalls = [(last, zero) for last, zero in pairwise(events)
                  if moves(last) and not moves(zero) and number(zero, "running") > 0 and _stays_still(zero, events)]
        moving = [e for e in events if moves(e)]
        last = stalls[0][0] if stalls else moving[-1] if moving else None
        if last is not None:
            index = events.index(last)
            gap = _apart(events[index - 1], last) if index else None
            found.append((last, gap if gap is not None and 0 < gap < 2 * STATS_EVERY else STATS_EVERY))
    last_one = latest([event for event, _ in found], bundle)
    return next((one for one in found if one[0] is last_one), None)


def _apart(one: Event, two: Event) -> float | None:
    return two.stamp.value - one.stamp.value if one.stamp is not None and two.stamp is not None else None


def _stays_still(zero: Event, events: list[Event]) -> bool:
    after = [e for e in events if e.span.first_line > zero.span.first_line and moves(e)]
    apart = _apart(zero, after[0]) if after else None
    return apart is None or apart + STATS_EVERY >= STALLED_FOR


def waited(event: Event) -> float:
    """Seconds for which an event says that something had waited before it fired; 0 when it says nothing."""
    name, unit, default = WAITED.get(event.kind, ("", 1.0, 0.0))
    seconds = number(event, name) * unit or default
    if not seconds and (found := _RAN_FOR.search(event.text)):
        seconds = float(found[1]) / 1000 if found[1] else float(found[2] or found[3])
    if not seconds and event.kind == "server_log.rpc_timeout" and _RPC.search(event.text):
        seconds = EXECUTE_TIMEOUT
    return seconds


def _signs(bundle: Bundle, told: Signs) -> Iterator[_Sign]:
    counted = {id(event) for _, event in told.trouble}
    for kind in SUDDEN:
        for event in bundle.events(kind):
            if id(event) in counted and event.fields.get("role") != "consequence":
                yield _sign(event, 0.0, bundle)
    progressed = {source: max(e.span.first_line for e in events if moves(e))
                  for events in stats_of(bundle) if any(map(moves, events)) for source in (events[0].span.source,)}
    late = {o.events[-1].span.source: o.events[-1].span.first_line for o in bundle.observed("waits_then_progress")}
    stops = stops_of(bundle)
    for kind in WAITED:
        for event in bundle.events(kind):
            source, line = event.span.source, event.span.first_line
            done = max(progressed.get(source, 0), late.get(source, 0))
            if done < line and not belongs_to_stop(event, stops):
                yield _sign(event, waited(event), bundle)
    for event in bundle.events("heartbeat.beat"):
        if event.fields.get("what") == "unreachable" and bundle.observed("host_stopped"):
            yield _sign(event, number(event, "seconds"), bundle)


def _sign(event: Event, back: float, bundle: Bundle) -> _Sign:
    place = place_of(event, bundle)
    return _Sign(event, back, place.moved(-back) if back else place)


def _first(signs: list[_Sign]) -> _Sign | None:
    first: _Sign | None = None
    for sign in signs:
        if first is None or before(sign.place, first.place) is True or (
                first.event.stamp is None and sign.event.stamp is not None
                and before(first.place, sign.place) is not True):
            first = sign
    return first


def _much_later(one: Place, two: Place, seconds: float) -> bool:
    """Whether `two` came more than so many seconds after `one`, beyond doubt."""
    return before(one.moved(seconds), two.moved(0.0)) is True


def onset(bundle: Bundle, ranked: list[Candidate], told: Signs) -> Onset | None:
    """The stop, or None when nothing stopped. `told` = the signs of trouble that the verdict counts."""
    live = [c for c in ranked if not c.ruled_out]
    serious = any(not c.rule.harmless and c.confidence != "low" for c in live)
    if not serious and (not told.trouble or (live and live[0].rule.harmless)):
        return None
    trouble = {kind for kind, _ in told.trouble}
    progress = _progress(bundle, trouble)
    signs = list(_signs(bundle, told))
    if progress is not None:
        known = progress.place.moved(-progress.slack)
        fresh = [sign for sign in signs if not _much_later(sign.place, known, PIPELINE)]
        signs = fresh or ([] if trouble & set(FULL_STALL) else signs)
    first = _first(signs)
    for silent in bundle.observed("silent_end")[:1]:
        again, last = place_of(silent.events[0], bundle), silent.events[-1]
        if first is None or before(again, first.place) is True:
            note = "the last line of progress before a start that follows no stop"
            return Onset(last, 0.0, 0.0, note, again.latest)
    if progress is None and first is None:
        return _from_observations(bundle, told)
    if first is None and "slow_but_moving" in trouble and not trouble & set(FULL_STALL):
        slow = bundle.observed("slow_but_moving")[0].events[-1]
        return Onset(slow, STATS_EVERY, 0.0, "the first throughput line that is slow; it tells of the time before it")
    if first is None:
        return progress.onset() if progress is not None else None
    if progress is not None and _stalled_first(progress, first, bool(trouble & set(FULL_STALL))):
        return progress.onset(first)
    return _at(first)


@dataclass(slots=True)
class _Progress:
    event: Event
    slack: float
    place: Place
    note: str

    def onset(self, sign: _Sign | None = None) -> Onset:
        note = self.note
        if sign is not None and sign.event.stamp is not None:
            if not sign.event.kind.startswith("heartbeat."):
                note += f"; the first sign of trouble, at {_clock(sign.event)}, is later"
            late = sign.place.latest
            if late is not None and self.place.latest is not None and late - self.place.latest <= BOUND:
                return Onset(self.event, 0.0, self.slack, note, late)
        return Onset(self.event, 0.0, self.slack, note)


def _clock(event: Event) -> str:
    return event.stamp.text if event.stamp is not None else ""


def _progress(bundle: Bundle, trouble: set[str]) -> _Progress | None:
    if trouble & SILENT_START and not bundle.events("server_log.stats"):
        lasts = [e for e in bundle.events("server_log.last_record", "server_log.phase") if e.stamp is not None]
        last = latest(sorted(lasts, key=lambda e: (e.span.source, e.span.first_line)), bundle)
        if last is not None:
            note = "the last line before the silence" + _outlived(bundle, last)
            return _Progress(last, 0.0, place_of(last, bundle), note)
    stalled = _stall_progress(bundle)
    if stalled is not None:
        event, slack = stalled
        return _Progress(event, slack, place_of(event, bundle),
                         f"the last throughput line with tokens; they stopped within the {slack:.0f} s before it")
    last = last_progress(bundle)
    if last is None or (last.stamp is None and reading_of(last.text) is None):
        return None
    return _Progress(last, 0.0, place_of(last, bundle), "the last sign of progress")


def _outlived(bundle: Bundle, last: Event) -> str:
    """How long a heartbeat went on after the server's last line, or after the network was gone, in words."""
    since, words = place_of(last, bundle), ""
    probes = [_sign(event, number(event, "seconds"), bundle) for event in bundle.events("heartbeat.beat")
              if event.fields.get("what") == "unreachable"]
    lost = [sign for sign in probes if before(sign.place, since.moved(0.0)) is not True]
    gone = _first(lost)
    if gone is not None:
        since_when = written(gone.place.at) or gone.event.fields.get("first")
        words = f"; the host answered no probe from {since_when} on ({gone.event.span.source})"
        since = gone.place
    for beat in bundle.events("heartbeat.beat"):
        there = place_of(beat, bundle)
        if beat.fields.get("what") == "alive" and before(since.moved(0.0), there) is True and since.at and there.at:
            longer = f"{there.at - since.at:.0f} s longer"
            words += (f"; the heartbeat in {beat.span.source} went on until {_clock(beat)}, {longer}: so long the "
                      "host's timers and disk still worked")
    return words


def _stalled_first(progress: _Progress, sign: _Sign, full: bool) -> bool:
    """Whether the stop is the end of progress rather than the first sign after it."""
    if sign.event.stamp is None:
        return progress.event.stamp is not None and full
    if sign.back and not sign.event.kind.startswith("heartbeat"):
        return False  # a wait leads back to the very moment
    if sign.event.kind.startswith("heartbeat"):
        return full and before(sign.place, progress.place.moved(0.0)) is not True  # a lost probe only bounds the stop
    return full and _much_later(progress.place, sign.place, PIPELINE)


def _at(sign: _Sign) -> Onset:
    if sign.back:
        note = f"a wait of {sign.back:g} s that began then ended at {_clock(sign.event)}"
        return Onset(sign.event, sign.back, 0.0, note)
    return Onset(sign.event, 0.0, 0.0, "the first sign of trouble")


def _from_observations(bundle: Bundle, told: Signs) -> Onset | None:
    """No progress and no sign with a kind of its own: the first stamped event that speaks of trouble."""
    events = [event for _, event in told.trouble]
    first = _first([_sign(event, 0.0, bundle) for event in events])
    return Onset(first.event, 0.0, 0.0, "the first record that shows the trouble") if first is not None else None


_CLOCK = lazy(r"\d\d:\d\d:\d\d")
_DATE = lazy(r"(\d\d)([-/])(\d\d)(?=[ T])")


def earlier(stamp: Stamp, seconds: float) -> str:
    """The reading so many seconds before `stamp`, written as that clock writes it."""
    if stamp.clock is ClockKind.BOOT:
        return f"{stamp.value - seconds:.6f}"
    found = _CLOCK.search(stamp.text)
    if found is None:
        return f"{stamp.text} less {seconds:g} s"
    hours, minutes, rest = (int(part) for part in found[0].split(":"))
    of_day = hours * 3600 + minutes * 60 + rest - int(seconds)
    at = datetime.fromtimestamp(of_day % 86400, UTC)
    text = f"{stamp.text[:found.start()]}{at:%H:%M:%S}{stamp.text[found.end():]}"
    if of_day < 0 and kind_of(stamp) != "time of day":
        day = datetime.fromtimestamp(stamp.value - seconds, UTC)
        if stamp.clock is ClockKind.UTC:
            return f"{day:%Y-%m-%dT%H:%M:%S}Z"
        return _DATE.sub(lambda date: f"{day:%m}{date[2]}{day:%d}", text, count=1)
    return text
