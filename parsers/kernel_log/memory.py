"""Host memory: the OOM killer, machine checks, EDAC and firmware-reported (GHES) errors.

Texts: mm/oom_kill.c (three generations), arch/x86/kernel/cpu/mce, drivers/edac, drivers/acpi/apei/ghes.c and
drivers/firmware/efi/cper.c. Status bits of a bank: Intel SDM vol. 3B, section 16.3.2.2.
"""

from __future__ import annotations

import re
from typing import Any

from parsers.event import Event
from parsers.kernel_log.log import Log
from parsers.kernel_log.record import Record
from parsers.pattern import lazy

_INVOKED = lazy(r"([^\s:]{1,16}(?: [^\s:]{1,15})?) invoked oom-killer: ")
_CHOICE = lazy(r"oom-kill:constraint=CONSTRAINT_(\w{2,24}),")
_TASK = lazy(r"task=(.{1,16}?),pid=(\d{1,10}),uid=")
_MEMCG = lazy(r"(?:oom_memcg|task_memcg)=([^,]{1,400}),")
_KILLED = lazy(
    r"(?:(Memory cgroup out of memory|Out of memory)[^:]{0,40}: )?Kill(?:ed)? process"
    r" (\d{1,10}),? \(([^)]{1,64})\)"
)
_KILLED_OLD = lazy(r"(Memory cgroup out of memory|Out of memory): Kill process (\d{1,10}) \(([^)]{1,64})\) score")
_REAPED = lazy(r"reaped process (\d{1,10}) \(([^)]{1,64})\)")
_ANON = lazy(r"anon-rss:\s{0,4}(\d{1,15})\s{0,4}kB")
_TASK_ROW = lazy(
    r"\[\s{0,8}\d{1,8}\]\s{1,8}\d{1,7}\s{1,8}\d{1,8}(?:\s{1,12}\d{1,12}){4,8}\s{1,12}-?\d{1,4} (\S.{0,15})$"
)
_CONSTRAINTS = {"NONE": "global", "MEMCG": "memcg"}

_MCE_BANK = lazy(
    r"CPU:? ?(\d{1,4})[:, ].{0,24}?Machine Check(?: Exception| Event)?: ([0-9a-f]{1,3}) Bank"
    r" (\d{1,3}): ([0-9a-fA-F]{16})"
)
_MCE_AMD = lazy(r"CPU:(\d{1,4}) \([^)]{3,16}\) MC(\d{1,3})_STATUS\[([^\]]{1,80})\]: ?(?:0x)?([0-9a-fA-F]{8,16})")
_MCE_WORDS = lazy(r"\[Hardware Error\]: (Corrected|Uncorrected|Deferred|Fatal|Uncorrectable)[ ,]")
_EDAC = lazy(r"EDAC \w{1,16}: (\d{1,9}) (CE|UE) (.{0,80}?)\bon (\S.{0,80}?) \(")
_EDAC_PLAIN = lazy(r"EDAC \w{1,16}: (?:(\d{1,9}) )?(CE|UE)\b")
_GHES = lazy(r"(\{\d{1,9}\})?\[Hardware Error\]:\s{0,4}(Hardware error from APEI|event severity: (\w{1,24}))")


def _bank_severity(status: str) -> str:
    value = int(status, 16)
    if value >> 57 & 1:  # PCC: processor context corrupt
        return "fatal"
    return "uncorrected" if value >> 61 & 1 else "corrected"


class MemoryReader:
    """OOM kills (one event a victim) and hardware errors of CPUs and DIMMs."""

    def __init__(self) -> None:
        self._kill: Event | None = None
        self._invoker: str | None = None
        self._constraint: str | None = None
        self._table: Event | None = None
        self._last: int | None = None
        self._ghes: Event | None = None
        self._ghes_mark: str | None = None

    def feed(self, record: Record, log: Log) -> bool:
        """Emits what the line says; False when it is about something else."""
        message = record.message
        if "oom" in message or "ill" in message:
            return self._oom(record, message, log)
        if message.startswith("[") and self._invoker is None and _TASK_ROW.match(message):
            # The killer's table of tasks, where the paste begins after the line that announces it.
            if self._table is None:
                self._table = log.emit("oom_kill", record, keep_open=True, constraint="other")
            return True
        if "Hardware Error" in message or "EDAC" in message or "achine check" in message or "achine Check" in message:
            return self._hardware(record, message, log)
        if "CMCI storm detected" in message:
            log.emit("mce", record, severity="corrected", message=message)
            return True
        return False

    def _oom(self, record: Record, message: str, log: Log) -> bool:
        if found := _INVOKED.search(message):
            self._invoker = found[1]
            self._constraint = None
            if self._table is None:
                # The killer was called; who was killed stands below, unless the log is cut.
                self._table = log.emit("oom_kill", record, keep_open=True, constraint="other", invoked_by=found[1])
            return True
        if found := _CHOICE.search(message):
            self._constraint = _CONSTRAINTS.get(found[1], "other")
            task = _TASK.search(message)
            memcg = _MEMCG.search(message)
            said: dict[str, Any] = {
                "victim": task[1] if task else None,
                "pid": int(task[2]) if task else None,
                "constraint": self._constraint,
                "memcg": memcg[1] if memcg else None,
                "invoked_by": self._invoker,
            }
            if self._table is not None:
                self._kill, self._table = self._table, None
                log.move(self._kill, record)
                self._kill.fields.update({name: value for name, value in said.items() if value is not None})
            else:
                self._kill = log.emit("oom_kill", record, keep_open=True, **said)
            return True
        if "reaped process" in message:
            reaped = _REAPED.search(message)
            if reaped and self._last != int(reaped[1]):
                self._victim(record, message, reaped[2], int(reaped[1]), None, log)
            return True
        found = _KILLED_OLD.search(message) or _KILLED.search(message)
        if not found:
            return False
        if not found[1] and not ("anon-rss" in message or self._kill or "total-vm" in message):
            return False  # some program's own words
        self._victim(record, message, found[3], int(found[2]), found[1], log)
        return True

    def _victim(self, record: Record, message: str, name: str, pid: int, killer: str | None, log: Log) -> None:
        """A process was chosen, killed or reaped; its first mention makes the event, later ones complete it."""
        self._last = pid
        anon = _ANON.search(message)
        constraint = {"Memory cgroup out of memory": "memcg", "Out of memory": "global"}.get(
            killer or "", self._constraint
        )
        event = self._kill
        if event is None and self._table is not None:
            event, self._table = self._table, None
            event.fields.update(pid=pid, constraint=constraint or "other")
            log.move(event, record)
        if event is None or event.fields.get("pid") != pid:
            event = log.emit(
                "oom_kill",
                record,
                keep_open=True,
                victim=name,
                pid=pid,
                constraint=constraint or "other",
                invoked_by=self._invoker,
            )
        elif "constraint" not in event.fields or anon or killer:
            log.move(event, record)
        event.fields["victim"] = name
        if anon:
            event.fields["anon_rss_kb"] = int(anon[1])
            log.close(event)
            self._kill = None
        else:
            self._kill = event

    def _hardware(self, record: Record, message: str, log: Log) -> bool:
        if found := _MCE_BANK.search(message):
            severity = "fatal" if "Exception" in found[0] and int(found[2], 16) & 4 else _bank_severity(found[4])
            log.emit("mce", record, cpu=int(found[1]), bank=int(found[3]), severity=severity, status=found[4])
            return True
        if found := _MCE_AMD.search(message):
            log.emit(
                "mce", record, cpu=int(found[1]), bank=int(found[2]), severity=_bank_severity(found[4]), status=found[4]
            )
            return True
        if "EDAC" in message:
            return self._edac(record, message, log)
        if found := _GHES.search(message):
            return self._firmware_first(record, found, log)
        if found := _MCE_WORDS.search(message):
            word = found[1].lower()
            log.emit(
                "mce", record, severity={"deferred": "uncorrected", "uncorrectable": "uncorrected"}.get(word, word)
            )
            return True
        if "Machine check events logged" in message:
            log.emit("mce", record, message="machine check events logged")  # to mcelog: no details here
            return True
        return "Hardware Error" in message

    def _edac(self, record: Record, message: str, log: Log) -> bool:
        found = _EDAC.search(message)
        if found:
            log.emit(
                "edac",
                record,
                count=int(found[1]),
                label=found[4].strip(),
                severity="uncorrected" if found[2] == "UE" else "corrected",
            )
            return True
        if found := _EDAC_PLAIN.search(message):
            log.emit(
                "edac", record, count=int(found[1] or 1), severity="uncorrected" if found[2] == "UE" else "corrected"
            )
        return True

    def _firmware_first(self, record: Record, found: re.Match[str], log: Log) -> bool:
        if found[2].startswith("Hardware error"):
            self._ghes_mark = found[1]
            self._ghes = log.emit("mce", record, keep_open=True, severity="corrected", source="ghes")
        elif self._ghes is not None and found[1] == self._ghes_mark:
            word = found[3].lower()
            self._ghes.fields["severity"] = {"recoverable": "uncorrected", "info": "corrected"}.get(word, word)
            log.close(self._ghes)
            self._ghes = None
        return True
