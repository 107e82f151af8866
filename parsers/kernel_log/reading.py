"""One pass over a kernel log: each record goes to the readers of what the kernel and the drivers tell.

The first reader that takes a record keeps it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from parsers import fabric_manager
from parsers.contract import Line, Trouble
from parsers.event import Event
from parsers.kernel_log.boot import BootReader
from parsers.kernel_log.crash import CrashReader
from parsers.kernel_log.environment import EnvironmentReader
from parsers.kernel_log.iommu import IommuReader
from parsers.kernel_log.log import Log
from parsers.kernel_log.memory import MemoryReader
from parsers.kernel_log.nvrm import NvrmReader
from parsers.kernel_log.pcie import PcieReader
from parsers.kernel_log.prefix import BARE
from parsers.kernel_log.process import FaultReader
from parsers.kernel_log.record import Record, records
from parsers.kernel_log.residue import ResidueReader
from parsers.kernel_log.stall import StallReader
from parsers.kernel_log.storage import StorageReader
from parsers.kernel_log.sxid import SxidReader
from parsers.kernel_log.xid import XidReader


class Reading:
    """One pass over one log: `lines`, `boots`, and `clocks` = records by the form of their stamp."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.lines = 0
        self.clocks: dict[str, int] = {}
        self._log = Log(source)
        self._boot = BootReader()
        self._xid = XidReader()
        self._stall = StallReader()
        self._kernel = (
            self._xid.feed,
            SxidReader().feed,
            NvrmReader().feed,
            MemoryReader().feed,
            self._stall.feed,
            CrashReader().feed,
            FaultReader().feed,
            IommuReader().feed,
            PcieReader().feed,
            EnvironmentReader().feed,
        )
        self._storage = StorageReader()
        self._residue = ResidueReader()
        self._separators = 0

    @property
    def boots(self) -> int:
        """Boots that the log shows at least a part of."""
        begun = self._boot.boots
        return begun if self._began_at_start or (not self.clocks and not begun) else begun + 1

    _began_at_start = False

    def _counted(self, lines: Iterable[Line]) -> Iterator[Line]:
        for line in lines:
            self.lines += 1
            yield line

    def events(self, lines: Iterable[Line]) -> Iterator[Event | Trouble]:
        """Events in the order of the lines."""
        log = self._log
        for record in records(self._counted(lines)):
            log.count += 1
            self._one(record)
            yield from log.ready()
        yield from log.ready(everything=True)

    def _one(self, record: Record) -> None:
        log = self._log
        form = record.stamp.clock.value if record.stamp else "none"
        if record.prefixed:
            if not self.clocks and self._boot.boots == 0:
                began = self._boot.turn(record, log)
                self._began_at_start = began
            else:
                began = self._boot.turn(record, log)
            self.clocks[form] = self.clocks.get(form, 0) + 1
        else:
            began = self._boot.turn(record, log)
            self._began_at_start = self._began_at_start or (began and not self.clocks)
            if BARE.match(record.message):
                self.clocks[form] = self.clocks.get(form, 0) + 1
        if began:
            self._xid.reboot()
        if record.is_kernel:
            for feed in self._kernel:
                if feed(record, log):
                    return
        elif (
            record.writer
            and "nvidia-persistenced" in record.writer
            and "Failed to query NVIDIA devices" in record.message
        ):
            log.emit("init_failure", record, what="no_device_files")
            return
        elif fabric_manager.is_writer(record.writer) or "fabricmanager" in record.message[:80]:
            found = fabric_manager.judge(record.message, None, record.writer)
            if found:
                log.emit("fabric.manager", record, **found)
            return
        if self._storage.feed(record, log) or self._boot.feed(record, log):
            return
        if record.is_kernel:
            self._residue.feed(record, log)
