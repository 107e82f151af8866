"""Evenly stamped lines of a watching script."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from parsers.contract import Line
from parsers.event import Event
from parsers.heartbeat import PARSER

FIXTURES = Path(__file__).parents[2] / "fixtures" / "heartbeat"


def lines(text: str) -> list[Line]:
    found, at = [], 0
    for number, part in enumerate(text.split("\n"), 1):
        found.append(Line(number, at, at + len(part), part))
        at += len(part) + 1
    return found


def view(text: str) -> list[dict[str, object]]:
    return [
        {
            "kind": item.kind,
            "line": item.span.first_line,
            "time": item.stamp.text if item.stamp else None,
            "fields": item.fields,
        }
        for item in PARSER.read(lines(text), "x")
        if isinstance(item, Event)
    ]


@pytest.mark.parametrize("name", ["beats", "ping", "uptime"])
def test_snapshots(name: str) -> None:
    found = view((FIXTURES / f"{name}.txt").read_text())
    path = FIXTURES / f"{name}.json"
    if os.environ.get("STUCKWARP_WRITE_SNAPSHOTS"):
        path.write_text(json.dumps(found, indent=1) + "\n")
    assert found == json.loads(path.read_text())


@pytest.mark.parametrize("name", ["beats", "ping"])
def test_recognises_its_own(name: str) -> None:
    assert PARSER.sniff((FIXTURES / f"{name}.txt").read_text()) >= 0.5


@pytest.mark.parametrize(
    "text",
    [
        "",
        "one line\n",
        "INFO 11-30 20:04:27 [x.py:1] a\n" * 9,
        "\n".join(f"2026/11/30 20:03:{n:02d}.331, 0, NVIDIA H200, 99 %, 0 %, 121.5 W" for n in range(20)),
        "\n".join(f"2026-11-30T20:03:{n:02d}+01:00 node1 kernel: NVRM: x" for n in range(20)),
        "\n".join(f"2026-11-30T20:{n:02d}:00Z {word} did something else" for n, word in enumerate("abcdefghij")),
    ],
)
def test_refuses_foreign_texts(text: str) -> None:
    assert PARSER.sniff(text) < 0.3


def test_a_cut_file_ends_with_its_last_whole_beat() -> None:
    text = (FIXTURES / "beats.txt").read_text()[:-25]
    found = view(text)
    assert len(found) == 1 and found[0]["fields"]["ended"] == "cut"  # type: ignore[index]


def test_a_gap_ends_a_run() -> None:
    text = "\n".join(
        [
            *(f"2026-07-21T10:00:{n:02d}Z beat" for n in range(10)),
            *(f"2026-07-21T10:05:{n:02d}Z beat" for n in range(5)),
        ]
    )
    found = view(text)
    assert [one["fields"]["ended"] for one in found] == ["gap", "cut"]  # type: ignore[index]


def test_uptime_claims_its_line_and_only_it() -> None:
    assert PARSER.claims(" 16:41:10 up 3 days,  1:39,  2 users,  load average: 3.11, 2.80, 1.95")
    assert not PARSER.claims("16:41:10 beat 5")
