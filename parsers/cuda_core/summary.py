"""A dump as the report shows it (`inspect`, key `cuda_core`)."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

from parsers.cuda_core import tables
from parsers.cuda_core.demangle import demangle
from parsers.cuda_core.dump import Device, Dump, Fault, Grid, Warp, fault_name, said, states_of
from parsers.cuda_core.elf_index import Kind
from parsers.cuda_core.flag_names import flag_names
from parsers.cuda_core.names import readable

MOST_FAULTS = 5000
View = dict[str, Any]

_CONTENTS = {
    Kind.IMAGE: ("module images before relocation", "nonrelocated_elf_images"),
    Kind.GLOBAL_MEMORY: ("global memory", "global_memory"),
    Kind.SHARED_MEMORY: ("shared memory", "shared_memory"),
    Kind.LOCAL_MEMORY: ("local memory", "local_memory"),
}


def pci_of(device: Device) -> str | None:
    """`0000:bb:dd`, the slot as kernel messages print it, None when the row is too short for it."""
    bus, slot = device.row["pci_bus"], device.row["pci_device"]
    if bus is None or slot is None:
        return None
    return f"0000:{bus:02x}:{slot:02x}"


def summarise(dump: Dump) -> View:
    """The whole view; JSON types only. Addresses are hexadecimal texts, dimensions lists of three."""
    return {
        "devices": [_device(device) for device in dump.devices],
        "kernels": [kernel_view(grid) for grid in dump.grids],
        "warps": [_warp(dump, warp) for warp in dump.warps],
        "exceptions": [_fault(fault) for fault in dump.faults[:MOST_FAULTS]],
        "groups": groups(dump),
        "contexts": [
            {"dev": device.number, "context": _hex(context["context_id"]), "tid": context["tid"]}
            for device in dump.devices
            for context in device.contexts
        ],
        "generator": generator(dump),
        "totals": {"warps": len(dump.warps), "valid_lanes": dump.lanes, "modules": _modules(dump)},
        "sections": dump.index.total,
        "missing": missing(dump),
        "limits": "waits are read from the instructions around each PC of one sample: consistent with, not proof of",
    }


def empty_view() -> View:
    """The view of a file whose tables are lost."""
    return {
        "devices": [],
        "kernels": [],
        "warps": [],
        "exceptions": [],
        "groups": [],
        "contexts": [],
        "generator": {"driver": None, "cuda": None, "flags": None, "skipped": [], "timestamp": None},
        "totals": {"warps": 0, "valid_lanes": 0, "modules": 0},
        "sections": 0,
        "missing": ["every table: the section headers at the end of the file are lost"],
    }


def _device(device: Device) -> View:
    row = device.row
    return {
        "dev": device.number,
        "dev_id": row["dev_id"],
        "name": device.name,
        "chip": device.chip,
        "sm_type": device.sm_type,
        "sm": sm_of(device),
        "pci": pci_of(device),
        "num_sms": row["num_sms"],
        "warps_per_sm": row["warps_per_sm"],
        "lanes_per_warp": row["lanes_per_warp"],
        "active_sms": len(device.active_sms),
        "resident": bool(device.active_sms),
    }


def sm_of(device: Device) -> str | None:
    """Compute capability as `9.0`."""
    if device.row["sm_major"] is None or device.row["sm_minor"] is None:
        return None
    return f"{device.row['sm_major']}.{device.row['sm_minor']}"


def kernel_view(grid: Grid) -> View:
    """One resident grid."""
    row, end = grid.row, grid.conclusion
    cluster = row["cluster_dim"]
    return {
        "dev": grid.device,
        "grid_id": row["grid_id"],
        "name": demangle(grid.mangled).full if grid.mangled else "",
        "mangled": grid.mangled,
        "status": tables.GRID_STATUS.get(row["status"], str(row["status"])),
        "grid_dim": _dim(row["grid_dim"]),
        "block_dim": _dim(row["block_dim"]),
        "cluster_dim": _dim(cluster) if cluster and any(cluster) else None,
        "sms": len({warp.sm for warp in grid.warps}),
        "blocks": len({warp.cta["block"] for warp in grid.warps}),
        "warps": len(grid.warps),
        "waits": dict(end.waits.most_common()),
        "all_at_barrier": end.all_at_barrier,
        "missing_warps": end.missing_warps,
        "elsewhere": end.elsewhere,
        "conclusions": end.texts,
        "module": _hex(row["module"]),
        "library": grid.library,
        "dtypes": list(grid.dtypes),
        "num_regs": row["num_regs"],
        "origin": tables.ORIGIN.get(row["origin"], str(row["origin"])),
        "type": tables.KERNEL_TYPE.get(row["kernel_type"], str(row["kernel_type"])),
        "parent_grid": row["parent_grid"] or None,
        "context": _hex(row["context_id"]),
        "tid": row["tid"] or None,
    }


def _warp(dump: Dump, warp: Warp) -> View:
    row = warp.row
    view: View = {
        "dev": warp.device,
        "sm": warp.sm,
        "warp": row["warp"],
        "cta": _dim(warp.cta["block"]),
        "cluster": _dim(warp.cta["cluster"]) if warp.cta["cluster_dim"] and any(warp.cta["cluster_dim"]) else None,
        "grid_id": warp.cta["grid_id"],
        "valid_lanes": warp.lanes,
        "active_lanes": int(row["active"]).bit_count(),
        "pcs": {f"{pc:#x}": count for pc, count in sorted(warp.pcs.items())},
        "pc": _hex(warp.pc),
        "symbol": warp.place.symbol if warp.place else None,
        "offset": warp.place.offset if warp.place else None,
        "line": _line(warp.line),
        "exception": _exceptions(warp),
        "error_pc": _hex(warp.error_pc),
        "broken": bool(row["broken"]),
        "wait_kind": warp.wait.value if warp.wait else None,
        "numregs": row["num_regs"],
        "lane_states": states_of(warp),
    }
    if row["in_syscall"]:
        view["in_syscall_lanes"] = int(row["in_syscall"]).bit_count()
    if warp.inlined:
        view["inlined_at"] = [f"{file}:{line}" for file, line in warp.inlined]
    if warp.frames:
        view["stack"] = [_frame(dump, warp, pc) for pc in warp.frames]
    return view


def _exceptions(warp: Warp) -> str | None:
    names = [tables.exception_name(code) for code, _ in warp.exceptions.most_common()]
    return names[0] if names else None


def _frame(dump: Dump, warp: Warp, pc: int) -> str:
    place = dump.place(warp.device, pc, dump.grid_of(warp))
    return f"{place.symbol}+{place.offset:#x}" if place else f"{pc:#x}"


def _fault(fault: Fault) -> View:
    return {
        "dev": fault.device,
        "sm": fault.sm,
        "warp": fault.warp.row["warp"] if fault.warp else None,
        "cta": _dim(fault.warp.cta["block"]) if fault.warp else None,
        "grid_id": fault.warp.cta["grid_id"] if fault.warp else None,
        "code": fault.code,
        "name": fault_name(fault),
        "error_pc": _hex(fault.error_pc),
        "symbol": fault.place.symbol if fault.place else None,
        "offset": fault.place.offset if fault.place else None,
        "line": _line(fault.line),
        "lanes": fault.lanes,
    }


def groups(dump: Dump, most: int = 200) -> list[View]:
    """Warps that stand alike: same grid, PC, wait and exception, the largest group first."""
    counted: Counter[tuple[int, int, int | None, str | None, str | None]] = Counter()
    first: dict[tuple[int, int, int | None, str | None, str | None], Warp] = {}
    for warp in dump.warps:
        key = (warp.device, warp.cta["grid_id"], warp.pc, warp.wait.value if warp.wait else None, _exceptions(warp))
        counted[key] += 1
        first.setdefault(key, warp)
    return [
        {
            "dev": key[0],
            "grid_id": key[1],
            "pc": _hex(key[2]),
            "at": said(first[key]),
            "line": _line(first[key].line),
            "wait_kind": key[3],
            "exception": key[4],
            "broken": bool(first[key].row["broken"]),
            "warps": count,
        }
        for key, count in counted.most_common(most)
    ]


def generator(dump: Dump) -> View:
    """Who wrote the dump, when, and what it was told to leave out. Drivers before r565 wrote none of it."""
    meta = dump.metadata
    if meta is None:
        return {"driver": None, "cuda": None, "flags": None, "skipped": [], "timestamp": None}
    flags = meta["flags"]
    skipped, others = flag_names(flags)
    stamp = meta["timestamp"]
    return {
        "name": dump.index.text(meta["generator"]),
        "driver": driver_of(dump),
        "cuda": f"{meta['cuda_major']}.{meta['cuda_minor']}" if meta["cuda_minor"] is not None else None,
        "flags": flags,
        "skipped": skipped,
        "other_flags": others,
        "timestamp": stamp,
        "time": datetime.fromtimestamp(stamp, UTC).isoformat() if stamp else None,
    }


def driver_of(dump: Dump) -> str | None:
    """`580.159`: the two numbers that the dump holds of the driver's version."""
    meta = dump.metadata
    if meta is None or meta["driver_minor"] is None:
        return None
    return f"{meta['driver_major']}.{meta['driver_minor']:02d}"


def missing(dump: Dump) -> list[str]:
    """What the dump lacks and why, in words."""
    said_missing = []
    skipped = set(generator(dump)["skipped"])
    counts = dump.index.counts
    for kind, (what, flag) in _CONTENTS.items():
        if flag in skipped:
            said_missing.append(f"{what}: left out by the generation flag skip_{flag}")
        elif not counts[kind] and (dump.warps or kind is Kind.IMAGE):
            said_missing.append(f"{what}: none in the dump")
    if "tensor_memory" in skipped:
        said_missing.append("tensor memory: left out by the generation flag skip_tensor_memory")
    if "constbank_memory" in skipped:
        said_missing.append("contents of constant banks: left out by the generation flag skip_constbank_memory")
    if dump.metadata is None:
        said_missing.append("metadata (driver, flags, time): none in the dump; drivers before r565 wrote none")
    if not counts[Kind.RELOCATED_IMAGE]:
        said_missing.append("relocated module images: none, so kernels and instructions cannot be named")
    if dump.devices and not dump.grids:
        said_missing.append(
            "resident grids: none on any device at that moment: the GPU was idle or between two kernels, which fits a "
            "host-side stall as well as health"
        )
    elif dump.grids and not dump.warps:
        said_missing.append("warps: none, though a grid is listed")
    return said_missing


def kernel_sentence(grid: Grid) -> str:
    """`grid 12: name(…) 64 warps resident, 64 at block_barrier`, as an event's text."""
    name = readable(grid.mangled) if grid.mangled else "kernel without a name"
    waits = ", ".join(
        f"{count} {'with no wait seen' if kind == 'none' else f'at {kind}'}"
        for kind, count in grid.conclusion.waits.most_common()
    )
    status = tables.GRID_STATUS.get(grid.row["status"], str(grid.row["status"]))
    tail = f"{counted(len(grid.warps), 'warp')} resident, {waits}"
    if not grid.warps:
        tail = f"no warp resident, status {status}"
    more = f"; {grid.conclusion.texts[0]}" if grid.conclusion.texts else ""
    return f"grid {grid.row['grid_id']}: {name}(…) {tail}{more}"


def counted(number: int, noun: str) -> str:
    """`1 warp`, `2 warps`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _modules(dump: Dump) -> int:
    return dump.index.counts[Kind.RELOCATED_IMAGE]


def _hex(value: int | None) -> str | None:
    return None if value is None else f"{value:#x}"


def _dim(value: tuple[int, int, int] | None) -> list[int] | None:
    return list(value) if value else None


def _line(line: tuple[str, int] | None) -> str | None:
    return f"{line[0]}:{line[1]}" if line and line[0] else None
