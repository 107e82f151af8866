"""The parser: a dump as events and as the `inspect` view."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO

from parsers.contract import Trouble
from parsers.cuda_core.cut_short import names_in
from parsers.cuda_core.dump import Device, Dump, Fault, Grid, Warp, fault_name
from parsers.cuda_core.elf_index import DumpUnreadable
from parsers.cuda_core.header import looks_like_dump
from parsers.cuda_core.names import library_of, readable
from parsers.cuda_core.summary import (
    counted,
    driver_of,
    empty_view,
    generator,
    kernel_sentence,
    kernel_view,
    pci_of,
    sm_of,
    summarise,
)
from parsers.event import NOBODY, Actor, Event, fact
from parsers.span import SourceSpan
from parsers.stamp import ClockKind, Stamp

MOST_EVENTS = 200


def read_dump(file: BinaryIO, source: str) -> Iterator[Event | Trouble]:
    """Events: dump, devices, resident kernels, exceptions, traps, or `no_grid`; facts of the machine."""
    try:
        dump = Dump(file)
    except DumpUnreadable as problem:
        if looks_like_dump(_head(file)):
            yield from _cut_short(file, source, problem)
        yield Trouble(source, problem.tag, problem.text)
        return
    except (OSError, MemoryError) as problem:
        yield Trouble(source, "unreadable", f"the dump could not be read: {problem}")
        return
    yield from _Telling(dump, source).events()
    for note in dump.notes.items:
        yield Trouble(source, note.tag, note.text, offset=note.offset)


def inspect_dump(file: BinaryIO, source: str) -> dict[str, Any]:
    """The view of `parsers.cuda_core.summary` with `complete` and `notes` beside it."""
    try:
        dump = Dump(file)
    except DumpUnreadable as problem:
        view = empty_view()
        notes = [{"tag": problem.tag, "text": problem.text}]
        if looks_like_dump(_head(file)):
            view["named"] = names_in(file)
            if view["named"]:
                notes.append({"tag": problem.tag, "text": "kernels named in the module images that are left"})
        return {**view, "complete": False, "notes": notes}
    except (OSError, MemoryError) as problem:
        notes = [{"tag": "unreadable", "text": f"the dump could not be read: {problem}"}]
        return {**empty_view(), "complete": False, "notes": notes}
    return {
        **summarise(dump),
        "complete": not dump.notes.damaged,
        "notes": [{"tag": note.tag, "text": note.text} for note in dump.notes.items],
    }


def _head(file: BinaryIO) -> bytes:
    try:
        file.seek(0)
        return file.read(64)
    except (OSError, ValueError):
        return b""


def _tuple(dim: tuple[int, int, int]) -> str:
    return f"({','.join(map(str, dim))})"


def _cut_short(file: BinaryIO, source: str, problem: DumpUnreadable) -> Iterator[Event]:
    names = names_in(file)
    span = SourceSpan(source, 0, 0, 0, 64)
    loaded = f"; loaded kernels: {', '.join(readable(name) for name in names[:4])}" if names else ""
    fields = {"driver": None, "cuda": None, "flags": None, "complete": False, "sections": 0}
    yield Event("cuda_core.dump", span, problem.text + loaded, None, NOBODY, fields)


class _Telling:
    """Turns a dump into events. The stamp of all of them is the dump's own time."""

    def __init__(self, dump: Dump, source: str) -> None:
        self.dump, self.source = dump, source
        made = generator(dump)
        self.made = made
        seconds = made["timestamp"]
        # The dump holds Unix seconds; written as a date they can be read and compared with the logs.
        self.stamp = Stamp(made["time"].replace("+00:00", "Z"), ClockKind.UTC, float(seconds)) if seconds else None
        self.actors = {device.number: Actor(gpu=pci_of(device)) for device in dump.devices}

    def span(self, start: int, end: int) -> SourceSpan:
        return SourceSpan(self.source, 0, 0, start, end)

    def event(self, kind: str, span: SourceSpan, text: str, device: int | None, fields: dict[str, Any]) -> Event:
        actor = self.actors.get(device, NOBODY) if device is not None else NOBODY
        return Event(f"cuda_core.{kind}", span, text, self.stamp, actor, fields)

    def events(self) -> Iterator[Event]:
        dump = self.dump
        yield self.header()
        meta = dump.metadata
        driver = driver_of(dump)
        if driver and meta:
            span = self.span(meta["offset"], meta["offset_end"])
            yield fact("driver.version", driver, span, f"driver {driver} wrote this dump", stamp=self.stamp)
        for device in dump.devices:
            yield from self.device(device)
        if not dump.grids and dump.devices:
            text = "no grid is resident on any device: the GPU was idle or between two kernels at that moment"
            yield self.event("no_grid", self.span(0, 64), text, None, {})
        for grid in dump.grids[:MOST_EVENTS]:
            yield self.kernel(grid)
        yield from self.faults()
        yield from self.traps()

    def header(self) -> Event:
        dump, made = self.dump, self.made
        complete = not dump.notes.damaged
        fields = {
            "driver": made["driver"],
            "cuda": made["cuda"],
            "flags": made["flags"],
            "complete": complete,
            "sections": dump.index.total,
        }
        when = f", taken {made['time']}" if made.get("time") else ""
        text = (
            f"GPU core dump of driver {made['driver'] or 'unknown'}: {counted(len(dump.devices), 'device')}, "
            f"{counted(len(dump.grids), 'resident grid')}, {counted(len(dump.warps), 'warp')}, "
            f"{counted(len(dump.faults), 'exception')}{when}"
        )
        return self.event("dump", self.span(0, 64), text if complete else f"{text}; not whole", None, fields)

    def device(self, device: Device) -> Iterator[Event]:
        span = self.span(device.row["offset"], device.row["offset_end"])
        sm, pci = sm_of(device), pci_of(device)
        fields = {
            "dev": device.number,
            "name": device.name,
            "sm": sm,
            "pci": pci,
            "active_sms": len(device.active_sms),
        }
        text = (
            f"device {device.number}: {device.name or 'unnamed'} ({device.sm_type or sm}, {pci}), "
            f"{len(device.active_sms)} of {device.row['num_sms']} SMs active"
        )
        yield self.event("device", span, text, device.number, fields)
        actor = self.actors[device.number]
        if device.name:
            yield fact("gpu.name", device.name, span, text, stamp=self.stamp, actor=actor)
        if sm:
            yield fact("gpu.sm", sm, span, text, stamp=self.stamp, actor=actor)

    def kernel(self, grid: Grid) -> Event:
        view = kernel_view(grid)
        waits = {kind: count for kind, count in grid.conclusion.waits.items() if kind != "none"}
        top = max(waits, key=lambda kind: waits[kind]) if waits else None
        keys = ("mangled", "dev", "grid_id", "status", "warps", "library", "dtypes", "all_at_barrier")
        fields = {
            "name": readable(grid.mangled),
            **{key: view[key] for key in (*keys, "grid_dim", "block_dim", "elsewhere", "missing_warps", "type")},
            "waits": top,
            "wait_share": round(waits[top] / len(grid.warps), 4) if top and grid.warps else 0.0,
            "tid": self.tid(grid),
            "conclusions": grid.conclusion.texts,
        }
        span = self.span(grid.row["offset"], grid.row["offset_end"])
        return self.event("kernel", span, kernel_sentence(grid), grid.device, fields)

    def faults(self) -> Iterator[Event]:
        """One event for all warps with the same exception at the same place of the same kernel."""
        groups: dict[tuple[int, int, int | None, int], list[Fault]] = {}
        for fault in self.dump.faults:
            grid = self._grid(fault)
            number = grid.row["grid_id"] if grid else -1
            groups.setdefault((fault.device, fault.code, fault.error_pc, number), []).append(fault)
        for faults in list(groups.values())[:MOST_EVENTS]:
            yield self.fault(faults)

    def fault(self, faults: list[Fault]) -> Event:
        first = faults[0]
        grid = self._grid(first)
        place, warp = first.place, first.warp
        fields = {
            "name": fault_name(first),
            "code": first.code,
            "dev": first.device,
            "sm": first.sm,
            "warp": warp.row["warp"] if warp else None,
            "symbol": place.symbol if place else None,
            "error_pc": f"{first.error_pc:#x}" if first.error_pc is not None else None,
            "kernel": readable(grid.mangled) if grid else None,
            "library": grid.library if grid else library_of(place.section) if place else None,
            "tid": self.tid(grid),
            "recursion": self.recursion(warp),
        }
        where = f"{readable(place.symbol)}+{place.offset:#x}" if place else "an address outside every module"
        if first.error_pc is None and warp is None:
            where = "an unknown place"
        line = f" ({first.line[0]}:{first.line[1]})" if first.line and first.line[0] else ""
        block = f", block {_tuple(warp.cta['block'])}" if warp else ""
        sms = len({fault.sm for fault in faults})
        warps = sum(fault.warp is not None for fault in faults)
        on = counted(sms, "SM")
        count = f"{counted(warps, 'warp')} on {on}" if warps else f"{on} whose warps have exited"
        what = f"exception {first.code} ({fault_name(first)}) at {where}{line}"
        if fields["recursion"]:
            what += f" in a recursion of {fields['recursion']}"
        text = f"{what}: device {first.device}, SM {first.sm}{block}; in all {count}"
        return self.event("exception", self.span(first.offset, first.offset), text, first.device, fields)

    def traps(self) -> Iterator[Event]:
        """A broken warp without any exception: PTX `trap`."""
        for warp in [warp for warp in self.dump.warps if warp.row["broken"] and not warp.exceptions][:MOST_EVENTS]:
            grid = self.dump.grid_of(warp)
            kernel = readable(grid.mangled) if grid else None
            at = f"{readable(warp.place.symbol)}+{warp.place.offset:#x}" if warp.place else "an unknown place"
            line = f" ({warp.line[0]}:{warp.line[1]})" if warp.line and warp.line[0] else ""
            text = f"warp broken by a trap instruction near {at}{line}: device {warp.device}, SM {warp.sm}"
            fields = {"dev": warp.device, "sm": warp.sm, "warp": warp.row["warp"], "kernel": kernel}
            fields["tid"] = self.tid(grid)
            span = self.span(warp.row["offset"], warp.row["offset_end"])
            yield self.event("trap", span, text, warp.device, fields)

    def recursion(self, warp: Warp | None) -> str | None:
        """A function that is on the call stack more than once: a stack that ran over shows as a bad address."""
        if warp is None or not warp.frames:
            return None
        places = [warp.place, *(self.dump.place(warp.device, pc, self.dump.grid_of(warp)) for pc in warp.frames)]
        symbols = Counter(place.symbol for place in places if place)
        name, count = symbols.most_common(1)[0] if symbols else ("", 0)
        return readable(name) if count > 1 else None

    def tid(self, grid: Grid | None) -> int | None:
        """The host thread that the grid's row or its context's names: the driver's event thread of the process."""
        if grid is None:
            return None
        contexts = self.dump.devices[grid.device].contexts
        owner = (each["tid"] for each in contexts if each["context_id"] == grid.row["context_id"])
        return grid.row["tid"] or next(owner, None) or None

    def _grid(self, fault: Fault) -> Grid | None:
        if fault.warp:
            return self.dump.grid_of(fault.warp)
        grids = [grid for grid in self.dump.grids if grid.device == fault.device]
        return grids[0] if len(grids) == 1 else None
