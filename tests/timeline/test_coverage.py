"""Absence counts only where a log that would have survived covers the stop."""

from __future__ import annotations

from pathlib import Path

from analyzer.analyze import investigate
from analyzer.reasoning.coverage import looked

SERVER = """2026-03-14T02:11:00.000001Z INFO 03-14 02:11:00 [core.py:200] init engine (profile, create kv cache, warmup model) took 30.00 seconds
2026-03-14T02:12:00.000001Z INFO 03-14 02:12:00 [loggers.py:257] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 9.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%
2026-03-14T02:12:10.000001Z INFO 03-14 02:12:10 [loggers.py:257] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%
"""  # noqa: E501
LINE = (
    "{day}T{at}+00:00 node1 kernel: NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n"
)
QUIET = "{day}T{at}+00:00 node1 kernel: docker0: port 1(veth3b1a2f7) entered forwarding state\n"


def answer(tmp_path: Path, kernel: str) -> tuple[bool, str]:
    (tmp_path / "server.log").write_text(SERVER)
    (tmp_path / "kern.log").write_text(kernel)
    return looked(investigate([str(tmp_path)]).bundle, "kernel_log")


def test_a_log_that_spans_the_stop_counts(tmp_path: Path) -> None:
    kernel = LINE.format(day="2026-03-14", at="01:00:00") + QUIET.format(day="2026-03-14", at="03:00:00")
    assert answer(tmp_path, kernel) == (True, "")


def test_a_log_that_begins_after_the_stop_does_not(tmp_path: Path) -> None:
    counts, why = answer(
        tmp_path, LINE.format(day="2026-03-15", at="01:00:00") + QUIET.format(day="2026-03-15", at="03:00:00")
    )
    assert not counts and "begins after the stop" in why


def test_a_log_that_ends_before_the_stop_does_not(tmp_path: Path) -> None:
    counts, why = answer(
        tmp_path, LINE.format(day="2026-03-13", at="01:00:00") + QUIET.format(day="2026-03-13", at="03:00:00")
    )
    assert not counts and "ends before the stop" in why


def test_without_a_kernel_log_nothing_was_looked_at(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text(SERVER)
    assert looked(investigate([str(tmp_path)]).bundle, "kernel_log") == (False, "")
