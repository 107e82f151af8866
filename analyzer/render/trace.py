"""The report and its timeline for other programs: JSON, JSON lines, Chrome trace JSON, Timesketch JSONL.

Chrome trace: "Trace Event Format" (Google, the JSON that chrome://tracing and Perfetto open), JSON object form.
Times are microseconds from the first placed event, because Perfetto keeps doubles and Unix microseconds lose digits
in some viewers; the zero is written to `otherData`. Timesketch JSONL: one object a line with `message`, `datetime`
and `timestamp_desc` (Timesketch, docs/guides/user/import-from-json-csv.md).
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from analyzer.render import phrases
from analyzer.render.curves import readings
from analyzer.render.sanitise import json_text, shorten, visible
from analyzer.render.slices import phase_slices
from analyzer.report import Moment, Report, Timeline, TimelineEvent

_NAME_LIMIT = 120
UNPLACED = "no instant known"


def render_json(document: Report | Timeline) -> str:
    """The document itself, indented; every active or invisible character in a string is a JSON escape."""
    return json_text(document.model_dump_json(indent=2)) + "\n"


def render_json_lines(timeline: Timeline) -> str:
    """One event of the timeline a line, in its order."""
    return "".join(json_text(event.model_dump_json()) + "\n" for event in timeline.events)


def _dump(value: object) -> str:
    return json_text(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")))


# --- Timesketch ---------------------------------------------------------------------------------------------------


def render_timesketch(timeline: Timeline) -> str:
    """One JSON object a line. Timesketch wants an instant for every event, so events that could not be placed at one
    or within an interval are left out; an interval stands at its earliest end and says so in `timestamp_desc`."""
    lines = []
    for event in timeline.events:
        placed, basis = _placed(event)
        if placed is None:
            continue
        source = event.source
        record = {
            "message": visible(event.text or event.kind),
            "datetime": datetime.fromtimestamp(placed, UTC).isoformat(timespec="microseconds"),
            "timestamp_desc": basis,
            "kind": visible(event.kind),
            "actor": visible(event.actor),
            "as_written": visible(event.as_written or ""),
            "earliest": event.earliest and visible(event.earliest),
            "latest": event.latest and visible(event.latest),
            "artifact": visible(source.artifact) if source else "",
            "line": source.line if source else None,
            "offset": source.offset if source else None,
        }
        lines.append(_dump(record) + "\n")
    return "".join(lines)


def _placed(event: TimelineEvent) -> tuple[float | None, str]:
    """Unix seconds at which to show the event, and what that instant is."""
    for time, basis in (
        (event.time, "Event Time"),
        (event.earliest, "Earliest Possible Time"),
        (event.latest, "Latest Possible Time"),
    ):
        found = phrases.unix_seconds(time)
        if found is not None and 0 <= found < 253_402_300_800:  # datetime ends with the year 9999
            return found, basis
    return None, ""


# --- Chrome trace -------------------------------------------------------------------------------------------------


def render_chrome(timeline: Timeline) -> str:
    """Chrome trace JSON: a process per artifact kind, a thread per actor, an instant (`i`) per event with its interval
    in `args`, a slice (`X`) per phase on threads of their own, counters (`C`) for what the records state, and global
    instants for the last progress and the onset."""
    placed = [(found, event) for event in timeline.events if (found := _placed(event)[0]) is not None]
    zero = min((found for found, _ in placed), default=0.0)
    tracks = _Tracks()
    out: list[dict[str, Any]] = []
    for found, event in placed:
        out.extend(_events_of(event, found, zero, tracks))
    out += _phases(placed, zero, tracks)
    for name, moment in (("last progress", timeline.last_progress), ("onset", timeline.onset)):
        if moment and (mark := _mark(name, moment, zero)):
            out.append(mark)
    out.sort(key=lambda item: (float(item["ts"]), -float(item.get("dur", 0))))
    other = {
        "zero": datetime.fromtimestamp(zero, UTC).isoformat() if placed else "",
        "events without an instant": str(len(timeline.events) - len(placed)),
    }
    return _dump({"traceEvents": tracks.names() + out, "displayTimeUnit": "ms", "otherData": other}) + "\n"


def _events_of(event: TimelineEvent, placed: float, zero: float, tracks: _Tracks) -> list[dict[str, Any]]:
    process, thread = tracks.of(event)
    common = {"pid": process, "tid": thread, "cat": visible(event.kind), "ts": _micros(placed, zero)}
    detail = {
        "text": visible(event.text),
        "when": visible(phrases.moment(event)),
        "source": visible(phrases.place(event.source)) if event.source else "",
    }
    if event.earliest and event.latest and event.earliest != event.latest:
        detail["between"] = visible(f"{event.earliest} and {event.latest}")
    name = visible(shorten(event.text or event.kind, _NAME_LIMIT))
    out: list[dict[str, Any]] = [{"ph": "i", "s": "t", "name": name, **common, "args": detail}]
    for quantity, value in readings(event).items():
        counter = f"{visible(event.actor)} {quantity}".strip()
        out.append({"ph": "C", "name": counter, **common, "args": {quantity.rpartition(" ")[2]: value}})
    return out


def _phases(placed: list[tuple[float, TimelineEvent]], zero: float, tracks: _Tracks) -> list[dict[str, Any]]:
    """A complete event (`X`) for each phase, on a thread of its actor's phases."""
    out = []
    for one in phase_slices(placed):
        process, thread = tracks.named("phases", one.actor)
        out.append({
            "ph": "X", "name": visible(shorten(one.name, _NAME_LIMIT)), "cat": "phase", "pid": process, "tid": thread,
            "ts": _micros(one.start, zero), "dur": _micros(one.stop, one.start),
            "args": {"begins": visible(phrases.place(one.first.source)) if one.first.source else "",
                     "text": visible(one.first.text)},
        })  # fmt: skip
    return out


def _mark(name: str, moment: Moment, zero: float) -> dict[str, Any] | None:
    found = phrases.unix_seconds(moment.time)
    if found is None or found < zero:
        return None
    text = visible(f"{name}: {moment.what}" if moment.what else name)
    return {
        "ph": "i",
        "s": "g",
        "name": text,
        "cat": "stuckwarp",
        "pid": 0,
        "tid": 0,
        "ts": _micros(found, zero),
        "args": {},
    }


def _micros(at: float, zero: float) -> float:
    return round((at - zero) * 1e6, 1)


class _Tracks:
    """Numbers processes and threads, from 1, in the order of their first event."""

    def __init__(self) -> None:
        self._processes: dict[str, int] = {}
        self._threads: dict[tuple[int, str], int] = {}

    def of(self, event: TimelineEvent) -> tuple[int, int]:
        """Process and thread number of the event's track."""
        return self.named(event.kind.partition(".")[0], event.actor or (event.source.artifact if event.source else ""))

    def named(self, group: str, actor: str) -> tuple[int, int]:
        """Process and thread number of the track of that group and actor."""
        process = self._processes.setdefault(visible(group), len(self._processes) + 1)
        return process, self._threads.setdefault((process, visible(actor)), len(self._threads) + 1)

    def names(self) -> list[dict[str, Any]]:
        """The metadata events that name the tracks."""
        out: list[dict[str, Any]] = [_named("process_name", 0, 0, "stuckwarp")]
        out += [_named("process_name", number, 0, name) for name, number in self._processes.items()]
        out += [
            _named("thread_name", process, number, name or "-") for (process, name), number in self._threads.items()
        ]
        return out


def _named(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {
        "ph": "M",
        "name": what,
        "pid": process,
        "tid": thread,
        "ts": 0,
        "args": {"name": shorten(name, _NAME_LIMIT)},
    }
