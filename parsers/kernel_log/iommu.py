"""DMA that the IOMMU refused. Texts: drivers/iommu/amd/iommu.c, intel/dmar.c, arm/arm-smmu-v3."""

from __future__ import annotations

from typing import Any

from parsers.kernel_log.log import Log, gpu_address
from parsers.kernel_log.record import Record
from parsers.pattern import lazy

_AMD = lazy(
    r"IO_PAGE_FAULT\b.{0,40}?(?:device=(\S{5,16}) )?(?:domain=0x[0-9a-fA-F]{1,8}"
    r" )?address=(0x[0-9a-fA-F]{1,16})"
)
_AMD_DEVICE = lazy(r"(\w[\w-]{1,24}) ([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.\d): AMD-Vi")
_DMAR = lazy(
    r"(?:DMAR|dmar):? ?\[(?:DMA )?(Read|Write|INTR-REMAP)[^\]]{0,20}\] Request device \[(?:0x)?([0-9a-fA-F:x.]{5,16})\]"
    r"(?:.{0,40}?fault addr (?:0x)?([0-9a-fA-F]{1,16}))?(?:.{0,40}?\[fault reason"
    r" (0x)?([0-9a-fA-F]{1,2})\]\s{0,2}(.{0,80}))?"
)
_SMMU = lazy(
    r"arm-smmu\S{0,40} \S{1,40}: (?:event (0x[0-9a-fA-F]{1,4}) received|event: (\w{3,40})"
    r" client: (\S{1,40}))"
)


class IommuReader:
    """One event for each refused access; its GPU where the device is one."""

    def feed(self, record: Record, log: Log) -> bool:
        """Emits a fault; False when the line is none."""
        message = record.message
        if "IO_PAGE_FAULT" in message and (found := _AMD.search(message)):
            named = _AMD_DEVICE.search(message)
            device = found[1] or (named[2] if named else None)
            self._emit(record, log, device, found[2], owner=named[1] if named else None)
            return True
        if ("DMAR" in message or "dmar" in message) and (found := _DMAR.search(message)):
            self._emit(
                record,
                log,
                found[2].replace("0x", ""),
                f"0x{found[3]}" if found[3] else None,
                access=found[1].lower(),
                reason=(found[6] or "").strip() or None,
            )
            return True
        if "arm-smmu" in message and (found := _SMMU.search(message)):
            self._emit(record, log, found[3], None, reason=found[1] or found[2])
            return True
        return False

    def _emit(self, record: Record, log: Log, device: str | None, address: str | None, **fields: Any) -> None:
        place = gpu_address(device) if device else None
        if fields.get("owner") == "nvidia":
            log.knows_gpu(place)
        log.emit(
            "iommu_fault",
            record,
            gpu=place if place in log.gpus else None,
            device=device.lower() if device else None,
            address=address,
            **fields,
        )
