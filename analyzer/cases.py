"""Cases: a small input and what the analysis of it must say (docs/writing-a-rule.md)."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analyzer.analysis import Analysis
from analyzer.analyze import investigate
from analyzer.compose import hypotheses_of
from analyzer.reasoning.rank import LEVEL
from analyzer.reasoning.rulebook import Rulebook
from analyzer.reasoning.verdict import decide
from analyzer.report import Evidence, Hypothesis

KEYS = {"provenance", "first", "at_least", "at_most", "never_first", "ruled_out", "live", "not_live", "verdict",
        "quotes", "quotes_against", "states", "missing"}


@dataclass(slots=True)
class CaseResult:
    """One case that was run; `faults` is empty when it held."""

    name: str
    faults: list[str] = field(default_factory=list)


def case_folders(home: Path) -> list[Path]:
    """Every case under `home`: a folder with `expect.toml` and `input/`."""
    return sorted(path.parent for path in home.glob("*/*/expect.toml"))


def run_cases(home: Path, rulebook: Rulebook, only: str | None = None) -> list[CaseResult]:
    """Run all cases under `home` against all rules of the rulebook."""
    return [run_case(folder, rulebook) for folder in case_folders(home)
            if only is None or only in f"{folder.parent.name}/{folder.name}"]


def run_case(folder: Path, rulebook: Rulebook) -> CaseResult:
    """Run one case."""
    analysis = investigate([str(folder / "input")], rulebook)
    return CaseResult(f"{folder.parent.name}/{folder.name}", judge(folder, analysis))


def expectation(folder: Path) -> dict[str, Any]:
    """What the case expects. Raises OSError and tomllib.TOMLDecodeError."""
    return tomllib.loads((folder / "expect.toml").read_text(encoding="utf-8"))


def judge(folder: Path, analysis: Analysis, expected: dict[str, Any] | None = None) -> list[str]:
    """What of the case's expectation (`expected`, or read from its folder) does not hold for this analysis."""
    if expected is None:
        expected = expectation(folder)
    verdict, _ = decide(analysis.ranked, analysis.bundle, analysis.signs, analysis.troubles)
    return compare(expected, verdict, hypotheses_of(analysis), folder.parent.name)


def compare(expected: dict[str, Any], verdict: str, hypotheses: list[Hypothesis], rule_id: str) -> list[str]:
    """What of the expectation does not hold, in words. `rule_id` = the rule that the case belongs to."""
    faults = [f"unknown key {key!r} in expect.toml" for key in expected.keys() - KEYS]
    live = [h for h in hypotheses if not h.ruled_out]
    first = live[0] if live else None
    if "first" in expected and (first is None or first.cause != expected["first"]):
        faults.append(f"wanted {expected['first']} first, got {first.cause if first else 'nothing'}")
    mine = next((h for h in live if h.rule.split("/")[-1] == rule_id), None)
    own = mine or next((h for h in live if h.cause == expected.get("first")), None)
    if "at_least" in expected and (own is None or LEVEL[own.confidence] < LEVEL[expected["at_least"]]):
        faults.append(f"wanted at least {expected['at_least']}, got {own.confidence if own else 'no hypothesis'}")
    if "at_most" in expected and own is not None and LEVEL[own.confidence] > LEVEL[expected["at_most"]]:
        faults.append(f"wanted at most {expected['at_most']}, got {own.confidence}")
    if first is not None and first.cause in expected.get("never_first", []):
        faults.append(f"{first.cause} must not be first")
    out = {h.rule for h in hypotheses if h.ruled_out}
    faults += [f"{rule} should be ruled out" for rule in expected.get("ruled_out", []) if rule not in out]
    faults += [f"{rule} should be live" for rule in expected.get("live", []) if rule not in {h.rule for h in live}]
    faults += [f"{h.rule} must not be live" for h in live if h.rule in expected.get("not_live", [])]
    if "verdict" in expected and verdict not in expected["verdict"]:
        faults.append(f"wanted the verdict {' or '.join(expected['verdict'])}, got {verdict}")
    # What speaks against a hypothesis is told of the ruled-out ones too.
    told = next((h for h in hypotheses if h.rule.split("/")[-1] == rule_id), None) or first
    quoting = mine or first
    said = {"quotes": _quoted(quoting.evidence_for) if quoting else "",
            "quotes_against": _quoted(told.evidence_against) if told else "",
            "states": "\n".join(e.statement for e in [*told.evidence_for, *told.evidence_against]) if told else "",
            "missing": "\n".join(one.statement for one in told.missing_evidence) if told else ""}
    faults += [f"{key}: the hypothesis does not say {text!r}" for key, told_text in said.items()
               for text in expected.get(key, []) if text not in told_text]
    return faults


def _quoted(evidence: list[Evidence]) -> str:
    return "\n".join(one.source.text for one in evidence if one.source is not None)
