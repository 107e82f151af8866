"""Tasks and CPUs that do not move: hung tasks with their call trace, lock-ups, RCU stalls.

Texts: kernel/hung_task.c, kernel/watchdog.c, kernel/rcu/tree_stall.h, kernel/workqueue.c. Frames come as x86/arm64
print them (`name+0x1/0x2 [module]`), with addresses in front (before 4.11) and as 32-bit Arm prints them.
"""

from __future__ import annotations

import re

from parsers.event import Event
from parsers.kernel_log.log import Log
from parsers.kernel_log.record import Record
from parsers.pattern import lazy

MAX_FRAMES = 64

_HUNG = lazy(
    r"INFO: task (.{1,64}?):(\d{1,10}) (?:<\S{1,40}> )?(?:is )?blocked (?:in I/O wait )?for more than (\d{1,6}) seconds"
)
_FRAME = lazy(
    r"\s{0,12}(?:\[<[0-9a-fA-F]{6,18}>\] )?(\? )?([A-Za-z_][\w.]{0,127})\+0x[0-9a-f]{1,6}/0x[0-"
    r"9a-f]{1,6}(?: \[(\w{1,40})[^\]]{0,48}\])?"
)
_ARM_FRAME = lazy(
    r"\s{0,12}\[<[0-9a-f]{8}>\] \(([\w.]{1,128})(?:\+0x[0-9a-f/x]{1,20})?\) from"
    r" \[<[0-9a-f]{8}>\] \(([\w.]{1,128})"
)
_TRACE_LINE = lazy(
    r"\s{0,12}(?:Call Trace:|Call trace:|Backtrace:|</?TASK>|Tainted: |Not tainted|\"echo"
    r" 0 > |task:\S|\S{1,16}\s{1,12}D\s|"
    r"Workqueue: |R[A-Z0-9]{2}: |R\d\d:|x\d\d: |\w{2,5}_RAX: |ORIG_RAX|RIP: |RSP: |CS: "
    r"|INFO: task .{1,80} is blocked on)"
)
_SOFT = lazy(r"BUG: soft lockup - CPU#(\d{1,5}) stuck for (\d{1,6})s!(?: \[(.{1,40}?):(\d{1,10})\])?")
_HARD = lazy(r"hard LOCKUP on cpu:? ?(\d{1,5})", re.IGNORECASE)
_RCU = lazy(
    r"(?:rcu: )?INFO: (rcu_\w{2,16}) (?:self-detected stall on CPU|detected (?:expedited"
    r" )?stalls on CPUs)"
)
_RCU_CPU = lazy(r"^(?:rcu: )?\s{0,8}(\d{1,5})-[.\w!#?]{2,8}:")
_WORKQUEUE = lazy(r"BUG: workqueue lockup - pool cpus=(\d{1,5})")

_NFS = ("nfs", "rpc_", "xprt_", "sunrpc", "__rpc")
_LUSTRE = ("ll_", "ptlrpc", "osc_", "lov_", "cl_", "ldlm_", "mdc_", "lmv_", "vvp_")
_FUSE = ("fuse_", "request_wait_answer", "__fuse")
_NVIDIA = ("os_acquire", "nvidia_", "nv_", "uvm_", "rm_")
_BLOCK = (
    "io_schedule",
    "blk_",
    "jbd2_",
    "xfs_",
    "ext4_",
    "btrfs_",
    "wait_on_page_bit",
    "folio_wait_bit",
    "submit_bio",
    "nvme_",
    "md_",
    "dm_",
    "wait_on_buffer",
    "__wait_on_bit",
    "bdev_",
)
_OTHER_REMOTE = ("ceph_", "cifs_", "smb2_", "gfs2_", "ocfs2_", "beegfs", "FhgfsOps")


def waits_on(frames: list[str]) -> str:
    """What a blocked task waits for, by the names on its stack: nfs, lustre, fuse, nvidia, block or other."""
    for kind, names in (("nfs", _NFS), ("lustre", _LUSTRE), ("fuse", _FUSE)):
        if any(frame.startswith(names) for frame in frames):
            return kind
    if any("[nvidia" in frame or re.match(r"_nv\d{5,6}", frame) or frame.startswith(_NVIDIA) for frame in frames):
        return "nvidia"
    if any(frame.startswith(_OTHER_REMOTE) for frame in frames):
        return "other"
    return "block" if any(frame.startswith(_BLOCK) for frame in frames) else "other"


def frames_of(message: str) -> list[str]:
    """The function names of one call-trace line, innermost first; the unwinder's guesses (`? name`) are left out."""
    if found := _ARM_FRAME.match(message):
        return [found[1], found[2]]
    found = _FRAME.match(message)
    if not found or found[1]:
        return []
    return [f"{found[2]} [{found[3]}]" if found[3] else found[2]]


class StallReader:
    """Reads the head line of a stall and the call trace under it."""

    def __init__(self) -> None:
        self._hung: Event | None = None
        self._frames: list[str] = []
        self._quiet = 0
        self._rcu: Event | None = None

    def feed(self, record: Record, log: Log) -> bool:
        """Emits a stall or adds a line to the one that is open; False when the line is neither."""
        message = record.message
        if self._hung is not None and self._grow(message, log):
            return True
        if self._rcu is not None:
            if found := _RCU_CPU.match(message):
                self._rcu.fields.setdefault("cpu", int(found[1]))
            log.close(self._rcu)
            self._rcu = None
            if found:
                return True
        if "blocked" in message and (found := _HUNG.search(message)):
            self._finish(log)
            self._hung = log.emit(
                "hung_task",
                record,
                keep_open=True,
                pid=int(found[2]),
                task=found[1],
                seconds=int(found[3]),
                frames=[],
                on="other",
            )
            self._frames, self._quiet = self._hung.fields["frames"], 0
            return True
        return self._lockup(record, message, log)

    def _lockup(self, record: Record, message: str, log: Log) -> bool:
        if "lockup" in message or "LOCKUP" in message:
            if found := _SOFT.search(message):
                log.emit(
                    "lockup",
                    record,
                    what="soft",
                    cpu=int(found[1]),
                    seconds=int(found[2]),
                    task=found[3],
                    task_pid=int(found[4]) if found[4] else None,
                )
                return True
            if found := _HARD.search(message):
                log.emit("lockup", record, what="hard", cpu=int(found[1]))
                return True
            if found := _WORKQUEUE.search(message):
                log.emit("lockup", record, what="workqueue", cpu=int(found[1]))
                return True
        if "stall" in message and (found := _RCU.search(message)):
            self._rcu = log.emit("lockup", record, what="rcu", keep_open=True)
            return True
        return False

    def _grow(self, message: str, log: Log) -> bool:
        """Adds frames; a few foreign lines may stand between them."""
        assert self._hung is not None
        if names := frames_of(message):
            for name in names:
                if len(self._frames) < MAX_FRAMES and (not self._frames or self._frames[-1] != name):
                    self._frames.append(name)
            self._hung.fields["on"] = waits_on(self._frames)
            self._quiet = 0
            return True
        if _FRAME.match(message) or (_TRACE_LINE.match(message) and "blocked for more" not in message):
            return True
        self._quiet += 1
        if self._quiet > 6 or "blocked for more" in message or "blocked in I/O" in message:
            self._finish(log)
        return False

    def _finish(self, log: Log) -> None:
        if self._hung is not None:
            log.close(self._hung)
        self._hung, self._frames = None, []
