"""N40, first half: a rule pack that is broken, greedy or hostile never stops the rest and is named by lint."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.child import CPU, run_cli
from tests.hostile.logs import CANARY, CANARY_RULE

RULE = """\
id = "{id}"
phase = "hardware"
status = "draft"
checked = 2026-11-30
cause = "pcie-link-fault"
title = "A rule of a pack"
impact = "degraded"
{extra}

[[for]]
id = "a"
strength = "{strength}"
says = "a line was seen"
pattern = '''{pattern}'''
sample = ['''{sample}''']

[[source]]
url = "https://example.org/x"
status = "page"

[[remedy]]
do = "x"
verify = "x"
grade = "inferred"

[[rival]]
cause = "gpu-fallen-off-bus"
tell_apart = "x"
"""


def rule(
    id: str,
    pattern: str = "Out of memory: Killed process",
    sample: str = "Out of memory: Killed process 1",
    extra: str = "",
    strength: str = "decisive",
) -> str:
    return RULE.format(id=id, pattern=pattern, sample=sample, extra=extra, strength=strength)


PACKS = {
    "catastrophic": (rule("x", "Killed (?:a|aa)+$", "Killed aaa"), "slow"),
    "catastrophic-sample": (rule("x", "Killed (?:a|aa)+$", "Killed " + "a" * 60 + "b"), "slow on its own sample"),
    "unclosed": (rule("x", "Killed process (", "Killed process ("), "compile"),
    "backreference-bomb": (rule("x", r"Killed (\w*)*\1$", "Killed "), ""),
    "ten-megabytes": (rule("x", "Killed " + "a" * 10_000_000, "Killed"), "large"),
    "unknown-field": (rule("x", extra='run = "touch owned"'), "run"),
    "future-schema": (rule("x", extra="schema_version = 99"), "schema_version"),
    "two-keys": (rule("x") + '\nid = "y"\n', ""),
    "other-name": (rule("y"), "Name the file after the id"),
    "nested": ("x = " + "[" * 5_000, ""),
    "not-utf8": ('id = "\udcff"', "not valid TOML"),
    "template": (rule("x", extra="about = '''{{7*7}} ${7*7} {self.__class__}'''"), ""),
}


@pytest.mark.parametrize("name", PACKS)
def test_a_hostile_pack_is_named_and_costs_nothing(name: str, tmp_path: Path) -> None:
    text, said = PACKS[name]
    pack = tmp_path / "team"
    pack.mkdir()
    (pack / "x.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    (tmp_path / "dmesg.txt").write_text(CANARY + "[ 1.000000] Killed " + "a" * 4_000 + "b\n")
    ended = run_cli(["analyze", "dmesg.txt", "--format", "json", "--rules", "team"], tmp_path)
    assert ended.code == 0 and "Traceback" not in ended.err, ended.err[-500:]
    assert CANARY_RULE in ended.rules()
    assert ended.cpu_s < CPU
    assert not (tmp_path / "owned").exists()
    linted = run_cli(["rules", "lint", "team"], tmp_path)
    assert linted.code in (0, 1) and "Traceback" not in linted.err, linted.err[-500:]
    if said:
        assert linted.code == 1 and said in linted.err and "x.toml" in linted.err, linted.err[-600:]
    assert b"49" not in ended.out or name != "template" or b"{{7*7}}" in ended.out


def test_a_pack_never_shadows_a_shipped_rule(tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / f"{CANARY_RULE}.toml").write_text(rule(CANARY_RULE))
    (tmp_path / "dmesg.txt").write_text(CANARY)
    ended = run_cli(["analyze", "dmesg.txt", "--format", "json", "--rules", "team"], tmp_path)
    assert CANARY_RULE in ended.rules() and f"team/{CANARY_RULE}" in ended.rules()


def test_the_same_id_twice_is_a_fault(tmp_path: Path) -> None:
    for folder in ("hardware", "host"):
        (tmp_path / "team" / folder).mkdir(parents=True)
        (tmp_path / "team" / folder / "x.toml").write_text(rule("x"))
    assert "taken" in run_cli(["rules", "lint", "team"], tmp_path).err


def test_fifty_thousand_rules_are_cut_off(tmp_path: Path) -> None:
    pack = tmp_path / "team"
    pack.mkdir()
    text = rule("r0")
    for number in range(50_000):
        (pack / f"r{number}.toml").write_text(text.replace('"r0"', f'"r{number}"'))
    (tmp_path / "dmesg.txt").write_text(CANARY)
    ended = run_cli(["analyze", "dmesg.txt", "--format", "json", "--rules", "team"], tmp_path)
    assert ended.code in (0, 2), ended.err[-500:]
    assert "more than" in ended.err
    assert CANARY_RULE in ended.rules() + [h["rule"] for h in (ended.report or {"hypotheses": []})["hypotheses"]]
