"""Which texts the server-log parsers take, and which they leave to others."""

from __future__ import annotations

import pytest

from parsers.sglang_log import PARSER as SGLANG
from parsers.trtllm_log import PARSER as TRTLLM
from parsers.vllm_log import PARSER as VLLM

RECORD = "(EngineCore pid=6052) INFO 11-30 20:24:20 [core.py:133] message"
FOREIGN = {
    "kernel log": "[   12.345678] NVRM: Xid (PCI:0000:41:00): 79, pid=1234, name=python3, GPU off the bus.\n" * 5,
    "kernel log over syslog": "Nov 30 20:00:01 node1 kernel: INFO: task python:1 blocked for more than 120 s.\n" * 5,
    "py-spy dump": 'Process 5116: VLLM::EngineCore\nPython v3.11.7 (/opt/python/bin/python3.11)\n\n'
                   'Thread 5116 (idle): "MainThread"\n    wait (threading.py:355)\n    get (queue.py:171)\n',
    "scrape": '# HELP vllm:num_requests_running Number of requests\n# TYPE vllm:num_requests_running gauge\n'
              'vllm:num_requests_running{engine="0",model_name="m"} 1.0\n',
    "nvidia-smi": "+-----------------------------------------+\n| NVIDIA-SMI 570.86.10    Driver Version: 570.86.10 |\n"
                  "|   0  NVIDIA H200         On  | 00000000:41:00.0 Off |  0 |\n",
    "collect_env": "Collecting environment information...\n==============================\n        System Info\n"
                   "==============================\nOS                           : Ubuntu 24.04\n"
                   "[pip3] torch==2.9.1\nVLLM_LOGGING_LEVEL=DEBUG\n",
    "fabric manager": "[Apr 22 2026 21:34:20] [INFO] [tid 1] multicast group 1 is allocated\n" * 3,
    "faulthandler": 'Fatal Python error: Illegal instruction\n\nCurrent thread 0x00007f91 (most recent call first):\n'
                    '  File "<frozen importlib._bootstrap>", line 241 in _call_with_frames_removed\n'
                    '  File "/opt/x.py", line 3 in f\n',
    "installer": "ERROR: Unable to load the kernel module 'nvidia.ko'.\n\nWARNING: The nvidia-drm module is absent\n",
    "nccl": "node1:202016:202235 [0] NCCL INFO transport/shm.cc:551 -> 2\n" * 4,
    "prose": "The server hangs after a while. Restarting helps.\n",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in FOREIGN if name != "faulthandler"])
def test_foreign_text_is_refused(name: str) -> None:
    for parser in (VLLM, SGLANG, TRTLLM):
        assert parser.sniff(FOREIGN[name]) <= 0.1
        if name != "collect_env":
            assert not any(parser.claims(line) for line in FOREIGN[name].split("\n"))


def test_faulthandler_frames_are_no_traceback() -> None:
    assert VLLM.sniff(FOREIGN["faulthandler"].partition("\n")[2]) <= 0.1


def test_confidence() -> None:
    assert VLLM.sniff("\n".join([RECORD] * 5)) >= 0.9
    assert VLLM.sniff(FOREIGN["kernel log"] + RECORD + "\n" + FOREIGN["kernel log"] * 5) == 0.8
    trace = 'Traceback (most recent call last):\n  File "/a.py", line 1, in f\n    g()\nValueError: x\n'
    assert VLLM.sniff(trace) == 0.6
    assert VLLM.sniff("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.") == 0.6
    assert VLLM.sniff("") == 0.0
    sglang = "[2026-06-07 12:03:35 TP0] Load weight begin. avail mem=16.66 GB\n" * 4
    assert SGLANG.sniff(sglang) >= 0.9 > VLLM.sniff(sglang)
    trtllm = "[12/20/2025-04:20:21] [TRT-LLM] [I] Using LLM with PyTorch backend\n" * 4
    assert TRTLLM.sniff(trtllm) >= 0.9 > VLLM.sniff(trtllm)


@pytest.mark.parametrize(
    "line",
    [
        RECORD,
        "INFO 11-30 20:04:27 config.py:350] message",
        "engine-1  | (APIServer pid=1) INFO 11-30 20:04:27 [config.py:350] message",
        "[node1] (EngineCore pid=4) WARNING 11-30 20:04:27 [config.py:350] message",
        "2026-11-30T20:04:27.123456789Z (APIServer pid=1) INFO 11-30 20:04:27 [config.py:350] message",
        "(vllm-test, pid=2150) (EngineCore_0 pid=3966) Traceback (most recent call last):",
        "(VllmWorker rank=3 pid=1090) ERROR 06-05 06:18:13 [multiproc_executor.py:470] x",
        'INFO:     127.0.0.1:41508 - "POST /v1/completions HTTP/1.1" 500 Internal Server Error',
        "Traceback (most recent call last):",
        '  File "/opt/venv/lib/vllm/core.py", line 12, in run',
        "RuntimeError: CUDA error: unspecified launch failure",
        "[rank4]:[W420 15:33:19.925424531 CUDAGraph.cpp:137] Warning: Waiting for pending NCCL work",
        "2026-11-30 20:25:00,123 - INFO - autotuner.py:1048 - flashinfer.jit: [Autotuner]: Autotuning process starts"
        " ...",
        "Loading safetensors checkpoint shards:  33% Completed | 1/3 [00:00<00:00, 254.22it/s]",
        "Killed",
        "vllm: error: unrecognized arguments: --no-such-flag",
    ],
)
def test_claimed_at_the_start_of_the_line(line: str) -> None:
    assert VLLM.claims(line)


@pytest.mark.parametrize(
    "line",
    [
        f"the log says: {RECORD}",
        f"Nov 30 20:00:00 node1 kernel: quoted {RECORD}",
        "    Thread 5116 (idle): \"MainThread\"",
        "[   12.345678] NVRM: Xid (PCI:0000:41:00): 79, pid=1234",
        "  Error: something",
        "0, NVIDIA H200, 100 %, 0 %, 120.5 W",
        "All of it was Killed by accident",
    ],
)
def test_a_quotation_is_not_claimed(line: str) -> None:
    assert not VLLM.claims(line)
