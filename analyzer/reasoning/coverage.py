"""What each source can and cannot say about the window: where and until when was it looked at?

"No Xid" is evidence only where a kernel log that would have survived covers the stop. A ring buffer that was saved
afterwards does; a log that begins later, was rotated away, ends before, or belongs to a host that died without
writing its last lines does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from analyzer.intake.read import Read
from analyzer.intake.readings import reading_of
from analyzer.reasoning.bundle import Bundle
from analyzer.reasoning.last_progress import last_progress
from analyzer.timeline.clocks import BOOT, kind_of
from analyzer.timeline.timeline import Place, before
from parsers.contract import UNREAD, Line
from parsers.span import SourceSpan
from parsers.stamp import Stamp

Covers = Literal["yes", "no", "unknown"]


@dataclass(slots=True)
class Window:
    """One source of one kind with its first and last reading."""

    read: Read
    first: Place | None
    last: Place | None
    boot_clock: bool

    @property
    def cut(self) -> str:
        """How the source is cut, in words; empty when it was read to its end."""
        tags = [
            trouble.text
            for trouble in self.read.troubles
            if trouble.tag in UNREAD
        ]
        return tags[0] if tags else ""


def windows(bundle: Bundle) -> list[Window]:
    """One window for each source that holds anything, in the order of reading."""
    return [_window(read, bundle) for read in bundle.reads if read.lines or read.events]


def _window(read: Read, bundle: Bundle) -> Window:
    stamped = [event for event in read.events if event.stamp is not None]
    places = [_place(event.span, event.stamp, bundle) for event in (stamped[:1] + stamped[-1:])]
    for event in stamped[:1]:
        if event.kind == "heartbeat.beat":  # the event stands at the last beat of its run
            places.append(places[0].moved(-float(event.fields.get("seconds") or 0.0)))
    edges = [edge for line in (read.first_line, read.last_line) if (edge := _edge(read, line, bundle)) is not None]
    first = last = None
    for place in [*places, *edges]:
        first = place if first is None or before(place, first) is True else first
        last = place if last is None or before(last, place) is True else last
    boot = bool(stamped) and stamped[0].stamp is not None and kind_of(stamped[0].stamp) == BOOT
    return Window(read, first, last, boot)


def _edge(read: Read, line: Line | None, bundle: Bundle) -> Place | None:
    stamp = (line.outer or reading_of(line.text)) if line is not None else None
    return _place(line.span(read.path), stamp, bundle) if line is not None and stamp is not None else None


def _place(span: SourceSpan, stamp: Stamp | None, bundle: Bundle) -> Place:
    return bundle.timeline.place(span, stamp)


def covers(window: Window, moment: Place | None, bundle: Bundle) -> tuple[Covers, str]:
    """Whether the source could have shown what happened at `moment`, and why not."""
    if window.cut and window.read.kind != "cuda_core":
        return "no", f"it was not read to its end: {window.cut}"
    stopped = bundle.observed("host_stopped")
    if window.read.kind == "kernel_log" and stopped:
        return "no", "the host stopped without an orderly end: its last lines may never have reached the disk"
    if moment is None or window.first is None or window.last is None:
        return "unknown", ""
    if before(moment.moved(0.0), window.first.moved(0.0)) is True:
        return "no", f"it begins after the stop, at {window.first.text}"
    if before(window.last.moved(0.0), moment.moved(0.0)) is True:
        if window.boot_clock:
            return "yes", "a ring buffer, silent to its end"
        return "no", f"it ends before the stop, at {window.last.text}"
    known = before(window.first.moved(0.0), moment.moved(0.0))
    return ("yes", "") if known is True else ("unknown", "its clock is not aligned with the others")


def stop_of(bundle: Bundle) -> Place | None:
    """The earliest instant at which the stop can have been, as far as it is known before rules are matched: the last
    progress of the server."""
    event = last_progress(bundle)
    return bundle.timeline.place(event.span, event.stamp) if event is not None else None


def looked(bundle: Bundle, kind: str) -> tuple[bool, str]:
    """Whether the absence of something of this artifact kind counts, and if not, why.

    For a kernel log it counts where one covers the stop, or where nothing says that it does not.
    """
    if kind != "kernel_log":
        return bundle.looked(kind), ""
    moment, why = stop_of(bundle), ""
    for window in windows(bundle):
        if window.read.kind == kind:
            answer, reason = covers(window, moment, bundle)
            if answer != "no":
                return True, ""
            why = f"{window.read.path}: {reason}"
    return False, why
