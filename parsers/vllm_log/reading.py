"""From lines to events: the one pass that every server-log parser makes, with its own templates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from parsers.contract import Line
from parsers.event import Actor, Event, fact
from parsers.pattern import lazy
from parsers.vllm_log import bars, cuda_error, ending, facts, traceback
from parsers.vllm_log.flood import Flood
from parsers.vllm_log.record import ALARMING, Record, plain, split
from parsers.vllm_log.rule import Template, Templates
from parsers.vllm_log.stats import Reading as Throughput
from parsers.vllm_log.stats import StatsLines, Thinner

LONGEST_QUOTE = 8_000
_EARLY = 131_072
"""Bytes of the head within which an answered request counts as the first one and echoed environment variables are
looked for: further on, such lines are not passed on to the parser (no mark is rare enough for them)."""

_CPP_MARKS = (".cpp:", " torch/")
_RECORD_MARKS = ("WARN", "ERROR", "CRITICAL", *_CPP_MARKS)
_FROM_EXCEPTION = frozenset({"rpc_timeout", "process_died", "engine_dead", "shm_broadcast_wait", "download"})
_FAILED_PROCS = lazy(r"Failed core proc\(s\): \{([^}]{0,400})\}")
_PROC = lazy(r"'([\w./\-]{1,80})': (-?\d{1,5})")


class Census(Protocol):
    """Who wants to see every record (the inspect view)."""

    def count(self, line: Line, record: Record) -> None:
        """One record of one line."""


def _no_level(record: Record) -> str:
    return record.level


class Dialect(NamedTuple):
    """What one kind of server says: its templates, its throughput line, and which writers are its own records."""

    templates: Templates
    stats: StatsLines
    writers: frozenset[str]
    level_of: Callable[[Record], str] = _no_level
    extra_marks: tuple[str, ...] = ()

    def marks(self) -> tuple[bytes, ...]:
        """What a line of the healthy middle must hold to be worth passing on."""
        texts = (
            *self.templates.marks, self.stats.mark, *traceback.MARKS, *bars.MARKS, *cuda_error.MARKS,
            *ending.KILLED_MARKS, *ending.USAGE_MARKS, *ending.REQUEST_MARKS, *facts.CONFIG_MARKS, *_RECORD_MARKS,
            *self.extra_marks,
        )  # fmt: skip
        return tuple(dict.fromkeys(text.encode() for text in texts))


@dataclass(slots=True)
class _Run:
    """A progress bar that was seen last at `line`."""

    bar: bars.Bar
    line: Line
    record: Record


@dataclass(slots=True)
class LogReading:
    """The state of one pass over one source."""

    source: str
    dialect: Dialect
    census: Census | None = None
    thinner: Thinner = field(init=False)
    flood: Flood = field(default_factory=Flood)
    tracebacks: traceback.Tracebacks[tuple[Line, Record]] = field(default_factory=traceback.Tracebacks)
    usage: ending.Usage = field(default_factory=ending.Usage)
    _runs: dict[tuple[object, ...], _Run] = field(default_factory=dict)
    _folds: dict[tuple[object, ...], list[Any]] = field(default_factory=dict)
    _stated: set[tuple[str, str]] = field(default_factory=set)
    _served: bool = False
    _stopping: bool = False
    _dead: bool = False
    _last: Line | None = None
    _last_text: Line | None = None

    def __post_init__(self) -> None:
        self.thinner = Thinner(self.dialect.stats)

    def take(self, line: Line) -> list[Event]:
        """The events of one line."""
        text = line.text
        if self.dialect.stats.mark in text:
            rows = self.thinner.keep(line)
            self._last = line
            if self.census is not None:
                for record in split(text):
                    self.census.count(line, record)
            return [event for row in rows for event in self._throughput(*row)] if rows else []
        if not text or text.isspace():
            return self._blank(line)
        self._last_text = line
        events: list[Event] = []
        for record in split(text):
            if record.writer in self.dialect.writers:
                self._last = line
            if self.census is not None:
                self.census.count(line, record)
            self._handle(record, line, events)
        return events

    def finish(self) -> list[Event]:
        """What only the end shows: open bars, the last of what was held back, the last record."""
        events: list[Event] = [event for row in self.thinner.last() for event in self._throughput(*row)]
        events += [self._bar_event(run) for run in self._runs.values() if not run.bar.finished]
        for (line, record), raised in self.tracebacks.unfinished():
            fields = raised.fields() | {"process": record.process}
            events.append(self._event("exception", line, record, fields))
        events += self.flood.rest()
        events.sort(key=lambda event: event.span.start)
        last = self._last or self._last_text
        if last is not None:
            records = [record for record in split(last.text) if record.writer in self.dialect.writers]
            record = records[-1] if records else (split(last.text) or [Record("bare", "")])[-1]
            events.append(self._event("last_record", last, record, {"process": record.process}))
        return events

    def _blank(self, line: Line) -> list[Event]:
        nobody = Record("bare", "")
        self.tracebacks.take((*nobody.speaker, "bare"), "", line.number, (line, nobody), loose=False)
        return []

    # --- one record -------------------------------------------------------------------------------------------------

    def _handle(self, record: Record, line: Line, events: list[Event]) -> None:
        level = record.level = self.dialect.level_of(record)
        message = record.message
        alarming = level in ALARMING and (record.writer != "torch" or any(mark in line.text for mark in _CPP_MARKS))
        if "uner]: Skipping tactic" in line.text:  # an autotuner quotes why a candidate kernel did not run: it goes on
            alarming = False
        stream = "bare" if record.writer == "bare" else "log"
        part = False
        loose = stream == "bare" or level in ("ERROR", "CRITICAL") or not level
        for piece in message.split("\n") if "\n" in message else (message,):
            key = (*record.speaker, stream)
            said, raised = self.tracebacks.take(key, piece, line.number, (line, record), loose=loose)
            part = part or said
            if raised is not None:
                self._raised(raised, record, line, events)
        if alarming and not self._folded(record, line, part):
            module = record.module
            self._add(events, "record", line, record, {"level": level, "module": module, "process": record.process,
                      "message": message[:LONGEST_QUOTE]}, said=f"{level} {module} {message}")  # fmt: skip
        if part and "\n" not in message:
            return
        self._templates(message, record, line, events)
        if record.writer == "bare":
            self._bare(message, record, line, events)
        elif '" ' in message and "HTTP/" in message:
            self._request(message, record, line, events)
        if line.start < _EARLY and ("=" in message or "variable detected" in message):
            stated = facts.environment(message, bare=record.writer == "bare")
            if stated is not None:
                self._state(*stated, record, line, events)
        self._cuda(message, record, line, events)

    def _folded(self, record: Record, line: Line, part: bool) -> bool:
        """Whether the line continues a record that was already reported: same head, and broken by the logger or a
        traceback."""
        head = (record.level, record.module, record.module_line, record.when)
        before = self._folds.get(record.speaker)
        if len(self._folds) > 4096:
            self._folds.clear()
        broken = line.text.endswith("\r")
        continues = record.message[:1] in ("", " ", "\t")  # the line end may have lost its carriage return
        if before is not None and before[0] == head and (part or before[1] or continues):
            before[1] = before[1] or part or broken
            return True
        self._folds[record.speaker] = [head, broken or part]
        # A paste that begins inside a traceback: its source lines are no records of their own.
        return record.level != "WARNING" and (
            (part and traceback.is_part(record.message)) or record.message.startswith("    ")
        )

    def _templates(self, message: str, record: Record, line: Line, events: list[Event]) -> None:
        selected = ""
        for row, found in self.dialect.templates.match(message):
            if row.kind:
                self._add(events, row.kind, line, record, self._with_process(row, found, record), said=message)
                if row.kind == "kernel_selected":
                    selected = "attention_backend" if row.fields.get("layer") == "attention" else "kernel_selection"
            for name, value in row.stated(found):
                self._state(name, value, record, line, events)
        if selected:
            fields = {"phase": selected, "edge": "mark", "process": record.process}
            self._add(events, "phase", line, record, fields, said=selected)
        if any(mark in message for mark in facts.CONFIG_MARKS):
            for name, value in facts.settings(message)[1]:
                self._state(name, value, record, line, events)

    @staticmethod
    def _with_process(row: Template, found: re.Match[str], record: Record) -> dict[str, Any]:
        fields = row.read(found)
        if row.kind == "phase":
            fields["process"] = record.process
        return fields

    def _bare(self, message: str, record: Record, line: Line, events: list[Event]) -> None:
        if ("%" in message or "uner]" in message) and (bar := bars.read_bar(message)):
            self._progress(bar, record, line, events)
        if message[:1] != " ":
            refused = self.usage.refused(message, line.number)
            if refused is not None:
                self._add(events, "usage_error", line, record, {"message": refused}, said=refused)
        if (ended := ending.killed(message)) is not None:
            self._add(events, "killed", line, record, ended, said=message)
        if '" ' in message and "HTTP/" in message:
            self._request(message, record, line, events)

    def _request(self, message: str, record: Record, line: Line, events: list[Event]) -> None:
        answered = ending.access(message)
        if answered is None:
            return
        method, path, status = answered
        if status >= 400:
            self._add(events, "request", line, record, {"method": method, "path": path, "status": status},
                      said=f"{method} {path} {status}")  # fmt: skip
        elif not self._served and method == "POST" and line.start < _EARLY:
            self._serving(line, record, events)

    def _serving(self, line: Line, record: Record, events: list[Event]) -> None:
        self._served = True
        fields = {"phase": "first_request", "edge": "mark", "process": record.process}
        events.append(self._event("phase", line, record, fields))

    def _throughput(self, line: Line, reading: Throughput) -> Iterator[Event]:
        record = next((record for record in split(line.text)), Record("bare", line.text))
        if not self._served and (reading.moving or reading.running):
            events: list[Event] = []
            self._serving(line, record, events)
            yield from events
        yield self._event("stats", line, record, dict(reading.fields()))

    def _cuda(self, message: str, record: Record, line: Line, events: list[Event]) -> None:
        error = cuda_error.find(message)
        if error is not None:
            self._add(events, "cuda_error", line, record, error, said=message)

    # --- exceptions -------------------------------------------------------------------------------------------------

    def _raised(self, raised: traceback.Raised, record: Record, line: Line, events: list[Event]) -> None:
        fields = raised.fields()
        fields["process"] = record.process
        said = f"{raised.type} {raised.message} {fields['module']}"
        self._add(events, "exception", line, record, fields, said=said)
        last = raised.type.rpartition(".")[2]
        if last in ("EngineDeadError", "AsyncEngineDeadError", "MQEngineDeadError"):
            self._add(events, "engine_dead", line, record, {"how": last}, said=last)
        elif last in ("ActorDiedError", "RayActorError", "WorkerCrashedError"):
            self._add(events, "process_died", line, record, {"name": "ray actor"}, said=last)
        if "Engine core initialization failed" in raised.message:
            self._add(events, "engine_dead", line, record, {"how": "initialization_failed"}, said=raised.message)
            for name, code in _PROC.findall(found[1] if (found := _FAILED_PROCS.search(raised.message)) else ""):
                self._add(events, "process_died", line, record, {"name": name, "exit_code": int(code)}, said=name)
        for row, match in self.dialect.templates.match(raised.message):
            if row.kind in _FROM_EXCEPTION:
                self._add(events, row.kind, line, record, row.read(match), said=raised.message)
        self._cuda(f"{raised.type}: {raised.message}", record, line, events)

    # --- progress bars ----------------------------------------------------------------------------------------------

    def _progress(self, bar: bars.Bar, record: Record, line: Line, events: list[Event]) -> None:
        key = self._bar_key(bar, record)
        run = self._runs.get(key)
        if run is not None and (run.bar.finished or bar.done < run.bar.done or bar.total != run.bar.total):
            if not run.bar.finished:
                events.append(self._bar_event(run))
            elif bar.finished and bar.total == run.bar.total:
                return  # tqdm writes the full bar twice
            run = None
        if run is None:
            nameless = self._runs.get((record.process, ""))
            if bar.name and nameless is not None and not nameless.bar.done and nameless.bar.total == bar.total:
                del self._runs[(record.process, "")]  # the same bar before it was given its description
            if bar.family == "capture":
                fields = {"phase": "capture_begin", "edge": "begin", "stretch": "capture", "process": record.process}
                events.append(self._event("phase", line, record, fields))
            if len(self._runs) >= 4096:
                self._runs.clear()
            run = self._runs[key] = _Run(bar, line, record)
        run.bar, run.line, run.record = bar, line, record
        if bar.finished:
            events.append(self._bar_event(run))

    def _bar_key(self, bar: bars.Bar, record: Record) -> tuple[object, ...]:
        """A bar's later updates can lack the decoration of the first (0.10 to 0.30), or a paste lost it."""
        key = (record.process, bar.name)
        if key in self._runs:
            return key
        for other, run in self._runs.items():
            if other[1] == bar.name and not (other[0] and record.process) and run.bar.total == bar.total:
                return other
        return key

    def _bar_event(self, run: _Run) -> Event:
        bar = run.bar
        event = self._event("progress_bar", run.line, run.record,
                            {"bar": bar.name, "done": bar.done, "total": bar.total, "finished": bar.finished,
                             "family": bar.family})  # fmt: skip
        event.text = bar.text[:LONGEST_QUOTE]
        return event

    # --- making events ----------------------------------------------------------------------------------------------

    def _state(self, name: str, value: str, record: Record, line: Line, events: list[Event]) -> None:
        if (name, value) in self._stated or len(self._stated) > 10_000:
            return
        self._stated.add((name, value))
        events.append(fact(name, value, line.span(self.source), _quote(line, record), stamp=record.stamp(),
                           actor=self._actor(line, record)))  # fmt: skip

    def _add(
        self, events: list[Event], what: str, line: Line, record: Record, fields: dict[str, Any], *, said: str
    ) -> None:
        if what == "shutdown":
            if self._dead:
                return  # cleaning up after a death is no step of an orderly stop
            self._stopping = self._stopping or _asks_for_a_stop(record, fields)
        elif what == "phase" and fields.get("phase") == "args":
            self._dead = self._stopping = False  # the next start in the same log
        elif what in ("engine_dead", "process_died") and not self._stopping:
            self._dead = True
        event = self._event(what, line, record, fields)
        if self.flood.admit(what, f"{record.process} {said}" if what == "phase" else said, event):
            events.append(event)

    def _event(self, what: str, line: Line, record: Record, fields: dict[str, Any]) -> Event:
        return Event(f"server_log.{what}", line.span(self.source), _quote(line, record), record.stamp(),
                     self._actor(line, record), fields)  # fmt: skip

    @staticmethod
    def _actor(line: Line, record: Record) -> Actor:
        actor = record.actor()
        if line.host and actor.host is None:
            return Actor(actor.process, actor.pid, actor.rank, actor.gpu, line.host)
        return actor


def _asks_for_a_stop(record: Record, fields: dict[str, Any]) -> bool:
    """Whether a step of a stop shows that the server was asked to stop. What an engine or a worker does, and what an
    API server sends to them, happens in the same way when one of them has died and the rest is cleared away; a script
    without an API server stops its engine with the same words when it ends."""
    who = fields.get("who")
    if who in ("Worker", "system") or (who == "Process manager" and record.process.startswith("APIServer")):
        return False
    return not record.process.startswith(("EngineCore", "Worker"))


def _quote(line: Line, record: Record) -> str:
    """The record as it stands; of a line that holds several, the piece."""
    text = plain(line.text).rstrip()
    if "\r" in text:
        text = record.message if record.writer == "bare" else text.rpartition("\r")[2]
        text = text or record.message
    return text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "…"


def read_log(lines: Iterable[Line], source: str, dialect: Dialect) -> Iterator[Event]:
    """The events of a server log, in the order of its lines; what only the end shows comes last."""
    reading = LogReading(source, dialect)
    for line in lines:
        events = reading.take(line)
        if events:
            yield from events
    yield from reading.finish()
