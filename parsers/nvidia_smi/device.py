"""One GPU's readings as any of nvidia-smi's outputs shows them, and the events made of them.

Numbers keep nvidia-smi's units: percent, watt, MHz, degree Celsius, MiB. `N/A`, `[Not Supported]`, `ERR!` and the like
give no number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from parsers.contract import Line, Trouble
from parsers.event import Actor, Event, fact
from parsers.pattern import lazy
from parsers.stamp import Stamp

Found = Event | Trouble

PCI = lazy(r"(?P<domain>[0-9A-Fa-f]{4,8}):(?P<bus>[0-9A-Fa-f]{2}):(?P<device>[0-9A-Fa-f]{2})(?:\.\d)?$")
NUMBER = lazy(r"\s*\[?\s*(-?\d+(?:\.\d+)?)")
ABSENT = lazy(
    r"\s*\[?(?:N/A|Not Supported|Unknown Error|ERR!|None|Disabled|GPU is lost|-|)\]?\s*$", re.IGNORECASE
)

SAMPLE_FIELDS = (
    "util",
    "mem_util",
    "power_w",
    "power_limit_w",
    "sm_clock_mhz",
    "sm_clock_max_mhz",
    "temp_c",
    "mem_used_mib",
    "mem_total_mib",
    "pstate",
    "throttle",
)
# Bits of clocks_event_reasons (nvml.h, nvmlClocksEventReason*).
THROTTLE_BITS = {
    0x1: "gpu_idle",
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}


def number(text: str | None) -> float | None:
    """`122W`, `100 %`, `[N/A]`: the number or None; whole numbers come back whole."""
    if text is None or ABSENT.match(text):
        return None
    found = NUMBER.match(text)
    if not found:
        return None
    value = float(found[1][:18])
    return int(value) if value == int(value) else value


def pci_address(text: str) -> str | None:
    """`00000000:41:00.0` -> `0000:41:00` (domain:bus:device, lower case)."""
    found = PCI.match(text.strip())
    if not found:
        return None
    return f"{found['domain'].lower()[-4:]}:{found['bus'].lower()}:{found['device'].lower()}"


def throttle_names(text: str) -> str | None:
    """`0x0000000000000004` -> `sw_power_cap`; several reasons are joined with `|`; `0x0` and absent values -> None."""
    text = text.strip()
    if not text.lower().startswith("0x"):
        return None if ABSENT.match(text) or text == "Not Active" else text
    try:
        bits = int(text[:18], 16)
    except ValueError:
        return None
    return "|".join(name for bit, name in THROTTLE_BITS.items() if bits & bit) or None


@dataclass(slots=True)
class Device:
    """One GPU. `values` are the sample's fields plus what other events need; `lines` says where each was read."""

    index: str | None = None
    pci: str | None = None
    name: str | None = None
    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, Line] = field(default_factory=dict)
    stamp: Stamp | None = None
    first: Line | None = None

    @property
    def gpu(self) -> str | None:
        """What the GPU is called in events: its index, else its PCI address."""
        return self.index if self.index is not None else self.pci

    def put(self, name: str, value: Any, line: Line) -> None:
        """Keeps a reading; None is no reading, and the first one stays."""
        if value is not None and name not in self.values:
            self.values[name] = value
            self.lines[name] = line

    def actor(self) -> Actor:
        """The GPU as an actor: by PCI address when it is known."""
        return Actor(gpu=self.pci or self.index)

    def sample(self, line: Line, source: str, **more: Any) -> Event:
        """The sample event, quoting `line`."""
        fields: dict[str, Any] = {"gpu": self.gpu, "name": self.name}
        fields |= {name: self.values[name] for name in SAMPLE_FIELDS if name in self.values}
        return Event("gpu_samples.sample", line.span(source), line.text, self.stamp, self.actor(), fields | more)

    def events(self, source: str) -> Iterator[Event]:
        """Sample, ECC, link, fabric and facts, in the order of their lines."""
        found: list[Event] = []
        telling = next(
            (self.lines[name] for name in ("util", "power_w", "mem_used_mib", "temp_c") if name in self.lines), None
        )
        if telling is not None:
            found.append(self.sample(telling, source))
        groups = (
            ("gpu_samples.ecc", ("remap_failure", "remap_pending", "volatile_uncorrected", "aggregate_uncorrected")),
            ("gpu_samples.link", ("width", "gen", "width_max", "gen_max")),
            ("gpu_samples.fabric", ("state", "status")),
        )
        for kind, names in groups:
            seen = [name for name in names if name in self.lines]
            if not seen:
                continue
            if kind == "gpu_samples.link" and not {"width", "gen"} & set(seen):
                continue
            bad = [name for name in seen if self.values[name] not in (0, False, None)]
            line = self.lines[(bad if kind == "gpu_samples.ecc" and bad else seen)[0]]
            fields = {"gpu": self.gpu, **{name: self.values[name] for name in seen}}
            found.append(Event(kind, line.span(source), line.text, self.stamp, self.actor(), fields))
        for name in ("gpu.name", "gpu.uuid", "gpu.sm", "gpu.memory_mib", "gpu.vbios", "gpu.recovery_action", "gpu.mig"):
            if name in self.lines:
                line = self.lines[name]
                found.append(fact(name, str(self.values[name]), line.span(source), line.text, actor=self.actor()))
        yield from sorted(found, key=lambda event: event.span.first_line)


def process_event(
    line: Line,
    source: str,
    stamp: Stamp | None,
    gpu: str | None,
    pid: int | None,
    name: str | None,
    mem_mib: float | None,
    **more: Any,
) -> Event:
    """A process on a GPU."""
    fields = {"gpu": gpu, "pid": pid, "name": name, "mem_mib": mem_mib} | {
        k: v for k, v in more.items() if v is not None
    }
    return Event("gpu_samples.process", line.span(source), line.text, stamp, Actor(pid=pid, gpu=gpu), fields)
