"""What the tests of the small text artifacts share: lines of a fixture, the parser that recognises it, its snapshot."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from parsers import (
    cluster_state,
    collect_env,
    flight_recorder,
    infiniband,
    lspci,
    metrics_scrape,
    nvidia_smi,
    process_state,
    stacks,
)
from parsers.contract import Line, TextParser, Trouble
from parsers.event import Event

FIXTURES = Path(__file__).parents[3] / "fixtures"
PARSERS: tuple[TextParser, ...] = (
    *stacks.PARSERS,
    nvidia_smi.PARSER,
    metrics_scrape.PARSER,
    collect_env.PARSER,
    process_state.PARSER,
    flight_recorder.PARSERS[0],
    lspci.PARSER,
    infiniband.PARSER,
    cluster_state.PARSER,
)


def lines_of(data: bytes) -> list[Line]:
    lines: list[Line] = []
    start = 0
    for number, raw in enumerate(data.split(b"\n"), start=1):
        if raw or start + len(raw) < len(data):
            lines.append(Line(number, start, start + len(raw), raw.decode("utf-8", "backslashreplace")))
        start += len(raw) + 1
    return lines


def head_of(data: bytes) -> str:
    return data[:65536].decode("utf-8", "backslashreplace")


def recognise(data: bytes) -> tuple[float, TextParser]:
    return max(((parser.sniff(head_of(data)), parser) for parser in PARSERS), key=lambda found: found[0])


def event_view(event: Event) -> dict[str, Any]:
    return {
        "kind": event.kind,
        "line": event.span.first_line,
        "text": event.text[:120],
        "time": event.stamp.text if event.stamp else None,
        "process": event.actor.process,
        "pid": event.actor.pid,
        "gpu": event.actor.gpu,
        "rank": event.actor.rank,
        "fields": event.fields,
    }


def read_view(found: list[Event | Trouble]) -> list[dict[str, Any]]:
    return [
        event_view(item) if isinstance(item, Event) else {"trouble": item.tag, "text": item.text, "line": item.line}
        for item in found
    ]


def check_snapshot(path: Path, found: Any) -> None:
    """Compares with the reviewed snapshot; STUCKWARP_WRITE_SNAPSHOTS=1 writes it instead, for review in the diff."""
    plain = json.loads(json.dumps(found, ensure_ascii=False, allow_nan=False))
    if os.environ.get("STUCKWARP_WRITE_SNAPSHOTS"):
        path.write_text(json.dumps(plain, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert plain == json.loads(path.read_text(encoding="utf-8"))
