"""Throughput lines, thinned out.

A busy server prints one every ten seconds for weeks. What tells something is kept: the first and the last line of each
engine, every change between moving and standing, and the first in each MiB of the log. (vLLM 0.8 to 0.33 stops
printing the line when both throughputs were zero twice, so a standing engine shows one such line and then silence.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from parsers.contract import Line
from parsers.pattern import lazy


def stretch_of(offset: int) -> int:
    """The stretch of a log that a byte offset lies in: one MiB each, after 256 MiB 16 MiB each. Where a line stands
    decides, not how many came before it: a reader may leave out those that change nothing."""
    return offset >> 20 if offset < 1 << 28 else 240 + (offset >> 24)


_VLLM = lazy(
    r"Avg prompt throughput: ([\d.]+) tokens/s, Avg generation throughput: ([\d.]+) tokens/s, Running: (\d+) reqs"
)
_WAITING = lazy(r"(?:Waiting|Pending): (\d+) reqs")
_USAGE = lazy(r"KV cache usage: ([\d.]+)%")
VLLM_MARK = "Avg prompt throughput"


@dataclass(slots=True)
class Reading:
    """One throughput line, read: tokens a second, requests, cache use in percent (-1.0 where not printed)."""

    engine: str
    prompt_tps: float
    generation_tps: float
    running: float
    waiting: float = 0.0
    kv_usage: float = -1.0

    @property
    def moving(self) -> bool:
        """Whether tokens flowed in the interval."""
        return self.prompt_tps > 0 or self.generation_tps > 0

    def fields(self) -> dict[str, float | str]:
        """As the event carries it."""
        values: dict[str, float | str] = {
            "prompt_tps": self.prompt_tps, "generation_tps": self.generation_tps, "running": self.running,
            "waiting": self.waiting,
        }  # fmt: skip
        if self.kv_usage >= 0:
            values["kv_usage"] = self.kv_usage
        if self.engine:
            values["engine"] = self.engine
        return values


def read_vllm(text: str) -> Reading | None:
    """vLLM's line (v0 and v1), anywhere in `text`."""
    at = text.find(VLLM_MARK)
    found = _VLLM.match(text, at) if at >= 0 else None
    if found is None:
        return None
    engine = text[at - 5 : at - 2] if text.startswith("Engine ", at - 12) else ""
    return Reading(engine, float(found[1]), float(found[2]), float(found[3]))


def complete_vllm(reading: Reading, text: str) -> Reading:
    """Adds the parts that only an event needs."""
    if waiting := _WAITING.search(text):
        reading.waiting = float(waiting[1])
    if usage := _USAGE.search(text):
        reading.kv_usage = float(usage[1])
    return reading


@dataclass(slots=True)
class StatsLines:
    """Which lines of a kind of throughput line become events."""

    mark: str
    read: Callable[[str], Reading | None]
    complete: Callable[[Reading, str], Reading]

    def stretch(self, offset: int) -> int:
        """Of each stretch the first line is kept."""
        return stretch_of(offset)

    def state(self, text: str) -> tuple[str, tuple[bool, bool]] | None:
        """(engine, (whether tokens flow, whether requests run)) of a line, None when it is none."""
        reading = self.read(text)
        return None if reading is None else (reading.engine, _state(reading))


def _state(reading: Reading) -> tuple[bool, bool]:
    return (reading.moving, reading.running > 0)


VLLM_STATS = StatsLines(VLLM_MARK, read_vllm, complete_vllm)


@dataclass(slots=True)
class _Engine:
    state: tuple[bool, bool] | None = None
    stretch: int = -1
    held: Line | None = None


@dataclass(slots=True)
class Thinner:
    """Keeps the telling lines of one source."""

    lines: StatsLines
    engines: dict[str, _Engine] = field(default_factory=dict)

    def keep(self, line: Line) -> list[tuple[Line, Reading]]:
        """The lines that become events now that `line` was read: itself, after a change also the last one before it."""
        reading = self.lines.read(line.text)
        if reading is None:
            return []
        engine = self.engines.get(reading.engine)
        if engine is None:
            if len(self.engines) >= 4096:
                return []
            engine = self.engines[reading.engine] = _Engine()
        state, stretch = _state(reading), self.lines.stretch(line.start)
        if state == engine.state and stretch == engine.stretch:
            engine.held = line
            return []
        kept = self._held(engine) if state != engine.state else []
        engine.state, engine.stretch = state, stretch
        engine.held = None
        return [*kept, (line, self.lines.complete(reading, line.text))]

    def last(self) -> list[tuple[Line, Reading]]:
        """The last line of each engine, where it has not been an event yet."""
        return [row for engine in self.engines.values() for row in self._held(engine)]

    def _held(self, engine: _Engine) -> list[tuple[Line, Reading]]:
        if engine.held is None:
            return []
        reading = self.lines.read(engine.held.text)
        return [] if reading is None else [(engine.held, self.lines.complete(reading, engine.held.text))]
