"""GPU core dumps: what was resident, where every warp stood, who faulted.

`elf_index` finds the sections, `tables` reads their rows, `images` and `lines` name addresses, `sass` and `waits` say
what a warp waits for, `demangle` (over `mangled_types`, `mangled_templates` and `mangling`) and `names` read kernel
names, `dump` puts it together, `summary` and `reader` show it; `excerpts` cuts out code for a disassembler, and
`cut_short` reads what is left without the section headers.
"""

from __future__ import annotations

from parsers.cuda_core.reader import CudaCoreParser

PARSER = CudaCoreParser()
