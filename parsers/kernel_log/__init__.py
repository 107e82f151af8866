"""Kernel logs in every container: `dmesg`, journald, syslog, pstore, Talos, and pastes of them.

Events: the kinds of `[events.kernel_log]`, the facts `driver.version`, `driver.open`, `kernel.version`, `os`,
`gpu.uuid`, and `fabric.manager` for the fabric manager's lines of a mixed journal. An event quotes the physical line;
of a block (call trace, OOM table, AER record) its telling line, with the rest in the fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from parsers.contract import Line, Trouble
from parsers.event import Event
from parsers.kernel_log.prefix import BARE, peel
from parsers.pattern import lazy

MARKS: tuple[bytes, ...] = (
    # driver and switch
    b"NVRM", b"Xid (", b"nvidia-nvswitch", b"nvidia-modeset",
    b"nvidia/", b"nouveau ", b"fabricmanager", b"persistenced",
    # module loader
    b"module with unavailable key", b"Key was rejected", b"key not available", b"unsigned module", b"trusted key",
    b"version of symbol", b"version magic", b"Unknown symbol",
    # PCIe
    b"AER:", b"PCIe Bus Error", b"error status/mask", b"(First)", b"aer_", b"DPC:", b"pciehp", b"Card not present",
    b"available PCIe bandwidth", b"class 0x03",
    # memory
    b"oom-kill", b"Out of memory", b"out of memory", b"Killed process", b"Kill process", b"Hardware Error", b"EDAC ",
    b"achine check", b"achine Check", b"CMCI storm",
    # stalls, with what a call trace needs
    b"blocked for more than", b"blocked in I/O wait", b"Call Trace", b"soft lockup", b"LOCKUP", b"workqueue lockup",
    b"detected stall", b"self-detected", b"detected expedited", b" nfs", b" rpc_", b" ll_", b" ptlrpc", b" fuse_",
    b"request_wait_answer", b"[nvidia", b"io_schedule+", b"(io_schedule)", b"state:D", b" D ",
    # faults of processes and of the kernel
    b"segfault at", b"traps: ", b"unhandled level", b"undefined instruction",
    b"Kernel panic", b"Oops", b"BUG:", b"kernel BUG",
    b"nable to handle kernel", b"general protection", b"Trigger a crash",
    # IOMMU, heat, network, storage
    b"IO_PAGE_FAULT", b"DMAR", b"arm-smmu", b"emperature",
    b"hermal", b": Port: ", b"Port module event", b"NIC Link", b": Link ",
    b"not responding", b": server ", b"Lustre", b"CIFS", b"ceph: ",
    b"I/O error", b"EXT4-fs", b"EXT3-fs", b"XFS (", b"BTRFS",
    b"FAT-fs", b"F2FS", b"uncleanly shut down", b"recovering journal", b"read-only", b"No space left", b"nvme",
    # boots
    b"Linux version", b"-- Boot", b"-- Reboot --", b"Reached target", b"reboot: ", b"Power down",
     b"signal 15", b"systemd-shutdown", b"Main process exited",
    b"System is ", b"Shutting down", b"suppressed", b"Suppressed",
    b"kernel messages", b"messages lost", b"drop messages", b"ainted", b"Welcome to ",
)  # fmt: skip
"""Of a large log the lines between the ends are read only where one of these stands."""

_JOURNAL_FORMS = frozenset({"syslog", "syslog-iso", "syslog-5424", "journal-full", "journal-unix", "journal-monotonic"})
_DAEMONS = (
    *("systemd", "nvidia-persistenced", "rsyslogd", "dbus-", "NetworkManager", "sshd", "sudo", "CRON", "cron", "audit"),
    *(
        "kubelet",
        "containerd",
        "dockerd",
        "snapd",
        "irqbalance",
        "smartd",
        "chronyd",
        "ntpd",
        "avahi-",
        "polkitd",
        "su[",
    ),
)
_SERVER = lazy(r"(?:\([\w .=,]{3,80}\) ?)?(?:INFO|WARNING|ERROR|DEBUG|CRITICAL):? {1,5}\S")
_WRITERS = frozenset(
    {
        "systemd",
        "systemd-journald",
        "systemd-shutdown",
        "systemd-logind",
        "nvidia-persistenced",
        "systemd-fsck",
        "rsyslogd",
    }
)
_JOURNAL = lazy(r'\s{0,4}\{\s{0,4}"[A-Z_]{2,40}"\s{0,2}:')
_KERNEL_ENTRY = lazy(r'"(?:_TRANSPORT|SYSLOG_IDENTIFIER)"\s{0,2}:\s{0,2}"kernel"')
_EXPORT_HEAD = lazy(r"\s{0,8}(?:__CURSOR|__REALTIME_TIMESTAMP|_TRANSPORT|_BOOT_ID|MESSAGE|SYSLOG_IDENTIFIER)=")
_PRETTY_HEAD = lazy(r'\s{0,8}"(?:__CURSOR|__REALTIME_TIMESTAMP|_TRANSPORT|_BOOT_ID|MESSAGE)" : ')
_DMESG_JSON = lazy(r'\s{0,4}\{\s{0,4}"dmesg"\s{0,2}:|\s{0,12}"(?:pri|msg)"\s{0,2}: ')
_SEPARATOR = lazy(
    r"-- (?:Boot [0-9a-f]{8,40}|Reboot|Logs begin at .{4,80}|Journal begins at .{4,80}|No"
    r" entries) ?(?:--|\.)?"
)


class _Census:
    """Counts the lines of a head by who wrote them."""

    def __init__(self, head: str) -> None:
        self.kernel = self.bare = self.daemon = self.journal = self.fabric = self.server = self.other = self.rest = 0
        for text in head.split("\n")[:600]:
            if text.strip():
                self._count(text.rstrip("\r"))
        self.known = self.kernel + self.bare + self.daemon + self.journal + self.fabric + self.rest
        self.total = self.known + self.other + self.server

    def _count(self, text: str) -> None:
        prefix = peel(text)
        if prefix is not None and prefix.form != "bare":
            writer = prefix.writer or ""
            if prefix.is_kernel:
                self.kernel += 1
            elif "fabricmanager" in writer:
                self.fabric += 1
            elif _SERVER.match(prefix.message):
                self.server += 1
            elif writer.startswith(_DAEMONS):
                self.daemon += 1
            elif prefix.form in _JOURNAL_FORMS:
                self.journal += 1
            else:
                self.other += 1
        elif prefix is not None or BARE.match(text):
            self.bare += 1
        elif _JOURNAL.match(text) or _EXPORT_HEAD.match(text) or _PRETTY_HEAD.match(text):
            if _KERNEL_ENTRY.search(text) or "_TRANSPORT=kernel" in text:
                self.kernel += 1
            else:
                self.journal += 1
        elif _DMESG_JSON.match(text):
            self.kernel += 1
        elif _SEPARATOR.match(text) or ((self.kernel or self.bare) and text[0] in " \t"):
            self.rest += 1
        else:
            self.other += 1


class KernelLog:
    """Reads kernel logs (see the package)."""

    name: ClassVar[str] = "kernel_log"
    kind: ClassVar[str] = "kernel_log"
    marks: ClassVar[tuple[bytes, ...]] = MARKS

    def sniff(self, head: str) -> float:
        """By the share of lines that wear a kernel prefix; a mixed journal counts if the kernel speaks in it.

        A journal in which a server speaks much is left to be cut into its parts.
        """
        seen = _Census(head)
        if not seen.total or not (seen.kernel or seen.bare or seen.daemon):
            return 0.0
        share = seen.known / seen.total
        if seen.server * 5 > seen.total:
            return 0.3
        if seen.kernel and share >= 0.5:
            return 0.95
        if seen.bare and share >= 0.3 and seen.bare > seen.other * 0.3:
            return 0.8
        if seen.fabric and not seen.kernel:
            return 0.3
        if seen.daemon and share >= 0.8:
            return 0.6
        return 0.3 if (seen.kernel or seen.bare) and share >= 0.1 else 0.1

    def claims(self, text: str) -> bool:
        """A line with a kernel prefix, a message of the driver at the start of a line, or a journal's boot mark."""
        prefix = peel(text)
        if prefix is None:
            return bool(
                BARE.match(text)
                or _SEPARATOR.match(text)
                or (_JOURNAL.match(text) and _KERNEL_ENTRY.search(text))
                or text.startswith("modprobe: ERROR: could not insert 'nvidia")
            )
        if prefix.form in ("dmesg-x", "dmesg-e") and prefix.stamp is None and prefix.delta is None:
            return bool(BARE.match(prefix.message))
        return prefix.is_kernel or prefix.writer in _WRITERS

    def read(self, lines: Iterable[Line], source: str) -> Iterator[Event | Trouble]:
        """Events in the order of the lines."""
        from parsers.kernel_log.reading import Reading  # twenty modules: only for a text that is a kernel log

        yield from Reading(source).events(lines)

    def inspect(self, lines: Iterable[Line], source: str) -> dict[str, Any]:
        """The contract's view: lines, clock, boots, xids, sxids, other."""
        from parsers.kernel_log.inspect import view
        from parsers.kernel_log.reading import Reading

        reading = Reading(source)
        found = [event for event in reading.events(lines) if isinstance(event, Event)]
        return view(found, reading.lines, reading.clocks, reading.boots)


PARSER = KernelLog()
