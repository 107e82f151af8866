"""The kernel's own end: panics, oopses, and a crash that was asked for."""

from __future__ import annotations

from parsers.kernel_log.log import Log
from parsers.kernel_log.record import Record
from parsers.pattern import lazy

_SYSRQ = lazy(r"(?:sysrq: )?(?:SysRq ?: )?Trigger a crash")
_PANIC = lazy(r"Kernel panic - not syncing: ?(.{0,200})")
_OOPS = lazy(
    r"(BUG: unable to handle .{0,120}|BUG: kernel NULL pointer dereference.{0,80}|kernel BUG at \S{1,160}"
    r"|Oops: \w{1,8}.{0,60}|Internal error: Oops.{0,80}|Unable to handle kernel .{0,100}"
    r"|general protection fault, .{0,100}"
    r"|general protection fault: [0-9a-f]{4}.{0,80})"
)
SAME_BLOCK = 60


class CrashReader:
    """One panic event for a block of oops lines, a second only when the kernel gives up."""

    def __init__(self) -> None:
        self._until = 0

    def feed(self, record: Record, log: Log) -> bool:
        """Emits a crash; False when the line is none."""
        message = record.message
        if "crash" in message and _SYSRQ.match(message.strip()):
            log.emit("sysrq_crash", record)
            return True
        if "anic" in message and (found := _PANIC.search(message)):
            log.emit("panic", record, message=found[1].strip())
            self._until = log.count + SAME_BLOCK
            return True
        if (
            "BUG" in message or "Oops" in message or "nable to handle" in message or "general protection" in message
        ) and (found := _OOPS.match(message.strip())):
            if log.count > self._until:
                log.emit("panic", record, message=found[1].strip())
            self._until = log.count + SAME_BLOCK
            return True
        return False
