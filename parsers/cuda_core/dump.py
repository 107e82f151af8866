"""One walk over a dump: devices, contexts, grids, SMs, blocks, warps and lanes, put together and named.

Everything is bounded: tables, rows, warps, lanes. What a limit or damage leaves out becomes a note and the rest is
given all the same.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import BinaryIO

from parsers.cuda_core import tables
from parsers.cuda_core.elf_index import Kind, Notes, Section, SectionIndex
from parsers.cuda_core.images import ModuleImage, Place
from parsers.cuda_core.lines import MAX_STEPS, Inlined, find_lines
from parsers.cuda_core.names import dtypes_of, library_of, readable
from parsers.cuda_core.sass import INSTRUCTION_BYTES
from parsers.cuda_core.tables import Row, exception_name, lane_state, read_lanes, read_rows
from parsers.cuda_core.waits import (
    LONGEST_LOOP,
    LOOK_BACK,
    NOWHERE,
    Conclusion,
    Surroundings,
    Wait,
    WarpSeen,
    classify,
    conclude,
    surroundings,
)

MAX_DEVICES = 256
MAX_CONTEXTS = 4096
MAX_MODULES = 100_000
MAX_GRIDS = 65_536
MAX_SMS = 1024
MAX_CTAS = 256
MAX_WARPS_PER_CTA = 128
MAX_LANES = 64
MAX_WARPS = 300_000
MAX_FRAMES = 64
MAX_PLACES = 100_000


@dataclass(slots=True)
class Warp:
    """One resident warp. `pcs` counts its valid lanes by PC; `pc` is that of the lowest valid lane."""

    device: int
    sm: int
    row: Row
    cta: Row
    lanes: int
    pcs: Counter[int]
    pc: int | None
    exceptions: Counter[int]
    states: Counter[int]
    frames: list[int]
    place: Place | None = None
    line: tuple[str, int] | None = None
    inlined: Inlined = field(default_factory=list)
    wait: Wait | None = None

    @property
    def error_pc(self) -> int | None:
        """The faulting instruction, which the lanes' PCs have left behind."""
        return self.row["error_pc"] if self.row["error_pc_valid"] else None


@dataclass(slots=True)
class Grid:
    """One resident grid."""

    device: int
    row: Row
    mangled: str
    module: int | None
    image: ModuleImage | None
    library: str | None
    dtypes: tuple[str, ...]
    warps: list[Warp] = field(default_factory=list)
    conclusion: Conclusion = field(default_factory=Conclusion)


@dataclass(slots=True)
class Fault:
    """An exception of a warp, or of an SM whose warps have gone (then `warp` is None)."""

    device: int
    sm: int
    warp: Warp | None
    code: int
    error_pc: int | None
    place: Place | None
    lanes: int
    offset: int
    line: tuple[str, int] | None = None


@dataclass(slots=True)
class Device:
    """One device with its contexts' images and what runs on it."""

    number: int
    row: Row
    name: str
    chip: str
    sm_type: str
    contexts: list[Row] = field(default_factory=list)
    images: dict[tuple[int, int], ModuleImage] = field(default_factory=dict)
    all_images: list[ModuleImage] = field(default_factory=list)
    sms: list[Row] = field(default_factory=list)
    active_sms: set[int] = field(default_factory=set)


class Dump:
    """A GPU core dump, read on construction. Raises `DumpUnreadable` only when the file holds no header table."""

    def __init__(self, file: BinaryIO) -> None:
        self.notes = Notes()
        self.index = SectionIndex(file, self.notes)
        self.metadata: Row | None = next(
            read_rows(self.index, self.index.root(Kind.METADATA), tables.METADATA, 1), None
        )
        self.devices: list[Device] = []
        self.grids: list[Grid] = []
        self.warps: list[Warp] = []
        self.faults: list[Fault] = []
        self.lanes = 0
        self._grid_of: dict[tuple[int, int], Grid] = {}
        self._places: dict[tuple[int, int], Place | None] = {}
        self._around: dict[tuple[int, int], Surroundings] = {}
        devices = self.index.root(Kind.DEVICES)
        if devices is None:
            self.notes.add("corrupt", "the dump holds no device table")
            return
        for number, row in enumerate(read_rows(self.index, devices, tables.DEVICE, MAX_DEVICES)):
            self._read_device(devices, number, row)
        self._name_warps()
        self._find_faults()
        self._find_lines()
        self._classify()

    # -- tables

    def _read_device(self, table: Section, number: int, row: Row) -> None:
        text = self.index.text
        device = Device(number, row, text(row["name"]), text(row["chip"]), text(row["sm_type"]))
        self.devices.append(device)
        contexts = self.index.child(Kind.CONTEXTS, table, number)
        for at, context in enumerate(read_rows(self.index, contexts, tables.CONTEXT, MAX_CONTEXTS)):
            device.contexts.append(context)
            modules = self.index.child(Kind.MODULES, contexts, at) if contexts else None
            for module_at, module in enumerate(read_rows(self.index, modules, tables.MODULE, MAX_MODULES)):
                section = self.index.child(Kind.RELOCATED_IMAGE, modules, module_at) if modules else None
                if section is None:
                    continue
                image = ModuleImage(self.index, section, len(device.all_images))
                device.all_images.append(image)
                device.images.setdefault((context["context_id"], module["handle"]), image)
        grids = self.index.child(Kind.GRIDS, table, number)
        for grid in read_rows(self.index, grids, tables.GRID, MAX_GRIDS):
            self._read_grid(device, grid)
        sms = self.index.child(Kind.SMS, table, number)
        for at, sm in enumerate(read_rows(self.index, sms, tables.SM, MAX_SMS)):
            device.sms.append(sm)
            if sms:
                self._read_sm(device, sms, at, sm)

    def _read_grid(self, device: Device, row: Row) -> None:
        image = device.images.get((row["context_id"], row["module"])) or next(
            (each for (_, handle), each in device.images.items() if handle == row["module"]), None
        )
        candidates = [image] if image else []
        text = image.text_at(row["entry"]) if image and row["entry"] else None
        if text is None and row["entry"]:
            for other in device.all_images:
                text = other.text_at(row["entry"])
                if text:
                    candidates, image = [other], other
                    break
        mangled = text.name if text else ""
        if not mangled:
            self.notes.add("skipped", f"grid {row['grid_id']} on device {device.number}: no image names its kernel")
        number = candidates[0].number if candidates else None
        grid = Grid(device.number, row, mangled, number, image, library_of(mangled), dtypes_of(mangled))
        self.grids.append(grid)
        self._grid_of.setdefault((device.number, row["grid_id"]), grid)

    def _read_sm(self, device: Device, sms: Section, at: int, sm: Row) -> None:
        ctas = self.index.child(Kind.CTAS, sms, at)
        for cta_at, cta in enumerate(read_rows(self.index, ctas, tables.CTA, MAX_CTAS)):
            warps = self.index.child(Kind.WARPS, ctas, cta_at) if ctas else None
            for warp_at, row in enumerate(read_rows(self.index, warps, tables.WARP, MAX_WARPS_PER_CTA)):
                if len(self.warps) >= MAX_WARPS:
                    self.notes.add("limit", f"more than {MAX_WARPS} warps: the rest was left out")
                    return
                if warps:
                    self._read_warp(device, sm, cta, warps, warp_at, row)

    def _read_warp(self, device: Device, sm: Row, cta: Row, warps: Section, at: int, row: Row) -> None:
        section = self.index.child(Kind.LANES, warps, at)
        lanes = read_lanes(self.index, section, MAX_LANES)
        valid = int(row["valid"]).bit_count()
        if len(lanes) != valid:
            self.notes.add("corrupt", "a warp's valid-lane mask and its lane table differ", row["offset"])
        frames = self._frames(section, lanes[0][3]) if section and lanes and lanes[0][3] else []
        warp = Warp(
            device.number,
            sm["sm"],
            row,
            cta,
            valid,
            Counter(lane[0] for lane in lanes),
            lanes[0][0] if lanes else None,
            Counter(lane[2] for lane in lanes if lane[2]),
            Counter(lane[4] for lane in lanes),
            frames,
        )
        self.lanes += len(lanes)
        self.warps.append(warp)
        device.active_sms.add(sm["sm"])
        grid = self._grid_of.get((device.number, cta["grid_id"]))
        if grid:
            grid.warps.append(warp)

    def _frames(self, lanes: Section, depth: int) -> list[int]:
        """Return addresses of the lowest valid lane, the innermost caller first."""
        where = self.index.stacks.get((lanes.number, 0))
        if where is None:
            return []
        table = Section(0, Kind.BACKTRACE, 0, where[0], where[1], 0, 0, 24, 0)
        rows = sorted(
            read_rows(self.index, table, tables.FRAME, min(depth, MAX_FRAMES)), key=lambda frame: int(frame["level"])
        )
        return [frame["return_pc"] for frame in rows]

    # -- names

    def image_for(self, device: int, pc: int, grid: Grid | None) -> ModuleImage | None:
        """The image whose code holds the address: the grid's own first, then the others of the device."""
        if grid and grid.image and grid.image.text_at(pc):
            return grid.image
        return next((image for image in self.devices[device].all_images if image.text_at(pc)), None)

    def place(self, device: int, pc: int | None, grid: Grid | None) -> Place | None:
        """Names for an address on a device; asked once for each address."""
        if not pc:
            return None
        key = (device, pc)
        if key not in self._places:
            if len(self._places) >= MAX_PLACES:
                self.notes.add("limit", f"more than {MAX_PLACES} different PCs: the rest was not named")
                return None
            image = self.image_for(device, pc, grid)
            self._places[key] = image.place(pc) if image else None
        return self._places[key]

    def grid_of(self, warp: Warp) -> Grid | None:
        """The grid that a warp belongs to, by its block's grid id on the same device."""
        return self._grid_of.get((warp.device, warp.cta["grid_id"]))

    def _name_warps(self) -> None:
        for warp in self.warps:
            warp.place = self.place(warp.device, warp.pc, self.grid_of(warp))

    def _find_faults(self) -> None:
        """Lanes first, then SMs: an SM keeps the fault of warps that have exited."""
        seen: set[tuple[int, int, int]] = set()
        sms = {(device.number, sm["sm"]): sm for device in self.devices for sm in device.sms}
        for warp in self.warps:
            sm = sms.get((warp.device, warp.sm), {})
            for code, lanes in sorted(warp.exceptions.items()):
                error_pc = warp.error_pc
                if error_pc is None and sm.get("error_pc_valid") and sm.get("exception") == code:
                    error_pc = sm["error_pc"]
                place = self.place(warp.device, error_pc or warp.pc, self.grid_of(warp))
                offset = warp.row["offset"]
                self.faults.append(Fault(warp.device, warp.sm, warp, code, error_pc, place, lanes, offset))
                seen.add((warp.device, warp.sm, code))
        for (device, number), sm in sms.items():
            code = sm["exception"]
            if code and (device, number, code) not in seen:
                error_pc = sm["error_pc"] if sm["error_pc_valid"] else None
                grids = [grid for grid in self.grids if grid.device == device]
                place = self.place(device, error_pc, grids[0] if len(grids) == 1 else None)
                self.faults.append(Fault(device, number, None, code, error_pc, place, 0, sm["offset"]))

    def _find_lines(self) -> None:
        """Source lines, one pass for each image that carries a line program."""
        wanted: dict[tuple[int, int], set[int]] = {}
        for warp in self.warps:
            if warp.place and warp.pc:
                wanted.setdefault((warp.device, warp.place.image), set()).add(warp.pc)
        for fault in self.faults:
            pc = fault.error_pc or (fault.warp.pc if fault.warp else None)
            if fault.place and pc:
                wanted.setdefault((fault.device, fault.place.image), set()).add(pc)
        found: dict[tuple[int, int], tuple[str, int]] = {}
        calls: dict[tuple[int, int], Inlined] = {}
        left = MAX_STEPS
        for (device, number), addresses in wanted.items():
            program, strings = self.devices[device].all_images[number].line_program()
            if not program:
                continue
            inlined: dict[int, Inlined] = {}
            lines, whole = find_lines(program, strings, addresses, left, inlined)
            left -= len(program) if whole else 0
            if not whole:
                self.notes.add("skipped", "the line information of a module was read in part")
            found.update({(device, pc): line for pc, line in lines.items()})
            calls.update({(device, pc): chain for pc, chain in inlined.items()})
            if left <= 0:
                break
        for warp in self.warps:
            warp.line = found.get((warp.device, warp.pc or 0))
            warp.inlined = calls.get((warp.device, warp.pc or 0), [])
        for fault in self.faults:
            fault.line = found.get((fault.device, fault.error_pc or (fault.warp.pc if fault.warp else 0) or 0))
        for grid in self.grids:
            if grid.library is None and grid.warps and grid.warps[0].line:
                grid.library = library_of(grid.mangled, grid.warps[0].line[0])

    # -- waits

    def around(self, device: int, pc: int, grid: Grid | None) -> Surroundings:
        """The code around an address; `NOWHERE` without code or with another instruction size."""
        key = (device, pc)
        found = self._around.get(key)
        if found is None:
            row = self.devices[device].row
            image = self.image_for(device, pc, grid)
            found = NOWHERE
            if image and row["instruction_bytes"] in (None, INSTRUCTION_BYTES) and (row["sm_major"] or 7) >= 7:
                back = max(LOOK_BACK, LONGEST_LOOP)
                start, code = image.code(pc, back, LONGEST_LOOP + 1, INSTRUCTION_BYTES)
                found = surroundings(code, start, pc, row["sm_major"] or 7)
            if len(self._around) < MAX_PLACES:
                self._around[key] = found
        return found

    def _classify(self) -> None:
        faulted = bool(self.faults)
        for warp in self.warps:
            grid = self.grid_of(warp)
            if warp.exceptions or warp.row["broken"] or warp.pc is None:
                continue
            others = [pc for pc, _ in warp.pcs.most_common(4) if pc != warp.pc]
            warp.wait = classify(
                self.around(warp.device, warp.pc, grid),
                warp.states,
                [self.around(warp.device, pc, grid) for pc in others],
                faulted,
            )
        for grid in self.grids:
            x, y, z = grid.row["block_dim"] or (0, 0, 0)
            lanes = self.devices[grid.device].row["lanes_per_warp"] or 32
            per_block = -(-x * y * z // lanes) if lanes else 0
            seen = [self._seen(warp, grid) for warp in grid.warps]
            grid.conclusion = conclude(seen, per_block if per_block <= 64 else 0, grid.library)

    def _seen(self, warp: Warp, grid: Grid) -> WarpSeen:
        """What the conclusions need; where lanes wait for the lowest ones, also what those loop on."""
        polls = None
        if warp.wait is Wait.WARP_SYNC and warp.pc is not None:
            polls = self.around(warp.device, warp.pc, grid).loop
        return WarpSeen(warp.cta["block"], warp.wait, bool(warp.exceptions or warp.row["broken"]), said(warp), polls)


def said(warp: Warp) -> str:
    """Where a warp stands, in words: symbol, offset and source line as far as they are known."""
    if warp.place is None:
        return f"{warp.pc:#x}" if warp.pc else "no lane"
    line = ""
    if warp.line and warp.line[0]:
        calls = f" inlined at {_line(warp.inlined[-1])}" if warp.inlined else ""
        line = f" ({_line(warp.line)}{calls})"
    return f"{readable(warp.place.symbol, 90)}+{warp.place.offset:#x}{line}"


def _line(line: tuple[str, int]) -> str:
    return f"{line[0].rpartition('/')[2]}:{line[1]}"


def states_of(warp: Warp) -> dict[str, int]:
    """Lanes by the convergence unit's state; empty before r575."""
    named = {lane_state(state): count for state, count in warp.states.items()}
    return {name: count for name, count in named.items() if name}


def fault_name(fault: Fault) -> str:
    """The exception's name, or its number where the table has none."""
    return exception_name(fault.code)
