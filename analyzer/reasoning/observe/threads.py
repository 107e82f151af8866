"""What stacks and process states add up to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from analyzer.reasoning.bundle import Bundle, Observation
from analyzer.reasoning.observe.progress import by_source, natural, number
from parsers.event import Event
from parsers.pattern import lazy

WAITING = {
    "lock",
    "socket",
    "download",
    "collective",
    "cuda_sync",
    "jit_compile",
    "file_lock",
    "sleep",
    "worker_reply",
    "native",
}
SPIN = lazy(r"\b(?:sched_yield|acquire_read|acquire_write|SpinCondition\.wait|worker_busy_loop)\b")
SERVER_COMMAND = lazy(r"(?i)VLLM|EngineCore|Worker|sglang|python|ray::")


def observe(bundle: Bundle) -> Iterator[Observation]:
    """Waits of main threads, the same stack in two dumps, GIL holders, lock cycles, stopped processes."""
    threads = bundle.events("stacks.thread")
    mains = [t for t in threads if _is_main(t, threads)]
    for thread in mains:
        wait = thread.fields.get("wait")
        fields: dict[str, object] = {
            "process": _process(thread),
            "wait": wait,
            "top": thread.fields.get("top"),
            # All of them: what a thread waits in (a lock, a driver call) stands above what it was doing.
            "function": _frames(thread) or thread.fields.get("top"),
        }
        if wait in WAITING:
            yield Observation("thread_waits", [thread], fields)
        if wait == "worker_reply":
            yield Observation("engine_waits_for_worker", [thread], fields)
        if wait == "queue_idle" and "Engine" in str(fields["process"]):
            yield Observation("idle_engine_stack", [thread], fields)
        if _spins(thread):
            yield Observation("idle_spin", [thread], fields)
    yield from _twice(mains)
    yield from _stands(bundle, mains)
    yield from _gil(threads)
    yield from _locks(threads)
    yield from _stopped(bundle)


def _is_main(thread: Event, threads: list[Event]) -> bool:
    name = str(thread.fields.get("thread") or thread.fields.get("name") or "")
    if name:
        return name == "MainThread" or "main" in name.lower()
    tid, pid = thread.fields.get("tid"), thread.actor.pid
    if tid is not None and pid is not None and tid == pid:
        return True
    mine = [t for t in threads if t.span.source == thread.span.source and t.actor.pid == pid]
    return len(mine) == 1


def _process(thread: Event) -> str:
    return str(thread.actor.process or thread.fields.get("command") or thread.actor.pid or "")


def _frames(thread: Event) -> list[str]:
    frames = thread.fields.get("frames") or []
    names = []
    if isinstance(frames, list):
        for frame in frames:
            names.append(
                str(
                    frame.get("function")
                    if isinstance(frame, dict)
                    else frame[0]
                    if isinstance(frame, list | tuple) and frame
                    else frame
                )
            )
    return names


def _spins(thread: Event) -> bool:
    if thread.fields.get("cut"):
        return False  # what called the loop is not shown
    return any(SPIN.search(frame) for frame in _frames(thread)[:3])


def _twice(threads: list[Event]) -> Iterator[Observation]:
    seen: dict[tuple[object, ...], Event] = {}
    told: set[tuple[object, ...]] = set()
    for thread in threads:
        frames = tuple(_frames(thread))
        if not frames or thread.fields.get("wait") in ("queue_idle", "none", None):
            continue
        key = (thread.actor.pid or _process(thread), frames)
        first = seen.setdefault(key, thread)
        apart = first is not thread and (
            first.span.source != thread.span.source or first.span.first_line != thread.span.first_line
        )
        if apart and key not in told:
            told.add(key)
            yield Observation(
                "same_stack_twice",
                [thread, first],
                {"process": _process(thread), "top": frames[0], "wait": thread.fields.get("wait")},
            )


def _stands(bundle: Bundle, mains: list[Event]) -> Iterator[Observation]:
    """The engine waits for the answer to the same step in two dumps, or in one while the log's last line says that
    nothing runs; and nothing else shows that it moves. A busy engine can be met twice in that place: its counters, its
    last throughput line or a worker at work then tell so."""
    if bundle.observed("moving_counter") or any(
            t.fields.get("wait") == "running" and "Worker" in _process(t) for t in mains):
        return
    waits = [t for t in mains if t.fields.get("wait") == "worker_reply"
             and any("EngineCore" in name for name in (_process(t), *_frames(t)))]
    ends = [stats[-1] for _, stats in by_source(bundle.events("server_log.stats"))]
    if any(number(e, "generation_tps") > 0 and number(e, "running") > 0 for e in ends):
        return
    idle = bool(ends) and not bundle.events("server_log.shutdown") and all(
        number(e, name) == 0 for e in ends for name in ("generation_tps", "prompt_tps", "running"))
    for one, two in pairwise(sorted(waits, key=lambda t: (natural(t.span.source), t.span.first_line))):
        if one.actor.pid == two.actor.pid and _frames(one) == _frames(two):
            yield Observation("engine_stands", [two, one], {"process": _process(two), "top": _frames(two)[0]})
            return
    if waits and idle:
        one = waits[0]
        yield Observation("engine_stands", [one, ends[0]], {"process": _process(one), "top": _frames(one)[0]})


def _gil(threads: list[Event]) -> Iterator[Observation]:
    for thread in threads:
        if not thread.fields.get("owns_gil"):
            continue
        others = [
            t
            for t in threads
            if t is not thread and t.span.source == thread.span.source and t.actor.pid == thread.actor.pid
        ]
        quiet = thread.fields.get("state") == "idle" or thread.fields.get("wait") in (
            "native",
            "sleep",
            "socket",
            "lock",
        )
        if quiet and others and all(t.fields.get("state") != "active" for t in others):
            yield Observation(
                "gil_held",
                [thread],
                {"process": _process(thread), "thread": thread.fields.get("thread"), "top": thread.fields.get("top")},
            )


def _locks(threads: list[Event]) -> Iterator[Observation]:
    """Two or more threads of one process that wait to take a lock. A wait on a condition is idleness, not a lock, and
    two dumps of one thread are one thread."""
    by_process: dict[tuple[str, object], dict[object, Event]] = {}
    for thread in threads:
        top = str(thread.fields.get("top") or "")
        if thread.fields.get("wait") == "lock" and not re.search(r"(?:^|\.)(?:wait|get|join)$", top):
            key = thread.fields.get("tid") or thread.fields.get("thread") or thread.span.first_line
            by_process.setdefault((thread.span.source, thread.actor.pid), {}).setdefault(key, thread)
    for mine in by_process.values():
        waiting = list(mine.values())
        if len(waiting) >= 2:
            yield Observation("lock_cycle", waiting[:4], {"process": _process(waiting[0]), "threads": len(waiting)})


FROZEN = ("refrigerator", "__refrigerator", "do_freezer_trap", "do_signal_stop", "ptrace_stop", "do_jobctl_trap")
"""Where a task stands in the kernel that a freezer group, a signal or a debugger stopped (kernel/freezer.c,
kernel/signal.c); a frozen one is listed in state D or S."""


def _stopped(bundle: Bundle) -> Iterator[Observation]:
    waits: dict[str, list[Event]] = {}
    for event in bundle.events("process.status"):
        if not SERVER_COMMAND.search(str(event.fields.get("name") or event.text)):
            continue
        if event.fields.get("wchan") in FROZEN:
            yield Observation(
                "stopped_process",
                [event],
                {"pid": event.fields.get("pid"), "name": event.fields.get("name"), "how": event.fields["wchan"]},
            )
        elif str(event.fields.get("state", "")).upper().startswith("D"):
            waits.setdefault(event.span.source, []).append(event)
    for mine in waits.values():
        if len({event.fields.get("pid") for event in mine}) >= 2:
            yield Observation("uninterruptible", mine[:4], {"count": len(mine)})
    for event in bundle.events("process.status"):
        if str(event.fields.get("state", "")).upper().startswith("T") and SERVER_COMMAND.search(
            str(event.fields.get("name") or event.text)
        ):
            yield Observation(
                "stopped_process",
                [event],
                {"pid": event.actor.pid or event.fields.get("pid"), "name": event.fields.get("name"), "how": "state T"},
            )
    for event in bundle.events("stacks.error"):
        if event.fields.get("error") == "stopped_process" and event.fields.get("certainty") != "hint":
            yield Observation(
                "stopped_process",
                [event],
                {"pid": event.actor.pid, "how": "the stack dump failed on a stopped process"},
            )
