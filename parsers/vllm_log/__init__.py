"""vLLM server logs (0.6 to 0.33), and what any Python program writes to stderr without a log prefix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from parsers.contract import Line, Trouble
from parsers.event import Event
from parsers.vllm_log.facts import FACTS
from parsers.vllm_log.kernels import KERNELS
from parsers.vllm_log.phases import PHASES
from parsers.vllm_log.reading import Dialect, read_log
from parsers.vllm_log.recognise import claimed, confidence
from parsers.vllm_log.rule import Templates
from parsers.vllm_log.signs import SIGNS
from parsers.vllm_log.stats import VLLM_STATS, StatsLines
from parsers.vllm_log.view import view

VLLM = Dialect(Templates((*PHASES, *KERNELS, *SIGNS, *FACTS)), VLLM_STATS, frozenset({"vllm", "json"}))


class VllmLog:
    """Reads vLLM's log in every decoration it has had, and bare Python output (tracebacks, warnings, bars)."""

    name: ClassVar[str] = "vllm_log"
    kind: ClassVar[str] = "server_log"
    marks: ClassVar[tuple[bytes, ...]] = VLLM.marks()
    steady: ClassVar[StatsLines] = VLLM.stats

    def sniff(self, head: str) -> float:
        """At least 0.9 for a vLLM log, 0.8 for any text with a vLLM record, 0.6 for a bare traceback."""
        return confidence(head)

    def claims(self, text: str) -> bool:
        """A vLLM record, a decorated line, or a line that only Python writes, at the start of the line."""
        return claimed(text)

    def read(self, lines: Iterable[Line], source: str) -> Iterator[Event | Trouble]:
        """The events listed under `[events.server_log]` of the vocabulary, and facts."""
        yield from read_log(lines, source, VLLM)

    def inspect(self, lines: Iterable[Line], source: str) -> dict[str, Any]:
        """The `server_log` view."""
        return view(lines, source, VLLM)


PARSER = VllmLog()
