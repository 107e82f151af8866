"""Stacks that pytest-timeout prints: `~~~ Stack of NAME (IDENT) ~~~`, then the traceback module's lines.

Layout: pytest_timeout.py (dump_stacks, 1.4 to 2.4) between two `+++ Timeout +++` rules. Frames stand as in a traceback,
the outermost first, each followed by its source line.
"""

from __future__ import annotations

from parsers.contract import Line
from parsers.pattern import lazy
from parsers.stacks.dump import Dump
from parsers.stacks.model import Frame, Process, Thread

RULE = lazy(r"\+{3,} Timeout \+{3,}\s*$")
STACK = lazy(r"~{3,} Stack of (?P<name>.{1,200}?) \((?P<ident>\d{1,20})\) ~{3,}\s*$")
FRAME = lazy(r'  File "(?P<file>[^"]{1,1000})", line (?P<line>\d{1,9}), in (?P<function>\S.{0,300})$')
SOURCE = lazy(r"    \S|    +[~^]+\s*$")


class PytestTimeout:
    """The grammar of pytest-timeout's stacks."""

    tool = "pytest-timeout"

    def take(self, text: str, line: Line, dump: Dump) -> bool:
        """Reads one line; see `parsers.stacks.dump.Grammar`."""
        ours = dump.process is not None and dump.process.tool == self.tool
        if RULE.match(text):
            if ours:
                dump.end_process()
            else:
                dump.begin_process(Process(self.tool, reason="Timeout", header=line))
            return True
        found = STACK.match(text)
        if found:
            thread = Thread(int(found["ident"]), name=found["name"], header=line)
            dump.begin_thread(dump.process_of(self.tool), thread)
            return True
        if not ours or dump.thread is None:
            return False
        frame = FRAME.match(text)
        if frame:
            if len(dump.thread.frames) < 2_000:
                inner = Frame(frame["function"], frame["file"], int(frame["line"]), False, line)
                dump.thread.frames.insert(0, inner)
            return True
        return SOURCE.match(text) is not None
