"""PyTorch's NCCL flight recorder (`TORCH_NCCL_TRACE_BUFFER_SIZE`, `torch.distributed` debug dumps): JSON and pickle.

A dump holds, for one rank, the collectives of each process group: name, sequence number, state (`scheduled`,
`started`, `completed`), creation time. Fields: PyTorch's tools/flight_recorder/components/types.py. A dump does not say
which rank wrote it: that stands in the file's name only (`nccl_trace_rank_3`). Comparing ranks is not done here.

Pickles go through `plain_pickle`, which loads nothing but plain data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, ClassVar

from parsers.contract import Line, Trouble
from parsers.event import Actor, Event, fact
from parsers.pattern import lazy
from parsers.span import SourceSpan
from parsers.stamp import ClockKind, Stamp

MAX_BYTES = 64 * 1024 * 1024
MAX_NESTING = 64
MAX_ENTRIES = 200_000

RANK = lazy(r"rank[_-]?(?P<rank>\d{1,6})(?!\d)", re.IGNORECASE)
OPENING = lazy(r'\s*\{\s*"(?:version|pg_config|entries|nccl_comm_state|comm_lib_version|pg_status)"\s*:')
RECORD = lazy(r'\s*"(?P<key>record_id|profiling_name|state)"\s*:')


def _stamp(nanoseconds: object) -> Stamp | None:
    if not isinstance(nanoseconds, int) or nanoseconds <= 0 or nanoseconds > 2**63:
        return None
    return Stamp(str(nanoseconds), ClockKind.UTC, nanoseconds / 1e9, 1e-6)


def rank_of(source: str) -> int | None:
    """The rank that the file's name gives."""
    found = RANK.search(source.replace("\\", "/").rsplit("/", 1)[-1])
    return int(found["rank"]) if found else None


def _text(entry: dict[str, Any], group: str) -> str:
    """One line for an entry of a pickle, in the words of its fields."""
    names = (
        "collective_seq_id",
        "p2p_seq_id",
        "profiling_name",
        "state",
        "time_created_ns",
        "input_sizes",
        "timeout_ms",
    )
    return f"process_group {group}: " + ", ".join(f"{name}={entry[name]!r}"[:120] for name in names if name in entry)


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _entries(document: Any) -> list[dict[str, Any]]:
    entries = document.get("entries") if isinstance(document, dict) else None
    return [entry for entry in entries[:MAX_ENTRIES] if isinstance(entry, dict)] if isinstance(entries, list) else []


def _group(entry: dict[str, Any]) -> str:
    group = entry.get("process_group")
    if isinstance(group, list | tuple) and group:
        return str(group[0])[:80]
    return str(entry.get("pg_name", entry.get("pg_id", "0")))[:80]


def _groups(document: Any) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for entry in _entries(document):
        groups.setdefault(_group(entry), []).append(entry)
    return groups


def _telling(entries: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """The last completed entry and the first that did not complete."""
    last = next((entry for entry in reversed(entries) if entry.get("state") == "completed"), None)
    first = next((entry for entry in entries if entry.get("state") not in (None, "completed")), None)
    telling = [("last_completed", last), ("first_incomplete", first)]
    return [(which, entry) for which, entry in telling if entry is not None]


def _events(
    document: Any, source: str, places: dict[int, tuple[SourceSpan, str]], whole: SourceSpan
) -> Iterator[Event]:
    """Events of one dump; `places` gives the span and text of an entry by its `id()`, where lines are known."""
    rank = rank_of(source)
    version = document.get("comm_lib_version") if isinstance(document, dict) else None
    if isinstance(version, str) and version:
        span, text = places.get(id(document), (whole, f"comm_lib_version={version}"))
        yield fact("nccl.version", version, span, text)
    config = document.get("pg_config") if isinstance(document, dict) else None
    for group, entries in _groups(document).items():
        incomplete = sum(entry.get("state") not in (None, "completed") for entry in entries)
        about = config.get(group) if isinstance(config, dict) else None
        for which, entry in _telling(entries):
            span, text = places.get(id(entry), (whole, _text(entry, group)))
            seq = entry.get("p2p_seq_id") if entry.get("is_p2p") else entry.get("collective_seq_id")
            frames = entry.get("frames")
            fields: dict[str, Any] = {
                "rank": rank,
                "op": str(entry.get("profiling_name", ""))[:200].removeprefix("nccl:"),
                "seq": _number(seq),
                "state": str(entry.get("state"))[:40],
                "time": _number(entry.get("time_created_ns")),
                "which": which,
                "group": group,
                "incomplete": incomplete,
                "sizes": entry.get("input_sizes") if len(repr(entry.get("input_sizes"))) < 400 else None,
                "timeout_ms": _number(entry.get("timeout_ms")),
            }
            if isinstance(about, dict):
                fields["ranks"] = str(about.get("ranks"))[:400]
            if isinstance(frames, list):
                fields["frames"] = [
                    f"{frame.get('name')} ({frame.get('filename')}:{frame.get('line')})"[:300]
                    for frame in frames[:12]
                    if isinstance(frame, dict)
                ]
            yield Event(
                "collective.flight_record", span, text, _stamp(entry.get("time_created_ns")), Actor(rank=rank), fields
            )


def _view(document: Any, source: str) -> dict[str, Any]:
    """The inspect view of one dump."""
    config = document.get("pg_config") if isinstance(document, dict) else None
    groups = []
    for name, entries in _groups(document).items():
        about = config.get(name) if isinstance(config, dict) else None
        telling = {
            which: {
                "op": entry.get("profiling_name"),
                "seq": entry.get("collective_seq_id"),
                "p2p_seq": entry.get("p2p_seq_id"),
                "state": entry.get("state"),
                "time_created_ns": entry.get("time_created_ns"),
            }
            for which, entry in _telling(entries)
        }
        groups.append(
            {
                "group": name,
                "ranks": about.get("ranks") if isinstance(about, dict) else None,
                "entries": len(entries),
                "incomplete": sum(entry.get("state") not in (None, "completed") for entry in entries),
                "last_completed": telling.get("last_completed"),
                "first_incomplete": telling.get("first_incomplete"),
            }
        )
    plain = document if isinstance(document, dict) else {}
    return {
        "tool": "flight_recorder",
        "rank": rank_of(source),
        "version": plain.get("version"),
        "nccl": plain.get("comm_lib_version"),
        "status": plain.get("pg_status"),
        "groups": groups,
        "entries": [
            {
                "group": _group(entry),
                "op": entry.get("profiling_name"),
                "seq": entry.get("collective_seq_id"),
                "state": entry.get("state"),
                "time_created_ns": entry.get("time_created_ns"),
            }
            for entry in _entries(document)[-200:]
        ],
    }


def _is_dump(document: Any) -> bool:
    return isinstance(document, dict) and isinstance(document.get("entries"), list)


class FlightRecorderPickle:
    """A BinaryParser of the dump as PyTorch writes it."""

    name: ClassVar[str] = "flight_recorder_pickle"
    kind: ClassVar[str] = "collective"

    def sniff_bytes(self, head: bytes) -> float:
        """See `parsers.contract.BinaryParser`."""
        if head[:1] != b"\x80" or len(head) < 4 or head[1] > 5:
            return 0.0
        names = (b"pg_config", b"entries", b"comm_lib_version", b"pg_status", b"nccl_version", b"profiling_name")
        return 0.98 if sum(name in head for name in names) >= 2 else 0.6 if b"entries" in head else 0.3

    def _load(self, file: BinaryIO, source: str) -> tuple[Any, int, Trouble | None]:
        from parsers.flight_recorder.plain_pickle import PickleRefusedError, load_plain

        data = file.read(MAX_BYTES + 1)
        try:
            document = load_plain(data)
        except PickleRefusedError as error:
            return None, len(data), Trouble(source, "unsupported", f"pickle-refused: {error}")
        if not _is_dump(document):
            return (
                None,
                len(data),
                Trouble(source, "unsupported", "a pickle of plain data, but no flight recorder dump"),
            )
        return document, len(data), None

    def read_binary(self, file: BinaryIO, source: str) -> Iterator[Event | Trouble]:
        """Two `collective.flight_record` a process group: the last completed and the first incomplete entry."""
        document, size, trouble = self._load(file, source)
        if trouble:
            yield trouble
            return
        yield from _events(document, source, {}, SourceSpan(source, 0, 0, 0, size))

    def inspect_binary(self, file: BinaryIO, source: str) -> dict[str, Any]:
        """`groups` with their last completed and first incomplete entry, and the newest 200 `entries`."""
        document, _, trouble = self._load(file, source)
        view = _view(document, source)
        if trouble:
            view |= {"complete": False, "notes": [{"tag": trouble.tag, "text": trouble.text}]}
        return view


class FlightRecorderJson:
    """A TextParser of the dump as JSON."""

    name: ClassVar[str] = "flight_recorder"
    kind: ClassVar[str] = "collective"
    marks: ClassVar[tuple[bytes, ...]] = ()

    def sniff(self, head: str) -> float:
        """See `parsers.contract.TextParser`."""
        if not OPENING.match(head):
            return 0.0
        names = ('"pg_config"', '"entries"', '"profiling_name"', '"collective_seq_id"', '"pg_status"')
        return 0.98 if sum(name in head for name in names) >= 2 else 0.2

    def claims(self, text: str) -> bool:
        """See `parsers.contract.TextParser`."""
        return False

    def _load(self, lines: Iterable[Line], source: str) -> tuple[Any, list[Line], Trouble | None]:
        kept: list[Line] = []
        size = 0
        for line in lines:
            size += len(line.text) + 1
            if size > MAX_BYTES:
                return None, kept, Trouble(source, "limit", f"more than {MAX_BYTES} characters of JSON", line.number)
            kept.append(line)
        text = "\n".join(line.text for line in kept)
        depth = deepest = 0
        for token in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', text):
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
            deepest = max(deepest, depth)
        if deepest > MAX_NESTING:
            return None, kept, Trouble(source, "limit", f"JSON nested deeper than {MAX_NESTING} levels is not read")
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            document = _recovered(text)
            count = len(document["entries"])
            return (
                document,
                kept,
                Trouble(source, "truncated", f"the JSON does not end: {count} entries read ({str(error)[:80]})"),
            )
        if not _is_dump(document):
            return None, kept, Trouble(source, "unsupported", "JSON, but no flight recorder dump")
        return document, kept, None

    def read(self, lines: Iterable[Line], source: str) -> Iterator[Event | Trouble]:
        """Two `collective.flight_record` a process group: the last completed and the first incomplete entry."""
        document, kept, trouble = self._load(lines, source)
        if document is not None and kept:
            whole = SourceSpan(source, kept[0].number, kept[-1].number, kept[0].start, kept[-1].end)
            yield from sorted(
                _events(document, source, _places(document, kept, source), whole),
                key=lambda event: event.span.first_line,
            )
        if trouble:
            yield trouble

    def inspect(self, lines: Iterable[Line], source: str) -> dict[str, Any]:
        """`groups` with their last completed and first incomplete entry, and the newest 200 `entries`."""
        document, _, _ = self._load(lines, source)
        return _view(document, source)


def _recovered(text: str) -> dict[str, Any]:
    """The whole entries of a dump that was cut."""
    at = text.find('"entries"')
    at = text.find("[", at) + 1 if at >= 0 else len(text)
    decoder = json.JSONDecoder()
    entries: list[Any] = []
    while at and at < len(text) and len(entries) < MAX_ENTRIES:
        start = text.find("{", at)
        if start < 0:
            break
        try:
            entry, at = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            break
        entries.append(entry)
    return {"entries": entries}


def _places(document: Any, lines: list[Line], source: str) -> dict[int, tuple[SourceSpan, str]]:
    """Where each entry stands: the line of its state, in pretty printed JSON; nothing when it is one long line."""
    places: dict[int, tuple[SourceSpan, str]] = {}
    if len(lines) < 3:
        return places
    states = [line for line in lines if re.match(r'\s*"state"\s*:', line.text)]
    entries = _entries(document)
    if len(states) == len(entries):
        for entry, line in zip(entries, states, strict=True):
            places[id(entry)] = (line.span(source), line.text)
    version = next((line for line in lines if '"comm_lib_version"' in line.text), None)
    if version is not None:
        places[id(document)] = (version.span(source), version.text)
    return places


PARSERS = (FlightRecorderJson(), FlightRecorderPickle())
