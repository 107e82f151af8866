"""Choose events of a timeline by time, kind, source, GPU or rank."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from analyzer.report import Moment, Timeline, TimelineEvent

AROUND = 300.0
NEIGHBOURS = 20
DAY = 86400.0


@dataclass(slots=True, frozen=True)
class Selection:
    """What is wanted; None and () select everything."""

    around: str | None = None
    since: str | None = None
    until: str | None = None
    kinds: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    gpu: str | None = None
    rank: str | None = None


def _clock(text: str) -> tuple[float | None, float | None]:
    """(Unix seconds, seconds of the day) of a time as a user or a log writes it."""
    try:
        at = datetime.fromisoformat(text.replace("Z", "+00:00"))
        if at.tzinfo is not None:
            return at.timestamp(), at.hour * 3600 + at.minute * 60 + at.second + at.microsecond / 1e6
    except ValueError:
        pass
    found = re.search(r"(\d{1,2}):(\d\d)(?::(\d\d))?", text)
    if not found:
        return None, None
    return None, int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3] or 0)


def select(timeline: Timeline, wanted: Selection) -> Timeline:
    """The timeline with the chosen events. Raises ValueError for a time that cannot be read."""
    if wanted.around == "onset" and timeline.onset is not None and _no_clock(timeline.onset):
        return timeline.model_copy(update={"events": [e for e in _near(timeline) if _fits(e, wanted)]})
    bounds: list[tuple[float | None, float | None, float, float]] = []
    if wanted.around is not None:
        if wanted.around == "onset":
            if timeline.onset is None:
                raise ValueError("no onset is known for this input, so --around onset selects nothing. "
                                 "Give a time instead.")
            centre = timeline.onset.time or timeline.onset.as_written or ""
        else:
            centre = wanted.around
        bounds.append((*_checked(centre), -AROUND, AROUND))
    if wanted.since is not None:
        bounds.append((*_checked(wanted.since), 0.0, float("inf")))
    if wanted.until is not None:
        bounds.append((*_checked(wanted.until), float("-inf"), 0.0))
    return timeline.model_copy(update={"events": [e for e in timeline.events if _fits(e, wanted)
                                                  and all(_within(e, *bound) for bound in bounds)]})


def _no_clock(onset: Moment) -> bool:
    """Whether the onset has no time of day: seconds since boot, or a line without a stamp."""
    return _clock(onset.time or onset.as_written or "") == (None, None)


def _near(timeline: Timeline) -> list[TimelineEvent]:
    """The events around the record of the onset, by their order."""
    source = timeline.onset.source if timeline.onset is not None else None
    if source is None:
        return list(timeline.events)
    mine = [i for i, e in enumerate(timeline.events) if e.source is not None and e.source.artifact == source.artifact
            and (e.source.line or 0) >= (source.line or 0)]
    at = mine[0] if mine else len(timeline.events) - 1
    return list(timeline.events[max(at - NEIGHBOURS, 0):at + NEIGHBOURS])


def _checked(text: str) -> tuple[float | None, float | None]:
    instant, of_day = _clock(text)
    if instant is None and of_day is None:
        raise ValueError(f"the time {text!r} cannot be read. Write HH:MM:SS or 2026-11-30T20:18:13+01:00.")
    return instant, of_day


def _within(event: TimelineEvent, instant: float | None, of_day: float | None, low: float, high: float) -> bool:
    own_instant, own_day = _clock(event.time or event.earliest or "")
    if own_instant is not None and instant is not None:
        return low <= own_instant - instant <= high
    written = _clock(event.as_written or "")[1] if event.as_written else own_day
    if written is None or of_day is None:
        return False  # no reading that could be compared
    apart = written - of_day
    if abs(low) != float("inf") and abs(high) != float("inf"):
        apart = (apart + DAY / 2) % DAY - DAY / 2  # a window may lie across midnight
    return low <= apart <= high


def _fits(event: TimelineEvent, wanted: Selection) -> bool:
    if wanted.kinds and not event.kind.startswith(wanted.kinds):
        return False
    if wanted.sources and not (event.source is not None and any(s in event.source.artifact for s in wanted.sources)):
        return False
    if wanted.gpu is not None and wanted.gpu.lower() not in event.actor.lower():
        return False
    return wanted.rank is None or f"rank {wanted.rank}" in event.actor or f"TP{wanted.rank}" in event.actor
