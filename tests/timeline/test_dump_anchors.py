"""The stamp inside a GPU core dump places the driver's lines, which carry a time of day only."""

from __future__ import annotations

from analyzer.timeline.anchors import find
from analyzer.timeline.timeline import Timeline
from parsers.event import Actor, Event
from parsers.span import SourceSpan
from parsers.stamp import ClockKind, Stamp


def line(source: str, number: int, message: str, seconds: float) -> Event:
    stamp = Stamp(f"{seconds}", ClockKind.WALL, seconds, 1e-6, year_known=False, date_known=False)
    span = SourceSpan(source, number, number, number * 90, number * 90 + 89)
    return Event("cuda_gdb.coredump", span, message, stamp, fields={"message": message})


def dump(source: str, second: float) -> Event:
    span = SourceSpan(source, 0, 0, 0, 64)
    return Event("cuda_core.dump", span, "dump", Stamp("x", ClockKind.UTC, second))


def earliest(events: list[Event], of: Event) -> float | None:
    timeline = Timeline()
    for event in events:
        timeline.place(event.span, event.stamp)
    by_kind: dict[str, list[Event]] = {}
    for event in events:
        by_kind.setdefault(event.kind, []).append(event)
    find(timeline, by_kind)
    timeline.align()
    return timeline.place(of.span, of.stamp).earliest


DAY = 1796077728.0
START = 80928.5


def test_the_only_pair_is_tied() -> None:
    begun = line("stderr.txt", 2, "Starting GPU coredump generation", START)
    later = line("stderr.txt", 9, "All done (took 00s)", START + 4)
    placed = earliest([begun, later, dump("core.nvcudmp", DAY)], later)
    assert placed is not None and DAY + 4 <= placed <= DAY + 5


def test_several_are_told_apart_by_the_file_they_name() -> None:
    rows = []
    for number, name in enumerate(("core.1", "core.2")):
        at = START + 60 * number
        rows.append(line(f"stderr.{number}", 1, "Starting GPU coredump generation", at))
        rows.append(line(f"stderr.{number}", 2, f"Writing ELF file to /tmp/w/{name}", at + 0.1))
    dumps = [dump("b/core.2.xz", DAY + 60), dump("b/core.1", DAY)]
    placed = earliest([*rows, *dumps], rows[2])
    assert placed is not None and DAY + 60 <= placed <= DAY + 61


def test_what_could_be_meant_twice_is_not_tied() -> None:
    one, two = (line(f"stderr.{n}", 1, "Starting GPU coredump generation", START + n) for n in range(2))
    assert earliest([one, two, dump("core", DAY)], one) is None


def fault(gpu: str) -> Event:
    span = SourceSpan("core", 0, 0, 4096, 4096)
    return Event("cuda_core.exception", span, "x", Stamp("x", ClockKind.UTC, DAY), Actor(gpu=gpu), {"code": 14})


def xid(number: int, seconds: float, gpu: str, code: int = 13) -> Event:
    span = SourceSpan("dmesg", number, number, number * 90, number * 90 + 89)
    stamp = Stamp(f"{seconds}", ClockKind.BOOT, seconds, 1e-6)
    return Event("kernel_log.xid", span, "Xid", stamp, Actor(gpu=gpu), {"code": code})


def test_an_xid_of_the_same_slot_is_placed_by_the_dump() -> None:
    rows = [xid(1, 132.1, "0000:00:06"), xid(2, 132.4, "0000:00:06")]
    placed = earliest([*rows, fault("0000:00:06")], rows[0])
    assert placed is not None and abs(placed - DAY) <= 11


def test_another_slot_another_code_or_two_bursts_are_not() -> None:
    one = xid(1, 132.1, "0000:00:06")
    assert earliest([one, fault("0000:00:07")], one) is None
    assert earliest([one, xid(2, 900.0, "0000:00:06"), fault("0000:00:06")], one) is None
    other = xid(1, 132.1, "0000:00:06", code=79)
    assert earliest([other, fault("0000:00:06")], other) is None
