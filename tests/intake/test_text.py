"""Blocks, encodings, transports."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.intake.budget import MIB, Budget
from analyzer.intake.lines import Unwrapping
from analyzer.intake.read import lines_of
from analyzer.intake.text import blocks
from analyzer.intake.transport import transports_of
from parsers.contract import Line, Trouble
from parsers.stamp import ClockKind


def lines(data: bytes, troubles: list[Trouble] | None = None) -> list[Line]:
    stack = transports_of(data.decode("utf-8", "replace"))
    return [
        line
        for block in blocks("x", io.BytesIO(data), data[:4096], Budget(), troubles if troubles is not None else [])
        for line in lines_of(block, stack, Budget())
    ]


@given(st.binary(max_size=400))
def test_any_bytes_become_lines_as_sed_counts_them(data: bytes) -> None:
    data = b"#" + data.replace(b"\0", b"")  # a mark of order or zero bytes would make it UTF-16
    expected = data.split(b"\n")
    if not expected[-1]:
        expected.pop()
    got = [
        line for block in blocks("x", io.BytesIO(data), data, Budget(), []) for line in lines_of(block, (), Budget())
    ]
    assert [line.number for line in got] == list(range(1, len(expected) + 1))
    assert [data[line.start : line.end] for line in got] == expected


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8-sig", "utf-8"])
def test_encodings_give_the_same_lines(encoding: str) -> None:
    text = "INFO 11-30 20:04:27 [a.py:1] one\r\nERROR 11-30 20:04:28 [a.py:1] zwölf\r\n"
    assert [line.text for line in lines(text.encode(encoding))] == text.replace("\r", "").splitlines()


def test_line_ends_only_at_newline() -> None:
    assert len(lines("a\rb\x0bc\x0cd\x85e\u2028f\ng\n".encode())) == 2


def test_line_without_end_is_bounded() -> None:
    troubles: list[Trouble] = []
    got = lines(b"a\n" + b"x" * (12 * MIB) + b"tail\nlast\n", troubles)
    assert [line.number for line in got] == [1, 2, 3]
    assert len(got[1].text) < 2 * Budget().line_kept
    assert got[1].text.endswith("tail")
    assert [t.tag for t in troubles] == ["limit"]


def test_colours_are_taken_out_and_offsets_stay() -> None:
    data = b"\x1b[31mXi\x1b[0md\x1b]52;c;aaaa\x07 (PCI\nsecond\n"
    got = lines(data)
    assert got[0].text == "Xid (PCI"
    assert data[got[1].start : got[1].end] == b"second"


PAYLOAD = ["INFO 11-30 20:04:27 [core.py:1] one", "WARNING 11-30 20:04:28 [core.py:2] two", ""]


def wrapped(name: str) -> str:
    stamp = "2026-11-30T20:04:27.123456789Z"
    if name == "docker json-file":
        return "\n".join(json.dumps({"log": text + "\n", "stream": "stderr", "time": stamp}) for text in PAYLOAD) + "\n"
    if name == "CRI":
        return "".join(f"{stamp} stderr F {text}\n" for text in PAYLOAD)
    if name == "kubectl --prefix":
        return "".join(f"[pod/vllm-0/server] {text}\n" for text in PAYLOAD)
    return "".join(f"{stamp} {text}\n" for text in PAYLOAD)


@pytest.mark.parametrize("name", ["docker json-file", "CRI", "kubectl --prefix", "time-stamped lines"])
def test_transports_come_off(name: str) -> None:
    got = lines(wrapped(name).encode())
    assert [line.text for line in got] == PAYLOAD
    if name != "kubectl --prefix":
        assert got[0].outer is not None and got[0].outer.clock is ClockKind.UTC


def test_two_transports() -> None:
    text = "".join(f"[pod/vllm-0/server] 2026-11-30T20:04:27.123456789Z {text}\n" for text in PAYLOAD)
    assert [line.text for line in lines(text.encode())] == PAYLOAD


def test_split_records_are_joined() -> None:
    stamp = "2026-11-30T20:04:27.1Z"
    data = f"{stamp} stderr P first \n{stamp} stderr F half\n{stamp} stderr F next\n".encode()
    assert [line.text for line in lines(data)] == ["first half", "next"]


def test_syslog_is_no_transport() -> None:
    line = "2026-03-29T15:38:59.121546+02:00 node1 kernel: [93297.027938] NVRM: Xid (PCI:0000:41:00): 79"
    assert transports_of(line + "\n" + line + "\n") == ()


def test_bad_record_is_kept_as_text() -> None:
    stack = transports_of(wrapped("docker json-file"))
    unwrapping = Unwrapping(stack, Budget())
    assert [line.text for line in unwrapping.lines([Line(1, 0, 7, "{broken")])] == ["{broken"]
