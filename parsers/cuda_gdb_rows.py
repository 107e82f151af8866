"""The lines of cuda-gdb's text: one pattern and one shape for each kind of row (cuda-gdb 12 and 13)."""

from __future__ import annotations

import re
from typing import Any

from parsers.cuda_core.exceptions import EXCEPTIONS
from parsers.cuda_core.names import dtypes_of, library_of, readable
from parsers.pattern import lazy
from parsers.stamp import ClockKind, Stamp

_PROMPT = "(cuda-gdb) "
_DIM = r"\((\d+),(\d+),(\d+)\)"
KERNEL = lazy(rf"^[* ]? *(\d+) +(-|\d+) +(\d+) +(\d+) +([A-Z][a-z]+) +(0x[0-9a-f]+) +{_DIM} +{_DIM} +(\S.*)$")
WARP = lazy(rf"^[* ]? *(\d+) +(0x[0-9a-f]{{8}}) +(0x[0-9a-f]{{8}}) +(0x[0-9a-f]{{16}}) +(\d+) +{_DIM} +{_DIM}")
LANE = lazy(rf"^[* ]? *(\d+) +(active|divergent|inactive|exited) +(0x[0-9a-f]+|n/a) +(?:{_DIM}|n/a) +(\S.*)$")
DEVICE = lazy(
    r"^[* ]? *(\d+) +([0-9a-f]{2}):([0-9a-f]{2})\.\d +(\S.{0,80}?) +(\S+) +(sm_\d+[af]?) +(\d+) +\d+ +\d+ +\d+"
    r" +(0x[0-9a-f]+)"
)
SM = lazy(r"^[* ]? *(\d+) +(0x[0-9a-f]{16})$")
BLOCK = lazy(rf"^[* ]? *{_DIM} +{_DIM} +(?:{_DIM} +{_DIM} +)?\d+ ")
_FRAME = lazy(r"^#(\d{1,6}) +(?:0x[0-9a-f]+ in )?(\S.*)$")
_PLACE = lazy(r"^(\S+):(\d{1,9})$")
INSTRUCTION = lazy(r"^(?:=>|  ) (0x[0-9a-f]{6,16})(?: <([^>\t]*)>)?:\s+(\S.*)$")
BANNER = lazy(r"^CUDA Exception: (\S.*)$")
SIGNAL = lazy(
    r"^(?:Thread .{1,80} received|Program received|Program terminated with) signal CUDA_EXCEPTION_(\d+)(?:, (.*))?$"
)
TRIGGERED = lazy(r"^The exception was triggered at PC (0x[0-9a-f]+) *(.*)$")
FOCUS = lazy(
    r"^\[(?:Current focus set|Switching focus) to CUDA kernel (\d+), grid (\d+), (?:cluster [^\]]{1,80}, )?block "
    r"[^\]]{1,60}, device (\d+), sm (\d+), warp (\d+)"
)
IN_KERNEL = lazy(r"^(?:#\d{1,6} +)?(?:0x[0-9a-f]+ in )?(\S.*?)<<<\(")
DETAIL = lazy(r"^- (Device|SM|Warp|PC):? (0x[0-9a-fA-F]+|\d{1,9})$")
STACK = lazy(r"^#(\d{1,4})\s+(0x[0-9a-fA-F]+)\s+(\S.*)$")
NOTHING = lazy(r"^No CUDA (?:kernels|SMs|Warps|Lanes|blocks|threads|devices)\.|^warning: No CUDA focus could be set")
HEADER = lazy(
    r"^ *(?:Kernel +Parent +Dev +Grid|Wp +Active Lanes Mask|Ln +State +PC|Dev +PCI Bus/Dev ID|SM +Active Warps Mask)"
    r"|^ *BlockIdx +(?:To BlockIdx|ThreadIdx) |^Device \d+ SM \d+(?: Warp \d+)?$|^Opening GPU coredump: "
)
DRIVER = lazy(
    r"^(?:\[(\d\d):(\d\d):(\d\d)\.(\d{1,9})\] )?coredump: (\S.*| +\S.*)$|^(WARNING: Ignoring unknown coredump flag .*)$"
)
DETECTED = lazy(r"^Detected an exception of type CUDBG_EXCEPTION_(\w+) \((\d+)\)")
STEP = lazy(r"^(?:SM \d+/\d+ has finished|\d+%\.\.\.)")
# Mnemonics, and whether one just before the PC tells as well. A BAR.SYNC at the PC has not been issued yet.
_WAITS: tuple[tuple[str, tuple[str, ...], bool], ...] = (
    ("mbarrier_wait", ("SYNCS.PHASECHK", "NANOSLEEP.SYNCS"), True),
    ("cluster_barrier", ("UCGABAR_WAIT",), False),
    ("warp_sync", ("WARPSYNC",), False),
    ("sleep_poll", ("NANOSLEEP",), True),
    ("memory_poll", ("LDG.E.STRONG",), True),
)
_CODES = {re.sub(r"[^a-z]", "", name): code for code, name in EXCEPTIONS.items()}


def frame_fields(
    function: str | None, file: str | None, line: int | None, instruction: str | None = None, wait: str | None = None
) -> dict[str, Any]:
    return {"function": function, "file": file, "line": line, "instruction": instruction, "wait": wait}


def wait_of(before: str, at: str) -> str | None:
    """What a warp whose PC stands at `at` is consistent with waiting for, in the order of `cuda_core.waits`."""
    for kind, marks, behind in _WAITS:
        if any(mark in at for mark in marks) or (behind and any(mark in before for mark in marks)):
            return kind
    return None


def capability(sm_type: str) -> str | None:
    """`sm_90` and `sm_90a` are 9.0, `sm_121` is 12.1."""
    digits = re.sub(r"[^0-9]", "", sm_type)
    return f"{digits[:-1]}.{digits[-1]}" if len(digits) in (2, 3) else None


def kernel_row(found: re.Match[str]) -> dict[str, Any]:
    name = _name(found[13])
    return {
        "kernel": int(found[1]),
        "dev": int(found[3]),
        "grid_id": int(found[4]),
        "status": found[5].lower(),
        "sms": int(found[6], 16).bit_count(),
        "grid_dim": [int(found[n]) for n in (7, 8, 9)],
        "block_dim": [int(found[n]) for n in (10, 11, 12)],
        # The debugger's demangler gives up on the longest names and prints them as they are.
        "name": readable(name) if name.startswith("_Z") else name,
        "library": library_of(name),
        "dtypes": list(dtypes_of(name)),
    }


def _warp(found: re.Match[str]) -> dict[str, Any]:
    active, divergent = int(found[2], 16), int(found[3], 16)
    return {
        "warp": int(found[1]),
        "active_lanes": active.bit_count(),
        "divergent_lanes": divergent.bit_count(),
        "pc": found[4],
        "kernel": int(found[5]),
        "cta": [int(found[n]) for n in (6, 7, 8)],
    }


def _lane(found: re.Match[str]) -> dict[str, Any]:
    exception = None if found[7].lower() == "none" else found[7]
    return {"lane": int(found[1]), "state": found[2], "pc": found[3], "exception": exception}


def device_row(found: re.Match[str]) -> dict[str, Any]:
    return {
        "dev": int(found[1]),
        "pci": f"0000:{found[2]}:{found[3]}",
        "name": found[4],
        "description": found[5],
        "sm_type": found[6],
        "num_sms": int(found[7]),
        "active_sms": int(found[8], 16).bit_count(),
    }


def _sm(found: re.Match[str]) -> dict[str, Any]:
    return {"sm": int(found[1]), "warps": int(found[2], 16).bit_count()}


ROWS = (
    ("kernels", KERNEL, kernel_row),
    ("warps", WARP, _warp),
    ("lanes", LANE, _lane),
    ("devices", DEVICE, device_row),
    ("sms", SM, _sm),
)


def plain(text: str) -> str:
    """The line without the debugger's prompt and trailing blanks."""
    return text.removeprefix(_PROMPT).rstrip()


def of_device(text: str) -> bool:
    """Whether a frame is one of a kernel: launch dimensions, a function cloned into a kernel, or a device function by
    the names that only nvcc gives (`_INTERNAL_…_cu_…`) and the headers that only kernels use."""
    return any(mark in text for mark in ("<<<", "[clone ", "_cu_", "cooperative_groups::", ".cuh:"))


def frame_row(text: str) -> tuple[int, str, str | None, int | None] | None:
    """(level, function, file, line) of a `bt` line. Taken apart by hand: the parts are free text."""
    found = _FRAME.match(text)
    if found is None:
        return None
    rest, _, place = found[2].rpartition(" at ")
    where = _PLACE.match(place) if rest else None
    rest = rest if where else found[2]
    function = rest.partition("<<<")[0] if "<<<" in rest else rest.removesuffix(" ()")
    return int(found[1]), function.strip(), where[1] if where else None, small_int(where[2]) if where else None


def placed(text: str) -> tuple[str | None, str | None, int | None]:
    """`function (file:line)` of the banner's second line."""
    rest, _, place = text.rpartition(" (")
    where = _PLACE.match(place.removesuffix(")")) if rest else None
    if where is None:
        return text.strip() or None, None, None
    return rest.strip() or None, where[1], small_int(where[2])


def _name(invocation: str) -> str:
    """The function of `name<…>(arguments)`: up to the parenthesis that opens the arguments."""
    depth = 0
    for at, letter in enumerate(invocation):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth <= 0 and not invocation.startswith("(anonymous", at):
            return invocation[:at]
    return invocation


def exception_code(name: str) -> int | None:
    return _CODES.get(re.sub(r"[^a-z]", "", name.lower()))


def is_sass(text: str) -> bool:
    """SASS mnemonics are capitals, host instructions are not."""
    word = text.removeprefix("@").lstrip("!")
    if text.startswith("@"):
        word = text.partition(" ")[2].strip()
    return bool(re.match(r"[A-Z][A-Z0-9_]+(?:[. ;]|$)", word))


def small_int(text: str | None) -> int | None:
    return int(text) if text and len(text) < 12 else None


def time_of_day(found: re.Match[str]) -> Stamp | None:
    """`[20:01:20.923862]`: local time of day without a date."""
    if found[1] is None:
        return None
    seconds = int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3]) + float(f"0.{found[4]}")
    text = f"{found[1]}:{found[2]}:{found[3]}.{found[4]}"
    return Stamp(text, ClockKind.WALL, seconds, 10.0 ** -len(found[4]), year_known=False, date_known=False)
