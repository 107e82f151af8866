"""What single lines mean, what floods become, and that skipping the healthy middle changes nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from log_lines import as_lines, events_of, kinds, short

from parsers.contract import Line
from parsers.event import Event
from parsers.sglang_log import PARSER as SGLANG
from parsers.trtllm_log import PARSER as TRTLLM
from parsers.vllm_log import PARSER as VLLM

W = "(Worker_TP0 pid=7) {level} 11-30 20:00:00 [x.py:1] {message}"


def _say(message: str, level: str = "INFO") -> list[Event]:
    return events_of(VLLM, W.format(level=level, message=message))


@pytest.mark.parametrize(
    ("message", "layer", "kernel"),
    [
        ("Using Flash Attention backend on V1 engine.", "attention", "Flash Attention"),
        ("Using FLASHINFER attention backend out of potential backends: ['FLASHINFER', 'FLASH_ATTN'].", "attention",
         "FLASHINFER"),
        ("Using AttentionBackendEnum.FLASHINFER backend.", "attention", "FLASHINFER"),
        ("Using XFormers backend.", "attention", "XFormers"),
        ("Using FLASH_ATTN MLA prefill backend.", "mla", "FLASH_ATTN"),
        ("Selected CutlassFP8ScaledMMLinearKernel for ModelOptFp8LinearMethod", "linear",
        "CutlassFP8ScaledMMLinearKernel"),
        ("Using FlashInferCutlassNvFp4LinearKernel for NVFP4 GEMM", "linear", "FlashInferCutlassNvFp4LinearKernel"),
        ("Using FlashInfer cudnn for eligible unquantized BF16 GEMMs.", "linear", "FlashInfer cudnn"),
        ("Using 'FLASHINFER_TRTLLM' NvFp4 MoE backend out of potential backends: ['A'].", "moe", "FLASHINFER_TRTLLM"),
        ("Using 'MARLIN' MxFp8 MoE backend.", "moe", "MARLIN"),
        ("Using TRITON MoE backend", "moe", "TRITON"),
        ("Using DeepGemm kernels for Fp8MoEMethod.", "moe", "DeepGemm"),
        ("Using FlashInfer FP8 MoE TRTLLM backend for SM100", "moe", "FlashInfer FP8 MoE TRTLLM"),
        ("Using FlashInfer for top-p & top-k sampling.", "sampler", "FlashInfer"),
        ("Using HND KV cache layout.", "kv", "HND"),
    ],
)  # fmt: skip
def test_kernels(message: str, layer: str, kernel: str) -> None:
    [event] = kinds(_say(message), "kernel_selected")
    assert (event.fields["layer"], event.fields["kernel"]) == (layer, kernel)
    assert len(kinds(_say(message), "phase")) == 1


@pytest.mark.parametrize(
    ("message", "phase", "edge"),
    [
        ("Automatically detected platform cuda.", "platform", "mark"),
        ("Initializing an LLM engine (v0.6.6) with config: model='/m'", "engine_init", "begin"),
        ("Initializing a V1 LLM engine (v0.33.0) with config: model='/m'", "engine_init", "begin"),
        ("rank 0 in world size 2 is assigned as DP rank 0, PP rank 0, TP rank 0", "dist", "end"),
        ("Starting to load model org/name...", "model_load_begin", "begin"),
        ("Loading model weights took 14.9888 GB", "weights_loaded", "end"),
        ("Model loading took 22.84 GiB memory and 156.819831 seconds", "model_loaded", "end"),
        ("[backbone] saved AOT compiled function to /c", "compile_done", "end"),
        ("torch.compile takes 18.40 s in total", "compile_done", "end"),
        ("# GPU blocks: 27895, # CPU blocks: 2048", "kv_size", "mark"),
        ("GPU KV cache size: 251,920 tokens", "kv_size", "mark"),
        ("Graph capturing finished in 14 secs, took 0.84 GiB", "capture_done", "end"),
        ("init engine (profile, create kv cache, warmup model) took 44.51 seconds", "engine_ready", "end"),
        ("Starting vLLM API server 0 on http://0.0.0.0:8000", "api_start", "mark"),
        ("Skipping CuTeDSL warmup because no compile units were requested.", "kernel_warmup_skipped", "mark"),
    ],
)
def test_phases(message: str, phase: str, edge: str) -> None:
    [event] = kinds(_say(message), "phase")
    assert (event.fields["phase"], event.fields["edge"], event.fields["process"]) == (phase, edge, "Worker_TP0")


@pytest.mark.parametrize(
    ("text", "kind", "fields"),
    [
        (W.format(level="ERROR", message=
        "Worker proc VllmWorker-1 died unexpectedly (exit code: -9), shutting down executor."),
         "process_died", {"name": "VllmWorker-1", "exit_code": -9}),
        (W.format(level="ERROR", message="Worker VllmWorkerProcess pid 1159 died, exit code: -6"),
         "process_died", {"name": "VllmWorkerProcess", "pid": 1159, "exit_code": -6}),
        ("  exitcode  : -9 (pid: 4242)", "process_died", {"name": "local rank", "exit_code": -9, "pid": 4242}),
        ("ray.exceptions.ActorDiedError: The actor died unexpectedly", "process_died", {"name": "ray actor"}),
        ("No available shared memory broadcast block found in 60 seconds. This typically happens", "shm_broadcast_wait",
         {"seconds": 60.0}),
        ("TimeoutError: RPC call to sample_tokens timed out.", "rpc_timeout", {"call": "sample_tokens"}),
        ("Killed", "killed", {"signal": "SIGKILL", "exit_code": 137}),
        ("bash: line 1: 4242 Killed                  vllm serve /m", "killed", {"signal": "SIGKILL", "exit_code": 137}),
        ("Loading checkpoint shards:  75%|███ 3/4 [00:08<00:02,  2.83s/it]Killed", "killed",
         {"signal": "SIGKILL", "exit_code": 137}),
        ("Illegal instruction (core dumped)", "killed", {"signal": "SIGILL", "exit_code": 132}),
        ("vllm: error: unrecognized arguments: --no-such-flag 1", "usage_error",
         {"message": "unrecognized arguments: --no-such-flag 1"}),
        ('INFO:     127.0.0.1:1 - "POST /v1/completions HTTP/1.1" 500 Internal Server Error', "request",
         {"method": "POST", "path": "/v1/completions", "status": 500}),
        (W.format(level="INFO", message="[Watchdog]Dumped stack to /d/x.log due to feed timeout"), "watchdog",
         {"who": "vllm", "file": "/d/x.log", "reason": "feed timeout"}),
        ("2026-11-30 20:30:10,866 - WARNING - cubin_loader.py:120 - flashinfer.jit: Downloading http://h/a.cubin:"
         " attempt 1 "
         "failed: timeout", "download", {"what": "file", "state": "retry", "name": "http://h/a.cubin", "attempt": "1"}),
        ("nvcc fatal   : Unknown option '-x'", "jit", {"what": "nvcc", "edge": "failed",
        "name": "Unknown option '-x'"}),
    ],
)  # fmt: skip
def test_signs(text: str, kind: str, fields: dict[str, Any]) -> None:
    events = kinds(events_of(VLLM, text), kind)
    assert [event.fields for event in events] == [fields]


def test_a_compiler_message_is_no_usage_error() -> None:
    for text in ("/tmp/main.cu:12:3: error: expected a ;", "ld: error: x", "Error: text"):
        assert kinds(events_of(VLLM, text), "usage_error") == []


def test_cleaning_up_after_a_death_is_no_orderly_stop() -> None:
    api = W.replace("Worker_TP0", "APIServer")
    stop = api.format(level="INFO", message="[shutdown] MPClient: stopping engine manager")
    death = api.format(level="WARNING", message="[shutdown] MPClient: engine core exited unexpectedly")
    assert len(kinds(events_of(VLLM, f"{stop}\n{death}\n{stop}"), "shutdown")) == 2
    assert kinds(events_of(VLLM, f"{death}\n{stop}"), "shutdown") == []
    args = api.format(level="INFO", message="non-default args: {'port': 8000}")
    assert len(kinds(events_of(VLLM, f"{death}\n{stop}\n{args}\n{stop}"), "shutdown")) == 1  # the next start


def test_clearing_away_before_the_death_is_told_is_no_orderly_stop() -> None:
    api = W.replace("Worker_TP0", "APIServer")
    sent = api.format(level="INFO", message="[shutdown] Process manager: send sigterm to process EngineCore")
    death = api.format(level="WARNING", message="[shutdown] MPClient: engine core exited unexpectedly")
    stop = api.format(level="INFO", message="[shutdown] MPClient: stopping engine manager")
    events = kinds(events_of(VLLM, f"{sent}\n{death}\n{stop}"), "shutdown")
    assert [event.fields["who"] for event in events] == ["Process manager"]


def test_secrets_are_not_kept() -> None:
    facts = {e.fields["name"]: e.fields["value"] for e in events_of(VLLM, "export HF_TOKEN=hf_abc\nVLLM_USE_V1=0\n")
             if e.kind == "fact"}  # fmt: skip
    assert facts == {"env.HF_TOKEN": "(set)", "env.VLLM_USE_V1": "0"}


STATS = (
"(APIServer pid=1) INFO 11-30 20:00:00 [loggers.py:1] Engine {engine:03d}: Avg prompt throughput: 0.0 tokens/s, Avg "
         "generation throughput: {tps} tokens/s, Running: {running} reqs, Waiting: 2 reqs, GPU KV cache usage:"
         " 33.4%, Prefix "
         "cache hit rate: 16.4%")  # fmt: skip


def test_stats_are_thinned_to_what_tells() -> None:
    rows = [STATS.format(engine=0, tps=5.0, running=1)] * 250 + [STATS.format(engine=0, tps="0.0", running=1)] * 3
    events = kinds(events_of(VLLM, "\n".join(rows)), "stats")
    assert [e.span.first_line for e in events] == [1, 250, 251, 253]
    assert events[0].fields == {"prompt_tps": 0.0, "generation_tps": 5.0, "running": 1.0, "waiting": 2.0,
    "kv_usage": 33.4,
                                "engine": "000"}  # fmt: skip


def test_engines_are_thinned_apart() -> None:
    rows = [STATS.format(engine=n % 2, tps="5.0" if n % 2 else "0.0", running=1) for n in range(40)]
    assert [e.span.first_line for e in kinds(events_of(VLLM, "\n".join(rows)), "stats")] == [1, 2, 39, 40]


def test_a_flood_keeps_the_first_and_the_last() -> None:
    rows = [W.format(level="ERROR", message=f"request {n} failed at 0x{n:x}") for n in range(3000)]
    events = kinds(events_of(VLLM, "\n".join(rows)), "record")
    assert len(events) == 1000
    assert events[-1].span.first_line == 3000 and events[-1].fields["count"] == 3000


def test_marks_do_not_pick_a_healthy_middle() -> None:
    marks = [mark.lower() for mark in VLLM.marks]
    for line in (
        '(APIServer pid=1) INFO:     192.0.2.20:41860 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
        "(APIServer pid=1) INFO 11-30 20:00:00 [logger.py:41] Received request cmpl-abc: prompt: 'hi', params: "
        "SamplingParams(n=1, temperature=0.7), prompt_token_ids: None, lora_request: None.",
        "(APIServer pid=1) INFO 11-30 20:00:00 [async_llm.py:270] Added request cmpl-abc.",
        "(APIServer pid=1) INFO 11-30 20:00:00 [metrics.py:100] SpecDecoding metrics: Mean acceptance length: 2.41,"
        " Accepted "
        "throughput: 63.01 tokens/s, Drafted throughput: 134.08 tokens/s, Accepted: 630 tokens",
    ):
        assert not [mark for mark in marks if mark in line.lower().encode()]


POOL = (
    "(Worker_TP0 pid=7) INFO 11-30 20:00:00 [x.py:1] Loading weights took 8.50 seconds",
    "(Worker_TP1 pid=8) INFO 11-30 20:00:00 [x.py:1] Using FLASHINFER attention backend out of potential backends:"
    " ['A'].",
    "(Worker_TP1 pid=8) INFO 11-30 20:00:00 [x.py:1] something that nobody needs",
    "(Worker_TP1 pid=8) WARNING 11-30 20:00:00 [x.py:1] a warning",
    "(Worker_TP1 pid=8) ERROR 11-30 20:00:01 [core.py:1] EngineCore encountered a fatal error.",
    "(Worker_TP1 pid=8) ERROR 11-30 20:00:01 [core.py:1] Traceback (most recent call last):",
    '(Worker_TP1 pid=8) ERROR 11-30 20:00:01 [core.py:1]   File "/v/a.py", line 3, in f',
    "(Worker_TP1 pid=8) ERROR 11-30 20:00:01 [core.py:1]     return g()",
    "(Worker_TP1 pid=8) ERROR 11-30 20:00:01 [core.py:1] RuntimeError: CUDA error: unspecified launch failure",
    "Traceback (most recent call last):",
    '  File "/v/b.py", line 3, in f',
    "    return g()",
    "           ^^^",
    "KeyError: 'x'",
    "",
    "During handling of the above exception, another exception occurred:",
    STATS.format(engine=0, tps="5.0", running=1),
    STATS.format(engine=0, tps="0.0", running=1),
    STATS.format(engine=1, tps="0.0", running=0),
    'INFO:     127.0.0.1:1 - "POST /v1/completions HTTP/1.1" 200 OK',
    'INFO:     127.0.0.1:1 - "POST /v1/completions HTTP/1.1" 500 Internal Server Error',
    "Capturing CUDA graphs (FULL):  50%|█ | 1/2 [00:00<00:00, 5.53it/s]",
    "Capturing CUDA graphs (FULL): 100%|██| 2/2 [00:00<00:00, 5.53it/s]",
    "No available shared memory broadcast block found in 60 seconds.",
    "VLLM_USE_V1=0",
    "Killed",
    "plain words",
    "[rank0]:[W1130 20:07:21.934316880 utils.cpp:68] Warning: x",
    "(APIServer pid=1) INFO 11-30 20:00:05 [launcher.py:1] [shutdown] API server: shutdown triggered",
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(POOL), max_size=60), st.integers(0, 12), st.integers(0, 12))
def test_skipping_unmarked_lines_of_the_middle_changes_nothing(rows: list[str], head: int, tail: int) -> None:
    """Lines of the head lie within the first bytes, as the reader's edge does; the rest far behind."""
    lines = [
        Line(number, number * 300 + (1_000_000 if number > head else 0), number * 300 + 299, text)
        for number, text in enumerate(rows, 1)
    ]
    marks = [mark.lower() for mark in VLLM.marks]
    passed = [
        line
        for line in lines
        if line.number <= head
        or line.number > len(rows) - tail
        or any(mark in line.text.lower().encode() for mark in marks)
    ]
    everything = [short(e) for e in VLLM.read(lines, "x") if isinstance(e,
    Event) and e.kind != "server_log.last_record"]
    marked = [short(e) for e in VLLM.read(passed, "x") if isinstance(e, Event) and e.kind != "server_log.last_record"]
    assert everything == marked


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300))
def test_no_text_is_too_odd(text: str) -> None:
    for parser in (VLLM, SGLANG, TRTLLM):
        events_of(parser, text)
        parser.inspect(as_lines(text), "x")
        parser.sniff(text)
        parser.claims(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 60_000, "[" * 60_000, "a." * 30_000, " " * 60_000, "| " * 30_000, "File \"" * 10_000, "%|" * 30_000,
        "(A pid=1) " * 6_000, "INFO 11-30 20:00:00 [" + "a" * 60_000, "\r" * 60_000, "Using " + "a " * 30_000,
        "Error: " * 9_000, "x" * 200_000, '{"levelname": ' * 5_000, "1/1 " * 15_000, "[rank0]: " * 6_000,
        "CUDA error" * 6_000, "thrown while requesting " * 2_000, "killed line 1: " * 4_000,
    ],
)  # fmt: skip
def test_long_lines_take_no_time(text: str) -> None:
    import time

    begin = time.perf_counter()
    events_of(VLLM, text)
    VLLM.claims(text)
    assert time.perf_counter() - begin < 3.0


def test_a_bar_whose_later_updates_lost_the_decoration() -> None:
    text = (
        "(EngineCore_DP0 pid=9) \rLoading safetensors checkpoint shards:   0% Completed | 0/3 [00:00<?, ?it/s]\n"
        "Loading safetensors checkpoint shards: 100% Completed | 3/3 [00:01<00:00,  2.05it/s]\n"
    )
    assert [e.fields["finished"] for e in kinds(events_of(VLLM, text), "progress_bar")] == [True]


def test_lines_of_one_record_are_one_event() -> None:
    head = "(Worker pid=9) WARNING 11-30 20:00:00 [x.py:7] "
    rows = ["binding info:", "\tbind='auto'", "", "\tcores=[1]"]
    assert len(kinds(events_of(VLLM, "\n".join(head + row for row in rows)), "record")) == 1
    assert len(kinds(events_of(VLLM, "\n".join(head + f"library {n} is missing" for n in "ab")), "record")) == 2
