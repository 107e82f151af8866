"""A GPU core dump on one screen: which kernel is resident, where its warps stand, who faulted, what is absent and why.

Only the `cuda_core` view of docs/report-format.md is read, so a saved view renders the same. Sentences about waits say
"consistent with" and name their limits: a dump is one sample.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from analyzer.render.columns import wrap
from analyzer.render.sanitise import shorten, terminal
from parsers.cuda_core.names import readable

KERNELS = 6
PLACES = 8
FAULTS = 6
SASS_AROUND = 6
WIDTH = 118
View = dict[str, Any]

_WAITS = {
    "block_barrier": "waits at a block barrier",
    "mbarrier_wait": "waits on an mbarrier",
    "cluster_barrier": "waits at a cluster barrier",
    "warp_sync": "lanes wait for others of their warp",
    "sleep_poll": "polls, sleeping in between",
    "memory_poll": "polls memory",
}
_SCHEDULE = re.compile(r"\b(?:Mainloop(?:Sm\d+)?\w+|Kernel(?:Tma|CpAsync|Ptr|Mixed|Multistage)\w+)")
_MEMORY = ("global_memory", "shared_memory", "local_memory", "constbank_memory")


def core_text(core: View) -> list[str]:
    """The lines under the artifact's own line. Every string of the dump is made safe to print."""
    lines = [*_wrapped("", _headline(core), 2), *_made(core), ""]
    for device in core.get("devices") or []:
        lines.append(_device(device))
    lines += _faults(core)
    kernels = core.get("kernels") or []
    for kernel in kernels[:KERNELS]:
        lines += ["", *_kernel(core, kernel)]
    if len(kernels) > KERNELS:
        lines.append(f"  … {len(kernels) - KERNELS} more kernels (--format json has all)")
    lines += [*_named(core), *_sass(core)]
    lines += _absent(core)
    if core.get("warps"):
        lines += ["", *_wrapped("  limits   ", str(core.get("limits") or ""), 11)]
    return lines


def _safe(value: object, limit: int = 110) -> str:
    return shorten(terminal(str(value)), limit)


def _wrapped(label: str, text: str, indent: int) -> list[str]:
    """The text behind its label, broken at blanks."""
    pieces = wrap(terminal(text), WIDTH - indent) or [""]
    first = label.ljust(indent) if len(label) < indent else label
    return [f"{first}{pieces[0]}", *(f"{' ' * indent}{piece}" for piece in pieces[1:])]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _headline(core: View) -> str:
    """What the dump shows, in one sentence."""
    devices, kernels, faults = core.get("devices") or [], core.get("kernels") or [], core.get("exceptions") or []
    if not devices:
        return "The tables of this dump cannot be read (see the notes above): what was resident is not known."
    if faults:
        first = faults[0]
        where = readable(str(first.get("symbol") or ""), 80) or "an address outside every module"
        kinds = len({fault.get("code") for fault in faults})
        more = f" and {_count(kinds - 1, 'other kind')} of exception" if kinds > 1 else ""
        return f"A GPU exception: {first.get('name')} (code {first.get('code')}) in {where}{more}."
    broken = [group for group in core.get("groups") or [] if group.get("broken")]
    if broken:
        return (
            f"A trap instruction stopped {_count(sum(g['warps'] for g in broken), 'warp')}; no exception is recorded."
        )
    if not kernels:
        return (
            "No kernel was resident on any device when this was taken: the GPU was idle or between two kernels. That "
            "fits a stall on the host as well as health; look at the host's stacks."
        )
    if not core.get("warps"):
        return "A kernel is listed but none of its warps was on an SM: about to start or just ended."
    waits: Counter[str] = Counter()
    for kernel in kernels:
        waits.update(kernel.get("waits") or {})
    waiting = waits.total() - waits["none"]
    name = readable(str(kernels[0].get("mangled") or ""), 80) or "a kernel without a name"
    what = f"{_count(len(kernels), 'kernel')} resident: {name}" + (" and others" if len(kernels) > 1 else "")
    if waiting:
        return f"{what}. {waiting:,} of {_count(waits.total(), 'warp')} stand where warps wait (one sample)."
    return f"{what}. No warp stands at an instruction that waits: it may be working."


def _made(core: View) -> list[str]:
    made = core.get("generator") or {}
    parts = [f"driver {_safe(made['driver'])}"] if made.get("driver") else ["driver not recorded"]
    if made.get("cuda"):
        parts.append(f"CUDA {_safe(made['cuda'])}")
    if made.get("time"):
        parts.append("taken " + _safe(made["time"]).replace("T", " ").replace("+00:00", " UTC"))
    totals = core.get("totals") or {}
    if totals:
        parts.append(f"{_count(totals.get('warps', 0), 'warp')}, {_count(totals.get('valid_lanes', 0), 'lane')}")
    if core.get("sections"):
        parts.append(_count(core["sections"], "section"))
    skipped = set(made.get("skipped") or [])
    kind = []
    if skipped >= {*_MEMORY, "nonrelocated_elf_images"}:
        kind.append("a lightweight dump: tables and code, no memory")
    elif skipped & set(_MEMORY):
        left = ", ".join(name.replace("_", " ") for name in _MEMORY if name in skipped)
        kind.append(f"written without {left}")
    if "abort" in skipped:
        kind.append("the process was not aborted by it")
    lines = _wrapped("  dump     ", ", ".join(parts), 11)
    return [*lines, *_wrapped("           ", f"flags {made['flags']:#x}: " + "; ".join(kind), 11)] if kind else lines


def _device(device: View) -> str:
    active = f"{device.get('active_sms')} of {device.get('num_sms')} SMs active"
    if not device.get("active_sms"):
        active = "nothing resident"
    kind = _safe(device.get("sm_type") or device.get("sm") or "?")
    name = _safe(device.get("name") or "unnamed")
    return f"  device {device.get('dev')} {name} ({kind}) at {_safe(device.get('pci'))}, {active}"


def _faults(core: View) -> list[str]:
    """Faults of one kind at one place on one line, with the first warp of them."""
    grouped: dict[tuple[Any, ...], list[View]] = {}
    for fault in core.get("exceptions") or []:
        key = (fault.get("dev"), fault.get("code"), fault.get("error_pc"), fault.get("symbol"))
        grouped.setdefault(key, []).append(fault)
    lines: list[str] = []
    for same in list(grouped.values())[:FAULTS]:
        first = same[0]
        sms = len({fault.get("sm") for fault in same})
        warps = sum(fault.get("warp") is not None for fault in same)
        who = (
            f"{_count(warps, 'warp')} on {_count(sms, 'SM')}"
            if warps
            else f"{_count(sms, 'SM')}, its warps have exited"
        )
        lines += [
            "",
            f"  fault    {_safe(first.get('name'))} (code {first.get('code')}): {who} of device {first.get('dev')}",
        ]
        at = f"{readable(str(first.get('symbol') or ''), 90)}+{first.get('offset') or 0:#x}"
        if not first.get("symbol"):
            at = "an address outside every module of the dump"
        pc = (
            f" (PC {_safe(first['error_pc'])})"
            if first.get("error_pc")
            else " (no error PC recorded; near the warp's PC)"
        )
        lines += _wrapped("           ", f"at {at}{pc}", 11)
        if first.get("line"):
            lines.append(f"           {_safe(first['line'])}")
        if first.get("warp") is not None:
            block = ",".join(map(str, first.get("cta") or []))
            who = f"SM {first.get('sm')}, warp {first['warp']}, block ({block})"
            lines.append(f"           first: {who}, {_count(first.get('lanes') or 0, 'lane')}")
    if len(grouped) > FAULTS:
        lines.append(f"           … {len(grouped) - FAULTS} more kinds or places")
    return lines


def _dims(dims: Any) -> str:
    return "x".join(map(str, dims)) if dims else "?"


def _kernel(core: View, kernel: View) -> list[str]:
    dev, grid = kernel.get("dev"), kernel.get("grid_id")
    name = readable(str(kernel.get("mangled") or ""), 100) or "without a name (no module image holds its entry)"
    lines = _wrapped("  kernel   ", name, 11)
    origin = [_safe(kernel["library"])] if kernel.get("library") else []
    origin += [" ".join(map(str, kernel["dtypes"]))] if kernel.get("dtypes") else []
    # Template arguments that a long name loses on one line: which main loop and which schedule of CUTLASS it is.
    origin += [_safe(word) for word in dict.fromkeys(_SCHEDULE.findall(str(kernel.get("name") or "")))][:3]
    about = [
        f"grid {grid} on device {dev}",
        *(["by its name: " + ", ".join(origin)] if origin else []),
        f"blocks {_dims(kernel.get('grid_dim'))} of {_dims(kernel.get('block_dim'))} threads",
        *([f"clusters of {_dims(kernel['cluster_dim'])}"] if kernel.get("cluster_dim") else []),
        f"of the process with thread {kernel['tid']}" if kernel.get("tid") else "host thread not recorded",
    ]
    if kernel.get("type") == "system":
        about.append("a kernel of the driver's own")
    if kernel.get("status") != "active":
        about.append(f"status {_safe(kernel.get('status'))}")
    lines += _wrapped("           ", ", ".join(about), 11)
    resident = (
        f"{_count(kernel.get('warps') or 0, 'warp')} of {_count(kernel.get('blocks') or 0, 'block')} resident on "
    )
    resident += _count(kernel.get("sms") or 0, "SM")
    x, y, z = kernel.get("grid_dim") or (0, 0, 0)
    if kernel.get("missing_warps"):
        gone = kernel["missing_warps"]
        resident += f"; {_count(gone, 'warp')} of these blocks {'has' if gone == 1 else 'have'} exited"
    if kernel.get("blocks", 0) > x * y * z > 0:
        resident += "; more blocks than the grid table says (a cooperative launch is written with other dimensions)"
    lines += _wrapped("           ", resident, 11)
    lines += _places(core, kernel)
    for text in kernel.get("conclusions") or []:
        lines += _wrapped("         → ", text, 11)
    return lines


def _places(core: View, kernel: View) -> list[str]:
    """Warps grouped by PC and wait, the largest group first, each with its source line and callers."""
    key = (kernel.get("dev"), kernel.get("grid_id"))
    groups = [group for group in core.get("groups") or [] if (group.get("dev"), group.get("grid_id")) == key]
    lines = []
    for group in groups[:PLACES]:
        state = _WAITS.get(group.get("wait_kind") or "", "no wait seen")
        if group.get("exception"):
            state = f"FAULTED: {_safe(group['exception'], 30)}"
        elif group.get("broken"):
            state = "stopped by a trap"
        lines.append(f"    {group['warps']:>7,} {state:<36} {_safe(group['at'], 150)}")
        stack = _stack(core, group)
        if stack:
            lines.append(f"            {'':<36} called from {stack}")
    if len(groups) > PLACES:
        rest = sum(group["warps"] for group in groups[PLACES:])
        lines.append(f"    {rest:>7,} at {_count(len(groups) - PLACES, 'more place')} (--format json has all)")
    return lines


def _stack(core: View, group: View) -> str:
    for warp in core.get("warps") or []:
        where = (warp.get("dev"), warp.get("grid_id"), warp.get("pc"))
        if where == (group.get("dev"), group.get("grid_id"), group.get("pc")) and warp.get("stack"):
            frames = []
            for frame in warp["stack"][:3]:
                symbol, _, offset = str(frame).rpartition("+")
                frames.append(f"{readable(symbol, 50)}+{offset}" if symbol else str(frame))
            more = f" and {len(warp['stack']) - 3} more" if len(warp["stack"]) > 3 else ""
            return _safe(" < ".join(frames) + more, 150)
    return ""


def _sass(core: View) -> list[str]:
    """`inspect --sass`: the instructions around each PC, those further away left out."""
    sass = core.get("sass")
    if not sass:
        return []
    lines: list[str] = []
    for excerpt in sass.get("excerpts") or []:
        lines += ["", *_wrapped("  sass     ", readable(str(excerpt.get("function")), 100), 11)]
        rows = excerpt.get("instructions") or []
        marked = [at for at, row in enumerate(rows) if row.get("warps") or row.get("error_pc")]
        last = -1
        for at, row in enumerate(rows):
            if not any(abs(at - mark) <= SASS_AROUND for mark in marked):
                continue
            if last >= 0 and at != last + 1:
                lines.append("             …")
            last = at
            who = f"{row['warps']:,} at PC" if row.get("warps") else ""
            who = f"FAULT {who}".strip() if row.get("error_pc") else who
            lines.append(f"  {who:>14} {'=>' if who else '  '} +{row['offset']:#06x}  {_safe(row['text'], 90)}")
    notes = sass.get("notes") or []
    return [
        *lines,
        *([""] if notes else []),
        *(line for note in notes for line in _wrapped("  sass     ", str(note), 11)),
    ]


def _absent(core: View) -> list[str]:
    """What the dump lacks and why; what the generation flags left out stands together."""
    left_out: list[str] = []
    rest: list[str] = []
    for text in core.get("missing") or []:
        what, found, _ = str(text).partition(": left out by the generation flag ")
        if found:
            left_out.append(what)
        elif not str(text).startswith("resident grids"):  # the headline says it
            rest.append(str(text))
    if left_out:
        rest.insert(0, f"{', '.join(left_out)}: left out by the generation flags")
    lines: list[str] = [""] if rest else []
    for text in rest:
        lines += _wrapped("  absent   ", text, 11)
    return lines


def _named(core: View) -> list[str]:
    """Kernels of a cut dump that the module images still name: loaded, which does not say that they ran."""
    names = core.get("named") or []
    if not names:
        return []
    said = f"{_count(len(names), 'kernel')} named in the module images that are left; which of them ran is not known"
    lines = ["", *_wrapped("  loaded   ", said, 11)]
    lines += [f"           {_safe(readable(str(name), 100))}" for name in names[:PLACES]]
    return [*lines, f"           … {len(names) - PLACES} more"] if len(names) > PLACES else lines
