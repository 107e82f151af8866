"""What every parser owes, asked of all that `discover()` finds: a fixture, its reviewed snapshot, refusal of what is
another's, and no fault on a cut file."""

from __future__ import annotations

import gzip
import io
import lzma
from pathlib import Path

import pytest

from parsers.contract import BinaryParser, Line, Parser, TextParser, Trouble, discover
from parsers.event import Event

FIXTURES = Path(__file__).parents[2] / "fixtures"
FOLDERS = {
    "pyspy": "stacks", "pyspy_json": "stacks", "faulthandler": "stacks", "gdb": "stacks", "pytest_timeout": "stacks",
    "cuda_gdb_text": "cuda_gdb", "flight_recorder_pickle": "flight_recorder", "flight_recorder_json": "flight_recorder",
}  # fmt: skip
"""Where the fixtures of a parser are, if not in the folder of its name."""
MIXED = {"gloo-loopback.txt", "watchdog-vllm-tp.txt"}
"""Texts of several tools: intake cuts them into parts."""
NOT_INPUT = {".json", ".md", ".toml", ".py", ".gz", ".xz", ".zst"}


def folder_of(parser: Parser) -> Path:
    return FIXTURES / FOLDERS.get(parser.name, parser.name)


def inputs_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix not in NOT_INPUT)


def _opened(path: Path) -> bytes:
    data = path.read_bytes()
    openers = {".gz": gzip.decompress, ".xz": lzma.decompress}
    return openers[path.suffix](data) if path.suffix in openers else data


TEXT = [one for one in discover() if isinstance(one, TextParser)]
BINARY = [one for one in discover() if isinstance(one, BinaryParser)]
HOMES = sorted({folder_of(parser) for parser in discover()})


def lines_of(data: bytes) -> list[Line]:
    lines, start = [], 0
    for number, raw in enumerate(data.split(b"\n"), 1):
        lines.append(Line(number, start, start + len(raw), raw.decode("utf-8", "backslashreplace")))
        start += len(raw) + 1
    return lines if lines[-1].text else lines[:-1]


def head_of(data: bytes) -> str:
    return data[:65536].decode("utf-8", "backslashreplace")


def taker(head: str) -> str | None:
    """The name of the parser that takes a text as a whole; None where only single lines are claimed."""
    surest = max(TEXT, key=lambda parser: parser.sniff(head))
    return surest.name if surest.sniff(head) >= 0.3 else None


@pytest.mark.parametrize("parser", discover(), ids=lambda parser: parser.name)
def test_it_has_fixtures_with_snapshots_and_their_provenance(parser: Parser) -> None:
    folder = folder_of(parser)
    assert (folder / "README.md").is_file()
    assert [path for path in folder.iterdir() if path.suffix == ".json"]
    if isinstance(parser, TextParser):
        sure = [path for path in inputs_of(folder) if parser.sniff(head_of(path.read_bytes())) >= 0.3]
        assert sure, "no fixture that it recognises"
        assert any(list(parser.read(lines_of(path.read_bytes()), path.name)) for path in sure)
    else:
        heads = [_opened(path)[:4096] for path in folder.rglob("*") if path.is_file()]
        assert any(parser.sniff_bytes(head) >= 0.5 for head in heads)


@pytest.mark.parametrize("folder", HOMES, ids=lambda folder: folder.name)
def test_its_fixtures_go_to_no_other_parser(folder: Path) -> None:
    mine = {parser.name for parser in TEXT if folder_of(parser) == folder}
    taken = {path.name: taker(head_of(path.read_bytes())) for path in inputs_of(folder)
             if not any(parser.sniff_bytes(path.read_bytes()[:4096]) >= 0.5 for parser in BINARY)}  # fmt: skip
    foreign = {name: other for name, other in taken.items() if other and other not in mine and name not in MIXED}
    assert not mine or foreign == {}


@pytest.mark.parametrize("parser", TEXT, ids=lambda parser: parser.name)
def test_foreign_and_cut_texts_raise_nothing(parser: TextParser) -> None:
    """Every parser is given the others' fixtures, whole and cut: events stay inside the text."""
    for folder in HOMES:
        for path in inputs_of(folder)[:3]:
            data = path.read_bytes()[:20_000]
            for size in (len(data), len(data) // 3, 17):
                lines = lines_of(data[:size])
                for item in parser.read(iter(lines), "x"):
                    assert isinstance(item, Event | Trouble)
                    if isinstance(item, Event) and lines:
                        assert 1 <= item.span.first_line <= lines[-1].number
                parser.inspect(iter(lines), "x")


@pytest.mark.parametrize("parser", BINARY, ids=lambda parser: parser.name)
def test_foreign_bytes_raise_nothing(parser: BinaryParser) -> None:
    for data in (b"", b"\x7fELF", bytes(range(256)) * 16, b"text\n" * 100):
        for item in parser.read_binary(io.BytesIO(data), "x"):
            assert isinstance(item, Event | Trouble)
