"""Text that people paste from cuda-gdb, and the driver's own `coredump:` progress lines.

Read: `info cuda kernels|warps|lanes|devices|sms`, device frames of `bt`, `x/i $pc`, the exception banner, changes of
focus. Formats: cuda-gdb 12 and 13. Tables are told by their rows, so a paste without the header line works too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from parsers.contract import Line, Trouble
from parsers.cuda_core.names import dtypes_of, library_of
from parsers.cuda_core.tables import EXCEPTIONS
from parsers.event import NOBODY, Actor, Event
from parsers.pattern import lazy
from parsers.stamp import ClockKind, Stamp

MOST_ROWS = 20_000
_PROMPT = "(cuda-gdb) "
_DIM = r"\((\d+),(\d+),(\d+)\)"
_KERNEL = lazy(
    rf"^[* ]? *(\d+) +(-|\d+) +(\d+) +(\d+) +([A-Z][a-z]+) +(0x[0-9a-f]+) +{_DIM} +{_DIM} +(\S.*)$"
)
_WARP = lazy(rf"^[* ]? *(\d+) +(0x[0-9a-f]{{8}}) +(0x[0-9a-f]{{8}}) +(0x[0-9a-f]{{16}}) +(\d+) +{_DIM} +{_DIM}")
_LANE = lazy(rf"^[* ]? *(\d+) +(active|divergent|inactive|exited) +(0x[0-9a-f]+|n/a) +(?:{_DIM}|n/a) +(\S.*)$")
_DEVICE = lazy(
    r"^[* ]? *(\d+) +([0-9a-f]{2}):([0-9a-f]{2})\.\d +(\S.{0,80}?) +(\S+) +(sm_\d+[af]?) +(\d+) +\d+ +\d+ +\d+"
    r" +(0x[0-9a-f]+)"
)
_SM = lazy(r"^[* ]? *(\d+) +(0x[0-9a-f]{16})$")
_BLOCK = lazy(rf"^[* ]? *{_DIM} +{_DIM} +(?:{_DIM} +{_DIM} +)?\d+ ")
_FRAME = lazy(r"^#(\d{1,6}) +(?:0x[0-9a-f]+ in )?(\S.*)$")
_PLACE = lazy(r"^(\S+):(\d{1,9})$")
_INSTRUCTION = lazy(r"^(?:=>|  ) (0x[0-9a-f]{6,16})(?: <([^>\t]*)>)?:\s+(\S.*)$")
_BANNER = lazy(r"^CUDA Exception: (\S.*)$")
_SIGNAL = lazy(
    r"^(?:Thread .{1,80} received|Program received|Program terminated with) signal CUDA_EXCEPTION_(\d+)(?:, (.*))?$"
)
_TRIGGERED = lazy(r"^The exception was triggered at PC (0x[0-9a-f]+) *(.*)$")
_FOCUS = lazy(r"^\[(?:Current focus set|Switching focus) to CUDA kernel \d+, grid \d+, block ")
_NOTHING = lazy(
    r"^No CUDA (?:kernels|SMs|Warps|Lanes|blocks|threads|devices)\.|^warning: No CUDA focus could be set"
)
_HEADER = lazy(
    r"^ *(?:Kernel +Parent +Dev +Grid|Wp +Active Lanes Mask|Ln +State +PC|Dev +PCI Bus/Dev ID|SM +Active Warps Mask)"
    r"|^ *BlockIdx +(?:To BlockIdx|ThreadIdx) |^Device \d+ SM \d+(?: Warp \d+)?$|^Opening GPU coredump: "
)
_DRIVER = lazy(
    r"^(?:\[(\d\d):(\d\d):(\d\d)\.(\d{1,9})\] )?coredump: (\S.*| +\S.*)$|^(WARNING: Ignoring unknown coredump flag .*)$"
)
_DETECTED = lazy(r"^Detected an exception of type CUDBG_EXCEPTION_(\w+) \((\d+)\)")
_STEP = lazy(r"^(?:SM \d+/\d+ has finished|\d+%\.\.\.)")
_CODES = {re.sub(r"[^a-z]", "", name): code for code, name in EXCEPTIONS.items()}
_CLAIMED = (
    *(_KERNEL, _WARP, _SM, _BLOCK, _LANE, _DEVICE, _BANNER, _SIGNAL, _TRIGGERED, _FOCUS, _NOTHING),
    *(_HEADER, _DRIVER),
)


class CudaGdbParser:
    """cuda-gdb text and `coredump:` lines."""

    name: ClassVar[str] = "cuda_gdb_text"
    kind: ClassVar[str] = "cuda_gdb"
    marks: ClassVar[tuple[bytes, ...]] = ()

    def sniff(self, head: str) -> float:
        """By the share of the lines that are beyond doubt."""
        lines = [line for line in head.split("\n")[:2000] if line.strip()]
        known = sum(self.claims(line) for line in lines)
        if not known:
            return 0.0
        share = known / len(lines)
        return 0.95 if share >= 0.5 else 0.7 if share >= 0.2 else 0.3

    def claims(self, text: str) -> bool:
        """A table row, banner, change of focus, kernel frame or `coredump:` line."""
        if len(text) > 4096:
            return False
        text = _plain(text)
        if any(pattern.match(text) for pattern in _CLAIMED):
            return True
        if _frame(text) and _of_device(text):
            return True
        found = _INSTRUCTION.match(text)
        return bool(found and found[2] and _sass(found[3]))

    def read(self, lines: Iterable[Line], source: str) -> Iterator[Event | Trouble]:
        """Kernels, exceptions, device frames and instructions, and the driver's lines that say more than progress."""
        for line in lines:
            if len(line.text) <= 4096:
                yield from self._events(line, _plain(line.text), source)

    def _events(self, line: Line, text: str, source: str) -> Iterator[Event]:
        span = line.span(source)
        found = _KERNEL.match(text)
        if found:
            name = _name(found[13])
            fields: dict[str, Any] = {"name": name, "grid_id": int(found[4]), "dev": int(found[3])}
            fields |= {"library": library_of(name), "dtypes": list(dtypes_of(name)), "status": found[5].lower()}
            yield Event("cuda_gdb.kernel", span, line.text, line.outer, NOBODY, fields)
            return
        found = _BANNER.match(text)
        if found:
            fields = {"name": found[1].lower(), "code": _code(found[1])}
            yield Event("cuda_gdb.exception", span, line.text, line.outer, NOBODY, fields)
            return
        found = _SIGNAL.match(text)
        if found:
            code = int(found[1]) if len(found[1]) < 10 else None
            fields = {"name": (found[2] or EXCEPTIONS.get(code or 0, "")).lower(), "code": code}
            yield Event("cuda_gdb.exception", span, line.text, line.outer, NOBODY, fields)
            return
        found = _TRIGGERED.match(text)
        if found:
            function, file, number = _placed(found[2])
            fields = {"function": function, "file": file, "line": number, "instruction": None}
            yield Event("cuda_gdb.frame", span, line.text, line.outer, NOBODY, fields)
            return
        found = _DRIVER.match(text)
        if found:
            yield from self._driver(line, found, source)
            return
        found = _INSTRUCTION.match(text)
        if found and _sass(found[3]):
            if text.startswith("=>"):
                function = (found[2] or "").partition("+")[0] or None
                fields = {"function": function, "file": None, "line": None, "instruction": found[3]}
                yield Event("cuda_gdb.frame", span, line.text, line.outer, NOBODY, fields)
            return
        frame = _frame(text)
        if frame and _of_device(text):
            fields = {"function": frame[1], "file": frame[2], "line": frame[3], "instruction": None}
            yield Event("cuda_gdb.frame", span, line.text, line.outer, NOBODY, fields)

    def _driver(self, line: Line, found: re.Match[str], source: str) -> Iterator[Event]:
        message = (found[5] or found[6]).strip()
        if _STEP.match(message):
            return
        stamp = line.outer or _stamp(found)
        span = line.span(source)
        actor = Actor(host=line.host) if line.host else NOBODY
        yield Event("cuda_gdb.coredump", span, line.text, stamp, actor, {"message": message})
        detected = _DETECTED.match(message)
        if detected and len(detected[2]) < 11:
            code = int(detected[2])
            name = EXCEPTIONS.get(code) or detected[1].lower().replace("_", " ")
            yield Event("cuda_gdb.exception", span, line.text, stamp, actor, {"name": name, "code": code})

    def inspect(self, lines: Iterable[Line], source: str) -> dict[str, Any]:
        """Tables as the debugger printed them, at most 20,000 rows each; `driver` holds the `coredump:` lines."""
        view: dict[str, Any] = {key: [] for key in ("devices", "sms", "kernels", "warps", "lanes", "frames")}
        view |= {"exceptions": [], "instructions": [], "driver": [], "empty": []}
        steps: Counter[str] = Counter()
        for line in lines:
            text = _plain(line.text[:4096])
            for key, pattern, shape in _ROWS:
                found = pattern.match(text)
                if found:
                    if len(view[key]) < MOST_ROWS:
                        view[key].append(shape(found))
                    break
            else:
                self._other(text, line, view, steps)
        view["progress"] = dict(steps)
        view["complete"] = not steps["started"] or steps["done"] >= steps["started"]
        view["notes"] = []
        if not view["complete"]:
            text = "the driver began a core dump and its lines do not say 'All done': the dump may be cut short"
            view["notes"].append({"tag": "truncated", "text": text})
        return view

    def _other(self, text: str, line: Line, view: dict[str, Any], steps: Counter[str]) -> None:
        found = _DRIVER.match(text)
        if found:
            message = (found[5] or found[6]).strip()
            steps["started"] += message.startswith("Starting GPU coredump")
            steps["done"] += message.startswith("All done")
            steps["errors"] += message.startswith("ERROR")
            if not _STEP.match(message) and len(view["driver"]) < MOST_ROWS:
                view["driver"].append({"line": line.number, "message": message})
        for event in self._events(line, text, ""):
            if event.kind == "cuda_gdb.exception":
                view["exceptions"].append({"line": line.number, **event.fields})
        found = _NOTHING.match(text)
        if found:
            view["empty"].append(text.strip())
        found = _INSTRUCTION.match(text)
        if found and _sass(found[3]) and len(view["instructions"]) < MOST_ROWS:
            symbol, _, offset = (found[2] or "").rpartition("+")
            entry = {"pc": found[1], "symbol": symbol or found[2], "offset": _int(offset), "text": found[3]}
            view["instructions"].append({**entry, "at_pc": text.startswith("=>")})
            return
        frame = _frame(text)
        if frame and len(view["frames"]) < MOST_ROWS:
            level, function, file, number = frame
            entry = {"level": level, "function": function, "kernel": "<<<" in text, "file": file, "line": number}
            view["frames"].append(entry)


def _kernel(found: re.Match[str]) -> dict[str, Any]:
    name = _name(found[13])
    return {
        "kernel": int(found[1]),
        "dev": int(found[3]),
        "grid_id": int(found[4]),
        "status": found[5].lower(),
        "sms": int(found[6], 16).bit_count(),
        "grid_dim": [int(found[n]) for n in (7, 8, 9)],
        "block_dim": [int(found[n]) for n in (10, 11, 12)],
        "name": name,
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


def _device(found: re.Match[str]) -> dict[str, Any]:
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


_ROWS = (
    ("kernels", _KERNEL, _kernel),
    ("warps", _WARP, _warp),
    ("lanes", _LANE, _lane),
    ("devices", _DEVICE, _device),
    ("sms", _SM, _sm),
)


def _plain(text: str) -> str:
    """The line without the debugger's prompt and trailing blanks."""
    return text.removeprefix(_PROMPT).rstrip()


def _of_device(text: str) -> bool:
    """Whether a frame is one of a kernel: launch dimensions or a function cloned into a kernel."""
    return "<<<" in text or "[clone " in text


def _frame(text: str) -> tuple[int, str, str | None, int | None] | None:
    """(level, function, file, line) of a `bt` line. Taken apart by hand: the parts are free text."""
    found = _FRAME.match(text)
    if found is None:
        return None
    rest, _, place = found[2].rpartition(" at ")
    where = _PLACE.match(place) if rest else None
    rest = rest if where else found[2]
    function = rest.partition("<<<")[0] if "<<<" in rest else rest.removesuffix(" ()")
    return int(found[1]), function.strip(), where[1] if where else None, _int(where[2]) if where else None


def _placed(text: str) -> tuple[str | None, str | None, int | None]:
    """`function (file:line)` of the banner's second line."""
    rest, _, place = text.rpartition(" (")
    where = _PLACE.match(place.removesuffix(")")) if rest else None
    if where is None:
        return text.strip() or None, None, None
    return rest.strip() or None, where[1], _int(where[2])


def _name(invocation: str) -> str:
    """The function of `name<…>(arguments)`: up to the parenthesis that opens the arguments."""
    depth = 0
    for at, letter in enumerate(invocation):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth <= 0 and not invocation.startswith("(anonymous", at):
            return invocation[:at]
    return invocation


def _code(name: str) -> int | None:
    return _CODES.get(re.sub(r"[^a-z]", "", name.lower()))


def _sass(text: str) -> bool:
    """SASS mnemonics are capitals, host instructions are not."""
    word = text.removeprefix("@").lstrip("!")
    if text.startswith("@"):
        word = text.partition(" ")[2].strip()
    return bool(re.match(r"[A-Z][A-Z0-9_]+(?:[. ;]|$)", word))


def _int(text: str | None) -> int | None:
    return int(text) if text and len(text) < 12 else None


def _stamp(found: re.Match[str]) -> Stamp | None:
    """`[20:01:20.923862]`: local time of day without a date."""
    if found[1] is None:
        return None
    seconds = int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3]) + float(f"0.{found[4]}")
    text = f"{found[1]}:{found[2]}:{found[3]}.{found[4]}"
    return Stamp(text, ClockKind.WALL, seconds, 10.0 ** -len(found[4]), year_known=False, date_known=False)


PARSER = CudaGdbParser()
