"""Heat and network ports. Texts: arch/x86/kernel/cpu/mce/therm_throt.c, drivers/thermal, mlx5_core, Ethernet drivers.

GPU throttling never reaches the kernel log; it is in nvidia-smi's clock event reasons.
"""

from __future__ import annotations

import re

from parsers.kernel_log.log import Log
from parsers.kernel_log.record import Record
from parsers.pattern import lazy

_HOT = lazy(
    r"(Core|Package|CPU\d{0,4}:?) ?temperature (?:is )?above threshold|temperature above"
    r" threshold",
    re.IGNORECASE,
)
_CRITICAL = lazy(
    r"critical temperature reached|thermal shutdown|over-?temperature|THERMTRIP|Critical"
    r" temperature",
    re.IGNORECASE,
)
_MLX_PORT = lazy(r"(mlx\d_\w{2,8} \S{4,16}) (\S{1,24}): Port: (\d{1,3}) Link (DOWN|INIT|ACTIVE|ARMED|UP)")
_MLX_MODULE = lazy(
    r"(mlx\d_\w{2,8} \S{4,16}):? .{0,24}?Port module event(?:\[error\])?: module (\d{1,3}),"
    r" (Cable \w{3,16}(?:, .{1,60})?|.{3,60})"
)
_NIC = lazy(
    r"(?:(mlx\d_\w{2,8}|bnxt_en|ice|i40e|ixgbe|igb|igc|e1000e|r8169|ena|tg3|qede|atlantic"
    r"|irdma) ([0-9a-fA-F]{4}:[0-9a-fA-F:.]{7,10})\s)?"
    r"(?:\(?([\w.@-]{1,24})\)?:? ?)?:? ?(?:NIC )?Link (?:is )?([Dd]own|[Uu]p|DOWN|UP)\b"
)


class EnvironmentReader:
    """Over-temperature and port state changes."""

    def feed(self, record: Record, log: Log) -> bool:
        """Emits what the line says; False when it says neither."""
        message = record.message
        if "emperature" in message or "thermal" in message or "THERM" in message or "verheat" in message:
            if _CRITICAL.search(message):
                log.emit("thermal", record, what="critical")
                return True
            if _HOT.search(message):
                log.emit("thermal", record, what="throttled")
                return True
            return False
        if "Link " not in message and "ink is " not in message and "Port module event" not in message:
            return False
        if found := _MLX_PORT.search(message):
            state = {"DOWN": "down", "INIT": "init", "ARMED": "init"}.get(found[4], "up")
            log.emit("network", record, device=found[2], port=int(found[3]), state=state)
            return True
        if found := _MLX_MODULE.search(message):
            words = found[3].strip()
            state = "up" if words.startswith("Cable plugged") else "unplugged" if "unplugged" in words else "error"
            log.emit(
                "network",
                record,
                device=found[1].split()[-1].rstrip(":"),
                port=int(found[2]),
                state=state,
                message=words,
            )
            return True
        if "Slot(" in message or message.startswith(("ata", "nvidia", "pci")):
            return False
        if (found := _NIC.search(message)) and (found[1] or "NIC Link" in message):
            log.emit("network", record, device=found[3] or found[2], state=found[4].lower())
            return True
        return False
