"""Placing readings on one axis and comparing them: before, after, or not known."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime

from parsers.span import SourceSpan
from parsers.stamp import ClockKind, Stamp

UTC_DOMAIN = "UTC"


@dataclass(slots=True, frozen=True)
class Anchor:
    """A known pair: `value` on clock `domain` is the instant `other_value` on clock `other`, within `uncertainty` s."""

    domain: str
    value: float
    other: str
    other_value: float
    uncertainty: float
    basis: str


@dataclass(slots=True, frozen=True)
class Place:
    """Where a record stands: on its own clock, in its source, and on the common axis when that is known (Unix s)."""

    source: str
    line: int
    domain: str | None = None
    value: float = 0.0
    text: str | None = None
    earliest: float | None = None
    latest: float | None = None


@dataclass(slots=True)
class Alignment:
    """How one clock lies to UTC: `instant = value + offset`, within `uncertainty` seconds."""

    offset: float
    uncertainty: float
    basis: str


@dataclass(slots=True)
class Timeline:
    """All clocks of a bundle. Anchors are added while reading; `align` then finds each clock's offset to UTC."""

    anchors: list[Anchor] = field(default_factory=list)
    domains: dict[str, None] = field(default_factory=dict)
    aligned: dict[str, Alignment] = field(default_factory=dict)

    def domain_of(self, source: str, stamp: Stamp) -> str:
        """The clock that a reading belongs to."""
        if stamp.clock is ClockKind.UTC:
            return UTC_DOMAIN
        kind = stamp.clock.value if stamp.clock is ClockKind.BOOT else (
            "wall clock" if stamp.year_known else "wall clock without year" if stamp.date_known else "time of day")
        domain = f"{source} ({kind})"
        self.domains.setdefault(domain)
        return domain

    def pair(self, source: str, stamp: Stamp, outer: Stamp, basis: str) -> None:
        """Record that two readings belong to one record. At most 64 anchors a clock are kept: ends and a few between."""
        one, two = self.domain_of(source, stamp), self.domain_of(source, outer)
        if one == two:
            return
        mine = [a for a in self.anchors if a.domain == one and a.other == two]
        if len(mine) >= 64:
            self.anchors.remove(mine[len(mine) // 2])
        self.anchors.append(Anchor(one, stamp.value, two, outer.value, stamp.precision + outer.precision, basis))

    def align(self) -> None:
        """Offsets of all clocks that anchors tie to UTC, nearest first. The spread of a clock's anchors widens its
        uncertainty, so a stepped or drifting clock never claims more than it can hold."""
        self.aligned = {UTC_DOMAIN: Alignment(0.0, 0.0, "zoned stamps")}
        queue = deque([UTC_DOMAIN])
        while queue:
            known = queue.popleft()
            base = self.aligned[known]
            offsets: dict[str, list[tuple[float, float, str]]] = {}
            for anchor in self.anchors:
                if anchor.other == known:
                    offsets.setdefault(anchor.domain, []).append(
                        (anchor.other_value - anchor.value, anchor.uncertainty, anchor.basis))
                elif anchor.domain == known:
                    offsets.setdefault(anchor.other, []).append(
                        (anchor.value - anchor.other_value, anchor.uncertainty, anchor.basis))
            for domain, found in offsets.items():
                if domain in self.aligned:
                    continue
                values = sorted(one for one, _, _ in found)
                middle = values[len(values) // 2]
                spread = (values[-1] - values[0]) / 2
                self.aligned[domain] = Alignment(
                    middle + base.offset, base.uncertainty + spread + max(u for _, u, _ in found),
                    f"{found[0][2]} ({len(found)} pairs)")
                queue.append(domain)

    def place(self, span: SourceSpan, stamp: Stamp | None, outer: Stamp | None = None) -> Place:
        """Where a record stands. A zoned reading is an instant; another needs its clock to be aligned."""
        best = outer if outer is not None and outer.clock is ClockKind.UTC else stamp
        if best is None:
            return Place(span.source, span.first_line)
        domain = self.domain_of(span.source, best)
        shown = (stamp or best).text
        alignment = self.aligned.get(domain) or (Alignment(0.0, 0.0, "") if domain == UTC_DOMAIN else None)
        if alignment is None:
            return Place(span.source, span.first_line, domain, best.value, shown)
        middle, half = best.value + alignment.offset, alignment.uncertainty
        return Place(span.source, span.first_line, domain, best.value, shown, middle - half, middle + half + best.precision)


def before(one: Place, two: Place) -> bool | None:
    """Whether `one` came before `two`: True, False, or None when the clocks do not tell."""
    if one.source == two.source and one.line and two.line and one.line != two.line and (
            one.domain == two.domain or one.domain is None or two.domain is None):
        return one.line < two.line
    if one.domain is not None and one.domain == two.domain and one.value != two.value:
        return one.value < two.value
    if one.earliest is not None and two.earliest is not None and one.latest is not None and two.latest is not None:
        if one.latest < two.earliest:
            return True
        if two.latest < one.earliest:
            return False
    return None


def written(instant: float | None) -> str | None:
    """An instant as RFC 3339 in UTC, or None."""
    if instant is None or not -62135596800 <= instant <= 253402300799:
        return None
    at = datetime.fromtimestamp(instant, UTC)
    return at.isoformat(timespec="milliseconds" if at.microsecond else "seconds").replace("+00:00", "Z")
