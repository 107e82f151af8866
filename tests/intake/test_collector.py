"""Records of collectors are transports, a server's own JSON is none; documents of log stores are read whole."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from analyzer.analyze import investigate
from analyzer.intake.budget import Budget
from analyzer.intake.collector import payload
from analyzer.intake.exports import is_document
from analyzer.intake.text import blocks
from parsers.contract import Trouble

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
AT = "2026-11-30T12:00:00.000Z"


@pytest.mark.parametrize(
    ("record", "host"),
    [
        ({"log": XID}, None),
        ({"date": 1796040000.25, "log": XID}, None),
        ({"log": XID, "kubernetes": {"pod_name": "vllm-0", "host": "n1"}}, "vllm-0"),
        ({"message": XID, "host": "n1", "source_type": "file", "timestamp": AT}, "n1"),
        ({"@timestamp": AT, "host": {"name": "n1"}, "message": XID, "agent": {}}, "n1"),
        ({"_source": {"@timestamp": AT, "message": XID}, "_id": "1"}, None),
        ({"result": {"_raw": XID, "_time": AT, "host": "n1"}}, "n1"),
        ({"TimeGenerated": AT, "LogEntry": XID}, None),
        ({"timestamp": AT, "body": XID, "resource": {"labels": {"pod_name": "p"}}}, "p"),
        ({"textPayload": XID, "timestamp": AT}, None),
    ],
)
def test_the_line_and_the_place(record: dict[str, object], host: str | None) -> None:
    found = payload(record)
    assert found is not None
    assert (found.text, found.host, found.partial) == (XID, host, False)


@pytest.mark.parametrize(
    "record",
    [
        {"levelname": "ERROR", "message": XID, "asctime": "2026-11-30 12:00:00"},
        {"level": "info", "ts": AT, "logger": "main", "msg": "x", "host": "n1"},
        {"level": "info", "ts": AT, "caller": "main.go:7", "msg": "x"},
        {"role": "user", "content": XID},
        {"message": XID},
        {"timestamp": AT, "value": 7},
        {"log": {"file": "x"}, "n": 1},
        {"message": {"text": XID}, "timestamp": AT, "host": "n1"},
    ],
)
def test_what_is_no_record_of_a_collector(record: dict[str, object]) -> None:
    assert payload(record) is None


def test_only_docker_splits_by_the_missing_line_end() -> None:
    docker = payload({"log": "half", "stream": "stderr", "time": AT})
    cri = payload({"log": "whole", "stream": "stderr", "time": AT, "logtag": "F"})
    begun = payload({"log": "half", "stream": "stderr", "time": AT, "logtag": "P"})
    assert docker is not None
    assert cri is not None
    assert begun is not None
    assert (docker.partial, cri.partial, begun.partial) == (True, False, True)


def test_a_document_of_one_long_line_is_read_to_its_end(tmp_path: Path) -> None:
    fill = [[str(1796040000000000000 + i), f"line {i} {'x' * 90}"] for i in range(50_000)]
    fill[25_000][1] = f"[  100.000001] {XID}"
    document = json.dumps({"data": {"resultType": "streams", "result": [{"stream": {}, "values": fill}]}})
    assert len(document) > 4 << 20
    file = tmp_path / "loki.json"
    file.write_text(document)
    analysis = investigate([str(file)])
    assert [one.rule.id for one in analysis.ranked] == ["gpu-fallen-off-bus"]
    assert not any(trouble.tag in ("limit", "skipped") for trouble in analysis.troubles)


def test_records_one_a_line_are_no_document() -> None:
    assert not is_document('{"log": "a", "stream": "stdout"}\n{"log": "b", "stream": "stdout"}\n')
    assert is_document('{"data": {"resultType": "streams", "result": []}}\n')
    assert is_document('[\n  {"textPayload": "a"},\n  {"textPayload": "b"}\n]\n')


def test_a_long_line_leaves_a_note() -> None:
    for data in (b"a\n" + b"x" * 100_000 + b"\nb\n", b"a\n" + b"x" * 100_000):
        troubles: list[Trouble] = []
        list(blocks("x", io.BytesIO(data), data[:4096], Budget(), troubles))
        assert [(one.tag, one.line) for one in troubles] == [("skipped", 2)]
