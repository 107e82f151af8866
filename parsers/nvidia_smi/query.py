"""`nvidia-smi -q` as text and as XML (`-q -x`): the whole state of each GPU.

Both are read line by line into paths of names (`ecc_errors/volatile/dram_uncorrectable`), so one table maps both. The
XML is never given to an XML parser: nvidia-smi writes one element a line, and a document type with its own entities is
refused. Names differ between driver branches; the table lists the spellings of 470 to 610.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from parsers.contract import Line, Trouble
from parsers.event import fact
from parsers.nvidia_smi.device import Device, Found, number, pci_address, process_event
from parsers.pattern import lazy
from parsers.stamp import Stamp
from parsers.wallclock import ctime

MAX_DEPTH = 32

TEXT_TITLE = lazy(r"=+NVSMI LOG=+")
TEXT_GPU = lazy(r"GPU (?P<pci>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)\s*$")
TEXT_PAIR = lazy(r"(?P<indent> *)(?P<key>\S.*?)\s*:(?: (?P<value>.*))?$")
XML_OPENING = lazy(r"\s*(?:<\?xml |<!DOCTYPE nvidia_smi_log|<nvidia_smi_log>)")
XML_TOKEN = lazy(
    r"<(?P<close>/?)(?P<tag>[A-Za-z_][\w.:-]{0,80})(?P<attributes>[^<>]{0,400})>(?P<text>[^<]{0,4000})"
)
XML_ID = lazy(r'\bid="([^"]{1,80})"')
WORD = lazy(r"[^a-z0-9]+")

# path (normalised, below the GPU) -> (field, how its value is read)
FIELDS: dict[str, tuple[str, str]] = {
    "product_name": ("gpu.name", "text"),
    "gpu_uuid": ("gpu.uuid", "text"),
    "uuid": ("gpu.uuid", "text"),
    "vbios_version": ("gpu.vbios", "text"),
    "gpu_recovery_action": ("gpu.recovery_action", "text"),
    "mig_mode/current": ("gpu.mig", "text"),
    "mig_mode/current_mig": ("gpu.mig", "text"),
    "performance_state": ("pstate", "text"),
    "utilization/gpu": ("util", "number"),
    "utilization/gpu_util": ("util", "number"),
    "utilization/memory": ("mem_util", "number"),
    "utilization/memory_util": ("mem_util", "number"),
    "fb_memory_usage/used": ("mem_used_mib", "number"),
    "fb_memory_usage/total": ("mem_total_mib", "number"),
    "clocks/sm": ("sm_clock_mhz", "number"),
    "clocks/sm_clock": ("sm_clock_mhz", "number"),
    "max_clocks/sm": ("sm_clock_max_mhz", "number"),
    "max_clocks/sm_clock": ("sm_clock_max_mhz", "number"),
    "temperature/gpu_current_temp": ("temp_c", "number"),
    "temperature/gpu_temp": ("temp_c", "number"),
    "remapped_rows/pending": ("remap_pending", "yes"),
    "remapped_rows/remapped_row_pending": ("remap_pending", "yes"),
    "remapped_rows/remapping_failure_occurred": ("remap_failure", "yes"),
    "remapped_rows/remapped_row_failure": ("remap_failure", "yes"),
    "fabric/state": ("state", "text"),
    "fabric/status": ("status", "text"),
}
for _section in ("gpu_power_readings", "power_readings"):
    for _name in ("instantaneous_power_draw", "instant_power_draw", "power_draw", "average_power_draw"):
        FIELDS[f"{_section}/{_name}"] = ("power_w", "number")
    for _name in ("current_power_limit", "power_limit", "enforced_power_limit"):
        FIELDS[f"{_section}/{_name}"] = ("power_limit_w", "number")
for _prefix in ("pci/gpu_link_info/", "pci/pci_gpu_link_info/"):
    for _name in ("pcie_generation/current", "pcie_gen/current_link_gen"):
        FIELDS[_prefix + _name] = ("gen", "number")
    for _name in ("pcie_generation/max", "pcie_gen/max_link_gen"):
        FIELDS[_prefix + _name] = ("gen_max", "number")
    for _name in ("link_width/current", "link_widths/current_link_width"):
        FIELDS[_prefix + _name] = ("width", "number")
    for _name in ("link_width/max", "link_widths/max_link_width"):
        FIELDS[_prefix + _name] = ("width_max", "number")

THROTTLE = lazy(r"clocks_(?:event|throttle)_reasons/(?:.*/)?(?:clocks_(?:event|throttle)_reason_)?(?P<name>\w+)$")
UNCORRECTED = lazy(r"ecc_errors/(?P<span>volatile|aggregate)/(?:\w+/)*(?:\w*uncorrectable\w*|total)$")


def begins_text(text: str) -> bool:
    """Whether a line opens `nvidia-smi -q`."""
    return bool(TEXT_TITLE.match(text.strip()))


def begins_xml(text: str) -> bool:
    """Whether a line opens `nvidia-smi -q -x`."""
    return bool(XML_OPENING.match(text)) and "html" not in text.lower()


def _word(text: str) -> str:
    return WORD.sub("_", text.lower()).strip("_")


class _Reading:
    """Collects the pairs of one document into devices."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.stamp: Stamp | None = None
        self.device: Device | None = None
        self.index = 0
        self.ecc: dict[str, int] = {}
        self.process: dict[str, tuple[str, Line]] = {}
        self.throttle: list[str] = []

    def begin_device(self, address: str, line: Line) -> Iterator[Found]:
        yield from self.end_device()
        self.device = Device(str(self.index), pci_address(address), stamp=self.stamp, first=line)
        self.index += 1

    def end_device(self) -> Iterator[Found]:
        yield from self.end_process()
        device, self.device = self.device, None
        if device is None:
            return
        if self.throttle:
            device.values["throttle"] = "|".join(self.throttle)
        self.throttle, self.ecc = [], {}
        if device.values.get("gpu.name") is not None:
            device.name = str(device.values["gpu.name"])
        if device.values.get("gpu.mig") != "Enabled":
            device.lines.pop("gpu.mig", None)
        if device.values.get("gpu.recovery_action") in (None, "None", "N/A"):
            device.lines.pop("gpu.recovery_action", None)
        for name in ("state", "status"):
            if device.values.get(name) == "N/A":
                device.lines.pop(name, None)
        if "mem_total_mib" in device.values:
            device.put("gpu.memory_mib", device.values["mem_total_mib"], device.lines["mem_total_mib"])
        yield from device.events(self.source)

    def end_process(self) -> Iterator[Found]:
        process, self.process = self.process, {}
        pid = process.get("pid") or process.get("process_id")
        if pid is None or not pid[0].isdecimal():
            return
        name = process.get("name") or process.get("process_name")
        memory = process.get("used_gpu_memory") or process.get("used_memory")
        gpu = self.device.gpu if self.device else None
        yield process_event(
            pid[1],
            self.source,
            self.stamp,
            gpu,
            int(pid[0][:9]),
            name[0] if name else None,
            number(memory[0]) if memory else None,
        )

    def pair(self, path: str, value: str, line: Line) -> Iterator[Found]:
        """One name and its value; `path` is below the GPU, or a bare name above all GPUs."""
        if self.device is None:
            yield from self._header(path, value, line)
            return
        if path.startswith("processes/"):
            name = path.rsplit("/", 1)[-1]
            if name in ("pid", "process_id") or (name == "gpu_instance_id" and "pid" in self.process):
                yield from self.end_process()
            self.process[name] = (value, line)
            return
        known = FIELDS.get(path)
        if known:
            name, reading = known
            if reading == "number":
                self.device.put(name, number(value), line)
            elif reading == "yes":
                if value in ("Yes", "No"):
                    self.device.put(name, value == "Yes", line)
            elif value and value not in ("Unknown",):
                self.device.put(name, value, line)
            return
        found = THROTTLE.match(path)
        if found and value == "Active" and "counters" not in path:
            self.throttle.append(found["name"].removeprefix("gpu_"))
            return
        found = UNCORRECTED.match(path)
        if found:
            count = number(value)
            if count is not None:
                name = f"{found['span']}_uncorrected"
                is_total = path.endswith("/total")
                if not is_total or "uncorrect" in path or "double_bit" in path:
                    self.ecc[name] = self.ecc.get(name, 0) + int(count)
                    self.device.values[name] = self.ecc[name]
                    if count or name not in self.device.lines:
                        self.device.lines[name] = line

    def _header(self, name: str, value: str, line: Line) -> Iterator[Found]:
        span = line.span(self.source)
        if name == "timestamp":
            self.stamp = ctime(value)
        elif name == "driver_version":
            yield fact("driver.version", value, span, line.text, stamp=self.stamp)
        elif name == "cuda_version":
            yield fact("cuda.version", value, span, line.text, stamp=self.stamp)
        elif name == "attached_gpus" and value.isdecimal():
            yield fact("gpu.count", value, span, line.text, stamp=self.stamp)


def read_text(lines: Sequence[Line], source: str) -> Iterator[Found]:
    """Events of `nvidia-smi -q`."""
    reading = _Reading(source)
    stack: list[tuple[int, str]] = []
    for line in lines:
        text = line.text.rstrip()
        found = TEXT_GPU.match(text.strip())
        if found:
            yield from reading.begin_device(found["pci"], line)
            stack = []
            continue
        if not text.strip() or TEXT_TITLE.match(text.strip()):
            continue
        indent = len(text) - len(text.lstrip())
        while stack and stack[-1][0] >= indent:
            stack.pop()
        pair = TEXT_PAIR.match(text) if ":" in text else None
        if pair is None:
            if len(stack) < MAX_DEPTH:
                stack.append((indent, _word(text)))
            continue
        path = "/".join([*(name for _, name in stack), _word(pair["key"])])
        yield from reading.pair(path, (pair["value"] or "").strip(), line)
        if not (pair["value"] or "").strip() and len(stack) < MAX_DEPTH:
            stack.append((indent, _word(pair["key"])))
    yield from reading.end_device()


def read_xml(lines: Sequence[Line], source: str) -> Iterator[Found]:
    """Events of `nvidia-smi -q -x`; a document that brings its own entities is refused."""
    for line in lines:
        if "<!ENTITY" in line.text or ("<!DOCTYPE" in line.text and "[" in line.text):
            text = "xml-dtd: the document declares entities of its own; it is not read"
            yield Trouble(source, "unsupported", text, line.number, line.start)
            return
    reading = _Reading(source)
    stack: list[str] = []
    for line in lines:
        for token in XML_TOKEN.finditer(line.text):
            tag = token["tag"].lower()
            if token["close"]:
                if tag in stack:
                    while stack and stack.pop() != tag:
                        pass
                if tag == "process_info":
                    yield from reading.end_process()
                if tag == "gpu" and not stack:
                    yield from reading.end_device()
                continue
            if tag == "nvidia_smi_log":
                continue
            if tag == "gpu" and not stack:
                named = XML_ID.search(token["attributes"])
                yield from reading.begin_device(named[1] if named else "", line)
                continue
            if token["attributes"].endswith("/"):
                continue
            from html import unescape

            value = unescape(token["text"]).strip()
            if len(stack) < MAX_DEPTH:
                stack.append(tag)
            if value:
                path = "/".join(stack).replace("processes/process_info/", "processes/")
                yield from reading.pair(path, value, line)
    if reading.device is not None:
        yield Trouble(source, "truncated", "the XML ends inside a GPU", lines[-1].number if lines else 0)
    yield from reading.end_device()
