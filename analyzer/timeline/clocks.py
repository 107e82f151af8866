"""One clock of one source: where it began again, ran over New Year or midnight, or was set back.

A source is read in the order of its lines, so a reading that falls says what happened to the clock: a boot clock that
falls belongs to another boot (facts: printk counts from 0 at each boot); a date without a year that falls by most of a
year ran over New Year; a time without a date that falls by most of a day ran over midnight; any other lasting fall is
a clock that was set back or the double hour at the end of daylight saving time. Which of the two is not said anywhere,
so the readings after it are kept as a clock of their own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from parsers.stamp import ClockKind, Stamp

DAY = 86400.0
LEAP_YEAR = 366 * DAY
"""Readings without a year are reckoned in 1972 (`parsers.stamp`), a leap year."""
BASE_YEAR = 1972
BASE = datetime(BASE_YEAR, 1, 1, tzinfo=UTC).timestamp()
REBOOT = 1.0
"""A boot clock that falls by more than this many seconds belongs to another boot (kernel-log lines of one boot are
ordered, give or take the messages of several CPUs)."""
SET_BACK = 60.0
"""A wall clock that falls by more than this and stays below was set back; less is lines of several processes."""
NEW_YEAR = 300 * DAY
MOST_STRETCHES = 256

BOOT, WALL, YEARLESS, TIME_OF_DAY, ZONED = "boot", "wall clock", "wall clock without year", "time of day", "zoned"


def kind_of(stamp: Stamp) -> str:
    """Which of a source's clocks a reading is of."""
    if stamp.clock is not ClockKind.WALL:
        return BOOT if stamp.clock is ClockKind.BOOT else ZONED
    return WALL if stamp.year_known and stamp.date_known else YEARLESS if stamp.date_known else TIME_OF_DAY


@dataclass(slots=True)
class Stretch:
    """Lines from `first_line` on. `number` counts clocks of the source (boots, settings back), `turns` New Years or
    midnights that were passed on the same clock."""

    first_line: int
    number: int = 0
    turns: int = 0


@dataclass(slots=True)
class SourceClock:
    """Readings of one kind in one source. `year` is the year of the first reading once evidence gave it."""

    source: str
    kind: str
    stretches: list[Stretch] = field(default_factory=lambda: [Stretch(0)])
    notes: list[str] = field(default_factory=list)
    year: int | None = None
    _starts: list[int] = field(default_factory=lambda: [0])
    _names: list[str] = field(default_factory=list)
    _lines: list[int] = field(default_factory=list)
    _stamps: list[Stamp] = field(default_factory=list)
    _days: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._names = [self._name(0)]

    def _name(self, number: int) -> str:
        if not number:
            return f"{self.source} ({self.kind})"
        part = f"boot {number + 1}" if self.kind == BOOT else f"after it was set back ({number})"
        return f"{self.source} ({self.kind}, {part})"

    def at(self, line: int) -> Stretch:
        """The stretch that a line lies in."""
        if len(self._starts) == 1:
            return self.stretches[0]
        return self.stretches[bisect_right(self._starts, line) - 1]

    def domain(self, line: int) -> str:
        """The name of the clock that is read at a line."""
        return self._names[self.at(line).number] if len(self._starts) > 1 else self._names[0]

    def value(self, stamp: Stamp, line: int) -> float:
        """A reading in seconds of its clock, passed New Years (as 366 days) and midnights added."""
        turns = self.at(line).turns
        return stamp.value + turns * self._turn_length if turns else stamp.value

    def read(self, stamp: Stamp, line: int) -> tuple[str, float]:
        """`domain` and `value` in one step."""
        if len(self._starts) == 1:
            return self._names[0], stamp.value
        stretch = self.stretches[bisect_right(self._starts, line) - 1]
        return self._names[stretch.number], stamp.value + stretch.turns * self._turn_length

    @property
    def _turn_length(self) -> float:
        return LEAP_YEAR if self.kind == YEARLESS else DAY if self.kind == TIME_OF_DAY else 0.0

    def calendar(self, value: float) -> float:
        """Seconds since 1970 of the local calendar, once the year is known; `value` itself before that."""
        if self.year is None:
            return value
        day = int(value // DAY)
        shift = self._days.get(day)
        if shift is None:
            turns, rest = divmod(day * DAY - BASE, LEAP_YEAR)
            shift = self._days[day] = _in_year(BASE + rest, self.year + int(turns)) - day * DAY
        return value + shift

    def in_year(self, value: float, instant: float) -> float | None:
        """`value` on the calendar of the year that brings it within two days of `instant`, or None."""
        year = self.guess_year(value, instant)
        if year is None:
            return None
        turns, rest = divmod(value - BASE, LEAP_YEAR)
        return _in_year(BASE + rest, year + int(turns))

    def guess_year(self, value: float, instant: float) -> int | None:
        """The year of the first reading under which `value` comes to lie within two days of `instant`, or None."""
        turns, rest = divmod(value - BASE, LEAP_YEAR)
        about = datetime.fromtimestamp(instant, UTC).year
        best = min((about - 1, about, about + 1), key=lambda year: abs(_in_year(BASE + rest, year) - instant))
        return best - int(turns) if abs(_in_year(BASE + rest, best) - instant) < 2 * DAY else None

    def follow(self, readings: Iterable[tuple[int, Stamp]], begins: Iterable[int] = ()) -> None:
        """Learns the readings (line, stamp) of the source; `begins` are lines at which a boot is known to begin."""
        ordered = sorted(readings, key=lambda one: one[0])
        self._lines = [line for line, _ in ordered]
        self._stamps = [stamp for _, stamp in ordered]
        starts = sorted(set(begins)) if self.kind == BOOT else []
        high: float | None = None
        last_line = 0
        for index, (line, stamp) in enumerate(ordered):
            stretch = self.stretches[-1]
            value = stamp.value + stretch.turns * self._turn_length
            if high is not None and len(self.stretches) < MOST_STRETCHES:
                marked = any(last_line < start <= line for start in starts) if starts else False
                changed = self._change(high, value, index, ordered, marked)
                if changed is not None:
                    number, turns = changed
                    self._turn(line, number, turns, high - value)
                    value += (turns - stretch.turns) * self._turn_length
                    high = None
            high = value if high is None else max(high, value)
            last_line = line

    def _change(self, high: float, value: float, index: int, ordered: list[tuple[int, Stamp]], marked: bool
                ) -> tuple[int, int] | None:
        """(number, turns) of a new stretch that begins with this reading, or None."""
        stretch, fall = self.stretches[-1], high - value
        if self.kind == BOOT:
            return (stretch.number + 1, 0) if fall > REBOOT or (marked and fall > 0) else None
        if (self.kind == YEARLESS and fall > NEW_YEAR) or (self.kind == TIME_OF_DAY and fall > DAY / 2):
            return stretch.number, stretch.turns + 1
        if fall <= SET_BACK:
            return None
        after = ordered[index + 1:index + 4]
        turned = stretch.turns * self._turn_length
        stays = len(after) >= 2 and all(one.value + turned < high - SET_BACK / 2 for _, one in after)
        return (stretch.number + 1, stretch.turns) if stays else None

    def _turn(self, line: int, number: int, turns: int, fall: float) -> None:
        before = self.stretches[-1]
        if number == before.number:
            what = "New Year" if self.kind == YEARLESS else "midnight"
            self.notes.append(f"the readings run over {what} at line {line}")
        elif self.kind == BOOT:
            self.notes.append(f"seconds since boot begin again at line {line}: another boot")
        else:
            why = "daylight saving time ended, or it was set" if abs(fall - 3600) < 600 else "it was set"
            self.notes.append(f"the clock fell back by {fall:.0f} s at line {line} ({why}): what follows is "
                              "a clock of its own")
        self.stretches.append(Stretch(line, number, turns))
        self._starts.append(line)
        while len(self._names) <= number:
            self._names.append(self._name(len(self._names)))

    def around(self, line: int) -> tuple[tuple[int, Stamp] | None, tuple[int, Stamp] | None]:
        """The readings next to a line without one: (line, reading) before and after, of the same stretch."""
        index = bisect_right(self._lines, line)
        stretch = self.at(line)
        early = (self._lines[index - 1], self._stamps[index - 1]) if index else None
        late = (self._lines[index], self._stamps[index]) if index < len(self._lines) else None
        if early is not None and self.at(early[0]).number != stretch.number:
            early = None
        if late is not None and self.at(late[0]).number != stretch.number:
            late = None
        return early, late


def _in_year(value: float, year: int) -> float:
    """A moment of 1972 moved into another year; 29 February becomes 1 March where there is none."""
    at = datetime.fromtimestamp(value, UTC)
    try:
        return at.replace(year=year).timestamp()
    except ValueError:
        return at.replace(year=year, month=3, day=1).timestamp()
