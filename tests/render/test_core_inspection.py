"""The screen of a GPU core dump: what it says of real dumps, and of dumps that hold little."""

from __future__ import annotations

import io
import lzma
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from analyzer.render.core_inspection import core_text
from parsers.cuda_core import PARSER

sys.path.insert(0, str(Path(__file__).parents[1] / "parsers" / "cuda_core"))

from dump_writer import Shape, write_dump

FIXTURES = Path(__file__).parents[2] / "fixtures" / "cuda_core"
NAMES = sorted(path.name.removesuffix(".nvcudmp.xz") for path in FIXTURES.glob("*.nvcudmp.xz"))


def _view(file: io.BytesIO) -> dict[str, Any]:
    return PARSER.inspect_binary(file, "core")


def screen(name: str) -> str:
    file = io.BytesIO(lzma.decompress((FIXTURES / f"{name}.nvcudmp.xz").read_bytes()))
    return _flat(core_text(_view(file)))


def made(shape: Shape) -> str:
    file = io.BytesIO()
    write_dump(file, shape)
    return _flat(core_text(_view(file)))


def _flat(lines: list[str]) -> str:
    return re.sub(r"\s+", " ", " ".join(lines))


@pytest.mark.parametrize("name", NAMES)
def test_one_screen(name: str) -> None:
    file = io.BytesIO(lzma.decompress((FIXTURES / f"{name}.nvcudmp.xz").read_bytes()))
    lines = core_text(_view(file))
    assert 3 <= len(lines) <= 45
    assert all("\n" not in line and "\x1b" not in line for line in lines)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "hang-block-barrier",
            ["waits at a block barrier", "scen.cu:62", "are the lead", "of the process with thread 1314"],
        ),
        (
            "hang-mbarrier",
            ["waits on an mbarrier", "consistent with partners that exited", "of these blocks have exited"],
        ),
        ("hang-grid-sync", ["sync.h:61 inlined at h.cu:17", "a cooperative launch is written with other dimensions"]),
        ("hang-cluster", ["wait at a cluster barrier; the others stand at a warp at cluster_wait+"]),
        ("hang-acquire-poll", ["(memory_poll, the other lanes at warp_sync)", "fp8_e4m3"]),
        ("hang-jitted-ptx", ["1 kernel resident: deep_call", "called from level2", "every resident warp polls memory"]),
        (
            "hang-deep-call-debug",
            ["No warp stands at an instruction that waits", "no wait seen level3+0x1e0 (h.cu:21)"],
        ),
        (
            "cudnn-sdpa-freed",
            [
                "A GPU exception: warp illegal address (code 14)",
                "4 warps on 4 SMs",
                "by its name: cuDNN",
                "device 1 NVIDIA H200 (sm_90) at 0000:00:07, nothing resident",
                "waiting warps are the symptom",
            ],
        ),
        ("assert", ["warp assert (code 12)", "no error PC recorded"]),
        ("stack-overflow", ["out-of-range address", "called from"]),
        ("trap", ["A trap instruction stopped 1 warp", "stopped by a trap"]),
        ("two-devices", ["grid 4 on device 0", "grid 4 on device 1"]),
        ("two-kernels-two-streams", ["2 kernels resident: ", "and others"]),
        ("no-grid", ["No kernel was resident on any device", "look at the host's stacks", "nothing resident"]),
        ("cut-short", ["what was resident is not known", "every table: the section headers"]),
        (
            "flags-skip-global",
            ["written without global memory", "absent global memory: left out by the generation flags"],
        ),
    ],
)
def test_what_it_says(name: str, says: list[str]) -> None:
    text = screen(name)
    for part in says:
        assert part in text, part


def test_lightweight_and_old_dumps() -> None:
    assert "a lightweight dump: tables and code, no memory; the process was not aborted" in made(Shape())
    old = made(Shape(metadata=False))
    assert "driver not recorded" in old and "drivers before r565 wrote none" in old
    assert "no relocated" not in old and "relocated module images: none" in made(Shape(images=False))


def test_conclusions_keep_their_limits() -> None:
    text = made(Shape())
    assert "consistent with" in text and "of one sample" in text and "(one sample)" in text


def test_names_of_the_dump_cannot_act_on_the_terminal() -> None:
    text = "\n".join(core_text(_view(_dump(Shape(kernel="evil\x1b]52;c;aGk=\x07\u202ename")))))
    assert "\x1b" not in text and "\u202e" not in text and "\\x1b" in text


def _dump(shape: Shape) -> io.BytesIO:
    file = io.BytesIO()
    write_dump(file, shape)
    return file


def test_a_saved_view_with_holes_still_renders() -> None:
    assert core_text({})
    lines = core_text({"devices": [{}], "kernels": [{}], "warps": [{}], "exceptions": [{}], "groups": []})
    assert any("kernel" in line for line in lines)
