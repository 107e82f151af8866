"""What cuda-gdb prints of a dump against what the parser reads from the same file.

    python tests/parsers/cuda_core/debugger_text.py FOLDER...

Each folder holds a dump and `cuda-gdb.txt` with `info cuda devices|kernels|sms|warps|lanes|threads` and `bt`. The text
is read here by columns, not with `parsers.cuda_gdb_text`, so that a slip in one shows against the other.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

sys.path.insert(0, str(Path(__file__).parents[3]))

from parsers.cuda_core.demangle import demangle
from parsers.cuda_core.dump import Dump
from parsers.cuda_core.tables import exception_name

_DIM = re.compile(r"\((\d+),(\d+),(\d+)\)")
Dim = tuple[int, ...]


@dataclass
class Said:
    """The debugger's tables. `threads` counts lanes by (kernel, block, pc); `lines` holds (pc, file, line)."""

    devices: list[tuple[int, str, str, str, int, int, int, int]] = field(default_factory=list)
    kernels: dict[int, tuple[int, int, int, Dim, Dim, str]] = field(default_factory=dict)
    sms: dict[tuple[int, int], int] = field(default_factory=dict)
    warps: dict[tuple[int, int, int], tuple[int, int, int, int, Dim]] = field(default_factory=dict)
    lanes: dict[tuple[int, int, int], list[tuple[int, str, int, str]]] = field(default_factory=dict)
    threads: Counter[tuple[int, Dim, int]] = field(default_factory=Counter)
    lines: set[tuple[int, str, int]] = field(default_factory=set)
    whole_threads: bool = True
    banner: tuple[str, int] | None = None
    symbol: str | None = None
    level: int = 0
    symbols: dict[int, tuple[str, int]] = field(default_factory=dict)
    focus: tuple[int, int, int] | None = None


def _dim(text: str) -> Dim:
    return tuple(int(each) for each in text.strip("()").split(","))


def read_text(text: str) -> Said:
    """Every table of one recording; `==name` lines stand between them."""
    said = Said()
    table, focus, kernel = "", (0, 0, 0), 0
    lines = text.split("\n")
    for line in lines:
        if line.startswith("=="):
            table = line[2:].strip()
            continue
        if found := re.match(r"The exception was triggered at PC (0x[0-9a-f]+)", line):
            said.banner = (said.banner[0] if said.banner else "", int(found[1], 16))
        if found := re.match(r"CUDA Exception: (.+)", line):
            said.banner = (found[1].lower(), said.banner[1] if said.banner else 0)
        if found := re.match(r"Device (\d+)(?: SM (\d+))?(?: Warp (\d+))?", line):
            focus = (int(found[1]), int(found[2] or 0), int(found[3] or 0))
            continue
        if found := re.match(r"Kernel (\d+)\s*$", line):
            kernel = int(found[1])
            continue
        words = line.replace("*", " ", 1).split()
        if not words or not (words[0].isdecimal() or words[0][0] in "(=0"):
            continue
        if table == "devices" and words[0].isdecimal():
            mask, registers, lanes, warps, sms, kind = (words[-n] for n in range(1, 7))
            name = " ".join(words[2:-7])
            row = (int(words[0]), words[1], name, kind, int(sms), int(warps), int(lanes), int(mask, 16))
            assert registers.isdecimal()
            said.devices.append(row)
        elif table == "kernels" and words[0].isdecimal() and len(words) > 8:
            dims = (_dim(words[6]), _dim(words[7]))
            said.kernels[int(words[0])] = (int(words[2]), int(words[3]), int(words[5], 16), *dims, " ".join(words[8:]))
        elif table == "sms" and len(words) == 2:
            said.sms[focus[0], int(words[0])] = int(words[1], 16)
        elif table == "warps" and len(words) >= 7:
            row_ = (int(words[1], 16), int(words[2], 16), int(words[3], 16), int(words[4]), _dim(words[5]))
            said.warps[focus[0], focus[1], int(words[0])] = row_
        elif table == "lanes" and len(words) >= 5 and words[2].startswith("0x"):
            rows = said.lanes.setdefault(focus, [])
            rows.append((int(words[0]), words[1], int(words[2], 16), " ".join(words[4:]).lower()))
        elif table == "threads" and len(words) >= 6 and words[5].startswith("0x"):
            _threads(said, kernel, words, line is lines[-1])
        elif table == "x" and (found := re.match(r"(?:=>|  ) 0x([0-9a-f]+) <(.+?)(?:\+(\d+))?>:", line)):
            said.symbols[int(found[1], 16)] = (found[2], int(found[3] or 0))
    frames = re.findall(r"^#0  (?:0x[0-9a-f]+ in )?([^\s(<]+)", text, re.MULTILINE)
    said.symbol = frames[0] if frames else None
    said.level = max((int(n) for n in re.findall(r"^#(\d+) ", text, re.MULTILINE)), default=0)
    if found := re.search(r"device (\d+), sm (\d+), warp (\d+), lane \d+\]", text):
        said.focus = (int(found[1]), int(found[2]), int(found[3]))
    # The recording is cut at 60,000 bytes; what is counted over the whole grid is then of no use.
    said.whole_threads = len(text) < 59_900 and "==threads" in text
    return said


def _threads(said: Said, kernel: int, words: list[str], last: bool) -> None:
    """Rows run over blocks and threads; the debugger folds rows of whole blocks into one range."""
    first, end, count, pc = _dim(words[0]), _dim(words[2]), int(words[4]), int(words[5], 16)
    blocks = first if first == end else (-1, -1, -1)
    said.threads[kernel, blocks, pc] += count
    if len(words) >= 8 and words[-1].isdecimal() and not last:
        said.lines.add((pc, words[-2], int(words[-1])))


def compare(dump: Dump, said: Said) -> tuple[Counter[str], list[str]]:
    """(what was compared, how often), and every difference in words."""
    done: Counter[str] = Counter()
    wrong: list[str] = []

    def same(what: str, ours: object, theirs: object, where: str = "") -> None:
        done[what] += 1
        if ours != theirs:
            wrong.append(f"{what} {where}: parser {ours!r}, debugger {theirs!r}")

    for number, pci, name, kind, sms, warps, lanes, mask in said.devices:
        device = next(each for each in dump.devices if each.number == number)
        row = device.row
        same("device name", device.name, name)
        same("device slot", f"{row['pci_bus']:02x}:{row['pci_device']:02x}.0", pci)
        same("device type", device.sm_type, kind)
        same("device sizes", (row["num_sms"], row["warps_per_sm"], row["lanes_per_warp"]), (sms, warps, lanes))
        same("active SMs", sum(1 << sm for sm in device.active_sms), mask, f"device {number}")
    same("kernels", len(dump.grids), len(said.kernels))
    for number, (dev, grid_id, mask, grid_dim, block_dim, invocation) in said.kernels.items():
        grid = next((each for each in dump.grids if (each.device, each.row["grid_id"]) == (dev, grid_id)), None)
        if grid is None:
            wrong.append(f"kernel {number}: no grid {grid_id} on device {dev}")
            continue
        same("kernel SMs", sum({1 << warp.sm for warp in grid.warps}), mask, f"grid {grid_id}")
        same("kernel dims", (grid.row["grid_dim"], grid.row["block_dim"]), (grid_dim, block_dim), f"grid {grid_id}")
        name = invocation.split("(")[0].replace(" ", "").split("<")[0]
        # The debugger's demangler gives up on CUTLASS's longest names and prints them as they are.
        same("kernel name", grid.mangled if name.startswith("_Z") else _bare(grid.mangled), name)
        if said.whole_threads and said.threads:
            _compare_threads(dump, said, number, same)
    masks: Counter[tuple[int, int]] = Counter()
    for warp in dump.warps:
        masks[warp.device, warp.sm] |= 1 << warp.row["warp"]
    for key, mask in said.sms.items():
        same("SM warps", masks[key], mask, f"device {key[0]} SM {key[1]}")
    found = {(warp.device, warp.sm, warp.row["warp"]): warp for warp in dump.warps}
    for key3, (active, divergent, pc, kernel_, block) in said.warps.items():
        warp_ = found.get(key3)
        if warp_ is None:
            wrong.append(f"warp {key3}: not read")
            continue
        row = warp_.row
        masks_ = (row["active"] & row["valid"], row["valid"] & ~row["active"])
        same("warp masks", masks_, (active, divergent), str(key3))
        same("warp PC", pc in warp_.pcs, True, f"{key3} {pc:#x}")
        same("warp block", warp_.cta["block"], block, str(key3))
        same("warp grid", warp_.cta["grid_id"], said.kernels[kernel_][1], str(key3))
    for key3, rows in said.lanes.items():
        warp_ = found.get(key3)
        if warp_:
            same("lane PCs", warp_.pcs, Counter(row_[2] for row_ in rows), str(key3))
            names: Counter[str] = Counter()
            for code, count in warp_.exceptions.items():
                names[exception_name(code).replace("-", " ")] += count
            theirs = Counter(row_[3].replace("-", " ") for row_ in rows if row_[3] != "none")
            same("lane exceptions", names, theirs, str(key3))
            focus_pcs = {row_[2] for row_ in rows}
            same("lowest lane PC", warp_.pc, rows[0][2], str(key3))
            same("lanes of focus", set(warp_.pcs), focus_pcs, str(key3))
    if said.banner:
        same("exception name", said.banner[0] in {exception_name(fault.code) for fault in dump.faults}, True)
        same("error PC", said.banner[1] in {fault.error_pc for fault in dump.faults}, True, f"{said.banner[1]:#x}")
    for pc, (symbol, offset) in said.symbols.items():
        place = dump.place(dump.devices[0].number, pc, None)
        same("symbol", (place.symbol, place.offset) if place else None, (symbol, offset), f"{pc:#x}")
    # cuda-gdb names one of the inlined functions at a PC, not always the innermost.
    lines: dict[int, set[tuple[str, int]]] = {}
    for warp in dump.warps:
        if warp.line and warp.pc:
            lines[warp.pc] = {(Path(file).name, line) for file, line in (warp.line, *warp.inlined)}
    by_pc: dict[int, set[tuple[str, int]]] = {}
    for pc, file, line in said.lines:
        by_pc.setdefault(pc, set()).add((Path(file).name, line))
    for pc, places in by_pc.items():
        if pc in lines:
            same("source line", bool(lines[pc] & places), True, f"{lines[pc]} {places}")
    if said.focus and said.focus in found and said.symbol:
        # The debugger also counts inlined functions as frames, so the dump's own calls are at most as many.
        depth = len(found[said.focus].frames)
        same("call depth", depth <= said.level and (depth > 0 or said.level == 0 or bool(said.lines)), True)
    return done, wrong


def _compare_threads(dump: Dump, said: Said, number: int, same: object) -> None:
    assert callable(same)
    dev, grid_id = said.kernels[number][:2]
    ours: Counter[tuple[Dim, int]] = Counter()
    for warp in dump.warps:
        if (warp.device, warp.cta["grid_id"]) == (dev, grid_id):
            for pc, count in warp.pcs.items():
                ours[warp.cta["block"], pc] += count
    theirs = Counter({(block, pc): count for (kernel, block, pc), count in said.threads.items() if kernel == number})
    if any(block == (-1, -1, -1) for block, _ in theirs):
        same("threads by PC", _by_pc(ours), _by_pc(theirs), f"grid {grid_id}")
    else:
        same("threads by block and PC", ours, theirs, f"grid {grid_id}")


def _by_pc(counted: Counter[tuple[Dim, int]]) -> Counter[int]:
    found: Counter[int] = Counter()
    for (_, pc), count in counted.items():
        found[pc] += count
    return found


def _bare(mangled: str) -> str:
    return demangle(mangled).short.removeprefix("void ").replace(" ", "").split("<")[0]


def against(file: BinaryIO, text: str) -> tuple[Counter[str], list[str]]:
    """Read both and compare."""
    return compare(Dump(file), read_text(text))


def main(folders: list[str]) -> int:
    total: Counter[str] = Counter()
    differences = 0
    for folder in folders:
        dumps = sorted(Path(folder).glob("*.nvcudmp"))
        text = Path(folder, "cuda-gdb.txt")
        if not dumps or not text.is_file():
            print(f"{folder}: no dump or no text")
            continue
        with dumps[0].open("rb") as file:
            done, wrong = against(file, text.read_text(errors="replace"))
        print(f"{folder}: {done.total()} compared, {len(wrong)} differ")
        for line in wrong[:20]:
            print(f"    {line[:400]}")
        total += done
        differences += len(wrong)
    print(f"{len(folders)} folders, {total.total()} values compared, {differences} differ")
    for what, count in total.most_common():
        print(f"  {count:6} {what}")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
