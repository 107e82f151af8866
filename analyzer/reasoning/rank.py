"""From answers to hypotheses in order.

`confidence_of` is the one place where words become low, medium or high; `order` is the one place where hypotheses are
put in order. There are no base rates, so there are no percentages.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from analyzer.reasoning.bundle import Bundle
from analyzer.reasoning.evidence import Answer, Finding, Record
from analyzer.reasoning.facts import Gate
from analyzer.reasoning.match import findings, gates
from analyzer.reasoning.rule import Rule, Strength
from analyzer.reasoning.rulebook import Asked, Rulebook
from analyzer.timeline.timeline import Place, before, before_by_clock

LEVEL = {"low": 0, "medium": 1, "high": 2}
SHOWN, MEDIUM, HIGH = 1.0, 2.0, 5.0
# Observations of health: they tell where a fault stands, but nothing began with them.
SETTING = (
    "ready_reached",
    "serving_progress",
    "moving_counter",
    "busy_and_working",
    "idle_engine_stack",
    "late_progress",
)


@dataclass(slots=True)
class Candidate:
    """A rule with the answers to its clauses."""

    rule: Rule
    findings: list[Finding]
    gates: list[Gate]
    score: float = 0.0
    completeness: float = 0.0
    confidence: str = "low"
    ruled_out: bool = False
    ruled_out_by: Finding | Gate | None = None
    yields_to: str = ""
    silent: str = ""
    first: Record | None = None
    groups: dict[str, Strength] = field(default_factory=dict)

    def seen(self, side: str) -> list[Finding]:
        """Findings of one side that hold (an `absent` clause that was contradicted changes sides)."""
        if side == "for":
            return [f for f in self.findings if f.side == "for" and f.answer is Answer.SEEN] + [
                f for f in self.findings if f.side == "against" and f.answer is Answer.CONTRADICTED
            ]
        return [f for f in self.findings if f.side == "against" and f.answer is Answer.SEEN] + [
            f for f in self.findings if f.side == "for" and f.answer is Answer.CONTRADICTED
        ]


def _penalty(strength: Strength) -> float:
    return {"decisive": 4.0, "strong": 2.0, "fair": 1.0, "weak": 0.5}[strength.value]


def weigh(rule: Rule, bundle: Bundle) -> Candidate | None:
    """The rule's answers, score, completeness and confidence; None when it does not speak to this input at all."""
    candidate = explain(rule, bundle)
    return None if candidate.silent else candidate


def _silence(rule: Rule, positive: list[Finding], by_id: dict[str, Finding]) -> str:
    if not any(f.records for f in positive):
        return "nothing but absences speaks for it, and no hypothesis lives on what is not there"
    for need in rule.needs:
        if not any(by_id[one.strip()].answer is Answer.SEEN for one in need.split("|")):
            return f"it needs {' or '.join(one.strip() for one in need.split('|'))}, which was not seen"
    return ""


def explain(rule: Rule, bundle: Bundle) -> Candidate:
    """The rule with all its answers, also where it does not speak; `silent` then says why."""
    answers = findings(rule, bundle)
    candidate = Candidate(rule, answers, gates(rule, bundle))
    by_id = {f.clause.id: f for f in answers}
    positive = [f for f in answers if f.side == "for" and f.answer is Answer.SEEN]
    candidate.silent = _silence(rule, positive, by_id)
    spans: dict[tuple[str, int, int], str] = {}
    for finding in positive:
        # Two clauses that rest on one record count once, unless their groups say that they read different facts in it.
        group = finding.clause.group or finding.clause.id
        if finding.records and not finding.clause.group:
            first = finding.records[0].span
            group = spans.setdefault((first.source, first.start, first.end), group)
        held = candidate.groups.get(group)
        if held is None or finding.strength.weight > held.weight:
            candidate.groups[group] = finding.strength
    candidate.score = sum(strength.weight for strength in candidate.groups.values())
    for finding in candidate.seen("against"):
        candidate.score -= _penalty(finding.strength)
        if finding.strength is Strength.DECISIVE and finding.side == "against":
            candidate.ruled_out, candidate.ruled_out_by = True, finding
    for one in candidate.gates:
        if one.holds is False:
            candidate.ruled_out, candidate.ruled_out_by = True, one
    total = sum(f.clause.strength.weight for f in answers if f.side == "for") + sum(1.0 for _ in candidate.gates)
    checked = sum(f.clause.strength.weight for f in answers if f.side == "for" and f.answer is not Answer.UNCHECKED)
    checked += sum(1.0 for one in candidate.gates if one.holds is not None)
    candidate.completeness = round(checked / total, 2) if total else 0.0
    candidate.confidence = confidence_of(candidate)
    candidate.first = _first(positive)
    if candidate.score < SHOWN and not candidate.ruled_out:
        candidate.silent = candidate.silent or f"its score of {candidate.score:g} stays under {SHOWN:g}"
    if candidate.ruled_out and sum(s.weight for s in candidate.groups.values()) < MEDIUM:
        candidate.silent = candidate.silent or "it is ruled out, and nothing spoke for it in earnest"
    return candidate


def confidence_of(candidate: Candidate) -> str:
    """The confidence of one hypothesis.

    high: a decisive clause is seen, or the score reaches 5 with at least two strong clauses that rest on different
    records; and nothing strong speaks against it, no environment gate is violated, and a third of what the rule asks
    for could be checked. medium: the score reaches 2. low: otherwise. A rule's `ceiling`, and `floor` (at most medium),
    cap the result.
    """
    strengths = list(candidate.groups.values())
    decisive = any(s is Strength.DECISIVE for s in strengths)
    strong = sum(1 for s in strengths if s.weight >= 2)
    opposed = any(f.strength.weight >= 2 for f in candidate.seen("against"))
    founded = decisive or (candidate.score >= HIGH and strong >= 2 and candidate.completeness >= 0.33)
    level = (
        "high" if founded and not opposed and candidate.score >= 2 else "medium" if candidate.score >= MEDIUM else "low"
    )
    ceiling = "medium" if candidate.rule.floor and candidate.rule.ceiling == "high" else candidate.rule.ceiling
    return min(level, ceiling, key=lambda one: LEVEL[one])


def _first(positive: list[Finding]) -> Record | None:
    """The first event that the hypothesis rests on: the earliest among its telling records, the setting left aside."""
    positive = [f for f in positive if not f.clause.context and f.clause.observed not in SETTING] or positive
    telling = [r for f in positive if f.strength.weight >= 1 for r in f.records] or [
        r for f in positive for r in f.records
    ]
    first: Record | None = None
    for record in telling:
        if first is None or before(record.place, first.place) is True:
            first = record
    return first


def weigh_all(rulebook: Rulebook, bundle: Bundle) -> list[Candidate]:
    """Every rule that speaks to this input, in no order."""
    return [
        candidate
        for rule_id, openers in rulebook.openers.items()
        if may_speak(rule_id, openers, bundle) and (candidate := weigh(rulebook.rules[rule_id], bundle)) is not None
    ]


def may_speak(rule_id: str, openers: tuple[Asked, ...], bundle: Bundle) -> bool:
    """Whether anything that one of the rule's `for` clauses names is there at all; if not, its answers need not be
    worked out (no hypothesis lives on what is not there)."""
    for one in openers:
        if one.pattern is not None:
            if f"{rule_id}/{one.id}" in bundle.sightings:
                return True
        elif one.event is not None:
            if one.event in bundle.by_kind:
                return True
        elif one.observed is not None:
            if one.observed in bundle.observations:
                return True
        elif one.fact is None or one.fact in bundle.facts.values:  # an absence may be contradicted, with a record
            return True
    return False


def one_a_cause(weighed: list[Candidate]) -> list[Candidate]:
    """The best candidate of every cause, best first, ruled-out ones last."""
    best: dict[str, Candidate] = {}
    for candidate in sorted(weighed, key=_merit):
        candidate.yields_to = ""
        best.setdefault(candidate.rule.cause, candidate)
    return order(list(best.values()))


def _merit(candidate: Candidate) -> tuple[bool, int, float, str]:
    return (candidate.ruled_out, -LEVEL[candidate.confidence], -candidate.score, candidate.rule.id)


def order(candidates: list[Candidate]) -> list[Candidate]:
    """Causes before their consequences, specific before general, then confidence, score and the first event.

    Only clocks can show that a consequence came before its cause: in a traceback the wrapper is printed first, and in
    a paste the parts stand in any order.
    """
    live = [c for c in candidates if not c.ruled_out]
    for candidate in live:
        for other in live:
            if other is candidate or LEVEL[other.confidence] < LEVEL["medium"]:
                continue
            if (
                other.rule.cause in candidate.rule.consequence_of
                and not _clearly_later(other, candidate)
                and (candidate.rule.cause not in other.rule.consequence_of or _clearly_earlier(other, candidate))
            ):
                candidate.yields_to = other.rule.cause
            elif candidate.rule.floor and not other.rule.floor and not other.rule.harmless:
                candidate.yields_to = candidate.yields_to or other.rule.cause

    def key(candidate: Candidate) -> tuple[bool, bool, int, bool, float, str]:
        return (
            candidate.ruled_out,
            bool(candidate.yields_to),
            -LEVEL[candidate.confidence],
            candidate.rule.floor,
            -candidate.score,
            candidate.rule.id,
        )

    ordered = sorted(candidates, key=key)
    # Of equals, the one whose first event came first: the cause, not the loudest.
    for last in range(len(ordered) - 1, 0, -1):
        for index in range(last):
            one, two = ordered[index], ordered[index + 1]
            if key(one)[:4] == key(two)[:4] and abs(one.score - two.score) < 1 and _clearly_earlier(two, one):
                ordered[index], ordered[index + 1] = two, one
    return ordered


def _place(candidate: Candidate) -> Place | None:
    return candidate.first.place if candidate.first is not None else None


def _clearly_earlier(one: Candidate, two: Candidate) -> bool:
    here, there = _place(one), _place(two)
    return here is not None and there is not None and before(here, there) is True


def _clearly_later(one: Candidate, two: Candidate) -> bool:
    here, there = _place(one), _place(two)
    return here is not None and there is not None and before_by_clock(there, here) is True
