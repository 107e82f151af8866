"""The `kernel_log` view of the inspect command (docs/report-format.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from parsers.event import Event

_XID_KEYS = (
    "pci",
    "code",
    "mnemonic",
    "pid",
    "name",
    "message",
    "role",
    "cause_line",
    "severity",
    "scope",
    "first_action",
    "detail",
)
_SXID_KEYS = ("pci", "code", "mnemonic", "fatal", "link", "message", "class")


def _row(event: Event, keys: tuple[str, ...]) -> dict[str, Any]:
    row: dict[str, Any] = {"time": event.stamp.text if event.stamp else None, "line": event.span.first_line}
    row.update({key: event.fields.get(key) for key in keys})
    row["text"] = event.text
    return row


def view(events: Iterable[Event], lines: int, clocks: dict[str, int], boots: int) -> dict[str, Any]:
    """`clock` is the clock of most lines: boot, wall, utc or none; `time` is the reading as written."""
    xids: list[dict[str, Any]] = []
    sxids: list[dict[str, Any]] = []
    other: list[dict[str, Any]] = []
    for event in events:
        if event.kind == "kernel_log.xid":
            xids.append(_row(event, _XID_KEYS))
        elif event.kind == "kernel_log.sxid":
            sxids.append(_row(event, _SXID_KEYS))
        elif event.kind != "kernel_log.clock_pair":
            row = _row(event, ())
            row["kind"] = event.kind.removeprefix("kernel_log.")
            row["fields"] = dict(event.fields)
            other.append(row)
    clock = max(clocks, key=lambda name: clocks[name]) if clocks else "none"
    return {"lines": lines, "clock": clock, "boots": boots, "xids": xids, "sxids": sxids, "other": other}
