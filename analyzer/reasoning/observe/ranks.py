"""Which rank did not arrive at a collective."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.reasoning.bundle import Bundle, Observation
from parsers.event import Event


def observe(bundle: Bundle) -> Iterator[Observation]:
    """Ranks behind, from explicit statements and from flight records of several ranks; NCCL that fell silent."""
    for event in bundle.events("collective.rank_behind"):
        yield Observation("rank_behind", [event], {k: event.fields.get(k) for k in ("rank", "op", "seq")})
    yield from _behind(bundle.events("collective.flight_record"))
    yield from _silence(bundle)


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _behind(records: list[Event]) -> Iterator[Observation]:
    reached: dict[int, tuple[int, Event]] = {}
    for event in records:
        rank, seq = _int(event.fields.get("rank")), _int(event.fields.get("seq"))
        if rank is None or seq is None:
            continue
        if rank not in reached or seq > reached[rank][0]:
            reached[rank] = (seq, event)
    if len(reached) < 2:
        return
    furthest = max(seq for seq, _ in reached.values())
    slow = {rank: (seq, event) for rank, (seq, event) in reached.items() if seq < furthest}
    if not slow:
        return
    waiting = next(event for seq, event in reached.values() if seq == furthest)
    for rank, (_seq, event) in sorted(slow.items()):
        yield Observation(
            "rank_behind", [waiting, event], {"rank": rank, "op": waiting.fields.get("op"), "seq": furthest}
        )
    yield Observation(
        "rank_count_mismatch", [waiting, *(e for _, e in slow.values())], {"ranks": ", ".join(map(str, sorted(slow)))}
    )


_AFTER = (
    "server_log.stats",
    "server_log.ready",
    "server_log.phase",
    "collective.result",
    "server_log.exception",
    "server_log.record",
    "server_log.engine_dead",
    "server_log.shutdown",
    "collective.watchdog_timeout",
    "collective.nccl_warn",
    "collective.rank_behind",
)
_SETTING_UP = ("dist_begin", "nccl", "dist")
"""Phases in which vLLM's workers find each other; after the last of them the first collective runs."""


def _silence(bundle: Bundle) -> Iterator[Observation]:
    """A source that ends where communicators were made: after `Init COMPLETE`, or after vLLM's own NCCL line."""
    done = [e for e in bundle.events("collective.nccl_init") if e.fields.get("step") == "complete"]
    named = [e for e in bundle.events("server_log.phase") if e.fields.get("phase") == "nccl"]
    for last in done[-1:] + named[-1:]:
        after = [
            e
            for kind in _AFTER
            for e in bundle.events(kind)
            if e.span.source == last.span.source
            and e.span.first_line > last.span.first_line
            and e.fields.get("phase") not in _SETTING_UP
            and str(e.fields.get("level")) != "WARNING"
        ]
        end = max(
            (r.last_line.number for r in bundle.reads if r.path == last.span.source and r.last_line is not None),
            default=0,
        )
        if not after and end - last.span.last_line <= 30:
            yield Observation("nccl_silence_after_init", [last])
            return
