"""User processes that faulted. Texts: arch/x86/mm/fault.c, arch/x86/kernel/traps.c, arch/arm64/kernel/traps.c."""

from __future__ import annotations

import re
from typing import Any

from parsers.kernel_log.log import Log
from parsers.kernel_log.record import Record
from parsers.pattern import lazy

_NAME = r"(\S[^\[\]\n]{0,62}?)\[(\d{1,10})\]:? "
_LIBRARY = lazy(r"\bin ([^\s\[]{1,200})\[")
_SEGFAULT = lazy(
    _NAME + r"segfault at ([0-9a-fA-F]{1,16}) ip ([0-9a-fA-F]{1,16}|\S{1,20}) sp \S{1,20} error"
    r" ([0-9a-fA-F]{1,4})"
)
_TRAP = lazy(
    r"traps: " + _NAME + r"(?:trap )?(invalid opcode|general protection(?: fault)?|divide error|int3|stack segment"
    r"|bad (?:frame|iret)\S{0,12}|[a-z][a-z ]{2,30}?) ip:([0-9a-fA-F]{1,16}) sp:\S{1,20}"
    r" error:([0-9a-fA-F]{1,8})"
)
_ARM_FAULT = lazy(
    _NAME + r"unhandled (level \d \w{3,24} fault|[\w ]{3,40}?) \((\d{1,3})\) at (0x[0-9a-fA-F]{1,16}),"
    r" esr (0x[0-9a-fA-F]{1,10})"
)
_ARM_UNDEFINED = lazy(_NAME + r"undefined instruction: pc=(?:0x)?([0-9a-fA-F]{1,16})")


class FaultReader:
    """Segmentation faults, general protection faults and invalid opcodes, with the library that they happened in."""

    def feed(self, record: Record, log: Log) -> bool:
        """Emits a fault; False when the line is none."""
        message = record.message.strip()
        if "segfault at" in message:
            if found := _SEGFAULT.match(message):
                self._emit(
                    "segfault", record, log, message, found, error=found[5], address=f"0x{found[3]}", ip=found[4]
                )
                return True
        elif message.startswith("traps: "):
            if found := _TRAP.match(message):
                kind = "invalid_opcode" if found[3] == "invalid opcode" else "segfault"
                self._emit(
                    kind, record, log, message, found, error=found[3] if kind == "segfault" else None, ip=found[4]
                )
                return True
        elif "unhandled" in message and (found := _ARM_FAULT.match(message)):
            self._emit("segfault", record, log, message, found, error=found[3], address=found[5])
            return True
        elif "undefined instruction" in message and (found := _ARM_UNDEFINED.match(message)):
            self._emit("invalid_opcode", record, log, message, found, ip=found[3])
            return True
        return message.startswith("Code: ")

    def _emit(self, kind: str, record: Record, log: Log, message: str, found: re.Match[str], **fields: Any) -> None:
        library = _LIBRARY.search(message, found.end() - 1)
        log.emit(kind, record, pid=int(found[2]), name=found[1], library=library[1] if library else None, **fields)
