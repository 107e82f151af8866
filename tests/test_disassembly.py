"""`inspect --sass`: the boxed disassembler, with stand-ins for it and, where the wheel is installed, with itself."""

from __future__ import annotations

import io
import lzma
import sys
import time
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner

from analyzer import disassembly
from analyzer.cli.inspect import command
from analyzer.disassembly import DisassemblerMissing, disassemble, find_disassembler, sass_of
from analyzer.render.core_inspection import core_text
from parsers.cuda_core.excerpts import Excerpt, cut_out

FIXTURES = Path(__file__).parents[1] / "fixtures" / "cuda_core"


def dump(name: str) -> io.BytesIO:
    return io.BytesIO(lzma.decompress((FIXTURES / f"{name}.nvcudmp.xz").read_bytes()))


def stand_in(folder: Path, body: str) -> Path:
    """A program that takes nvdisasm's place."""
    program = folder / "nvdisasm"
    program.write_text(f"#!{sys.executable} -IS\nimport os, sys, time\n{body}\n")
    program.chmod(0o755)
    return program


def excerpt() -> Excerpt:
    return Excerpt(0, (9, 0), "kernel", 0x80, bytes(64), {0x90: 4})


def test_excerpts_hold_code_with_line_information_only() -> None:
    with_lines = cut_out(dump("hang-grid-sync"), None, 8)
    assert [each.function for each in with_lines.found] == ["_Z12grid_barrierPi"]
    assert sum(with_lines.found[0].warps.values()) == 12 and not with_lines.without_lines
    library = cut_out(dump("cudnn-sdpa-freed"), None, 8)
    assert library.found == [] and library.without_lines[0].startswith("cudnn_generated")
    asked = cut_out(dump("cudnn-sdpa-freed"), "cudnn_generated", 8)
    assert asked.found and asked.found[0].capability == (9, 0)
    assert all(len(each.code) % 16 == 0 and 0 < len(each.code) < 20_000 for each in asked.found)
    assert any(each.faults for each in asked.found)


def test_damaged_dumps_give_nothing_and_raise_nothing() -> None:
    whole = dump("hang-grid-sync").getvalue()
    for end in (0, 64, 1000, len(whole) // 2, len(whole) - 1):
        assert cut_out(io.BytesIO(whole[:end]), None, 8).found == [] or end == len(whole) - 1


def test_lines_are_read_by_offset(tmp_path: Path) -> None:
    program = stand_in(tmp_path, "print('\\t.headerflags x'); print('        /*0090*/   @!P0 BRA 0xc0 ;')")
    assert disassemble(excerpt(), program) == ([(0x90, "@!P0 BRA 0xc0")], "")


def test_the_child_sees_its_excerpt_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "x")
    body = (
        "assert 'SECRET_TOKEN' not in os.environ and os.listdir('.') == ['code.bin']\n"
        "assert sys.argv[1:6] == ['-ndf', '-b', 'SM90', '-base', '0x80'] and os.path.getsize(sys.argv[6]) == 64\n"
        "print('  /*0080*/  NOP ;')"
    )
    assert disassemble(excerpt(), stand_in(tmp_path, body)) == ([(0x80, "NOP")], "")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("time.sleep(60)", "stopped after"),
        ("print('nvdisasm fatal   : Unknown architecture in /tmp/a/code.bin')", "fatal"),
        ("sys.exit(3)", "no instruction"),
        ("x = bytearray(3 << 30); print('  /*0080*/  NOP ;')", "Error"),
        ("os.write(os.open('big', os.O_CREAT | os.O_WRONLY), b'x'); print('  /*0080*/  NOP ;')", "Error"),
    ],
)
def test_limits_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, says: str) -> None:
    monkeypatch.setattr(disassembly, "WALL_SECONDS", 1)
    started = time.monotonic()
    lines, problem = disassemble(excerpt(), stand_in(tmp_path, body))
    assert lines == [] and (says in problem or "no instruction" in problem)
    assert time.monotonic() - started < 20


def test_endless_output_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassembly, "OUTPUT_BYTES", 100_000)
    lines, _ = disassemble(excerpt(), stand_in(tmp_path, "while True: print('  /*0080*/  NOP ;')"))
    assert 1000 < len(lines) < 10_000


def test_what_is_missing_is_said_in_four_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(disassembly.metadata, "files", absent)
    with pytest.raises(DisassemblerMissing):
        find_disassembler()
    result = CliRunner().invoke(command, [str(FIXTURES / "trap.nvcudmp.xz"), "--sass"])
    assert result.exit_code != 0
    for part in ("no disassembler is here", "where:", "why:", "do:    pip install 'stuckwarp[sass]'"):
        assert part in result.output
    assert CliRunner().invoke(command, [str(FIXTURES / "trap.nvcudmp.xz")]).exit_code == 0


def test_with_the_wheel_itself() -> None:
    try:
        program = find_disassembler()
    except DisassemblerMissing:
        pytest.skip("nvidia-cuda-nvdisasm is not installed")
    sass = sass_of(dump("hang-grid-sync"), None, program)
    rows = {row["offset"]: row for row in sass["excerpts"][0]["instructions"]}
    assert rows[0x420]["text"].startswith("BAR.SYNC") and rows[0x430]["warps"] == 6
    assert rows[0x3E0]["text"].endswith("BRA 0x390")
    text = "\n".join(core_text({"sass": sass}))
    assert "6 at PC => +0x0430" in text and " … " not in text.replace("             …", "")
    left = sass_of(dump("cudnn-sdpa-freed"), None, program)
    assert left["excerpts"] == [] and "--sass-symbol" in left["notes"][0]
    none = sass_of(dump("hang-grid-sync"), "other", program)
    assert "no warp stands in a function" in none["notes"][0]
