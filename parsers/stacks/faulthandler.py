"""Python's faulthandler: fatal errors, `dump_traceback_later` timeouts, vLLM's watchdog files.

Layout (CPython's Python/traceback.c and Modules/faulthandler.c): an optional `Fatal Python error: …` or
`Timeout (0:00:04)!`, then per thread `Thread 0x… (most recent call first):` (3.14 adds the thread's name)
or `Stack (most recent call first):`, and frames `  File "…", line N in NAME`. The thread marked `Current` is the one
that wrote the dump. vLLM's watchdog (vllm/utils/watch_dog.py) puts `>>> Call stack dump #N at CTIME due to REASON`
above.
"""

from __future__ import annotations

from parsers.contract import Line
from parsers.pattern import lazy
from parsers.stacks.dump import Dump
from parsers.stacks.model import Frame, Process, Thread, looks_native
from parsers.wallclock import ctime

FATAL = lazy(r"Fatal Python error: (?P<reason>.*)")
TIMEOUT = lazy(r"Timeout \(\d+:\d\d:\d\d(?:\.\d+)?\)!")
THREAD = lazy(
    r"(?P<current>Current thread|Thread) (?P<id>0x[0-9a-fA-F]+)(?: \[(?P<name>[^\]]*)\])?"
    r"(?: (?P<gil>\(idle\)|\(garbage-collecting\)))? \(most recent call first\):"
)
STACK = lazy(r"Stack \(most recent call first\):")
C_STACK = lazy(r"Current thread's C stack trace \(most recent call first\):")
FRAME = lazy(r'  ?(?: {1,6})?File "(?P<file>[^"]*)", line (?P<line>\d+|\?\?\?),? in (?P<function>.+)$')
C_FRAME = lazy(r'  Binary file "(?P<file>[^"]*)",? at (?P<symbol>[^ +]*)(?:\+0x[0-9a-f]+)?')
NO_FRAME = lazy(r"  <(?:no Python frame|tstate is freed|freed interpreter|invalid frame)>|  \.\.\.$")
WATCHDOG = lazy(r">>> Call stack dump #(?P<number>\d+) at (?P<time>.{10,40}?) due to (?P<reason>.*)")
WATCHDOG_FILE = lazy(r"VLLM_STACK_DUMP_for_(?P<role>\w+?)_(?P<pid>\d+)\.")
TRAILER = lazy(r"Extension modules: |={20,}$|Garbage-collecting$")


class FaultHandler:
    """The grammar of faulthandler text."""

    tool = "faulthandler"

    def take(self, text: str, line: Line, dump: Dump) -> bool:
        """Reads one line; see `parsers.stacks.dump.Grammar`."""
        if text[0] == " ":
            return self._frame(text, line, dump)
        found = FATAL.match(text)
        if found:
            dump.begin_process(Process(self.tool, reason=found["reason"].strip(), header=line))
            return True
        if TIMEOUT.match(text):
            dump.begin_process(Process(self.tool, reason=text.strip(), header=line))
            return True
        found = WATCHDOG.match(text)
        if found:
            process = Process(
                "vllm-watchdog", dump=int(found["number"][:9]), reason=found["reason"].strip(), header=line
            )
            process.stamp = ctime(found["time"])
            # The watchdog names its file after the process; nothing inside the file does.
            named = WATCHDOG_FILE.search(dump.source)
            if named:
                process.pid, process.command = int(named["pid"][:9]), named["role"]
            dump.begin_process(process)
            return True
        found = THREAD.match(text)
        if found:
            dump.begin_thread(
                self._process(line, dump),
                Thread(
                    found["id"],
                    name=found["name"],
                    state="idle" if found["gil"] == "(idle)" else "unknown",
                    header=line,
                    current=found["current"].startswith("Current"),
                ),
            )
            return True
        if STACK.match(text):
            dump.begin_thread(self._process(line, dump), Thread("0x0", header=line, current=True))
            return True
        if C_STACK.match(text):
            dump.begin_thread(self._process(line, dump), Thread("C", header=line, current=True))
            return True
        return self._is_ours(dump) and bool(TRAILER.match(text))

    def _is_ours(self, dump: Dump) -> bool:
        return dump.process is not None and dump.process.tool in (self.tool, "vllm-watchdog")

    def _process(self, line: Line, dump: Dump) -> Process:
        if self._is_ours(dump):
            assert dump.process is not None
            return dump.process
        return dump.begin_process(Process(self.tool, header=line))

    def _frame(self, text: str, line: Line, dump: Dump) -> bool:
        if dump.thread is None or not self._is_ours(dump):
            return False
        found = FRAME.match(text)
        if found:
            number = int(found["line"][:9]) if found["line"].isdecimal() else None
            dump.add_frame(Frame(found["function"], found["file"], number, False, line))
            return True
        found = C_FRAME.match(text)
        if found:
            symbol = found["symbol"] or "??"
            dump.add_frame(Frame(symbol, found["file"], None, looks_native(symbol, found["file"], None), line))
            return True
        if NO_FRAME.match(text):
            dump.thread.cut = dump.thread.cut or text.strip() == "..."
            return True
        if text.lstrip().startswith('File "'):
            dump.thread.cut = True
            return True
        return False
