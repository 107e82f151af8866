"""Xid lines: one event each, with the catalogue's words and the part it plays (cause or aftermath).

Printer: open-gpu-kernel-modules kernel_rc.c; bodies by code: facts of kernel_rc.c, kernel_gsp.c and gpu.c. The
attributes in the bracket are `PCI:`address, then `GPU-I:`/`GPU-CI:` under MIG; `pid=`/`name=` are absent when no
process is known and quoted `'<unknown>'` in older drivers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from parsers import xid_catalogue
from parsers.kernel_log.log import Log, gpu_address
from parsers.kernel_log.record import Record
from parsers.pattern import lazy
from parsers.stamp import Stamp

AFTERMATH_SECONDS = 300.0
"""How long after a fault a follow-up on the same GPU counts as its consequence."""

_XID = lazy(
    r"Xid\s{0,2}\(\s{0,2}((?:PCI:)?[0-9a-fA-F]{1,8}(?::[0-9a-fA-F]{1,4}){1,2}(?:\.[0-9a-fA-F])?)"
    r"((?:\s{1,2}GPU-C?I:\s{0,2}\w{1,4}){0,2})\s{0,2}\):\s{0,4}(\d{1,4})(?!\d)[,:]?\s{0,4}(.*)",
    re.DOTALL,
)
_LEAD = lazy(r"\s{0,40}(?:NVRM:\s{1,4}(?:GPU\d{1,3} )?(?:[\w.]{1,80}: )?)?$")
_PID = lazy(r"pid='?<?(\w{1,10})>?'?\s{0,2}(?:,\s{0,4}|$)")
_NAME = lazy(r"name='?(<unknown>|[^,]{0,64}?)'?\s{0,2}(?:,\s{0,4}|$)")
_INSTANCE = lazy(r"GPU-(C?I):\s{0,2}(\w{1,4})")
_PREVIOUS = lazy(r"caused by previous Xid (\d{1,4})")
_LOCATION = lazy(r"\(GPC (\d{1,3}), TPC (\d{1,3}), SM (\d{1,3})\)(?::\s{0,2}(.{1,120}))?")
_MMU = lazy(
    r"ENGINE (\S{1,32})(?: (GPC\d{1,3}))?(?: (\w{1,48}))? faulted @"
    r" 0x([0-9a-fA-F]{1,8})_([0-9a-fA-F]{1,8})"
)
_FAULT_TYPE = lazy(r"Fault is of type (\w{1,48})(?: (\w{1,48}))?")
_RPC = lazy(r"Expected function (\d{1,6})(?: \(([A-Z0-9_]{1,64})\))?(?:[^()]{0,40}\((0x[0-9a-fA-F]{1,16}))?")
_RPC_GPU = lazy(r"from (GPU\d{1,3}) GSP")
_ACTION = lazy(
    r"recovery action changed from 0x([0-9a-fA-F]{1,4}) \(([^)]{1,64})\) to"
    r" 0x([0-9a-fA-F]{1,4}) \(([^)]{1,64})\)"
)
_LINK = lazy(r"[Ll]ink:?\s{0,2}(-?\d{1,3})")
_LINK5 = lazy(
    r"(\w{2,32}) (Nonfatal|Non-fatal|Fatal|Link Fatal) XC\d{1,2} i\d{1,2} Link (-?\d{1,3})"
    r" \(([0-9a-fA-Fx ]{1,80})\)"
)
_WORDS = lazy(r"\(((?:0x[0-9a-fA-F]{1,8}[\s,]{0,3}){2,8})\)")
_WORD = lazy(r"0x[0-9a-fA-F]{1,8}")
_ROW = lazy(r"\((0x[0-9a-fA-F]{4,16})\)")
_ESR = lazy(r"ESR (0x[0-9a-fA-F]{1,8})=(0x[0-9a-fA-F]{1,8})")
_WARP_ERRORS = {
    0x01: "Stack Error", 0x04: "PC Wrap", 0x05: "Misaligned PC", 0x06: "PC Overflow", 0x08: "Misaligned Register",
    0x09: "Illegal Instruction Encoding", 0x0B: "Illegal Instruction Parameter", 0x0C: "Invalid Constant Address",
    0x0D: "Out Of Range Register", 0x0E: "Out Of Range Address", 0x0F: "Misaligned Address",
    0x10: "Invalid Address Space", 0x11: "Illegal Instruction Parameter", 0x12: "Invalid Constant Address",
}  # fmt: skip
"""The low half of an SM's warp error register (names: nouveau gf100.c; the driver prints them in its other lines)."""

_LINK5_CODES = range(144, 151)
_DEAD_GSP = frozenset({61, 62, 119, 120})
_FAULTS = frozenset({13, 31})
_AFTER_GSP = frozenset({8, 13, 31, 32, 43, 45, 69, 79, 109, 119, 140, 143, 154, 158}) | _DEAD_GSP
_AFTER_ECC = frozenset({43, 45, 63, 94, 154, 160, 171, 172})
_AFTER_LINK = frozenset({8, 31, 43, 45, 109, 154})
_LINK_CODES = frozenset({74, 136, 137, 149, *_LINK5_CODES})


@dataclass(slots=True)
class _Fault:
    """An earlier Xid on a GPU. `pid` is the process that it was charged to, so far as that is known yet."""

    code: int
    line: int
    stamp: Stamp | None
    pid: int | None


def _seconds_between(earlier: Stamp | None, later: Stamp | None) -> float:
    """Zero where the two readings cannot be compared: then only the order of the lines speaks."""
    if earlier is None or later is None or earlier.clock is not later.clock:
        return 0.0
    return later.value - earlier.value


def _follows(code: int, earlier: int) -> bool:
    """Whether an Xid of this code is the aftermath of an earlier one on the same GPU."""
    if code == earlier:
        return False
    if earlier == 79:  # off the bus: whatever is asked of it now fails
        return True
    if earlier in _DEAD_GSP and code in _AFTER_GSP:
        return True
    if earlier == 48 and code in _AFTER_ECC:
        return True
    if earlier in (94, 95) and code in (43, 45, 154):
        return True
    if earlier in _LINK_CODES and code in _AFTER_LINK:
        return True
    return code in (8, 109, 154)  # a stuck channel after any fault is the fault's echo


class XidReader:
    """Reads Xid lines and keeps, for each GPU, the faults that later ones may follow from."""

    def __init__(self) -> None:
        self._faults: dict[str, list[_Fault]] = {}
        self._link_down: _Fault | None = None

    def reboot(self) -> None:
        """A new boot forgets all faults."""
        self._faults.clear()
        self._link_down = None

    def feed(self, record: Record, log: Log) -> bool:
        """Emits the event of an Xid line; False when the line is none."""
        if "Xid" not in record.message:
            return False
        start = record.message.find("Xid")
        found = _XID.match(record.message, start)
        lead = record.message[:start].rpartition("\n")[2]
        if not found or not _LEAD.match(lead):
            return False  # none, an SXid, or a quotation in another message
        pci, code = gpu_address(found[1]) or found[1].removeprefix("PCI:").lower(), int(found[3])
        body = found[4].strip()
        pid, name, message = self._process(body)
        entry = xid_catalogue.lookup(code)
        fields: dict[str, Any] = {
            "code": code,
            "mnemonic": entry.mnemonic,
            "pci": pci,
            "pid": pid,
            "name": name,
            "message": message,
            "severity": entry.severity,
            "scope": entry.scope,
            "first_action": entry.first_action,
        }
        for kind, value in _INSTANCE.findall(found[2]):
            fields["compute_instance" if kind == "CI" else "gpu_instance"] = value
        fields.update(_details(code, message))
        role, cause = self._role(code, pci, pid, message, record)
        fields["role"] = role
        if cause:
            fields["cause_line"] = cause
        log.knows_gpu(pci)
        if number := _RPC_GPU.search(message):
            log.numbered.setdefault(number[1], pci)
        log.last_xid = (log.count, pci)
        log.emit("xid", record, gpu=pci, **fields)
        return True

    def _process(self, body: str) -> tuple[int | None, str | None, str]:
        pid: int | None = None
        name: str | None = None
        rest = body
        if found := _PID.match(rest):
            pid = int(found[1]) if found[1].isdecimal() else None
            rest = rest[found.end() :]
        if found := _NAME.match(rest):
            name = None if found[1] == "<unknown>" else found[1]
            rest = rest[found.end() :]
        return pid, name, rest.strip()

    def _role(self, code: int, pci: str, pid: int | None, message: str, record: Record) -> tuple[str, int | None]:
        faults = self._faults.setdefault(pci, [])
        here = _Fault(code, record.line.number, record.stamp, pid)
        recent = [fault for fault in faults if -5.0 <= _seconds_between(fault.stamp, record.stamp) <= AFTERMATH_SECONDS]
        if code in (45, 154):
            named = _PREVIOUS.search(message)
            cause = next((f for f in reversed(recent) if named and f.code == int(named[1])), None)
            cause = cause or next(iter(recent), None)
            return "consequence", cause.line if cause else None
        if code == 43:
            return self._reset_channel(here, recent)
        if (
            code == 145
            and self._link_down
            and _seconds_between(self._link_down.stamp, record.stamp) <= AFTERMATH_SECONDS
        ):
            return "consequence", self._link_down.line
        cause = next((fault for fault in recent if _follows(code, fault.code)), None)
        if cause:
            return "consequence", cause.line
        if code in _FAULTS and pid is not None:
            for fault in reversed(recent):
                if fault.code in _FAULTS and fault.pid is None:
                    fault.pid = pid  # the line that names the process belongs to the ones just before it
        if code == 149:
            self._link_down = here
        faults.append(here)
        if len(faults) > 64:
            del faults[8:32]
        return "primary", None

    def _reset_channel(self, here: _Fault, recent: list[_Fault]) -> tuple[str, int | None]:
        """Xid 43 follows a fault of its own process; on its own it is what a killed or hung kernel leaves."""
        for fault in reversed(recent):
            if fault.code in _FAULTS and fault.pid in (None, here.pid):
                owner = [f for f in recent if f.code in _FAULTS and f.pid in (None, here.pid)]
                for other in owner:
                    other.pid = here.pid
                return "consequence", owner[0].line
        cause = next((fault for fault in recent if fault.code not in _FAULTS), None)
        return ("consequence", cause.line) if cause else ("primary", None)


def _details(code: int, message: str) -> dict[str, Any]:
    """What the body of a code says, beyond its words: `detail` for people, single values for rules."""
    fields: dict[str, Any] = {}
    if code == 13 or "SM Warp Exception" in message:
        if found := _LOCATION.search(message):
            fields.update(
                gpc=int(found[1]), tpc=int(found[2]), sm=int(found[3]), detail=(found[4] or "").strip() or None
            )
            fields["unit"] = f"GPC {found[1]} TPC {found[2]} SM {found[3]}"
        elif found := _ESR.search(message):
            error = _WARP_ERRORS.get(int(found[2], 16) & 0xFFFF, "")
            fields["detail"] = f"{error} (ESR {found[1]}={found[2]})" if error else f"ESR {found[1]}={found[2]}"
            fields["unit"] = f"ESR 0x{int(found[1], 16) & ~0x7F:x}"  # one SM has 0x80 bytes of registers
    elif code == 154:
        if found := _ACTION.search(message):
            action = xid_catalogue.recovery_action(int(found[3], 16), found[4])
            fields.update(detail=found[4], action=found[4], first_action=action.first_action)
    elif code in _LINK5_CODES:
        fields.update(_link5(code, message))
    elif code == 119:
        if found := _RPC.search(message):
            fields["detail"] = " ".join(part for part in found.groups()[:3] if part)
    elif code in (74, 136, 137):
        if found := _LINK.search(message):
            fields.update(link=int(found[1]), detail=f"link {found[1]}")
    elif code in (63, 64):
        if found := _ROW.search(message):
            fields.update(address=found[1], detail=f"row {found[1]}")
    elif found := _PREVIOUS.search(message):
        fields.update(previous=int(found[1]), detail=f"previous Xid {found[1]}")
    if found := _MMU.search(message):
        engine, gpc, client, high, low = found.groups()
        address = f"0x{high}{low.rjust(8, '0')}"
        kind = _FAULT_TYPE.search(message)
        access = " ".join(part for part in kind.groups() if part) if kind else ""
        fields.update(
            address=address,
            client=client,
            engine=engine,
            unit=f"{gpc} {client}" if gpc and client and client.startswith("GPCCLIENT") else None,
            detail=" ".join(part for part in (access, "at", address, engine, gpc, client) if part),
        )
    return fields


def _link5(code: int, message: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    severity = None
    if found := _LINK5.search(message):
        severity = found[2].replace("Nonfatal", "Non-fatal")
        fields.update(unit=found[1], link=int(found[3]))
        words = tuple(int(word, 16) for word in _WORD.findall(found[4]))
    elif found := _WORDS.search(message):
        words = tuple(int(word, 16) for word in _WORD.findall(found[1]))
    else:
        return fields
    decoded = xid_catalogue.decode_link_event(code, words)
    if decoded:
        severity = severity or decoded.severity
        fields.update(
            unit=decoded.unit,
            sub_reason=decoded.sub_reason,
            investigate=decoded.investigate,
            detail=f"{decoded.unit} sub-reason {decoded.sub_reason} status 0x{decoded.error_status:08x}: "
            f"{decoded.severity}, {decoded.immediate}, then {decoded.investigate}",
        )
        if decoded.immediate == "RESET_GPU":
            fields["first_action"] = "reset_gpu"
    if severity:
        fields["severity"] = "fatal" if severity.startswith(("Fatal", "Link")) else "warn"
    return fields
