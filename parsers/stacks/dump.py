"""The state that the line grammars of all text dumps share, and the walk over the lines.

A file may hold dumps of several tools (a server's stderr with a faulthandler dump, SGLang's log with py-spy output in
it), so every grammar sees every line; the first that takes it wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from parsers.contract import Line, Trouble
from parsers.pattern import lazy
from parsers.stacks.model import DumpError, Frame, Process, Thread

MAX_FRAMES = 2_000
"""Frames kept of one thread; a runaway recursion repeats itself long before."""
MAX_THREADS = 20_000
"""Threads kept of one source."""
MAX_FRAME_CHARS = 16_384

# `(EngineCore pid=17465) `, Ray's `(Worker pid=3, ip=1.2.3.4) `, docker compose's `sglang-1  | `: what a server or a
# supervisor writes before every line.
LINE_PREFIX = lazy(r"(?:\([A-Za-z][\w.]{0,40}(?: [\w.=]{1,40})?(?: ?pid=\d+)[^()]{0,60}\) ?|[\w.-]{1,60} +\| ?)")

Found = Process | DumpError | Trouble


class Grammar(Protocol):
    """One tool's line grammar."""

    tool: str

    def take(self, text: str, line: Line, dump: Dump) -> bool:
        """Reads one line (prefix and `\\r` taken off) into the dump; False when the line is not of this tool."""
        ...


class Dump:
    """Collects processes and threads while the lines go by."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.process: Process | None = None
        self.thread: Thread | None = None
        self.finished: list[Found] = []
        self.pending: DumpError | None = None
        self.threads = 0

    def settle(self) -> None:
        """Takes the pending error as final: no line that explains it will follow."""
        error, self.pending = self.pending, None
        if error is not None:
            self.finished.append(error)

    def begin_process(self, process: Process) -> Process:
        """Closes the process before and opens this one."""
        self.end_process()
        self.process = process
        return process

    def process_of(self, tool: str) -> Process:
        """The open process if it was dumped by `tool`, else a new one without a pid."""
        if self.process is None or self.process.tool != tool:
            self.begin_process(Process(tool))
        assert self.process is not None
        return self.process

    def begin_thread(self, process: Process, thread: Thread) -> None:
        """Opens a thread of the process."""
        self.threads += 1
        if self.threads > MAX_THREADS:
            if self.threads == MAX_THREADS + 1:
                self.finished.append(
                    Trouble(
                        self.source,
                        "limit",
                        f"more than {MAX_THREADS} threads: the rest is not read",
                        thread.header.number if thread.header else 0,
                    )
                )
            self.thread = None
            return
        process.threads.append(thread)
        self.thread = thread

    def add_frame(self, frame: Frame) -> None:
        """Adds the next outer frame to the open thread, if any."""
        if self.thread is None:
            return
        if len(self.thread.frames) >= MAX_FRAMES:
            self.thread.cut = True
            return
        self.thread.frames.append(frame)

    def end_process(self) -> None:
        """Closes the open process; one of which nothing was seen is dropped."""
        self.settle()
        process, self.process, self.thread = self.process, None, None
        if process is not None and (process.threads or process.header is not None):
            self.finished.append(process)

    def drain(self) -> Iterator[Found]:
        """What is finished so far."""
        finished, self.finished = self.finished, []
        yield from finished


def walk(lines: Iterable[Line], source: str, grammars: Sequence[Grammar]) -> Iterator[Found]:
    """Processes, dump errors and troubles of the lines, in their order."""
    dump = Dump(source)
    last: Grammar | None = None
    broken: Thread | None = None
    text = ""
    for line in lines:
        broken = None
        text = line.text.rstrip("\r")
        if len(text) > MAX_FRAME_CHARS:
            dump.finished.append(
                Trouble(
                    source, "limit", f"a line of {len(text)} characters is cut for reading", line.number, line.start
                )
            )
            text = text[:MAX_FRAME_CHARS]
        text = text.rstrip()
        if not text:
            if dump.process is not None and dump.process.python is not None:
                dump.process.whole_header = True
            continue
        if text[0] in "(" or "|" in text[:64]:
            found = LINE_PREFIX.match(text)
            if found:
                text = text[found.end() :]
                if not text.strip():
                    continue
        # The grammar that took the line before is asked first: frames of a dump follow one another.
        if last is not None and last.take(text, line, dump):
            continue
        for grammar in grammars:
            if grammar is not last and grammar.take(text, line, dump):
                last = grammar
                break
        else:
            last = None
            broken = dump.thread if text[0] in " #" else None  # a frame that is cut
            process = dump.process
            if process is not None and not process.threads and "Thread ".startswith(text[:7]):
                process.whole_header = False  # the header of its first thread is cut
            dump.thread = None
            dump.settle()
        if dump.finished:
            yield from dump.drain()
    if text[:1] != "[":  # a note of the debugger's, such as `[Inferior 1 detached]`, closes its last stack
        _mark_cut(dump.thread or broken)
    dump.end_process()
    yield from dump.drain()


ROOTS = frozenset((
    "<module>", "_bootstrap", "_start", "__libc_start_main", "__libc_start_call_main", "__libc_start_main_impl",
    "clone", "clone3", "start_thread", "__clone", "__clone3", "thread_start", "main", "_main", "Py_BytesMain",
    "Py_RunMain",
    "_bootstrap_inner", "run", "run_engine_core", "run_busy_loop", "worker_main", "worker_busy_loop",
    "run_scheduler_process", "event_loop_normal", "event_loop_overlap",
))  # fmt: skip
"""Functions at which a stack begins, by their bare names, and the loops of servers: what stands below them tells
nothing about what a thread waits for."""


def _mark_cut(thread: Thread | None) -> None:
    """The last stack of a source is taken as cut when it ends before a function at which stacks begin: what its outer
    frames would have shown is not known."""
    if thread is None:
        return
    whole = thread.frames[:-1] if thread.cut else thread.frames
    if not any(frame.bare in ROOTS for frame in whole[-6:]):
        thread.cut = thread.open_end = True
