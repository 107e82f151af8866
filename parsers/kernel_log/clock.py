"""Clock readings of kernel logs: wall clocks in many languages, ISO, epoch and uptime."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from parsers.pattern import lazy
from parsers.stamp import ClockKind, Stamp

# Month abbreviations as glibc's `%b` prints them. English first; others only where a prefix of three letters is not
# already taken by the same month.
_MONTHS: dict[str, int] = {}
for _number, _names in enumerate(
    (
        "jan sty янв січ ene gen led oca tammi ian янв. јан",
        "feb lut fév fev фев лют úno şub helmi febr",
        "mar mär mrt мар бер bře maalis márc maa mars",
        "apr kwi avr abr апр кві dub nis huhti ápr",
        "may maj mai mag mei май мая тра kvě touko máj mayo",
        "jun cze juin giu июн чер čen haz kesä jún iun",
        "jul lip juil lug июл лип čec tem heinä júl iul",
        "aug sie aoû ago авг сер srp ağu elo",
        "sep wrz set сен вер zář eyl syys szept sept",
        "oct okt paź ott out окт жов říj eki loka",
        "nov lis ноя лис kas marras",
        "dec gru dez dic déc дек гру pro ara joulu",
    ),
    start=1,
):
    for _name in _names.split():
        _MONTHS.setdefault(_name, _number)

_CJK_MONTH = lazy(r"^(\d{1,2})(?:月|월)$")


def month_number(name: str) -> int | None:
    """1 to 12 for a month name as a locale abbreviates it (`Dec`, `kwi`, `1月`, `déc.`); None when unknown."""
    name = name.lower().rstrip(".")
    if cjk := _CJK_MONTH.match(name):
        number = int(cjk[1])
        return number if 1 <= number <= 12 else None
    return _MONTHS.get(name) or _MONTHS.get(name[:4]) or _MONTHS.get(name[:3])


def _fraction(digits: str | None) -> tuple[float, float]:
    if not digits:
        return 0.0, 1.0
    return int(digits) / 10 ** len(digits), 10.0 ** -len(digits)


def boot(text: str) -> Stamp:
    """Seconds since boot, as in `[93297.027938]`."""
    text = text.strip()
    places = len(text.partition(".")[2])
    return Stamp(text, ClockKind.BOOT, float(text), 10.0**-places if places else 1.0)


@lru_cache(maxsize=4096)
def wall(
    text: str, month: str, day: str, clock: str, fraction: str | None = None, year: str | None = None
) -> Stamp | None:
    """A local reading `Mon dd HH:MM[:SS]`, with or without a year; without a date when the month's language is not
    known; None when it is no time at all."""
    parts = clock.split(":")
    hour, minute = int(parts[0]), int(parts[1])
    second = int(parts[2]) if len(parts) > 2 else 0
    if hour > 24 or minute > 59 or second > 60:
        return None
    extra, precision = _fraction(fraction)
    if len(parts) < 3:
        precision = 60.0
    seconds = hour * 3600 + minute * 60 + second + extra
    number = month_number(month)
    if number is None:
        return Stamp(text, ClockKind.WALL, seconds, precision, year_known=False, date_known=False)
    try:
        midnight = datetime(int(year) if year else 1972, number, int(day), tzinfo=UTC)
    except ValueError:
        return None
    return Stamp(text, ClockKind.WALL, midnight.timestamp() + seconds, precision, year_known=year is not None)


_ISO = lazy(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\s?(Z|UTC|GMT|[+-]\d\d:?\d\d)?(?![\d:])"
)


def iso(text: str) -> Stamp | None:
    """An ISO reading at the start of `text`: UTC with a zone, a dated wall clock without one."""
    found = _ISO.match(text)
    if not found:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    extra, precision = _fraction(fraction)
    try:
        # A leap second and 24:00:00 are legal readings that datetime refuses.
        moment = datetime(int(year), int(month), int(day), tzinfo=UTC)
    except ValueError:
        return None
    seconds = moment.timestamp() + int(hour) * 3600 + int(minute) * 60 + int(second) + extra
    if int(hour) > 24 or int(minute) > 59 or int(second) > 60:
        return None
    written = found[0].strip()
    if zone is None:
        return Stamp(written, ClockKind.WALL, seconds, precision)
    if zone[0] in "+-":
        offset = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
        seconds += offset if zone[0] == "-" else -offset
    return Stamp(written, ClockKind.UTC, seconds, precision)


def epoch(text: str, seconds: float, precision: float = 1e-6) -> Stamp:
    """A Unix reading."""
    return Stamp(text, ClockKind.UTC, seconds, precision)
