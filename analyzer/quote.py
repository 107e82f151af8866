"""Records as the report shows them: quoted, placed, dated."""

from __future__ import annotations

from analyzer.reasoning.evidence import Record
from analyzer.report import QUOTE_LIMIT, Moment, Quote
from analyzer.timeline.timeline import Place, written
from parsers.span import SourceSpan


def quote(span: SourceSpan, text: str) -> Quote:
    """A record as a quote of at most `QUOTE_LIMIT` characters, shortened in the middle."""
    if len(text) > QUOTE_LIMIT:
        half = (QUOTE_LIMIT - 5) // 2
        text = f"{text[:half]} […] {text[-half:]}"[:QUOTE_LIMIT]
    binary = span.first_line == 0
    return Quote(
        artifact=span.source,
        line=None if binary else span.first_line,
        last_line=None if binary else span.last_line,
        offset=span.start,
        text=text,
    )


def time_of(place: Place) -> str | None:
    """RFC 3339 of a place that is known to within a minute either way, else None."""
    if place.at is None or place.earliest is None or place.latest is None or place.latest - place.earliest > 120:
        return None
    return written(place.at)


def moment(record: Record, what: str = "") -> Moment:
    """A record as an instant or an interval."""
    place = record.place
    spread = place.latest - place.earliest if place.earliest is not None and place.latest is not None else None
    return Moment(
        time=time_of(place),
        as_written=place.text,
        earliest=written(place.earliest),
        latest=written(place.latest),
        uncertainty_s=round(spread, 3) if spread is not None else None,
        source=quote(record.span, record.text),
        what=what,
    )
