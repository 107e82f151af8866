"""What to collect next: commands with what the input names, the dump last with its price, and what to switch on."""

from __future__ import annotations

from pathlib import Path

from analyzer.analyze import analyze
from analyzer.reasoning.next_steps import DUMP_RISK
from analyzer.report import NextStep

STALL = """(APIServer pid=100) INFO 03-14 02:10:00 [api_server.py:10] Starting vLLM server on http://0.0.0.0:9123
(EngineCore pid=201) INFO 03-14 02:10:30 [core.py:105] Initializing a V1 LLM engine (v0.32.0) with config: model='m', tensor_parallel_size=2
(Worker_TP0 pid=301) INFO 03-14 02:10:40 [gpu_model_runner.py:1] Starting to load model m...
(Worker_TP1 pid=302) INFO 03-14 02:10:40 [gpu_model_runner.py:1] Starting to load model m...
(EngineCore pid=201) INFO 03-14 02:11:00 [core.py:200] init engine (profile, create kv cache, warmup model) took 30.00 s
(APIServer pid=100) INFO 03-14 02:12:00 [loggers.py:257] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 9.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%
(APIServer pid=100) INFO 03-14 02:12:10 [loggers.py:257] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%
"""  # noqa: E501
DEATH = STALL + (
    "(EngineCore pid=201) ERROR 03-14 02:12:14 [multiproc_executor.py:300] Worker proc VllmWorker-1 died "
    "unexpectedly (exit code: -9), shutting down executor.\n"
)


def steps(tmp_path: Path, text: str) -> list[NextStep]:
    (tmp_path / "server.log").write_text(text)
    return analyze([str(tmp_path)]).next_steps


def test_commands_bear_the_pids_and_the_port_of_the_input(tmp_path: Path) -> None:
    commands = "\n".join(step.command for step in steps(tmp_path, STALL))
    assert "201 301 302" in commands and "py-spy dump --nonblocking" in commands
    assert "localhost:9123/metrics" in commands


def test_the_dump_comes_last_with_its_price(tmp_path: Path) -> None:
    now = [step for step in steps(tmp_path, STALL) if step.when == "now"]
    assert now[-1].risk == DUMP_RISK and "corepipe" in now[-1].command
    assert not any(step.risk == DUMP_RISK for step in now[:-1])


def test_what_to_switch_on_is_marked(tmp_path: Path) -> None:
    later = [step for step in steps(tmp_path, STALL) if step.when == "next time"]
    text = "\n".join(step.command for step in later)
    assert all(step.collect.startswith("For next time") for step in later)
    for word in (
        "journal",
        "CUDA_ENABLE_USER_TRIGGERED_COREDUMP",
        "watchdog-config.dump_dir",
        "TORCH_NCCL_TRACE_BUFFER_SIZE",
    ):
        assert word in text


def test_a_dead_process_is_not_asked(tmp_path: Path) -> None:
    now = "\n".join(step.command for step in steps(tmp_path, DEATH) if step.when == "now")
    assert "py-spy" not in now and "/metrics" not in now and "dmesg" in now


FAILED_START = """(APIServer pid=100) INFO 03-14 02:10:00 [api_server.py:10] vLLM API server version 0.12.0
Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/engine/core_client.py", line 93, in make_async_mp_client
    return AsyncMPClient(*client_args)
  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/engine/utils.py", line 964, in wait_for_engine_startup
    raise RuntimeError(
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""


def test_of_a_failed_start_only_what_is_left_is_asked_for(tmp_path: Path) -> None:
    wanted = steps(tmp_path, FAILED_START)
    commands = "\n".join(step.command for step in wanted)
    assert "first line on" in wanted[0].collect and "collect-env" in commands
    assert not any(word in commands for word in ("py-spy", "/metrics", "corepipe", "watchdog"))


def test_a_traceback_behind_a_wrappers_own_prefix_is_one(tmp_path: Path) -> None:
    wrapped = "".join(f"2025-06-27 12:57:51,690 - __main__ - INFO - {line}\n" for line in FAILED_START.splitlines()[1:])
    piped = "".join(f"2024-03-20 19:18:27 | ERROR | stderr | {line}\n" for line in FAILED_START.splitlines()[1:])
    for text in (wrapped, piped):
        assert "first line on" in steps(tmp_path, text)[0].collect


def test_a_remedy_names_the_process_that_the_evidence_names(tmp_path: Path) -> None:
    (tmp_path / "status.txt").write_text("Name:\tVLLM::EngineCor\nState:\tT (stopped)\nPid:\t4711\nPPid:\t1\n")
    assert "kill -CONT 4711;" in analyze([str(tmp_path)]).hypotheses[0].remedies[0].do
    (tmp_path / "status.txt").write_text("Name:\tVLLM::EngineCor\nState:\tT (stopped)\n")
    assert "kill -CONT <pid>;" in analyze([str(tmp_path)]).hypotheses[0].remedies[0].do
