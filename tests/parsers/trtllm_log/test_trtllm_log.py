"""TensorRT-LLM's own lines."""

from __future__ import annotations

from parsers.contract import Line
from parsers.event import Event
from parsers.trtllm_log import PARSER

TEXT = """\
[TensorRT-LLM] TensorRT LLM version: 1.1.0
[12/20/2025-04:20:11] [TRT-LLM] [I] Starting TensorRT LLM init.
[12/20/2025-04:20:21] [TRT-LLM] [I] Prefetching 63.32GB checkpoint files.
Loading weights: 100%|██████████| 801/801 [00:46<00:00, 17.29it/s]
Model init total -- 49.14s
[TensorRT-LLM][INFO] [MemUsageChange] Allocated 0.56 GiB for max tokens in paged KV cache (8224).
[12/20/2025-04:21:12] [TRT-LLM] [I] [Autotuner] Autotuning process starts ...
[12/20/2025-04:22:14] [TRT-LLM] [RANK 1] [I] iter = 12, global_rank = 1, rank = 1, currank_total_requests = 1/1, \
host_step_time = 8.0ms, prev_device_step_time = 7.9ms, timestamp = 2025-12-20 04:22:14, num_scheduled_requests: 1, \
states = {'num_ctx_requests': 0, 'num_ctx_tokens': 0, 'num_generation_tokens': 1}
[12/20/2025-04:28:14] [TRT-LLM] [RANK 1] [E] Hang detected on rank 1 in PyExecutor.
"""


def test_a_start_and_a_hang() -> None:
    lines = [Line(n, n * 100, n * 100 + 99, text) for n, text in enumerate(TEXT.splitlines(), 1)]
    events = [event for event in PARSER.read(lines, "x") if isinstance(event, Event)]
    phases = [event.fields["phase"] for event in events if event.kind == "server_log.phase"]
    assert phases == ["engine_init", "model_load_begin", "weights_loaded", "kv_size", "autotune_begin", "first_request"]
    stats = next(event for event in events if event.kind == "server_log.stats")
    assert stats.fields["generation_tps"] == 125.0 and stats.fields["engine"] == "1"
    hang = next(event for event in events if event.kind == "server_log.watchdog")
    assert hang.fields["rank"] == 1 and hang.stamp is not None and hang.stamp.text == "2025-12-20 04:28:14"
    assert PARSER.inspect(lines, "x")["versions"] == {"trtllm": "1.1.0"}
