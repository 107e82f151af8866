"""The onset is the stop, not the time-out that fires minutes later."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.analyze import analyze
from analyzer.reasoning.onset import earlier
from analyzer.report import Moment
from parsers.stamp import ClockKind, Stamp

HEAD = """INFO 03-14 02:10:00 [core.py:105] Initializing a V1 LLM engine (v0.19.1) with config: model='m'
INFO 03-14 02:11:00 [core.py:200] init engine (profile, create kv cache, warmup model) took 30.00 seconds
INFO:     Application startup complete.
"""
MOVING = (
    "INFO 03-14 02:{at} [loggers.py:257] Engine 000: Avg prompt throughput: 10.0 tokens/s, Avg generation throughput: "
    "120.0 tokens/s, Running: 2 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%\n"
)
STILL = (
    "INFO 03-14 02:{at} [loggers.py:257] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: "
    "0.0 tokens/s, Running: 2 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%\n"
)
WAIT = (
    "INFO 03-14 02:{at} [shm_broadcast.py:466] No available shared memory broadcast block found in 60 seconds. "
    "This typically happens when some processes are hanging or doing some time-consuming work.\n"
)


def onset(tmp_path: Path, **files: str) -> Moment | None:
    for name, text in files.items():
        (tmp_path / f"{name}.txt").write_text(text)
    return analyze([str(tmp_path)]).timeline.onset


def test_a_stall_begins_at_the_last_tokens(tmp_path: Path) -> None:
    found = onset(
        tmp_path, server=HEAD + MOVING.format(at="12:00") + MOVING.format(at="12:10") + STILL.format(at="12:20")
    )
    assert found is not None and found.as_written == "03-14 02:12:10" and found.time is None
    assert found.uncertainty_s == 10


def test_a_broadcast_wait_leads_back_by_its_minute(tmp_path: Path) -> None:
    text = (
        HEAD + MOVING.format(at="12:10") + STILL.format(at="12:20") + WAIT.format(at="13:05") + WAIT.format(at="14:05")
    )
    found = onset(tmp_path, server=text)
    assert found is not None and found.as_written == "03-14 02:12:05"
    assert "a wait of 60 s" in found.what


def test_an_rpc_time_out_is_not_the_onset(tmp_path: Path) -> None:
    text = (
        HEAD
        + MOVING.format(at="12:10")
        + STILL.format(at="12:20")
        + "ERROR 03-14 02:17:12 [core.py:900] EngineCore encountered a fatal error.\n"
        "ERROR 03-14 02:17:12 [core.py:900] Traceback (most recent call last):\n"
        "ERROR 03-14 02:17:12 [core.py:900] TimeoutError: RPC call to execute_model timed out.\n"
    )
    found = onset(tmp_path, server=text)
    assert found is not None and found.as_written is not None and found.as_written.startswith("03-14 02:12:1")


def test_a_death_is_an_onset(tmp_path: Path) -> None:
    text = (
        HEAD
        + MOVING.format(at="12:10")
        + (
            "ERROR 03-14 02:12:14 [multiproc_executor.py:300] Worker proc VllmWorker-1 died unexpectedly "
            "(exit code: -9), shutting down executor.\n"
        )
    )
    found = onset(tmp_path, server=text)
    assert found is not None and found.as_written == "03-14 02:12:14"


def test_nothing_stopped_no_onset(tmp_path: Path) -> None:
    assert onset(tmp_path, server=HEAD + MOVING.format(at="12:00") + MOVING.format(at="12:10")) is None


@pytest.mark.parametrize(
    ("stamp", "back", "wanted"),
    [
        (Stamp("03-14 00:00:30", ClockKind.WALL, 6307230.0 + 63072000, 1.0, False), 60, "03-13 23:59:30"),
        (Stamp("93297.027938", ClockKind.BOOT, 93297.027938, 1e-6), 120, "93177.027938"),
        (Stamp("12:00:10", ClockKind.WALL, 43210.0, 1.0, False, False), 60, "11:59:10"),
    ],
)
def test_an_earlier_reading_is_written_as_its_clock_writes(stamp: Stamp, back: float, wanted: str) -> None:
    assert earlier(stamp, back) == wanted
