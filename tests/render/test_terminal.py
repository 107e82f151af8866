"""The terminal: what fits on the first screen, widths, colours, commands that can be copied."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from analyzer.render import render
from analyzer.render.columns import cells, fit, wants_colour, wrap
from analyzer.render.saved import load_report
from analyzer.render.terminal import FIRST_SCREEN
from analyzer.report import Report

FOLDER = Path(__file__).parents[2] / "fixtures" / "render"
NAMES = ("identified", "candidates", "unknown", "healthy", "unreadable")
SGR = re.compile(r"\x1b\[[0-9;]*m")


def _report(name: str) -> Report:
    return load_report(FOLDER / f"{name}.json")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [100, 120, 200])
def test_first_screen(name: str, width: int) -> None:
    lines = render(_report(name), "text", width=width).splitlines()
    assert sum(-(-max(cells(line), 1) // width) for line in lines) <= FIRST_SCREEN


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [80, 100, 137, 200])
@pytest.mark.parametrize("full", [False, True])
def test_nothing_is_wider_than_the_screen_but_commands(name: str, width: int, full: bool) -> None:
    report = _report(name)
    commands = [step.command for step in report.next_steps] + [
        missing.how_to_get for hypothesis in report.hypotheses for missing in hypothesis.missing_evidence
    ]
    for line in render(report, "text", width=width, full=full).splitlines():
        assert cells(line) <= width or any(command and command in line for command in commands), line


def test_the_screen_answers_what_how_sure_why_what_now() -> None:
    text = render(_report("identified"), "text", width=100)
    for part in (
        "IDENTIFIED  cuDNN FP8 GEMM", "high · service down", "since 2026-05-02 03:41:10 +08:00",
        "server.log:318", "against   –    nothing found", "missing   ?", "would settle it", "ALSO",
        "Cutlass FP8 path hangs",
        "export VLLM_DISABLED_KERNELS=FlashInferFP8ScaledMMLinearKernel and restart", "seen by reporters",
        "verify", "caveat", "vllm-project/vllm#61007 open", "MORE",
    ):  # fmt: skip
        assert part in text


def test_unknown_names_what_was_seen_not_seen_and_what_to_collect() -> None:
    text = render(_report("unknown"), "text", width=100)
    assert "signs of trouble: 3" in text and "(a symptom)" in text
    assert "the kernel log (Xid, OOM, PCIe)" in text
    for step in _report("unknown").next_steps[:4]:
        assert f"{step.command}\n" in text


def test_healthy_says_what_was_read_and_what_was_not() -> None:
    text = render(_report("healthy"), "text", width=100)
    assert "server.log: server_log, 88 lines, to 2026-07-01 11:02:12 UTC" in text
    assert "not seen" in text and "the host stacks" in text


@pytest.mark.parametrize("name", NAMES)
def test_colour_adds_sgr_sequences_and_nothing_else(name: str) -> None:
    plain, coloured = (render(_report(name), "text", width=100, colour=colour) for colour in (False, True))
    assert "\x1b" not in plain and "\x1b[" in coloured
    assert SGR.sub("", coloured) == plain


def test_colour_is_the_same_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    before = render(_report("identified"), "text", colour=True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    assert render(_report("identified"), "text", colour=True) == before


@pytest.mark.parametrize(
    ("environ", "is_terminal", "wanted"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, False, True),
    ],
)
def test_wants_colour(environ: dict[str, str], is_terminal: bool, wanted: bool) -> None:
    assert wants_colour(environ, is_terminal) is wanted


def test_cells_count_wide_and_combining_characters() -> None:
    assert cells("abc") == 3 and cells("内核") == 4 and cells("e\u0301") == 1
    assert cells(fit("内核" * 40, 21)) <= 21 and "…" in fit("内核" * 40, 21)
    assert all(cells(line) <= 10 for line in wrap("内核" * 9 + " abc " + "x" * 25, 10))


def test_without_colour_rich_is_not_imported() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from analyzer.render import render; from analyzer.render.saved import load_report\n"
        f"report = load_report({str(FOLDER / 'identified.json')!r})\n"
        "[render(report, name) for name in ('text', 'json', 'markdown', 'html', 'slack')]\n"
        "sys.exit('rich' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=FOLDER.parents[1], check=False).returncode == 0
