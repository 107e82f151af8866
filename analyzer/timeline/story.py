"""The report's timeline: telling events in order, clocks, last progress and onset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.reasoning.bundle import Bundle
from analyzer.reasoning.match import record_of
from analyzer.report import Clock, Moment, Timeline, TimelineEvent
from analyzer.timeline.timeline import Place, written
from parsers.event import Event

if TYPE_CHECKING:
    from analyzer.analyze import Analysis

SHOWN = 200
TELLING = ("server_log.phase", "server_log.ready", "server_log.kernel_selected", "server_log.stats", "server_log.exception",
           "server_log.engine_dead", "server_log.process_died", "server_log.rpc_timeout", "server_log.shm_broadcast_wait",
           "server_log.shutdown", "server_log.killed", "server_log.cuda_error", "server_log.request", "server_log.last_record",
           "kernel_log.", "collective.", "cuda_core.", "cuda_gdb.exception", "stacks.error", "gpu_samples.sample",
           "process.", "fabric.")


def story(analysis: Analysis, limit: int | None = SHOWN) -> Timeline:
    """The timeline of an analysis: at most `limit` events (None = all)."""
    from analyzer.compose import moment, quote
    from analyzer.timeline.onset import last_progress, onset

    bundle = analysis.bundle
    placed = [(event, _place(event, bundle)) for event in _telling(bundle)]
    placed.sort(key=lambda one: (one[1].earliest is None, one[1].earliest or 0.0, one[0].span.source, one[0].span.first_line))
    known = [place for _, place in placed if place.earliest is not None]
    clocks = []
    for domain in bundle.timeline.domains:
        alignment = bundle.timeline.aligned.get(domain)
        clocks.append(Clock(domain=domain, aligned_by=alignment.basis if alignment else "nothing: its order to other clocks is not known",
                            offset_s=round(alignment.offset, 3) if alignment else None,
                            uncertainty_s=round(alignment.uncertainty, 3) if alignment else None))
    stopped = onset(analysis)
    progress = last_progress(bundle)
    return Timeline(
        first=written(known[0].earliest) if known else None, last=written(known[-1].latest) if known else None,
        clocks=clocks, last_progress=moment(record_of(progress, bundle), "last sign of progress") if progress else None,
        onset=Moment.model_validate(moment(record_of(stopped, bundle), "onset").model_dump()) if stopped else None,
        events=[TimelineEvent(time=written(place.earliest) if place.earliest is not None and place.latest is not None
                              and place.latest - place.earliest <= 60 else None,
                              as_written=place.text, earliest=written(place.earliest), latest=written(place.latest),
                              kind=event.kind, actor=_actor(event), text=event.text[:300], source=quote(event.span, event.text[:300]))
                for event, place in _sampled(placed, limit)])


def _telling(bundle: Bundle) -> list[Event]:
    return [event for kind, events in bundle.by_kind.items() if kind.startswith(TELLING) for event in events]


def _place(event: Event, bundle: Bundle) -> Place:
    return record_of(event, bundle).place


def _sampled(placed: list[tuple[Event, Place]], limit: int | None) -> list[tuple[Event, Place]]:
    if limit is None or len(placed) <= limit:
        return placed
    counts: dict[str, int] = {}
    kept = []
    for event, place in placed:
        counts[event.kind] = counts.get(event.kind, 0) + 1
        if counts[event.kind] <= max(4, limit // 20):
            kept.append((event, place))
    return kept[:limit]


def _actor(event: Event) -> str:
    parts = [event.actor.process, f"pid {event.actor.pid}" if event.actor.pid else None,
             f"rank {event.actor.rank}" if event.actor.rank is not None else None, event.actor.gpu]
    return " ".join(part for part in parts if part)
