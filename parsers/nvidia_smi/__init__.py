"""nvidia-smi in its forms: table, -q, -q -x, csv, dmon, pmon, topo, nvlink, -L, failures; /proc/driver/nvidia; dcgmi.

One file may hold several outputs one after the other: the lines are cut where a new one begins, and each piece goes to
its reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

from parsers.contract import Line, Trouble
from parsers.event import Event
from parsers.nvidia_smi import dcgm, failures, nvlink, query, rows, table, topology
from parsers.nvidia_smi.device import Found
from parsers.pattern import lazy
from parsers.stamp import Stamp
from parsers.wallclock import ctime

MAX_LINES = 2_000_000

Reader = Callable[[Sequence[Line], str], Iterator[Found]]

OPENINGS: tuple[tuple[str, Callable[[str], bool], Reader], ...] = (
    ("table", table.begins, table.read),
    ("query", query.begins_text, query.read_text),
    ("xml", query.begins_xml, query.read_xml),
    ("csv", rows.begins_csv, rows.read_csv),
    ("monitor", rows.begins_monitor, rows.read_monitor),
    ("dcgm", dcgm.begins, dcgm.read),
    ("topology", topology.begins_matrix, topology.read_matrix),
    ("bare_csv", rows.begins_bare, rows.read_bare),
    ("list", topology.begins_list, topology.read_list),
    ("module", topology.begins_module, topology.read_module),
)
# Outputs whose own lines look like another output's opening.
CLOSED_TO = {
    "xml": {"topology", "csv", "list", "bare_csv"},
    "query": {"csv", "topology", "list", "bare_csv"},
    "table": {"csv", "bare_csv"},
    "csv": {"bare_csv"},
    "list": {"list"},
}
SAME_GOES_ON = {"csv", "bare_csv", "monitor", "list", "xml", "dcgm", "topology"}

CLAIMS = lazy(
    r"\|\s*NVIDIA-SMI\s+\d+\.|\+-{40,}[+-]*\+$|\|[ =+-]*={20,}[=+]*\||\| +GPU +Name +Persistence-M|\| Fan +Temp +Perf"
    r"|=+NVSMI LOG=+$|<!DOCTYPE nvidia_smi_log|<nvidia_smi_log>|#\s*gpu\s+(?:pwr|pid|sm)\b|#\s*Entity\s"
    r"|GPU \d+: .{3,80} \(UUID: GPU-|NVRM version: NVIDIA UNIX|timestamp, name, pstate"
    r"|\|\s+\d+\s+\S.{5,60}\|\s+[0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.\d|\| *(?:N/A|\d+%) +\d+C +P\d"
    r"|\t?GPU0\t|GPU\d+\t *(?:X|NV\d+|SYS|PHB|NODE|PIX|PXB)\b"
)


def _cut(lines: Iterable[Line], source: str) -> Iterator[tuple[str, Reader, list[Line]] | Event | Trouble]:
    """Pieces of one output each, and failures where they stand."""
    name: str = ""
    reader: Reader | None = None
    piece: list[Line] = []
    before: Line | None = None
    for count, line in enumerate(lines):
        if count >= MAX_LINES:
            yield Trouble(
                source, "limit", f"more than {MAX_LINES} lines: the rest is not read", line.number, line.start
            )
            break
        text = line.text.rstrip("\r")
        opening = next(
            (
                (kind, read)
                for kind, begins, read in OPENINGS
                if kind not in CLOSED_TO.get(name, ()) and begins(text) and not (kind == name and kind in SAME_GOES_ON)
            ),
            None,
        )
        if opening is not None:
            if reader is not None:
                yield name, reader, piece
            name, reader = opening
            # The date above the table's upper rule belongs to it.
            piece = [before] if before is not None and name == "table" else []
        elif name not in ("xml", "query", "csv", "bare_csv", "monitor"):
            stamp = _stamp_of(before)
            failure = failures.event(line, source, stamp)
            if failure is not None:
                if reader is not None:
                    yield name, reader, piece
                name, reader, piece = "", None, []
                yield failure
        if name == "list" and nvlink.is_row(text):
            reader = nvlink.read
        if reader is not None:
            piece.append(line)
        if ctime(text.strip()) is not None:
            before = line
            if name == "table" and len(piece) > 3:
                # The next view of a loop begins with its date.
                yield name, reader or table.read, piece[:-1]
                name, reader, piece = "", None, []
    if reader is not None:
        yield name, reader, piece


def _stamp_of(line: Line | None) -> Stamp | None:
    return ctime(line.text.strip()) if line is not None else None


class NvidiaSmi:
    """A TextParser of nvidia-smi's outputs."""

    name: ClassVar[str] = "nvidia_smi"
    kind: ClassVar[str] = "gpu_samples"
    marks: ClassVar[tuple[bytes, ...]] = ()

    def sniff(self, head: str) -> float:
        """See `parsers.contract.TextParser`."""
        lines = head.split("\n")[:200]
        first = [text for text in lines if text.strip()][:12]
        for at, text in enumerate(first):
            opened = next((kind for kind, begins, _ in OPENINGS if begins(text.rstrip("\r"))), None)
            if opened is not None:
                return 0.97 if at <= 3 else 0.9
            if failures.what(text):
                return 0.95 if len(first) <= 6 or at == 0 else 0.4
            if at > 5:
                break
        return 0.0

    def claims(self, text: str) -> bool:
        """See `parsers.contract.TextParser`."""
        return bool(CLAIMS.match(text)) or failures.what(text) is not None

    def read(self, lines: Iterable[Line], source: str) -> Iterator[Event | Trouble]:
        """Events of all outputs in the lines."""
        for found in _cut(lines, source):
            if isinstance(found, Event | Trouble):
                yield found
            else:
                _, reader, piece = found
                yield from reader(piece, source)

    def inspect(self, lines: Iterable[Line], source: str) -> dict[str, Any]:
        """Lists of what was read: `formats`, `samples`, `processes`, `errors`, `ecc`, `links`, `fabric`,
        `topology`; the `facts`; and the least and greatest readings of each GPU, `range`."""
        view: dict[str, Any] = {"formats": [], "samples": [], "processes": [], "errors": [], "ecc": [], "links": []}
        view |= {"fabric": [], "topology": [], "nvlink": [], "facts": {}, "range": {}}
        places = {"sample": "samples", "process": "processes", "error": "errors", "link": "links"}
        for found in _cut(lines, source):
            events: Iterable[Found] = [found] if isinstance(found, Event | Trouble) else found[1](found[2], source)
            if not isinstance(found, Event | Trouble) and found[0] not in view["formats"]:
                view["formats"].append(found[0])
            for event in events:
                if isinstance(event, Trouble):
                    continue
                if event.kind == "fact":
                    values = view["facts"].setdefault(event.fields["name"], [])
                    if event.fields["value"] not in values:
                        values.append(event.fields["value"])
                    continue
                what = event.kind.split(".", 1)[1]
                entry = {
                    "time": event.stamp.text if event.stamp else None,
                    "line": event.span.first_line,
                    **event.fields,
                }
                view[places.get(what, what)].append(entry)
                if what == "sample":
                    _widen(view["range"].setdefault(str(event.fields.get("gpu")), {}), event.fields)
        return view


def _widen(seen: dict[str, list[float]], fields: dict[str, Any]) -> None:
    for name in ("util", "mem_util", "power_w", "sm_clock_mhz", "temp_c", "mem_used_mib"):
        value = fields.get(name)
        if isinstance(value, int | float):
            low, high = seen.get(name, [value, value])
            seen[name] = [min(low, value), max(high, value)]


PARSER = NvidiaSmi()
