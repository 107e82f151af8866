"""What carries a log (docker, CRI, kubectl, compose, a journal …), taken off the payload and kept as a clock.

A transport is recognised on the head of a source and then taken off line by line; up to three are stacked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from analyzer.intake.readings import epoch, rfc3339
from analyzer.intake.text import clip
from parsers.contract import Line
from parsers.pattern import lazy
from parsers.stamp import Stamp

DEPTH = 3
SAMPLE = 200
"""Lines of the head that a transport is recognised by."""
SAMPLE_LINE = 64 * 1024


class Unwrapped(NamedTuple):
    """One line without its transport: `text` = payload, `stamp` = the transport's reading, `partial` = the record goes
    on in the next line of the same `stream`."""

    text: str
    stamp: Stamp | None = None
    host: str | None = None
    partial: bool = False
    stream: str = ""


Strip = Callable[[str], "Unwrapped | None"]


class Fold(Protocol):
    """A transport whose records spread over lines: lines in, payload lines out."""

    def lines(self, lines: Iterable[Line]) -> Iterator[Line]: ...
    def finish(self) -> Iterator[Line]: ...


class Transport(NamedTuple):
    """A named way of wrapping lines; `strip` gives None for a line that is not wrapped so. `sure` = the stricter form
    that recognition asks for, where a single line could be something else. `least` = wrapped lines that it takes;
    `journal` = bound to the writers of one journal."""

    name: str
    strip: Strip
    sure: Strip | None = None
    least: int = 1
    fold: Callable[[], Fold] | None = None
    journal: bool = False


def _json_record(text: str) -> Unwrapped | None:
    if not text.startswith("{") or not text.rstrip().endswith("}"):
        return None
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    from analyzer.intake.collector import payload

    return payload(record)


_CRI = lazy(r"(\S{20,40}) (stdout|stderr) ([FP])(?::[\w.-]{1,20})? ?")


def _cri(text: str) -> Unwrapped | None:
    found = _CRI.match(text) if text[:2] == "20" else None
    stamp = rfc3339(found[1]) if found else None
    if found is None or stamp is None:
        return None
    return Unwrapped(text[found.end():], stamp, partial=found[3] == "P", stream=found[2])


# docker logs -t, kubectl logs --timestamps, GitHub Actions: a zoned reading, one blank, then the payload.
_STAMPED = lazy(r"(?:\ufeff)?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,9}(?:Z|[+-]\d\d:\d\d)(?: |$)")
# A syslog line: host and program follow the reading. The kernel log parser reads those.
_SYSLOG_AFTER = lazy(r"[\w.-]{1,80} (?:kernel(?:\[\d{1,8}\])?|[\w./@-]{1,60}\[\d{1,8}\]): ?")
_SYSLOG_MAYBE = lazy(r"[\w.-]{1,80} [\w./@-]{1,60}(?:\[\d{1,8}\])?: ")
# A tracing subscriber's line (Rust): level and module follow the reading. That reading is the record's own.
_TRACING_AFTER = lazy(r" {0,4}(?:DEBUG|INFO|WARN|ERROR|TRACE) {1,2}[\w.:]{1,120}: ")


def _stamped(text: str) -> Unwrapped | None:
    found = _STAMPED.match(text) if "20" in text[:3] else None
    if found is None or _SYSLOG_AFTER.match(text, found.end()):
        return None
    stamp = rfc3339(text.removeprefix("\ufeff"))
    return Unwrapped(text[found.end():], stamp) if stamp else None


def _surely_stamped(text: str) -> Unwrapped | None:
    inner = _stamped(text)
    if inner is None or _SYSLOG_MAYBE.match(inner.text) or _TRACING_AFTER.match(inner.text):
        return None
    return inner


_LOGCLI = lazy(r"(\S{20,35})[ \t]{1,4}\{[^{}]{0,400}\}[ \t]{1,4}")
_AWS_TAIL = lazy(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3,6})?\+00:00) "
                       r"(?=\S{0,400}[/$]|[\w-]{0,80}[0-9a-f]{12} )(\S{1,500}) ")
_GRAFANA = lazy(r"(\d{19})\t(?:(\d{4}-\d\d-\d\dT\S{8,25})\t)?")
_ACTIONS = lazy(r"[^\t]{1,120}\t[^\t]{1,120}\t(?=(?:\ufeff)?\d{4}-\d\d-\d\dT)")


def _logcli(text: str) -> Unwrapped | None:
    found = _LOGCLI.match(text) if text[:2] == "20" and "{" in text else None
    stamp = rfc3339(found[1]) if found else None
    return Unwrapped(text[found.end():], stamp) if found and stamp else None


def _aws_tail(text: str) -> Unwrapped | None:
    found = _AWS_TAIL.match(text) if text[:2] == "20" else None
    return Unwrapped(text[found.end():], rfc3339(found[1]), found[2]) if found else None


def _grafana(text: str) -> Unwrapped | None:
    found = _GRAFANA.match(text) if "\t" in text[:24] else None
    return Unwrapped(text[found.end():], epoch(found[1])) if found else None


def _actions(text: str) -> Unwrapped | None:
    found = _ACTIONS.match(text) if "\t" in text[:250] else None
    return Unwrapped(text[found.end():]) if found else None


_KUBECTL = lazy(r"\[(?:pod/)?([\w.-]+)/[\w.-]+(?:/[\w.-]+)?\] ?")
_COMPOSE = lazy(r"([A-Za-z][\w.-]{0,60}) {1,30}\| ?")
_SLURM = lazy(r" {0,4}(\d{1,5}): ?")


def _prefix(shape: re.Pattern[str], mark: str, what: str = "") -> Strip:
    def strip(text: str) -> Unwrapped | None:
        found = shape.match(text) if mark in text[:96] else None
        return Unwrapped(text[found.end():], host=what + found[1], stream=found[1]) if found else None

    return strip


TRANSPORTS = (
    Transport("JSON records of a log collector", _json_record),
    Transport("CRI", _cri),
    Transport("kubectl --prefix", _prefix(_KUBECTL, "[")),
    Transport("docker compose", _prefix(_COMPOSE, "|"), least=5),
    Transport("GitHub Actions", _actions),
    Transport("logcli", _logcli),
    Transport("Grafana text", _grafana),
    Transport("aws logs tail", _aws_tail),
    Transport("time-stamped lines", _stamped, _surely_stamped),
    Transport("srun --label", _prefix(_SLURM, ":", "task "), least=5),
)


def transports_of(head: str) -> tuple[Transport, ...]:
    """The transports stacked around the lines of `head`, outermost first. At least four of five lines must be wrapped;
    a journal may be mixed, so there only the server's own lines are taken out of it."""
    every = [line for line in head.split("\n") if line.strip()][:-1] or head.split("\n")[:1]
    lines = every[:SAMPLE]
    stack: list[Transport] = []
    if (indent := _indentation(lines)) is not None:
        stack.append(indent)
        lines = inside(indent, lines)
    while len(stack) < DEPTH:
        found = carrier(lines, stack)
        if found is None and not any(one.journal for one in stack):
            found = _journal(every if not stack else lines)
        if found is None:
            break
        stack.append(found)
        lines = inside(found, every if found.fold is not None else lines) or lines
    if len(stack) < DEPTH and (prefix := _constant_prefix(lines)) is not None:
        stack.append(prefix)
    return tuple(stack)


def carrier(lines: list[str], stack: Sequence[Transport] = ()) -> Transport | None:
    """The transport of `TRANSPORTS` around most of these lines. None comes twice, but for JSON records: what one
    collector wrote may be read by another."""
    for transport in TRANSPORTS:
        if transport in stack and transport is not TRANSPORTS[0]:
            continue
        strip = transport.sure or transport.strip
        if sum(strip(line) is not None for line in lines) >= max(transport.least, 0.8 * len(lines)):
            return transport
    return None


def inside(transport: Transport, lines: list[str]) -> list[str]:
    """What `transport` carries in these lines: only what it wraps, records that it split joined, no blank lines."""
    if transport.fold is None:
        lines = [line for line in lines if transport.strip(line) is not None]
    layer = Layer(transport, SAMPLE_LINE)
    read = [*layer.lines(Line(0, 0, 0, line) for line in lines), *layer.finish()]
    return [line.text for line in read if line.text.strip()]


class Layer:
    """One transport taken off line by line. State is kept between blocks: a record may go on in the next.

    The outermost reading and the innermost host of a line stay. `kept` = characters of a joined record.
    """

    def __init__(self, transport: Transport, kept: int) -> None:
        self._strip, self._kept = transport.strip, kept
        self._fold = transport.fold() if transport.fold is not None else None
        self._held: dict[tuple[str | None, str], Line] = {}

    def lines(self, lines: Iterable[Line]) -> Iterator[Line]:
        """The payload lines. A payload of several lines gives several lines with one number."""
        if self._fold is not None:
            yield from self._fold.lines(lines)
            return
        strip, pieces = self._strip, self._held
        for line in lines:
            inner = strip(line.text)
            if inner is None:
                yield line
                continue
            key = (line.host, inner.stream)
            held = pieces.pop(key, None) if pieces else None
            if held is None:
                line.text = inner.text
                line.outer, line.host = line.outer or inner.stamp, inner.host or line.host
            else:
                held.text, held.end = clip(held.text + inner.text, self._kept), line.end
                line = held
            if inner.partial and len(line.text) < self._kept:
                pieces[key] = line
                continue
            yield from split(line)

    def finish(self) -> Iterator[Line]:
        """What was begun and never ended."""
        if self._fold is not None:
            yield from self._fold.finish()
        for line in self._held.values():
            yield from split(line)
        self._held.clear()


def split(line: Line) -> Iterator[Line]:
    """A payload of several lines as several lines with the place of the one that carried them."""
    if "\n" not in line.text:
        yield line
        return
    for text in line.text.split("\n"):
        yield Line(line.number, line.start, line.end, text.removesuffix("\r"), line.outer, line.host)


def _journal(lines: list[str]) -> Transport | None:
    if not any(" " in line[:40] or line.startswith(("{", "_")) for line in lines[:50]):
        return None
    from analyzer.intake.journal import journal_of

    return journal_of(lines)


def _indentation(lines: list[str]) -> Transport | None:
    """The same blanks before every line: a code block by indentation, a block of YAML, a quoted message."""
    if len(lines) < 2 or not lines[0][:1].isspace():
        return None
    depth = min(len(line) - len(line.lstrip(" \t")) for line in lines)
    blanks = lines[0][:depth]
    if depth < 2 or not all(line.startswith(blanks) for line in lines):
        return None
    from analyzer.intake.recognise import text_parser

    before, after = text_parser("\n".join(lines)), text_parser("\n".join(line[depth:] for line in lines))
    if after is None or after.kind == "notes" or (before is not None and before.kind != "notes"):
        return None  # what reads as it stands keeps its shape
    return Transport("indentation", lambda text: Unwrapped(text[depth:]) if text.startswith(blanks) else None)


def _constant_prefix(lines: list[str]) -> Transport | None:
    """One and the same text before every record (VLLM_LOGGING_PREFIX, a host name that a collector put there)."""
    if len(lines) < 3:
        return None
    ordered = sorted(lines[:60])
    one, two = ordered[len(ordered) // 10], ordered[len(ordered) - 1 - len(ordered) // 10]
    length = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    # Up to the last mark of punctuation with blanks after it: never into a word or a reading that all records share.
    found = re.match(r"(.{0,80}[\]\)|>:-] {0,4})", one[:min(length, 84)])
    prefix = found[1] if found else ""
    if len(prefix.strip()) < 2 or sum(line.startswith(prefix) for line in lines) < 0.8 * len(lines):
        return None
    from analyzer.intake.recognise import text_parser

    if text_parser("\n".join(lines)) is not None:
        return None
    if text_parser("\n".join(line.removeprefix(prefix) for line in lines)) is None:
        return None
    return Transport("constant prefix", lambda text: Unwrapped(text[len(prefix):]) if text.startswith(prefix) else None)
