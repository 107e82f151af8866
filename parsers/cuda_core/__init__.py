"""GPU core dumps: what was resident, where every warp stood, who faulted.

`header` knows a dump by its first bytes, `elf_index` finds the sections, `tables` reads rows, `images` and `lines`
name addresses, `sass` and `waits` say what a warp waits for, `demangle` (over `mangled_types`, `mangled_templates` and
`mangling`) and `names` read kernel names, `dump` puts it together, `summary` and `reader` show it; `excerpts` cuts out
code for a disassembler, and `cut_short` reads what is left without the section headers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, ClassVar

from parsers.contract import Trouble
from parsers.cuda_core.header import looks_like_dump
from parsers.event import Event


class CudaCoreParser:
    """GPU core dumps (`cuda-gdb`'s format), read on any machine: no driver, no GPU, no debugger.

    The readers are loaded when there is a dump.
    """

    name: ClassVar[str] = "cuda_core"
    kind: ClassVar[str] = "cuda_core"

    def sniff_bytes(self, head: bytes) -> float:
        """By content alone: dumps are called `core.cuda.*`, `*.nvcudmp` or anything else."""
        return looks_like_dump(head)

    def read_binary(self, file: BinaryIO, source: str) -> Iterator[Event | Trouble]:
        """Events: dump, devices, resident kernels, exceptions, traps, or `no_grid`; facts of the machine."""
        from parsers.cuda_core.reader import read_dump

        yield from read_dump(file, source)

    def inspect_binary(self, file: BinaryIO, source: str) -> dict[str, Any]:
        """The view of `parsers.cuda_core.summary` with `complete` and `notes` beside it."""
        from parsers.cuda_core.reader import inspect_dump

        return inspect_dump(file, source)


PARSER = CudaCoreParser()
