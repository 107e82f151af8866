"""The rules database from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from analyzer.cli.rules import command
from analyzer.reasoning.lookup import search
from analyzer.reasoning.rulebook import load

HOME = Path(__file__).parent.parent.parent


def run(*arguments: str) -> str:
    done = CliRunner().invoke(command, list(arguments), standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.output


@pytest.mark.parametrize(("query", "cause"), [
    ("illegal instruction", "illegal-memory-access|cpu-illegal-instruction|gpu-illegal-instruction"),
    ("Xid 79", "gpu-fallen-off-bus|pcie-link-fault|gpu-fell-off-bus-power"),
    ("processed prompts 0%", "trtllm-attention-deadlock-sm103"),
    ("fallen of the bus", "gpu-fallen-off-bus|pcie-link-fault|gpu-fell-off-bus-power"),
    ("nvcc not found", "flashinfer-jit-nvcc-missing|flashinfer-jit-toolchain-mismatch"),
    ("GB10 FP8 hang", "flashinfer-cudnn-fp8-gemm-hang-sm12x"),
])
def test_search_finds_what_people_ask_for(query: str, cause: str) -> None:
    found = search(load(), query, 5)
    assert {one.rule.cause for one in found} & set(cause.split("|")), [one.rule.id for one in found]


def test_search_explains_codes_and_admits_nothing() -> None:
    assert "GPU_RECOVERY_ACTION" in run("search", "Xid 154")
    assert "No rule fits" in run("search", "qqqqzzzz")


def test_list_and_show_every_rule() -> None:
    listed = run("list")
    rulebook = load()
    for rule_id in rulebook.rules:
        assert rule_id in listed
    text = run("show", "cudnn-fp8-barrier-wait-sm12x")
    for label in ("for", "against", "do", "verify", "source"):
        assert f"  {label}" in text


def test_unknown_rule_names_near_ones() -> None:
    done = CliRunner().invoke(command, ["show", "pcie-link-fualt"])
    assert done.exit_code != 0 and "pcie-link-fault" in done.output


def test_explain_says_why_and_why_not() -> None:
    case = HOME / "fixtures/cases/cudnn-fp8-barrier-wait-sm12x"
    hit = run("explain", "cudnn-fp8-barrier-wait-sm12x", str(case / "hit-no-dump/input"))
    assert ": seen" in hit and "result   high" in hit
    miss = run("explain", "cudnn-fp8-barrier-wait-sm12x", str(case / "near-miss-cutlass-selected/input"))
    assert "ruled out" in miss or "does not speak" in miss


def test_pages(tmp_path: Path) -> None:
    run("pages", str(tmp_path))
    assert len(list(tmp_path.glob("*.html"))) == len(load().rules) + 1
    assert "<script" not in (tmp_path / "index.html").read_text()
