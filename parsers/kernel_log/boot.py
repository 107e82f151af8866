"""Where boots begin and how they end: separators, the kernel's banner, stops in order, lost lines.

Texts: init/version.c, kernel/reboot.c, systemd's journal separators and targets, printk and journald rate limits.
"""

from __future__ import annotations

from parsers.kernel_log.log import Log
from parsers.kernel_log.record import Record
from parsers.pattern import lazy
from parsers.stamp import ClockKind

_SEPARATOR = lazy(r"\s{0,4}-- (?:Boot [0-9a-f]{8,40}|Reboot) --")
_BANNER = lazy(r"Linux version (\d[\w.+~-]{2,80})")
_BUILD = lazy(
    r"(?:PID: \d{1,10} (?:UID: \d{1,10} )?)?Comm: .{1,64}? (?:Tainted: .{0,40}?|Not tainted)"
    r" ?(\d\.\d{1,3}[\w.+~-]{1,60}) #"
)
_TAINT = lazy(r"^\s{0,8}(?:Tainted: .{0,40}?|Not tainted) ?(\d\.\d{1,3}[\w.+~-]{1,60}) #")
_WELCOME = lazy(r"Welcome to (\S.{2,80}?)!$")
_LOST = lazy(
    r"(\d{1,9}) (?:callbacks|messages|output lines|printk messages) (?:suppressed|dropped)"
    r"|Missed (\d{1,9}) kernel messages"
    r"|Suppressed (\d{1,9}) messages|: (\d{1,9}) messages lost due to rate-limiting|begin"
    r" to drop messages due to rate-limiting"
)
_STOPPED: tuple[tuple[str, str], ...] = (
    ("reboot: Restarting system", "restart"),
    ("reboot: Power down", "power off"),
    ("reboot: System halted", "halt"),
    ("Restarting system.", "restart"),
    ("Power down.", "power off"),
)
_TARGET = lazy(
    r"Reached target (?:\S{1,40}\.target - )?((?:System )?(?:Shutdown|Power-?[Oo]ff|Reboot"
    r"|Restart|Halt|Final Step|Unmount All Filesystems|Late Shutdown Services))"
)
_POWER = lazy(
    r"System is (powering down|rebooting|halting)|The system will (power off|reboot|halt) now"
    r"|Shutting down\.$|Powering off\.$|Rebooting\.$"
)
CLOCK_STEP = 1.0
"""A boot clock that falls by more than this many seconds belongs to another boot."""


_EXITED = lazy(r"([\w@.:\\-]{1,120})\.service: Main process exited, code=(exited|killed|dumped), status=(\d{1,3})\b")
_CRASHED = (4, 6, 7, 8, 9, 11)
"""Signals that no orderly stop uses."""
_SERVER = lazy(r"(?i)vllm|sglang|trt-?llm|triton|llm|inference|tgi\b|model|serv(?:e|ing)\b")


class BootReader:
    """Counts boots and says how they ended."""

    def __init__(self) -> None:
        self.boots = 0
        self._last_uptime: float | None = None
        self._boot_id: str | None = None
        self._separator_at = -1_000
        self._paired = False

    def turn(self, record: Record, log: Log) -> bool:
        """Whether a new boot begins with this record; called before every other reader."""
        message = record.message
        if not record.prefixed and _SEPARATOR.match(message):
            self._begin(record, log, log.count)
            return True
        if record.boot_id and record.boot_id != self._boot_id:
            first, self._boot_id = self._boot_id is None, record.boot_id
            if not first:
                self._begin(record, log, log.count)
                return True
        uptime = record.uptime
        if uptime is None and record.stamp and record.stamp.clock is ClockKind.BOOT and record.prefixed:
            uptime = record.stamp.value
        began = False
        if (_BANNER.match(message.strip()) and record.is_kernel) or (
            uptime is not None and self._last_uptime is not None and uptime < self._last_uptime - CLOCK_STEP
        ):
            began = log.count - self._separator_at > 8
        if uptime is not None:
            self._last_uptime = uptime
        if began:
            self._begin(record, log, log.count)
            self._last_uptime = uptime
        if record.uptime is not None and not self._paired and record.stamp is not None:
            self._paired = True
            log.emit("clock_pair", record, uncertainty=record.stamp.precision)
        return began

    def _begin(self, record: Record, log: Log, at: int) -> None:
        self.boots += 1
        self._separator_at = at
        self._last_uptime = None
        self._paired = False
        log.emit("boot", record)

    def feed(self, record: Record, log: Log) -> bool:
        """Emits kernel facts, stops and lost lines; False when the line says none of these."""
        message = record.message
        if record.is_kernel:
            if "Linux version" in message and (found := _BANNER.search(message)):
                log.fact("kernel.version", found[1], record)
                return True
            if "ainted" in message and (found := _BUILD.search(message) or _TAINT.search(message)):
                log.fact("kernel.version", found[1], record)
                return True
            for words, what in _STOPPED:
                if message.strip().startswith(words):
                    log.emit("shutdown", record, what=what)
                    return True
        lost = "suppressed" in message or "messages" in message or "dropped" in message
        if lost and (found := _LOST.search(message)):
            count = next((group for group in found.groups() if group), None)
            log.emit("suppressed", record, count=int(count) if count else None)
            return True
        return self._userland(record, message, log)

    def _userland(self, record: Record, message: str, log: Log) -> bool:
        writer = record.writer or ""
        if not writer.startswith("systemd") and not (record.is_kernel and message.startswith("systemd")):
            if "exiting on signal 15" in message and "rsyslogd" in (writer + message[:40]):
                log.emit("shutdown", record, what="syslog stopped")
                return True
            return False
        if "Reached target" in message and (found := _TARGET.search(message)):
            log.emit("shutdown", record, what=found[1])
            return True
        if message.endswith(".") or "System is" in message or "The system" in message:
            found = _POWER.search(message)
        else:
            found = None
        if found:
            log.emit("shutdown", record, what=(found[1] or found[2] or found[0]).strip("."))
            return True
        # journald says "Journal stopped" in every boot too, when the initrd hands over: no sign of an end
        if writer == "systemd-shutdown" or message.startswith("systemd-shutdown["):
            log.emit("shutdown", record, what="systemd-shutdown")
            return True
        if "Main process exited" in message and (exited := _EXITED.search(message)):
            code = int(exited[3])
            killed = exited[2] != "exited"
            if code in _CRASHED if killed else code and _SERVER.search(exited[1]):
                log.emit("process.exit", record, exit_code=-code if killed else code, name=exited[1])
            return True
        if "Welcome to " in message and (found := _WELCOME.search(message)):
            log.fact("os", found[1], record)
            return True
        return False
