"""A server's log inside a systemd journal: text (`journalctl -o short…`, syslog files), JSON lines, export.

Kernel lines and those of the daemons that speak of the host stay as they are: the kernel log parser reads a journal's
own prefix. Only what a server wrote is taken out. Formats: journalctl(1) `--output`, systemd.journal-fields(7), the
Journal Export Format of systemd.io/JOURNAL_EXPORT_FORMATS.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from analyzer.intake.readings import epoch, instant
from analyzer.intake.transport import DEPTH, Fold, Transport, Unwrapped, carrier, inside
from parsers.contract import Line
from parsers.pattern import lazy
from parsers.stamp import Stamp

HOST_WRITERS = frozenset({"kernel", "kern", "nv-fabricmanager", "nvidia-fabricmanager", "nvidia-persistenced", "dcgm",
                          "nv-hostengine", "rsyslogd", "sudo", "sshd", "CRON", "cron"})
_PREFIX = lazy(
    r"(?:<\d{1,3}>)?"
    r"(?:\w{3} {1,2}\d{1,2} (?:\d{4} )?\d\d:\d\d:\d\d(?:\.\d{1,6})?"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?"
    r"|\w{3} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})? \w{3,5}"
    r"|\d{10}\.\d{6}|\[ {0,8}\d{1,9}\.\d{6}\]) "
    r"(?:([\w.-]{1,80}) )?([\w./@:()-]{1,80}?)(?:\[(\d{1,10})\])?: ?")

_OWN_FRONT = lazy(
    r"(?:<\d{1,3}>)?(?:(?:kern|user|daemon|syslog|local\d) {0,8}:\w{3,6} {0,8}: ?)?"
    r"(?:\[(?: {0,8}\d{1,9}\.\d{6}|\w{3} \w{3} {1,2}\d{1,2} \d\d:|\w{3} {1,2}\d{1,2} \d{4} \d\d:)"
    r"|\w{3} {1,2}\d{1,2} \d\d:\d\d:\d\d |\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{6}|\d{1,3},\d{1,12},\d{1,15},)")


def _entry(line: str) -> Any:
    """The front of a journal's line. Behind seconds since boot a program must show its pid (`journalctl -o
    short-monotonic` does): `[ 36.07] usb 1-1: …` is the kernel's own line."""
    found = _PREFIX.match(line)
    return None if found is None or (found[3] is None and line.lstrip().startswith("[")) else found


def is_host_writer(writer: str) -> bool:
    """Whether what this program writes to a journal is about the host, not a server's log."""
    return writer in HOST_WRITERS or writer.startswith(("systemd", "kernel"))


def _reading(front: str) -> Stamp | None:
    from analyzer.intake.readings import reading_of

    return epoch(front.split(".", 1)[0]) if front[:10].isdecimal() and front[10:11] == "." else reading_of(front)


def _strip_for(writers: frozenset[str]) -> Any:
    def strip(text: str) -> Unwrapped | None:
        found = _entry(text)
        if found is None or found[2] not in writers:
            return None
        return Unwrapped(text[found.end():], _reading(text[:found.end()]), found[1], stream=f"{found[2]}[{found[3]}]")

    return strip


def journal_of(lines: list[str]) -> Transport | None:
    """The journal around the lines of a head, bound to the writers whose payload a server-side parser claims."""
    if sum(1 for line in lines[:50] if line.startswith(("__CURSOR=", "__REALTIME_TIMESTAMP="))) and \
            any(line.startswith("MESSAGE=") for line in lines):
        kinds = {line for line in lines if line.startswith(("_TRANSPORT=", "SYSLOG_IDENTIFIER="))}
        if kinds and all(line.split("=", 1)[1] == "kernel" for line in kinds):
            return None  # the kernel log parser reads an export of kernel lines
        return Transport("journal export", lambda text: None, fold=Export, journal=True)
    written: dict[str, list[str]] = {}
    for line in lines:
        found = _entry(line)
        if found is not None and not is_host_writer(found[2]) and len(mine := written.setdefault(found[2], [])) < 40:
            mine.append(line[found.end():])
    if not written:
        return None
    from analyzer.intake.recognise import text_parsers

    # The host's own messages stand in a journal without a front. One that has a front was written by another program
    # into its own output (`dmesg -w` in a container): there the journal is only the transport.
    parsers = text_parsers()

    def is_a_servers(texts: list[str], depth: int = 0) -> bool:
        if any(one.claims(text) for text in texts for one in parsers
               if one.kind not in ("kernel_log", "fabric") or _OWN_FRONT.match(text)):
            return True
        # `docker compose up` or `srun` as a unit: its journal carries what it carries.
        within = carrier(texts) if depth < DEPTH - 1 else None
        return within is not None and is_a_servers(inside(within, texts), depth + 1)

    chosen = frozenset(writer for writer, payloads in written.items() if is_a_servers(payloads))
    return Transport("journal", _strip_for(chosen), journal=True) if chosen else None


def message_of(value: Any) -> str | None:
    """A MESSAGE field: text, a list of byte values, the first of several; None when the collector dropped it."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(one, int) and 0 <= one < 256 for one in value):
        return bytes(value).decode("utf-8", "backslashreplace")
    return message_of(value[0]) if isinstance(value, list) and value else None


def from_entry(entry: dict[str, Any]) -> Unwrapped | None:
    """The payload of one journal entry that a server wrote; None for entries about the host."""
    writer = str(entry.get("SYSLOG_IDENTIFIER") or entry.get("_COMM") or "")
    message = message_of(entry.get("MESSAGE"))
    if message is None or entry.get("_TRANSPORT") == "kernel" or is_host_writer(writer):
        return None
    host = entry.get("_HOSTNAME")
    partial = str(entry.get("CONTAINER_PARTIAL_MESSAGE", "")).lower() == "true"
    return Unwrapped(message, instant(entry.get("_SOURCE_REALTIME_TIMESTAMP") or entry.get("__REALTIME_TIMESTAMP")),
                     host if isinstance(host, str) else None, partial, f"{writer}[{entry.get('_PID', '')}]")


class Export(Fold):
    """Entries of the export format (`FIELD=value` lines, a blank line between) as one line each."""

    LIMIT = 256

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}
        self._at: Line | None = None

    def lines(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Payload lines; what is no field is handed on as it is."""
        for line in lines:
            text = line.text
            if not text:
                yield from self.finish()
                continue
            name, found, value = text.partition("=")
            if not found or not name.isascii() or not name.replace("_", "A").isalnum() or name.upper() != name:
                if self._at is None:
                    yield line
                continue
            if name == "__CURSOR":
                yield from self.finish()
            if self._at is None or name == "MESSAGE":
                self._at = line
            if len(self._fields) < self.LIMIT:
                self._fields[name] = value

    def finish(self) -> Iterator[Line]:
        """The entry that is being collected, if it has a message."""
        at, entry = self._at, self._fields
        self._at, self._fields = None, {}
        if at is None or "MESSAGE" not in entry:
            return
        if (inner := from_entry(dict(entry))) is not None:
            yield Line(at.number, at.start, at.end, inner.text, inner.stamp, inner.host)
            return
        uptime = entry.get("_SOURCE_MONOTONIC_TIMESTAMP") or entry.get("__MONOTONIC_TIMESTAMP", "")
        stamp = instant(entry.get("__REALTIME_TIMESTAMP"))
        writer = entry.get("SYSLOG_IDENTIFIER", "")
        if entry.get("_TRANSPORT") == "kernel" and uptime.isdecimal():
            text = f"[{int(uptime) / 1e6:12.6f}] {entry['MESSAGE']}"
        else:
            text = f"{entry.get('_HOSTNAME', 'localhost')} {writer}[{entry.get('_PID', '0')}]: {entry['MESSAGE']}"
        yield Line(at.number, at.start, at.end, text, stamp, entry.get("_HOSTNAME"))
