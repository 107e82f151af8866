"""Clock readings: those that transports put on lines, and those inside records that no parser has stamped."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

from parsers.pattern import lazy
from parsers.stamp import ClockKind, Stamp

_RFC3339 = lazy(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)")
_ISO_ZONED = lazy(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)")
_ISO_LOCAL = lazy(r"(?<!\d)(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?!\d)")
_VLLM = lazy(r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)")
_SYSLOG = lazy(r"\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d)"
                     r"(?: (\d{4}))?")
_BOOT = lazy(r"^(?:<\d{1,3}>)?\[ {0,8}(\d{1,9}\.\d{1,9})\]")
_TIME = lazy(r"(?<![\d:.])(\d\d):(\d\d):(\d\d)(?:[.,]\d{1,6})?(?![\d:])")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
NO_YEAR = 1972


def rfc3339(text: str) -> Stamp | None:
    """A zoned reading at the start of `text` (`2026-03-29T15:38:59.121546123Z`) as an absolute stamp."""
    found = _RFC3339.match(text)
    if not found:
        return None
    zone = "+00:00" if found[3] == "Z" else found[3] if ":" in found[3] else f"{found[3][:3]}:{found[3][3:]}"
    try:
        seconds = datetime.fromisoformat(found[1].replace(" ", "T") + zone).timestamp()
    except (ValueError, OverflowError):
        return None
    digits = found[2] or ""
    fraction = int(digits) / 10 ** len(digits) if digits else 0.0
    return Stamp(found[0], ClockKind.UTC, seconds + fraction, 10.0 ** -len(digits) if digits else 1.0)


def epoch(written: object) -> Stamp | None:
    """An epoch reading in seconds, milliseconds, microseconds or nanoseconds, told apart by its size."""
    text = str(written)
    if not text.isdecimal() or not 10 <= len(text) <= 19:
        return None
    unit = {10: 0, 13: 3, 16: 6, 19: 9}.get(len(text))
    return None if unit is None else Stamp(text, ClockKind.UTC, int(text) / 10**unit, 10.0**-unit)


def instant(written: object) -> Stamp | None:
    """A reading of a log store: RFC 3339, an epoch number, or an object `{"seconds", "nanos"}`."""
    if isinstance(written, dict):
        return epoch(written.get("seconds"))
    if isinstance(written, bool) or not isinstance(written, str | int | float):
        return None
    if isinstance(written, float) and 1e9 <= written < 1e10:  # fluent-bit's `date`
        return Stamp(repr(written), ClockKind.UTC, written, 1e-6)
    text = str(int(written)) if isinstance(written, float) and abs(written) < 1e19 else str(written)
    return rfc3339(text.replace(" ", "T", 1)) or rfc3339(text.replace(" ", "T", 1) + "Z") or epoch(text)


def _wall(year: int | None, month: int, day: int, clock: tuple[int, int, int], fraction: float, text: str,
          precision: float) -> Stamp | None:
    try:
        at = datetime(year or NO_YEAR, month, day, *clock, tzinfo=UTC)
    except ValueError:
        return None
    return Stamp(text, ClockKind.WALL, at.timestamp() + fraction, precision, year is not None)


@lru_cache(maxsize=4096)
def reading_of(text: str) -> Stamp | None:
    """The first clock reading in `text` (its first 400 characters), or None."""
    head = text[:400]
    if found := _BOOT.match(head):
        return Stamp(found[1], ClockKind.BOOT, float(found[1]), 1e-6)
    # The first reading is the record's own; one further in may be part of what it says.
    hits = [(pattern.search(head), read) for pattern, read in _FORMS]
    for found, read in sorted(((hit, read) for hit, read in hits if hit is not None), key=lambda one: one[0].start()):
        if stamp := read(found):
            return stamp
    return None


def _zoned(found: re.Match[str]) -> Stamp | None:
    return rfc3339(found[0])


def _local(found: re.Match[str]) -> Stamp | None:
    digits = found[7] or ""
    return _wall(int(found[1]), int(found[2]), int(found[3]), (int(found[4]), int(found[5]), int(found[6])),
                 int(digits) / 10 ** len(digits) if digits else 0.0, found[0], 10.0 ** -len(digits) if digits else 1.0)


def _vllm(found: re.Match[str]) -> Stamp | None:
    return _wall(None, int(found[1]), int(found[2]), (int(found[3]), int(found[4]), int(found[5])), 0.0,
                 found[0].split(" ", 1)[1], 1.0)


def _syslog(found: re.Match[str]) -> Stamp | None:
    return _wall(int(found[6]) if found[6] else None, _MONTHS.index(found[1]) + 1, int(found[2]),
                 (int(found[3]), int(found[4]), int(found[5])), 0.0, found[0], 1.0)


def _time(found: re.Match[str]) -> Stamp | None:
    hours, minutes, seconds = int(found[1]), int(found[2]), int(found[3])
    if hours >= 24 or minutes >= 60 or seconds >= 61:
        return None
    return Stamp(found[0], ClockKind.WALL, hours * 3600.0 + minutes * 60 + seconds, 1.0, False, False)


# Of two forms that begin at one character, the first one here says more.
_FORMS = ((_ISO_ZONED, _zoned), (_ISO_LOCAL, _local), (_VLLM, _vllm), (_SYSLOG, _syslog), (_TIME, _time))
