"""The report for a chat channel: under 2,900 characters of Slack's mrkdwn (a section block takes 3,000)."""

from __future__ import annotations

from collections.abc import Callable

from analyzer.render import phrases
from analyzer.render.sanitise import shorten, slack, slack_code, visible
from analyzer.report import Hypothesis, Report

LIMIT = 2_900
Say = Callable[[str], str]
_LEVELS = ((6, 220, 120), (4, 140, 90), (2, 90, 60), (1, 40, 30))
"""Pieces of evidence, characters of a sentence, characters of a quote: the first set that fits is taken."""


def render_slack(report: Report) -> str:
    """The verdict, its evidence, what to do and what to collect, in fewer than 2,900 characters."""
    text = ""
    for pieces, prose, quote in _LEVELS:
        text = "\n".join(_lines(report, pieces, prose, quote)) + "\n"
        if len(text) < LIMIT:
            return text
    # Escapes can make one character ten: what is left is cut between lines, never inside an entity or a code span.
    kept: list[str] = []
    used = len("…\n")
    for line in text.splitlines(keepends=True):
        used += len(line)
        if used >= LIMIT:
            break
        kept.append(line)
    return "".join(kept) + "…\n"


def _lines(report: Report, pieces: int, prose: int, quote: int) -> list[str]:
    def say(text: str) -> str:
        return slack(shorten(visible(text), prose))

    def code(text: str) -> str:
        return slack_code(shorten(visible(text), quote))

    leading = report.hypotheses[0] if report.hypotheses and report.verdict in ("identified", "candidates") else None
    out = [f"*{phrases.VERDICT[report.verdict]}*  {say(leading.title if leading else report.summary)}"]
    if leading:
        out[0] += f"  ({phrases.standing(leading)})"
    if line := " · ".join(phrases.since(report)):
        out.append(say(line))
    out.append(say(phrases.coverage(report)))
    if leading:
        out += _argument(leading, pieces, say, code)
    else:
        seen = [
            f"• seen: {say(item.symptom)} (a symptom)  {code(phrases.place(item.first))}" for item in report.symptoms
        ]
        out += seen[:pieces]
        if report.verdict != "unreadable" and (blind := phrases.not_seen(report)):
            out.append(f"• not seen: {say('; '.join(blind))}")
        out += [f"• not read: {code(item.source)} {say(item.text)}" for item in report.troubles[:pieces]]
    others = [item for item in report.hypotheses if item is not leading]
    out += [f"• also: {say(item.title)} ({phrases.standing(item)})" for item in others[:2]]
    if len(others) > 2:
        out.append(f"• and {phrases.count_of(len(others) - 2, 'other hypothesis', 'other hypotheses')}")
    steps = report.next_steps[: max(pieces // 2, 1)] if report.verdict != "healthy" else []
    for number, step in enumerate(steps, start=1):
        risk = f" ({say(step.risk)})" if step.risk else ""
        # A command that is cut cannot be run: one that is too long is named, not quoted.
        command = slack_code(step.command) if step.command and len(visible(step.command)) <= 2 * prose else ""
        out.append(
            f"{number}. {say(step.collect)}{risk}: {command}" if command else f"{number}. {say(step.collect)}{risk}"
        )
    return out


def _argument(leading: Hypothesis, pieces: int, say: Say, code: Say) -> list[str]:
    out = []
    for evidence in phrases.by_strength(leading.evidence_for)[:pieces]:
        where = f"  {code(phrases.place(evidence.source))}" if evidence.source else ""
        out.append(f"• for ({evidence.strength}): {say(phrases.statement(evidence))}{where}")
        if evidence.source and evidence.source.text and evidence.strength in ("decisive", "strong"):
            out.append(f"   {code(evidence.source.text)}")
    for evidence in phrases.by_strength(leading.evidence_against)[:pieces]:
        where = f"  {code(phrases.place(evidence.source))}" if evidence.source else ""
        out.append(f"• against ({evidence.strength}): {say(phrases.statement(evidence))}{where}")
    if not leading.evidence_against:
        out.append("• against: nothing found")
    for missing in leading.missing_evidence[: max(pieces // 2, 1)]:
        out.append(f"• missing: {say(missing.statement)} ({phrases.WOULD[missing.would]})")
    for remedy in leading.remedies[:1]:
        out.append(f"*Do*  {say(remedy.do)} ({phrases.GRADE[remedy.grade]})")
        out.append(f"*Verify*  {say(remedy.verify or 'no check is known')}")
        if remedy.caveat:
            out.append(f"*Caveat*  {say(remedy.caveat)}")
    if leading.sources:
        out.append(f"*Sources*  {say(' · '.join(map(phrases.short_source, leading.sources[:3])))}")
    return out
