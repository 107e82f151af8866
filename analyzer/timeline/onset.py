"""When did it really stop: the last progress, and the first event of the trouble. A time-out that fires later is not the
onset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.reasoning.bundle import Bundle
from parsers.event import Event

if TYPE_CHECKING:
    from analyzer.analyze import Analysis


def last_progress(bundle: Bundle) -> Event | None:
    """The last record that shows progress: tokens per second above zero, a request answered, a phase mark."""
    candidates: list[Event] = [e for e in bundle.events("server_log.stats")
                               if float(e.fields.get("generation_tps") or 0) > 0 or float(e.fields.get("prompt_tps") or 0) > 0]
    candidates = candidates or bundle.events("server_log.phase", "server_log.ready")
    return max(candidates, key=lambda e: (e.span.source, e.span.first_line), default=None)


def onset(analysis: Analysis) -> Event | None:
    """The event that marks the stop, or None when nothing stopped."""
    if not analysis.signs.trouble:
        return None
    stalled = {"flat_counter", "zero_throughput_running", "waits_after_ready", "stopped_process"}
    if any(kind in stalled for kind, _ in analysis.signs.trouble):
        progress = last_progress(analysis.bundle)
        if progress is not None:
            return progress
    timed = [event for _, event in analysis.signs.trouble if event.stamp is not None]
    return timed[0] if timed else None
