"""Sampled rows: `nvidia-smi --query-gpu=… --format=csv [-l]`, `--query-compute-apps`, `dmon` and `pmon`.

Long recordings are thinned: the first and the last row, the rows of least and most power and utilisation of each GPU,
and every 20th row; every event says how many rows it stands for (`count`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from parsers.contract import Line, Trouble
from parsers.event import Event, fact
from parsers.nvidia_smi.device import ABSENT, Device, Found, number, pci_address, process_event, throttle_names
from parsers.pattern import lazy
from parsers.stamp import ClockKind, Stamp
from parsers.wallclock import iso

MAX_ROWS = 500_000
KEEP_ALL = 50
EVERY = 20

UNIT = lazy(r"\s*\[[^\]]*\]\s*$")
GPU_COLUMNS: dict[str, str] = {
    "utilization.gpu": "util",
    "utilization.memory": "mem_util",
    "power.draw": "power_w",
    "power.draw.average": "power_w",
    "power.draw.instant": "power_w",
    "power.limit": "power_limit_w",
    "enforced.power.limit": "power_limit_w",
    "clocks.current.sm": "sm_clock_mhz",
    "clocks.sm": "sm_clock_mhz",
    "clocks.current.graphics": "sm_clock_mhz",
    "clocks.gr": "sm_clock_mhz",
    "clocks.max.sm": "sm_clock_max_mhz",
    "clocks.max.graphics": "sm_clock_max_mhz",
    "temperature.gpu": "temp_c",
    "memory.used": "mem_used_mib",
    "memory.total": "mem_total_mib",
    "ecc.errors.uncorrected.volatile.total": "volatile_uncorrected",
    "ecc.errors.uncorrected.aggregate.total": "aggregate_uncorrected",
    "pcie.link.width.current": "width",
    "pcie.link.width.max": "width_max",
    "pcie.link.gen.current": "gen",
    "pcie.link.gen.gpucurrent": "gen",
    "pcie.link.gen.max": "gen_max",
}
TEXT_COLUMNS = {
    "pstate": "pstate",
    "fabric.state": "state",
    "fabric.status": "status",
    "vbios_version": "gpu.vbios",
    "compute_cap": "gpu.sm",
}
YES_COLUMNS = {"remapped_rows.pending": "remap_pending", "remapped_rows.failure": "remap_failure"}
KNOWN = lazy(
    r"(?:timestamp|name|gpu_name|index|pstate|uuid|gpu_uuid|gpu_bus_id|pci\.bus_id|driver_version|compute_cap|count"
    r"|serial"
    r"|pid|process_name|used_gpu_memory|used_memory|utilization\.|memory\.|power\.|clocks|temperature\.|fan\.|ecc\."
    r"|pcie\."
    r"|enforced\.|remapped_rows|retired_pages|fabric\.|persistence_mode|vbios_version|mig\.|display_|compute_mode)"
)
DMON_COLUMNS = {
    "pwr": "power_w",
    "gtemp": "temp_c",
    "sm": "util",
    "mem": "mem_util",
    "pclk": "sm_clock_mhz",
    "fb": "mem_used_mib",
    "dbecc": "volatile_uncorrected",
}
MONITOR_HEADER = lazy(r"#\s*(?:Date\s+)?(?:Time\s+)?gpu\s")
MONITOR_UNITS = lazy(r"#\s*(?:YYYYMMDD\s+)?(?:HH:MM:SS\s+)?Idx\s")
CLOCK = lazy(r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)$")


@dataclass(slots=True)
class Row:
    """One row of a recording."""

    device: Device
    line: Line


def header_columns(text: str) -> list[str] | None:
    """The column names of a csv header without their units, or None when the line is no such header."""
    if "," not in text and not text.startswith(("utilization.", "memory.", "power.")):
        return None
    names = [UNIT.sub("", cell).strip().lower() for cell in text.split(",")]
    known = sum(bool(KNOWN.match(name)) for name in names)
    telling = any("." in name or name in ("pstate", "pid", "compute_cap", "driver_version") for name in names)
    return names if known == len(names) and telling else None


def begins_csv(text: str) -> bool:
    """Whether a line is the header of nvidia-smi's csv."""
    return header_columns(text.strip()) is not None


_BARE_UNITS = (("%", ("utilization.gpu", "utilization.memory")), ("W", ("power.draw", "power.limit")),
               ("MiB", ("memory.used", "memory.total")), ("MHz", ("clocks.sm", "clocks.max.sm")))  # fmt: skip
_BARE_CELL = lazy(r"-?\d+(?:\.\d+)? (?P<unit>%|W|MiB|MHz)$|\[?(?:N/A|Not Supported)\]?$")
_BARE_NAME = lazy(r"(?:NVIDIA|Tesla|GeForce|Quadro|GRID) [A-Z0-9][\w .()-]{1,60}$|(?:Tesla|A|H|B)\d{2,4}\b.{0,30}$")


def bare_columns(text: str) -> list[str] | None:
    """The columns of a csv row without a header (`--format=csv,noheader`), told by the units of its cells: of two cells
    of one unit the first is the reading and the second its limit or, of percentages, the memory's. None for any other
    line, and where a unit stands three times."""
    cells = [cell.strip() for cell in text.split(",")]
    if not 3 <= len(cells) <= 40:
        return None
    left = {unit: list(names) for unit, names in _BARE_UNITS}
    columns: list[str] = []
    units = known = 0
    for at, cell in enumerate(cells):
        found = _BARE_CELL.match(cell)
        if found and found["unit"]:
            if not left[found["unit"]]:
                return None
            columns.append(left[found["unit"]].pop(0))
            units += 1
        elif iso(cell) is not None and at == 0:
            columns.append("timestamp")
            known += 1
        elif _BARE_NAME.match(cell) and "name" not in columns:
            columns.append("name")
            known += 1
        elif pci_address(cell) is not None:
            columns.append("pci.bus_id")
            known += 1
        elif re.fullmatch(r"GPU-[0-9a-f-]{8,40}", cell):
            columns.append("uuid")
            known += 1
        elif re.fullmatch(r"P(?:1[0-5]|\d)", cell):
            columns.append("pstate")
            known += 1
        elif cell.isdecimal() and len(cell) <= 3 and "index" not in columns:
            columns.append("index")
        else:
            columns.append(f"unknown {at}")
    return columns if units >= 2 and known else None


def begins_bare(text: str) -> bool:
    """Whether a line is such a row."""
    return "," in text and bare_columns(text.strip()) is not None


def read_bare(lines: Sequence[Line], source: str) -> Iterator[Found]:
    """Events of rows without a header."""
    columns = bare_columns(lines[0].text.strip()) if lines else None
    if columns is not None:
        yield from read_csv(lines, source, columns)


def begins_monitor(text: str) -> bool:
    """Whether a line is the header of dmon or pmon."""
    return bool(MONITOR_HEADER.match(text))


def read_csv(lines: Sequence[Line], source: str, columns: list[str] | None = None) -> Iterator[Found]:
    """Events of csv output; a header may come again (several recordings in one file). `columns` = those of the rows
    before the first header."""
    columns = columns or []
    rows: list[Row] = []
    facts: set[tuple[str, str]] = set()
    for line in lines[:MAX_ROWS]:
        text = line.text.strip()
        named = header_columns(text)
        if named is not None:
            yield from _thinned(rows, source)
            columns, rows = named, []
            continue
        cells = [cell.strip() for cell in text.split(",")]
        if not text or len(cells) != len(columns):
            if text and len(cells) > 1:
                yield Trouble(
                    source, "corrupt", f"a row of {len(cells)} cells under {len(columns)} columns", line.number
                )
            continue
        row = dict(zip(columns, cells, strict=True))
        if "pid" in row:
            gpu = pci_address(row.get("gpu_bus_id", "")) or row.get("gpu_uuid")
            pid = int(row["pid"][:9]) if row["pid"].isdecimal() else None
            memory = number(row.get("used_gpu_memory") or row.get("used_memory"))
            name = row.get("process_name") or row.get("name")
            yield process_event(line, source, iso(row.get("timestamp", "")), gpu, pid, name, memory)
            continue
        device = _csv_device(row, line)
        for name, value in (("driver.version", row.get("driver_version")), ("gpu.name", device.name)):
            if value and (name, value) not in facts:
                facts.add((name, value))
                yield fact(name, value, line.span(source), line.text, stamp=device.stamp, actor=device.actor())
        rows.append(Row(device, line))
    if len(lines) > MAX_ROWS:
        yield Trouble(source, "limit", f"more than {MAX_ROWS} rows: the rest is not read", lines[MAX_ROWS].number)
    yield from _thinned(rows, source)


def _csv_device(row: dict[str, str], line: Line) -> Device:
    pci = pci_address(row.get("pci.bus_id", "") or row.get("gpu_bus_id", ""))
    device = Device(row.get("index"), pci, row.get("name") or row.get("gpu_name"), stamp=iso(row.get("timestamp", "")))
    for column, cell in row.items():
        if column in GPU_COLUMNS:
            device.put(GPU_COLUMNS[column], number(cell), line)
        elif column in TEXT_COLUMNS and not ABSENT.match(cell):
            device.put(TEXT_COLUMNS[column], cell, line)
        elif column in YES_COLUMNS and cell in ("Yes", "No", "0", "1"):
            device.put(YES_COLUMNS[column], cell in ("Yes", "1"), line)
        elif re.match(r"clocks_(?:event|throttle)_reasons\.active$", column):
            device.put("throttle", throttle_names(cell), line)
        elif column in ("uuid", "gpu_uuid") and cell.startswith("GPU-"):
            device.put("gpu.uuid", cell, line)
    return device


def read_monitor(lines: Sequence[Line], source: str) -> Iterator[Found]:
    """Events of `dmon` and `pmon`."""
    columns: list[str] = []
    rows: list[Row] = []
    for line in lines[:MAX_ROWS]:
        text = line.text.strip()
        if text.startswith("#"):
            if MONITOR_HEADER.match(text):
                columns = text.lstrip("# ").lower().split()
            continue
        cells = text.split()
        if not columns or not cells:
            continue
        pmon = "pid" in columns
        if pmon and len(cells) > len(columns):
            cells = [*cells[: len(columns) - 1], " ".join(cells[len(columns) - 1 :])]
        if len(cells) != len(columns):
            yield Trouble(source, "corrupt", f"a row of {len(cells)} cells under {len(columns)} columns", line.number)
            continue
        row = dict(zip(columns, cells, strict=True))
        stamp = _monitor_stamp(row)
        if pmon:
            if row["pid"].isdecimal():
                yield process_event(
                    line,
                    source,
                    stamp,
                    row.get("gpu"),
                    int(row["pid"][:9]),
                    row.get("command") or row.get("name"),
                    number(row.get("fb")),
                    util=number(row.get("sm")),
                    mem_util=number(row.get("mem")),
                )
            continue
        device = Device(row.get("gpu"), stamp=stamp)
        for column, name in DMON_COLUMNS.items():
            if column in row:
                device.put(name, number(row[column]), line)
        if row.get("tviol") not in (None, "0", "-"):
            device.put("throttle", "thermal_violation", line)
        elif number(row.get("pviol")):
            device.put("throttle", "sw_power_cap", line)
        rows.append(Row(device, line))
    if len(lines) > MAX_ROWS:
        yield Trouble(source, "limit", f"more than {MAX_ROWS} rows: the rest is not read", lines[MAX_ROWS].number)
    yield from _thinned(rows, source)


def _monitor_stamp(row: dict[str, str]) -> Stamp | None:
    clock, date = row.get("time"), row.get("date")
    if clock and date and len(date) == 8 and date.isdecimal():
        return iso(f"{date[:4]}-{date[4:6]}-{date[6:]} {clock}")
    found = CLOCK.match(clock) if clock else None
    if found is None:
        return None
    seconds = int(found["hour"]) * 3600 + int(found["minute"]) * 60 + int(found["second"])
    return Stamp(found[0], ClockKind.WALL, float(seconds), year_known=False, date_known=False)


def _thinned(rows: list[Row], source: str) -> Iterator[Event]:
    """The telling rows of a recording, in order, and what else each shows (ECC, link, fabric) once per change."""
    if not rows:
        return
    kept = set(range(len(rows)))
    if len(rows) > KEEP_ALL:
        kept = {0, len(rows) - 1, *range(0, len(rows), EVERY)}
        by_gpu: dict[str | None, list[int]] = {}
        for at, row in enumerate(rows):
            by_gpu.setdefault(row.device.gpu, []).append(at)
        for places in by_gpu.values():
            kept |= {places[0], places[-1]}
            for name in ("util", "power_w"):
                seen = [at for at in places if name in rows[at].device.values]
                if seen:
                    key: Callable[[int], Any] = lambda at, name=name: rows[at].device.values[name]  # type: ignore[misc] # noqa: E731
                    kept |= {min(seen, key=key), max(seen, key=key)}
    said: set[tuple[str, str]] = set()
    for at, row in enumerate(rows):
        for event in row.device.events(source):
            if event.kind == "gpu_samples.sample":
                if at in kept:
                    event.fields["count"] = len(rows)
                    yield event
                continue
            shown = (event.kind, repr(sorted(event.fields.items(), key=str)))
            if shown not in said and len(said) < 1_000:
                said.add(shown)
                yield event
