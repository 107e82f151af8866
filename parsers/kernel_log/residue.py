"""Kernel lines that speak of a failure and that no reader knows: they prove nothing, but they forbid an "all clear"."""

from __future__ import annotations

from parsers.kernel_log.log import Log
from parsers.kernel_log.record import Record
from parsers.pattern import lazy

_COMPLAINT = lazy(
    r"(?i)\b(?:errors?|fail(?:ed|ure|ures|s)?|fatal|panic|oops|bug:|warning:|cut here|call trace|rip:|code: [0-9a-f<]"
    r"|time-?d? ?-?out|cannot|could not|unable|invalid|illegal|corrupt(?:ed|ion)?|stuck|hung|killed|lost|dead"
    r"|reset(?:ting)?|abort(?:ed|ing)?|not responding|conflict\w{0,5}|mismatch|denied|rejected|exception)\b"
)
# What healthy machines say at every boot: firmware tables, capabilities by name, small devices, modules of one's own.
_HARMLESS = lazy(
    r"module verification failed|^(?:ACPI|RAS|ERST|BERT|HEST|usb|hid|Bluetooth|cfg80211|platform regulatory|tpm|snd_"
    r"|i8042|floppy|mtrr|x86/|efi|integrity|audit|Spectre|MDS|Mitigation)\b|error containment capabilities"
    r"|errors=remount-ro|SUBNQN|gsp_log|Direct firmware load|\bdev fd\d"
)


class ResidueReader:
    """Feeds on what the other readers leave."""

    def __init__(self) -> None:
        self._told = False

    def feed(self, record: Record, log: Log) -> bool:
        """Emits `kernel_log.complaint` for the first line with a word of failure; False for any other line."""
        if self._told or not _COMPLAINT.search(record.message) or _HARMLESS.search(record.message):
            return False
        self._told = True
        log.emit("complaint", record, message=record.message.strip())
        return True
