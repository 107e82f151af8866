# ruff: noqa: E501 (lines as a server writes them)
"""A made-up vLLM server log of any size: the same bytes for the same arguments.

Lines of a busy server: access lines (87 %), request lines of `--enable-log-requests` (9 %), throughput lines (3 %),
debug and info lines (1 %), one warning in a thousand; start-up at the head. Beside them `signal` of all lines are
records that a rule or the parser knows: the samples of the shipped rules one after another, or, from 10 % on, a crash
loop (the same two tracebacks over and over), as a restarting server writes it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

STAMP = b"##-## ##:##:##"
BEGIN = datetime(2026, 3, 1)

_STARTUP = b"""\
(APIServer pid=411) INFO ##-## ##:##:## [utils.py:233] non-default args: {'model': 'Qwen/Qwen3-8B', 'max_model_len': 8192}
(APIServer pid=411) INFO ##-## ##:##:## [model.py:547] Resolved architecture: Qwen3ForCausalLM
(EngineCore_DP0 pid=522) INFO ##-## ##:##:## [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='Qwen/Qwen3-8B', dtype=torch.bfloat16
(EngineCore_DP0 pid=522) INFO ##-## ##:##:## [gpu_model_runner.py:2602] Starting to load model Qwen/Qwen3-8B...
(EngineCore_DP0 pid=522) INFO ##-## ##:##:## [default_loader.py:267] Loading weights took 3.25 seconds
(EngineCore_DP0 pid=522) INFO ##-## ##:##:## [gpu_worker.py:298] Available KV cache memory: 50.31 GiB
(EngineCore_DP0 pid=522) INFO ##-## ##:##:## [core.py:210] init engine (profile, create kv cache, warmup model) took 21.54 seconds
(APIServer pid=411) INFO ##-## ##:##:## [api_server.py:1634] Starting vLLM API server 0 on http://0.0.0.0:8000
(APIServer pid=411) INFO:     Started server process [411]
(APIServer pid=411) INFO:     Waiting for application startup.
(APIServer pid=411) INFO:     Application startup complete.
"""

_LOOP = (
    b"(EngineCore_DP0 pid=522) ERROR ##-## ##:##:## [core.py:710] EngineCore encountered a fatal error.\n"
    b"(EngineCore_DP0 pid=522) ERROR ##-## ##:##:## [core.py:710] Traceback (most recent call last):\n"
    b'(EngineCore_DP0 pid=522) ERROR ##-## ##:##:## [core.py:710]   File "/opt/vllm/vllm/v1/engine/core.py", line 701, in run_engine_core\n'
    b"(EngineCore_DP0 pid=522) ERROR ##-## ##:##:## [core.py:710]     engine_core.run_busy_loop()\n"
    b'(EngineCore_DP0 pid=522) ERROR ##-## ##:##:## [core.py:710]   File "/opt/vllm/vllm/v1/worker/gpu_model_runner.py", line 2211, in execute_model\n'
    b"(EngineCore_DP0 pid=522) ERROR ##-## ##:##:## [core.py:710]     model_output = self.model(\n"
    b"(EngineCore_DP0 pid=522) ERROR ##-## ##:##:## [core.py:710] torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n",
    b"(APIServer pid=411) ERROR ##-## ##:##:## [async_llm.py:480] AsyncLLM output_handler failed.\n"
    b"(APIServer pid=411) ERROR ##-## ##:##:## [async_llm.py:480] Traceback (most recent call last):\n"
    b'(APIServer pid=411) ERROR ##-## ##:##:## [async_llm.py:480]   File "/opt/vllm/vllm/v1/engine/async_llm.py", line 439, in output_handler\n'
    b"(APIServer pid=411) ERROR ##-## ##:##:## [async_llm.py:480]     outputs = await engine_core.get_output_async()\n"
    b"(APIServer pid=411) ERROR ##-## ##:##:## [async_llm.py:480] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered "
    b"an issue. See stack trace (above) for the root cause.\n",
)


def _second(rng: random.Random, lines: int) -> bytes:
    """What a server writes in one second."""
    out = []
    for _ in range(lines):
        kind = rng.random()
        if kind < 0.87:
            path = rng.choice(("/v1/chat/completions", "/v1/chat/completions", "/v1/completions", "/health", "/metrics"))
            verb = "POST" if "completions" in path else "GET"
            out.append(f'(APIServer pid=411) INFO:     10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(256)}:'
                       f'{rng.randrange(1024, 65536)} - "{verb} {path} HTTP/1.1" 200 OK')
        elif kind < 0.96:
            out.append(f"(APIServer pid=411) INFO ##-## ##:##:## [logger.py:40] Received request chatcmpl-{rng.getrandbits(128):032x}: "
                       f"params: SamplingParams(n=1, presence_penalty=0.0, frequency_penalty=0.0, temperature=0.{rng.randrange(10)}, "
                       f"top_p=0.95, top_k=20, seed=None, stop=[], max_tokens={rng.randrange(4096)}), lora_request: None.")
        elif kind < 0.99:
            out.append(f"(APIServer pid=411) INFO ##-## ##:##:## [loggers.py:123] Engine 000: Avg prompt throughput: "
                       f"{rng.randrange(1, 90000) / 10} tokens/s, Avg generation throughput: {rng.randrange(1, 90000) / 10} tokens/s, "
                       f"Running: {rng.randrange(1, 256)} reqs, Waiting: {rng.randrange(32)} reqs, GPU KV cache usage: "
                       f"{rng.randrange(1000) / 10}%, Prefix cache hit rate: {rng.randrange(1000) / 10}%")
        elif kind < 0.999:
            out.append(f"(APIServer pid=411) INFO ##-## ##:##:## [async_llm.py:292] Added request chatcmpl-{rng.getrandbits(128):032x}.")
        else:
            out.append(f"(APIServer pid=411) WARNING ##-## ##:##:## [protocol.py:{rng.randrange(90, 99)}] The following fields were present "
                       "in the request but ignored: {'logit_bias'}")
    return "\n".join(out).encode() + b"\n"


def signals() -> list[bytes]:
    """One line a pattern clause of the shipped rules that is looked for in server logs, in a stable order."""
    from analyzer.reasoning.rulebook import load

    found: dict[bytes, None] = {}
    for rule in load().rules.values():
        for clause in rule.clauses:
            if clause.pattern is not None and (not clause.sources or "server_log" in clause.sources):
                for sample in clause.samples[:1]:
                    found[sample.split("\n")[0].encode()] = None
    head = b"(EngineCore_DP0 pid=522) WARNING ##-## ##:##:## [core.py:310] "
    return [head + line + b"\n" for line in sorted(found)]


def pieces(size: int, signal: float, seed: int = 7) -> Iterator[bytes]:
    """The log in pieces, about `size` bytes in all; `signal` = share of signal lines (0 to 1)."""
    rng = random.Random(seed)
    lines = 40
    pool = [_second(rng, lines) for _ in range(400)]
    telling: Sequence[bytes] = signals() if signal < 0.1 else _LOOP
    owed, which, written, second = 0.0, 0, 0, 0
    yield _STARTUP.replace(STAMP, b"03-01 00:00:00")
    while written < size:
        batch = []
        length = 0
        while length < 1 << 20:
            block = pool[rng.randrange(len(pool))]
            owed += lines * signal / (1 - signal)
            if owed >= 1:
                extra = []
                while owed >= 1:
                    one = telling[which % len(telling)]
                    which += 1
                    owed -= one.count(b"\n")
                    extra.append(one)
                block += b"".join(extra)
            when = BEGIN + timedelta(seconds=second)
            second += 1
            batch.append(block.replace(STAMP, when.strftime("%m-%d %H:%M:%S").encode()))
            length += len(block)
        written += length
        yield b"".join(batch)


def write(path: Path, size: int, signal: float) -> None:
    """The log as a file."""
    with path.open("wb") as file:
        for piece in pieces(size, signal):
            file.write(piece)
