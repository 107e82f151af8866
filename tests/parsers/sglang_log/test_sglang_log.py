"""SGLang's own lines: batches, ranks, readiness, watchdogs, deaths."""

from __future__ import annotations

from typing import Any

import pytest

from parsers.contract import Line
from parsers.event import Event
from parsers.sglang_log import PARSER, read_batch

AT = "[2026-06-07 12:03:27{ranks}] {message}"


def _events(*messages: str, ranks: str = "") -> list[Event]:
    lines = [Line(n, n * 100, n * 100 + 99, AT.format(ranks=ranks, message=m)) for n, m in enumerate(messages, 1)]
    return [event for event in PARSER.read(lines, "x") if isinstance(event, Event)]


def test_batches() -> None:
    message = (
        "Decode batch. #running-req: 3, #token: 73, token usage: 0.10, cuda graph: True, gen throughput (token/s): "
        "4.5, #queue-req: 2"
    )
    decode = read_batch(AT.format(ranks=" DP1 TP0", message=message))
    assert decode is not None
    assert (decode.engine, decode.generation_tps, decode.running) == ("DP1_TP0", 4.5, 3.0)
    message = (
        "Prefill batch, #new-seq: 2, #new-token: 6, #cached-token: 0, token usage: 0.00, #running-req: 1, #queue-req: "
        "0, input throughput (token/s): 0.09"
    )
    prefill = read_batch(AT.format(ranks="", message=message))
    assert prefill is not None and (prefill.prompt_tps, prefill.running) == (0.09, 3.0)


@pytest.mark.parametrize(
    ("message", "kind", "fields"),
    [
        ("Received sigquit from a child process. It usually means the child failed.", "process_died",
         {"name": "child process"}),
        ("Watchdog timeout (self.watchdog_timeout=300)", "watchdog", {"who": "scheduler", "reason": "no forward step"}),
        ("Health check failed. Server couldn't get a response from detokenizer for last 20 seconds.", "rpc_timeout",
         {"call": "detokenizer", "seconds": 20.0}),
        ("The server is fired up and ready to roll!", "ready", {"what": "The server is fired up and ready to roll"}),
        ("Attention backend not specified. Use flashinfer backend by default.", "kernel_selected",
         {"layer": "attention", "method": "default", "kernel": "flashinfer"}),
    ],
)  # fmt: skip
def test_lines(message: str, kind: str, fields: dict[str, Any]) -> None:
    found = [e for e in _events(message, ranks=" TP3") if e.kind == f"server_log.{kind}"]
    assert [e.fields for e in found] == [fields]
    assert found[0].actor.process == "TP3" and found[0].stamp is not None and found[0].stamp.year_known


def test_uvicorn_is_not_yet_ready() -> None:
    assert not [e for e in _events("INFO:     Application startup complete.") if e.kind == "server_log.ready"]


def test_claims() -> None:
    assert PARSER.claims(AT.format(ranks=" TP0", message="anything"))
    assert PARSER.claims(AT.format(ranks="", message="Load weight begin. avail mem=16.66 GB"))
    assert not PARSER.claims(
    "[2026-04-22 21:34:20] node1:202016:202235 [0] misc/shmutils.cc:88 NCCL WARN Error: failed")
    assert not PARSER.claims("[2026-04-22 21:34:20] some other program")
