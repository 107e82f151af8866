"""py-spy's text dump, versions 0.3 to 0.4, with --native, --locals and --subprocesses; its `top` view; its errors.

Layout of `py-spy dump` (py-spy's src/dump.rs): `Process PID: COMMAND`, `Python vX.Y.Z (PATH)`, `Parent Process …` with
--subprocesses, a blank line, then per thread a header `Thread TID (state): "NAME"` and four-space frames, the innermost
first; locals stand deeper. SGLang's watchdog logs the same text after a line `Pyspy dump for PID N:`.
"""

from __future__ import annotations

import re

from parsers.contract import Line
from parsers.pattern import lazy
from parsers.stacks.dump import Dump
from parsers.stacks.model import DumpError, Frame, Process, Thread, looks_native
from parsers.stamp import Stamp
from parsers.wallclock import iso

PROCESS = lazy(r"Process (?P<pid>\d+):(?: (?P<command>.*))?$")
PYTHON = lazy(r"Python v(?P<version>\d[\w.+]*)(?: \(.*\))?$")
PARENT = lazy(r"Parent Process (?P<pid>\d+):")
THREAD = lazy(
    r'Thread (?P<id>0x[0-9a-fA-F]+|\d+|<?pid>?) \((?P<state>(?:active|idle)(?:\+gil)?)\)(?:: "(?P<name>.*)"?)?$'
)
SGLANG = lazy(
    r"\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[^\]]*\] (?:Pyspy|py-spy) dump for (?:PID )?(?P<pid>\d+)?"
)
SGLANG_FAILED = lazy(r"(?:\[[^\]]{10,60}\] )?Pyspy failed to dump PID (?P<pid>\d+)\. Error: (?P<text>.*)")
RULE = lazy(r"-{40,}$")
FILE_AND_LINE = lazy(r"(?P<file>.+):(?P<line>\d+)$")
TOP_HEADER = lazy(r" *%Own +%Total +OwnTime +TotalTime +Function")
TOP_SUMMARY = lazy(r"GIL: +\d+(?:\.\d+)?%, Active: +\d")
TOP_COLLECTING = lazy(r"Collecting samples from '(?P<command>.*)' \(python v(?P<version>[\w.+]+)\)")
TOP_ROW = lazy(r" *\d+(?:\.\d+)?% +\d+(?:\.\d+)?% +\S+ +\S+ +(?P<frame>\S.*)$")

ERRORS = (
    (lazy(r"(?:Error: )?Permission Denied: Try running again with elevated"), "permission"),
    (lazy(r"Error: Failed to (?:get process executable name|open process|find process)"), "not_found"),
    (lazy(r"Error: Failed to find python version"), "python_version"),
    (lazy(r"Error: (?:Unsupported version of Python|python version .* not supported)", re.I), "python_version"),
    (lazy(r"Error: Failed to (?:copy PyThreadState|find (?:a )?interpreter)", re.I), "python_version"),
    (lazy(r"Error: (?:Operation not permitted|Permission denied|EPERM)", re.I), "permission"),
    (lazy(r"Error: No such (?:process|file)", re.I), "not_found"),
    (lazy(r"Error: (?:Failed to|No python|Couldn't|Could not)"), "other"),
)  # fmt: skip
CAUSES = (
    (lazy(r"Failed to suspend process|unexpected waitpid result .*SIGSTOP"), "stopped_process"),
    (lazy(r"Operation not permitted|Permission denied|\bEPERM\b|os error 1\b|os error 13\b"), "permission"),
    (lazy(r"No such process|os error 3\b"), "not_found"),
)
ERROR_PID = lazy(r"Pid\((\d+)\)|\bto (\d+)$")
CAUSE_LINE = lazy(r" +(?:\d+: )?\S|Caused by:|Stack backtrace:|$")


def is_error_text(head: str) -> bool:
    """Whether a text is py-spy's own error output and nothing else."""
    first = head.lstrip().split("\n", 1)[0]
    if any(pattern.match(first) for pattern, _ in ERRORS[:4]):
        return True
    return first.startswith("Error: ") and ("py_spy::" in head or "Failed to get stack traces" in first)


def split_frame(text: str) -> tuple[str, str, int | None] | None:
    """`name (file.py:12)` at the LAST ` (`, as C++ names hold brackets of their own: (name, file, line)."""
    if not text.endswith(")"):
        return None
    at = text.rfind(" (")
    if at <= 0:
        return None
    where = text[at + 2 : -1]
    found = FILE_AND_LINE.match(where)
    name = text[:at].strip()
    if not name or not where or where.startswith((" ", ",")):
        return None
    return (name, found["file"], int(found["line"][:9])) if found else (name, where, None)


class PySpyText:
    """The grammar of `py-spy dump` text."""

    tool = "py-spy"

    def __init__(self) -> None:
        self.indent: int | None = None
        self.announced: tuple[int | None, Stamp | None] | None = None

    def take(self, text: str, line: Line, dump: Dump) -> bool:
        """Reads one line; see `parsers.stacks.dump.Grammar`."""
        if text[0] == " ":
            return self._frame(text, line, dump) or self._cause(text, line, dump)
        found = THREAD.match(text)
        if found:
            self._thread(found, line, dump)
            return True
        found = PROCESS.match(text)
        if found:
            pid, stamp = int(found["pid"][:9]), self.announced[1] if self.announced else None
            self.announced = None
            dump.begin_process(
                Process(self.tool, pid=pid, command=(found["command"] or "").strip() or None, header=line, stamp=stamp)
            )
            return True
        process = dump.process if dump.process is not None and dump.process.tool == self.tool else None
        if process is not None:
            found = PYTHON.match(text)
            if found:
                process.python, process.python_line = found["version"], line
                return True
            found = PARENT.match(text)
            if found:
                process.parent = int(found["pid"][:9])
                return True
            if RULE.match(text):
                dump.thread = None
                return True
        return (
            self._announcement(text, line, dump) or self._error(text, line, dump) or self._unindented(text, line, dump)
        )

    def _thread(self, found: re.Match[str], line: Line, dump: Dump) -> None:
        number = found["id"]
        known = number.isdecimal()
        state = found["state"]
        name = found["name"]
        self.indent = None
        dump.begin_thread(
            dump.process_of(self.tool),
            Thread(
                int(number[:18]) if known else number,
                int(number[:18]) if known else None,
                name.removesuffix('"') if name is not None else None,
                state.split("+")[0],
                True if "+gil" in state else None,
                header=line,
            ),
        )

    def _frame(self, text: str, line: Line, dump: Dump) -> bool:
        if dump.thread is None or dump.process is None or dump.process.tool != self.tool:
            return False
        body = text.lstrip()
        indent = len(text) - len(body)
        if self.indent is not None and indent > self.indent:
            return True  # Arguments, locals and their values
        parts = split_frame(body)
        if parts is None:
            if " (" in body and self.indent in (None, indent) and not body.endswith(":"):
                # The file ends, or the paste was cut, in the middle of a frame.
                name, _, where = body.rpartition(" (")
                dump.thread.cut = True
                self.indent = indent
                dump.add_frame(Frame(name.strip(), where, None, looks_native(name, where, 0), line))
                return True
            return False
        self.indent = indent
        name, file, number = parts
        dump.add_frame(Frame(name, file, number, looks_native(name, file, number), line))
        return True

    def _unindented(self, text: str, line: Line, dump: Dump) -> bool:
        """A frame of a paste that lost its indentation: accepted only when it cannot be anything else."""
        if (
            dump.thread is None
            or dump.process is None
            or dump.process.tool != self.tool
            or self.indent not in (None, 0)
        ):
            return False
        parts = split_frame(text)
        if parts is None or (parts[2] is None and ".so" not in parts[1]):
            return False
        self.indent = 0
        dump.add_frame(Frame(*parts, looks_native(*parts), line))
        return True

    def _announcement(self, text: str, line: Line, dump: Dump) -> bool:
        found = SGLANG.match(text)
        if found:
            dump.end_process()
            self.announced = (int(found["pid"][:9]) if found["pid"] else None, iso(found["time"]))
            return True
        found = SGLANG_FAILED.match(text)
        if found:
            cause = next((error for pattern, error in CAUSES if pattern.search(found["text"])), "other")
            dump.finished.append(DumpError(cause, line, pid=int(found["pid"][:9])))
            return True
        return False

    def _error(self, text: str, line: Line, dump: Dump) -> bool:
        if not text.startswith(("Error: ", "Permission Denied: ")):
            return dump.pending is not None and bool(CAUSE_LINE.match(text))
        error = next((error for pattern, error in ERRORS if pattern.match(text)), None)
        if error is None:
            return False
        error = next((better for pattern, better in CAUSES if pattern.search(text)), error)
        dump.end_process()
        dump.pending = DumpError(error, line)
        return True

    def _cause(self, text: str, line: Line, dump: Dump) -> bool:
        """A `Caused by:` line says more than the error above it: the error is sharpened while it is pending."""
        if dump.pending is None:
            return False
        error = next((error for pattern, error in CAUSES if pattern.search(text)), None)
        if error is not None and (dump.pending.error == "other" or "SIGSTOP" in text):
            named = ERROR_PID.search(text)
            pid = int((named[1] or named[2])[:9]) if named else dump.pending.pid
            dump.pending = DumpError(error, line, pid=pid)
        return True


class PySpyTop:
    """The grammar of `py-spy top` pasted as text: a profile, read as one busy thread, its hottest function on top."""

    tool = "py-spy top"

    def __init__(self) -> None:
        self.rows = False

    def take(self, text: str, line: Line, dump: Dump) -> bool:
        """Reads one line; see `parsers.stacks.dump.Grammar`."""
        found = TOP_COLLECTING.match(text)
        if found:
            dump.begin_process(
                Process(self.tool, command=found["command"], python=found["version"], header=line, python_line=line)
            )
            return True
        if TOP_SUMMARY.match(text):
            process = dump.process_of(self.tool)
            process.header = process.header or line
            return True
        if TOP_HEADER.match(text):
            process = dump.process_of(self.tool)
            dump.begin_thread(process, Thread("profile", state="active", header=line))
            self.rows = True
            return True
        if self.rows and dump.thread is not None:
            row = TOP_ROW.match(text)
            parts = split_frame(row["frame"]) if row else None
            if parts is not None:
                dump.add_frame(Frame(parts[0], parts[1], parts[2], False, line))
                return True
        self.rows = False
        return False
