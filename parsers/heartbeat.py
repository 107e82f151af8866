"""Lines that a watching script writes at a steady pace: `date` in a loop, `ping -D`, an ssh or health probe, `uptime`.

Nobody's format, but of great worth when a host stops: the last beat says until when its timers and its disk worked, the
first failed probe since when it did not answer. A source counts as such a log when nearly all its lines begin with a
clock reading, the readings are evenly spaced, and the texts after them are a few alike.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from parsers.contract import Line, Trouble
from parsers.event import NOBODY, Event
from parsers.pattern import lazy
from parsers.stamp import ClockKind, Stamp
from parsers.wallclock import CTIME, ISO, ctime, iso

_EPOCH = lazy(r"\[?(1\d{9})(?:\.(\d{1,9}))?\]?(?=[ \t:,]|$)")
_TIME = lazy(r"(\d\d):(\d\d):(\d\d)(?=[ \t,]|$)")
_UPTIME = lazy(
    r"\s{0,2}(?P<time>\d\d:\d\d:\d\d) up (?:(?P<days>\d{1,5}) days?, {1,2})?"
    r"(?:(?P<hours>\d{1,2}):(?P<minutes>\d\d)|(?P<min>\d{1,2}) min),.{0,40}load average"
)
_FAILED = lazy(
    r"(?i)no answer|unreachable|tim(?:ed|e)[ -]?out|100% packet loss|no route|refused|not respond|\bdown\b"
    r"|\bfail(?:ed|ure)?\b|\blost\b|\bdead\b"
)
_PROGRAM = lazy(r"\b(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL)\b|kernel:|NVRM|systemd|%,")
FEWEST = 5
SLOWEST = 300.0
MOST_RUNS = 2_000


def reading(text: str) -> tuple[Stamp, str] | None:
    """The clock reading at the head of a line and what follows it, or None."""
    body = text.lstrip(" [(\"'")
    if (found := ISO.match(body)) and (stamp := iso(body)):
        return stamp, body[found.end() :]
    if (found := CTIME.match(body)) and (stamp := ctime(body)):
        return stamp, body[found.end() :]
    if found := _EPOCH.match(text):
        fraction = found[2] or ""
        value = int(found[1]) + (float(f"0.{fraction}") if fraction else 0.0)
        precision = 10.0 ** -len(fraction) if fraction else 1.0
        return Stamp(found[0].strip("[]"), ClockKind.UTC, value, precision), text[found.end() :]
    if (found := _TIME.match(body)) and int(found[1]) < 24 and int(found[2]) < 60 and int(found[3]) < 61:
        value = int(found[1]) * 3600.0 + int(found[2]) * 60 + int(found[3])
        return Stamp(found[0], ClockKind.WALL, value, 1.0, False, False), body[found.end() :]
    return None


def _shape(rest: str) -> str:
    return re.sub(r"[\d.]+", "#", rest.strip("]) \t|,:-"))[:16]


@dataclass(slots=True)
class _Run:
    """Beats of one answer without a gap."""

    failed: bool
    first: Stamp
    last: Stamp
    line: Line
    count: int = 1


class Heartbeat:
    """A TextParser of evenly stamped lines."""

    name: ClassVar[str] = "heartbeat"
    kind: ClassVar[str] = "heartbeat"
    marks: ClassVar[tuple[bytes, ...]] = ()

    def sniff(self, head: str) -> float:
        """See `parsers.contract.TextParser`."""
        lines = [line for line in head.split("\n")[:400] if line.strip()]
        if len(lines) < FEWEST or _PROGRAM.search("\n".join(lines[:50])):
            return 0.0
        found = [one for line in lines if (one := reading(line)) is not None]
        if len(found) < 0.8 * len(lines) or len(found) < FEWEST:
            return 0.0
        shapes = Counter(_shape(rest) for _, rest in found)
        if sum(count for _, count in shapes.most_common(3)) < 0.8 * len(found):
            return 0.0
        steps = [b[0].value - a[0].value for a, b in pairwise(found)]
        from statistics import median  # loads much, and few texts come this far

        pace = median(steps)
        even = sum(abs(step - pace) <= max(0.5 * pace, 1.0) for step in steps)
        return 0.6 if 0 < pace <= SLOWEST and even >= 0.8 * len(steps) else 0.0

    def claims(self, text: str) -> bool:
        """Only the line of `uptime`: any other beat is nobody's format."""
        return bool(_UPTIME.match(text))

    def read(self, lines: Iterable[Line], source: str) -> Iterator[Event | Trouble]:
        """A `heartbeat.beat` a run of beats of one answer; a `kernel_log.clock_pair` for `uptime`'s line."""
        runs: list[_Run] = []
        dated: Stamp | None = None
        for line in lines:
            if found := _UPTIME.match(line.text):
                yield self._uptime(found, line, source, dated)
                continue
            read = reading(line.text)
            stamp = read[0] if read else line.outer
            if stamp is None:
                continue
            dated = stamp
            failed = bool(_FAILED.search(line.text))
            gap = stamp.value - runs[-1].last.value if runs else 0.0
            if runs and runs[-1].failed == failed and 0 <= gap <= self._longest(runs[-1]):
                runs[-1].last, runs[-1].line = stamp, line
                runs[-1].count += 1
            elif len(runs) < MOST_RUNS:
                runs.append(_Run(failed, stamp, stamp, line))
            else:
                text = f"more than {MOST_RUNS} runs of beats: the rest is not read"
                yield Trouble(source, "limit", text, line.number)
                break
        if sum(run.count for run in runs) < FEWEST:
            return
        for index, run in enumerate(runs):
            ended = "cut" if index == len(runs) - 1 else "changed" if runs[index + 1].failed != run.failed else "gap"
            yield self._beat(run, source, ended)

    @staticmethod
    def _longest(run: _Run) -> float:
        """Three paces, at least 5 s, are no gap; before the pace is known, up to `SLOWEST`."""
        if run.count < 3:
            return SLOWEST
        return max(3 * (run.last.value - run.first.value) / (run.count - 1), 5.0)

    @staticmethod
    def _beat(run: _Run, source: str, ended: str) -> Event:
        pace = (run.last.value - run.first.value) / (run.count - 1) if run.count > 1 else None
        fields: dict[str, Any] = {
            "what": "unreachable" if run.failed else "alive", "first": run.first.text, "last": run.last.text,
            "seconds": round(run.last.value - run.first.value, 3), "count": run.count, "ended": ended,
        }
        if pace is not None:
            fields["period"] = round(pace, 3)
        return Event("heartbeat.beat", run.line.span(source), run.line.text, run.last, NOBODY, fields)

    @staticmethod
    def _uptime(found: re.Match[str], line: Line, source: str, dated: Stamp | None) -> Event:
        up = int(found["days"] or 0) * 86400.0 + int(found["hours"] or 0) * 3600.0 + int(
            found["minutes"] or found["min"] or 0) * 60.0
        hours, minutes, seconds = (int(part) for part in found["time"].split(":"))
        of_day = hours * 3600.0 + minutes * 60 + seconds
        stamp = line.outer or Stamp(found["time"], ClockKind.WALL, of_day, 1.0, False, False)
        if dated is not None and dated.date_known and abs(dated.value % 86400 - of_day) < 120:
            stamp = dated._replace(precision=120.0)  # `date` just above says the day, and perhaps the zone
        # uptime prints whole minutes
        fields = {"uptime": up, "uncertainty": 60.0}
        return Event("kernel_log.clock_pair", line.span(source), line.text, stamp, NOBODY, fields)

    def inspect(self, lines: Iterable[Line], source: str) -> dict[str, Any]:
        """`runs`: what, first, last, count, period, ended."""
        events = [item for item in self.read(lines, source) if isinstance(item, Event)]
        beats = [event for event in events if event.kind == "heartbeat.beat"]
        return {"runs": [event.fields | {"line": event.span.first_line} for event in beats]}


PARSER = Heartbeat()
