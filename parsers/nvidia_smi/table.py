"""The default view of `nvidia-smi`: the date, the banner with versions, two rows a GPU, and the process table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from parsers.contract import Line, Trouble
from parsers.event import Event, fact
from parsers.nvidia_smi.device import ABSENT, Device, Found, number, pci_address, process_event
from parsers.pattern import lazy
from parsers.stamp import Stamp
from parsers.wallclock import ctime

BANNER = lazy(r"\|\s*NVIDIA-SMI\s+\d")
DRIVER = lazy(r"(?:Driver|KMD) Version:\s*(\d[\w.]*)")
CUDA = lazy(r"CUDA (?:UMD )?Version:\s*(\d[\w.]*)")
ADDRESS = lazy(r"\b[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d\b")
POWER = lazy(r"(?P<draw>\d+(?:\.\d+)?) ?W\s*/\s*(?P<limit>\d+(?:\.\d+)?|N/A) ?W?")
TEMPERATURE = lazy(r"\b(?P<temp>\d{1,3})C\b")
PSTATE = lazy(r"\bP(?:1[0-5]|\d)\b")
MEMORY = lazy(r"(?P<used>\d+) ?MiB\s*/\s*(?P<total>\d+) ?MiB")
UTILISATION = lazy(r"(?P<util>\d{1,3})\s*%")
PROCESS = lazy(
    r"\|\s*(?P<gpu>\d+)\s+(?:(?:N/A|\d+)\s+(?:N/A|\d+)\s+)?(?P<pid>\d+)\s+(?P<type>C\+G|C|G|M\+C)\s+(?P<name>.*?)\s+"
    r"(?P<memory>\d+ ?MiB|N/A)\s*\|"
)
FIRST_ROW = lazy(r"(?P<index>\d+)\s+(?P<name>\S.*?)(?:\s+(?:On|Off|N/A))?$")
INSTANCE = lazy(r"\|\s*(?P<gpu>\d+)\s+(?P<gi>\d+)\s+(?P<ci>\d+)\s+(?P<dev>\d+)\s*\|")


def begins(text: str) -> bool:
    """Whether a line opens the view: its banner, or the rule above it."""
    return bool(BANNER.match(text))


def read(lines: Sequence[Line], source: str) -> Iterator[Found]:
    """Events of the view, in the order of the lines. How many GPUs there are is said only by a view that goes on to the
    rule below its last GPU; samples of one that does not are marked `cut`."""
    whole = _closed(lines)
    for event in sorted(_read(lines, source), key=lambda event: event.span.first_line):
        if not whole and event.kind == "gpu_samples.sample":
            event.fields["cut"] = True
        yield event
    ended = next((line for line in reversed(lines) if line.text.strip()), None)
    if ended is not None and not whole:
        yield Trouble(source, "truncated", "the table ends inside the rows of a GPU", ended.number, ended.start)


def _closed(lines: Sequence[Line]) -> bool:
    """Whether a rule stands below the last GPU's row, or none is shown at all."""
    for line in reversed(lines):
        text = line.text.strip()
        if text.startswith("+-") and len(text) > 40:
            return True
        if text.startswith("|") and ADDRESS.search(text):
            return False
    return True


def _read(lines: Sequence[Line], source: str) -> Iterator[Event]:
    stamp: Stamp | None = None
    device: Device | None = None
    gpus = 0
    last: Line | None = None
    for line in lines:
        text = line.text.strip()
        if not text.startswith("|"):
            stamp = ctime(text) or stamp
            continue
        if BANNER.match(text):
            found = DRIVER.search(text)
            if found:
                yield fact("driver.version", found[1], line.span(source), line.text, stamp=stamp)
            found = CUDA.search(text)
            if found:
                yield fact("cuda.version", found[1], line.span(source), line.text, stamp=stamp)
            continue
        found = PROCESS.match(text)
        if found:
            name = found["name"].strip()
            yield process_event(line, source, stamp, found["gpu"], int(found["pid"][:9]), name, number(found["memory"]))
            continue
        cells = [cell.strip() for cell in text.strip("|").split("|")]
        address = ADDRESS.search(text)
        if address and len(cells) >= 2:
            row = FIRST_ROW.match(cells[0])
            if row:
                device = Device(row["index"], pci_address(address[0]), row["name"].strip(), stamp=stamp, first=line)
                gpus += 1
                last = line
                yield fact(
                    "gpu.name", device.name or "", line.span(source), line.text, stamp=stamp, actor=device.actor()
                )
                if len(cells) >= 3 and cells[2].isdecimal() and int(cells[2][:12]) > 0:
                    fields = {"gpu": device.gpu, "volatile_uncorrected": int(cells[2][:12])}
                    yield Event("gpu_samples.ecc", line.span(source), line.text, stamp, device.actor(), fields)
                continue
        if device is not None and len(cells) >= 3:
            event = _second_row(cells, line, device, source)
            if event is not None:
                yield event
                if "ERR!" in text or "Unknown Error" in text:
                    fields = {"what": "unknown_error", "gpu": device.gpu}
                    yield Event("gpu_samples.error", line.span(source), line.text, stamp, device.actor(), fields)
                total = device.values.get("mem_total_mib")
                if total is not None:
                    yield fact("gpu.memory_mib", str(total), line.span(source), line.text, actor=device.actor())
                device = None
    if gpus and last is not None and _closed(lines):
        yield fact("gpu.count", str(gpus), last.span(source), last.text, stamp=stamp)


def _second_row(cells: list[str], line: Line, device: Device, source: str) -> Event | None:
    """The row with fan, temperature, power, memory and utilisation; None when the row is another one."""
    state, memory, utilisation = cells[0], cells[1], cells[2]
    found = POWER.search(state)
    if found:
        device.put("power_w", number(found["draw"]), line)
        device.put("power_limit_w", number(found["limit"]), line)
    found = TEMPERATURE.search(state)
    if found:
        device.put("temp_c", number(found["temp"]), line)
    found = PSTATE.search(state)
    if found:
        device.put("pstate", found[0], line)
    found = MEMORY.search(memory)
    if found:
        device.put("mem_used_mib", number(found["used"]), line)
        device.put("mem_total_mib", number(found["total"]), line)
    found = UTILISATION.search(utilisation)
    if found:
        device.put("util", number(found["util"]), line)
    if not device.values and not (ABSENT.match(memory) or "ERR!" in state or "N/A" in state):
        return None
    return device.sample(line, source)
