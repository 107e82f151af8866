"""Every value that cuda-gdb printed of these dumps is the parser's value too."""

from __future__ import annotations

import io
import lzma
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from debugger_text import against, read_text

FIXTURES = Path(__file__).parents[3] / "fixtures" / "cuda_core"
RECORDED = sorted(path.name.removesuffix(".cuda-gdb.txt") for path in FIXTURES.glob("*.cuda-gdb.txt"))


@pytest.mark.parametrize("name", RECORDED)
def test_dump_and_debugger_agree(name: str) -> None:
    dump = io.BytesIO(lzma.decompress((FIXTURES / f"{name}.nvcudmp.xz").read_bytes()))
    done, wrong = against(dump, (FIXTURES / f"{name}.cuda-gdb.txt").read_text())
    assert wrong == []
    assert done.total() >= 20 and done["lane PCs"] and done["symbol"] and done["kernel dims"]


def test_a_difference_is_seen() -> None:
    """The comparison is worth something only if it can fail."""
    dump = io.BytesIO(lzma.decompress((FIXTURES / "hang-ticket-lock.nvcudmp.xz").read_bytes()))
    text = (FIXTURES / "hang-ticket-lock.cuda-gdb.txt").read_text()
    changed = text.replace("(2,1,1)", "(3,1,1)").replace("00:06.0", "00:07.0")
    assert {line.split(" ")[0] for line in against(dump, changed)[1]} >= {"kernel", "device"}


def test_inlined_calls_are_followed_to_the_kernel() -> None:
    from parsers.cuda_core import PARSER

    dump = io.BytesIO(lzma.decompress((FIXTURES / "hang-grid-sync.nvcudmp.xz").read_bytes()))
    warps = PARSER.inspect_binary(dump, "core")["warps"]
    inner = [warp for warp in warps if warp["line"] and warp["line"].endswith("details/sync.h:61")]
    assert len(inner) == 3
    places = [place.rpartition("/")[2] for place in inner[0]["inlined_at"]]
    assert places == ["sync.h:98", "helpers.h:378", "cooperative_groups.h:182", "h.cu:17"]


def test_text_is_read_by_its_columns() -> None:
    said = read_text((FIXTURES / "hang-grid-sync.cuda-gdb.txt").read_text())
    assert said.devices[0][:4] == (0, "00:06.0", "NVIDIA H200", "sm_90") and len(said.lanes[0, 124, 1]) == 32
