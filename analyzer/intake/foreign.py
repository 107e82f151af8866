"""Of a long text: the stretches that another parser knows (kernel messages in a journal, a stack dump or nvidia-smi's
output in a server's log). A short text is cut into its parts line by line; here only where a literal says that a
foreign stretch may begin, so that a log without any costs nothing.
"""

from __future__ import annotations

from collections.abc import Collection

from analyzer.intake.recognise import Part, parts, text_parsers
from parsers.contract import Line, TextParser, Trouble

MOST = 100_000
"""Lines of foreign stretches that are kept of one source."""
IDLE = 200
"""Lines that no parser claims after which a stretch is taken to have ended."""
BACK = 3
"""Lines before the literal that may belong to the stretch."""

STARTS: dict[str, tuple[bytes, ...]] = {
    "kernel_log": (b" kernel: ", b"NVRM: ", b"oom-kill:", b"Out of memory: Killed", b"invoked oom-killer",
                   b"segfault at ", b"blocked for more than", b"soft lockup", b"Linux version ", b"Kernel panic",
                   b"Hardware Error]"),
    "stacks": (b"Python v3.", b'(idle): "', b'(active): "', b'(active+gil): "', b'(idle+gil): "', b"(LWP ",
               b"Thread 1 (Thread 0x", b"(most recent call first)"),
    "collective": (b"NCCL WARN", b"NCCL ERROR", b"Init START", b"Init COMPLETE", b"NCCL version", b"Watchdog caught",
                   b"ProcessGroupNCCL"),
    "gpu_samples": (b"NVIDIA-SMI ", b"==NVSMI LOG=="),
    "metrics": (b"# HELP vllm:", b"# TYPE vllm:", b"# HELP sglang:", b"# TYPE sglang:", b"# HELP DCGM_",
                b"# TYPE DCGM_"),
    "environment": (b"Collecting environment information", b"PyTorch version: ", b"Is CUDA available: "),
    "cuda_gdb": (b"(cuda-gdb)", b"CUDA Exception: ", b"[Switching focus to CUDA", b"CUDA_EXCEPTION_"),
    "fabric": (b"fabricmanager",),
}  # fmt: skip
"""What may begin a foreign stretch, by the kind of artifact. A literal only raises the question; parsers answer it."""


class Foreign:
    """Takes foreign lines out of one source whose own parser is `main`."""

    def __init__(
        self, name: str, main: TextParser | None, transports: tuple[str, ...], originals: dict[int, str]
    ) -> None:
        self._name, self._main, self._originals = name, main, originals
        self._transports = transports
        self._others = [one for one in text_parsers() if one is not main]
        self._found: dict[str, Part] = {}
        self._current: TextParser | None = None
        self._idle = self._count = self._left_out = 0
        own = main.kind if main is not None else ""
        self.literals = tuple(literal for kind, row in STARTS.items() if kind != own for literal in row)

    @property
    def open(self) -> bool:
        """Whether a stretch goes on."""
        return self._current is not None

    def sift(self, lines: list[Line], starts: Collection[int]) -> list[Line]:
        """The lines that stay with the source's own parser. `starts` = ids of the lines that hold a literal."""
        if not starts and self._current is None:
            return lines
        stay: list[Line] = []
        for line in lines:
            if self._current is None:
                guest = self._guest(line) if id(line) in starts else None
                if guest is None:
                    stay.append(line)
                    continue
                self._current, self._idle = guest, 0
                for before in self._before(stay, guest):
                    self._take(before, guest)
                self._take(line, guest)
            elif not self._goes_on(line):
                stay.append(line)
        return stay

    def _guest(self, line: Line) -> TextParser | None:
        if self._count >= MOST:
            self._left_out += 1
            return None
        parser = parts([line], self._main, self._originals)[0][0]
        if parser is None or parser is self._main or self._a_sister(parser, line.text):
            return None
        return parser

    def _a_sister(self, parser: TextParser, text: str) -> bool:
        """Server logs share their fronts: what this server's own parser claims is its own."""
        return parser.kind == "server_log" and self._main is not None and self._main.claims(text)

    def _before(self, stay: list[Line], guest: TextParser) -> list[Line]:
        """The last lines that stayed, where they are the head of what begins now."""
        took: list[Line] = []
        for line in stay[: -BACK - 1 : -1]:
            if not guest.claims(line.text) or (self._main is not None and self._main.claims(line.text)):
                break
            took.insert(0, line)
        del stay[len(stay) - len(took) :]
        return took

    def _goes_on(self, line: Line) -> bool:
        """Take `line` into the open stretch; False when it belongs to the source's own parser again."""
        current = self._current
        if current is None:
            return False
        text = line.text
        if not text.strip():
            self._take(line, current)
            return True
        if not current.claims(text):
            parser = parts([line], current, self._originals)[0][0]
            if parser is self._main or parser is None or self._a_sister(parser, text):
                self._current = None
                return False
            self._idle = self._idle + 1 if parser is current else 0
            self._current = current = parser
        else:
            self._idle = 0
        if self._idle > IDLE or self._count >= MOST:
            self._left_out += self._count >= MOST
            self._current = None
            return False
        self._take(line, current)
        return True

    def _take(self, line: Line, parser: TextParser) -> None:
        self._count += 1
        part = self._found.get(parser.name)
        if part is None:
            part = self._found[parser.name] = Part(self._name, parser, [], self._transports, self._originals)
        part.lines.append(line)

    def parts(self) -> list[Part]:
        """What was taken out, one part a parser."""
        return list(self._found.values())

    def troubles(self) -> list[Trouble]:
        """What the limit left out."""
        if not self._left_out:
            return []
        text = f"more than {MOST} lines of other artifacts stand in this one: the rest was read with its own parser"
        return [Trouble(self._name, "limit", text)]
