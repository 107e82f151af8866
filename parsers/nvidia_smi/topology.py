"""`nvidia-smi topo -m` and `-p2p`, `nvidia-smi -L`, and /proc/driver/nvidia."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from parsers.contract import Line
from parsers.event import Actor, Event, fact
from parsers.nvidia_smi.device import Found, pci_address
from parsers.pattern import lazy

NODE = lazy(r"(?:GPU|NIC|mlx5_|CX)\w*$|NVME\d+$")
HEADER = lazy(r"\s*(?:GPU\d+\s+){1,}(?:\S.*)?$")
ROW = lazy(r"\s*(?P<node>GPU\d+|NIC\d+|mlx5_\w+)\s+(?P<cells>\S.*)$")
CELL = lazy(r"X|SYS|NODE|PHB|PXB|PIX|NV\d+|C2C|SOC|OK|CNS|GNS|TNS|NS|U|DR|NA|N/A$")
P2P_TITLE = lazy(r"(?:\$ )?nvidia-smi topo -p2p (?P<what>[rwnap]+)(?:\s+(?P<result>OK|CNS|GNS|TNS|NS|U|DR)\s*$)?")
TOPO_TITLE = lazy(r"(?:\$ )?nvidia-smi topo -m\b")
LISTED = lazy(r"GPU (?P<index>\d+): (?P<name>\S.*?)(?: \(UUID: (?P<uuid>GPU-[0-9a-fA-F-]+)\))?$")
INSTANCE = lazy(r"\s+MIG (?P<profile>\S+)\s+Device\s+(?P<number>\d+): \(UUID: (?P<uuid>MIG-[^)]+)\)")
MODULE = lazy(
    r"NVRM version: NVIDIA UNIX (?P<open>Open )?Kernel Module (?:for \S+ )?\s*(?P<version>\d+(?:\.\d+)+)"
)
PROC_PAIR = lazy(r"(?P<key>Model|GPU UUID|Video BIOS|Bus Location|GPU Firmware):\s+(?P<value>\S.*?)\s*$")

MAX_CELLS = 4_096


def begins_matrix(text: str) -> bool:
    """Whether a line is a topology command or the header of a matrix."""
    if P2P_TITLE.match(text) or TOPO_TITLE.match(text):
        return True
    return bool(HEADER.match(text)) and not text.lstrip().startswith("GPU0\tX") and not is_matrix_row(text)


def is_matrix_row(text: str) -> bool:
    """Whether a line is a matrix row rather than its header."""
    found = ROW.match(text)
    return bool(found) and bool(CELL.match(found["cells"].split()[0])) if found else False


def begins_list(text: str) -> bool:
    """Whether a line is one of `nvidia-smi -L`."""
    return bool(re.match(r"GPU \d+: .{3,120} \(UUID: GPU-", text)) or text.strip() in (
        "nvidia-smi -L",
        "$ nvidia-smi -L",
    )


def begins_module(text: str) -> bool:
    """Whether a line opens /proc/driver/nvidia/version."""
    return bool(MODULE.match(text))


def read_matrix(lines: Sequence[Line], source: str) -> Iterator[Found]:
    """The cells between GPUs, one event a pair (the upper half of the matrix)."""
    columns: list[str] = []
    capability: str | None = None
    cells = 0
    for line in lines:
        title = P2P_TITLE.match(line.text)
        if title:
            columns, capability = [], f"p2p {title['what']}"
            if title["result"]:
                fields = {"a": "*", "b": "*", "link": title["result"], "capability": capability}
                yield Event("gpu_samples.topology", line.span(source), line.text, fields=fields)
            continue
        row = ROW.match(line.text)
        if row is None or not CELL.match(row["cells"].split()[0]):
            names = line.text.split()
            if names and names[0].startswith("GPU"):
                columns = [name for name in names if NODE.match(name)]
            continue
        values = row["cells"].split()
        if not row["node"].startswith("GPU"):
            continue
        for other, link in zip(columns, values, strict=False):
            if not other.startswith("GPU") or not CELL.match(link) or link == "X":
                continue
            if int(other[3:] or 0) <= int(row["node"][3:]) or cells >= MAX_CELLS:
                continue
            cells += 1
            fields = {"a": row["node"], "b": other, "link": link} | ({"capability": capability} if capability else {})
            yield Event("gpu_samples.topology", line.span(source), line.text, fields=fields)


def read_list(lines: Sequence[Line], source: str) -> Iterator[Found]:
    """Names, UUIDs and MIG instances of `nvidia-smi -L`."""
    gpus = 0
    last: Line | None = None
    for line in lines:
        found = LISTED.match(line.text.rstrip())
        if found:
            gpus += 1
            last = line
            actor = Actor(gpu=found["index"])
            yield fact("gpu.name", found["name"], line.span(source), line.text, actor=actor)
            if found["uuid"]:
                yield fact("gpu.uuid", found["uuid"], line.span(source), line.text, actor=actor)
            continue
        found = INSTANCE.match(line.text)
        if found:
            value = f"{found['profile']} {found['uuid']}"
            yield fact("gpu.mig", value, line.span(source), line.text, actor=Actor(gpu=str(max(0, gpus - 1))))
    if last is not None:
        yield fact("gpu.count", str(gpus), last.span(source), last.text)


def read_module(lines: Sequence[Line], source: str) -> Iterator[Found]:
    """/proc/driver/nvidia: the loaded module's version, whether it is the open one, and the GPUs' identity."""
    for line in lines:
        found = MODULE.match(line.text)
        if found:
            yield fact("driver.version", found["version"], line.span(source), line.text)
            yield fact("driver.open", "true" if found["open"] else "false", line.span(source), line.text)
            continue
        found = PROC_PAIR.match(line.text)
        if found:
            names = {"Model": "gpu.name", "GPU UUID": "gpu.uuid", "Video BIOS": "gpu.vbios"}
            if found["key"] in names:
                yield fact(names[found["key"]], found["value"], line.span(source), line.text)
            elif found["key"] == "Bus Location":
                address = pci_address(found["value"])
                if address:
                    yield fact("gpu.pci", address, line.span(source), line.text)
