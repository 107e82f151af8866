"""SGLang server logs: `[2026-06-07 12:03:27 TP0] message`, one record a line, no level.

Templates of SGLang 0.4 to 0.5 (`srt/managers/scheduler.py` and its metrics mixin, `srt/model_executor/model_runner.py`,
`srt/entrypoints/engine.py`, `srt/managers/tokenizer_manager.py`), seen in public logs of both. What SGLang shares with
every Python server (tracebacks, bars, uvicorn, torch, FlashInfer) is read by the code of `parsers.vllm_log`.
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
from parsers.vllm_log.record import Record, plain
from parsers.vllm_log.rule import Templates, template
from parsers.vllm_log.signs import SIGNS
from parsers.vllm_log.stats import Reading, StatsLines
from parsers.vllm_log.view import view

OWN = (
    phase("args", "mark", r"server_args=(?:ServerArgs\()?", "server_args="),
    phase("dist_begin", "begin", r"Init torch distributed begin", stretch="dist"),
    phase("dist", "end", r"Init torch distributed ends\.(?: elapsed=(?P<seconds>[\d.]+) s)?",
          "Init torch distributed ends", stretch="dist"),
    phase("nccl", "mark", r"sglang is using nccl==(?P<_v>[\w.+]+)", facts={"nccl.version": "_v"}),
    phase("model_load_begin", "begin", r"Load weight begin", stretch="model_load"),
    phase("weights_loaded", "end",
          r"Load weight end\.(?: elapsed=(?P<seconds>[\d.]+) s,)?(?: type=(?P<architecture>\w+))?",
          "Load weight end", stretch="model_load", facts={"model.architecture": "architecture"}),
    phase("kv_size", "mark", r"KV Cache is allocated\..{0,80}?#tokens: (?P<tokens>[\d,]+)", "KV Cache is allocated",
          facts={"kv_cache.tokens": "tokens"}),
    phase("memory_pool", "mark", r"Memory pool end"),
    phase("capture_begin", "begin", r"Capture (?:\w+ )?(?:cuda|CUDA) graph begin", "Capture ", stretch="capture"),
    phase("capture_done", "end", r"Capture (?:\w+ )?(?:cuda|CUDA) graph end\.(?: Time elapsed: (?P<seconds>[\d.]+) s)?",
          "Capture ", stretch="capture"),
    phase("capture_begin", "begin", r"Capture draft (?:extend )?(?:cuda|CUDA) graph begin", "Capture draft",
          stretch="capture"),
    phase("autotune_begin", "begin", r"Running FlashInfer autotune\.\.\.", "Running FlashInfer autotune",
          stretch="autotune"),
    phase("autotune_end", "end", r"FlashInfer autotune (?:completed|done|finished)", "FlashInfer autotune ",
          stretch="autotune"),
    phase("engine_ready", "mark", r"max_total_num_tokens=(?P<tokens>\d+), chunked_prefill_size=",
          "max_total_num_tokens="),
    phase("api_ready", "mark", r"The server is fired up and ready to roll", "fired up and ready"),
    template("ready", r"(?P<what>The server is fired up and ready to roll)", "fired up and ready"),
    # choices
    template("kernel_selected",
             r"(?:Attention backend not (?:specified|set|explicitly specified)\. )?Use (?P<kernel>\w{2,40}) "
             r"(?:attention )?backend by default", "backend by default", layer="attention", method="default",
             facts={"attention.backend": "kernel"}),
    template("kernel_selected", r".{0,80}?auto-selecting (?P<method>[\w\-]{1,40})-backend=(?P<kernel>\w{1,60})",
             "auto-selecting", layer="linear", facts={"kernel.linear": "kernel"}),
    template("kernel_selected", r"Using KV cache dtype: (?:torch\.)?(?P<kernel>\w{2,40})", layer="kv",
             facts={"kv_cache.dtype": "kernel"}),
    template("kernel_selected", r"Using (?P<kernel>\w{2,60}) (?:as the )?(?:moe|MoE) (?:runner )?backend", "oE ",
             "moe ", layer="moe", facts={"kernel.moe": "kernel"}),
    # trouble
    template("watchdog", r".{0,60}?[Ww]atchdog timeout \(", "atchdog timeout (", who="scheduler",
             reason="no forward step"),
    template("watchdog", r"Soft watchdog timeout", who="scheduler", reason="soft"),
    template("rpc_timeout",
             r"Health check failed\. Server couldn't get a response from (?P<call>\w+) for last (?P<seconds>\d+)",
             "Health check failed"),
    template("process_died", r"Received sigquit from a child process", name="child process"),
    template("process_died", r"Rank (?P<rank>\d+) scheduler is dead", "scheduler is dead", name="scheduler"),
    template("process_died",
             r"Subprocess (?P<name>[\w\-]{1,60}) \(pid=(?P<pid>\d+)\) crashed with exit code (?P<exit_code>-?\d+)",
             "crashed with exit code"),
    template("shutdown", r"(?P<step>SIGTERM received.{0,120})", "SIGTERM received", who="signal"),
    template("shutdown", r"(?P<step>Gracefully exiting.{0,120})", "Gracefully exiting", who="tokenizer"),
    template("request_aborted",
             r"Abort (?:waiting queue|running|queued|grammar queue|retracted) request[.,]? ?(?:req\.)?rid=?'?"
             r"(?P<request_id>[\w\-]{1,120})", "Abort "),
    template("jit", r"(?:Try|Entering) DeepGEMM JIT (?P<name>.{1,160})", "DeepGEMM JIT", what="deep_gemm",
             edge="begin"),
)  # fmt: skip

_DECODE = lazy(r"#running-req: (?P<running>\d+).{0,400}?gen throughput \(token/s\): (?P<tps>[\d.]+)")
_PREFILL = lazy(r"#new-seq: (?P<fresh>\d+).{0,300}?#running-req: (?P<running>\d+)(?:.{0,300}?input throughput "
                      r"\(token/s\): (?P<tps>[\d.]+))?")  # fmt: skip
_QUEUE = lazy(r"#queue-req: (\d+)")
_USAGE = lazy(r"(?:full )?token usage: ([\d.]+)")
_RANKS = lazy(r"\[[\d\-:. ]{19,27}?((?: [A-Z]{2}\d{1,4}){1,4})\]")


def read_batch(text: str) -> Reading | None:
    """A `Prefill batch` or `Decode batch` line; a prefill's new sequences count as running."""
    ranks = _RANKS.match(text)
    engine = ranks[1].strip().replace(" ", "_") if ranks else ""
    found = _DECODE.search(text) if "gen throughput" in text else _PREFILL.search(text)
    if found is None:
        return None
    tps = float(found["tps"] or 0.0)
    if "fresh" in found.groupdict():
        return Reading(engine, tps, 0.0, float(found["running"]) + float(found["fresh"]))
    return Reading(engine, 0.0, tps, float(found["running"]))


def complete_batch(reading: Reading, text: str) -> Reading:
    """Adds the parts that only an event needs."""
    if waiting := _QUEUE.search(text):
        reading.waiting = float(waiting[1])
    if usage := _USAGE.search(text):
        reading.kv_usage = float(usage[1]) * 100
    return reading


_ALARM = lazy(
r"(?:Scheduler|Detokenizer|TokenizerManager|Parent|Worker|DataParallelController) hit an exception|Error|"
                    r"Exception|Failed|Not enough memory|Health check failed|Received sigquit|Rank \d+ scheduler is"
                    r" dead")  # fmt: skip
_CAUTION = lazy(
r"Warning|KV cache pool is full|Input length|Ignore import error|Decode out of memory|Unexpected error|"
                      r"Fail(?:ed)? to get")  # fmt: skip
_LEVEL_MARKS = ("hit an exception", "Failed", "Not enough memory", "Health check failed", "sigquit",
"scheduler is dead",
                "Warning", "KV cache pool is full", "Input length", "Ignore import error", "out of memory",
                "Unexpected error", "Fail to get")  # fmt: skip


def level_of(record: Record) -> str:
    """SGLang prints no level: the words that its own warnings and errors begin with stand in for it."""
    if record.level or record.writer != "stamped":
        return record.level
    if _CAUTION.match(record.message):
        return "WARNING"
    return "ERROR" if _ALARM.match(record.message) else ""


# uvicorn is up before SGLang has sent itself a first request: only SGLang's own word counts as ready.
_SHARED = tuple(
    row for row in (*PHASES, *SIGNS, *FACTS) if row.kind != "ready" and row.fields.get("phase") != "api_ready"
)
SGLANG = Dialect(
    Templates((*OWN, *_SHARED)),
    StatsLines("#running-req", read_batch, complete_batch),
    frozenset({"stamped"}),
    level_of,
    _LEVEL_MARKS,
)
_OWN = Templates(OWN)
_STAMP = lazy(
    r"\s{0,8}(?:[\w./\-]{1,80} *\| ?)?\[20\d\d-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?(?P<ranks>(?: "
    r"(?:DP|TP|PP|EP|ATTN)\d+){0,5})\] "
)
_WORDS = lazy(
    r"server_args=ServerArgs|#running-req: |sglang/srt/|sglang\.srt|sglang\.launch_server|Load weight begin|"
    r"The server is fired up|Init torch distributed begin|== SGLang =="
)
_VLLM = lazy(r"\.py:\d{1,6}\] |pid=\d+\) (?:INFO|WARNING|ERROR) ")


class SglangLog:
    """Reads SGLang's log."""

    name: ClassVar[str] = "sglang_log"
    kind: ClassVar[str] = "server_log"
    marks: ClassVar[tuple[bytes, ...]] = SGLANG.marks()
    steady: ClassVar[StatsLines] = SGLANG.stats

    def sniff(self, head: str) -> float:
        """0.95 with SGLang's stamps and words, 0.65 for a traceback through its modules, 0 without its words."""
        head = plain(head)
        words = len(_WORDS.findall(head))
        stamps = sum(1 for line in head.split("\n") if _STAMP.match(line))
        ranked = sum(1 for line in head.split("\n") if (found := _STAMP.match(line)) and found["ranks"])
        if not words and not ranked:
            return 0.0
        if stamps:
            return 0.95 if stamps >= 3 or words >= 2 else 0.8
        if len(_VLLM.findall(head)) > words:
            return 0.1
        return 0.65 if any(python_line(line) for line in head.split("\n")) else 0.3

    def claims(self, text: str) -> bool:
        """A stamped line with a rank or with SGLang's own words, or a line that only Python writes."""
        text = plain(text)
        found = _STAMP.match(text)
        if found is None:
            return python_line(text)
        message = text[found.end() :]
        return bool(found["ranks"]) or "#running-req" in message or bool(_OWN.match(message)) or python_line(message)

    def read(self, lines: Iterable[Line], source: str) -> Iterator[Event | Trouble]:
        """The same events as a vLLM log gives."""
        yield from read_log(lines, source, SGLANG)

    def inspect(self, lines: Iterable[Line], source: str) -> dict[str, Any]:
        """The `server_log` view; records without a level count under ""."""
        return view(lines, source, SGLANG)


PARSER = SglangLog()
