"""The process of a GPU core dump by the thread that the dump names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from analyzer.analyze import investigate

FIXTURES = Path(__file__).parents[2] / "fixtures" / "cuda_core"
STACKS = """\
Thread 2 (Thread 0x7f1 (LWP 1314) "cuda-EvtHandlr"):
#0  0x00007f in poll () from /lib/x86_64-linux-gnu/libc.so.6
#1  0x00007f in ?? () from /lib/x86_64-linux-gnu/libcuda.so.1

Thread 1 (Thread 0x7f0 (LWP 1304) "python3"):
#0  0x00007f in cuCtxSynchronize () from /lib/x86_64-linux-gnu/libcuda.so.1
#1  0x00007f in main () at scen.cu:221
"""


def seen(folder: Path, stacks: str) -> list[dict[str, Any]]:
    (folder / "stacks.txt").write_text(stacks)
    (folder / "core.nvcudmp.xz").write_bytes((FIXTURES / "hang-block-barrier.nvcudmp.xz").read_bytes())
    return [dict(each.fields) for each in investigate([str(folder)]).bundle.observed("dump_process")]


def test_the_threads_of_a_stack_dump_name_the_process(tmp_path: Path) -> None:
    (fields,) = seen(tmp_path, STACKS)
    assert (fields["tid"], fields["gpu"], fields["thread"]) == (1314, "0000:00:06", "cuda-EvtHandlr")


def test_other_threads_do_not(tmp_path: Path) -> None:
    assert seen(tmp_path, STACKS.replace("1314", "9314")) == []
