"""The shipped rulebook: shape, lint, uniqueness."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from analyzer.reasoning.lint import has_cases, lint
from analyzer.reasoning.rulebook import RuleFault, load, read_rule
from analyzer.reasoning.scaffold import scaffold

HOME = Path(__file__).parent.parent
CASES = HOME / "fixtures" / "cases"


def test_every_rule_loads() -> None:
    assert load(strict=True).faults == []


def test_lint_finds_nothing() -> None:
    assert [str(fault) for fault in lint(load(), cases=CASES)] == []


def test_a_broken_rule_of_a_team_is_reported_and_silences_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "team"
    folder.mkdir()
    (folder / "bad.toml").write_text("id = 'bad'\nnonsense = 1\n")
    (folder / "worse.toml").write_text("id = [")
    rulebook = load((str(folder),))
    assert len(rulebook.rules) == len(load().rules)
    assert len(rulebook.faults) >= 2
    assert all("team" in fault for fault in rulebook.faults)


def test_all_faults_of_a_file_at_once(tmp_path: Path) -> None:
    with pytest.raises(RuleFault) as caught:
        read_rule(b"id = 'x'\nphase = 'nowhere'\nimpact = 'none'\n", tmp_path / "x.toml")
    assert len(caught.value.faults) >= 4


def test_a_teams_rule_is_namespaced(tmp_path: Path) -> None:
    shipped = next(iter(load().paths.values()))
    folder = tmp_path / "team"
    folder.mkdir()
    (folder / Path(shipped).name).write_bytes(Path(shipped).read_bytes())
    assert f"team/{Path(shipped).stem}" in load((str(folder),)).rules


def test_scaffold_loads_and_its_cases_fail(tmp_path: Path) -> None:
    from analyzer.cases import run_cases

    scaffold("my-new-rule", "serving", "illegal-memory-access", tmp_path / "pack")
    rulebook = load((str(tmp_path / "pack"),))
    assert "pack/my-new-rule" in rulebook.rules
    results = run_cases(tmp_path / "pack" / "cases", rulebook)
    assert len(results) == 3
    assert any(result.faults for result in results)
    with pytest.raises(FileExistsError):
        scaffold("my-new-rule", "serving", "illegal-memory-access", tmp_path / "pack")


@pytest.mark.parametrize(
    ("status", "provenances", "fault"),
    [
        ("draft", ["reconstruction after vllm#1"], None),
        ("draft", ["https://github.com/a/b/issues/1"], "status is draft"),
        ("tested", ["reconstruction", "lines retold in an article", "hit-a with only what b rests on"], "is tested"),
        ("tested", ["reconstruction", "a run of vLLM 0.32 on an H200"], None),
        ("stable", ["one report", "another report"], "stable with real output of 2"),
        ("stable", ["one report", "another report", "a third"], None),
    ],
)
def test_a_status_says_what_the_hits_were_made_of(
    tmp_path: Path, status: Literal["draft", "tested", "stable"], provenances: list[str], fault: str | None
) -> None:
    rule = next(iter(load().rules.values())).model_copy(update={"status": status})
    for number, provenance in enumerate(provenances):
        case = tmp_path / rule.id / f"hit-{number}"
        case.mkdir(parents=True)
        (case / "expect.toml").write_text(f'provenance = "{provenance}"\n')
    told = [what for what, _ in has_cases(rule, tmp_path) if "status" in what]
    assert len(told) == (fault is not None)
    assert fault is None or fault in told[0]
