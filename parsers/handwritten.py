"""What a person wrote down: times with what happened (`16:41:37 Skipping CuTeDSL warmup`), and short lists of what was
seen (`GPU utilization pinned at 96%`, names of kernels and functions).

Read as notes: somebody's word, weaker than raw output, and its silence says nothing. Its times place what it tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from parsers.contract import Line, Trouble
from parsers.event import NOBODY, Event
from parsers.heartbeat import reading
from parsers.pattern import lazy

MOST_LINES = 400
LONGEST_LINE = 400
MAX_EVENTS = 2_000

_RANGE = lazy(r"\s*[\u2013\u2014~-]\s*\d\d:\d\d(?::\d\d)?(?=\s)")
_TERM = lazy(
    r"(?i)\b(?:gpus?|cuda|nccl|xids?|vram|pcie|nvlink|nvidia|vllm|sglang|flashinfer|cutlass|cudnn|cublas|triton"
    r"|torch|pytorch|driver"
    r"|kernels?|py-spy|gdb|enginecore|engine|worker|ranks?|requests?|tokens?|throughput|utili[sz]ation|power|clock"
    r"|threads?"
    r"|batch|prefill|decode|warps?|barrier|deadlock|watchdog|time-?out|hang|hangs|hung|stuck|freezes?|frozen|OOM"
    r"|Xid|docker"
    r"|container|pod|node|host)\b"
    r"|\w+::\w+|\w{2,}_\w{2,}|\b[a-z]+\.[a-z]+(?:\.[a-z_]+)+|--[a-z][\w-]+|\d+(?:\.\d+)? ?(?:%|[GM]i?B\b|W\b|MHz\b)"
)
_FOREIGN = lazy(
    r"\s*(?:[\w.-]+:\d+:\d+ \[\d+\] NCCL|\|[ =+-]|\+-{3}|#{1,6} |[{}\[\]]|<\w|```|import |def |class "
    r"|from \w+ import|\"\w+\":|(?:DEBUG|INFO|WARNING|ERROR"
    r"|CRITICAL)\b"
    r"|\([\w .]{1,60}pid=\d+|\[\s*\d+\.\d{6}\]|Traceback \(|  File \"|Thread 0x|Process \d+:)"
)


def timed(text: str) -> bool:
    """Whether a line begins with a clock reading and goes on in words."""
    read = reading(text)
    if read is None:
        return False
    rest = _RANGE.sub("", read[1]).strip(" \t-:|,\u2013\u2014]")
    return bool(rest) and not rest[0].isdigit()


class Handwritten:
    """A TextParser of people's own lists."""

    name: ClassVar[str] = "handwritten"
    kind: ClassVar[str] = "notes"
    marks: ClassVar[tuple[bytes, ...]] = ()

    def sniff(self, head: str) -> float:
        """0.4 for a list of times with words; 0.3 for a short list, no prose, of which most
        lines speak of servers and GPUs."""
        lines = [line.rstrip("\r") for line in head.split("\n") if line.strip()]
        if not lines or len(lines) > MOST_LINES or any(_FOREIGN.match(line) for line in lines):
            return 0.0
        if max(len(line) for line in lines) > LONGEST_LINE:
            return 0.0
        times = sum(timed(line) for line in lines)
        if times >= 2 and times * 10 >= 6 * len(lines):
            return 0.4
        terms = sum(_TERM.search(line) is not None for line in lines)
        sentences = sum(line.rstrip().endswith((".", "!", "?", ":")) for line in lines)
        listed = 3 <= len(lines) <= 60 and sentences * 3 <= len(lines)
        return 0.3 if listed and terms * 10 >= 6 * len(lines) else 0.0

    def claims(self, text: str) -> bool:
        """Never: words of a person stand in every kind of text."""
        return False

    def read(self, lines: Iterable[Line], source: str) -> Iterator[Event | Trouble]:
        """`notes.text`, one a line, with the time that it names."""
        count = 0
        for line in lines:
            if not line.text.strip():
                continue
            count += 1
            if count > MAX_EVENTS:
                yield Trouble(source, "limit", f"more than {MAX_EVENTS} lines: the rest is not read", line.number)
                return
            read = reading(line.text) if timed(line.text) else None
            yield Event("notes.text", line.span(source), line.text, read[0] if read else line.outer, NOBODY)

    def inspect(self, lines: Iterable[Line], source: str) -> dict[str, Any]:
        """`lines`: line, time, text."""
        return {
            "lines": [
                {"line": item.span.first_line, "time": item.stamp.text if item.stamp else None, "text": item.text}
                for item in self.read(lines, source)
                if isinstance(item, Event)
            ]
        }


PARSER = Handwritten()
