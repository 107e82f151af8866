"""Does the server make progress: counters of /metrics scrapes, throughput lines, and what follows the warnings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import Any

from analyzer.reasoning.bundle import Bundle, Observation
from parsers.event import Event

COUNTERS = (
    "vllm:generation_tokens_total",
    "vllm:prompt_tokens_total",
    "vllm:iteration_tokens_total_count",
    "sglang:generation_tokens_total",
    "sglang:prompt_tokens_total",
)
PREEMPTIONS = ("vllm:num_preemptions_total",)
RUNNING = ("vllm:num_requests_running", "sglang:num_running_reqs")
SLOW = 2.0
"""Tokens per second below which a serving engine is called slow."""
SLOW_EACH, FEW = 1.0, 8
"""The same for each request, while no more than so many run."""
REFUSED = 3
"""Refused requests from which it counts that not one was answered."""


def observe(bundle: Bundle) -> Iterator[Observation]:
    """Flat and moving counters, throughput of zero with requests running, waits that passed or did not."""
    yield from _scrapes(bundle)
    for source, events in by_source(bundle.events("server_log.stats")):
        yield from _throughput(bundle, source, events)
    yield from _waits(bundle)
    yield from _refused(bundle)
    yield from _paused(bundle)


def by_source(events: list[Event]) -> list[tuple[str, list[Event]]]:
    ordered = sorted(events, key=lambda e: (e.span.source, e.span.first_line))
    return [(source, list(mine)) for source, mine in groupby(ordered, key=lambda e: e.span.source)]


def natural(name: str) -> list[tuple[int, str]]:
    """Sort key under which `metrics_2` stands before `metrics_10`."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _scrapes(bundle: Bundle) -> Iterator[Observation]:
    scrapes = sorted(bundle.events("metrics.scrape"), key=lambda e: (natural(e.span.source), e.span.first_line))
    for one, two in pairwise(scrapes):
        before, after = _values(one), _values(two)
        running = max((after.get(name, 0.0) for name in RUNNING), default=0.0)
        was_running = max((before.get(name, 0.0) for name in RUNNING), default=0.0)
        grown = {name: after[name] - before[name] for name in COUNTERS if name in before and name in after}
        if not grown:
            continue
        moved = {name: delta for name, delta in grown.items() if delta > 0}
        for name in PREEMPTIONS:
            evicted = after.get(name, 0.0) - before.get(name, 0.0)
            if name in before and evicted > 0 and (moved or running > 0):
                yield Observation(
                    "moving_counter", [_line_of(two, name), _line_of(one, name)], {"counter": name, "delta": evicted}
                )
        if moved:
            name = max(moved, key=lambda n: moved[n])
            yield Observation("moving_counter", [two, one], {"counter": name, "delta": moved[name]})
            yield Observation("serving_progress", [two], {"what": name, "value": moved[name]})
        elif running > 0 and was_running > 0:
            for name in grown:
                yield Observation(
                    "flat_counter",
                    [_line_of(two, name), _line_of(one, name)],
                    {"counter": name, "value": after[name], "running": running},
                )
    for scrape in scrapes:
        tokens = max((_values(scrape).get(name, 0.0) for name in COUNTERS), default=0.0)
        if tokens > 0 and len(scrapes) == 1:
            yield Observation("serving_progress", [scrape], {"what": "tokens counted so far", "value": tokens})


def _values(event: Event) -> dict[str, float]:
    values: Any = event.fields.get("values") or {}
    return values if isinstance(values, dict) else {}


def _line_of(scrape: Event, name: str) -> Event:
    """The sample line of one metric as an event of its own, where the parser kept it; else the scrape."""
    lines: Any = scrape.fields.get("lines") or {}
    found = lines.get(name) if isinstance(lines, dict) else None
    if isinstance(found, Event):
        return found
    return scrape


def number(event: Event, name: str) -> float:
    value = event.fields.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _throughput(bundle: Bundle, source: str, stats: list[Event]) -> Iterator[Observation]:
    moving = [e for e in stats if number(e, "generation_tps") > 0 or number(e, "prompt_tps") > 0]
    if moving:
        yield Observation(
            "serving_progress", [moving[-1]], {"what": "throughput", "value": number(moving[-1], "generation_tps")}
        )
    last = stats[-1]
    idle = number(last, "generation_tps") == 0 and number(last, "prompt_tps") == 0
    if idle and number(last, "running") > 0:
        answered = [
            e
            for e in bundle.events("server_log.request")
            if e.span.source == source
            and e.span.first_line > last.span.first_line
            and int(e.fields.get("status") or 0) < 400
        ]
        if not answered:
            yield Observation("zero_throughput_running", [last], {"running": number(last, "running")})
    waits = [e for e in bundle.events("server_log.shm_broadcast_wait") if e.span.source == source]
    if number(last, "generation_tps") > 0 and not any(e.span.first_line > last.span.first_line for e in waits):
        yield Observation("moving_at_end", [last], {"generation_tps": number(last, "generation_tps")})
    end = stats[-2:]  # lines that say the same are thinned out to the first and the last
    shrinks = len(end) == 2 and number(end[1], "waiting") < number(end[0], "waiting")
    if len(end) == 2 and not shrinks and all(_queue_stands(e) for e in end):
        yield Observation("queue_stands", [last, end[0]], {n: number(last, n) for n in ("waiting", "running")})
    busy = [e for e in stats if number(e, "running") > 0]
    slow = [e for e in busy if _crawls(e)]
    if len(stats) >= 2 and all(number(e, "generation_tps") > 0 and number(e, "running") > 0 for e in end):
        yield Observation("still_moving", [last, end[0]], {"generation_tps": number(last, "generation_tps")})
    if len(slow) >= 2 and len(slow) >= 0.8 * len(busy):
        yield Observation(
            "slow_but_moving", [slow[-1], slow[0]], {"generation_tps": number(slow[-1], "generation_tps")}
        )


def _crawls(stats: Event) -> bool:
    tokens, running = number(stats, "generation_tps"), number(stats, "running")
    return 0 < tokens < SLOW or (0 < tokens < SLOW_EACH * running and running <= FEW)


def _queue_stands(stats: Event) -> bool:
    """Several times more requests wait than run, and no prompt was read: the queue is not served."""
    waiting = number(stats, "waiting")
    return waiting >= 5 and waiting >= 4 * number(stats, "running") and number(stats, "prompt_tps") == 0


def _waits(bundle: Bundle) -> Iterator[Observation]:
    for source, waits in by_source(bundle.events("server_log.shm_broadcast_wait")):
        last_wait = waits[-1].span.first_line
        marks = [
            e
            for e in bundle.events("server_log.phase", "server_log.ready", "server_log.progress_bar")
            if e.span.source == source
        ]
        tokens = [
            e
            for e in bundle.events("server_log.stats")
            if e.span.source == source and (number(e, "generation_tps") > 0 or number(e, "prompt_tps") > 0)
        ]
        after = [e for e in marks + tokens if e.span.first_line > last_wait]
        ready = [e for e in bundle.events("server_log.ready") if e.span.source == source]
        if after:
            yield Observation(
                "waits_then_progress", [waits[-1], min(after, key=lambda e: e.span.first_line)], {"count": len(waits)}
            )
            yield Observation("late_progress", [after[-1]])
        elif tokens or (ready and ready[0].span.first_line < waits[0].span.first_line):
            yield Observation("waits_after_ready", [waits[0], waits[-1]], {"count": len(waits)})


def _refused(bundle: Bundle) -> Iterator[Observation]:
    """Several requests were refused, and the log shows neither an answered one nor a token."""
    served = {e.span.source for e in bundle.events("server_log.phase") if e.fields.get("phase") == "first_request"}
    served |= {e.span.source for e in bundle.events("server_log.stats") if number(e, "generation_tps") > 0}
    for source, answers in by_source(bundle.events("server_log.request")):
        mine = [e for e in answers if e.fields.get("method") == "POST" and "/v1/" in str(e.fields.get("path"))]
        if source not in served and len(mine) >= REFUSED:
            yield Observation("all_refused", [mine[-1], mine[0]], {"count": len(mine)})


def _paused(bundle: Bundle) -> Iterator[Observation]:
    """The scheduler was paused, and the log shows neither that it was let go again nor tokens after it."""
    for source, states in by_source(bundle.events("server_log.pause")):
        last = states[-1]
        tokens = [e for e in bundle.events("server_log.stats") if e.span.source == source
                  and e.span.first_line > last.span.first_line and number(e, "generation_tps") > 0]
        if str(last.fields.get("state")).startswith("PAUSED") and len(tokens) < 2:
            yield Observation("left_paused", [last], {"state": last.fields.get("state")})
