"""Find the clock reading in a record, for records that no parser has stamped (a rule's pattern saw them)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

from analyzer.intake.transport import rfc3339
from parsers.stamp import ClockKind, Stamp

_ISO_ZONED = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)")
_ISO_LOCAL = re.compile(r"(?<!\d)(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?!\d)")
_VLLM = re.compile(r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)")
_SYSLOG = re.compile(r"\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d)(?: (\d{4}))?")
_BOOT = re.compile(r"^(?:<\d{1,3}>)?\[ {0,8}(\d{1,9}\.\d{1,9})\]")
_TIME = re.compile(r"(?<![\d:.])(\d\d):(\d\d):(\d\d)(?:[.,]\d{1,6})?(?![\d:])")
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
NO_YEAR = 1972


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
    if (found := _ISO_ZONED.search(head)) and (stamp := rfc3339(found[0])):
        return stamp
    if found := _ISO_LOCAL.search(head):
        digits = found[7] or ""
        return _wall(int(found[1]), int(found[2]), int(found[3]), (int(found[4]), int(found[5]), int(found[6])),
                     int(digits) / 10 ** len(digits) if digits else 0.0, found[0], 10.0 ** -len(digits) if digits else 1.0)
    if found := _VLLM.search(head):
        return _wall(None, int(found[1]), int(found[2]), (int(found[3]), int(found[4]), int(found[5])), 0.0,
                     found[0].split(" ", 1)[1], 1.0)
    if found := _SYSLOG.search(head):
        return _wall(int(found[6]) if found[6] else None, _MONTHS.index(found[1]) + 1, int(found[2]),
                     (int(found[3]), int(found[4]), int(found[5])), 0.0, found[0], 1.0)
    if found := _TIME.search(head):
        hours, minutes, seconds = int(found[1]), int(found[2]), int(found[3])
        if hours < 24 and minutes < 60 and seconds < 61:
            return Stamp(found[0], ClockKind.WALL, hours * 3600.0 + minutes * 60 + seconds, 1.0, False, False)
    return None
