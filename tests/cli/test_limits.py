"""`--limit NAME=VALUE`: every command that reads input takes it, and the report says where it was hit."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from analyzer.cli import cli
from analyzer.intake.budget import SETTABLE, Budget, budget_of

SAFETY = Path(__file__).parents[2] / "docs" / "safety.md"


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, list(arguments), standalone_mode=False)
    return (done.return_value or 0) if done.exception is None else 2, done.output + str(done.exception or "")


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    path = tmp_path / "server.log.gz"
    line = b"INFO 07-31 15:52:26 [loggers.py:123] Engine 000: Running: 1 reqs, Waiting: 0 reqs\n"
    path.write_bytes(gzip.compress(line * 40_000))
    return path


def test_sizes_counts_and_seconds() -> None:
    budget = budget_of(("member-out=8GiB", "spool=1.5MB", "members=7", "regex-seconds=0.05", "line-kept=4096"))
    assert (budget.member_out, budget.spool, budget.members) == (8 << 30, 1_500_000, 7)
    assert (budget.regex_seconds, budget.line_kept) == (0.05, 4096)
    assert budget_of(()) == Budget()


@pytest.mark.parametrize(
    "setting", ["member-out", "member-out=", "member-out=big", "member-out=-1", "depth=1.5", "depth=0", "spent=3",
                "x=1", "regex-seconds=1e9", "member-out=1" + "0" * 4000]
)  # fmt: skip
def test_a_wrong_value_says_what_to_give(setting: str) -> None:
    with pytest.raises(ValueError, match=r"Give |The limits that can be set are"):
        budget_of((setting,))


def test_a_lower_limit_is_kept_and_told(packed: Path) -> None:
    code, output = run("analyze", str(packed), "--limit", "member-out=100kB", "--format", "json")
    assert code == 3, output  # nothing found, and not all was read
    report = json.loads(output)
    assert [one["tag"] for one in report["troubles"]] == ["limit"]
    assert "--limit member-out" in report["troubles"][0]["text"]
    code, output = run("analyze", str(packed), "--format", "json")
    assert json.loads(output)["troubles"] == []


@pytest.mark.parametrize("command", [["triage"], ["inspect"], ["timeline"], ["rules", "explain", "pcie-link-fault"]])
def test_every_reading_command_takes_limits(command: list[str], packed: Path) -> None:
    code, output = run(*command, str(packed), "--limit", "ratio=nothing")
    assert (code, "no value for the limit ratio" in output) == (2, True), output
    code, output = run(*command, str(packed), "--limit", "ratio=400")
    assert code != 2, output


def test_batch_and_redact_take_limits(packed: Path, tmp_path: Path) -> None:
    code, output = run("redact", str(packed), "-o", str(tmp_path / "shareable"), "--limit", "member-out=100kB")
    assert (code, "limit" in output) == (3, True), output
    code, output = run("batch", str(packed), "-o", str(tmp_path / "fleet"), "--limit", "member-out=100kB", "-j", "1")
    reports = [json.loads(one.read_text()) for one in (tmp_path / "fleet" / "reports").glob("*.json")]
    assert [note["tag"] for one in reports for note in one["troubles"]] == ["limit"], output


def test_the_manual_names_every_limit() -> None:
    named = set(re.findall(r"`([a-z-]+)`", SAFETY.read_text().split("## Limits")[1].split("##")[0]))
    assert set(SETTABLE) <= named
