"""TensorRT-LLM server logs: `[12/20/2025-04:20:21] [TRT-LLM] [I] message` and `[TensorRT-LLM][INFO] message`.

Templates of TensorRT-LLM 1.0 to 1.2 (PyTorch backend: `_torch/pyexecutor/py_executor.py`, `model_engine.py`,
`_torch/autotuner.py`; C++ runtime: `kvCacheManager.cpp`), seen in public logs. What it shares with every Python server
is read by the code of `parsers.vllm_log`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from parsers.contract import Line, Trouble
from parsers.event import Event
from parsers.pattern import lazy
from parsers.vllm_log.facts import FACTS
from parsers.vllm_log.phases import PHASES, phase
from parsers.vllm_log.reading import Dialect, read_log
from parsers.vllm_log.recognise import python_line
from parsers.vllm_log.record import plain
from parsers.vllm_log.rule import Templates, template
from parsers.vllm_log.signs import SIGNS
from parsers.vllm_log.stats import Reading, StatsLines
from parsers.vllm_log.view import view

OWN = (
    template("", r"(?:\[TensorRT-LLM\] )?TensorRT[- ]LLM version: (?P<_v>\d\S{0,60})", "LLM version: ",
             facts={"trtllm.version": "_v"}),
    phase("args", "mark", r"LLM Args:", "LLM Args:"),
    phase("engine_init", "begin", r"Starting TensorRT[- ]LLM init", "Starting TensorRT", stretch="startup"),
    phase("config", "mark", r"Using LLM with (?P<_b>\w+) backend", "Using LLM with "),
    phase("model_load_begin", "begin", r"Prefetching [\d.]+ ?GB checkpoint files", "checkpoint files",
          stretch="model_load"),
    phase("weights_loaded", "end", r"Model init total -- (?P<seconds>[\d.]+)s", "Model init total",
          stretch="model_load"),
    phase("kv_size", "mark",
          r"\[MemUsageChange\] Allocated (?P<gib>[\d.]+) GiB for max tokens in paged KV cache \((?P<tokens>\d+)\)",
          "in paged KV cache", facts={"kv_cache.tokens": "tokens"}),
    phase("capture_begin", "begin", r"(?:Creating CUDA graph instances for|Run generation only CUDA graph warmup)",
          "Creating CUDA graph instances", "CUDA graph warmup", stretch="capture"),
    phase("engine_ready", "end", r"(?:Executor|LLM) init total -- (?P<seconds>[\d.]+)s", "init total --",
          stretch="startup"),
    template("kernel_selected", r"Using Sampler: (?P<kernel>\w{2,60})", "Using Sampler: ", layer="sampler",
             facts={"kernel.sampler": "kernel"}),
    template("watchdog", r"Hang detected on rank (?P<rank>\d+) in PyExecutor", who="hang_detector",
             reason="no executor step"),
    template("process_died", r"MPI_ABORT was invoked on rank (?P<rank>\d+)", name="mpi rank"),
)  # fmt: skip

_ITERATION = lazy(
    r"iter = \d+, .{0,200}?(?:host_step_time = (?P<ms>[\d.]+)ms|elapsed_time = (?P<s>[\d.]+)s), .{0,200}?"
    r"num_scheduled_requests: (?P<running>\d+)"
)
_CONTEXT = lazy(r"'num_ctx_tokens': (\d+)")
_GENERATED = lazy(r"'num_generation_tokens': (\d+)")
_RANK = lazy(r"global_rank = (\d+)")


def read_iteration(text: str) -> Reading | None:
    """An iteration line (`print_iter_log`): the tokens of one step over the time of that step."""
    found = _ITERATION.search(text)
    if found is None:
        return None
    seconds = float(found["ms"]) / 1000 if found["ms"] else float(found["s"])
    context, generated = _CONTEXT.search(text), _GENERATED.search(text)
    seconds = max(seconds, 1e-6)
    rank = _RANK.search(text)
    return Reading(rank[1] if rank else "", round(int(context[1]) / seconds, 2) if context else 0.0,
                   round(int(generated[1]) / seconds, 2) if generated else 0.0, float(found["running"]))  # fmt: skip


def _as_read(reading: Reading, text: str) -> Reading:
    return reading


TRTLLM = Dialect(
    Templates((*OWN, *PHASES, *SIGNS, *FACTS)),
    StatsLines("num_scheduled_requests: ", read_iteration, _as_read),
    frozenset({"trtllm"}),
    extra_marks=("[W] ", "[E] ", "[F] "),
)
_OWN = lazy(
    r"\s{0,8}(?:\[\w{1,20}\] |\w{1,20}: |[\w./\-]{1,80} *\| ?)?"
    r"(?:\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] \[TRT-LLM"
    r"\] |\[TensorRT-LLM\]\[[A-Z]{4,8}\]|"
    r"\[TensorRT-LLM\] TensorRT)"
)


class TensorRtLlmLog:
    """Reads TensorRT-LLM's log."""

    name: ClassVar[str] = "trtllm_log"
    kind: ClassVar[str] = "server_log"
    marks: ClassVar[tuple[bytes, ...]] = TRTLLM.marks()
    steady: ClassVar[StatsLines] = TRTLLM.stats

    def sniff(self, head: str) -> float:
        """0.95 for a log with its prefixes, 0 without."""
        lines = [line for line in plain(head).split("\n") if line.strip()]
        own = sum(1 for line in lines if _OWN.match(line))
        return 0.0 if not own else (0.95 if own >= 3 or own * 4 >= len(lines) else 0.7)

    def claims(self, text: str) -> bool:
        """A line with its prefix, or one that only Python writes."""
        text = plain(text)
        return _OWN.match(text) is not None or python_line(text)

    def read(self, lines: Iterable[Line], source: str) -> Iterator[Event | Trouble]:
        """The same events as a vLLM log gives."""
        yield from read_log(lines, source, TRTLLM)

    def inspect(self, lines: Iterable[Line], source: str) -> dict[str, Any]:
        """The `server_log` view."""
        return view(lines, source, TRTLLM)


PARSER = TensorRtLlmLog()
