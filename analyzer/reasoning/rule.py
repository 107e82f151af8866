"""The shape of a rule file (docs/writing-a-rule.md).

A rule is data: one TOML file, named after its id, in the folder of the phase in which the failure shows. It argues for
one cause (a slug of `rules/causes.toml`) by clauses, each of which is later answered as seen, contradicted, absent
where we looked, or not checkable.
"""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Annotated, Literal

from analyzer.document import Document, TextShape, field

Slug = Annotated[str, TextShape(r"^[a-z0-9]+(?:[.-][a-z0-9]+)*$", max_length=80)]
Scalar = str | bool | int | float
Condition = Scalar | list[Scalar]
"""How a field or fact is compared: a string or number = equal; `~…` = regex search; a list = one of; a string that
begins with `<`, `>`, `=` or `!` = a range of versions (PEP 440) or of numbers, as `>= 0.6.7, < 0.6.7.post2`."""

Phase = Literal["startup", "capture", "serving", "collective", "hardware", "host"]


class Strength(StrEnum):
    """How much one clause says. The words, not the numbers, are the vocabulary of rule authors."""

    DECISIVE = "decisive"
    STRONG = "strong"
    FAIR = "fair"
    WEAK = "weak"

    @property
    def weight(self) -> float:
        """4, 2, 1 and 0.5: one decisive clause outweighs any one strong clause with its corroboration."""
        return {"decisive": 4.0, "strong": 2.0, "fair": 1.0, "weak": 0.5}[self.value]

    @property
    def lowered(self) -> Strength:
        """One step down: the same statement retold in prose instead of printed by a program."""
        return {"decisive": Strength.STRONG, "strong": Strength.FAIR}.get(self.value, Strength.WEAK)


class Clause(Document):
    """One thing that would speak for or against the cause. Exactly one of `pattern`, `event`, `observed`, `fact`,
    `absent` is given."""

    id: Slug
    strength: Strength
    says: str = field(min_length=4, description="The statement in words, as the report prints it.")
    pattern: str | None = field(
        default=None, description="A regular expression (regex package), searched in one record."
    )
    event: str | None = field(default=None, description="An event kind of the vocabulary, compared by `where`.")
    observed: str | None = field(default=None, description="An observation of the vocabulary, compared by `where`.")
    fact: str | None = field(default=None, description="A fact's name, compared by `where.value`, or merely known.")
    absent: str | None = field(
        default=None,
        description="An event kind or observation that should not be there; counts only "
        "where a source that would show it was read to its end.",
    )
    where: dict[str, Condition] = {}
    sources: list[str] = field(
        default=[],
        written="in",
        description="Artifact kinds a pattern is searched in; "
        "empty = every kind of text. Prose (`notes`) is always searched, one strength lower.",
    )
    count: int = field(default=1, ge=1, description="How many times it must be seen.")
    after: Slug | None = field(default=None, description="Only if it comes after this other clause of the rule.")
    before: Slug | None = field(default=None, description="Only if it comes before this other clause of the rule.")
    group: str | None = field(
        default=None, description="Clauses of one group restate one fact: the strongest counts, once."
    )
    context: bool = field(
        default=False, description="What it shows is the setting, not an event: never the first event."
    )
    sample: str | list[str] = field(default=[], description="Lines that the pattern must match (lint).")
    rejects: list[str] = field(default=[], description="Near lines that the pattern must not match (lint).")
    collect: str | None = field(default=None, description="How to get it when it is not there: a command or a file.")

    @classmethod
    def prepared(cls, data: object) -> object:
        """One source as a list."""
        if isinstance(data, dict) and isinstance(data.get("in"), str):
            data = {**data, "in": [data["in"]]}
        return data

    def validate_fields(self) -> None:
        """One test; a pattern has a sample."""
        given = [name for name in ("pattern", "event", "observed", "fact", "absent") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"clause {self.id!r} needs exactly one of pattern, event, observed, fact, absent; has {given or 'none'}"
            )
        if self.pattern is not None and not self.sample:
            raise ValueError(f"clause {self.id!r} has a pattern without a sample line that it matches")

    @property
    def samples(self) -> list[str]:
        """The sample lines as a list."""
        return [self.sample] if isinstance(self.sample, str) else list(self.sample)


class Remedy(Document):
    """What to do, how to see that it took effect, and how well that is founded."""

    do: str
    verify: str
    verified_by: dict[Literal["for", "against", "fact"], str] = field(
        default={}, description="A clause (by id) or `name=value` fact whose presence shows that it took effect."
    )
    grade: Literal["fixed-in", "maintainer", "reporter-observed", "inferred"]
    evidence: str = ""
    caveat: str = ""
    source: str = ""


class Rival(Document):
    """Another cause that looks alike, and what would tell the two apart."""

    cause: Slug
    tell_apart: str


class Source(Document):
    """Where the rule's knowledge comes from; each was looked up on `checked` (the rule's date when not given)."""

    url: str
    title: str = ""
    status: str = field(description="open | merged | closed | fixed-in X | page")
    checked: date | None = None


class Versions(Document):
    """Versions as the sources state them: `flashinfer >= 0.6.7, < 0.6.7.post2`."""

    affected: str = ""
    fixed_in: str = ""


class Rule(Document):
    """One rule file."""

    id: Slug
    cause: Slug
    title: str
    phase: Phase
    family: str = ""
    impact: Literal["service-down", "degraded", "risk", "info"]
    status: Literal["draft", "tested", "stable"]
    checked: date
    about: str = field(default="", description="What happens, in two or three sentences for a person on call.")
    floor: bool = field(
        default=False,
        description="'This happened, the cause is not shown': at most medium, yields to any "
        "specific hypothesis that explains the same symptoms.",
    )
    harmless: bool = field(default=False, description="Not a fault: goes with the verdict healthy.")
    ceiling: Literal["low", "medium", "high"] = "high"
    needs: list[str] = field(
        default=[],
        description="Each entry `a|b`: at least one of these `for` clauses "
        "must be seen, or the rule does not speak at all.",
    )
    consequence_of: list[Slug] = field(
        default=[], description="Causes that, when they came first, explain what this rule sees."
    )
    symptoms: list[str] = field(default=[], description="Symptoms (vocabulary) that this cause explains.")
    applies: dict[str, Condition] = field(
        default={}, description="Environment gates: satisfied, violated (ruled out) or unknown (lowers completeness)."
    )
    versions: Versions = Versions()
    for_: list[Clause] = field(written="for", min_length=1)
    against: list[Clause] = []
    remedy: list[Remedy] = []
    rival: list[Rival] = []
    source: list[Source] = []

    def validate_fields(self) -> None:
        """What refers to a clause names one of this rule."""
        clauses = [*self.for_, *self.against]
        ids = [clause.id for clause in clauses]
        doubled = sorted({one for one in ids if ids.count(one) > 1})
        if doubled:
            raise ValueError(f"clause ids used twice: {', '.join(doubled)}")
        known = {clause.id for clause in self.for_}
        for need in self.needs:
            for one in need.split("|"):
                if one.strip() not in known:
                    raise ValueError(f"needs names {one.strip()!r}, which is no `for` clause of this rule")
        for clause in clauses:
            for other in (clause.after, clause.before):
                if other is not None and other not in ids:
                    raise ValueError(f"clause {clause.id!r} refers to {other!r}, which is no clause of this rule")
        for remedy in self.remedy:
            for where, target in remedy.verified_by.items():
                if where != "fact" and target not in ids:
                    raise ValueError(f"verified_by names {target!r}, which is no clause of this rule")

    @property
    def clauses(self) -> list[Clause]:
        """All clauses, for and against."""
        return [*self.for_, *self.against]
