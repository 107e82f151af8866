"""One record shape for every writer."""

from __future__ import annotations

import pytest

from parsers.stamp import ClockKind
from parsers.vllm_log.bars import read_bar
from parsers.vllm_log.facts import pairs, settings
from parsers.vllm_log.record import read_stamp, split

SHAPES = [
    ("INFO 11-30 20:04:27 config.py:350] message", ("vllm", "INFO", "config.py", "", None, "message")),
    ("INFO 11-30 20:04:27 [config.py:350] message", ("vllm", "INFO", "config.py", "", None, "message")),
    ("(APIServer pid=22) INFO 11-30 20:04:27 [config.py:350] message",
     ("vllm", "INFO", "config.py", "APIServer", 22, "message")),
    ("(EngineCore pid=4) [node1] INFO 11-30 20:04:27 [core.py:1] m", ("vllm", "INFO", "core.py", "EngineCore", 4, "m")),
    ("[node1] (EngineCore pid=4) INFO 11-30 20:04:27 [core.py:1] m", ("vllm", "INFO", "core.py", "EngineCore", 4, "m")),
    ("\x1b[0;36m(Worker pid=9)\x1b[0;0m \x1b[32mINFO\x1b[0m \x1b[90m11-30 20:04:27\x1b[0m"
     " \x1b[90m[core.py:133]\x1b[0m msg",
     ("vllm", "INFO", "core.py", "Worker", 9, "msg")),
    ("(VllmWorker rank=3 pid=1090) ERROR 06-05 06:18:13 [multiproc_executor.py:470]   File \"x\"",
     ("vllm", "ERROR", "multiproc_executor.py", "VllmWorker", 1090, "  File \"x\"")),
    (
    "(ServeReplica:app:D pid=1) (EngineCore pid=2) (RayWorkerProc pid=3) (Worker pid=4) INFO 08-19 18:00:14 [k.py:1] m",
     ("vllm", "INFO", "k.py", "Worker", 4, "m")),
    ("(RayWorkerWrapper pid=1890, ip=192.0.2.11) ERROR 08-02 08:50:03 worker_base.py:382] Error executing method",
     ("vllm", "ERROR", "worker_base.py", "RayWorkerWrapper", 1890, "Error executing method")),
    ("vllm-1  | (Worker_DP0_PP1_TP3_EP3 pid=7) WARNING 01-01 00:00:00 [v1/engine/core.py:1] m",
     ("vllm", "WARNING", "v1/engine/core.py", "Worker_DP0_PP1_TP3_EP3", 7, "m")),
    ("(W pid=7) DEBUG 01-01 00:00:00 [model_executor/.../quantization/fp8_utils.py:944] m",
     ("vllm", "DEBUG", "model_executor/.../quantization/fp8_utils.py", "W", 7, "m")),
    ("NING 04-01 02:45:50 ray_utils.py:320] cut at the head", ("vllm", "WARNING", "ray_utils.py", "", None,
                                                               "cut at the head")),
    ("INFO [pynccl.py:113] vLLM is using nccl==2.28.9", ("vllm", "INFO", "pynccl.py", "", None,
                                                         "vLLM is using nccl==2.28.9")),
    ('{"asctime": "2026-11-30 20:41:16,424", "levelname": "INFO", "name": "vllm.x", "processName": "MainProcess", '
     '"process": 26018, "message": "hello", "vllm_process_name": "APIServer"}',
     ("json", "INFO", "vllm.x", "APIServer", 26018, "hello")),
    ("(APIServer pid=1) INFO:     Application startup complete.",
     ("uvicorn", "INFO", "", "APIServer", 1, "Application startup complete.")),
    ("[rank4]:[W420 15:33:19.925424531 CUDAGraph.cpp:137] Warning: Waiting", ("torch", "WARNING", "CUDAGraph.cpp",
    "", None,
                                                                              "Warning: Waiting")),
    ("[W1130 20:07:21.934316880 utils.cpp:68] Warning: x", ("torch", "WARNING", "utils.cpp", "", None, "Warning: x")),
    ("W1130 20:23:46.684000 6039 torch/_dynamo/x.py:6] [0/0] text", ("torch", "WARNING", "torch/_dynamo/x.py", "", 6039,
                                                                     "[0/0] text")),
    ("2026-11-30 20:25:00,123 - INFO - autotuner.py:1048 - flashinfer.jit: [Autotuner]: x",
     ("logging", "INFO", "autotuner.py", "", None, "[Autotuner]: x")),
    ("2025-07-29 00:56:18,372 - INFO - flashinfer.jit: Fetching cubin a",
     ("logging", "INFO", "flashinfer.jit", "", None, "Fetching cubin a")),
    ("[2026-06-07 12:03:27 DP1 TP0] Load weight begin.", ("stamped", "", "", "DP1_TP0", None, "Load weight begin.")),
    ("[12/20/2025-04:20:21] [TRT-LLM] [RANK 3] [W] text", ("trtllm", "WARNING", "", "", None, "text")),
    ("2025-09-01T10:00:00.1234Z  WARN core.__init__: text", ("logging", "WARNING", "core.__init__", "", None, "text")),
    ("plain text", ("bare", "", "", "", None, "plain text")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "want"), SHAPES, ids=[text[:40] for text, _ in SHAPES])
def test_shapes(text: str, want: tuple[object, ...]) -> None:
    record = split(text)[-1]
    assert (record.writer, record.level, record.module, record.process, record.pid, record.message) == want


def test_a_bar_and_a_record_on_one_line() -> None:
    text = ("[AutoTuner]: Tuning trtllm::fused_moe::gemm1:  60%|██████    | 3/5 [00:00<00:00, 17.53profile/s]"
            "2026-05-16 17:30:20,962 - INFO - autotuner.py:1274 - flashinfer.jit: next")  # fmt: skip
    bar, record = split(text)
    assert read_bar(bar.message) is not None and record.message == "next"


def test_a_record_glued_to_an_unterminated_line() -> None:
    text = "See https://nanobind.readthedocs.io/en/latest/refleaks.html(W pid=1) INFO 11-30 20:00:00 [core.py:1] next"
    assert [record.message for record in split(text)][-1] == "next"


@pytest.mark.parametrize(
    ("text", "clock", "value", "year_known"),
    [
        ("11-30 20:04:27", ClockKind.WALL, 92001867.0, False),
        ("02-29 00:00:00", ClockKind.WALL, 68169600.0, False),
        ("2026-11-30 20:41:16,424", ClockKind.WALL, 1796071276.424, True),
        ("2026-11-30T20:41:16Z", ClockKind.UTC, 1796071276.0, True),
        ("2026-11-30 22:41:16+02:00", ClockKind.UTC, 1796071276.0, True),
    ],
)
def test_stamps(text: str, clock: ClockKind, value: float, year_known: bool) -> None:
    stamp = read_stamp(text)
    assert stamp is not None
    assert (stamp.text, stamp.clock, stamp.year_known) == (text, clock, year_known)
    assert stamp.value == pytest.approx(value)


@pytest.mark.parametrize("text", ["13-40 20:04:27", "11-30 25:00:00", "yesterday", "2026-02-30 00:00:00"])
def test_no_stamp_is_made_up(text: str) -> None:
    assert read_stamp(text) is None


@pytest.mark.parametrize(
    ("text", "name", "done", "total", "finished"),
    [
        ("Loading safetensors checkpoint shards:  33% Completed | 1/3 [00:00<00:00, 254.22it/s]",
         "Loading safetensors checkpoint shards", 1, 3, False),
        ("Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  12%|█▏ | 6/51 [00:01<00:09, 4.5it/s]",
         "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE)", 6, 51, False),
        ("Capturing CUDA graphs (FULL): 0%| | 0/2 [00:00<?, ?it/s]", "Capturing CUDA graphs (FULL)", 0, 2, False),
        ("Capturing batches (bs=256 avail_mem=12.32 GB):   3%|▎         | 1/36 [00:10<06:13, 10.66s/it]",
         "Capturing batches", 1, 36, False),
        ("  0%|          | 0/36 [00:00<?, ?it/s]", "", 0, 36, False),
        ("[AutoTuner]: Tuning fp4_gemm: 3/12 profile", "[AutoTuner]: Tuning fp4_gemm", 3, 12, False),
        ("model-00001-of-00004.safetensors:  12%|█▏ | 598M/4.98G [00:13<01:40, 43.5MB/s]",
         "model-00001-of-00004.safetensors", 598e6, 4.98e9, False),
        ("Loading weights concurrently: 100% 45/45 [00:01<00:00, 35.06it/s]", "Loading weights concurrently", 45, 45,
        True),
    ],
)  # fmt: skip
def test_bars(text: str, name: str, done: float, total: float, finished: bool) -> None:
    bar = read_bar(text)
    assert bar is not None
    assert (bar.name, bar.done, bar.total, bar.finished) == (name, pytest.approx(done), pytest.approx(total), finished)


@pytest.mark.parametrize("text", ["50% of 3/4 people", "a | b / c", "GPU KV cache usage: 33.4%, 1/2"])
def test_no_bar(text: str) -> None:
    assert read_bar(text) is None


def test_settings_keep_to_their_level() -> None:
    values, stated = settings(
        "Initializing a V1 LLM engine (v0.20.2) with config: model='/m, x',"
        " speculative_config=SpeculativeConfig(method='mtp', "
        "model='/draft'), tensor_parallel_size=8, dtype=torch.bfloat16, kv_cache_dtype=auto, "
        "compilation_config={'mode': <CompilationMode.NONE: 0>, 'cudagraph_mode': <CUDAGraphMode.FULL_AND_PIECEWISE:"
        " (2, 1)>}"
    )
    assert values["model"] == "'/m, x'" and values["speculative_config.model"] == "'/draft'"
    assert dict(stated) == {
        "vllm.version": "0.20.2", "vllm.engine": "v1", "model.name": "/m, x", "spec.method": "mtp",
        "spec.model": "/draft",
        "parallel.tp": "8", "model.dtype": "bfloat16", "cudagraph.mode": "FULL_AND_PIECEWISE",
    }  # fmt: skip


@pytest.mark.parametrize("text", ["(" * 5000, "a=" * 5000, "'" * 999, "a=(b=(c=[d={e='", ")))a=1",
"<" * 100 + ">" * 200])
def test_odd_brackets_end(text: str) -> None:
    assert isinstance(list(pairs(text)), list)
