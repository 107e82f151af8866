"""NVIDIA driver lines other than Xid: load, start-up failures, GSP firmware, a lost GPU, version clashes.

Texts: open-gpu-kernel-modules osinit.c, nv.c, kernel_gsp.c, kernel_rc.c; the kernel's firmware loader and module
loader. What a healthy load prints is left out; `gsp_log_*.bin` in particular is a decoder file that is never shipped.
"""

from __future__ import annotations

import re

from parsers.event import Event
from parsers.kernel_log.log import Log, gpu_address
from parsers.kernel_log.record import Record
from parsers.pattern import lazy

_BANNER = lazy(
    r"NVRM: loading NVIDIA UNIX (Open )?(?:\S{1,16} )?Kernel Module(?: for"
    r" \S{1,16})?\s{1,4}(\d{3}\.[\d.]{1,12})"
)
_VERSION = lazy(r"\b(\d{3}\.\d{2,3}(?:\.\d{2,3})?)\b")
_IDENTITY = lazy(r"NVRM: GPU at (PCI:[0-9a-fA-F:.]{5,20}): (GPU-[0-9a-fA-F-]{8,40})")
_GPU_PCI = lazy(r"(?:GPU|PCI:|device) ?((?:[0-9a-fA-F]{4,8}:)[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.\d)?)")
_GPU_NUMBER = lazy(r"\b(GPU\d{1,3})\b")
_ADAPTER = lazy(r"RmInitAdapter failed!\s{0,2}\(([0-9a-fA-Fx:]{3,40})\)")
_CLIENT = lazy(
    r"client\b.{0,120}?\bhas\s+the\s+version\s+([\d.]{3,20}\d),?\s+but\s+this\s+kernel\s+mo"
    r"dule\s+has\s+the\s+version\s+([\d.]{3,20}\d)"
)
_KO_MISMATCH = lazy(r"Version mismatch: nvidia\.ko\(([\d.]{3,20})\) nvidia-\w+\.ko\(([\d.]{3,20})\)")
_FIRMWARE = lazy(
    r"(?:Direct firmware load for|firmware:? failed to load)"
    r" (nvidia/\S{1,80}?/(gsp_?\w{0,24})\.bin)|"
    r"Failed to load ((?:gsp_)(?!log)\w{1,24})\.bin|No firmware image found"
)
_HISTORY_ROW = lazy(
    r"NVRM:\s{1,12}0\s{1,8}(\d{1,6})\s{1,4}(\S{1,48})\s.{0,80}?(0x0006[0-9a-fA-F]{12})\s+(0x[0-"
    r"9a-fA-F]{16})"
)

_TROUBLE = lazy(
    r"fail|error|time(?:d)? ?out|assert|not supported|invalid|unable|cannot|can't|corrupt|locked|lost\b|uncorrectable"
    r"|unexpected|mismatch|overflow|halted|reset required|bad |insufficient|exceed|refus"
    r"|denied|not respond|unrecoverable",
    re.IGNORECASE,
)
_NOISE = lazy(
    r"\(non-fatal\)|gsp_log_|Attempted to process RPC event|Persistence mode is deprecated"
    r"|left-over mappings|VGA decodes"
    r"|Need to shutdown all links unilaterally|No errors|errors? (?:detected )?: ?0\b|nv_get_p2p_free_callback"
)
_REJECTED: tuple[tuple[str, str], ...] = (
    ("module with unavailable key is rejected", "unavailable key"),
    ("Key was rejected by service", "key rejected"),
    ("Required key not available", "key not available"),
    ("Loading of unsigned module is rejected", "unsigned"),
    ("unsigned module loading is restricted", "lockdown"),
    ("signature not signed with a trusted key", "untrusted key"),
    ("disagrees about version of symbol", "symbol version"),
    ("Unknown symbol", "unknown symbol"),
    ("version magic", "version magic"),
    ("Exec format error", "format"),
    ("section size must match", "built for another kernel"),
)
_INIT: tuple[tuple[str, str], ...] = (
    ("rm_init_adapter failed", "rm_init_adapter"),
    ("GFW_BOOT", "gfw_boot"),
    ("GFW boot complete", "gfw_boot"),
    ("This PCI I/O region assigned to your NVIDIA device is invalid", "bar_invalid"),
    ("BAR1 is 0M", "bar_invalid"),
    ("BAR0 is 0M", "bar_invalid"),
    ("probe routine failed", "probe_failed"),
    ("No NVIDIA GPU found", "no_gpu"),
    ("requires use of the NVIDIA open", "open_module_required"),
    ("None of the NVIDIA devices were", "no_device_initialised"),
    ("None of the NVIDIA graphics adapters were initialized", "no_device_initialised"),
    ("FWSEC", "fwsec"),
    ("failed to copy vbios", "vbios"),
    ("Failed to enable MSI", "msi"),
    ("can't find an IRQ", "irq"),
)
_GSP: tuple[tuple[str, str], ...] = (
    ("PMU has halted", "pmu_halt"),
    ("eartbeat timed out", "heartbeat"),
    ("HeartbeatTimedOut", "heartbeat"),
    ("GSP-CrashCat", "crashcat"),
    ("CrashCat", "crashcat"),
    ("GSP task exception", "crashcat"),
    ("GSP kernel exception", "crashcat"),
    ("GSP task watchdog", "crashcat"),
    ("Cannot initialize GSP firmware RM", "boot"),
    ("WPR2", "boot"),
    ("kgspBootstrap", "boot"),
    ("GSP-FMC", "boot"),
    ("failed to boot GSP", "boot"),
    ("Failed to boot GSP", "boot"),
    ("Rate limiting GSP RPC error prints", "rpc_timeout"),
    ("*** GSP Timeout ***", "rpc_timeout"),
    ("Timeout waiting for RPC from GSP", "rpc_timeout"),
    ("waiting for RPC response from", "rpc_timeout"),
    ("rpcSendMessage failed", "rpc_timeout"),
    ("rpcRecvPoll", "rpc_timeout"),
)


class NvrmReader:
    """Reads driver lines; keeps the last few for messages that spread over several."""

    def __init__(self) -> None:
        self._lost_at: str | None = None
        self._mismatch: tuple[Event, list[str]] | None = None
        self._conflict: Event | None = None
        self._owner: str | None = None

    def feed(self, record: Record, log: Log) -> bool:
        """Emits what the line says; False when it is no driver line."""
        message = record.message
        if "NVRM" not in message:
            return self._around_the_driver(record, log)
        if self._mismatch and self._grow_mismatch(message, log):
            return True
        if self._identity(record, log):
            return True
        pci = self._device(message, log)
        return (
            self._lost(record, message, pci, log)
            or self._versions(record, message, log)
            or self._conflict_line(record, message, log)
            or self._firmware(record, message, log)
            or self._gsp(record, message, pci, log)
            or self._init(record, message, pci, log)
            or self._other(record, message, pci, log)
        )

    def _device(self, message: str, log: Log) -> str | None:
        if found := _GPU_PCI.search(message):
            return gpu_address(found[1])
        if found := _GPU_NUMBER.search(message):
            return log.number_of(found[1])
        return None

    def _identity(self, record: Record, log: Log) -> bool:
        message = record.message
        if found := _BANNER.search(message):
            is_open = found[1] is not None
            log.emit("driver_loaded", record, version=found[2], open=is_open)
            log.fact("driver.version", found[2], record)
            log.fact("driver.open", "true" if is_open else "false", record)
            return True
        if found := _IDENTITY.search(message):
            pci = gpu_address(found[1])
            log.knows_gpu(pci)
            log.fact("gpu.uuid", found[2], record, gpu=pci)
            return True
        if found := _HISTORY_ROW.search(message):
            # Row 0 without an end is the call that hangs; its start is a Unix time inside an uptime log.
            if int(found[4], 16) == 0:
                log.emit("clock_pair", record, epoch=int(found[3], 16) / 1e6, uncertainty=60.0)
            return True
        return "GPU Board Serial Number" in message

    def _lost(self, record: Record, message: str, pci: str | None, log: Log) -> bool:
        if "The NVIDIA GPU " in message and pci:
            self._lost_at = pci
        if "fallen off the bus" not in message:
            return "The NVIDIA GPU " in message and "installed in this system" not in message
        pci = pci or self._lost_at
        log.knows_gpu(pci)
        log.emit("fallen_off_bus", record, gpu=pci, pci=pci, at_probe="not responding to commands" in message)
        return True

    def _versions(self, record: Record, message: str, log: Log) -> bool:
        if "API mismatch" in message:
            event = log.emit("api_mismatch", record, keep_open=True)
            self._mismatch = (event, [])
            self._grow_mismatch(message, log)
            return True
        return False

    def _grow_mismatch(self, message: str, log: Log) -> bool:
        assert self._mismatch is not None
        event, parts = self._mismatch
        parts.append(message.replace("NVRM:", " ").strip())
        found = _CLIENT.search(re.sub(r"\s+", " ", " ".join(parts)))
        if found:
            event.fields.update(client=found[1], module=found[2])
            log.fact_of(event, "driver.version", found[2])
        if found or len(parts) >= 5 or (len(parts) > 1 and "Xid" in message):
            log.close(event)
            self._mismatch = None
            return bool(found)
        return True

    def _conflict_line(self, record: Record, message: str, log: Log) -> bool:
        if "probe routine was not called" in message:
            self._conflict = log.emit("driver_conflict", record, keep_open=True, driver=self._owner or "unknown")
            return True
        if self._conflict is None:
            if "obtained ownership of" not in message and "Try unloading the conflicting" not in message:
                return False
            self._conflict = log.emit("driver_conflict", record, keep_open=True, driver=self._owner or "unknown")
        if "such as" in message and self._owner is None:
            named = re.search(r"such as:?\s{0,2}(\w{3,16})", message)
            if named:
                self._conflict.fields["driver"] = named[1]
            return True
        if any(
            part in message
            for part in (
                "or rivatv was",
                "the NVIDIA device(s)",
                "Try unloading",
                "Try reloading",
                "reconfigure your kernel",
                "driver(s)), then",
                "NVRM: again",
            )
        ):
            return True
        log.close(self._conflict)
        self._conflict = None
        return "No NVIDIA" in message and "probed" in message

    def _firmware(self, record: Record, message: str, log: Log) -> bool:
        if "gsp_log" in message:
            return True  # the log decoder's file, never shipped: harmless
        found = _FIRMWARE.search(message)
        if not found or "NVRM" not in message:
            return False
        log.emit("gsp", record, what="missing", file=found[1] or found[3])
        return True

    def _gsp(self, record: Record, message: str, pci: str | None, log: Log) -> bool:
        if _NOISE.search(message):
            return True
        for words, what in _GSP:
            if words in message:
                log.emit("gsp", record, gpu=pci, what=what, pci=pci, message=_after_nvrm(message))
                return True
        if "ssert" in message and ("gsp" in message or "Gsp" in message):
            log.emit("gsp", record, gpu=pci, what="assert", pci=pci, message=_after_nvrm(message))
            return True
        return False

    def _init(self, record: Record, message: str, pci: str | None, log: Log) -> bool:
        if found := _ADAPTER.search(message):
            log.knows_gpu(pci)
            log.emit("init_failure", record, gpu=pci, codes=found[1], pci=pci, what="rm_init_adapter")
            return True
        for words, what in _INIT:
            if words in message:
                pci = pci or (self._lost_at if what in ("open_module_required", "probe_failed") else None)
                log.emit("init_failure", record, gpu=pci, pci=pci, what=what)
                return True
        if "installed in this system is" in message or ("not supported by" in message and "driver release" in message):
            log.emit("init_failure", record, gpu=pci or self._lost_at, pci=pci or self._lost_at, what="unsupported_gpu")
            return True
        return False

    def _other(self, record: Record, message: str, pci: str | None, log: Log) -> bool:
        body = _after_nvrm(message)
        if "installed in this system" in body or body.startswith("(PCI ID"):
            return True
        if _TROUBLE.search(body):
            log.emit("nvrm", record, gpu=pci, message=body, pci=pci)
        return True

    def _around_the_driver(self, record: Record, log: Log) -> bool:
        """The module loader, the firmware loader and rival drivers speak without the NVRM prefix."""
        message = record.message
        for words, reason in _REJECTED:
            if words in message and _speaks_of_module(message, record):
                log.emit("module_rejected", record, reason=reason)
                return True
        if "nouveau" in message and message.startswith("nouveau "):
            self._owner = "nouveau"
            return True
        if message.startswith("vfio-pci ") and "vgaarb" in message:
            self._owner = "vfio-pci"
            return True
        if "firmware" in message and (found := _FIRMWARE.search(message)) and "nvidia" in message:
            if "gsp_log" not in message and "fail" in message:
                log.emit("gsp", record, what="missing", file=found[1])
            return True
        if "nvidia" not in message:
            return False
        if found := _KO_MISMATCH.search(message):
            log.emit("api_mismatch", record, client=found[2], module=found[1])
            log.fact("driver.version", found[1], record)
            return True
        if "Kernel Mode Setting Driver" in message and (version := _VERSION.search(message)):
            log.fact("driver.version", version[1], record)
            return True
        return False


def _after_nvrm(message: str) -> str:
    return (message.partition("NVRM:")[2] or message.partition("NVRM ")[2]).strip()


def _speaks_of_module(message: str, record: Record) -> bool:
    """The loader's texts name no module at times; symbol and version complaints count for NVIDIA's modules only."""
    if "symbol" in message or "version magic" in message or "section size" in message:
        return message.lstrip().startswith("nvidia") or "nvidia" in message[:60]
    return record.is_kernel or "nvidia" in message
