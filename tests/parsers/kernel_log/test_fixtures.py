"""Real artifacts against reviewed snapshots; see fixtures/kernel_log/README.md."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from parsers.contract import Line
from parsers.event import Event
from parsers.kernel_log import PARSER

FOLDER = Path(__file__).parents[3] / "fixtures" / "kernel_log"
NAMES = sorted(path.stem for path in FOLDER.glob("*.txt"))


def lines_of(data: bytes) -> list[Line]:
    lines: list[Line] = []
    start = 0
    for number, raw in enumerate(data.split(b"\n"), start=1):
        end = start + len(raw) + 1
        if raw or end <= len(data):
            lines.append(Line(number, start, min(end, len(data)), raw.decode("utf-8", "backslashreplace")))
        start = end
    return lines


def events_of(data: bytes, name: str) -> list[Event]:
    return [event for event in PARSER.read(lines_of(data), name) if isinstance(event, Event)]


def snapshot(data: bytes, name: str) -> dict[str, Any]:
    lines = lines_of(data)
    events = events_of(data, name)
    view = PARSER.inspect(lines, name).items()
    return {
        "view": {key: value if isinstance(value, int | str | None) else len(value) for key, value in view},
        "events": [
            {
                "kind": event.kind,
                "line": event.span.first_line,
                "time": event.stamp.text if event.stamp else None,
                "gpu": event.actor.gpu,
                "rank": event.actor.rank,
                "fields": event.fields,
            }
            for event in events
        ],
    }


@pytest.mark.parametrize("name", NAMES)
def test_snapshot(name: str) -> None:
    found = json.loads(json.dumps(snapshot((FOLDER / f"{name}.txt").read_bytes(), name)))
    path = FOLDER / f"{name}.json"
    if os.environ.get("STUCKWARP_WRITE_SNAPSHOTS"):
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert found == json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_events_quote_their_line_and_come_in_order(name: str) -> None:
    data = (FOLDER / f"{name}.txt").read_bytes()
    lines = {line.number: line for line in lines_of(data)}
    last = 0
    for event in PARSER.read(list(lines.values()), name):
        assert isinstance(event, Event)
        line = lines[event.span.first_line]
        assert event.text == line.text
        assert (event.span.start, event.span.end) == (line.start, line.end)
        assert event.span.first_line >= last - 8  # a block may be told by a later line than the one that opened it
        last = max(last, event.span.first_line)


@pytest.mark.parametrize("name", NAMES)
def test_cut_anywhere_yields_the_same_beginning(name: str) -> None:
    data = (FOLDER / f"{name}.txt").read_bytes()
    whole = [(event.kind, event.span.first_line) for event in events_of(data, name)]
    for cut in range(7, len(data), max(1, len(data) // 23)):
        last = data[:cut].count(b"\n")
        keys = [(event.kind, event.span.first_line) for event in events_of(data[:cut], name)]
        early = [key for key in keys if key[1] <= last - 8]
        assert early == [key for key in whole if key in early]
        PARSER.inspect(lines_of(data[:cut]), name)
