"""NVIDIA Fabric Manager: its own log file and its lines in the journal.

`/var/log/fabricmanager.log`: `[Mon DD YYYY HH:MM:SS] [LEVEL] [tid N] text`, entries may go on in lines without a
head. Journal: `nv-fabricmanager[pid]: text`, the start script and systemd's word about the unit. Texts: Fabric Manager
user guide; routine INFO lines (multicast teams, inband messages) yield nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from parsers import xid_catalogue
from parsers.contract import Line, Trouble
from parsers.event import NOBODY, Actor, Event
from parsers.kernel_log import clock
from parsers.kernel_log.prefix import peel
from parsers.pattern import lazy
from parsers.stamp import Stamp

_HEAD = lazy(
    r"\[(\w{3,4}) (\d{1,2}) (\d{4}) (\d\d:\d\d:\d\d)\] \[(\w{4,9})\] \[tid (\d{1,10})\] ?(.*)", re.DOTALL
)
_SXID = lazy(
    r"detected NVSwitch (non-fatal|fatal) error (\d{4,6})(?: on fid (\d{1,4}))?(?: on"
    r" NVSwitch)? ?pci bus id ([0-9a-fA-F:.]{7,20})"
    r"(?: physical id (\d{1,4}))?(?: port (\d{1,4}))?"
)
_WRITER = lazy(r"nv-fabricmanager|nvidia-fabricmanager")
_MISMATCH = lazy(r"version.{0,120}(?:doesn't|does not|don't|not) match|version mismatch", re.IGNORECASE)
_CONFIGURED = lazy(r"Successfully configured all|Connected to \d{1,4} nodes?\.")
_BAD = lazy(r"fail|error|fatal|not running|abort|unable|timed? ?out|exited", re.IGNORECASE)
_SEVERE = frozenset({"ERROR", "CRITICAL", "FATAL", "WARNING", "WARN"})


MAX_JOINED = 8
"""Lines without a head that are joined to an entry at most."""


def is_writer(writer: str | None) -> bool:
    """Whether a syslog identifier is the fabric manager's or its start script's."""
    return bool(writer and _WRITER.match(writer))


def judge(message: str, level: str | None, writer: str | None = None) -> dict[str, Any] | None:
    """The fields of a telling fabric-manager line (level, message, what); None for a routine one."""
    what: str | None = None
    if "NV_WARN_NOTHING_TO_DO" in message or "Nothing to do" in message:
        what = "nothing_to_do"
    elif _MISMATCH.search(message):
        what = "version_mismatch"
    elif _CONFIGURED.search(message):
        what = "configured"
    elif (
        level in _SEVERE
        or (level is None and _BAD.search(message) and "code=exited, status=0" not in message)
        or (level is None and "Failed to start" in message)
    ):
        what = "error"
    if what is None:
        return None
    return {
        "level": level or ("ERROR" if what in ("error", "version_mismatch") else "INFO"),
        "message": message.strip(),
        "what": what,
    }


class FabricManager:
    """Reads the fabric manager's log file and its journal."""

    name: ClassVar[str] = "fabric_manager"
    kind: ClassVar[str] = "fabric"
    marks: ClassVar[tuple[bytes, ...]] = (
        b"[ERROR]",
        b"[CRITICAL]",
        b"[FATAL]",
        b"[WARNING]",
        b"fabricmanager",
        b"NOTHING_TO_DO",
        b"match",
        b"onfigured",
        b"NVSwitch",
    )

    def sniff(self, head: str) -> float:
        """By the share of lines with the log's own head, or of journal lines of the unit."""
        own = unit = other = 0
        for text in head.split("\n")[:400]:
            if not text.strip():
                continue
            if _HEAD.match(text):
                own += 1
            elif self._unit_line(text) is not None:
                unit += 1
            elif not own:  # an entry may go on in lines without a head
                other += 1
        if own and own > other:
            return 0.97
        if unit and unit >= other:
            return 0.9
        return 0.3 if own else 0.0

    def claims(self, text: str) -> bool:
        """A line with the log's own head, or a journal line of the fabric manager."""
        return bool(_HEAD.match(text)) or self._unit_line(text) is not None

    def _unit_line(self, text: str) -> tuple[str, Stamp | None, str | None, str] | None:
        """(message, stamp, host, writer) of a journal line about the fabric manager."""
        prefix = peel(text) if "abric" in text else None
        if prefix is None or not prefix.writer:
            return None
        if is_writer(prefix.writer) or (prefix.writer == "systemd" and "nvidia-fabricmanager" in prefix.message):
            return prefix.message, prefix.stamp, prefix.host, prefix.writer
        return None

    def _entries(self, lines: Iterable[Line]) -> Iterator[tuple[Line, str, str | None, Stamp | None, str | None]]:
        """(line, message, level, stamp, host) of each entry, its continuation lines joined."""
        held: tuple[Line, str, str | None, Stamp | None, str | None] | None = None
        for line in lines:
            text = line.text
            if found := _HEAD.match(text):
                if held:
                    yield held
                month, day, year, time, level, _, message = found.groups()
                stamp = clock.wall(f"{month} {day} {year} {time}", month, day, time, year=year)
                held = (line, message, level.upper(), stamp, line.host)
            elif (unit := self._unit_line(text)) is not None:
                if held:
                    yield held
                message, stamp, host, _ = unit
                held = (line, message, None, stamp or line.outer, host or line.host)
            elif held and text.strip() and held[1].count("\n") < MAX_JOINED and peel(text) is None:
                held = (held[0], held[1] + "\n" + text, *held[2:])
        if held:
            yield held

    def read(self, lines: Iterable[Line], source: str) -> Iterator[Event | Trouble]:
        """Errors, warnings and the word that the fabric is configured; an NVSwitch error also as an SXid."""
        for line, message, level, stamp, host in self._entries(lines):
            actor = Actor(host=host) if host else NOBODY
            if found := _SXID.search(message):
                entry = xid_catalogue.lookup_sxid(int(found[2]))
                fields: dict[str, Any] = {
                    "code": entry.code,
                    "mnemonic": entry.mnemonic,
                    "pci": found[4].lower(),
                    "fatal": found[1] == "fatal",
                    "message": message.strip(),
                    "class": entry.fatality,
                }
                if found[6]:
                    fields["link"] = int(found[6])
                yield Event("kernel_log.sxid", line.span(source), line.text, stamp, actor, fields)
            if judged := judge(message, level):
                yield Event("fabric.manager", line.span(source), line.text, stamp, actor, judged)

    def inspect(self, lines: Iterable[Line], source: str) -> dict[str, Any]:
        """`{"lines", "levels": {level: entries}, "entries": [telling ones]}`."""
        levels: dict[str, int] = {}
        entries: list[dict[str, Any]] = []
        count = 0

        def counted() -> Iterator[Line]:
            nonlocal count
            for line in lines:
                count += 1
                yield line

        for line, message, level, stamp, _ in self._entries(counted()):
            levels[level or ""] = levels.get(level or "", 0) + 1
            if judged := judge(message, level):
                entries.append({"time": stamp.text if stamp else None, "line": line.number, **judged})
        return {"lines": count, "levels": levels, "entries": entries}


PARSER = FabricManager()
