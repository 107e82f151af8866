"""What collective logs mean: prefixes, ranks, the watchdog, the rank that did not arrive, test results."""

from __future__ import annotations

import pytest

from parsers.contract import Line
from parsers.event import Event
from parsers.nccl_log import PARSER, take_apart
from parsers.stamp import ClockKind


def events_of(*rows: str) -> list[Event]:
    lines, start = [], 0
    for number, row in enumerate(rows, start=1):
        size = len(row.encode()) + 1
        lines.append(Line(number, start, start + size, row))
        start += size
    return [event for event in PARSER.read(lines, "x") if isinstance(event, Event)]


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "192.0.2.10: ",
        "[1,0]<stderr>:",
        "[rank3]:",
        "(RayWorkerWrapper pid=7, ip=192.0.2.3) ",
        "[2026-04-22 21:34:20] ",
        "[2026-04-22 21:34:20.123456] ",
        "(EngineCore_DP0 pid=12) ",
        "  | ",
        "0: ",
        "   8388608   2097152   float ",
    ],
)
def test_prefixes(prefix: str) -> None:
    said = take_apart(prefix + "pod-a.b:830:831 [2] misc/shmutils.cc:88 NCCL WARN Error: failed to extend x")
    assert said is not None
    assert (said.host, said.pid, said.device, said.place) == ("pod-a.b", 830, 2, "misc/shmutils.cc:88")
    assert said.message.startswith("Error: failed to extend")
    if prefix.startswith("[2026"):
        assert said.stamp is not None and said.stamp.clock is ClockKind.WALL and said.stamp.year_known


def test_rank_comes_from_the_communicator_not_from_the_device() -> None:
    events = events_of(
        "n:1:2 [0] NCCL INFO comm 0x1 rank 36 nranks 64 cudaDev 0 busId 9b000 - Init COMPLETE",
        "n:1:3 [0] NCCL WARN Socket recv failed",
        "n:9:3 [1] NCCL WARN Socket recv failed",
    )
    assert [event.fields.get("rank") for event in events] == [36, 36, None]
    assert events[0].fields == {"step": "complete", "rank": 36, "nranks": 64}


def test_settings_versions_and_repeats() -> None:
    events = events_of(
        "NCCL version 2.27.7+cuda13.0",
        "n:1:1 [0] NCCL INFO NCCL version 2.27.7+cuda13.0",
        "n:1:1 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1.",
        "n:1:1 [1] NCCL INFO NCCL_P2P_DISABLE set by environment to 1.",
        "n:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct",
        "n:1:1 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via SHM/direct/direct",
    )
    assert [tuple(event.fields.values()) for event in events] == [
        ("nccl.version", "2.27.7+cuda13.0"), ("env.NCCL_P2P_DISABLE", "1"), ("transport", "SHM/direct/direct"),
    ]  # fmt: skip


CAUGHT = "Watchdog caught collective operation timeout:"
WORK = "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=14000) ran for 14069 milliseconds"


def test_watchdog_with_and_without_a_stamp_and_only_once() -> None:
    new = f"[rank0]:[E1130 20:14:45.294557233 ProcessGroupNCCL.cpp:689] [Rank 0] {CAUGHT} {WORK}"
    old = f"[E ProcessGroupNCCL.cpp:475] [Rank 3] {CAUGHT} {WORK} before timing out."
    what = f"  what():  [Rank 0] {CAUGHT} {WORK}"
    events = events_of(new, what, old)
    assert [(e.kind, e.fields["rank"], e.fields["seq"], e.fields["op"], e.fields["timeout_ms"]) for e in events] == [
        ("collective.watchdog_timeout", 0, 7, "ALLREDUCE", 14000),
        ("collective.watchdog_timeout", 3, 7, "ALLREDUCE", 14000),
    ]  # fmt: skip
    stamp = events[0].stamp
    assert stamp is not None and (stamp.text, stamp.year_known) == ("1130 20:14:45.294557233", False)
    assert events[1].stamp is None


def test_the_month_has_one_digit_or_two() -> None:
    rows = [
        f"[rank{rank}]:[{stamp} 06:24:44.903881913 ProcessGroupNCCL.cpp:616] [Rank {rank}] {CAUGHT} {WORK}"
        for rank, stamp in enumerate(("E626", "E0626", "E1206"))
    ]
    assert all(map(PARSER.claims, rows)) and PARSER.sniff("\n".join(rows)) > 0.9
    june, padded, december = (event.stamp for event in events_of(*rows))
    assert june is not None and padded is not None and december is not None
    assert june.value == padded.value
    assert december.value - june.value == 163 * 86400  # 26 June to 6 December


def test_a_rank_with_nothing_in_flight_did_not_arrive() -> None:
    row = (
        "[rank1]:[E1130 20:14:49.526675303 ProcessGroupNCCL.cpp:1914] [PG ID 0 PG GUID 0(default_pg) Rank 1] Received"
        " a dump signal due to a collective timeout from  rank 0 and we will try our best to dump the debug info."
        " Last enqueued NCCL work: {}, last completed NCCL work: 6."
    )
    assert [e.fields for e in events_of(row.format(6)) if e.kind == "collective.rank_behind"] == [{"rank": 1, "seq": 6}]
    assert not [e for e in events_of(row.format(7)) if e.kind == "collective.rank_behind"]


def test_quiet_warnings_are_no_trouble() -> None:
    assert (
        events_of(
            "[rank0]:[W731 15:52:26.202323438 ProcessGroupNCCL.cpp:1479] destroy_process_group() was not called",
            "[W1130 20:14:31.047682376 Utils.hpp:137] Warning: Environment variable X is deprecated; use Y",
            "[Gloo] Rank 0 is connected to 0 peer ranks. Expected number of connected peer ranks is : 0",
            "(Worker pid=36) INFO 08-18 02:57:06 [parallel_state.py:1607] world_size=1 backend=gloo",
        )
        == []
    )


def test_results_count_wrong_values() -> None:
    rows = [
        "# nThread 1 nGpus 2 minBytes 8 maxBytes 8",
        "   8388608   2097152   float   sum   -1    300.1   28.60   28.60      3    300304   28.60   28.60      0",
        "# Out of bounds values : 3 FAILED",
        "# Avg bus bandwidth    : 28.2632 ",
    ]
    (event,) = events_of(*rows)
    assert (event.kind, event.fields) == ("collective.result", {"wrong": 3, "bandwidth": 28.2632})
    (event,) = events_of(*rows[:3])
    assert event.fields == {"wrong": 3}


def test_gloo() -> None:
    (event,) = events_of("RuntimeError: Gloo connectFullMesh failed with [../gloo/transport/tcp/pair.cc:144] no error")
    assert event.kind == "collective.nccl_warn"


@pytest.mark.parametrize(
    "text",
    ["INFO 10-10 08:00:01 [kernel.py:58] NCCL INFO is a word\n", "NVRM: Xid (PCI:0000:41:00): 79, x", "",
     "vllm:x 1.0\n",
     "(Worker pid=36) INFO 08-18 02:57:06 [pynccl.py:70] vLLM is using nccl==2.27.3\n"],
)  # fmt: skip
def test_foreign_text_is_refused(text: str) -> None:
    assert PARSER.sniff(text) <= 0.1
    assert not PARSER.claims(text.strip())
    assert events_of(text.strip()) == []


def test_a_server_log_with_a_watchdog_in_it_stays_a_server_log() -> None:
    text = (
        "ERROR 07-01 13:54:43 multiproc_worker_utils.py:120] died\n" * 2
        + f"[rank0]:[E ProcessGroupNCCL.cpp:563] {WORK}\n" * 4
    )
    assert PARSER.sniff(text) <= 0.5
    assert [PARSER.claims(row) for row in text.strip().split("\n")] == [False, False, True, True, True, True]


@pytest.mark.parametrize(
    "unit", ["NCCL WARN ", "a:1:1 [0] ", "[", "#  Rank ", " 1", "via ", "WorkNCCL(SeqNum=1, ", "x-"]
)
def test_hostile_lines_cost_little(unit: str) -> None:
    row = (unit * 65536)[:65536]
    PARSER.sniff(row)
    PARSER.claims(row)
    events_of(row, "n:1:1 [0] NCCL INFO " + row, "[rank0]:[E ProcessGroupNCCL.cpp:563] " + row)
