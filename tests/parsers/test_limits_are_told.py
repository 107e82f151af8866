"""Whoever stops at a limit says so: the limits of parsers and of a report's own lists."""

from __future__ import annotations

from pathlib import Path

import pytest

import parsers.metrics_scrape as metrics
import parsers.nccl_log as nccl
from analyzer.analyze import analyze
from parsers.contract import Line, Trouble


def lines(text: str) -> list[Line]:
    return [Line(number, 0, 0, one) for number, one in enumerate(text.split("\n"), 1)]


def test_scrapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MAX_SCRAPES", 3)
    text = 'vllm:generation_tokens_total{model_name="m"} 1\nvllm:num_requests_running{model_name="m"} 1\n' * 5
    got = list(metrics.PARSER.read(iter(lines(text)), "x"))
    assert sum(1 for one in got if not isinstance(one, Trouble) and one.kind == "metrics.scrape") == 3
    assert [(one.tag, one.line) for one in got if isinstance(one, Trouble)] == [("limit", 7)]


def test_statements_of_nccl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl, "MAX_KEYS", 3)
    text = "\n".join(f"n1:1:2 [0] NCCL INFO NCCL_OPTION_{n} set by environment to {n}." for n in range(9))
    assert [one.tag for one in nccl.PARSER.read(iter(lines(text)), "x") if isinstance(one, Trouble)] == ["limit"]


@pytest.mark.parametrize(("last", "tag"), [(b"\x1f\x8b\x08\x00", "limit"), (b"", "skipped")])
def test_notes_of_a_report(last: bytes, tag: str, tmp_path: Path) -> None:
    for number in range(230):
        (tmp_path / f"{number:03}.txt").symlink_to("/etc/hostname")
    (tmp_path / "zz.gz").write_bytes(last)
    report = analyze([str(tmp_path)])
    assert len(report.troubles) == 201
    assert (report.troubles[-1].tag, report.troubles[-1].source) == (tag, "report")


@pytest.mark.parametrize(
    ("written", "meant"),
    [(r'a="1",b="x\"y"', "x\"y"), (r'b="C:\\new"', "C:\\new"), (r'b="a\nb"', "a\nb"), (r'b="\\\\n"', r"\\n")],
)
def test_escapes_of_labels_are_undone_once(written: str, meant: str) -> None:
    assert metrics.labels_of("{" + written + "}")["b"] == meant
