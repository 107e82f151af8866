"""Clocks that are off by a known amount: recovered within a second, never a wrong order, refused without an anchor."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from analyzer.timeline.clocks import YEARLESS, SourceClock
from analyzer.timeline.timeline import Anchor, Timeline, before, fitted
from parsers.span import SourceSpan
from parsers.stamp import ClockKind, Stamp

START = datetime(2026, 11, 30, 20, 0, tzinfo=UTC).timestamp()
SKEWS = (-7200.0, -0.4, 0.0, 3.7, 86.0, 3600.0, 20700.0)


def span(source: str, line: int) -> SourceSpan:
    return SourceSpan(source, line, line, 0, 0)


def utc(value: float, precision: float = 1e-3) -> Stamp:
    return Stamp(f"{value:.3f}", ClockKind.UTC, value - value % precision, precision)


def boot(value: float) -> Stamp:
    return Stamp(f"{value:.6f}", ClockKind.BOOT, value, 1e-6)


def yearless(value: float) -> Stamp:
    at = datetime.fromtimestamp(value, UTC)
    reckoned = at.replace(year=1972, microsecond=0).timestamp()
    return Stamp(f"{at:%m-%d %H:%M:%S}", ClockKind.WALL, reckoned, 1.0, year_known=False)


@pytest.mark.parametrize("skew", SKEWS)
@pytest.mark.parametrize("seed", range(4))
def test_two_anchors_recover_the_offset_within_a_second(skew: float, seed: int) -> None:
    rng = random.Random(seed)
    timeline = Timeline()
    for line in (1, 900):
        true = START + line * 10 + rng.random()
        timeline.pair("server.log", yearless(true + skew), utc(true + rng.uniform(0, 0.3)), "outer stamps", line)
    timeline.align()
    alignment = timeline.aligned["server.log (wall clock without year)"]
    assert abs(alignment.offset + skew) <= 1.0 + alignment.uncertainty and alignment.uncertainty <= 2.0
    assert abs(alignment.offset + skew) <= alignment.uncertainty


@pytest.mark.parametrize("seed", range(20))
def test_no_wrong_order_outside_the_stated_uncertainty(seed: int) -> None:
    """Three clocks with skew, drift and delayed transports; every answer that is given is right."""
    rng = random.Random(1000 + seed)
    skew, booted, drift = rng.choice(SKEWS), START - rng.uniform(100, 9e5), rng.uniform(-4e-6, 4e-6)
    timeline = Timeline()
    true_times = sorted(START + rng.uniform(0, 3000) for _ in range(60))
    for line, true in enumerate(true_times, 1):
        if line % 7 == 1:
            timeline.pair("server.log", yearless(true + skew), utc(true + rng.uniform(0, 0.4)), "outer stamps", line)
        if line in (3, 55):
            uptime = (true - booted) * (1 + drift)
            timeline.tie(Anchor(timeline.domain_of("dmesg", boot(uptime)), uptime, "UTC", true, 0.01, 0.01, "journal"))
    timeline.align()
    placed = []
    for line, true in enumerate(true_times, 1):
        placed.append((true, timeline.place(span("server.log", line), yearless(true + skew))))
        placed.append((true, timeline.place(span("dmesg", line), boot((true - booted) * (1 + drift)))))
        placed.append((true, timeline.place(span(f"metrics_{line}", 1), utc(true))))
    wrong = [
        (one, two)
        for one in placed
        for two in placed
        if one[0] < two[0] and before(one[1], two[1]) is False and one[1].source != two[1].source
    ]
    answers = sum(before(one[1], two[1]) is not None for one in placed for two in placed[:30])
    assert not wrong
    assert answers > 1000, "an order that can be told is told"


def test_without_an_anchor_no_order() -> None:
    timeline = Timeline()
    timeline.align()
    one, two = timeline.place(span("a", 1), yearless(START)), timeline.place(span("b", 1), yearless(START + 1e6))
    assert before(one, two) is None and one.earliest is None


def test_clocks_tied_only_to_each_other_are_ordered_without_a_date() -> None:
    timeline = Timeline()
    wall = timeline.domain_of("server.log", yearless(START))
    up = timeline.domain_of("dmesg", boot(100.0))
    timeline.tie(Anchor(up, 100.0, wall, yearless(START).value, 1.0, 1.0, "pid 5 in both"))
    timeline.align()
    xid = timeline.place(span("dmesg", 1), boot(130.0))
    assert before(xid, timeline.place(span("server.log", 1), yearless(START + 60))) is True
    assert before(xid, timeline.place(span("server.log", 1), yearless(START + 30))) is None
    assert xid.earliest is None, "no date is made up"


def test_suspend_between_two_anchors_widens_what_lies_between_only() -> None:
    fit = fitted([(0.0, 1000.0, 1000.1), (100.0, 1000.0, 1000.1), (200.0, 4600.0, 4600.1)], 0.0)
    assert fit.bounds(50.0) == (1000.0, 1000.1)
    assert fit.bounds(150.0) == (1000.0, 4600.1)
    assert any("suspend" in text for text in fit.assumptions)


def test_late_lines_do_not_spoil_the_offset() -> None:
    found = [(float(n), 10.0, 11.0) for n in range(20)] + [(50.0, 14.0, 15.0)]
    fit = fitted(found, 0.0)
    assert 10 <= fit.offset <= 11 and any("late" in text for text in fit.assumptions)


def test_new_year_inside_a_source() -> None:
    eve = datetime(2026, 12, 31, 23, 59, 58, tzinfo=UTC).timestamp()
    readings = [(line, yearless(eve + line)) for line in range(1, 6)]
    timeline = Timeline()
    timeline.follow((span("server.log", line), stamp) for line, stamp in readings)
    timeline.pair("server.log", readings[0][1], utc(eve + 1.2), "outer stamps", 1)
    timeline.align()
    places = [timeline.place(span("server.log", line), stamp) for line, stamp in readings]
    assert all(before(one, two) is True for one, two in pairwise(places))
    assert places[-1].at is not None and datetime.fromtimestamp(places[-1].at, UTC).year == 2027
    assert any("New Year" in note for note in timeline.clocks["server.log", YEARLESS].notes)


def test_february_29_is_placed_in_the_year_of_the_evidence() -> None:
    march = datetime(2026, 3, 1, 0, 0, 5, tzinfo=UTC).timestamp()
    timeline = Timeline()
    timeline.pair("server.log", yearless(march - 86400), utc(march - 86400), "outer stamps", 1)
    timeline.align()
    place = timeline.place(span("server.log", 9), yearless(march))
    assert place.at is not None and abs(place.at - march) < 1.1


def test_the_double_hour_is_two_clocks() -> None:
    clock = SourceClock("server.log", YEARLESS)
    base = datetime(2026, 10, 25, 2, 50, tzinfo=UTC).timestamp()
    first = [(line, yearless(base + 60 * line)) for line in range(10)]
    second = [(line + 10, yearless(base + 60 * (line + 10) - 3600)) for line in range(10)]
    clock.follow(first + second)
    assert clock.domain(5) != clock.domain(15)
    assert any("daylight saving" in note for note in clock.notes)


def test_lines_of_several_processes_out_of_order_are_one_clock() -> None:
    clock = SourceClock("server.log", YEARLESS)
    clock.follow([(line, yearless(START + line - (3 if line % 4 == 0 else 0))) for line in range(40)])
    assert len(clock.stretches) == 1


def test_each_boot_has_its_own_clock() -> None:
    timeline = Timeline()
    readings = [(1, 900.0), (2, 1000.0), (3, 0.5), (4, 30.0)]
    timeline.follow((span("kern.log", line), boot(value)) for line, value in readings)
    one, two = (timeline.domain_of("kern.log", boot(value), line) for line, value in (readings[1], readings[3]))
    assert one != two and "boot 2" in two
    timeline.tie(Anchor(two, 0.0, "UTC", START, 0.1, 0.1, "journal"))
    timeline.align()
    assert timeline.place(span("kern.log", 2), boot(1000.0)).earliest is None, "nothing ties the first boot"
    late = timeline.place(span("kern.log", 4), boot(30.0))
    assert late.at is not None and abs(late.at - START - 30) < 0.2


def test_a_line_without_a_reading_lies_between_its_neighbours() -> None:
    timeline = Timeline()
    timeline.follow([(span("server.log", 1), yearless(START)), (span("server.log", 9), yearless(START + 5))])
    timeline.pair("server.log", yearless(START), utc(START + 0.1), "outer stamps", 1)
    timeline.align()
    place = timeline.place(span("server.log", 4), None)
    assert place.earliest is not None and place.latest is not None
    assert START - 2 < place.earliest <= START and START + 5 <= place.latest < START + 8
