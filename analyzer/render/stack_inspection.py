"""Host stacks on one screen: what each process waits for, threads with equal stacks together, the telling frames.

Only the `stacks` view of docs/report-format.md is read. A frame in the middle is left out by count, never silently.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from analyzer.render.sanitise import shorten, terminal

PROCESSES = 16
GROUPS = 8
TOP, BOTTOM = 5, 2
NAMES = 4

_WAITS = {
    "lock": "waits for a lock",
    "socket": "waits at a socket",
    "download": "downloads",
    "queue_idle": "idle: waits for the next message or request",
    "collective": "is inside a collective",
    "cuda_sync": "waits for the GPU (synchronize)",
    "jit_compile": "compiles",
    "file_lock": "waits for a lock file",
    "file_io": "reads or writes a file",
    "child_process": "waits for a child process",
    "sleep": "sleeps",
    "worker_reply": "waits for a worker's answer",
    "native": "is inside a native call",
    "running": "runs",
    "none": "wait not known",
}
View = dict[str, Any]


def stacks_text(view: View) -> list[str]:
    """The lines under the artifact's own line. Every string of the dump is made safe to print."""
    lines: list[str] = []
    processes = view.get("processes") or []
    for process in processes[:PROCESSES]:
        lines += ["", *_process(process)]
    if len(processes) > PROCESSES:
        lines.append(f"  … {len(processes) - PROCESSES} more processes (--format json has all)")
    for error in view.get("errors") or []:
        lines.append("  error    " + _safe(error.get("text") or error.get("error") or error))
    lines += [
        "",
        "  limits   one sample: a thread seen in a wait may be past it a moment later; compare two dumps",
    ]
    return lines


def _safe(value: object, limit: int = 110) -> str:
    return shorten(terminal(str(value)), limit)


def _process(process: View) -> list[str]:
    said = [f"pid {process.get('pid')}" if process.get("pid") is not None else "pid not told"]
    said += [f"Python {process['python']}"] if process.get("python") else []
    said += [_safe(process["tool"])] if process.get("tool") else []
    said += [f"at {process['time']}"] if process.get("time") else []
    lines = ["  " + terminal(" · ".join(said))]
    if process.get("command"):
        lines.append("    " + _safe(process["command"]))
    if process.get("reason"):
        lines.append("    why dumped: " + _safe(process["reason"]))
    groups = _groups(process.get("threads") or [])
    for threads in groups[:GROUPS]:
        lines += _group(threads)
    if len(groups) > GROUPS:
        rest = sum(len(threads) for threads in groups[GROUPS:])
        lines.append(f"    … {rest} more threads (--format json has all)")
    return lines


def _groups(threads: Iterable[View]) -> list[list[View]]:
    """Threads with equal stacks together: the main thread's and those that hold the GIL first, the idle last."""
    groups: dict[str, list[View]] = {}
    for thread in threads:
        groups.setdefault(str(thread.get("signature")), []).append(thread)

    def rank(group: list[View]) -> tuple[bool, bool, int]:
        told = any(t.get("owns_gil") or str(t.get("name")) == "MainThread" or t.get("current") for t in group)
        return (not told, group[0].get("wait") in ("queue_idle", "none"), -len(group))

    return sorted(groups.values(), key=rank)


def _group(threads: list[View]) -> list[str]:
    first = threads[0]
    names = [_safe(t.get("name") or f"thread {t.get('os_tid') or t.get('id')}", 40) for t in threads]
    who = ", ".join(names[:NAMES]) + (f" and {len(names) - NAMES} more" if len(names) > NAMES else "")
    count = f"{len(threads)} x " if len(threads) > 1 else ""
    notes = [_WAITS.get(str(first.get("wait")), _safe(first.get("wait")))]
    notes += ["holds the GIL"] if any(t.get("owns_gil") for t in threads) else []
    return [f"    {count}{who}: {', '.join(notes)}", *_frames(first.get("frames") or [])]


def _frames(frames: list[View]) -> list[str]:
    kept = [*frames[:TOP], *frames[max(TOP, len(frames) - BOTTOM) :]]
    lines = []
    for at, frame in enumerate(kept):
        hidden = len(frames) - TOP - BOTTOM
        if at == TOP and hidden > 0:
            lines.append(f"        … {hidden} frames")
        line = f":{frame['line']}" if frame.get("line") is not None else ""
        lines.append(f"        {_safe(frame.get('function'), 70)}  ({_safe(frame.get('file'), 60)}{line})")
    return lines
