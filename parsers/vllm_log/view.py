"""The `server_log` view of `inspect`: counts, versions, settings, phases, throughput, bars, last record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from parsers.contract import Line
from parsers.event import Event
from parsers.vllm_log import facts
from parsers.vllm_log.reading import Dialect, LogReading
from parsers.vllm_log.record import Record, plain, split
from parsers.vllm_log.stats import Reading


@dataclass(slots=True)
class Counts:
    """Records per level and per process, one count a physical line."""

    writers: frozenset[str]
    levels: dict[str, int] = field(default_factory=dict)
    processes: dict[str, dict[str, Any]] = field(default_factory=dict)
    waits: int = 0
    last: tuple[Line, Record] | None = None
    settings: dict[str, str] = field(default_factory=dict)

    def count(self, line: Line, record: Record) -> None:
        """Census of `LogReading`: called for every record of every line."""
        if "shared memory broadcast block" in record.message and record.message.startswith("No available"):
            self.waits += 1
        if any(mark in record.message for mark in facts.CONFIG_MARKS):
            for key, value in facts.settings(record.message)[0].items():
                self.settings.setdefault(key, value)
        if record.writer not in self.writers:
            return
        self.levels[record.level] = self.levels.get(record.level, 0) + 1
        process = self.processes.setdefault(record.process, {"pids": [], "records": 0})
        process["records"] += 1
        if record.pid is not None and record.pid not in process["pids"]:
            process["pids"].append(record.pid)
        self.last = (line, record)


def view(lines: Iterable[Line], source: str, dialect: Dialect) -> dict[str, Any]:
    """The view as docs/report-format.md gives it, plus `exceptions` (type, message, module, line)."""
    counts = Counts(dialect.writers)
    reading = LogReading(source, dialect, counts)
    events: list[Event] = []
    physical = 0
    progress: tuple[Line, Reading] | None = None
    for line in lines:
        physical += 1
        events += reading.take(line)
        if dialect.stats.mark in line.text and (said := dialect.stats.read(line.text)) and said.moving:
            progress = (line, dialect.stats.complete(said, line.text))
    events += reading.finish()
    stats = [event for event in events if event.kind == "server_log.stats"]
    return {
        "lines": physical,
        "levels": counts.levels,
        "processes": counts.processes,
        "versions": _versions(events),
        "settings": counts.settings,
        "phase_markers": [_marker(event) for event in events if event.kind == "server_log.phase"],
        "phases": _stretches(events),
        "kernels": [event.fields | {"line": event.span.first_line} for event in events
                    if event.kind == "server_log.kernel_selected"],
        "stats": {
            "first": _stats(stats[0]) if stats else None,
            "last": _stats(stats[-1]) if stats else None,
            "last_with_progress": _progress(progress),
        },
        "progress_bars": [
            {key: event.fields[key] for key in ("bar", "done", "total", "finished")} | {"line": event.span.first_line}
            for event in events
            if event.kind == "server_log.progress_bar"
        ],
        "exceptions": [
            {key: event.fields[key] for key in ("type", "message", "module", "function", "process")}
            | {"line": event.span.first_line, "frames": len(event.fields["frames"])}
            for event in events
            if event.kind == "server_log.exception"
        ],
        "shm_broadcast_warnings": counts.waits,
        "last_record": _last(counts.last),
    }  # fmt: skip


def _versions(events: list[Event]) -> dict[str, str]:
    versions: dict[str, str] = {}
    for event in events:
        if event.kind == "fact" and event.fields["name"].endswith("version"):
            name = event.fields["name"].removesuffix(".version").replace(".server_version", "_server")
            versions.setdefault(name, event.fields["value"])
    return versions


def _time(event: Event) -> str | None:
    return event.stamp.text if event.stamp else None


def _marker(event: Event) -> dict[str, Any]:
    return {"phase": event.fields["phase"], "time": _time(event), "line": event.span.first_line,
            "process": event.fields.get("process", "")}  # fmt: skip


def _stretches(events: list[Event]) -> list[dict[str, Any]]:
    """Stretches of work by process: begun and ended, or begun and still open. An end without a begin stands alone."""
    rows: list[dict[str, Any]] = []
    open_rows: dict[tuple[str, str], dict[str, Any]] = {}
    for event in events:
        stretch = event.fields.get("stretch") if event.kind == "server_log.phase" else None
        if not stretch:
            continue
        process = event.fields.get("process", "")
        row = open_rows.get((stretch, process))
        if row is None and event.fields["edge"] == "end":  # a bar has no speaker, the line that ends it has
            row = open_rows.get((stretch, ""))
        here = {"line": event.span.first_line, "time": _time(event)}
        if event.fields["edge"] == "begin":
            if row is None or row["state"] == "done":
                row = {"phase": stretch, "process": process, "begin": here, "end": None, "state": "open"}
                rows.append(row)
                open_rows[(stretch, process)] = row
            continue
        if row is None:
            row = {"phase": stretch, "process": process, "begin": None, "end": None, "state": "done"}
            rows.append(row)
            open_rows[(stretch, process)] = row
        row["end"], row["state"] = here, "done"
    return rows


def _stats(event: Event) -> dict[str, Any]:
    return dict(event.fields) | {"line": event.span.first_line, "time": _time(event)}


def _progress(found: tuple[Line, Reading] | None) -> dict[str, Any] | None:
    if found is None:
        return None
    line, reading = found
    record = next(iter(split(line.text)), None)
    return dict(reading.fields()) | {"line": line.number, "time": record.when if record and record.when else None}


def _last(last: tuple[Line, Record] | None) -> dict[str, Any] | None:
    if last is None:
        return None
    line, record = last
    return {"line": line.number, "time": record.when or None, "process": record.process,
            "text": plain(line.text).rstrip()[:2000]}  # fmt: skip
