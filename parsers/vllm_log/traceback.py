"""Python tracebacks put together from log lines.

Lines reach this module without their prefix and with the speaker's key, so that interleaved ranks, records in which
every line repeats the prefix, and pastes that lost it are all the same case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from parsers.pattern import lazy

Key = tuple[object, ...]
Where = TypeVar("Where")
"""Whatever the caller wants to be told about the place of the last frame."""

MARKS = (
    "Traceback (most recent call last)", "  File \"", "Error", "Exception", "KeyboardInterrupt", "SystemExit",
    "StopIteration", "TimeoutExpired", "queue.Empty", "queue.Full", "OfflineModeIsEnabled", "zmq.Again",
    "During handling of the above exception", "The above exception was the direct cause", "terminate called",
    "what():",
)  # fmt: skip
"""Byte strings one of which every line of a traceback that matters holds."""

_MOST_FRAMES = 60
_GAP = 500
"""Lines after which an unfinished traceback is given up: the rest was never written or not passed on."""

_ADOPT = 4
"""Lines within which a line without prefix ends the one traceback open under a prefix: pastes lose prefixes."""

_HEAD = "Traceback (most recent call last)"
_FRAME = lazy(r'\s{0,40}(?:\| {0,8})?File "([^"]{1,400})", line (\d{1,7})(?:, in (.{1,200}))?$')
_FINAL = lazy(r"(?P<type>(?:[A-Za-z_]\w{0,80}\.){0,12}[A-Za-z_]\w{0,120})(?::(?: (?P<message>.*))?)?$", re.DOTALL)
_SUFFIX = lazy(
    r"(?:Error|Exception|Interrupt|Exit|Iteration|Expired|Group|Empty|Full|Timeout|Failure|Fault|Cancelled|IsEnabled|"
    r"Again|NotFound|Unavailable|Refused|Closed|Overflow|Died|Dead)$"
)
_LOOSE = lazy(r"(?:E {3,}| {0,8}- | {0,8}(?:\| {0,8})?)")
_NOT_TYPES = frozenset(
    {"Error", "Exception", "Warning", "Note", "Hint", "Process", "Command", "Output", "Info", "Debug", "Failed",
     "Reason", "Exit"}
)  # fmt: skip
_THROWN = lazy(r"terminate called after throwing an instance of '([^']{1,200})'")
_WHAT = lazy(r"\s*what\(\): +(.*)")


@dataclass(slots=True)
class Raised:
    """One exception: `frames` outermost first as (function, file, line), `chained` the earlier ones, root first."""

    type: str
    message: str
    frames: list[tuple[str, str, int]]
    chained: list[dict[str, str]]

    def fields(self) -> dict[str, Any]:
        """As the event carries it; the innermost frames are kept when there are too many."""
        function, module = (self.frames[-1][0], self.frames[-1][1]) if self.frames else ("", "")
        return {
            "type": self.type, "message": self.message, "module": module, "function": function,
            "frames": self.frames[-_MOST_FRAMES:], "chained": self.chained,
        }  # fmt: skip


@dataclass(slots=True)
class _Open(Generic[Where]):
    indent: int
    seen: int
    where: Where
    frames: list[tuple[str, str, int]] = field(default_factory=list)
    chained: list[dict[str, str]] = field(default_factory=list)
    ended: bool = False
    linked: bool = False
    thrown: str = ""


class Tracebacks(Generic[Where]):
    """Assembles tracebacks per speaker. Memory: one open traceback a speaker, at most 512 speakers."""

    def __init__(self) -> None:
        self._open: dict[Key, _Open[Where]] = {}

    def take(self, key: Key, text: str, number: int, where: Where, *, loose: bool) -> tuple[bool, Raised | None]:
        """One line of `key` at line `number`: (is it part of a traceback, the exception that it completes).

        `loose` allows an exception line without a traceback (a paste cut down to its end). `where` is kept for
        `unfinished`.
        """
        current = self._open.get(key)
        if current is not None and number - current.seen > _GAP:
            del self._open[key]
            current = None
        if _HEAD in text:
            self._begin(key, text, number, where, current)
            return True, None
        if 'File "' in text and (frame := _FRAME.match(text)):
            if current is None or current.ended:
                current = self._begin(key, text, number, where, current)
                current.indent = max(0, current.indent - 2)
            current.seen, current.where = number, where
            current.frames.append((frame[3] or "", frame[1], int(frame[2])))
            if len(current.frames) > 4 * _MOST_FRAMES:  # endless recursion: the inner end is what matters
                del current.frames[: 2 * _MOST_FRAMES]
            return True, None
        if "()" in text or "terminate called" in text:
            raised = self._native(key, text, number, where)
            if raised is not None or "terminate called" in text:
                return True, raised
        if current is not None:
            part = self._continue(current, text, number)
            if part is not None:
                return part
        if not loose:
            return False, None
        said, raised = self._alone(text)
        return said, raised and (self._adopted(raised, number) or raised)

    def unfinished(self) -> list[tuple[Where, Raised]]:
        """Tracebacks whose last line never came: the place of their last frame, and the frames (no type)."""
        return [
            (one.where, Raised("", "", one.frames, list(one.chained)))
            for one in self._open.values()
            if one.frames and not one.ended
        ]

    def _adopted(self, raised: Raised, number: int) -> Raised | None:
        running = [one for one in self._open.values() if one.frames and not one.ended and number - one.seen <= _ADOPT]
        if len(running) != 1:
            return None
        return self._end(running[0], raised.type, raised.message, number)

    def _begin(self, key: Key, text: str, number: int, where: Where, before: _Open[Where] | None) -> _Open[Where]:
        indent = len(text) - len(text.lstrip(" |+"))
        fresh = _Open(indent, number, where)
        if before is not None and before.ended and before.linked:
            fresh.chained = before.chained
        if len(self._open) > 512:
            self._open.clear()
        self._open[key] = fresh
        return fresh

    def _continue(self, current: _Open[Where], text: str, number: int) -> tuple[bool, Raised | None] | None:
        stripped = text.strip(" |+\t")
        if "the above exception" in text or "The above exception was" in text:
            current.linked, current.seen = True, number
            return True, None
        if current.ended:
            return (True, None) if not stripped else None
        if not stripped or len(text) - len(text.lstrip(" |+")) > current.indent:
            current.seen = number
            return True, None
        final = _FINAL.match(stripped)
        if final is None or not _is_type(final["type"], final["message"], inside=bool(current.frames)):
            return None
        return True, self._end(current, final["type"], final["message"] or "", number)

    @staticmethod
    def _end(current: _Open[Where], name: str, message: str, number: int) -> Raised:
        raised = Raised(name, message, current.frames, list(current.chained))
        current.ended, current.linked, current.seen = True, False, number
        current.chained = [*current.chained, {"type": name, "message": message[:400]}][-16:]
        return raised

    def _native(self, key: Key, text: str, number: int, where: Where) -> Raised | None:
        """`terminate called after throwing an instance of 'c10::Error'`, then `  what():  ...` on a line of its own."""
        if thrown := _THROWN.search(text):
            self._begin(key, "", number, where, None).thrown = thrown[1]
            return None
        current = self._open.get(key)
        if current is not None and current.thrown and (said := _WHAT.match(text)):
            del self._open[key]
            return Raised(current.thrown, said[1], [], [])
        return None

    @staticmethod
    def _alone(text: str) -> tuple[bool, Raised | None]:
        if ":" not in text:
            return False, None
        start = _LOOSE.match(text)
        final = _FINAL.match(text, start.end() if start else 0)
        if final is None or not final["message"] or not _SUFFIX.search(final["type"]) or final["type"] in _NOT_TYPES:
            return False, None
        return True, Raised(final["type"], final["message"], [], [])


def _is_type(name: str, message: str | None, *, inside: bool) -> bool:
    """Whether an unindented line's head names an exception class, and is not a word of somebody else's line."""
    last = name.rpartition(".")[2]
    if last.isupper() or last in _NOT_TYPES:
        return last == "Failed" and inside and bool(message)  # pytest's own class
    if _SUFFIX.search(last):
        return True
    if not last[:1].isupper():
        return False
    return "." in name or (inside and bool(message) and last[1:].lower() != last[1:])


def is_final(text: str) -> bool:
    """Whether a line on its own is the last line of a traceback (`RuntimeError: ...`)."""
    final = _FINAL.match(text)
    return (
        final is not None
        and bool(final["message"])
        and bool(_SUFFIX.search(final["type"]))
        and final["type"] not in _NOT_TYPES
    )


def is_part(text: str) -> bool:
    """Whether a line is a traceback's head or one of its frames."""
    return text.lstrip(" |+").startswith(_HEAD) or _FRAME.match(text) is not None
