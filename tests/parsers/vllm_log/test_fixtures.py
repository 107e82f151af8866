"""Real logs against reviewed snapshots and against counts that another script made."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from log_lines import as_lines, events_of, short

from parsers.sglang_log import PARSER as SGLANG
from parsers.trtllm_log import PARSER as TRTLLM
from parsers.vllm_log import PARSER as VLLM

FIXTURES = Path(__file__).parents[3] / "fixtures"
CASES = [(VLLM, path) for path in sorted((FIXTURES / "vllm_log").glob("*.log"))]
CASES += [(SGLANG, path) for path in sorted((FIXTURES / "sglang_log").glob("*.log"))]
CASES += [(TRTLLM, path) for path in sorted((FIXTURES / "trtllm_log").glob("*.log"))]
TRUTH: dict[str, Any] = json.loads((FIXTURES / "vllm_log" / "truth.json").read_text())
NAMED = {
    "args", "config", "engine_init", "dist", "model_load_begin", "weights_loaded", "compile_done", "warmup_done",
    "kv_size", "engine_ready", "api_start",
}  # fmt: skip


@pytest.mark.parametrize(("parser", "path"), CASES, ids=[path.stem for _, path in CASES])
def test_events_are_those_reviewed(parser: Any, path: Path) -> None:
    found = json.loads(json.dumps([short(event) for event in events_of(parser, path.read_bytes())]))
    snapshot = path.with_suffix(".json")
    if os.environ.get("UPDATE_SNAPSHOTS"):
        rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in found)
        snapshot.write_text(f"[\n{rows}\n]\n")
    assert found == json.loads(snapshot.read_text())


@pytest.mark.parametrize("name", sorted(TRUTH))
def test_counts_are_those_of_the_separate_count(name: str) -> None:
    want = TRUTH[name]
    view = VLLM.inspect(as_lines((FIXTURES / "vllm_log" / name).read_bytes()), name)
    assert view["lines"] == want["lines"]
    assert view["levels"] == want["levels"]
    assert {who: row["records"] for who, row in view["processes"].items()} == want["records"]
    assert {who: sorted(row["pids"]) for who, row in view["processes"].items() if row["pids"]} == want["pids"]
    assert view["versions"].get("vllm") == want["version"]
    markers = [[m["phase"], m["line"], m["process"]] for m in view["phase_markers"] if m["phase"] in NAMED]
    assert sorted(markers) == sorted(want["phase_markers"])
    assert view["last_record"]["line"] == want["last_record_line"]
    assert view["shm_broadcast_warnings"] == want["shm_broadcast_warnings"]


@pytest.mark.parametrize(("parser", "path"), CASES, ids=[path.stem for _, path in CASES])
def test_a_cut_file_gives_what_is_left(parser: Any, path: Path) -> None:
    data = path.read_bytes()
    for cut in range(0, len(data), max(1, len(data) // 37)):
        events = events_of(parser, data[:cut])
        assert all(event.span.end <= cut + 1 for event in events)
        assert all(event.span.first_line >= 1 for event in events)


def test_an_open_bar_is_the_last_word_of_a_freeze() -> None:
    text = "Processed prompts:   0%|          | 0/768 [00:00<?, ?it/s, est. speed input: 0.00 toks/s]"
    bar = next(event for event in events_of(VLLM, text) if event.kind == "server_log.progress_bar")
    assert bar.fields == {"bar": "Processed prompts", "done": 0, "total": 768, "finished": False, "family": "prompts"}


def test_view_of_a_stretch_left_open() -> None:
    text = (
        "(Worker_TP0 pid=1) INFO 11-30 20:00:00 [gpu_model_runner.py:1] Starting to load model /m...\n"
        "(Worker_TP0 pid=1) INFO 11-30 20:00:09 [default_loader.py:1] Loading weights took 8.50 seconds\n"
        "(Worker_TP0 pid=1) INFO 11-30 20:00:10 [backends.py:1] Using cache directory: /c for vLLM's torch.compile\n"
    )
    rows = VLLM.inspect(as_lines(text), "x")["phases"]
    assert [(row["phase"], row["state"]) for row in rows] == [("model_load", "done"), ("compile", "open")]
