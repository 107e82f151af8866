"""py-spy's JSON dump (`py-spy dump --json`): a list of threads with their frames, innermost first.

Fields (py-spy's StackTrace): pid, thread_id, thread_name, os_thread_id, active, owns_gil, frames of name, filename,
short_filename, module, line, locals, is_entry, is_shim_entry, and process_info. This form tells a GIL hold of a
sleeping thread, which the text form cannot.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from parsers.contract import Line, Trouble
from parsers.pattern import lazy
from parsers.stacks.dump import MAX_FRAMES, MAX_THREADS, Found
from parsers.stacks.model import Frame, Process, Thread, looks_native

MAX_CHARS = 64 * 1024 * 1024
MAX_NESTING = 64
OPENING = lazy(
    r'\s*\[\s*(?:\{\s*"pid"\s*:|\{\s*"thread_id"\s*:|\{\s*"process_info"\s*:|\{[^{}\[\]]{0,300}"os_thread_id")'
)
FRAME_NAME = lazy(r'\s*"name"\s*:')
FRAME_FILE = lazy(r'\s*"filename"\s*:')
THREAD_MARK = lazy(r'\s*"os_thread_id"\s*:')


def looks_like_dump(head: str) -> bool:
    """Whether the head of a text is py-spy's JSON."""
    return bool(OPENING.match(head)) and ('"os_thread_id"' in head or '"owns_gil"' in head)


def _depth(text: str) -> int:
    """Deepest nesting of brackets outside strings: checked before `json.loads`, which recurses."""
    depth = deepest = 0
    for token in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', text):
        kind = token[0][0]
        if kind in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif kind in "]}":
            depth -= 1
    return deepest


def _recover(text: str) -> list[Any]:
    """The whole threads of a dump that was cut: objects of the outer list, one after the other."""
    decoder = json.JSONDecoder()
    at = text.find("[") + 1
    threads: list[Any] = []
    while at < len(text) and len(threads) < MAX_THREADS:
        start = text.find("{", at)
        if start < 0:
            break
        try:
            value, at = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            break
        threads.append(value)
    return threads


def read_json(lines: Iterable[Line], source: str) -> Iterator[Found]:
    """Processes and troubles of one JSON dump."""
    kept: list[Line] = []
    size = 0
    for line in lines:
        size += len(line.text) + 1
        if size > MAX_CHARS:
            yield Trouble(source, "limit", f"more than {MAX_CHARS} characters of JSON", line.number, line.start)
            break
        kept.append(line)
    text = "\n".join(line.text for line in kept)
    if not text.strip():
        return
    if _depth(text) > MAX_NESTING:
        yield Trouble(source, "limit", f"JSON nested deeper than {MAX_NESTING} levels is not read", kept[0].number)
        return
    try:
        document = json.loads(text)
    except ValueError as error:
        document = _recover(text)
        yield Trouble(
            source, "truncated", f"the JSON does not end ({error.args[0]}): {len(document)} whole threads read",
            kept[-1].number, kept[-1].start,
        )  # fmt: skip
    except RecursionError:
        yield Trouble(source, "limit", "the JSON is nested too deeply")
        return
    if not isinstance(document, list):
        yield Trouble(source, "corrupt", "py-spy's JSON is a list of threads; this is not", kept[0].number)
        return
    yield from _processes(document, kept)


def _processes(document: list[Any], lines: list[Line]) -> Iterator[Process]:
    frame_lines, thread_lines = _places(lines)
    processes: dict[object, Process] = {}
    seen_frames = 0
    for number, entry in enumerate(document[:MAX_THREADS]):
        if not isinstance(entry, dict):
            continue
        pid = entry.get("pid") if isinstance(entry.get("pid"), int) else None
        info = entry.get("process_info")
        process = processes.get(pid)
        if process is None:
            process = processes[pid] = Process("py-spy", pid=pid, header=lines[0])
        if isinstance(info, dict) and isinstance(info.get("command_line"), str):
            process.command = info["command_line"] or None
            parent = info.get("parent")
            if isinstance(parent, dict) and isinstance(parent.get("pid"), int):
                process.parent = parent["pid"]
        tid = entry.get("os_thread_id")
        known = tid if isinstance(tid, int) and not isinstance(tid, bool) else None
        name = entry.get("thread_name")
        thread = Thread(
            known if known is not None else str(entry.get("thread_id")),
            known,
            name if isinstance(name, str) else None,
            "active" if entry.get("active") else "idle",
            bool(entry.get("owns_gil")) if "owns_gil" in entry else None,
            header=thread_lines[number] if number < len(thread_lines) else lines[0],
        )
        frames = entry.get("frames")
        for frame in frames if isinstance(frames, list) else ():
            at = frame_lines[seen_frames] if seen_frames < len(frame_lines) else thread.header
            seen_frames += 1
            if not isinstance(frame, dict) or len(thread.frames) >= MAX_FRAMES:
                continue
            file = str(frame.get("short_filename") or frame.get("filename") or "")
            where = frame.get("line")
            line = where if isinstance(where, int) and where > 0 else None
            function = str(frame.get("name") or "??")
            thread.frames.append(Frame(function, file, line, looks_native(function, file, line), at))
        process.threads.append(thread)
    yield from processes.values()


def _places(lines: list[Line]) -> tuple[list[Line], list[Line]]:
    """The line of each frame's name and of each thread, in order, when the JSON is pretty printed; else empty."""
    if len(lines) < 3:
        return [], []
    frames: list[Line] = []
    threads: list[Line] = []
    for at, line in enumerate(lines):
        if FRAME_FILE.match(line.text):
            named = lines[at - 1] if at and FRAME_NAME.match(lines[at - 1].text) else line
            frames.append(named)
        elif THREAD_MARK.match(line.text):
            threads.append(line)
    return frames, threads
