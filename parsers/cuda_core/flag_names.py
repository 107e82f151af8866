"""Names of a dump's generation flags: the table first, cuda-python (extra `cuda`) for bits that are newer than it.

Facts: `CUcoredumpGenerationFlags` of `cuda.h` up to CUDA 13.5.
"""

from __future__ import annotations

import importlib
from functools import cache

from parsers.cuda_core.tables import FLAGS, OTHER_FLAGS

_PREFIX = "CU_COREDUMP_"
_SKIP = "SKIP_"


def flag_names(flags: int | None) -> tuple[list[str], list[str]]:
    """(what the flags left out, other flags); a bit that nothing knows is its hexadecimal number among the others."""
    skipped: list[str] = []
    others: list[str] = []
    for bit in (1 << at for at in range(32) if (flags or 0) >> at & 1):
        if bit in FLAGS:
            skipped.append(FLAGS[bit])
        elif bit in OTHER_FLAGS:
            others.append(OTHER_FLAGS[bit])
        else:
            name = _newer().get(bit, f"{bit:#x}")
            (skipped if name.startswith(_SKIP) else others).append(name.removeprefix(_SKIP).lower())
    return skipped, others


@cache
def _newer() -> dict[int, str]:
    """Bits by cuda-python's names, {} without it. Asked only for bits that the table lacks."""
    try:
        members = importlib.import_module("cuda.bindings.driver").CUcoredumpGenerationFlags
        return {int(each.value): str(each.name).removeprefix(_PREFIX) for each in members}
    except Exception:  # it raises what it likes where no driver or library is found
        return {}
