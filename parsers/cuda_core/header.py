"""The first bytes of a GPU core dump. Loads nothing: every source is asked whether it is one."""

from __future__ import annotations

import struct

EM_CUDA = 190
ET_CORE = 4
ELFOSABI_CUDA = 0x33


def looks_like_dump(head: bytes) -> float:
    """1.0 for the header of a GPU core dump, 0.95 when only the ABI byte differs, else 0.0.

    A host core dump is ET_CORE too and a cubin is EM_CUDA too: both marks are needed.
    """
    if len(head) < 20 or head[:4] != b"\x7fELF" or head[4] != 2 or head[5] != 1:
        return 0.0
    kind, machine = struct.unpack_from("<HH", head, 16)
    if kind != ET_CORE or machine != EM_CUDA:
        return 0.0
    return 1.0 if head[7] == ELFOSABI_CUDA else 0.95
