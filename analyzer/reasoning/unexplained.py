"""Warnings and errors that no hypothesis explains, as templates, the most telling first.

What is left over is where a person looks next, so it must be short: known noise of a healthy start is dropped
(`[noise]` of the vocabulary), lines that differ in numbers, ids, paths or names count as one, and what stands in an
explained traceback is explained with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from analyzer.intake.patterns import compiled
from analyzer.reasoning.bundle import Bundle
from analyzer.reasoning.rank import Candidate
from analyzer.reasoning.rulebook import SYMPTOM
from parsers.event import Event
from parsers.pattern import lazy

MOST = 25
LONGEST = 200
MOST_EVENTS = 20_000

KINDS = (
    "server_log.record",
    "server_log.exception",
    "kernel_log.nvrm",
    "collective.nccl_warn",
    "notes.failure",
    "fabric.manager",
)
SEVERE = ("ERROR", "CRITICAL", "FATAL")

_VARIABLE = (
    (lazy(r"https?://[^\s'\")]+"), "<url>"),
    (lazy(r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"), "<uuid>"),
    (lazy(r"\b(?:cmpl|chatcmpl|req|request)-[\w-]{6,}"), "<request>"),
    (lazy(r"(?<![\w/.])~?/(?:[\w.@+-]+/)*[\w.@+-]*"), "<path>"),
    (lazy(r"\b0x[0-9a-fA-F]+\b|\b[0-9a-f]{12,}\b"), "<hex>"),
    (lazy(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+){2,}\b"), "<NAME>"),
    (lazy(r"\b_{0,2}[a-z][a-z0-9]*(?:_[a-z0-9]+){2,}\b"), "<name>"),
    (lazy(r"\b[a-z_][a-z0-9_]*(?:\.[a-z0-9_]+){3,}\b"), "<name>"),
    (lazy(r"(?<![\w.])\d+(?:[.:]\d+)*(?=$|[^\w]|[a-zA-Z]{1,3}\b)"), "#"),
)
_TRACEBACK = lazy(r"Traceback \(most recent call last\):\s*$")
_TELLING = lazy(
    r"(?i)\berror|fail|time(?:d)?[ -]?out|cannot|could not|unable|invalid|illegal|corrupt|killed|died|lost|hang|hung"
    r"|stuck|exceed|refused|denied|mismatch|abort|panic|fatal|unsupported|not supported|out of memory"
)


@dataclass(slots=True)
class Leftover:
    """A template, the level it was logged at, and the events that have its form."""

    template: str
    level: str
    events: list[Event] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How often it was said; an event may stand for a flood."""
        return sum(int(str(event.fields.get("count") or 1)) for event in self.events)


def template_of(text: str) -> str:
    """The fixed words of a message: numbers, ids, paths and names taken out. One line, at most `LONGEST` characters."""
    text = text.strip().split("\n", 1)[0][: 4 * LONGEST]
    for pattern, place in _VARIABLE:
        text = pattern.sub(place, text)
    return re.sub(r"(#|<\w+>)(?:[,\s]{1,2}\1)+", r"\1 …", text)[:LONGEST]


def level_of(event: Event) -> str:
    """The level that a record was logged at; what has none is taken for what its kind is."""
    level = str(event.fields.get("level") or "").upper()
    return level or ("ERROR" if event.kind in ("server_log.exception", "notes.failure") else "WARNING")


def message_of(event: Event) -> str:
    """What an event says, without the front of its line."""
    if event.kind == "server_log.exception":
        return f"{event.fields.get('type') or 'Exception'}: {event.fields.get('message') or ''}".rstrip(": ")
    return str(event.fields.get("message") or event.text)


def unexplained(bundle: Bundle, ranked: Iterable[Candidate], noise: Iterable[str]) -> list[Leftover]:
    """At most `MOST` templates that no live hypothesis explains."""
    ranked = [candidate for candidate in ranked if not candidate.ruled_out]
    events = bundle.events(*KINDS)[:MOST_EVENTS]
    lines = _explained_lines(bundle, ranked)
    known: set[str] = set()
    open_events: list[tuple[Event, str]] = []
    for event in events:
        template = template_of(message_of(event))
        near = lines.get(event.span.source, set())
        if any(line in near for line in _span(event.span.first_line, event.span.last_line)):
            known.add(template)
        elif event.kind == "server_log.record" and _TRACEBACK.search(event.text):
            continue  # the traceback itself is an event of its own
        else:
            open_events.append((event, template))
    silent = [compiled(pattern) for pattern in noise]
    found: dict[tuple[str, str], Leftover] = {}
    held: dict[tuple[str, str], Leftover] = {}
    for event, template in open_events:
        level = level_of(event)
        if template in known or not template or (event.kind == "fabric.manager" and level not in SEVERE):
            continue
        if (level, template) not in found:
            if any(_seen(pattern, message_of(event)) for pattern in silent):
                held.setdefault((level, template), Leftover(template, level)).events.append(event)
                continue
            found[level, template] = Leftover(template, level)
        found[level, template].events.append(event)
    if not found and not ranked:
        # An error that points to another one is all there is.
        found = {key: one for key, one in held.items() if one.level in SEVERE}
    return sorted(found.values(), key=_order)[:MOST]


def _seen(pattern: object, text: str) -> bool:
    try:
        return pattern.search(text[:2_000], timeout=0.2) is not None  # type: ignore[attr-defined]
    except TimeoutError:
        return False


def _order(one: Leftover) -> tuple[bool, bool, int, int]:
    """Errors before warnings, words of failure before others, the rare before the frequent, the late before the
    early."""
    return (one.level not in SEVERE, _TELLING.search(one.template) is None, min(one.count, 50),
            -one.events[-1].span.first_line)  # fmt: skip


def _explained_lines(bundle: Bundle, ranked: list[Candidate]) -> dict[str, set[int]]:
    """The lines of each source on which a hypothesis rests, those of the symptoms that it explains, and the whole of a
    traceback with such a line in it."""
    lines: dict[str, set[int]] = {}
    for candidate in ranked:
        for finding in candidate.seen("for"):
            for record in finding.records:
                lines.setdefault(record.span.source, set()).update(_span(record.span.first_line, record.span.last_line))
    symptoms = {name for candidate in ranked for name in candidate.rule.symptoms}
    for name in symptoms:
        seen = bundle.sightings.get(f"{SYMPTOM}{name}")
        for sighting in seen.kept if seen else ():
            lines.setdefault(sighting.span.source, set()).add(sighting.span.first_line)
    for event in bundle.events("server_log.exception")[:MOST_EVENTS]:
        mine = lines.get(event.span.source)
        whole = _span(event.span.first_line, event.span.last_line)
        if mine and any(line in mine for line in whole):
            mine.update(whole)
            mine.add(event.span.first_line - 1)  # the record that announces it
    return lines


def _span(first: int, last: int) -> range:
    return range(first, min(last, first + 2_000) + 1)
