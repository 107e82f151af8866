"""A clock reading exactly as it was written, with the kind of clock that it came from.

A parser never guesses: no year that was not printed, no zone, no boot time. Turning readings into instants is the
timeline's work (`analyzer/timeline`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class ClockKind(StrEnum):
    """Which clock a reading belongs to."""

    BOOT = "boot"
    """Seconds since boot (`dmesg`); `value` is those seconds."""
    WALL = "wall"
    """Local wall clock without a zone. `value` is seconds since 1970-01-01 00:00:00 *of that local clock*, when the
    year was written; without a year it is reckoned in the leap year 1972 and `year_known` is False; without a date it
    is seconds since midnight and `date_known` is False."""
    UTC = "utc"
    """Wall clock with a zone, or an epoch reading; `value` is Unix seconds."""


class Stamp(NamedTuple):
    """One reading: `text` as written, `value` in seconds (see `ClockKind`), `precision` in seconds."""

    text: str
    clock: ClockKind
    value: float
    precision: float = 1.0
    year_known: bool = True
    date_known: bool = True
