"""One record shape for everything an inference server writes to its log.

A server log is written by many hands: vLLM's logger (with or without a process decoration), uvicorn, Python's own
stderr, torch's C++ logger, FlashInfer's logger, SGLang's logger, JSON formatters. `split` turns one physical line into
the records on it (a progress bar and a log record can share a line), all in one shape. The shapes are those of
vLLM 0.6 to 0.33, read from its logging formatter, of torch's `c10/util/Logging.cpp`, of FlashInfer's `jit/core.py`
logger and of SGLang's `configure_logger`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from parsers.event import NOBODY, Actor
from parsers.pattern import lazy
from parsers.stamp import ClockKind, Stamp

LONGEST = 65_536
"""Characters of one physical line that are looked at."""

ALARMING = frozenset({"WARNING", "ERROR", "CRITICAL"})
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_ALIASES = {
    "W": "WARNING", "I": "INFO", "E": "ERROR", "F": "CRITICAL", "D": "DEBUG", "C": "CRITICAL", "V": "DEBUG",
    "WARN": "WARNING", "FATAL": "CRITICAL", "TRACE": "DEBUG",
}  # fmt: skip

_BOLD = lazy(r"(?<![\w(,*])\*\*(?=[^\s*])([^*]{1,80})(?<=\S)\*\*(?![\w*])")
_ANSI = lazy(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-Z\\-_]|\^\[\[[0-9;]{1,12}m")

_LEVEL = r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL|^[A-Z]{1,7})"
_FILE = r"(?P<file>[\w./<>-]{1,200}\.pyx?):(?P<line>\d{1,6})"
CORE = lazy(rf"{_LEVEL} (?P<when>\d\d-\d\d \d\d:\d\d:\d\d) \[?{_FILE}\] ?")
# Without a time: a logging format that people set to make output comparable.
_TIMELESS = lazy(rf"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) \[{_FILE}\] ?")
DECORATION = lazy(
    r"\((?:(?P<proc>[A-Za-z][\w.:\-]{0,120}),? )?(?:rank=(?P<rank>\d{1,6}) )?pid=(?P<pid>\d{1,10})"
    r"(?:, ip=(?P<ip>[^)\s]{1,64}))?\) ?"
)
# What transports and people put in front: compose (`name-1  | `), kubectl (`[pod/x/y] `), a host tag, a bullet.
_FRONT = r"(?:[\w./\-]{0,80} *\| ?|\[[\w./:@\-]{1,120}\] ?|\[S\] )?"
_LEAD = lazy(rf"\s{{0,8}}{_FRONT}(?=\([A-Za-z]|\(pid=)")
_PIPE = lazy(r"[\w.\-]{0,80} *\| (?!\d+/\d)")
_RANK = lazy(r"\[rank(\d{1,6})\]: ?")
_UVICORN = lazy(r"(TRACE|DEBUG|INFO|WARNING|ERROR|CRITICAL): {2,9}(?P<message>.*)")
_CPP = lazy(
    r"\[(?P<level>[VDIWEFC])(?:(?P<date>\d{3,4}) (?P<time>\d\d:\d\d:\d\d(?:\.\d{1,9})?))? (?:\d+ )?"
    r"(?P<file>[\w./\-]{1,200}\.(?:cpp|cc|cu|h|hpp|cxx)):(?P<line>\d{1,6})\] ?"
)
_GLOG = lazy(
    r"(?P<level>[VDIWEFC])(?P<date>\d{4}) (?P<time>\d\d:\d\d:\d\d\.\d{1,9}) +(?P<pid>\d{1,10}) "
    r"(?P<file>[\w./\-<>]{1,200}):(?P<line>\d{1,6})\] ?"
)
_LOGGING = lazy(
    r"(?P<when>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[,.]\d{1,6})?) (?:-|\|) (?:(?P<name>[\w.\-]{1,80}) - )?"
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL|WARN) {0,4}(?:-|\|) "
    r"(?:(?P<file>[\w./\-]{1,200}\.py):(?P<line>\d{1,6}) - )?"
    r"(?:(?P<logger>(?![\w.]{1,80}(?:Error|Exception|Interrupt|Exit): )[A-Za-z][\w.]{1,80}): )?"
)
_STREAM = lazy(r"(?:stderr|stdout) \| ?")
# Dynamo's workers print vLLM's and SGLang's records through Rust's tracing format.
_TRACING = lazy(
    r"(?P<when>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z) {1,4}(?P<level>TRACE|DEBUG|INFO|WARN|WARNING|ERROR) "
    r"(?P<name>[A-Za-z_][\w.:]{0,120}): "
)
_STAMPED = lazy(
    r"\[(?P<when>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[,.]\d{1,6})?)(?P<ranks>(?: [A-Z]{1,6}\d{1,4}){0,6})"
    r"(?: [\w.]{1,60}\.py:\d{1,6})?\] "
)
_TRTLLM = lazy(
    r"\[(?P<when>\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d)\] \[TRT-LLM\] (?:\[RANK (?P<rank>\d+)\] ?)?\[(?P<level>[VDIWEF])\] ?"
)
_TRTLLM_CPP = lazy(r"\[TensorRT-LLM\]\[(?P<level>[A-Z]{4,8})\] ?(?:\[RANK (?P<rank>\d+)\] ?)?")
_BASIC = lazy(r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL):(?P<name>[A-Za-z_][\w.]{0,80}):(?P<message>.*)")
_NAMED = lazy(r"(?P<name>LMCache|Mooncake|NIXL) (?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL): ")
_DATE = lazy(r"(?:(\d{4})-)?(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?")


@dataclass(slots=True)
class Record:
    """What one writer said.

    `writer` is vllm, json, logging, uvicorn, torch, stamped (SGLang), trtllm or bare (no log prefix at all); `level`
    is a Python level name or "" where none was written; `module` the base name or path of the file that logged it, or
    the logger's name; `when` the time as written.
    """

    writer: str
    message: str
    level: str = ""
    module: str = ""
    module_line: int = 0
    when: str = ""
    process: str = ""
    pid: int | None = None
    rank: int | None = None
    host: str | None = None

    @property
    def speaker(self) -> tuple[str, int | None, int | None]:
        """Whose text this is, for what has to be put together from many lines."""
        return self.process, self.pid, self.rank

    def actor(self) -> Actor:
        """The speaker as an event names it."""
        if not self.process and self.pid is None and self.rank is None and self.host is None:
            return NOBODY
        return Actor(self.process or None, self.pid, self.rank, None, self.host)

    def stamp(self) -> Stamp | None:
        """The time as written, or None."""
        return read_stamp(self.when) if self.when else None


def read_stamp(text: str) -> Stamp | None:
    """`11-30 20:04:27` (no year), `2026-11-30 20:04:27,123`, with or without a zone; None for anything else."""
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        moment = datetime(int(year or 1972), int(month), int(day), int(hour), int(minute), int(second), tzinfo=UTC)
    except ValueError:
        return None
    value = moment.timestamp() + (float(f"0.{fraction}") if fraction else 0.0)
    precision = 10.0 ** -len(fraction) if fraction else 1.0
    if zone:
        if zone != "Z":
            sign = -1 if zone[0] == "-" else 1
            value -= sign * (int(zone[1:3]) * 3600 + int(zone[-2:]) * 60)
        return Stamp(text, ClockKind.UTC, value, precision)
    return Stamp(text, ClockKind.WALL, value, precision, year_known=year is not None)


def plain(text: str) -> str:
    """`text` without colour codes (also those that a paste turned into `^[[36m`) and without a paste's **bold**."""
    if "**" in text:
        text = _BOLD.sub(r"\1", text)
    return _ANSI.sub("", text) if "\x1b" in text or "^[[" in text else text


def split(text: str) -> list[Record]:
    """The records on one physical line, in order. Never empty unless the line is blank."""
    if len(text) > LONGEST:
        text = text[:LONGEST]
    text = plain(text).rstrip()
    if ".py" in text:
        found = CORE.search(text) or (_TIMELESS.match(_undecorated(text)) and _TIMELESS.search(text))
        if found:
            return _around(text, found)
    if "levelname" in text or '"level"' in text or '"message"' in text:
        record = _from_json(text)
        if record is not None:
            return [record]
    return list(_bare(text))


def _undecorated(text: str) -> str:
    lead = _LEAD.match(text)
    at = lead.end() if lead else 0
    while found := DECORATION.match(text, at):
        at = found.end()
    return text[at:]


def _around(text: str, found: re.Match[str]) -> list[Record]:
    """The vLLM record at `found`, and what is glued to it on either side."""
    parts = found.groupdict()
    before, message = text[: found.start()], text[found.end() :]
    record = Record(
        "vllm", message, _whole_level(parts["level"]), parts["file"], int(parts["line"]), parts.get("when") or ""
    )
    left = _name_speaker(record, before)
    records = [record]
    if len(left) > 40 or "%" in left:  # a bar or an unterminated line, not just somebody's prefix
        records[:0] = _bare(left)
    if "\r" in message:
        record.message, _, rest = message.partition("\r")
        for piece in _bare(rest):
            if not piece.process:
                piece.process, piece.pid, piece.rank = record.process, record.pid, record.rank
            records.append(piece)
    return records


def _whole_level(level: str) -> str:
    """A level whose head was cut off by the paste (`NING`) is completed where only one level ends so."""
    if level in _LEVELS:
        return level
    ends = [known for known in _LEVELS if known.endswith(level)]
    return ends[0] if len(ends) == 1 else ""


def _name_speaker(record: Record, before: str) -> str:
    """Sets who speaks from the decorations in `before` (the last one is the speaker); returns what is left over."""
    if "pid=" not in before:
        return before.strip()
    found = list(DECORATION.finditer(before))
    if not found:
        return before.strip()
    _decorate(record, found[-1])
    return DECORATION.sub("", before).strip()


def _decorate(record: Record, found: re.Match[str]) -> None:
    record.process = found["proc"] or record.process
    record.pid = int(found["pid"])
    record.host = found["ip"] or record.host
    if found["rank"]:
        record.rank = int(found["rank"])


def _bare(text: str) -> Iterator[Record]:
    """Records of the writers that leave no vLLM prefix; a carriage return ends a piece (progress bars)."""
    speaker = Record("bare", "")
    for piece in text.split("\r") if "\r" in text else (text,):
        at = 0
        if "pid=" in piece:
            lead = _LEAD.match(piece)
            at = lead.end() if lead else 0
            while found := DECORATION.match(piece, at):
                _decorate(speaker, found)
                at = found.end()
        rest = piece[at:].rstrip()
        if not rest.strip():
            continue
        for record in _written(rest):
            if not record.process:
                record.process = speaker.process
            record.pid = speaker.pid if record.pid is None else record.pid
            record.rank = speaker.rank if record.rank is None else record.rank
            record.host = speaker.host
            yield record


def _written(text: str) -> Iterator[Record]:
    """One piece without decoration, by the writer whose prefix it has; glued prefixes give two records."""
    if "|" in text and (pipe := _PIPE.match(text.lstrip())) and "%" not in text[: text.index("|")]:
        text = text.lstrip()[pipe.end() :]
    rank: int | None = None
    if text.startswith("[rank") and (found := _RANK.match(text)):
        rank, text = int(found[1]), text[found.end() :]
    for record in _by_prefix(text):
        record.rank = rank if record.rank is None else record.rank
        yield record


def _by_prefix(text: str) -> Iterator[Record]:
    found: re.Match[str] | None
    if "] " in text or text.endswith("]"):
        if "[20" in text and (found := _STAMPED.search(text)):
            yield from _glued(text, found)
            yield _stamped(text, found)
            return
        if ".c" in text or ".h" in text or ".cu" in text:
            found = _CPP.search(text, 0, 400)
            if found:
                yield from _glued(text, found)
                yield _torch(text, found)
                return
        if "RT-LLM" in text and (found := _TRTLLM.search(text) or _TRTLLM_CPP.search(text)):
            yield from _glued(text, found)
            yield _tensorrt(text, found)
            return
        if found := _GLOG.match(text):
            yield _torch(text, found)
            return
    if text[:2] == "20" and (found := _TRACING.match(text)):
        level = _ALIASES.get(found["level"], found["level"])
        yield Record("logging", text[found.end() :], level, found["name"], when=found["when"])
        return
    if (" - " in text or " | " in text) and (found := _LOGGING.search(text, 0, 4000)):
        yield from _glued(text, found)
        module = found["file"] or found["logger"] or found["name"] or ""
        message = text[found.end() :]
        if "|" in message[:12] and (stream := _STREAM.match(message)):
            message = message[stream.end() :]
        yield Record("logging", message, _ALIASES.get(found["level"], found["level"]), module,
                     int(found["line"] or 0), found["when"].replace("T", " "))  # fmt: skip
        return
    if text[:1] in "TDIWEC":
        if found := _UVICORN.match(text):
            yield Record("uvicorn", found["message"], _ALIASES.get(found[1], found[1]))
            return
        if found := _BASIC.match(text):
            yield Record("logging", found["message"].lstrip(), found["level"], found["name"])
            return
    if text[:1] in "LMN" and (found := _NAMED.match(text)):
        yield Record("logging", text[found.end() :], found["level"], found["name"])
        return
    yield Record("bare", text)


def _glued(text: str, found: re.Match[str]) -> Iterator[Record]:
    before = text[: found.start()].rstrip()
    if before:
        yield Record("bare", before)


def _stamped(text: str, found: re.Match[str]) -> Record:
    """SGLang: `[2026-06-07 12:03:27 TP0] message`; the message can itself carry a uvicorn or named level."""
    message = text[found.end() :]
    record = Record("stamped", message, when=found["when"], process="_".join(found["ranks"].split()))
    if inner := _UVICORN.match(message):
        record.level, record.message = _ALIASES.get(inner[1], inner[1]), inner["message"]
    elif inner := _NAMED.match(message):
        record.level, record.module, record.message = inner["level"], inner["name"], message[inner.end() :]
    return record


def _torch(text: str, found: re.Match[str]) -> Record:
    """torch C++ (`[W1130 20:07:21.934316880 utils.cpp:68] ..`, month not padded), Python (`W1130 20:23:46.684 ..`)."""
    date, time = found["date"], found["time"]
    when = f"{int(date[:-2]):02d}-{date[-2:]} {time}" if date else ""
    record = Record("torch", text[found.end() :], _ALIASES[found["level"]], found["file"], int(found["line"]), when)
    if "pid" in found.groupdict():
        record.pid = int(found["pid"])
    return record


def _tensorrt(text: str, found: re.Match[str]) -> Record:
    parts = found.groupdict()
    when = parts.get("when") or ""
    if when:  # MM/DD/YYYY-HH:MM:SS
        when = f"{when[6:10]}-{when[0:2]}-{when[3:5]} {when[11:]}"
    level = _ALIASES.get(parts["level"], parts["level"])
    return Record("trtllm", text[found.end() :], level, when=when, rank=int(parts["rank"]) if parts["rank"] else None)


def _from_json(text: str) -> Record | None:
    """A line of vLLM's JSON formatter (0.31+), or of a formatter with the usual other key names."""
    at = text.find("{")
    if at < 0 or not text.endswith("}"):
        return None
    try:
        row = json.loads(text[at:])
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict):
        return None
    level = str(row.get("levelname") or row.get("level") or row.get("severity") or "").upper()
    message = row.get("message", row.get("msg", row.get("event")))
    if not level or not isinstance(message, str):
        return None
    pid = row.get("process", row.get("pid"))
    when = str(row.get("asctime") or row.get("timestamp") or row.get("time") or row.get("ts") or "")
    for key in ("exc_info", "exc_text", "exception", "stack"):
        if isinstance(row.get(key), str):
            message = f"{message}\n{row[key]}"
    return Record(
        "json", message, _ALIASES.get(level, level), str(row.get("name") or row.get("logger") or ""),
        int(row["lineno"]) if isinstance(row.get("lineno"), int) else 0, when.replace("T", " "),
        str(row.get("vllm_process_name") or row.get("processName") or ""), pid if isinstance(pid, int) else None,
    )  # fmt: skip
