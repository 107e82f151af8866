"""What is left in a dump whose section headers are lost: the module images that were written in full.

Each image starts with its own ELF header, so its function names can be read without the dump's tables. Best effort:
the kernels named were loaded, which does not say that they were running.
"""

from __future__ import annotations

import io
import struct
from typing import BinaryIO

from parsers.cuda_core.header import EM_CUDA

SCAN_BYTES = 256 << 20
_WINDOW = 4 << 20
_MOST_IMAGES = 256
_MOST_NAMES = 200
_HEADER = struct.Struct("<IIQQQQIIQQ")
_DRIVERS_OWN = ("memcpy", "memset", "membar", "scatter", "memcopy", "graph", "__nv", "cudaGraph", "sched")


def names_in(file: BinaryIO) -> list[str]:
    """Mangled names of loaded kernels found in whole images within the first 256 MiB; [] when there are none."""
    names: dict[str, None] = {}
    try:
        size = min(file.seek(0, io.SEEK_END), SCAN_BYTES)
        at, images = 64, 0
        while at < size and images < _MOST_IMAGES and len(names) < _MOST_NAMES:
            file.seek(at)
            window = file.read(min(_WINDOW, size - at) + 64)
            found = window.find(b"\x7fELF\x02\x01")
            while found >= 0 and images < _MOST_IMAGES:
                if struct.unpack_from("<H", window.ljust(found + 64, b"\0"), found + 18)[0] == EM_CUDA:
                    images += 1
                    names.update(dict.fromkeys(_functions(file, at + found, size)))
                found = window.find(b"\x7fELF\x02\x01", found + 4)
            at += _WINDOW
    except (OSError, struct.error, ValueError):
        pass
    return list(names)[:_MOST_NAMES]


def _functions(file: BinaryIO, start: int, size: int) -> list[str]:
    """Loaded functions of the image at `start`, the driver's own left out."""
    file.seek(start)
    head = file.read(64)
    if len(head) < 64:
        return []
    table = struct.unpack_from("<Q", head, 40)[0]
    entry, count, names_at = struct.unpack_from("<HHH", head, 58)
    if entry != 64 or not 0 < names_at < count or start + table + entry * count > size:
        return []
    file.seek(start + table)
    rows = list(_HEADER.iter_unpack(file.read(entry * count)))
    if len(rows) < count:
        return []
    file.seek(min(start + rows[names_at][4], size))
    strings = file.read(min(rows[names_at][5], 8 << 20))
    found = []
    for row in rows:
        if not row[3] or row[0] >= len(strings) or strings[row[0] : row[0] + 6] != b".text.":
            continue
        end = strings.find(b"\0", row[0])
        name = strings[row[0] + 6 : end].decode("utf-8", "backslashreplace") if end > 0 else ""
        if name and not name.startswith(_DRIVERS_OWN):
            found.append(name)
    return found
