"""cuda-gdb text as people paste it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from parsers.contract import Line, TextParser
from parsers.cuda_gdb_text import PARSER
from parsers.event import Event

FIXTURES = Path(__file__).parents[2] / "fixtures" / "cuda_gdb"


def lines(text: str) -> Iterator[Line]:
    at = 0
    for number, line in enumerate(text.split("\n"), 1):
        yield Line(number, at, at + len(line), line)
        at += len(line) + 1


def events(text: str) -> list[Event]:
    return [event for event in PARSER.read(lines(text), "paste") if isinstance(event, Event)]


def test_it_is_a_parser() -> None:
    assert isinstance(PARSER, TextParser)


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.txt")), ids=lambda path: path.stem)
def test_fixture(path: Path) -> None:
    text = path.read_text()
    view = PARSER.inspect(lines(text), path.name)
    view["lanes"] = view["lanes"][:2]
    view["events"] = [[event.kind, event.span.first_line, event.fields] for event in events(text)]
    view["sniff"] = PARSER.sniff(text)
    assert json.loads(json.dumps(view)) == json.loads(path.with_suffix(".json").read_text())


@pytest.mark.parametrize(
    "line",
    [
        "CUDA Exception: Warp Illegal Address",
        "(cuda-gdb) #0  0x00007f in fused_add<<<(4,1,1),(32,1,1)>>> () at /srv/k.cu:20",
        'Thread 1 "python3" received signal CUDA_EXCEPTION_14, Warp Illegal Address.',
        "*      0      -   0    6 Active 0x0000055 (4,1,1) (384,1,1) void ns::k<float, 3>(ns::P<int>)",
        "=> 0x7f52bb7a01d0 <k+208>:\tISETP.NE.AND P0,PT,R5,RZ,PT",
        "[20:01:20.923862] coredump: Starting GPU coredump generation",
    ],
)
def test_claims(line: str) -> None:
    assert PARSER.claims(line)
    assert not PARSER.claims(f"ERROR 11-30 20:18:13 [core.py:1] said: {line}")


@pytest.mark.parametrize(
    "line",
    [
        "#0  0x00007f in futex_wait () at ../sysdeps/nptl/futex.h:146",
        "=> 0x55d0 <main+4>:\tmov %rsp,%rbp",
        "INFO 11-30 20:18:13 [gpu_worker.py:1] CUDA Exception handling is on",
        "NVRM: Xid (PCI:0000:00:06): 43, pid=1, name=x",
        "",
    ],
)
def test_foreign_lines(line: str) -> None:
    assert not PARSER.claims(line)
    assert PARSER.sniff(line) == 0.0
    assert events(line) == []


def test_kernel_row_names_library_and_types() -> None:
    row = "*  0  -  0  12 Active 0xff (132,1,1) (384,1,1) nvjet_sm90_qqtst_128x128_128x6_1x2_h_bz_TNT()"
    (event,) = events(row)
    assert event.fields["library"] == "cuBLAS" and event.fields["dtypes"] == ["fp8_e4m3", "bf16", "fp32"]


def test_template_arguments_stay_with_the_name() -> None:
    row = "   1  -  0  9 Active 0x1 (1,1,1) (32,1,1) void ns::k<(anonymous namespace)::T, 3>(int)"
    assert events(row)[0].fields["name"] == "void ns::k<(anonymous namespace)::T, 3>"


def test_time_of_day_without_a_date() -> None:
    (event,) = events("[20:01:20.923862] coredump: All done (took 00s)")
    assert event.stamp and not event.stamp.date_known and abs(event.stamp.value - 72080.923862) < 1e-6


def test_long_and_blank_lines_cost_nothing() -> None:
    started = time.monotonic()
    row = "*  0  -  0  1 Active 0x1 (1,1,1) (1,1,1) "
    for text in ("#0 " + " at " * 1000, row + " " * 4000, "0 00:00.0 " + " " * 4000):
        for _ in range(20):
            PARSER.claims(text)
            PARSER.inspect(lines(text), "x")
    assert time.monotonic() - started < 2
