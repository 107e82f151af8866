"""PCIe: AER, DPC, hot-plug and link lines. Texts: drivers/pci/pcie/aer.c, dpc.c, pci/hotplug/pciehp_ctrl.c, probe.c."""

from __future__ import annotations

import re

from parsers.event import Event
from parsers.kernel_log.log import Log, gpu_address
from parsers.kernel_log.record import Record
from parsers.pattern import lazy

_DEVICE = r"(?:[\w-]{2,24} )?([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.\d)"
_HEAD = lazy(
    _DEVICE + r": (?:AER: )?(?:Multiple )?(Corrected|Correctable|Uncorrected|Uncorrectable)(?:"
    r" \((Fatal|Non-Fatal)\))? error(?: message)?s? received",
    re.IGNORECASE,
)
_BUS_ERROR = lazy(
    _DEVICE + r":\s{0,4}(?:AER: )?PCIe Bus Error: severity=(Corrected|Correctable|Uncorrected"
    r"|Uncorrectable)(?: \((Fatal|Non-Fatal)\))?"
    r"(?:, type=([A-Za-z ]{4,24}?))?(?:,|$|\s\()",
    re.IGNORECASE,
)
_BIT = lazy(r"\[\s{0,2}(\d{1,2})\]\s{0,2}([A-Za-z][\w .-]{1,40}?)(\s{1,24}\(First\))?\s{0,24}$")
_STATUS = lazy(r"error status/mask=([0-9a-fA-F]{8})/([0-9a-fA-F]{8})")
_APEI = lazy(_DEVICE + r": (?:AER: )?aer_status: (0x[0-9a-fA-F]{8})")
_LAYER = lazy(r"aer_layer=([A-Za-z ]{4,24}), aer_agent=")
_WIDTH = lazy(
    _DEVICE + r": ([\d.]{1,8}) Gb/s available PCIe bandwidth, limited by ([\d.]{1,5}) GT/s PCIe"
    r" x(\d{1,2}) link at (\S{1,16})"
    r"(?: \(capable of [\d.]{1,8} Gb/s with ([\d.]{1,5}) GT/s PCIe x(\d{1,2}) link\))?"
)
_VENDOR = lazy(_DEVICE + r": \[10de:[0-9a-f]{4}\] type \d\d class 0x03")
_DRIVER = lazy(r"nvidia ([0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.\d): ")
_AT = lazy(_DEVICE + r": ")
_DOWN: tuple[tuple[str, str], ...] = (
    ("Card not present", "card_not_present"),
    ("Link Down", "link_down"),
    ("DPC: containment event", "dpc_containment"),
    ("device recovery failed", "recovery_failed"),
    ("can't recover", "recovery_failed"),
    ("Unable to change power state from D3cold", "power_state"),
    ("not ready", "not_ready"),
    ("Data Link Layer Link Active not set", "link_down"),
    ("link lost", "link_down"),
    ("PCIe link lost", "link_down"),
)
_ENDINGS = (
    "broadcast error_detected",
    "device has no AER-aware driver",
    "Root Port link has been reset",
    "Upstream Port link has been reset",
    "device recovery successful",
    "broadcast mmio_enabled",
    "broadcast resume",
    "broadcast slot_reset",
)


def _severity(word: str, kind: str | None) -> str:
    if word.lower().startswith("correct"):
        return "corrected"
    return "fatal" if kind and kind.lower() == "fatal" else "nonfatal"


class PcieReader:
    """One event for what the root port reports, one for the error record that follows; status bits join the latter."""

    def __init__(self) -> None:
        self._open: Event | None = None
        self._bits: list[str] = []

    def feed(self, record: Record, log: Log) -> bool:
        """Emits what the line says about PCIe; False when it says nothing."""
        message = record.message
        if self._open and self._grow(message):
            return True
        if "PCIe" in message or "AER" in message or "aer_" in message or "class 0x03" in message:
            if self._record(record, message, log):
                return True
        elif found := _DRIVER.match(message):
            log.knows_gpu(gpu_address(found[1]))
        return self._link(record, log)

    def _record(self, record: Record, message: str, log: Log) -> bool:
        if found := _BUS_ERROR.search(message):
            self._start(record, log, found[1], _severity(found[2], found[3]), (found[4] or "").strip() or None)
            return True
        if found := _HEAD.search(message):
            self._close(log)
            self._emit(log, record, found[1], _severity(found[2], found[3]), None, keep_open=False)
            return True
        if found := _APEI.search(message):
            self._start(record, log, found[1], "corrected", None)
            return True
        if found := _WIDTH.search(message):
            self._bandwidth(record, log, found)
            return True
        if found := _VENDOR.search(message):
            log.knows_gpu(gpu_address(found[1]))
            return True
        return False

    def _start(self, record: Record, log: Log, device: str, severity: str, layer: str | None) -> None:
        self._close(log)
        self._open = self._emit(log, record, device, severity, layer, keep_open=True)

    def _emit(self, log: Log, record: Record, device: str, severity: str, layer: str | None, keep_open: bool) -> Event:
        address = gpu_address(device)
        gpu = address if address in log.gpus or "nvidia " in record.message[:24] else None
        log.knows_gpu(gpu)
        return log.emit(
            "aer", record, gpu=gpu, keep_open=keep_open, severity=severity, device=device.lower(), layer=layer
        )

    def _grow(self, message: str) -> bool:
        """Status and bit lines of the record that is open."""
        assert self._open is not None
        if found := _STATUS.search(message):
            self._open.fields["status"] = found[1]
            return True
        if (found := _BIT.search(message)) and "[" in message:
            self._bits.append(found[2].strip())
            self._open.fields["bits"] = ", ".join(self._bits)
            return True
        if found := _LAYER.search(message):
            self._open.fields["layer"] = found[1].strip()
            return True
        return "TLP Header:" in message

    def _close(self, log: Log) -> None:
        if self._open:
            log.close(self._open)
        self._open, self._bits = None, []

    def _bandwidth(self, record: Record, log: Log, found: re.Match[str]) -> None:
        device, _, speed, width, at, full_speed, full_width = found.groups()
        address = gpu_address(device)
        # Speed alone is how an idle card looks at boot; a narrow link of a GPU is not.
        if address in log.gpus and full_width and int(width) < int(full_width):
            log.emit(
                "pcie_link",
                record,
                gpu=address,
                device=device.lower(),
                what="width_limited",
                width=int(width),
                width_max=int(full_width),
                speed=speed,
                speed_max=full_speed,
                at=at,
            )

    def _link(self, record: Record, log: Log) -> bool:
        message = record.message
        found = _AT.match(message)
        if not found:
            return False
        for words, what in _DOWN:
            if words in message and (what not in ("not_ready", "link_down") or "pci" in message or "Slot" in message):
                if what == "not_ready" and "after" not in message:
                    continue
                self._close(log)
                address = gpu_address(found[1])
                log.emit(
                    "pcie_link",
                    record,
                    gpu=address if address in log.gpus else None,
                    device=found[1].lower(),
                    what=what,
                )
                return True
        return any(words in message for words in _ENDINGS)
