"""Every case of fixtures/cases against all rules; and every clause is missed by some case when it is taken away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from analyzer.analyze import Analysis, investigate
from analyzer.reasoning.cases import case_folders, judge
from analyzer.reasoning.rank import one_a_cause, weigh
from analyzer.reasoning.rule import Rule
from analyzer.reasoning.rulebook import Rulebook, load

CASES = Path(__file__).parent.parent / "fixtures" / "cases"


@pytest.fixture(scope="module")
def rulebook() -> Rulebook:
    return load()


@pytest.fixture(scope="module")
def analyses(rulebook: Rulebook) -> dict[Path, Analysis]:
    return {folder: investigate([str(folder / "input")], rulebook) for folder in case_folders(CASES)}


@pytest.mark.parametrize("rule_id", sorted({folder.parent.name for folder in case_folders(CASES)}))
def test_cases(rule_id: str, analyses: dict[Path, Analysis]) -> None:
    faults = {folder.name: found for folder, analysis in analyses.items()
              if folder.parent.name == rule_id and (found := judge(folder, analysis))}
    assert faults == {}


def without(rule: Rule, clause_id: str) -> Rule:
    """The rule as if the clause had never been written."""
    needs = []
    for need in rule.needs:
        left = [one.strip() for one in need.split("|") if one.strip() != clause_id]
        if left:
            needs.append("|".join(left))

    def kept(clauses: list) -> list:  # type: ignore[type-arg]
        return [c.model_copy(update={"after": None if c.after == clause_id else c.after,
                                     "before": None if c.before == clause_id else c.before})
                for c in clauses if c.id != clause_id]

    remedies = [r.model_copy(update={"verified_by": {k: v for k, v in r.verified_by.items() if v != clause_id}}) for r in rule.remedy]
    return rule.model_copy(update={"needs": needs, "for_": kept(rule.for_), "against": kept(rule.against), "remedy": remedies})


def unnoticed(rule: Rule, analyses: dict[Path, Analysis]) -> Iterator[str]:
    """Clauses of the rule whose removal turns no case of the rule red."""
    mine = {folder: analysis for folder, analysis in analyses.items() if folder.parent.name == rule.id}
    for clause in rule.clauses:
        mutant = without(rule, clause.id)
        if not any(judge(folder, _with(analysis, mutant)) for folder, analysis in mine.items()):
            yield f"{rule.id}/{clause.id}"


def _with(analysis: Analysis, mutant: Rule) -> Analysis:
    """The analysis as it would be with the mutant in place of its rule."""
    others = [candidate for candidate in analysis.weighed if candidate.rule.id != mutant.id]
    own = weigh(mutant, analysis.bundle)
    weighed = [*others, own] if own is not None else others
    return replace(analysis, ranked=one_a_cause(weighed))


def test_no_clause_survives_its_own_removal(rulebook: Rulebook, analyses: dict[Path, Analysis]) -> None:
    survivors = [name for rule in rulebook.rules.values() for name in unnoticed(rule, analyses)]
    assert survivors == []
