"""A long text holds other artifacts too: it is cut into its parts as a short one is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from analyzer.analysis import Analysis
from analyzer.analyze import investigate
from analyzer.reasoning.rulebook import load

FIXTURES = Path(__file__).parents[2] / "fixtures"
RULES = load()
XID = [
    "NVRM: GPU at PCI:0000:3b:00: GPU-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee",
    "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
]
SHORT, LONG = 1_500, 24_000


def serving(count: int) -> list[str]:
    made = []
    for n in range(count):
        at = f"11-29 {n // 7200:02}:{n // 120 % 60:02}:{n // 2 % 60:02}"
        made.append(
            f"(APIServer pid=1) INFO {at} [loggers.py:257] Engine 000: Avg prompt throughput: {300 + n % 97}.3 "
            f"tokens/s, Avg generation throughput: {800 + n % 89}.7 tokens/s, Running: {9 + n % 7} reqs, "
            f"Waiting: 0 reqs, GPU KV cache usage: {5 + n % 40}.1%, Prefix cache hit rate: 12.3%"
            if n % 20 == 0
            else f'(APIServer pid=1) INFO:     10.0.0.{n % 250}:4{n % 9999:04} - "POST /v1/completions HTTP/1.1" 200 OK'
        )
    return made


def plain(lines: list[str]) -> list[str]:
    return lines


def docker(lines: list[str]) -> list[str]:
    return [json.dumps({"log": f"{one}\n", "stream": "stderr", "time": "2026-11-29T12:00:00.1Z"}) for one in lines]


def journal(lines: list[str]) -> list[str]:
    return [
        f"Nov 29 {n // 7200:02}:{n // 120 % 60:02}:{n // 2 % 60:02} n1 "
        + (f"kernel: {one}" if one.startswith("NVRM") else f"vllm[77]: {one}")
        for n, one in enumerate(lines)
    ]


def analysed(lines: list[str], folder: Path) -> Analysis:
    file = folder / "server.log"
    file.write_text("\n".join(lines) + "\n")
    return investigate([str(file)], RULES)


def said(analysis: Analysis) -> tuple[list[tuple[str, str]], set[str | None]]:
    return (
        [(one.rule.id, one.confidence) for one in analysis.ranked if not one.ruled_out],
        {one.parser for one in analysis.bundle.reads},
    )


STACK = (FIXTURES / "stacks/deadlock-native.txt").read_text().rstrip("\n").split("\n")
SHM = [
    "n1:412:512 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>",
    "n1:412:512 [0] misc/shmutils.cc:87 NCCL WARN Error: failed to extend /dev/shm/nccl-cQ5Zo2 to 33030532 bytes, "
    "error: No space left on device (28)",
]


@pytest.mark.parametrize(
    ("foreign", "shape", "parser"),
    [
        (XID, plain, "kernel_log"),
        (XID, journal, "kernel_log"),
        (STACK, plain, "pyspy"),
        (STACK, docker, "pyspy"),
        (SHM, plain, "nccl_log"),
    ],
)
@pytest.mark.parametrize("place", [0.0, 0.5, 1.0])
def test_a_long_text_gives_what_a_short_one_gives(
    foreign: list[str], shape: Callable[[list[str]], list[str]], parser: str, place: float, tmp_path: Path
) -> None:
    got = []
    for count in (SHORT, LONG):
        fill = serving(count)
        at = int(place * count)
        got.append(analysed(shape([*fill[:at], *foreign, *fill[at:]]), tmp_path))
    assert (tmp_path / "server.log").stat().st_size > 1 << 20
    assert said(got[0])[0]
    assert said(got[1]) == said(got[0])
    assert parser in said(got[1])[1]


def test_the_lines_of_the_file_are_quoted(tmp_path: Path) -> None:
    fill = serving(LONG)
    analysis = analysed([*fill[:12_000], *XID, *fill[12_000:]], tmp_path)
    assert [event.span.first_line for event in analysis.bundle.events("kernel_log.xid")] == [12_002]
    data = (tmp_path / "server.log").read_bytes()
    span = analysis.bundle.events("kernel_log.xid")[0].span
    assert data[span.start : span.end].decode() == XID[1]


def test_what_a_user_wrote_is_no_foreign_artifact(tmp_path: Path) -> None:
    fill = serving(LONG)
    front = "(APIServer pid=1) INFO 11-29 12:00:00 [logger.py:43]"
    asked = f"{front} Received request c-1: prompt: '{XID[1]}', params: None"
    analysis = analysed([*fill[:12_000], asked, *fill[12_000:]], tmp_path)
    assert said(analysis)[0] == []
