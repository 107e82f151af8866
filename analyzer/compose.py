"""Write the report document from an analysis: quotes cut to length, places as times, absences in words."""

from __future__ import annotations

import re
import time
from typing import Literal

from analyzer import __version__
from analyzer.analysis import Analysis
from analyzer.intake.read import Read
from analyzer.intake.readings import reading_of
from analyzer.quote import moment, quote, time_of
from analyzer.reasoning.bundle import Bundle
from analyzer.reasoning.evidence import Answer, Finding, Record
from analyzer.reasoning.facts import Gate, spelled
from analyzer.reasoning.rank import Candidate
from analyzer.reasoning.rule import Remedy, Strength
from analyzer.reasoning.rulebook import SYMPTOM
from analyzer.reasoning.unexplained import unexplained
from analyzer.report import (
    QUOTES_PER_HYPOTHESIS,
    Artifact,
    Evidence,
    FactValue,
    Hypothesis,
    Missing,
    NextStep,
    Note,
    RemedyNote,
    Report,
    RivalNote,
    SourceNote,
    SymptomNote,
    Tool,
    TroubleNote,
    Unexplained,
    Verdict,
)
from parsers.contract import UNREAD, Trouble

ENVIRONMENT = {
    "gpu": "gpu.name",
    "sm": "gpu.sm",
    "driver": "driver.version",
    "cuda": "cuda.version",
    "cudnn": "cudnn.version",
    "vllm": "vllm.version",
    "sglang": "sglang.version",
    "flashinfer": "flashinfer.version",
    "torch": "torch.version",
    "nccl": "nccl.version",
    "triton": "triton.version",
    "model": "model.name",
    "quantization": "quantization",
    "os": "os",
    "kernel": "kernel.version",
    "python": "python.version",
}


def compose(analysis: Analysis, verdict: Verdict, summary: str, steps: list[NextStep]) -> Report:
    """The report."""
    from analyzer.story import story

    bundle = analysis.bundle
    hypotheses = hypotheses_of(analysis)
    return Report(
        tool=Tool(version=__version__, rulebook=analysis.rulebook.digest),
        verdict=verdict,
        summary=summary,
        input=", ".join(analysis.paths[:4]),
        took_s=round(time.monotonic() - analysis.started, 3),
        hypotheses=hypotheses,
        symptoms=_symptoms(analysis),
        next_steps=steps,
        environment=_environment(bundle),
        timeline=story(analysis),
        artifacts=[_artifact(read) for read in bundle.reads],
        unexplained=_unexplained(analysis),
        troubles=_troubles(analysis.troubles),
    )


MOST_TROUBLES = 200


def _troubles(troubles: list[Trouble]) -> list[TroubleNote]:
    """The first 200; those beyond are counted, as `limit` when one of them means that something was not read."""
    notes = [
        TroubleNote(source=t.source, tag=t.tag, text=t.text, line=t.line, offset=t.offset)
        for t in troubles[:MOST_TROUBLES]
    ]
    left = troubles[MOST_TROUBLES:]
    if left:
        tag = "limit" if any(t.tag in UNREAD for t in left) else "skipped"
        text = f"{len(left)} more notes, of {len({t.source for t in left})} sources, are not listed"
        notes.append(TroubleNote(source="report", tag=tag, text=text))
    return notes


def hypotheses_of(analysis: Analysis) -> list[Hypothesis]:
    """The first twelve hypotheses of an analysis."""
    return [_hypothesis(analysis, candidate, rank) for rank, candidate in enumerate(analysis.ranked[:12], 1)]


def _evidence(finding: Finding) -> list[Evidence]:
    clause = finding.clause
    says = f"{clause.says} ({finding.detail})" if finding.detail and finding.detail not in clause.says else clause.says
    if not finding.records:
        return [Evidence(clause=clause.id, strength=finding.strength.value, statement=says)]
    quoted = []
    for index, record in enumerate(_distinct(finding.records)[:3]):
        quoted.append(
            Evidence(
                clause=clause.id,
                strength=finding.strength.value,
                statement=says,
                time=time_of(record.place) or record.place.text,
                source=quote(record.span, record.text),
                count=max(finding.count, 1) if index == 0 else 1,
            )
        )
    return quoted


def _distinct(records: list[Record]) -> list[Record]:
    seen: set[str] = set()
    kept = []
    for record in records:
        key = re.sub(r"\d+", "#", record.text.strip())
        if key not in seen:
            seen.add(key)
            kept.append(record)
    return kept


def _interleave(findings: list[Finding], limit: int) -> list[Evidence]:
    """First one quote of every finding, strongest first, then second quotes while there is room."""
    ordered = sorted(findings, key=lambda f: -f.strength.weight)
    quotes = [_evidence(f) for f in ordered]
    chosen = [q[0] for q in quotes if q]
    for extra in (1, 2):
        chosen += [q[extra] for q in quotes if len(q) > extra]
    keep = {id(e) for e in chosen[:limit]}
    return [e for q in quotes for e in q if id(e) in keep]


def _gate_evidence(one: Gate) -> Evidence:
    event = one.fact.events[0] if one.fact is not None and one.fact.events else None
    value = one.fact.value if one.fact is not None else "not known"
    return Evidence(
        clause=one.name,
        strength="decisive",
        statement=f"{one.name} is {value}; this cause needs {spelled(one.condition)}",
        source=quote(event.span, event.text) if event is not None else None,
    )


def _hypothesis(analysis: Analysis, candidate: Candidate, rank: int) -> Hypothesis:
    rule = candidate.rule
    cause = analysis.rulebook.cause(rule.cause)
    against = _interleave(candidate.seen("against"), QUOTES_PER_HYPOTHESIS)
    against += [_gate_evidence(one) for one in candidate.gates if one.holds is False]
    missing = [
        _missing(candidate, finding)
        for finding in candidate.findings
        if finding.answer is Answer.UNCHECKED and finding.clause.collect
    ]
    missing += [
        Missing(
            clause=one.name,
            strength="fair",
            statement=f"whether {one.name} is {spelled(one.condition)}",
            how_to_get="collect_env or the start-up log",
            would="raise",
        )
        for one in candidate.gates
        if one.holds is None
    ]
    why = f"yields to {candidate.yields_to}, which explains the same" if candidate.yields_to else ""
    return Hypothesis(
        rank=rank,
        rule=rule.id,
        cause=rule.cause,
        family=rule.family or cause.family,
        title=rule.title,
        about=rule.about,
        impact=rule.impact,
        confidence=_confidence(candidate.confidence),
        score=round(candidate.score, 2),
        completeness=candidate.completeness,
        ruled_out=candidate.ruled_out,
        why_here=why,
        evidence_for=_interleave(candidate.seen("for"), QUOTES_PER_HYPOTHESIS),
        evidence_against=against,
        missing_evidence=missing,
        first_event=moment(candidate.first, "first event of this hypothesis") if candidate.first else None,
        symptoms=[name for name in rule.symptoms if f"{SYMPTOM}{name}" in analysis.bundle.sightings],
        rivals=[RivalNote(cause=r.cause, tell_apart=r.tell_apart) for r in rule.rival],
        remedies=[_remedy(remedy, candidate, analysis.bundle) for remedy in rule.remedy],
        sources=[
            SourceNote(url=s.url, title=s.title, status=s.status, checked=str(s.checked or rule.checked))
            for s in rule.source
        ],
    )


def _confidence(level: str) -> Literal["high", "medium", "low"]:
    return "high" if level == "high" else "medium" if level == "medium" else "low"


def _missing(candidate: Candidate, finding: Finding) -> Missing:
    if finding.side == "against":
        would: Literal["settle", "raise", "lower"] = "lower"
    else:
        would = (
            "settle"
            if finding.clause.strength is Strength.DECISIVE
            or (candidate.confidence == "medium" and finding.clause.strength is Strength.STRONG)
            else "raise"
        )
    return Missing(
        clause=finding.clause.id,
        strength=finding.clause.strength.value,
        statement=finding.clause.says,
        how_to_get=finding.clause.collect or "an artifact that would show it was not given",
        would=would,
    )


def _remedy(remedy: Remedy, candidate: Candidate, bundle: Bundle) -> RemedyNote:
    held: Literal["held", "failed", "not-checkable"] = "not-checkable"
    by_id = {f.clause.id: f for f in candidate.findings}
    for where, target in remedy.verified_by.items():
        if where == "fact":
            name, _, value = target.partition("=")
            known = bundle.facts.get(name)
            if known:
                held = "held" if any(f.value == value for f in known) else "failed"
        elif by_id[target].answer is Answer.SEEN:
            held = "held"
        elif by_id[target].answer is Answer.ABSENT and _tried(remedy, bundle):
            held = "failed"
    return RemedyNote(
        do=remedy.do.replace("<pid>", _pids(candidate, bundle) or "<pid>"),
        verify=remedy.verify,
        verified=held,
        grade=remedy.grade,
        evidence=remedy.evidence,
        caveat=remedy.caveat,
        source=remedy.source,
    )


def _pids(candidate: Candidate, bundle: Bundle) -> str:
    """The processes that the hypothesis is about, as a command takes them; empty where the input names none."""
    seen = [finding.clause.observed for finding in candidate.seen("for") if finding.clause.observed]
    named = [one.fields.get("pid") for name in seen for one in bundle.observed(name)]
    return " ".join(dict.fromkeys(str(pid) for pid in named if isinstance(pid, int)))


def _tried(remedy: Remedy, bundle: Bundle) -> bool:
    """Whether the input shows that the remedy was tried: an environment variable that it names is set."""
    return any(bundle.facts.get(f"env.{name}") for name in re.findall(r"\b([A-Z][A-Z0-9_]{3,})=", remedy.do))


def _symptoms(analysis: Analysis) -> list[SymptomNote]:
    notes = []
    for key, seen in analysis.bundle.sightings.items():
        if key.startswith(SYMPTOM) and seen.kept:
            name = key.removeprefix(SYMPTOM)
            by = [c.rule.id for c in analysis.ranked if not c.ruled_out and name in c.rule.symptoms]
            notes.append(
                SymptomNote(
                    symptom=name, count=seen.count, explained_by=by, first=quote(seen.kept[0].span, seen.kept[0].text)
                )
            )
    return notes


def _environment(bundle: Bundle) -> dict[str, FactValue]:
    shown: dict[str, FactValue] = {}
    names = {
        **ENVIRONMENT,
        **{name: name for name in sorted(bundle.facts.values) if name.startswith(("env.", "parallel.", "kernel."))},
    }
    idle = {str(one.fields["name"]): str(one.fields["shown"]) for one in bundle.observed("setting_without_effect")}
    names = {**{name: name for name in idle}, **names}
    for label, name in names.items():
        known = bundle.facts.get(name)
        if known:
            event = known[0].events[0]
            shown[label] = FactValue(
                value=known[0].value,
                source=quote(event.span, event.text),
                conflicts=[one.value for one in known[1:6]] + ([f"no effect: {idle[name]}"] if name in idle else []),
            )
    return dict(list(shown.items())[:60])


def _artifact(read: Read) -> Artifact:
    def reading(which: int) -> str | None:
        line = read.first_line if which == 0 else read.last_line
        stamped = [e.stamp for e in read.events if e.stamp is not None]
        if stamped:
            return stamped[0 if which == 0 else -1].text
        stamp = (line.outer or reading_of(line.text)) if line is not None else None
        return stamp.text if stamp is not None else None

    notes = [Note(tag=t.tag, text=t.text) for t in read.troubles]
    if read.part:
        notes.append(Note(tag="part", text=f"a mixed text: this part has {read.part}"))
    if read.transports:
        notes.append(Note(tag="transport", text="taken off: " + ", ".join(read.transports)))
    return Artifact(
        path=read.path,
        parser=read.parser,
        kind=read.kind,
        bytes=read.size,
        lines=read.lines,
        recognised_share=round(min(read.known / read.nonblank, 1.0), 2) if read.nonblank else 1.0,
        first=reading(0),
        last=reading(1),
        complete=read.complete,
        notes=notes,
    )


def _unexplained(analysis: Analysis) -> list[Unexplained]:
    """What no hypothesis explains, as templates; see `analyzer/reasoning/unexplained.py`."""
    noise = analysis.rulebook.vocabulary.get("noise", {})
    return [Unexplained(template=one.template, level=one.level, count=one.count,
                        first=quote(one.events[0].span, one.events[0].text))
            for one in unexplained(analysis.bundle, analysis.ranked, noise)]  # fmt: skip
