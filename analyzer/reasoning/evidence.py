"""The four answers that a clause can get, and the records that carry them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from analyzer.reasoning.rule import Clause, Strength
from analyzer.timeline.timeline import Place
from parsers.span import SourceSpan


class Answer(Enum):
    """What became of a clause."""

    SEEN = "seen"
    CONTRADICTED = "contradicted"
    """An `absent` clause whose thing is there."""
    ABSENT = "absent where we looked"
    UNCHECKED = "not checkable"


@dataclass(slots=True)
class Record:
    """One record of the input that answers a clause."""

    span: SourceSpan
    text: str
    place: Place
    kind: str = ""


@dataclass(slots=True)
class Finding:
    """A clause with its answer. `strength` is the clause's own, or one lower when only prose says so."""

    clause: Clause
    side: str
    answer: Answer
    strength: Strength
    records: list[Record] = field(default_factory=list)
    count: int = 0
    detail: str = ""
