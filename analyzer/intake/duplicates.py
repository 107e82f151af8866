"""The same record in several places of one input counts once: dmesg, kern.log and the journal of one host; a log that
was given twice. What repeats within one source is a real repetition and stays.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from analyzer.intake.patterns import Sightings
from analyzer.intake.read import Read
from parsers.contract import Trouble
from parsers.event import Event
from parsers.span import SourceSpan
from parsers.stamp import ClockKind, Stamp

SAME_INSTANT = 2.0
"""Seconds that a journal or syslog daemon may lie behind the kernel's own reading."""
STRUCTURE = frozenset({"kernel_log.boot", "kernel_log.clock_pair", "kernel_log.shutdown", "kernel_log.driver_loaded",
                       "kernel_log.unclean_start", "kernel_log.suppressed"})
"""What the kernel log says about its own log: each source keeps its own."""
LEAST_RECORDS = 5


@dataclass(slots=True)
class _Said:
    """One record as one source has it. `met` = the sources in which its twin was found."""

    source: str
    stamp: Stamp | None
    host: str | None
    met: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Ledger:
    """Records by what they say, and how far each source has been compared."""

    said: dict[tuple[str, str], list[_Said]] = field(default_factory=dict)
    reached: dict[tuple[str, str, str], int] = field(default_factory=dict)

    def repeats(self, kind: str, message: str, source: str, stamp: Stamp | None, host: str | None) -> bool:
        """Whether another source has this record, each of its records being met once a source; else it is kept."""
        mine = self.said.setdefault((kind, message), [])
        key = (kind, message, source)
        at = self.reached.get(key, 0)
        while at < len(mine):
            other = mine[at]
            if other.source != source and source not in other.met and _same(other, stamp, host):
                other.met.add(source)
                self.reached[key] = at + 1
                return True
            if other.source != source and _later(other.stamp, stamp):
                break
            at += 1
        self.reached[key] = at
        mine.append(_Said(source, stamp, host))
        return False


def _comparable(one: Stamp | None, two: Stamp | None) -> bool:
    return (one is not None and two is not None and one.clock is two.clock and one.year_known == two.year_known
            and one.date_known == two.date_known)


def _same(other: _Said, stamp: Stamp | None, host: str | None) -> bool:
    if other.host and host and other.host.split(".", 1)[0] != host.split(".", 1)[0]:
        return False
    if other.stamp is not None and stamp is not None and _comparable(other.stamp, stamp):
        slack = 1e-3 if stamp.clock is ClockKind.BOOT else SAME_INSTANT
        return abs(other.stamp.value - stamp.value) <= slack
    return True


def _later(one: Stamp | None, two: Stamp | None) -> bool:
    return one is not None and two is not None and _comparable(one, two) and one.value > two.value + SAME_INSTANT


def drop(reads: list[Read], sightings: dict[str, Sightings]) -> None:
    """Take events and sightings that another source already gave out of `reads` and `sightings`."""
    copies = _whole_copies(reads)
    dropped: set[tuple[str, int]] = set()
    ledger = _Ledger()
    if sum(1 for read in reads if read.kind in ("kernel_log", "fabric")) > 1:
        for read in reads:
            if read.kind in ("kernel_log", "fabric") and id(read) not in copies:
                _drop_kernel(read, ledger, dropped)
    for read in reads:
        original = copies.get(id(read))
        if original is None:
            continue
        read.events = []
        read.troubles.append(Trouble(read.path, "skipped", f"says the same as {original.path}: counted once"))
    sources = {read.path: copies[id(read)].path for read in reads if id(read) in copies}
    if dropped or sources:
        for seen in sightings.values():
            _drop_sightings(seen, dropped, sources)


def _drop_kernel(read: Read, ledger: _Ledger, dropped: set[tuple[str, int]]) -> None:
    from parsers.kernel_log.prefix import peel

    kept: list[Event] = []
    for event in read.events:
        if event.kind in STRUCTURE or event.kind == "fact":
            kept.append(event)
            continue
        prefix = peel(event.text)
        message = " ".join((prefix.message if prefix is not None else event.text).split())
        host = event.actor.host or (prefix.host if prefix is not None else None)
        if not ledger.repeats(event.kind, message, read.path, event.stamp, host):
            kept.append(event)
            continue
        dropped.add((event.span.source, event.span.first_line))
    if len(kept) < len(read.events):
        read.repeated = len(read.events) - len(kept)
        read.events = kept


def _whole_copies(reads: list[Read]) -> dict[int, Read]:
    """id(read) -> the read whose records it repeats in one stretch (the same log taken by two collectors)."""
    told: dict[tuple[str, str], list[tuple[Read, str]]] = {}
    copies: dict[int, Read] = {}
    for read in sorted(reads, key=lambda one: -len(one.events)):
        records = [event for event in read.events if event.kind not in ("fact", "server_log.last_record")]
        if len(records) < LEAST_RECORDS or len({e.stamp.text for e in records if e.stamp is not None}) < 2:
            continue
        middle = records[1:-1] if len(records) > LEAST_RECORDS + 2 else records
        text = "".join(f"\0{event.kind}\1{event.text}\0" for event in middle)
        whole = "".join(f"\0{event.kind}\1{event.text}\0" for event in records)
        # Only logs that hold the first of these records can hold them all.
        rivals = told.get((read.kind, middle[0].text), ())
        original = next((one for one, other in rivals if one.path != read.path and text in other), None)
        if original is not None:
            copies[id(read)] = original
            continue
        for record in {event.text for event in records}:
            told.setdefault((read.kind, record), []).append((read, whole))
    return copies


def _drop_sightings(seen: Sightings, dropped: set[tuple[str, int]], sources: dict[str, str]) -> None:
    def repeats(span: SourceSpan, text: str) -> bool:
        if (span.source, span.first_line) in dropped:
            return True
        original = sources.get(span.source)
        return original is not None and any(one.span.source == original and one.text == text for one in seen.kept)

    kept = [one for one in seen.kept if not repeats(one.span, one.text)]
    if kept and len(kept) < len(seen.kept):
        seen.count = max(seen.count - (len(seen.kept) - len(kept)), len(kept))
        seen.kept = kept
