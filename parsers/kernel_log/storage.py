"""File systems and disks: remote servers that do not answer, recovery after an unclean end, failing storage.

Texts: net/sunrpc/clnt.c, fs/nfs, Lustre's ptlrpc and llite, fs/ext4, fs/xfs, fs/btrfs, fs/fat, block/blk-core.c,
drivers/nvme, fs/ceph, fs/smb/client, systemd-journald.
"""

from __future__ import annotations

import re

from parsers.kernel_log.log import Log
from parsers.kernel_log.record import Record
from parsers.pattern import lazy

_NFS = lazy(r"(?:nfs4?|lockd): server (\S{1,255}) (not responding|OK)")
_LUSTRE_LOST = lazy(
    r"Lustre: ?.{0,80}?(?:Connection to (\S{1,128}) (?:\(at (\S{1,128})\) )?was lost"
    r"|Connection restored to (\S{1,128}))"
)
_LUSTRE_ERROR = lazy(
    r"LustreError: .{0,120}?(?:[Cc]ommunicating with (\S{1,128}?),? ?)?operation (\w{3,40})"
    r" (?:failed|to node (\S{1,128}) failed)"
)
_LUSTRE_OTHER = lazy(r"LustreError: .{0,120}?(?:timed out|evict|not available|-(?:5|107|108|110)\b)")
_CIFS = lazy(r"CIFS: (?:VFS: )?(\\\\\S{1,255}) has not responded")
_CEPH = lazy(
    r"(?:ceph|libceph): (mds\d{1,4}|mon\d{1,4}|osd\d{1,6}).{0,80}?(hung|session lost|socket"
    r" closed|down|caps stale|reconnect|recovery completed)"
)
_FUSE = lazy(r"fuse:? .{0,80}?(?:not responding|connection (?:aborted|lost))", re.IGNORECASE)

_UNCLEAN: tuple[tuple[str, str, str], ...] = (
    ("EXT4-fs", "recovery complete", "ext4"),
    ("EXT4-fs", "orphan cleanup", "ext4"),
    ("EXT3-fs", "recovery complete", "ext3"),
    ("XFS (", "tarting recovery", "xfs"),
    ("BTRFS", "log replay", "btrfs"),
    ("FAT-fs", "not properly unmounted", "fat"),
    ("F2FS", "recover", "f2fs"),
    ("File /", "corrupted or uncleanly shut down", "journal"),
    ("File /", "uncleanly shut down, renaming", "journal"),
    ("JBD2", "recovery", "jbd2"),
    ("systemd-fsck", "recovering journal", "fsck"),
    ("/dev/", "recovering journal", "fsck"),
)
_DEVICE = lazy(
    r"\((\S{1,40}?)\)|\bdev (\w{2,32})\b|\b(nvme\d{1,3}(?:n\d{1,3})?|sd[a-z]{1,3}|md\d{1,3}"
    r"|dm-\d{1,4})\b"
)
_FAILING: tuple[tuple[str, str], ...] = (
    ("I/O error", "io_error"),
    ("critical medium error", "io_error"),
    ("critical target error", "io_error"),
    ("Remounting filesystem read-only", "read_only"),
    ("EXT4-fs error", "corrupt"),
    ("XFS_CORRUPT", "corrupt"),
    ("Corruption detected", "corrupt"),
    ("No space left on device", "no_space"),
    ("controller is down; will reset", "timeout"),
    ("Disabling device after reset failure", "timeout"),
)
_NVME_TIMEOUT = lazy(
    r"nvme nvme\d{1,3}: I/O (?:tag )?\d{1,5}.{0,40}? timeout, (?:aborting|reset|completion"
    r" polled|disable)"
)


class StorageReader:
    """Remote file systems, recovery lines, and disks that fail."""

    def feed(self, record: Record, log: Log) -> bool:
        """Emits what the line says; False when it says nothing about storage."""
        message = record.message
        return (
            self._remote(record, message, log)
            or self._unclean(record, message, log)
            or self._disk(record, message, log)
        )

    def _remote(self, record: Record, message: str, log: Log) -> bool:
        if "server " in message and (found := _NFS.search(message)):
            log.emit("remote_fs", record, server=found[1], state="up" if found[2] == "OK" else "down", fs="nfs")
            return True
        if "Lustre" in message:
            if found := _LUSTRE_LOST.search(message):
                server = found[1] or found[3]
                log.emit(
                    "remote_fs", record, server=server.rstrip(",;"), state="up" if found[3] else "down", fs="lustre"
                )
                return True
            if found := _LUSTRE_ERROR.search(message):
                log.emit(
                    "remote_fs", record, server=found[1] or found[3], state="down", fs="lustre", operation=found[2]
                )
                return True
            if _LUSTRE_OTHER.search(message):
                log.emit("remote_fs", record, state="down", fs="lustre")
                return True
            return False
        if "CIFS" in message and (found := _CIFS.search(message)):
            log.emit("remote_fs", record, server=found[1], state="down", fs="cifs")
            return True
        if "ceph: " in message and (found := _CEPH.search(message)):
            up = found[2] == "recovery completed"
            log.emit("remote_fs", record, server=found[1], state="up" if up else "down", fs="ceph")
            return True
        if "fuse" in message and _FUSE.search(message):
            log.emit("remote_fs", record, state="down", fs="fuse")
            return True
        return False

    def _unclean(self, record: Record, message: str, log: Log) -> bool:
        if not any(word in message for word in ("recover", "unclean", "not properly", "orphan", "replay")):
            return False
        writer = record.writer or ""
        for start, words, what in _UNCLEAN:
            if words in message and (start in message or start in writer):
                log.emit("unclean_start", record, what=what)
                return True
        return False

    def _disk(self, record: Record, message: str, log: Log) -> bool:
        if not record.is_kernel and "No space left" not in message:
            return False
        what = next((kind for words, kind in _FAILING if words in message), None)
        if what is None and "nvme" in message and _NVME_TIMEOUT.search(message):
            what = "timeout"
        if what is None or (what == "io_error" and "fd0" in message):
            return False
        found = _DEVICE.search(message)
        device = next((group for group in found.groups() if group), None) if found else None
        log.emit("storage", record, what=what, device=device)
        return True
