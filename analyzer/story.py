"""The report's timeline: telling events in order, clocks, coverage, last progress and onset."""

from __future__ import annotations

import math
from typing import Literal

from analyzer.analysis import Analysis
from analyzer.quote import moment, quote, time_of
from analyzer.reasoning.bundle import Bundle
from analyzer.reasoning.coverage import covers, windows
from analyzer.reasoning.last_progress import last_of_each, last_progress
from analyzer.reasoning.match import record_of
from analyzer.reasoning.onset import STATS_EVERY, Onset, earlier, onset
from analyzer.report import Clock, Coverage, Moment, Timeline, TimelineEvent
from analyzer.timeline.timeline import UNDATED, UTC_DOMAIN, Place, written
from parsers.event import Event

SHOWN = 200
UNALIGNED = "nothing: its order to other clocks is not known"
TELLING = ("server_log.phase", "server_log.ready", "server_log.kernel_selected", "server_log.stats",
           "server_log.exception", "server_log.engine_dead", "server_log.process_died", "server_log.rpc_timeout",
           "server_log.shm_broadcast_wait", "server_log.shutdown", "server_log.killed", "server_log.cuda_error",
           "server_log.request", "server_log.last_record", "server_log.watchdog", "server_log.jit", "kernel_log.",
           "collective.", "cuda_core.", "cuda_gdb.exception", "stacks.error", "gpu_samples.sample", "metrics.scrape",
           "heartbeat.", "process.", "fabric.")
# Fields that make curves, with the name and unit under which the report keeps them.
QUANTITIES: dict[str, dict[str, str]] = {
    "server_log.stats": {"generation_tps": "generation tokens/s", "prompt_tps": "prompt tokens/s",
                         "running": "requests running", "waiting": "requests waiting", "kv_usage": "KV cache %"},
    "gpu_samples.sample": {"util": "utilisation %", "mem_util": "memory utilisation %", "power_w": "power W",
                           "temp_c": "temperature °C", "sm_clock_mhz": "SM clock MHz", "mem_used_mib": "memory MiB"},
    "metrics.scrape": {"vllm:generation_tokens_total": "tokens generated",
                       "vllm:num_requests_running": "requests running",
                       "vllm:num_requests_waiting": "requests waiting", "sglang:num_running_reqs": "requests running",
                       "sglang:generation_tokens_total": "tokens generated"},
}


def story(analysis: Analysis, limit: int | None = SHOWN) -> Timeline:
    """The timeline of an analysis: at most `limit` events (None = all)."""

    bundle = analysis.bundle
    placed = [(event, record_of(event, bundle).place) for event in _telling(bundle)]
    placed.sort(key=lambda one: _order(one[1]))
    known = [place for _, place in placed if place.earliest is not None]
    latest = [place.latest for place in known if place.latest is not None]
    progress, stop = last_progress(bundle), onset(bundle, analysis.ranked, analysis.signs)
    return Timeline(
        first=written(known[0].earliest) if known else None, last=written(max(latest)) if latest else None,
        clocks=_clocks(bundle),
        last_progress=_progressed(progress, bundle) if progress is not None else None,
        onset=onset_moment(stop, bundle) if stop is not None else None,
        last_records={name: moment(record_of(event, bundle), "last stamped record of this process")
                      for name, event in list(last_of_each(bundle).items())[:64]},
        coverage=_coverage(bundle, stop), events=[_shown(event, place) for event, place in _sampled(placed, limit)])


def _order(place: Place) -> tuple[bool, str, float, str, int]:
    """Placed events first, then each group of clocks that are tied only to each other, then each clock by itself."""
    dated = place.axis == UTC_DOMAIN
    where = place.low if math.isfinite(place.low) else place.high if math.isfinite(place.high) else place.value
    return not dated, "" if dated else place.axis or place.domain or place.source, where, place.source, place.line


def _shown(event: Event, place: Place) -> TimelineEvent:

    edge = event.fields.get("edge")
    phase = None
    if event.kind == "server_log.phase":
        phase = event.fields.get("stretch") or event.fields.get("phase")
    elif event.kind == "server_log.jit":
        phase = event.fields.get("name") or event.fields.get("what")
    return TimelineEvent(
        time=time_of(place), as_written=place.text, earliest=written(place.earliest), latest=written(place.latest),
        kind=event.kind, actor=_actor(event), text=event.text[:300], source=quote(event.span, event.text[:300]),
        values=values_of(event), phase=str(phase) if phase else None, edge=_edge(edge) if phase else None)


def _edge(edge: object) -> Literal["begin", "end", "mark"]:
    return "begin" if edge == "begin" else "end" if edge in ("end", "failed") else "mark"


def values_of(event: Event) -> dict[str, float]:
    """The quantities that an event states, by name with unit."""
    names = QUANTITIES.get(event.kind)
    if names is None:
        return {}
    fields = event.fields.get("values") if event.kind == "metrics.scrape" else event.fields
    if not isinstance(fields, dict):
        return {}
    return {name: float(value) for key, name in names.items() if isinstance(value := fields.get(key), int | float)
            and not isinstance(value, bool) and math.isfinite(value)}


def onset_moment(stop: Onset, bundle: Bundle) -> Moment:
    """The stop as an instant with its uncertainty; `as_written` is on the clock of the record that shows it."""

    record = record_of(stop.event, bundle)
    shown = moment(record, stop.what)
    place = record.place.moved(-stop.back) if stop.back else record.place
    stamp = stop.event.stamp
    early = place.earliest - stop.slack if place.earliest is not None else None
    late = place.latest if stop.until is None else stop.until
    spread = late - early if late is not None and early is not None else None
    return _dated(shown.model_copy(update={
        "time": written(place.at) if shown.time is not None else None,
        "as_written": earlier(stamp, stop.back) if stop.back and stamp is not None else place.text,
        "earliest": written(early), "latest": written(late),
        "uncertainty_s": round(spread, 3) if spread is not None else stop.slack or None}), stop.event, bundle)


def _progressed(event: Event, bundle: Bundle) -> Moment:

    shown = moment(record_of(event, bundle), "the last sign of progress")
    if event.kind == "server_log.stats":
        shown = moment(record_of(event, bundle), "the last throughput line with tokens")
        place = record_of(event, bundle).place
        if place.earliest is not None:
            shown = shown.model_copy(update={"earliest": written(place.earliest - STATS_EVERY)})
    return _dated(shown, event, bundle)


def _dated(shown: Moment, event: Event, bundle: Bundle) -> Moment:
    """A record without a reading of its own bears the one above it, and says so."""
    if shown.as_written is not None:
        return shown
    above, _ = bundle.timeline.neighbours(event.span.source, event.span.first_line)
    if above is None:
        return shown
    note = f"{shown.what} (its line has no reading: that of line {above[0]} stands for it)"
    return shown.model_copy(update={"as_written": above[1].text, "what": note})


def _clocks(bundle: Bundle) -> list[Clock]:
    timeline = bundle.timeline
    clocks = []
    for domain in timeline.domains:
        alignment = timeline.aligned.get(domain)
        clock = timeline.clock_named(domain)
        notes = list(clock.notes) if clock is not None else []
        if alignment is None:
            clocks.append(Clock(domain=domain, aligned_by=UNALIGNED, assumptions=notes))
            continue
        by = alignment.basis if alignment.axis in (UTC_DOMAIN, domain) else f"{alignment.basis}, to {alignment.axis}"
        offset = round(alignment.offset, 3) if alignment.basis != UNDATED else None
        clocks.append(Clock(domain=domain, aligned_by=by, offset_s=offset,
                            uncertainty_s=round(alignment.uncertainty, 3) if offset is not None else None,
                            assumptions=[*alignment.assumptions, *notes]))
    clocks += [Clock(domain=f"{source} (zoned)", aligned_by="its own zone", offset_s=0.0, uncertainty_s=0.0,
                     assumptions=clock.notes) for source, clock in timeline.zoned.items() if clock.notes]
    return clocks[:64]


def _coverage(bundle: Bundle, stop: Onset | None) -> list[Coverage]:
    place = record_of(stop.event, bundle).place.moved(-stop.back) if stop is not None else None
    shown = []
    for window in windows(bundle)[:100]:
        if window.read.parser is not None:
            answer, why = covers(window, place, bundle)
            known: Literal["yes", "no", "unknown"] = answer if stop is not None else "unknown"
            shown.append(Coverage(artifact=window.read.path, kind=window.read.kind, first=_bound(window.first),
                                  last=_bound(window.last), covers_onset=known, says=why))
    return shown


def _bound(place: Place | None) -> Moment | None:

    if place is None:
        return None
    return Moment(time=time_of(place), as_written=place.text, earliest=written(place.earliest),
                  latest=written(place.latest))


def _telling(bundle: Bundle) -> list[Event]:
    return [event for kind, events in bundle.by_kind.items()
            if kind.startswith(TELLING) and kind != "kernel_log.clock_pair" for event in events]


def _sampled(placed: list[tuple[Event, Place]], limit: int | None) -> list[tuple[Event, Place]]:
    """At most `limit` events: of a kind that has many, an even choice with the first and the last."""
    if limit is None or len(placed) <= limit:
        return placed
    total: dict[str, int] = {}
    for event, _ in placed:
        total[event.kind] = total.get(event.kind, 0) + 1
    room = max(4, limit // 20)
    while sum(min(count, room + 1) for count in total.values()) < min(limit - len(total), len(placed)):
        room += 1
    seen: dict[str, int] = {}
    kept = []
    for event, place in placed:
        index = seen[event.kind] = seen.get(event.kind, 0) + 1
        count = total[event.kind]
        if count <= room or index in (1, count) or (index * room) // count != ((index - 1) * room) // count:
            kept.append((event, place))
    return kept[:limit]


def _actor(event: Event) -> str:
    actor = event.actor
    gpu = actor.gpu if actor.gpu is None or ":" in actor.gpu else f"GPU {actor.gpu}"
    parts = [actor.process, f"pid {actor.pid}" if actor.pid else None,
             f"rank {actor.rank}" if actor.rank is not None else None, gpu]
    return " ".join(part for part in parts if part)
