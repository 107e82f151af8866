"""Text that people paste from cuda-gdb, and the driver's own `coredump:` progress lines.

Read: `info cuda kernels|warps|lanes|devices|sms`, device frames of `bt`, `x/i $pc`, the exception banner, changes of
focus. Formats: cuda-gdb 12 and 13. Tables are told by their rows, so a paste without the header line works too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from parsers import cuda_gdb_rows as rows
from parsers.contract import Line, Trouble
from parsers.cuda_core.exceptions import EXCEPTIONS
from parsers.cuda_core.names import library_of, readable
from parsers.event import NOBODY, Actor, Event, fact

MOST_ROWS = 20_000
HELD_LINES = 12
_CLAIMED = (
    *(rows.KERNEL, rows.WARP, rows.SM, rows.BLOCK, rows.LANE, rows.DEVICE, rows.BANNER, rows.SIGNAL),
    *(rows.TRIGGERED, rows.FOCUS, rows.NOTHING, rows.HEADER, rows.DRIVER),
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
        text = rows.plain(text)
        if any(pattern.match(text) for pattern in _CLAIMED):
            return True
        if rows.frame_row(text) and rows.of_device(text):
            return True
        found = rows.INSTRUCTION.match(text)
        return bool(found and found[2] and rows.is_sass(found[3]))

    def read(self, lines: Iterable[Line], source: str) -> Iterator[Event | Trouble]:
        """Devices, kernels, exceptions, device frames and instructions, and the driver's lines that say more than
        progress; the facts `gpu.name` and `gpu.sm`."""
        reading = _Reading(source)
        for line in lines:
            if len(line.text) <= 4096:
                yield from reading.line(line, rows.plain(line.text))
        yield from reading.rest()

    def inspect(self, lines: Iterable[Line], source: str) -> dict[str, Any]:
        """Tables as the debugger printed them, at most 20,000 rows each; `driver` holds the `coredump:` lines."""
        view: dict[str, Any] = {key: [] for key in ("devices", "sms", "kernels", "warps", "lanes", "frames")}
        view |= {"exceptions": [], "instructions": [], "driver": [], "empty": []}
        steps: Counter[str] = Counter()
        reading = _Reading(source)
        for line in lines:
            text = rows.plain(line.text[:4096])
            for key, pattern, shape in rows.ROWS:
                found = pattern.match(text)
                if found:
                    if len(view[key]) < MOST_ROWS:
                        view[key].append(shape(found))
                    break
            else:
                self._other(text, line, view, steps)
            _exceptions(reading.line(line, text), view)
        _exceptions(reading.rest(), view)
        view["progress"] = dict(steps)
        view["complete"] = not steps["started"] or steps["done"] >= steps["started"]
        view["notes"] = []
        if not view["complete"]:
            text = "the driver began a core dump and its lines do not say 'All done': the dump may be cut short"
            view["notes"].append({"tag": "truncated", "text": text})
        return view

    def _other(self, text: str, line: Line, view: dict[str, Any], steps: Counter[str]) -> None:
        found = rows.DRIVER.match(text)
        if found:
            message = (found[5] or found[6]).strip()
            steps["started"] += message.startswith("Starting GPU coredump")
            steps["done"] += message.startswith("All done")
            steps["errors"] += message.startswith("ERROR")
            if not rows.STEP.match(message) and len(view["driver"]) < MOST_ROWS:
                view["driver"].append({"line": line.number, "message": message})
        found = rows.NOTHING.match(text)
        if found:
            view["empty"].append(text.strip())
        found = rows.INSTRUCTION.match(text)
        if found and rows.is_sass(found[3]) and len(view["instructions"]) < MOST_ROWS:
            symbol, _, offset = (found[2] or "").rpartition("+")
            entry = {"pc": found[1], "symbol": symbol or found[2], "offset": rows.small_int(offset), "text": found[3]}
            view["instructions"].append({**entry, "at_pc": text.startswith("=>")})
            return
        frame = rows.frame_row(text)
        if frame and len(view["frames"]) < MOST_ROWS:
            level, function, file, number = frame
            entry = {"level": level, "function": function, "kernel": "<<<" in text, "file": file, "line": number}
            view["frames"].append(entry)


class _Reading:
    """The events of one text, in the order of its lines.

    What the debugger says of an exception stands on several lines (focus, banner, PC, frame; in the driver's progress
    a line each for device, SM, warp and PC), so an exception is held back for a few lines to take them up.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.fault: Event | None = None
        self.held: list[Event] = []
        self.age = 0
        self.focus: dict[str, int] = {}
        self.gpus: dict[int, str] = {}
        self.before = ""

    def line(self, line: Line, text: str) -> Iterator[Event]:
        """Events that are ready after this line."""
        if self.fault is not None:
            self.age += 1
            if self.age > HELD_LINES:
                yield from self.rest()
        for event in self._events(line, text):
            if event.kind == "cuda_gdb.exception":
                yield from self.rest()
                self.fault, self.age = event, 0
            elif self.fault is not None:
                self.held.append(event)
            else:
                yield event

    def rest(self) -> Iterator[Event]:
        """What was held back."""
        if self.fault is not None:
            yield self.fault
        yield from self.held
        self.fault, self.held = None, []

    def _events(self, line: Line, text: str) -> Iterator[Event]:
        found = rows.DRIVER.match(text)
        if found:
            yield from self._driver(line, found)
            return
        span = line.span(self.source)

        def event(kind: str, fields: dict[str, Any], gpu: str | None = None) -> Event:
            actor = Actor(gpu=gpu, host=line.host) if gpu or line.host else NOBODY
            return Event(f"cuda_gdb.{kind}", span, line.text, line.outer, actor, fields)

        if found := rows.KERNEL.match(text):
            row = rows.kernel_row(found)
            keys = ("name", "grid_id", "dev", "library", "dtypes", "status", "grid_dim", "block_dim")
            yield event("kernel", {key: row[key] for key in keys}, self.gpus.get(row["dev"]))
        elif found := rows.DEVICE.match(text):
            row = rows.device_row(found)
            sm, pci = rows.capability(row["sm_type"]), row["pci"]
            self.gpus[row["dev"]] = pci
            fields = {key: row[key] for key in ("dev", "name", "pci", "active_sms")}
            yield event("device", {**fields, "sm": sm}, pci)
            actor = Actor(gpu=pci, host=line.host)
            yield fact("gpu.name", row["name"], span, line.text, stamp=line.outer, actor=actor)
            if sm:
                yield fact("gpu.sm", sm, span, line.text, stamp=line.outer, actor=actor)
        elif found := rows.FOCUS.match(text):
            self.focus = {key: int(found[at]) for at, key in enumerate(("grid_id", "dev", "sm", "warp"), 2)}
            self._tell({key: self.focus[key] for key in ("dev", "sm", "warp")})
        elif found := rows.BANNER.match(text):
            yield event("exception", self._exception(found[1].lower(), rows.exception_code(found[1])))
        elif found := rows.SIGNAL.match(text):
            code = int(found[1]) if len(found[1]) < 10 else None
            self.focus = {}  # the debugger names the new focus after the signal
            yield event("exception", self._exception((found[2] or EXCEPTIONS.get(code or 0, "")).lower(), code))
        elif found := rows.TRIGGERED.match(text):
            function, file, number = rows.placed(found[2])
            self._tell({"error_pc": found[1], "symbol": function, "library": library_of(function or "")})
            yield event("frame", rows.frame_fields(function, file, number))
        elif text.startswith("No CUDA kernels."):
            yield event("no_grid", {})
        elif (found := rows.INSTRUCTION.match(text)) and rows.is_sass(found[3]):
            if text.startswith("=>"):
                function = (found[2] or "").partition("+")[0] or None
                yield event(
                    "frame", rows.frame_fields(function, None, None, found[3], rows.wait_of(self.before, found[3]))
                )
            self.before = found[3]
        else:
            if found := rows.IN_KERNEL.match(text):
                self._tell({"kernel": found[1], "library": library_of(found[1])})
            frame = rows.frame_row(text)
            if frame and rows.of_device(text):
                yield event("frame", rows.frame_fields(*frame[1:]))

    def _exception(self, name: str, code: int | None) -> dict[str, Any]:
        blank: dict[str, Any] = dict.fromkeys(("dev", "sm", "warp", "error_pc", "symbol", "kernel", "library"))
        focus: dict[str, Any] = {key: self.focus[key] for key in ("dev", "sm", "warp") if key in self.focus}
        return {"name": name, "code": code, **blank, **focus}

    def _tell(self, more: dict[str, Any]) -> None:
        """Fill what the exception that is held back does not know yet."""
        if self.fault is not None:
            fields = self.fault.fields
            fields.update({key: value for key, value in more.items() if fields.get(key) is None})

    def _driver(self, line: Line, found: re.Match[str]) -> Iterator[Event]:
        message = (found[5] or found[6]).strip()
        if rows.STEP.match(message):
            return
        stamp = line.outer or rows.time_of_day(found)
        span = line.span(self.source)
        actor = Actor(host=line.host) if line.host else NOBODY
        detail = rows.DETAIL.match(message)
        if detail and self.fault is not None:
            key = {"Device": "dev", "SM": "sm", "Warp": "warp", "PC": "error_pc"}[detail[1]]
            self._tell({key: detail[2].lower() if key == "error_pc" else rows.small_int(detail[2])})
            return
        frame = rows.STACK.match(message)
        if frame:
            name = readable(frame[3].strip())
            if frame[1] == "0":
                self._tell({"symbol": frame[3].strip(), "library": library_of(frame[3].strip())})
            self._tell({"kernel": name})
            yield Event("cuda_gdb.frame", span, line.text, stamp, actor, rows.frame_fields(name, None, None))
            return
        yield Event("cuda_gdb.coredump", span, line.text, stamp, actor, {"message": message})
        detected = rows.DETECTED.match(message)
        if detected and len(detected[2]) < 11:
            code = int(detected[2])
            name = EXCEPTIONS.get(code) or detected[1].lower().replace("_", " ")
            self.focus = {}
            yield Event("cuda_gdb.exception", span, line.text, stamp, actor, self._exception(name, code))


def _exceptions(events: Iterable[Event], view: dict[str, Any]) -> None:
    for event in events:
        if event.kind == "cuda_gdb.exception" and len(view["exceptions"]) < MOST_ROWS:
            view["exceptions"].append({"line": event.span.first_line, **event.fields})


PARSER = CudaGdbParser()
