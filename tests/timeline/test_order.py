"""Order is told only where a clock tells it."""

from __future__ import annotations

from analyzer.intake.readings import reading_of
from analyzer.timeline.timeline import Timeline, before
from parsers.span import SourceSpan
from parsers.stamp import ClockKind, Stamp


def span(source: str, line: int) -> SourceSpan:
    return SourceSpan(source, line, line, line * 10, line * 10 + 9)


def test_without_an_anchor_two_clocks_are_not_compared() -> None:
    timeline = Timeline()
    timeline.align()
    one = timeline.place(span("a", 1), reading_of("INFO 11-30 20:04:27 [x.py:1] a"))
    two = timeline.place(span("b", 1), reading_of("[  130.456250] NVRM: x"))
    assert before(one, two) is None


def test_an_anchor_aligns_and_states_its_uncertainty() -> None:
    timeline = Timeline()
    outer = reading_of("2026-11-30T21:04:27.5Z x")
    inner = reading_of("INFO 11-30 20:04:27 [x.py:1] a")
    assert outer is not None and inner is not None
    timeline.pair("server.log", inner, outer, "docker stamps")
    timeline.align()
    early = timeline.place(span("server.log", 5), reading_of("INFO 11-30 20:10:00 [x.py:1] a"))
    late = timeline.place(span("events", 1), reading_of("2026-11-30T21:10:30Z x"))
    same = timeline.place(span("events", 2), reading_of("2026-11-30T21:10:01Z x"))
    assert before(early, late) is True
    assert before(late, early) is False
    assert before(early, same) is None, "closer than the uncertainty"


def test_lines_of_one_source_are_in_order() -> None:
    timeline = Timeline()
    assert before(timeline.place(span("a", 1), None), timeline.place(span("a", 2), None)) is True


def test_spread_of_the_anchors_widens_the_uncertainty() -> None:
    timeline = Timeline()
    for value, instant in ((0.0, 1000.0), (100.0, 1110.0)):  # the clock stepped by 10 s
        up, outer = Stamp("x", ClockKind.BOOT, value, 0.001), Stamp("y", ClockKind.UTC, instant, 0.001)
        timeline.pair("dmesg", up, outer, "pairs")
    timeline.align()
    assert timeline.aligned["dmesg (boot)"].uncertainty >= 5


def test_readings() -> None:
    boot = reading_of("[93297.027938] NVRM: x")
    assert boot is not None and boot.clock is ClockKind.BOOT and boot.value == 93297.027938
    no_year = reading_of("INFO 02-29 20:04:27 [x.py:1] a")
    assert no_year is not None and not no_year.year_known
    clock = reading_of("16:41:37 Skipping CuTeDSL warmup")
    assert clock is not None and not clock.date_known and clock.value == 16 * 3600 + 41 * 60 + 37
    assert reading_of("ERROR 13-45 99:99:99 x") is None or not reading_of("ERROR 13-45 99:99:99 x").date_known  # type: ignore[union-attr]
    assert reading_of("ratio 12:34:567") is None


def test_the_records_own_reading_is_the_first_one() -> None:
    found = reading_of("INFO 11-30 20:04:27 [x.py:1] model of 2024-01-02T03:04:05Z loaded")
    assert found is not None and found.text == "11-30 20:04:27"
