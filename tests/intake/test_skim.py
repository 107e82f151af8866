# ruff: noqa: E501 (records and table rows as they are written)
"""A long log skimmed by hits says what the same log says line by line, with every engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.analyze import analyze, investigate
from analyzer.intake import text
from analyzer.intake.budget import Budget
from analyzer.intake.bursts import KNOWN, Bursts, likeness
from analyzer.intake.literals import NoLiteral, required_literals
from analyzer.reasoning.rulebook import load

BOOK = load()
ACCESS = '(APIServer pid=411) INFO:     10.1.2.3:41000 - "POST /v1/chat/completions HTTP/1.1" 200 OK'
STATS = (
    "(APIServer pid=411) INFO 03-01 00:00:01 [loggers.py:123] Engine 00{}: Avg prompt throughput: {} tokens/s, "
    "Avg generation throughput: {} tokens/s, Running: {} reqs, Waiting: 0 reqs, GPU KV cache usage: 9.1%"
)
ROWS = (
    ACCESS, ACCESS, ACCESS,
    STATS.format(0, "5.0", "7.0", 1), STATS.format(0, "0.0", "0.0", 1), STATS.format(0, "0.0", "0.0", 0),
    STATS.format(1, "3.0", "7.0", 2), STATS.format(1, "0.0", "0.0", 2),
    "(EngineCore_DP0 pid=5) ERROR 03-01 00:00:01 [core.py:710] EngineCore encountered a fatal error.",
    "(EngineCore_DP0 pid=5) ERROR 03-01 00:00:01 [core.py:710] torch.AcceleratorError: CUDA error: an illegal memory access",
    "(APIServer pid=411) WARNING 03-01 00:00:01 [protocol.py:93] The following fields were present: {'x'}",
    "\x1b[33m(APIServer pid=411) INFO 03-01 00:00:01 [shm_broadcast.py:466] No available shared memory broadcast block found"
    " in 60 seconds.\x1b[0m",
    "(APIServer pid=411) INFO 03-01 00:00:01 [a.py:1] GPU KV cache usage: 99.1%, temperature of nothing",
)  # fmt: skip
HEAD = (
    "(APIServer pid=411) INFO 03-01 00:00:00 [api_server.py:1634] Starting vLLM API server 0 on http://0.0.0.0:8000\n"
    "(EngineCore_DP0 pid=5) INFO 03-01 00:00:00 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: x\n"
)


def events(path: Path, budget: Budget) -> list[tuple[str, int, str, str]]:
    analysis = investigate([str(path)], BOOK, budget)
    return [
        (one.kind, one.span.start, one.text, repr(sorted(one.fields.items())))
        for read in analysis.bundle.reads for one in read.events
    ]  # fmt: skip


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(ROWS), min_size=200, max_size=400))
def test_skimming_gives_the_events_of_reading_every_line(tmp_path_factory: pytest.TempPathFactory, rows: list[str]) -> None:
    path = tmp_path_factory.mktemp("log") / "server.log"
    path.write_text(HEAD + "\n".join(rows) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "CHUNK", 4096)
        whole = events(path, Budget(whole_lines=1 << 30))
        skimmed = events(path, Budget(whole_lines=4096, edge=1))
    assert whole == skimmed


@settings(max_examples=6, deadline=None)
@given(st.lists(st.sampled_from(ROWS), min_size=300, max_size=500))
def test_engines_and_adapting_literals_change_no_hypothesis(tmp_path_factory: pytest.TempPathFactory, rows: list[str]) -> None:
    path = tmp_path_factory.mktemp("log") / "server.log"
    path.write_text(HEAD + "\n".join(rows) + "\n")
    said = []
    for engine, limit in (("find", 1 << 30), ("hyperscan", 4096), ("ahocorasick", 4096), ("find", 4096)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(text, "CHUNK", 4096)
            patch.setattr("analyzer.intake.watch.NOISY", 6)
            patch.setenv("STUCKWARP_SCANNER", engine)
            report = json.loads(analyze([str(path)], BOOK, Budget(whole_lines=limit, edge=1)).model_dump_json())
        report.pop("took_s")
        said.append(report)
    assert said[1] == said[2] == said[3]
    for key in ("verdict", "summary", "environment", "symptoms"):
        assert said[0][key] == said[1][key]
    shape = [[(h["rule"], h["confidence"], h["score"]) for h in one["hypotheses"]] for one in said]
    assert shape[0] == shape[1]


def test_a_new_error_in_a_crash_loop_is_never_left_out() -> None:
    bursts = Bursts()
    loop = [b"(E pid=%d) ERROR 03-01 00:00:01 [c.py:1] fatal", b"(E pid=%d) ERROR 03-01 00:00:01 [c.py:1] Traceback"]
    lines = [(i * 2 + j, one % i) for i in range(KNOWN + 50) for j, one in enumerate(loop)]
    assert len(bursts.weed(lines)) == 49 * 2  # the last one of the block is passed on
    other = [(9000, loop[0] % 1), (9001, loop[1] % 1), (9002, b"(E pid=1) ERROR 03-01 00:00:01 [c.py:1] ValueError: new")]
    again = [(9100 + i, one % 2) for i, one in enumerate(loop)]
    assert bursts.weed(other + again) == set()
    assert likeness(b"[ 12.5] NVRM: Xid (PCI:0000:41:00): 79, x") != likeness(b"[ 12.5] NVRM: Xid (PCI:0000:81:00): 79, x")


def test_literals_to_be_avoided() -> None:
    assert required_literals(r"temperature.{0,30}exceeds", frozenset({b"temperature"})) == (b"exceeds",)
    with pytest.raises(NoLiteral):
        required_literals("temperature", frozenset({b"temperature"}))


def test_offsets_are_those_of_the_source_with_colours(tmp_path: Path) -> None:
    line = "\x1b[33m(APIServer pid=1) WARNING 03-01 00:00:01 [a.py:1] odd {}\x1b[0m"
    path = tmp_path / "server.log"
    path.write_text(HEAD + "\n".join(line.format("abcdefghijklmnop"[i % 16]) for i in range(600)) + "\n")
    raw = path.read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "CHUNK", 4096)
        analysis = investigate([str(path)], BOOK, Budget(whole_lines=4096, edge=1))
    found = [e for e in analysis.bundle.reads[0].events if e.kind == "server_log.record"]
    assert len(found) == 600
    for one in found:
        assert raw[one.span.start : one.span.end].endswith(b"\x1b[0m") and one.text.encode()[-3:] in raw[one.span.start : one.span.end]
        assert raw[: one.span.start].count(b"\n") + 1 == one.span.first_line


