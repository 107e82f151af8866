"""Every case of fixtures/cases against all rules; and what is taken from a rule is missed by one of its cases: each
clause, the strength of each decisive clause, each entry of `needs`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analyzer.analysis import Analysis
from analyzer.analyze import investigate
from analyzer.cases import case_folders, expectation, judge
from analyzer.reasoning.rank import one_a_cause, weigh
from analyzer.reasoning.rule import Clause, Rule, Strength
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
    faults = {
        folder.name: found
        for folder, analysis in analyses.items()
        if folder.parent.name == rule_id and (found := judge(folder, analysis))
    }
    assert faults == {}


def without(rule: Rule, clause_id: str) -> Rule:
    """The rule as if the clause had never been written."""
    needs = []
    for need in rule.needs:
        left = [one.strip() for one in need.split("|") if one.strip() != clause_id]
        if left:
            needs.append("|".join(left))

    def kept(clauses: list[Clause]) -> list[Clause]:
        return [
            c.model_copy(
                update={
                    "after": None if c.after == clause_id else c.after,
                    "before": None if c.before == clause_id else c.before,
                }
            )
            for c in clauses
            if c.id != clause_id
        ]

    remedies = [
        r.model_copy(update={"verified_by": {k: v for k, v in r.verified_by.items() if v != clause_id}})
        for r in rule.remedy
    ]
    return rule.model_copy(
        update={"needs": needs, "for_": kept(rule.for_), "against": kept(rule.against), "remedy": remedies}
    )


def weaker(rule: Rule, clause_id: str) -> Rule:
    """The rule as if the clause said little."""

    def lowered(clauses: list[Clause]) -> list[Clause]:
        return [c.model_copy(update={"strength": Strength.WEAK}) if c.id == clause_id else c for c in clauses]

    return rule.model_copy(update={"for_": lowered(rule.for_), "against": lowered(rule.against)})


def mutants(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """The rule with one thing of it changed, and what."""
    for clause in rule.clauses:
        yield f"{rule.id}/{clause.id} removed", without(rule, clause.id)
        if clause.strength is Strength.DECISIVE:
            yield f"{rule.id}/{clause.id} weakened", weaker(rule, clause.id)
    for need in rule.needs:
        others = [one for one in rule.needs if one != need]
        yield f"{rule.id} no longer needs {need}", rule.model_copy(update={"needs": others})


def unnoticed(rule: Rule, mine: dict[Path, tuple[Analysis, dict[str, Any]]]) -> Iterator[str]:
    """Mutants of the rule that turn none of its cases red."""
    for what, mutant in mutants(rule):
        if not any(judge(folder, _with(analysis, mutant), expected) for folder, (analysis, expected) in mine.items()):
            yield what


def _with(analysis: Analysis, mutant: Rule) -> Analysis:
    """The analysis as it would be with the mutant in place of its rule."""
    others = [candidate for candidate in analysis.weighed if candidate.rule.id != mutant.id]
    own = weigh(mutant, analysis.bundle)
    weighed = [*others, own] if own is not None else others
    return replace(analysis, ranked=one_a_cause(weighed))


def test_no_clause_survives_its_own_removal(rulebook: Rulebook, analyses: dict[Path, Analysis]) -> None:
    by_rule: dict[str, dict[Path, tuple[Analysis, dict[str, Any]]]] = {}
    for folder, analysis in analyses.items():
        by_rule.setdefault(folder.parent.name, {})[folder] = (analysis, expectation(folder))
    survivors = [what for rule in rulebook.rules.values() for what in unnoticed(rule, by_rule.get(rule.id, {}))]
    assert survivors == []
