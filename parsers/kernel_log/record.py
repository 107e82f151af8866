"""Kernel messages out of lines: one `Record` for each message, whatever the container.

A line may hold many messages (`dmesg --json`), a message may take many lines (`journalctl -o json-pretty`, export,
verbose), and a driver message may go on in lines without a prefix. `records` evens that out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from parsers.contract import Line
from parsers.event import NOBODY, Actor
from parsers.kernel_log import clock
from parsers.kernel_log.prefix import BARE, LEVELS, Prefix, peel, unescape
from parsers.pattern import lazy
from parsers.span import SourceSpan
from parsers.stamp import ClockKind, Stamp

WRAP_AT = 60
"""A line shorter than this was not wrapped by a paste: what follows it is no continuation."""
MAX_JOINED = 4
"""Wrapped lines that are joined to one message at most."""


@dataclass(slots=True)
class Record:
    """One kernel (or journal) message.

    `prefixed` says whether the line itself carried a prefix; a driver's continuation line inherits the reading of
    the line before. `uptime` is the second clock of a line that shows two (seconds since boot), `boot_id` journald's.
    """

    line: Line
    message: str
    form: str
    stamp: Stamp | None = None
    host: str | None = None
    writer: str | None = None
    pid: int | None = None
    level: str | None = None
    uptime: float | None = None
    boot_id: str | None = None
    prefixed: bool = True

    @property
    def is_kernel(self) -> bool:
        """Whether the kernel wrote it, as far as the container says."""
        return self.writer in (None, "kernel", "kern")

    @property
    def actor(self) -> Actor:
        """The host, where the container names one."""
        return Actor(host=self.host) if self.host else NOBODY

    def span(self, source: str) -> SourceSpan:
        """The physical line that it came from."""
        return self.line.span(source)


_DMESG_OBJECT = lazy(
    r'"pri"\s*:\s*(\d{1,4})\s*,\s*"time"\s*:\s*(\d{1,12}\.\d{1,9})\s*,\s*'
    r'(?:"\w{1,16}"\s*:\s*(?:"[^"]{0,64}"|[\d.]{1,24})\s*,\s*)?"msg"\s*:\s*"((?:[^"\\]|\\.)*)'
)
_DMESG_FIELD = lazy(r'\s*"(pri|time|msg)"\s*:\s*("(?:[^"\\]|\\.)*"?|[\d.]{1,24})')
_PRETTY = lazy(r'\s*"([A-Z_]{2,64})"\s*:\s*(.{1,65536}?),?\s*$')
_EXPORT = lazy(r"\s{0,8}(_{0,2}[A-Z][A-Z0-9_]{1,63})=(.*)$", re.DOTALL)
_STRAY_RAW = lazy(r"\n<\d.*", re.DOTALL)


def _json_string(raw: str) -> str:
    try:
        text = json.loads(f'"{raw}"', strict=False)
    except ValueError:  # cut inside an escape
        return raw
    return text if isinstance(text, str) else raw


def _text_of(value: Any) -> str | None:
    """A journal field: text, a list of byte numbers, a repeated field, or null when it was too long."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        if value and all(isinstance(item, int) and 0 <= item < 256 for item in value):
            return bytes(value).decode("utf-8", "backslashreplace")
        return next((item for item in value if isinstance(item, str)), None)
    return None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < 20 else None


def _from_journal(line: Line, entry: dict[str, Any], form: str) -> Record | None:
    """A journal entry as a record; None when it has no message."""
    fields = {name: _text_of(value) for name, value in entry.items()}
    message = fields.get("MESSAGE")
    if message is None:
        return None
    real = _number(fields.get("_SOURCE_REALTIME_TIMESTAMP")) or _number(fields.get("__REALTIME_TIMESTAMP"))
    mono = _number(fields.get("_SOURCE_MONOTONIC_TIMESTAMP"))
    if mono is None:
        mono = _number(fields.get("__MONOTONIC_TIMESTAMP"))
    stamp = None
    if real is not None:
        stamp = clock.epoch(str(real), real / 1e6)
    elif mono is not None:
        stamp = Stamp(str(mono), ClockKind.BOOT, mono / 1e6, 1e-6)
    priority = _number(fields.get("PRIORITY"))
    kernel = fields.get("_TRANSPORT") == "kernel"
    writer = "kernel" if kernel else fields.get("SYSLOG_IDENTIFIER") or fields.get("_COMM")
    return Record(
        line,
        message,
        form,
        stamp or line.outer,
        fields.get("_HOSTNAME") or line.host,
        writer,
        _number(fields.get("_PID")),
        LEVELS[priority] if priority is not None and priority < 8 else None,
        mono / 1e6 if mono is not None and real is not None else None,
        fields.get("_BOOT_ID"),
    )


class _Entries:
    """Collects the fields of an entry that spreads over lines until it is whole."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}
        self.line: Line | None = None
        self.form = "journal-export"
        self.open_json = False

    def add(self, line: Line, name: str, value: Any, form: str) -> Iterator[Record]:
        if name in self.fields and name in ("MESSAGE", "__CURSOR", "__REALTIME_TIMESTAMP"):
            yield from self.flush()
        self.fields[name] = value
        self.form = form
        if name == "MESSAGE":
            self.line = line

    def flush(self) -> Iterator[Record]:
        if self.line is not None and (record := _from_journal(self.line, self.fields, self.form)):
            yield record
        self.fields, self.line = {}, None


def _one_line_json(line: Line) -> list[Record] | None:
    """The records of a line that is JSON: journald's entry, or any part of a `dmesg --json` document."""
    text = line.text.lstrip()
    if text.startswith(('{"', "{ ")) and ('"MESSAGE"' in text or '"__REALTIME_TIMESTAMP"' in text):
        try:
            entry = json.loads(text)
        except (ValueError, RecursionError):
            return None
        record = _from_journal(line, entry, "journal-json") if isinstance(entry, dict) else None
        return [record] if record else []
    if '"pri"' in text and '"msg"' in text:
        return [
            Record(
                line,
                _STRAY_RAW.sub("", _json_string(found[3])),
                "dmesg-json",
                clock.boot(found[2]),
                level=LEVELS[int(found[1]) % 8],
            )
            for found in _DMESG_OBJECT.finditer(text)
        ]
    return None


class _Reader:
    """The state that lines share: the minute of `dmesg -e`, an open entry, the last prefixed record."""

    def __init__(self) -> None:
        self.entries = _Entries()
        self.pretty: dict[str, str] = {}
        self.minute: Stamp | None = None
        self.since = 0.0

    def from_line(self, line: Line) -> Iterator[Record] | None:
        """The records of a structured line, or None when the line is plain text."""
        text = line.text
        first = text.lstrip()[:1]
        if first in ("{", "}", "]", '"') or (first == "[" and '"' in text[:12]):
            if (whole := _one_line_json(line)) is not None:
                return iter(whole)
            if field := _DMESG_FIELD.match(text):
                return self._dmesg_field(line, field[1], field[2])
            if field := _PRETTY.match(text):
                try:
                    value = json.loads(field[2])
                except (ValueError, RecursionError):
                    value = field[2].strip('"')
                return self.entries.add(line, field[1], value, "journal-json")
            if text.strip() in ("{", "}", "},", "},{", "[", "]", "]}", "}{"):
                return self.entries.flush()
            return None
        if first in ("_", "M", "P", "S") and (field := _EXPORT.match(text)) and self._is_journal_field(field[1]):
            return self.entries.add(line, field[1], field[2], "journal-export")
        if not text.strip() and self.entries.fields:
            return self.entries.flush()
        return None

    def _is_journal_field(self, name: str) -> bool:
        return bool(self.entries.fields) or name.startswith("_") or name in ("MESSAGE", "PRIORITY", "SYSLOG_IDENTIFIER")

    def _dmesg_field(self, line: Line, name: str, value: str) -> Iterator[Record]:
        self.pretty[name] = value
        if name == "msg":
            time, priority = self.pretty.get("time", ""), self.pretty.get("pri", "")
            yield Record(
                line,
                _STRAY_RAW.sub("", _json_string(value[1:].removesuffix('"'))),
                "dmesg-json",
                clock.boot(time) if time.replace(".", "", 1).isdecimal() else None,
                level=LEVELS[int(priority) % 8] if priority.isdecimal() else None,
            )
            self.pretty = {}

    def place(self, prefix: Prefix) -> Stamp | None:
        """The reading of a `dmesg -e` line: the minute that was last printed plus the deltas since."""
        if prefix.form != "dmesg-e":
            return prefix.stamp
        if prefix.delta is None:
            self.minute, self.since = prefix.stamp, 0.0
            return prefix.stamp
        if self.minute is None:
            return None
        self.since += prefix.delta
        return self.minute._replace(text=f"+{prefix.delta:f}", value=self.minute.value + self.since, precision=60.0)


def _plain(line: Line, prefix: Prefix, stamp: Stamp | None) -> Record:
    return Record(
        line,
        prefix.message,
        prefix.form,
        stamp or line.outer,
        prefix.host or line.host,
        prefix.writer,
        prefix.pid,
        prefix.level,
        prefix.uptime,
    )


def records(lines: Iterable[Line]) -> Iterator[Record]:
    """Every message of the lines, in order. A blank line and prose between records yield nothing."""
    reader = _Reader()
    held: Record | None = None
    joined = 0
    for line in lines:
        text = line.text.rstrip("\r")
        structured = reader.from_line(line)
        if structured is not None:
            for record in structured:
                if held:
                    yield _finish(held)
                held, joined = record, MAX_JOINED
            continue
        prefix = peel(text)
        if prefix is not None:
            if held:
                yield _finish(held)
            held, joined = _plain(line, prefix, reader.place(prefix)), 0
            continue
        stripped = text.strip()
        if not stripped:
            joined = MAX_JOINED
            continue
        if stripped.startswith("-- ") or BARE.match(text) or held is None or not held.prefixed:
            if held:
                yield _finish(held)
            inherited = held.stamp if held and stripped.startswith("NVRM:") else None
            host = held.host if held and inherited else None
            held = Record(
                line,
                stripped if BARE.match(text) else text,
                "bare",
                inherited or line.outer,
                host or line.host,
                prefixed=False,
            )
            joined = 0
        elif joined < MAX_JOINED and (len(held.line.text) >= WRAP_AT or joined):
            held.message += ("" if held.message[-1:].isspace() or text[:1].isspace() else " ") + text
            joined += 1
        else:
            yield _finish(held)
            held, joined = Record(line, text, "bare", None, line.host, prefixed=False), 0
    if held:
        yield _finish(held)
    for record in reader.entries.flush():
        yield _finish(record)


def _finish(record: Record) -> Record:
    record.message = unescape(record.message)
    return record
