"""Placing readings on one axis and comparing them: before, after, or not known.

Every clock is tied to others by anchors (analyzer/timeline/anchors.py). `align` walks from UTC over the anchors, the
surest first, and gives each clock an offset with an uncertainty. Clocks that anchors tie to each other but not to UTC
share an axis of their own: their order is known, their date is not. Clocks without an anchor are compared with nothing.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import inf
from typing import NamedTuple

from analyzer.timeline.clocks import BOOT, TIME_OF_DAY, WALL, YEARLESS, ZONED, SourceClock, kind_of
from parsers.span import SourceSpan
from parsers.stamp import ClockKind, Stamp

UTC_DOMAIN = "UTC"
DELAY = 0.5
"""Seconds by which a transport may stamp a line later than the program that wrote it."""
DRIFT = 1e-5
"""printk's clock is not steered by NTP: 5 s a week is normal (facts on kernel logs)."""
ZONE_STEP = 900.0
"""All zones of the world are multiples of a quarter of an hour (IANA time zone database, since 1972)."""
MOST_DOUBT = 120.0
"""Uncertainty in seconds up to which a clock's zone can be told from its neighbours."""
KEPT = 64
"""Anchors kept of one clock pair; more are thinned out evenly."""
UNDATED = "the reference of clocks whose date or zone is not known"
INTERLEAVED = 5.0
"""Seconds by which lines of several processes may stand out of order in one source."""


class Anchor(NamedTuple):
    """A known pair: `value` on clock `domain` fell into [other_value - early, other_value + late] of `other`."""

    domain: str
    value: float
    other: str
    other_value: float
    early: float
    late: float
    basis: str
    assumption: str = ""


@dataclass(slots=True)
class Place:
    """Where a record stands: on its own clock, in its source, and on a common axis as [low, high].

    `earliest` and `latest` are Unix seconds and None unless the axis is UTC; `latest` is also None where there is no
    upper bound. `clock` is the clock without its boot or setting.
    """

    source: str
    line: int
    domain: str | None = None
    value: float = 0.0
    text: str | None = None
    earliest: float | None = None
    latest: float | None = None
    axis: str | None = None
    low: float = -inf
    high: float = inf
    clock: str | None = None
    at: float | None = None
    """Unix seconds of the reading as it was printed: the middle of what the alignment allows."""

    def moved(self, seconds: float) -> Place:
        """The same record so many seconds later (or earlier), no longer tied to its line."""
        return replace(self, line=0, value=self.value + seconds, low=self.low + seconds, high=self.high + seconds,
                       earliest=None if self.earliest is None else self.earliest + seconds,
                       latest=None if self.latest is None else self.latest + seconds,
                       at=None if self.at is None else self.at + seconds)


@dataclass(slots=True)
class Alignment:
    """How one clock lies to its axis: `instant = value + offset`, within `uncertainty` seconds.

    `knots` are (value, lowest offset, highest offset) where the anchors do not agree on one offset: a step, a drift or
    a suspend lies between two of them, and a reading between them may belong to either.
    """

    offset: float
    uncertainty: float
    basis: str
    axis: str = UTC_DOMAIN
    assumptions: list[str] = field(default_factory=list)
    knots: list[tuple[float, float, float]] = field(default_factory=list)
    drift: float = 0.0

    def bounds(self, value: float) -> tuple[float, float]:
        """Lowest and highest offset at a reading."""
        if not self.knots:
            return self.offset - self.uncertainty, self.offset + self.uncertainty
        index = bisect_left(self.knots, (value,))
        near = self.knots[max(index - 1, 0):index + 1]
        slack = self.drift * max(self.knots[0][0] - value, value - self.knots[-1][0], 0.0)
        return min(one[1] for one in near) - slack, max(one[2] for one in near) + slack


@dataclass(slots=True)
class _Pairs:
    """Pairs of one source's clock with its transport's clock, thinned to `KEPT`."""

    kept: list[tuple[int, Stamp, Stamp, str]] = field(default_factory=list)
    seen: int = 0
    stride: int = 1

    def add(self, one: tuple[int, Stamp, Stamp, str]) -> None:
        if self.seen % self.stride == 0:
            self.kept.append(one)
            if len(self.kept) > KEPT:
                self.kept = self.kept[::2]
                self.stride *= 2
        self.seen += 1


@dataclass(slots=True)
class Timeline:
    """All clocks of a bundle. Anchors are added while reading; `align` then finds each clock's offset."""

    anchors: list[Anchor] = field(default_factory=list)
    domains: dict[str, None] = field(default_factory=dict)
    aligned: dict[str, Alignment] = field(default_factory=dict)
    clocks: dict[tuple[str, str], SourceClock] = field(default_factory=dict)
    zoned: dict[str, SourceClock] = field(default_factory=dict)
    """Zoned readings by source: they need no alignment, but lines without a reading lie between them."""
    _pairs: dict[tuple[str, str, str], _Pairs] = field(default_factory=dict)
    _clock_of_domain: dict[str, SourceClock] = field(default_factory=dict)
    _kinds: dict[str, list[SourceClock]] = field(default_factory=dict)

    def clock_of(self, source: str, stamp: Stamp) -> SourceClock:
        """The clock of a source that a reading is of."""
        key = (source, kind_of(stamp))
        clock = self.clocks.get(key)
        if clock is None:
            clock = self.clocks[key] = SourceClock(*key)
            self._kinds.setdefault(source, []).append(clock)
        return clock

    def clock_named(self, domain: str) -> SourceClock | None:
        """The clock behind the name of a domain."""
        return self._clock_of_domain.get(domain)

    def domain_of(self, source: str, stamp: Stamp, line: int = 0) -> str:
        """The name of the clock that a reading belongs to; `line` tells boots and settings of one source apart."""
        if stamp.clock is ClockKind.UTC:
            return UTC_DOMAIN
        clock = self.clock_of(source, stamp)
        domain = clock.domain(line)
        if domain not in self.domains:
            self.domains[domain] = None
            self._clock_of_domain[domain] = clock
        return domain

    def follow(self, readings: Iterable[tuple[SourceSpan, Stamp]], boots: Iterable[SourceSpan] = ()) -> None:
        """Learns all readings, source by source, so that boots, New Years and settings of a clock are told apart.
        `boots` are the first lines of boots. Call it once, before `align`."""
        mine: dict[tuple[str, str], list[tuple[int, Stamp]]] = {}
        for span, stamp in readings:
            mine.setdefault((span.source, kind_of(stamp)), []).append((span.first_line, stamp))
        begins: dict[str, list[int]] = {}
        for span in boots:
            begins.setdefault(span.source, []).append(span.first_line)
        for (source, kind), found in mine.items():
            if kind == ZONED:
                self.zoned[source] = SourceClock(source, kind)
                self.zoned[source].follow(found)
                continue
            clock = self.clock_of(source, found[0][1])
            clock.follow(found, begins.get(source, ()))
            for stretch in clock.stretches:
                self.domain_of(source, found[0][1], stretch.first_line)

    def pair(self, source: str, stamp: Stamp, outer: Stamp, basis: str, line: int = 0) -> None:
        """Record that two readings belong to one record: `outer` is what carried the record, or a second clock in it.
        An even choice of at most 64 a clock is kept."""
        if stamp.clock is ClockKind.UTC and outer.clock is not ClockKind.UTC:
            stamp, outer = outer, stamp
        key = (source, kind_of(stamp), UTC_DOMAIN if outer.clock is ClockKind.UTC else kind_of(outer))
        if stamp.clock is outer.clock is ClockKind.UTC or key[1] == key[2]:
            return
        self._pairs.setdefault(key, _Pairs()).add((line, stamp, outer, basis))

    def tie(self, anchor: Anchor) -> None:
        """Record an anchor between two clocks by their names."""
        if anchor.domain != anchor.other:
            self.anchors.append(anchor)

    def align(self) -> None:
        """Offsets of all clocks that anchors tie together."""
        links: dict[str, list[Anchor]] = {}
        for anchor in [*self.anchors, *self._paired()]:
            links.setdefault(anchor.domain, []).append(anchor)
            links.setdefault(anchor.other, []).append(Anchor(
                anchor.other, anchor.other_value, anchor.domain, anchor.value, anchor.late, anchor.early, anchor.basis,
                anchor.assumption))
        self.aligned = {UTC_DOMAIN: Alignment(0.0, 0.0, "zoned stamps")}
        self._spread(UTC_DOMAIN, links)
        order = (WALL, YEARLESS, TIME_OF_DAY, BOOT)
        rest = [domain for domain in links if domain not in self.aligned]
        for domain in sorted(rest, key=lambda one: (order.index(self._clock_of_domain[one].kind), one)):
            if domain not in self.aligned:
                self.aligned[domain] = Alignment(0.0, 0.0, UNDATED, domain)
                self._spread(domain, links)

    def _paired(self) -> list[Anchor]:
        found = []
        for (source, _, _), pairs in self._pairs.items():
            for line, stamp, outer, basis in pairs.kept:
                one, two = self.domain_of(source, stamp, line), self.domain_of(source, outer, line)
                if one != two:
                    found.append(Anchor(one, self._value(source, stamp, line), two, self._value(source, outer, line),
                                        stamp.precision + DELAY, outer.precision, basis))
        return found

    def _value(self, source: str, stamp: Stamp, line: int) -> float:
        return stamp.value if stamp.clock is ClockKind.UTC else self.clock_of(source, stamp).value(stamp, line)

    def _spread(self, axis: str, links: dict[str, list[Anchor]]) -> None:
        """Aligns every clock that anchors tie to `axis`, over other clocks too, the surest first."""
        queue: list[tuple[float, str]] = []
        fits: dict[str, Alignment] = {}

        def offer(known: str) -> None:
            for anchor in links.get(known, ()):
                domain = anchor.other
                if domain not in self.aligned and domain != known:
                    fit = self._fit(domain, axis, links[domain])
                    if fit is not None and (domain not in fits or fit.uncertainty < fits[domain].uncertainty):
                        fits[domain] = fit
                        heapq.heappush(queue, (fit.uncertainty, domain))

        offer(axis)
        while queue:
            _, domain = heapq.heappop(queue)
            if domain not in self.aligned:
                self.aligned[domain] = fits[domain]
                offer(domain)

    def _fit(self, domain: str, axis: str, anchors: list[Anchor]) -> Alignment | None:
        clock = self._clock_of_domain[domain]
        usable: list[tuple[Anchor, float, float]] = []
        for anchor in anchors:
            other = self.aligned.get(anchor.other)
            if other is not None and other.axis == axis:
                at = self._dated(anchor.other, anchor.other_value)
                low, high = other.bounds(at)
                usable.append((anchor, at + low - anchor.early, at + high + anchor.late))
        if not usable:
            return None
        dated = axis == UTC_DOMAIN or self._clock_of_domain[axis].kind == WALL
        if clock.kind == YEARLESS and clock.year is None and dated:
            years = [year for anchor, low, high in usable
                     if (year := clock.guess_year(anchor.value, (low + high) / 2)) is not None]
            if not years:
                return None
            clock.year = max(set(years), key=years.count)
            clock.notes.append(f"year {clock.year} taken from {usable[0][0].basis}")
        dates = [(self._dated(domain, anchor.value), low, high) for anchor, low, high in usable]
        found = sorted((value, low - value, high - value) for value, low, high in dates)
        fit = fitted(found, DRIFT if clock.kind == BOOT else 0.0)
        if clock.kind in (WALL, YEARLESS) and axis == UTC_DOMAIN:
            _snap_to_zone(fit)
        bases = list(dict.fromkeys(a.basis for a, _, _ in usable))
        count = len(usable)
        fit.basis = f"{' and '.join(bases[:3])} ({count} pair{'s' if count > 1 else ''})"
        fit.axis = axis
        fit.assumptions += [text for text in dict.fromkeys(a.assumption for a, _, _ in usable) if text][:3]
        return fit

    def _dated(self, domain: str, value: float) -> float:
        clock = self._clock_of_domain.get(domain)
        return value if clock is None or clock.year is None else clock.calendar(value)

    def place(self, span: SourceSpan, stamp: Stamp | None, outer: Stamp | None = None) -> Place:
        """Where a record stands. A zoned reading is an instant; another needs its clock to be aligned; a record
        without a reading lies between its neighbours in the source."""
        best = outer if outer is not None and outer.clock is ClockKind.UTC else stamp
        source, line = span.source, span.first_line
        if best is None:
            return self._between(source, line)
        if best.clock is ClockKind.UTC:
            value, top = best.value, best.value + best.precision
            text = (stamp or best).text
            return Place(source, line, UTC_DOMAIN, value, text, value, top, UTC_DOMAIN, value, top, UTC_DOMAIN, value)
        clock = self.clock_of(source, best)
        domain, value = clock.read(best, line)
        alignment = self.aligned.get(domain)
        text = (stamp or best).text
        if alignment is None:
            return Place(source, line, domain, value, text, clock=clock.kind)
        dated = clock.calendar(value)
        low, high = alignment.bounds(dated)
        at = dated + (low + high) / 2
        low, high = dated + low, dated + high + best.precision
        if alignment.axis == UTC_DOMAIN:
            return Place(source, line, domain, value, text, low, high, UTC_DOMAIN, low, high, clock.kind, at)
        return Place(source, line, domain, value, text, None, None, alignment.axis, low, high, clock.kind)

    def neighbours(self, source: str, line: int) -> tuple[tuple[int, Stamp] | None, tuple[int, Stamp] | None]:
        """The readings (line, stamp) above and below a line, in a source of one clock; (None, None) in another."""
        clocks = self._kinds.get(source) or ([self.zoned[source]] if source in self.zoned else [])
        return clocks[0].around(line) if len(clocks) == 1 and line else (None, None)

    def _between(self, source: str, line: int) -> Place:
        """A line without a reading in a source of one clock: from the reading above it to the one below it."""
        early, late = self.neighbours(source, line)
        spot = Place(source, line)
        if early is not None:
            above = self.place(SourceSpan(source, early[0], early[0], 0, 0), early[1])
            spot.axis, spot.low, spot.earliest = above.axis, above.low, above.earliest
        if late is not None:
            below = self.place(SourceSpan(source, late[0], late[0], 0, 0), late[1])
            spot.axis, spot.high, spot.latest = below.axis, below.high, below.latest
        if spot.earliest is not None and spot.latest is not None:
            spot.at = spot.earliest
        return spot


def _snap_to_zone(fit: Alignment) -> None:
    """A wall clock differs from UTC by a whole number of quarter hours; where the anchors allow one, it is that.

    The bounds stay where they were or widen: a clock may still be wrong by what the anchors leave open.
    """
    zone = round(fit.offset / ZONE_STEP) * ZONE_STEP
    apart = abs(zone - fit.offset)
    if not fit.knots and apart <= fit.uncertainty < MOST_DOUBT and abs(zone) <= 15 * 3600:
        fit.offset, fit.uncertainty = zone, fit.uncertainty + apart
        sign, minutes = ("-" if zone > 0 else "+"), int(abs(zone)) // 60
        name = f"UTC{sign}{minutes // 60:02d}:{minutes % 60:02d}"
        fit.assumptions.append(f"zone {name}, the only one that the pairs allow")


def fitted(found: list[tuple[float, float, float]], drift: float) -> Alignment:
    """The offset that (value, lowest offset, highest offset) of all anchors allow.

    Where they agree it is what all of them allow. Where four of five agree, the others are lines that came late and
    are left out. Else the clock stepped or drifted: the anchors stay as knots, and the offset spans them all.
    """
    low, high = max(one[1] for one in found), min(one[2] for one in found)
    if low > high and len(found) >= 5:
        edges = sorted([(one[1], -1) for one in found] + [(one[2], 1) for one in found])
        depth, deepest, spot = 0, 0, 0.0
        for at, edge in edges:
            depth -= edge
            if depth > deepest:
                deepest, spot = depth, at
        if deepest >= 0.8 * len(found):
            agreeing = [one for one in found if one[1] <= spot <= one[2]]
            fit = fitted(agreeing, drift)
            late = len(found) - len(agreeing)
            fit.assumptions.append(f"{late} of {len(found)} pairs do not agree and are taken for late lines")
            return fit
    if low <= high:
        half = max((high - low) / 2, 0.001)
        middle = (low + high) / 2
        ends = (found[0][0], found[-1][0]) if drift else ()
        knots = [(value, middle - half, middle + half) for value in ends]
        return Alignment(middle, half, "", knots=knots, drift=drift)
    bottom, top = min(one[1] for one in found), max(one[2] for one in found)
    note = f"the anchors differ by up to {low - high:.1f} s: the clock was set, drifts, or stood still in a suspend"
    return Alignment((bottom + top) / 2, (top - bottom) / 2, "", assumptions=[note], knots=found, drift=drift)


def before(one: Place, two: Place) -> bool | None:
    """Whether `one` came before `two`: True, False, or None when the clocks do not tell.

    Within one source the lines are in order, unless its own clock says that they are far out of it; across sources
    only intervals that do not overlap tell.
    """
    if one.source == two.source and one.line and two.line and one.line != two.line and (
            one.clock == two.clock or one.clock is None or two.clock is None):
        if one.domain is not None and one.domain == two.domain and abs(one.value - two.value) > INTERLEAVED:
            return one.value < two.value
        return one.line < two.line
    if one.domain is not None and one.domain == two.domain and one.value != two.value and one.domain != UTC_DOMAIN:
        return one.value < two.value
    if one.axis is not None and one.axis == two.axis:
        if one.high < two.low:
            return True
        if two.high < one.low:
            return False
    return None


def before_by_clock(one: Place, two: Place) -> bool | None:
    """As `before`, by readings alone: the order of lines tells nothing here."""
    if one.domain is not None and one.domain == two.domain:
        return None if one.value == two.value else one.value < two.value
    if one.axis is not None and one.axis == two.axis:
        if one.high < two.low:
            return True
        if two.high < one.low:
            return False
    return None


def written(instant: float | None) -> str | None:
    """An instant as RFC 3339 in UTC, or None."""
    if instant is None or not -62135596800 <= instant <= 253402300799:
        return None
    at = datetime.fromtimestamp(instant, UTC)
    return at.isoformat(timespec="milliseconds" if at.microsecond else "seconds").replace("+00:00", "Z")
