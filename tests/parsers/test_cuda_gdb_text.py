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


DUMPS = Path(__file__).parents[2] / "fixtures" / "cuda_core"
RECORDED = sorted(path.name.removesuffix(".cuda-gdb.txt") for path in DUMPS.glob("*.cuda-gdb.txt"))


@pytest.mark.parametrize("name", RECORDED)
def test_text_tells_what_the_dump_tells(name: str) -> None:
    """The debugger's text of a dump and the dump itself give the same devices, kernels and faults."""
    import io
    import lzma

    from parsers.cuda_core import PARSER as DUMP

    dump = io.BytesIO(lzma.decompress((DUMPS / f"{name}.nvcudmp.xz").read_bytes()))
    read = [event for event in DUMP.read_binary(dump, "core") if isinstance(event, Event)]
    pasted = events((DUMPS / f"{name}.cuda-gdb.txt").read_text())

    def devices(found: list[Event], kind: str) -> list[tuple[object, ...]]:
        keys = ("dev", "name", "sm", "pci", "active_sms")
        return [tuple(event.fields[key] for key in keys) for event in found if event.kind == f"{kind}.device"]

    def kernels(found: list[Event], kind: str) -> list[tuple[object, ...]]:
        rows = [event for event in found if event.kind == f"{kind}.kernel"]
        keys = ("dev", "grid_id", "library", "status", "grid_dim", "block_dim")
        return [(_plain(row.fields["name"]), row.actor.gpu, *(row.fields[key] for key in keys)) for row in rows]

    assert devices(pasted, "cuda_gdb") == devices(read, "cuda_core")
    assert kernels(pasted, "cuda_gdb") == kernels(read, "cuda_core") != []
    facts = [(event.fields["name"], event.fields["value"]) for event in pasted if event.kind == "fact"]
    assert facts == [("gpu.name", "NVIDIA H200"), ("gpu.sm", "9.0")]
    assert any(event.kind == "cuda_gdb.frame" and event.fields["instruction"] for event in pasted)


def _plain(name: str) -> str:
    return name.removeprefix("void ").replace(" ", "")


def test_an_exception_takes_up_the_lines_around_it() -> None:
    (event,) = (each for each in events(BANNER) if each.kind == "cuda_gdb.exception")
    assert event.fields == {
        "name": "warp illegal address", "code": 14, "dev": 0, "sm": 0, "warp": 10, "error_pc": "0x7f38437abbc0",
        "symbol": "nvjet_sm90_qqtst_144x128_128x6_1x2_h_bz_coopA_algo2_TNN",
        "kernel": "nvjet_sm90_qqtst_144x128_128x6_1x2_h_bz_coopA_algo2_TNN", "library": "cuBLAS",
    }  # fmt: skip
    signal, banner = BANNER.split("\n", 1)[0], BANNER.split("\n")
    live = ['Thread 1 "python3" received signal CUDA_EXCEPTION_14, Warp Illegal Address.', signal, *banner[4:]]
    (event,) = (each for each in events("\n".join(live)) if each.kind == "cuda_gdb.exception")
    assert (event.fields["sm"], event.fields["warp"], event.fields["library"]) == (0, 10, "cuBLAS")


BANNER = """\
[Current focus set to CUDA kernel 0, grid 7, cluster (0,4,0), cluster dim (2,1,1), block (0,4,0), thread (256,0,0), \
device 0, sm 0, warp 10, lane 0]

CUDA Exception: Warp Illegal Address
The exception was triggered at PC 0x7f38437abbc0  nvjet_sm90_qqtst_144x128_128x6_1x2_h_bz_coopA_algo2_TNN
#0  0x00007f38437abbb0 in nvjet_sm90_qqtst_144x128_128x6_1x2_h_bz_coopA_algo2_TNN<<<(2,66,1),(384,1,1)>>> ()
"""


@pytest.mark.parametrize(
    ("lines_", "wait"),
    [
        ("=> 0x7f24437a0070 <k+112>:\tNANOSLEEP 0x64", "sleep_poll"),
        (
            "   0x7f24437a0060 <k+96>:\tSYNCS.PHASECHK.TRANS64 P0\n=> 0x7f24437a0070 <k+112>:\t@!P0 BRA 0x60",
            "mbarrier_wait",
        ),
        ("   0x7f24437a0060 <k+96>:\tLDG.E.STRONG.SYS R2\n=> 0x7f24437a0070 <k+112>:\tISETP.NE.AND P0", "memory_poll"),
        ("=> 0x7f24437a0070 <k+112>:\tUCGABAR_WAIT", "cluster_barrier"),
        ("=> 0x7f24437a0070 <k+112>:\tFADD R1,R2,R3", None),
    ],
)
def test_what_the_instruction_at_the_pc_waits_for(lines_: str, wait: str | None) -> None:
    assert events(lines_)[-1].fields["wait"] == wait


def test_nothing_resident() -> None:
    assert [event.kind for event in events("No CUDA kernels.")] == ["cuda_gdb.no_grid"]


def test_device_functions_of_a_backtrace() -> None:
    frame = (
        "#0  0x00007fc9eb7a17e0 in _INTERNAL_4e80dd74_4_h_cu_6c3d0d3c::cooperative_groups::__v1::details::"
        "sync_grids_wait (oldArrive=2, arrived=0x7fc9eac00004) at /usr/local/cuda/include/details/sync.h:98"
    )
    assert PARSER.claims(frame) and events(frame)[0].fields["line"] == 98
