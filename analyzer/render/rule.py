"""A rule for a reader on call, and why it did or did not fit an input."""

from __future__ import annotations

import textwrap

from analyzer.reasoning.evidence import Answer
from analyzer.reasoning.facts import spelled
from analyzer.reasoning.rank import Candidate
from analyzer.reasoning.rule import Clause, Rule
from analyzer.reasoning.rulebook import Rulebook
from analyzer.render.sanitise import shorten, terminal

DOTS = {"decisive": "●●●●", "strong": "●●  ", "fair": "●   ", "weak": "·   "}
WIDTH = 100


def _wrapped(label: str, text: str) -> list[str]:
    return (
        textwrap.wrap(
            terminal(text),
            WIDTH,
            initial_indent=f"  {label:<8} ",
            subsequent_indent=" " * 11,
            break_long_words=False,
            break_on_hyphens=False,
        )
        or []
    )


TRIED = {
    "draft": "tried on reconstructed lines only",
    "tested": "tried on real output",
    "stable": "tried on real output of several incidents",
}
"""What the status of a rule says of it."""


def rule_text(rule: Rule, rulebook: Rulebook) -> str:
    """One screen: what it is, how to tell, what to do, how to verify, sources."""
    cause = rulebook.cause(rule.cause)
    lines = [
        f"{rule.id}   {rule.impact} · {rule.phase} · {rule.status} ({TRIED[rule.status]})",
        *_wrapped("", rule.title),
        *_wrapped("cause", f"{rule.cause}: {cause.title}"),
    ]
    if rule.about:
        lines += _wrapped("about", rule.about)
    if rule.applies:
        lines += _wrapped("only on", "; ".join(f"{name} {spelled(value)}" for name, value in rule.applies.items()))
    if rule.versions.affected or rule.versions.fixed_in:
        lines += _wrapped(
            "versions",
            f"affected: {rule.versions.affected or 'not stated'}; fixed in: {rule.versions.fixed_in or 'not stated'}",
        )
    lines.append("")
    for label, clauses in (("for", rule.for_), ("against", rule.against)):
        for clause in clauses:
            lines += _wrapped(label, f"{DOTS[clause.strength.value]} {clause.says}")
            lines += _how(clause)
            label = ""
    for rival in rule.rival:
        lines += _wrapped("or else", f"{rival.cause}: {rival.tell_apart}")
    lines.append("")
    for remedy in rule.remedy:
        lines += _wrapped("do", f"{remedy.do}   [{remedy.grade}{'; ' + remedy.evidence if remedy.evidence else ''}]")
        lines += _wrapped("verify", remedy.verify)
        if remedy.caveat:
            lines += _wrapped("caveat", remedy.caveat)
    for source in rule.source:
        lines += _wrapped(
            "source", f"{source.url}   {source.status} (checked {source.checked or rule.checked}) {source.title}"
        )
    return "\n".join(lines)


def _how(clause: Clause) -> list[str]:
    lines = []
    if clause.samples:
        lines.append(" " * 16 + shorten(terminal(clause.samples[0]), WIDTH - 16))
    if clause.collect:
        lines.append(" " * 16 + "get it: " + terminal(clause.collect))
    return lines


def explanation_text(candidate: Candidate, colour: bool) -> str:
    """Clause by clause: what was asked, what the input answered, and where."""
    rule = candidate.rule
    lines = [f"{rule.id}: {terminal(rule.title)}"]
    for one in candidate.gates:
        state = {True: "satisfied", False: "VIOLATED", None: "not known"}[one.holds]
        value = terminal(one.fact.value) if one.fact is not None else "never read"
        lines.append(f"  gate     {one.name} = {spelled(one.condition)}: {state} ({value})")
    for finding in candidate.findings:
        clause = finding.clause
        mark = {
            Answer.SEEN: "seen",
            Answer.CONTRADICTED: "contradicted",
            Answer.ABSENT: "absent where we looked",
            Answer.UNCHECKED: "not checkable",
        }[finding.answer]
        lowered = (
            f", lowered to {finding.strength.value}: only prose says so"
            if finding.strength is not clause.strength
            else ""
        )
        lines.append(f"  {finding.side:<8} {clause.id} ({clause.strength.value}{lowered}): {mark}")
        lines.append(f"           {terminal(clause.says)}")
        for record in finding.records[:2]:
            place = (
                f"{terminal(record.span.source)}:{record.span.first_line}"
                if record.span.first_line
                else terminal(record.span.source)
            )
            lines.append(f"           {place}   {shorten(terminal(record.text.strip()), 120)}")
        if finding.answer is Answer.UNCHECKED and clause.collect:
            lines.append(f"           get it: {terminal(clause.collect)}")
    if candidate.silent:
        lines.append(f"  result   does not speak: {candidate.silent}")
    elif candidate.ruled_out:
        lines.append("  result   ruled out")
    else:
        lines.append(
            f"  result   {candidate.confidence}, score {candidate.score:g}, {candidate.completeness:.0%} of what it "
            "asks for could be checked"
        )
    return "\n".join(lines)
