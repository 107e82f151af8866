"""Stack dumps: py-spy (text, JSON, top), faulthandler, vLLM watchdog files, SGLang inline dumps, gdb backtraces.

Events: `stacks.process`, `stacks.thread`, `stacks.error` and the fact `python.version`. A thread's event quotes the
frame that tells what the thread waits for; the whole stack is in its fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from parsers.contract import Line, Trouble
from parsers.event import Actor, Event, fact
from parsers.pattern import lazy
from parsers.stacks import faulthandler, gdb, pyspy_json, pyspy_text, pytest_timeout
from parsers.stacks.dump import LINE_PREFIX, Found, walk
from parsers.stacks.model import DumpError, Frame, Process, Thread, groups, role, signature
from parsers.stacks.waits import Wait, read_wait

MAX_EVENT_FRAMES = 80
"""Frames in a thread's event; the inspect view has all."""

STRONG = lazy(
    r"Process \d+: |Thread (?:0x[0-9A-Fa-f]+|\d+) \((?:active|idle)"
    r"|(?:Current t|T)hread 0x[0-9a-fA-F]+.{0,80}\(most recent call|Stack \(most recent call first\)"
    r"|Fatal Python error: |>>> Call stack dump #|Thread \d+ \((?:Thread 0x|LWP |process )|Timeout \(\d+:\d\d:\d\d"
    r"|~{3,} Stack of .{1,200}? \(\d{1,20}\) ~{3,}|\+{3,} Timeout \+{3,}"
    r"|#\d+ +0x[0-9a-fA-F]+ in .* \(|\[[^\]]{10,60}\] Pyspy dump for| *%Own +%Total"
)
WEAK = lazy(
    r' {2,}\S.* \(.+\)$|  File ".*", line (?:\d+|\?\?\?) in |Python v\d|Parent Process \d|-{40,}$|={40,}$'
    r"| {8,}(?:Arguments|Locals):| {12}\w+: |#\d+ +|Extension modules: |\[(?:New|Thread|Switching|Inferior|Current) "
    r"|    +\S| *\d+\.\d+% +\d+\.\d+% |GIL: |  <no Python frame>|Using host libthread_db"
)


def _share(head: str, tool: re.Pattern[str]) -> float:
    """How surely a text is a stack dump: by the share of its lines that a grammar knows; 0 without one of `tool`'s."""
    strong = weak = other = 0
    ours = False
    for text in head.split("\n")[:400]:
        text = text.rstrip()
        if not text:
            continue
        found = LINE_PREFIX.match(text)
        if found:
            text = text[found.end() :]
        if STRONG.match(text):
            strong += 1
            ours = ours or bool(tool.match(text))
        elif WEAK.match(text):
            weak += 1
        else:
            other += 1
    if not ours:
        return 0.0
    share = (strong + weak) / max(1, strong + weak + other)
    return 0.97 if share >= 0.75 else 0.92 if share >= 0.6 else 0.5 if share >= 0.35 else 0.1


_BY_ABSENCE = frozenset(("native", "running", "lock", "sleep", "socket", "child_process", "file_io", "queue_idle"))
"""Waits that the outer frames could have explained as something else (an idle queue, a download)."""


def _wait(thread: Thread) -> Wait:
    # The thread that wrote a faulthandler dump was running: it crashed, or it is the watchdog itself.
    state = "active" if thread.current and thread.state == "unknown" else thread.state
    wait = read_wait(thread.frames, state, thread.name)
    if thread.open_end and wait.kind in _BY_ABSENCE:
        return Wait("none", wait.frame)
    return wait


def _frame_view(frame: Frame) -> dict[str, Any]:
    return {"function": frame.function, "file": frame.file, "line": frame.line, "native": frame.native}


def _thread_view(thread: Thread) -> dict[str, Any]:
    wait = _wait(thread)
    return {
        "name": thread.name,
        "id": thread.id,
        "os_tid": thread.os_tid,
        "state": thread.state,
        "owns_gil": thread.owns_gil,
        "wait": wait.kind,
        "signature": signature(thread.frames),
        "current": thread.current,
        "frames": [_frame_view(frame) for frame in thread.frames],
    }


def _events(process: Process, source: str) -> Iterator[Event | Trouble]:
    named = role(process.command) or (process.command if process.tool == "vllm-watchdog" else None)
    actor = Actor(process=named, pid=process.pid)
    if process.header is not None:
        fields: dict[str, Any] = {"pid": process.pid, "command": process.command, "tool": process.tool}
        for key in ("reason", "dump", "parent"):
            value = getattr(process, key)
            if value is not None:
                fields[key] = value
        fields["threads"] = len(process.threads)
        yield Event("stacks.process", process.header.span(source), process.header.text, process.stamp, actor, fields)
    if process.python and process.python_line is not None:
        line = process.python_line
        yield fact("python.version", process.python, line.span(source), line.text, actor=actor)
    for thread in process.threads:
        wait = _wait(thread)
        telling = thread.frames[wait.frame].at if wait.frame is not None and thread.frames else None
        line_or_none = telling or thread.header
        if line_or_none is None:
            continue
        yield Event(
            "stacks.thread",
            line_or_none.span(source),
            line_or_none.text if len(line_or_none.text) <= 2_000 else line_or_none.text[:2_000],
            process.stamp or line_or_none.outer,
            actor,
            {
                "thread": thread.name,
                "tid": thread.os_tid if thread.os_tid is not None else thread.id,
                "state": thread.state,
                "owns_gil": thread.owns_gil,
                "top": thread.frames[0].function if thread.frames else None,
                "frames": [f"{frame.function} ({_where(frame)})" for frame in thread.frames[:MAX_EVENT_FRAMES]],
                "wait": wait.kind,
                "signature": signature(thread.frames),
                "main": _is_main(process, thread),
                "current": thread.current,
                **({"cut": True} if thread.open_end else {}),
            },
        )
        if thread.cut:
            yield Trouble(source, "truncated", "a stack is cut in the dump", line_or_none.number, line_or_none.start)
    if not process.threads and process.tool == "py-spy" and process.header is not None:
        at = process.header
        if not process.whole_header:
            yield Trouble(source, "truncated", "the dump is cut in its header", at.number, at.start)
            return
        # The header is printed before the process is suspended: nothing after it means that this failed, most often
        # since the process was stopped already, or that the file is cut there. The reason itself stands on stderr,
        # which may not be at hand.
        yield Event(
            "stacks.error",
            at.span(source),
            at.text,
            process.stamp,
            actor,
            {"error": "stopped_process", "certainty": "hint"},
        )


def _is_main(process: Process, thread: Thread) -> bool:
    if thread.name == "MainThread" or (thread.os_tid is not None and thread.os_tid == process.pid):
        return True
    # faulthandler lists the main thread last and names none.
    return process.tool in ("faulthandler", "vllm-watchdog") and thread is process.threads[-1] and thread.name is None


def _where(frame: Frame) -> str:
    return f"{frame.file}:{frame.line}" if frame.line is not None else frame.file


class StackDump:
    """A TextParser of one dump format. The formats differ in name and in how they are recognised; reading is shared,
    since one file may hold dumps of several tools."""

    kind: ClassVar[str] = "stacks"
    marks: ClassVar[tuple[bytes, ...]] = ()
    name: str

    def __init__(
        self,
        name: str,
        sniff: Callable[[str], float],
        claims: re.Pattern[str],
        found: Callable[[Iterable[Line], str], Iterator[Found]],
    ) -> None:
        self.name = name
        self._sniff = sniff
        self._claims = claims
        self._found = found

    def sniff(self, head: str) -> float:
        """See `parsers.contract.TextParser`."""
        return self._sniff(head)

    def claims(self, text: str) -> bool:
        """See `parsers.contract.TextParser`."""
        return bool(self._claims.match(text))

    def read(self, lines: Iterable[Line], source: str) -> Iterator[Event | Trouble]:
        """Events of the dump, process by process."""
        for found in self._found(lines, source):
            if isinstance(found, Process):
                yield from _events(found, source)
            elif isinstance(found, DumpError):
                yield Event(
                    "stacks.error",
                    found.at.span(source),
                    found.at.text,
                    None,
                    Actor(pid=found.pid),
                    {"error": found.error, "certainty": found.certainty},
                )
            else:
                yield found

    def inspect(self, lines: Iterable[Line], source: str) -> dict[str, Any]:
        """`processes` with their threads and frames, `groups` of equal stacks, and `errors` of the dumping tool."""
        everything = list(self._found(lines, source))
        processes = [found for found in everything if isinstance(found, Process)]
        waits = {id(thread): _wait(thread).kind for process in processes for thread in process.threads}
        return {
            "processes": [
                {
                    "pid": process.pid,
                    "command": process.command,
                    "python": process.python,
                    "parent": process.parent,
                    "tool": process.tool,
                    "dump": process.dump,
                    "reason": process.reason,
                    "time": process.stamp.text if process.stamp else None,
                    "threads": [_thread_view(thread) for thread in process.threads],
                }
                for process in processes
            ],
            "groups": groups(processes, waits),
            "errors": [
                {"error": found.error, "text": found.at.text, "line": found.at.number, "certainty": found.certainty}
                for found in everything
                if isinstance(found, DumpError)
            ],
        }


def _read_text(lines: Iterable[Line], source: str) -> Iterator[Found]:
    grammars = (
        pyspy_text.PySpyText(),
        pytest_timeout.PytestTimeout(),
        faulthandler.FaultHandler(),
        gdb.Gdb(),
        pyspy_text.PySpyTop(),
    )
    return walk(lines, source, grammars)


PYSPY_LINES = lazy(
    r"Process \d+: |Thread (?:0x[0-9A-Fa-f]+|\d+) \((?:active|idle)|\[[^\]]{10,60}\] Pyspy dump for"
    r"| *%Own +%Total|GIL: +\d+\.\d+%, Act"
)
PYSPY_CLAIMS = lazy(
    r"Process \d+: (?:\S|$)|Python v\d+\.\d+\.\d+ \(/|Parent Process \d+: "
    r'|Thread (?:0x[0-9A-Fa-f]+|\d+) \((?:active|idle)(?:\+gil)?\)(?:: "|$)'
    r"|Permission Denied: Try running again with elevated permissions|Error: Failed to get process executable name"
    r"|Error: Failed to find python version|Error: Failed to get stack traces| +%Own +%Total +OwnTime"
    r"|GIL: +\d+\.\d+%, Active: +\d"
)
FAULTHANDLER_LINES = lazy(
    r"(?:Current t|T)hread 0x[0-9a-fA-F]+.{0,80}\(most recent call|Stack \(most recent call"
    r"|Fatal Python error: |>>> Call stack dump"
)
FAULTHANDLER_CLAIMS = lazy(
    r"(?:Current thread|Thread) 0x[0-9a-fA-F]{8,16}(?: \[[^\]]*\])? \(most recent call first\):|Fatal Python error: "
    r"|Stack \(most recent call first\):|>>> Call stack dump #\d+ at |Timeout \(\d+:\d\d:\d\d(?:\.\d+)?\)!$"
    r"|Extension modules: \w"
    r'|  File "[^"]*", line (?:\d+|\?\?\?) in '
)
PYTEST_LINES = lazy(r"~{3,} Stack of .{1,200}? \(\d{1,20}\) ~{3,}|\+{3,} Timeout \+{3,}\s*$")
GDB_LINES = lazy(r"Thread \d+ \((?:Thread 0x|LWP |process )|#\d+ +0x[0-9a-fA-F]+ in .* \(")
GDB_CLAIMS = lazy(
    r"Thread \d+ \((?:Thread 0x[0-9a-fA-F]+ \()?(?:LWP|process) \d+\)?.{0,60}\):$"
    r"|#\d+ +0x[0-9a-fA-F]{8,16} in [^<]{1,400}\(.{0,2000}(?: from /\S+|\(\)| at \S+:\d+)$"
    r"|\[Thread debugging using libthread_db|Using host libthread_db library"
)


def _sniff_pyspy(head: str) -> float:
    if pyspy_text.is_error_text(head):
        return 0.97
    return _share(head, PYSPY_LINES)


PARSERS = (
    StackDump("pyspy", _sniff_pyspy, PYSPY_CLAIMS, _read_text),
    StackDump(
        "pyspy_json",
        lambda head: 0.98 if pyspy_json.looks_like_dump(head) else 0.0,
        lazy(r"(?!)"),
        pyspy_json.read_json,
    ),
    StackDump("faulthandler", lambda head: _share(head, FAULTHANDLER_LINES), FAULTHANDLER_CLAIMS, _read_text),
    StackDump("pytest_timeout", lambda head: _share(head, PYTEST_LINES), PYTEST_LINES, _read_text),
    StackDump("gdb", lambda head: _share(head, GDB_LINES), GDB_CLAIMS, _read_text),
)
