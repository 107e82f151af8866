"""TensorRT-LLM's own lines."""

from __future__ import annotations

from pathlib import Path

from parsers.contract import Line
from parsers.event import Event
from parsers.trtllm_log import PARSER

TEXT = (Path(__file__).parents[3] / "fixtures" / "trtllm_log" / "start-then-hang.log").read_text()


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
