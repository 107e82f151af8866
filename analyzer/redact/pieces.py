"""Records that their transport cut into pieces: docker at 16 KiB, a CRI runtime at its buffer's end."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

_CRI = re.compile(r"\S{20,40} (?:stdout|stderr) (?P<tag>[FP]) ")


def shell(line: str) -> tuple[Any, str]:
    """(a function that wraps a payload as `line` was wrapped, the payload)."""
    if line.startswith("{"):
        record = json.loads(line)
        return (
            lambda payload: json.dumps({**record, "log": payload}, ensure_ascii=False, separators=(",", ":"))
        ), record["log"]
    found = _CRI.match(line)
    prefix = line[: found.end()] if found else ""
    return (lambda payload: prefix + payload), line[len(prefix) :]


def _is_partial(line: str) -> bool:
    if line.startswith("{") and '"log"' in line[:4096]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return False
        return (
            isinstance(record, dict)
            and isinstance(record.get("log"), str)
            and not record["log"].endswith("\n")
            and len(record["log"]) >= 512
        )
    found = _CRI.match(line)
    return found is not None and found["tag"] == "P"


def _same_transport(first: str, line: str) -> bool:
    if first.startswith("{"):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return False
        return isinstance(record, dict) and isinstance(record.get("log"), str)
    return _CRI.match(line) is not None


def records(lines: Iterable[str]) -> Iterator[list[str]]:
    """Lines, with the pieces of a record that its transport cut together. At most 256 pieces are held."""
    held: list[str] = []
    for line in lines:
        if held and not _same_transport(held[0], line):
            yield from ([one] for one in held) if len(held) == 1 else [held]
            held = []
        held.append(line)
        if _is_partial(line) and len(held) < 256:
            continue
        yield held
        held = []
    if held:
        yield held
