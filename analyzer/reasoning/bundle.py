"""Everything that was read of one input, as the reasoning sees it."""

from __future__ import annotations

from dataclasses import dataclass, field

from analyzer.intake.patterns import PROSE, Sightings
from analyzer.intake.read import Read
from analyzer.reasoning.facts import Facts
from analyzer.timeline.timeline import Place, Timeline
from parsers.event import Event
from parsers.span import SourceSpan


@dataclass(slots=True)
class Observation:
    """What events add up to: a name of the vocabulary, fields, and the events it rests on (the telling one first)."""

    name: str
    events: list[Event]
    fields: dict[str, object] = field(default_factory=dict)


@dataclass(slots=True)
class Bundle:
    """Artifacts, events by kind, facts, sightings of patterns, observations, and the timeline."""

    reads: list[Read]
    by_kind: dict[str, list[Event]]
    facts: Facts
    sightings: dict[str, Sightings]
    timeline: Timeline
    observations: dict[str, list[Observation]] = field(default_factory=dict)
    slow_patterns: set[str] = field(default_factory=set)
    originals: dict[str, dict[int, str]] = field(default_factory=dict)
    """Lines as they were pasted, by source and number, where what was read differs from them."""

    def events(self, *kinds: str) -> list[Event]:
        """Events of these kinds, in the order of reading."""
        return [event for kind in kinds for event in self.by_kind.get(kind, ())]

    def observed(self, name: str) -> list[Observation]:
        """Observations of that name."""
        return self.observations.get(name, [])

    def place(self, event: Event) -> Place:
        """Where an event stands on the timeline."""
        return self.timeline.place(event.span, event.stamp)

    def original(self, span: SourceSpan, text: str) -> str:
        """A record as the person pasted it; `text` itself where nothing was changed, or where it spans lines."""
        changed = self.originals.get(span.source)
        if not changed or span.first_line != span.last_line:
            return text
        return changed.get(span.first_line, text)

    def kinds(self) -> set[str]:
        """The kinds of artifacts that were read."""
        return {read.kind for read in self.reads if read.lines or read.events}

    def looked(self, kind: str) -> bool:
        """Whether an artifact of this kind was read to its end: only then does absence count. A text that no parser
        knows, and a person's words, could have said anything: their silence says nothing."""
        return kind != PROSE and any(
            read.kind == kind and read.complete for read in self.reads if read.lines or read.events
        )
