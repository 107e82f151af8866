"""How a shell, a script or docker says with which code a process ended."""

from __future__ import annotations

import pytest

from parsers.contract import Line
from parsers.event import Event
from parsers.terminal import PARSER


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("rc=-9", -9),
        ("exit_code=137", 137),
        ("exit code: 137", 137),
        ("returncode -11", -11),
        ("vllm-1 exited with code 137", 137),
        ("Command terminated by signal 9", -9),
    ],
)
def test_exit_codes(text: str, code: int) -> None:
    assert PARSER.sniff(text) > 0
    found = [one for one in PARSER.read([Line(1, 0, len(text), text)], "state.txt") if isinstance(one, Event)]
    assert [one.fields["exit_code"] for one in found if one.kind == "process.exit"] == [code]


def test_zero_is_no_failure() -> None:
    assert list(PARSER.read([Line(1, 0, 4, "rc=0")], "state.txt")) == []
