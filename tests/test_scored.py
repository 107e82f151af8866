"""The whole rulebook on the labelled public reports and injected runs beside the checkout, so that a change in ranking
is seen. Skipped where they are not there."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from analyzer.analyze import analyze
from analyzer.reasoning.rulebook import load

SHARED = Path(__file__).parent.parent.parent / "shared"

pytestmark = pytest.mark.skipif(
    not (SHARED / "cases").is_dir(), reason="the labelled reports are not beside the checkout"
)


@pytest.fixture(scope="module")
def scorer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("score_cases", SHARED / "tools" / "score_cases.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def rows(scorer: ModuleType) -> list[dict[str, Any]]:
    rulebook = load()
    found = []
    for case in sorted(p.parent for home in ("cases", "runs") for p in (SHARED / home).glob("*/case.json")):
        label = json.loads((case / "case.json").read_text())
        report = analyze([str(scorer.input_of(case))], rulebook)
        found.append(scorer.judge(label, json.loads(report.model_dump_json())))
    return found


def share(rows: list[dict[str, Any]], key: str) -> float:
    told = [bool(row[key]) for row in rows if row.get(key) is not None]
    return sum(told) / len(told)


def names(rows: list[dict[str, Any]], key: str) -> list[str]:
    return [row["id"] for row in rows if row.get(key)]


def test_never_sure_and_wrong(rows: list[dict[str, Any]]) -> None:
    for key in ("sure_and_wrong", "false_alarm", "false_clear", "over_confident", "not_mentioned", "wrongly_first"):
        assert names(rows, key) == [], key


def test_who_cannot_know_abstains(rows: list[dict[str, Any]]) -> None:
    assert [row["id"] for row in rows if row.get("abstained") is False] == []


def test_the_right_cause_is_first(rows: list[dict[str, Any]]) -> None:
    assert share(rows, "top1") >= 0.95
    assert share(rows, "top3") >= 0.98
    assert share(rows, "sure_and_right") >= 0.85


def test_evidence_and_first_event_are_quoted(rows: list[dict[str, Any]]) -> None:
    quoted = [row["evidence"] for row in rows if row.get("evidence") is not None]
    assert sum(quoted) / len(quoted) >= 0.80
    assert share(rows, "first_event") >= 0.80
