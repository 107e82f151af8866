"""What carries a log (docker, CRI, kubectl, compose …), taken off the payload and kept as a clock.

A transport is recognised on the head of a source and then taken off line by line; up to three are stacked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from parsers.stamp import ClockKind, Stamp

DEPTH = 3


@dataclass(slots=True, frozen=True)
class Unwrapped:
    """One line without its transport: `text` = payload, `stamp` = the transport's reading, `partial` = the record goes
    on in the next line."""

    text: str
    stamp: Stamp | None = None
    host: str | None = None
    partial: bool = False


Strip = Callable[[str], "Unwrapped | None"]


@dataclass(slots=True, frozen=True)
class Transport:
    """A named way of wrapping lines; `strip` gives None for a line that is not wrapped so."""

    name: str
    strip: Strip


_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)")


def rfc3339(text: str) -> Stamp | None:
    """A zoned reading at the start of `text` (`2026-03-29T15:38:59.121546123Z`) as an absolute stamp."""
    found = _RFC3339.match(text)
    if not found:
        return None
    zone = "+00:00" if found[3] == "Z" else found[3] if ":" in found[3] else f"{found[3][:3]}:{found[3][3:]}"
    try:
        seconds = datetime.fromisoformat(found[1].replace(" ", "T") + zone).timestamp()
    except (ValueError, OverflowError):
        return None
    digits = found[2] or ""
    fraction = int(digits) / 10 ** len(digits) if digits else 0.0
    return Stamp(found[0], ClockKind.UTC, seconds + fraction, 10.0 ** -len(digits) if digits else 1.0)


def _docker_json(text: str) -> Unwrapped | None:
    if not text.startswith("{") or '"log"' not in text[:4096] and '"stream"' not in text:
        return None
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not isinstance(record.get("log"), str):
        return None
    log: str = record["log"]
    return Unwrapped(log.rstrip("\n"), rfc3339(str(record.get("time", ""))), partial=not log.endswith("\n"))


_CRI = re.compile(r"(\S{20,40}) (?:stdout|stderr) ([FP]) ?")


def _cri(text: str) -> Unwrapped | None:
    found = _CRI.match(text)
    stamp = rfc3339(found[1]) if found else None
    if found is None or stamp is None:
        return None
    return Unwrapped(text[found.end():], stamp, partial=found[2] == "P")


# docker logs -t, kubectl logs --timestamps: a zoned reading, one blank, then the payload; not a syslog line, whose host
# and program follow the reading and are the kernel log parser's to read
_STAMPED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,9}(?:Z|[+-]\d\d:\d\d) "
                      r"(?!\S{1,80} (?:kernel|[\w./-]{1,60}\[\d{1,8}\])?: ?|\S{1,80} [\w./-]{1,60}(?:\[\d{1,8}\])?: )")


def _stamped(text: str) -> Unwrapped | None:
    found = _STAMPED.match(text)
    stamp = rfc3339(text) if found else None
    return Unwrapped(text[found.end():], stamp) if found and stamp else None


_KUBECTL = re.compile(r"\[(?:pod/)?([\w.-]+)/[\w.-]+(?:/[\w.-]+)?\] ")
_COMPOSE = re.compile(r"([A-Za-z][\w.-]{0,60}) {1,30}\| ")
_SLURM = re.compile(r" {0,4}(\d{1,5}): ")


def _prefix(shape: re.Pattern[str]) -> Strip:
    def strip(text: str) -> Unwrapped | None:
        found = shape.match(text)
        return Unwrapped(text[found.end():], host=found[1]) if found else None

    return strip


TRANSPORTS = (
    Transport("docker json-file", _docker_json),
    Transport("CRI", _cri),
    Transport("kubectl --prefix", _prefix(_KUBECTL)),
    Transport("docker compose", _prefix(_COMPOSE)),
    Transport("time-stamped lines", _stamped),
    Transport("srun --label", _prefix(_SLURM)),
)


def transports_of(head: str) -> tuple[Transport, ...]:
    """The transports stacked around the lines of `head`, outermost first. At least four of five lines must be wrapped."""
    lines = [line for line in head.split("\n")[:200] if line.strip()][:-1] or head.split("\n")[:1]
    stack: list[Transport] = []
    for _ in range(DEPTH):
        for transport in TRANSPORTS:
            if transport in stack:
                continue
            unwrapped = [transport.strip(line) for line in lines]
            wrapped = [one for one in unwrapped if one is not None]
            least = 5 if transport.name in ("srun --label", "docker compose") else 1
            if len(wrapped) >= max(least, 0.8 * len(lines)):
                stack.append(transport)
                lines = [one.text for one in wrapped]
                break
        else:
            break
    return tuple(stack)


def unwrap(stack: tuple[Transport, ...], text: str) -> Unwrapped:
    """One line without the transports of `stack`; the outermost reading and the innermost host are kept."""
    stamp: Stamp | None = None
    host: str | None = None
    partial = False
    for transport in stack:
        inner = transport.strip(text)
        if inner is None:
            break
        text, stamp, host = inner.text, stamp or inner.stamp, inner.host or host
        partial = partial or inner.partial
    return Unwrapped(text, stamp, host, partial)
