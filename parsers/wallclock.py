"""Clock readings that several tools print alike: ctime, ISO 8601 and nvidia-smi's csv form.

Each function takes the reading as written and gives a `Stamp`, or None when the text is not such a reading. Nothing is
guessed: a reading without a zone stays `ClockKind.WALL`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from parsers.pattern import lazy
from parsers.stamp import ClockKind, Stamp

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

CTIME = lazy(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?P<month>[A-Z][a-z]{2}) {1,2}(?P<day>\d{1,2}) "
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?P<zone> [A-Z]{2,5})? (?P<year>\d{4})"
)
ISO = lazy(
    r"(?P<year>\d{4})[-/](?P<month>\d\d)[-/](?P<day>\d\d)[T ](?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
    r"(?:[.,](?P<fraction>\d{1,9}))?(?P<zone>Z|[+-]\d\d:?\d\d)?"
)


def ctime(text: str) -> Stamp | None:
    """`Mon Nov 30 20:03:47 2026` (C's ctime, nvidia-smi, vLLM's watchdog) or `Wed Jul  1 19:34:11 UTC 2026` (date)."""
    found = CTIME.match(text.strip())
    if not found or found["month"] not in MONTHS:
        return None
    zone = (found["zone"] or "").strip()
    return _stamp(
        found[0],
        int(found["year"]),
        MONTHS.index(found["month"]) + 1,
        int(found["day"]),
        (int(found["hour"]), int(found["minute"]), int(found["second"])),
        0.0,
        1.0,
        UTC if zone in ("UTC", "GMT") else None,
    )


def iso(text: str) -> Stamp | None:
    """`2026/11/30 20:03:13.331`, `2026-11-30T20:03:13Z`, `2025-10-29 11:25:58`."""
    found = ISO.match(text.strip())
    if not found:
        return None
    fraction = found["fraction"] or ""
    zone: timezone | None = None
    if found["zone"] == "Z":
        zone = UTC
    elif found["zone"]:
        sign = -1 if found["zone"][0] == "-" else 1
        digits = found["zone"][1:].replace(":", "")
        zone = timezone(sign * timedelta(hours=min(23, int(digits[:2])), minutes=min(59, int(digits[2:]))))
    return _stamp(
        found[0],
        int(found["year"]),
        int(found["month"]),
        int(found["day"]),
        (int(found["hour"]), int(found["minute"]), int(found["second"])),
        float(f"0.{fraction}") if fraction else 0.0,
        10.0 ** -len(fraction) if fraction else 1.0,
        zone,
    )


def _stamp(
    text: str,
    year: int,
    month: int,
    day: int,
    clock: tuple[int, int, int],
    fraction: float,
    precision: float,
    zone: timezone | None,
) -> Stamp | None:
    try:
        instant = datetime(year, month, day, *clock, tzinfo=zone or UTC)
    except ValueError:
        return None
    kind = ClockKind.UTC if zone else ClockKind.WALL
    return Stamp(text, kind, instant.timestamp() + fraction, precision)
