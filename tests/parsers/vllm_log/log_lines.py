"""Lines as intake hands them over, and events in a short form that can be reviewed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from parsers.contract import Line, TextParser
from parsers.event import Event
from parsers.vllm_log.record import plain


def as_lines(data: bytes | str) -> list[Line]:
    """Physical lines, split on `\\n` only, colour codes taken off, `\\r` kept."""
    raw = data.encode() if isinstance(data, str) else data
    rows = raw.removesuffix(b"\n").split(b"\n")
    lines, at = [], 0
    for number, row in enumerate(rows, 1):
        lines.append(Line(number, at, at + len(row) + 1, plain(row.decode("utf-8", "backslashreplace"))))
        at += len(row) + 1
    return lines


def events_of(parser: TextParser, data: bytes | str) -> list[Event]:
    """All events of a text."""
    return [event for event in parser.read(as_lines(data), "x.log") if isinstance(event, Event)]


def short(event: Event) -> list[Any]:
    """Line, kind, who, when, fields (long ones cut)."""
    fields: dict[str, Any] = {}
    for key, value in event.fields.items():
        if key == "frames":
            value = [list(value[0]), list(value[-1]), len(value)] if value else []
        fields[key] = value[:160] if isinstance(value, str) else value
    who = [event.actor.process, event.actor.pid, event.actor.rank]
    return [event.span.first_line, event.kind.removeprefix("server_log."), who,
    event.stamp.text if event.stamp else None,
            fields]  # fmt: skip


def kinds(events: Iterable[Event], kind: str) -> list[Event]:
    """Events of one kind (`exception`, `phase`, `fact` ...)."""
    return [event for event in events if event.kind.removeprefix("server_log.") == kind]
