"""The report: one frozen document, savable, re-renderable without the inputs (docs/report-format.md).

`schema_version` is MAJOR.MINOR; within a major, fields are only added. Every `text` is raw input: renderers neutralise
it (`analyzer/render/sanitise.py`).
"""

from __future__ import annotations

from typing import Literal

from analyzer.document import Document, field

SCHEMA_VERSION = "1.0"

Confidence = Literal["high", "medium", "low"]
Verdict = Literal["identified", "candidates", "unknown", "healthy", "unreadable"]
QUOTE_LIMIT = 800
"""Characters of one quote; longer records are shortened in the middle."""
QUOTES_PER_HYPOTHESIS = 12


class Quote(Document):
    """One record of the input. `line` is None in a binary artifact; `offset` is in bytes."""

    artifact: str
    line: int | None = None
    last_line: int | None = None
    offset: int | None = None
    text: str = ""


class Evidence(Document):
    """A clause that was seen, with the record that shows it. `source` is None for a justified absence."""

    clause: str
    strength: Literal["decisive", "strong", "fair", "weak"]
    statement: str
    time: str | None = None
    source: Quote | None = None
    count: int = 1


class Missing(Document):
    """A clause that could not be checked, and how to make it checkable."""

    clause: str
    strength: Literal["decisive", "strong", "fair", "weak"]
    statement: str
    how_to_get: str
    would: Literal["settle", "raise", "lower"]


class Moment(Document):
    """An instant or an interval. `time` is RFC 3339 with its zone, or None; `as_written` is the reading itself."""

    time: str | None = None
    as_written: str | None = None
    earliest: str | None = None
    latest: str | None = None
    uncertainty_s: float | None = None
    source: Quote | None = None
    what: str = ""


class RivalNote(Document):
    """Another cause that looks alike, and what would separate the two."""

    cause: str
    tell_apart: str


class RemedyNote(Document):
    """What to do, and whether its effect shows in the input."""

    do: str
    verify: str
    verified: Literal["held", "failed", "not-checkable"]
    grade: Literal["fixed-in", "maintainer", "reporter-observed", "inferred"]
    evidence: str = ""
    caveat: str = ""
    source: str = ""


class SourceNote(Document):
    """Where the rule's knowledge comes from."""

    url: str
    title: str = ""
    status: str
    checked: str


class Hypothesis(Document):
    """One cause argued for by one rule."""

    rank: int
    rule: str
    cause: str
    family: str
    title: str
    about: str = ""
    impact: Literal["service-down", "degraded", "risk", "info"]
    confidence: Confidence
    score: float
    completeness: float = field(ge=0, le=1)
    ruled_out: bool = False
    why_here: str = ""
    evidence_for: list[Evidence] = []
    evidence_against: list[Evidence] = []
    missing_evidence: list[Missing] = []
    first_event: Moment | None = None
    symptoms: list[str] = []
    rivals: list[RivalNote] = []
    remedies: list[RemedyNote] = []
    sources: list[SourceNote] = []


class NextStep(Document):
    """What to collect next, ordered by how well it separates the leading hypotheses."""

    collect: str
    command: str
    separates: list[str] = []
    risk: str = ""
    when: Literal["now", "next time"] = "now"
    """`next time`: not collected now but switched on, so that the evidence exists when it happens again."""


class FactValue(Document):
    """A fact about machine or software with where it was read; `conflicts` are other values seen."""

    value: str
    source: Quote | None = None
    conflicts: list[str] = []


class Clock(Document):
    """One clock of the input and how it was aligned with the others."""

    domain: str
    aligned_by: str
    offset_s: float | None = None
    uncertainty_s: float | None = None
    assumptions: list[str] = []


class TimelineEvent(Document):
    """One telling event."""

    time: str | None = None
    as_written: str | None = None
    earliest: str | None = None
    latest: str | None = None
    kind: str
    actor: str = ""
    text: str = ""
    source: Quote | None = None
    values: dict[str, float] = {}
    """Quantities that the record states, by name with unit: `generation tokens/s`, `utilisation %`, `power W` …"""
    phase: str | None = None
    """The phase that the record begins, ends or stands in; a `begin` and an `end` of one phase bear one name."""
    edge: Literal["begin", "end", "mark"] | None = None


class Coverage(Document):
    """From when to when one source could have shown something, and what it cannot say."""

    artifact: str
    kind: str
    first: Moment | None = None
    last: Moment | None = None
    covers_onset: Literal["yes", "no", "unknown"] = "unknown"
    says: str = ""


class Timeline(Document):
    """The telling events of all sources on one axis."""

    first: str | None = None
    last: str | None = None
    clocks: list[Clock] = []
    last_progress: Moment | None = None
    onset: Moment | None = None
    last_records: dict[str, Moment] = {}
    """The last stamped record of each process that the server's logs name."""
    coverage: list[Coverage] = []
    events: list[TimelineEvent] = []


class Note(Document):
    """Something about how an artifact was read."""

    tag: str
    text: str


class Artifact(Document):
    """One source that was read. `recognised_share` is the share of its non-blank lines that its parser knows."""

    path: str
    parser: str | None
    kind: str
    bytes: int
    lines: int
    recognised_share: float = field(ge=0, le=1)
    first: str | None = None
    last: str | None = None
    complete: bool
    notes: list[Note] = []


class Unexplained(Document):
    """A WARNING or ERROR template that no hypothesis explains."""

    template: str
    count: int
    level: str
    first: Quote


class TroubleNote(Document):
    """What could not be read and why."""

    source: str
    tag: str
    text: str
    line: int = 0
    offset: int = 0


class SymptomNote(Document):
    """A symptom that was seen: to be explained, never evidence for one cause over another."""

    symptom: str
    count: int
    explained_by: list[str] = []
    first: Quote


class Tool(Document):
    """What made the report."""

    name: str = "stuckwarp"
    version: str
    rulebook: str


class Report(Document):
    """The whole answer."""

    schema_version: str = SCHEMA_VERSION
    tool: Tool
    verdict: Verdict
    summary: str
    input: str = ""
    took_s: float | None = None
    hypotheses: list[Hypothesis] = []
    symptoms: list[SymptomNote] = []
    next_steps: list[NextStep] = []
    environment: dict[str, FactValue] = {}
    timeline: Timeline = Timeline()
    artifacts: list[Artifact] = []
    unexplained: list[Unexplained] = []
    troubles: list[TroubleNote] = []
