"""NVSwitch SXid lines. Printer: open-gpu-kernel-modules common_nvswitch.h; the address has a function number."""

from __future__ import annotations

import re

from parsers import xid_catalogue
from parsers.event import Event
from parsers.kernel_log.log import Log
from parsers.kernel_log.record import Record
from parsers.pattern import lazy

_SXID = lazy(
    r"SXid \((?:PCI:)?([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.\d)?)\):\s{0,4}(\d"
    r"{4,6}),?\s{0,4}(.*)",
    re.DOTALL,
)
_LINK = lazy(r"\bLink (-?\d{1,3})\b")


class SxidReader:
    """Reads the first line of an SXid; the severity and data lines that follow add to it."""

    def __init__(self) -> None:
        self._last: Event | None = None

    def feed(self, record: Record, log: Log) -> bool:
        """Emits the event of an SXid line; False when the line is none."""
        message = record.message
        if "SXid (" not in message:
            return False
        found = _SXID.search(message)
        if not found:
            return False
        pci, code, rest = found[1].lower(), int(found[2]), found[3].strip()
        if self._last and rest.startswith(("Severity", "Data")) and self._last.fields.get("code") == code:
            return True
        if self._last and rest.startswith("Data"):
            return True
        entry = xid_catalogue.lookup_sxid(code)
        said = rest.lower()
        fatal = None
        if said.startswith(("fatal", "non-fatal", "nonfatal")):
            fatal = said.startswith("fatal")
        elif entry.fatality in ("always_fatal", "non_fatal"):
            fatal = entry.fatality == "always_fatal"
        link = _LINK.search(rest)
        self._last = log.emit(
            "sxid",
            record,
            code=code,
            mnemonic=entry.mnemonic,
            pci=pci,
            fatal=fatal,
            link=int(link[1]) if link else None,
            message=rest,
            first_action=entry.first_action,
            meaning=entry.meaning,
        )
        self._last.fields["class"] = entry.fatality
        return True
