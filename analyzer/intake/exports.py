"""One JSON document that a log store gave out: Loki, CloudWatch, Google Cloud, Grafana. Its entries as lines.

Entries are decoded one by one, so a document that was cut keeps what came before. Shapes: Loki's query API
(`data.result[].values[] = ["ns", "line"]`) and Grafana's download; `aws logs get-log-events` / `filter-log-events`
(`events[]`), Logs Insights (`results[][] = {field, value}`); `gcloud logging read --format=json` (a list of LogEntry).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from analyzer.intake.collector import payload
from analyzer.intake.readings import epoch, instant
from analyzer.intake.transport import Unwrapped
from parsers.contract import Line
from parsers.pattern import lazy

LARGEST = 32 << 20
"""Bytes of a document that are read."""
_STARTS = (lazy(r'"values"\s{0,20}:\s{0,20}\['),
           lazy(r'"(?:events|results|entries|hits|logs)"\s{0,20}:\s{0,20}\['))
_HINT = lazy(r'"(?:textPayload|jsonPayload|ingestionTime|logStreamName|eventId|resultType|stream|values|@message'
                   r'|labels|line|message|_source|_raw|LogEntry|LogMessage|body)"')

_DOCUMENT = lazy(r'\[\s{0,40}[\[{"]|\{\s{0,40}"')


def is_export(head: str) -> bool:
    """Whether a text may be such a document, by its first characters."""
    start = head.lstrip("\ufeff \t\r\n")[:1]
    return start in ("[", "{") and _HINT.search(head[:65536]) is not None


def is_document(head: str) -> bool:
    """Whether a text is one JSON document (an export, a flight recorder's dump, py-spy's JSON), not a record a line:
    then a line may be as long as the document."""
    text = head.lstrip("\ufeff \t\r\n")
    return _DOCUMENT.match(text) is not None and not (text.startswith("{") and "\n{" in text)


def lines_in(physical: list[Line]) -> list[Line] | None:
    """The entries of a document, given as its physical lines, as lines in the order of time; None when it is no such
    document. A line's number is that of its entry in this order (many documents are one line long, and the newest entry
    often comes first); its offsets are those of the entry in the document."""
    text = "\n".join(line.text for line in physical)
    found: list[tuple[int, Unwrapped]] = []
    at = measured = 0
    for offset, entry in _entries(text):
        inner = _of(entry)
        if inner is not None:
            measured += len(text[at:offset].encode("utf-8", "backslashreplace"))
            at = offset
            found.append((measured, inner))
    if not found:
        return None
    stamps = [one.stamp.value for _, one in found if one.stamp is not None]
    # Log stores answer newest first unless asked otherwise; several streams follow one another.
    if len(stamps) == len(found) and any(a > b for a, b in pairwise(stamps)):
        newest_first = sum(a > b for a, b in pairwise(stamps)) * 2 > len(stamps)
        if newest_first:
            found.reverse()
        found.sort(key=lambda one: one[1].stamp.value if one[1].stamp is not None else 0.0)
    made: list[Line] = []
    for number, (offset, inner) in enumerate(found, 1):
        start = physical[0].start + offset
        made += (Line(number, start, start + len(inner.text), part.removesuffix("\r"), inner.stamp, inner.host)
                 for part in inner.text.split("\n"))
    return made


def _of(entry: Any) -> Unwrapped | None:
    if isinstance(entry, list):
        loki = len(entry) in (2, 3) and isinstance(entry[0], str) and isinstance(entry[1], str)
        if loki and (stamp := epoch(entry[0])):
            return Unwrapped(entry[1].rstrip("\n"), stamp)
        fields = {one.get("field"): one.get("value") for one in entry if isinstance(one, dict)}
        if isinstance(text := fields.get("@message"), str):
            return Unwrapped(text.rstrip("\n"), instant(fields.get("@timestamp")), fields.get("@logStream"))
        return None
    return payload(entry) if isinstance(entry, dict) else None


def _entries(text: str) -> Iterator[tuple[int, Any]]:
    """(offset, element) of every element of the arrays that hold entries."""
    stripped = text.lstrip("\ufeff \t\r\n")
    if stripped.startswith("["):
        yield from _elements(text, text.index("[") + 1)
        return
    for shape in _STARTS:
        at = 0
        seen = False
        while (found := shape.search(text, at)) is not None:
            at = found.end()
            for offset, element in _elements(text, at):
                seen, at = True, offset + 1
                yield offset, element
        if seen:
            return


_BETWEEN = lazy(r"[\s,]*")


def _elements(text: str, at: int) -> Iterator[tuple[int, Any]]:
    decoder = json.JSONDecoder()
    while True:
        found = _BETWEEN.match(text, at)
        at = found.end() if found else at
        if at >= len(text) or text[at] not in "[{":
            return
        try:
            element, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return  # cut, or no JSON from here on
        yield at, element
        at = end
