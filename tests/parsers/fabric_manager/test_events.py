"""Fabric-manager lines: telling ones, routine ones, and those in a mixed journal."""

from __future__ import annotations

import pytest

from parsers.contract import Line
from parsers.event import Event
from parsers.fabric_manager import PARSER, judge
from parsers.kernel_log import PARSER as KERNEL_LOG


@pytest.mark.parametrize(
    ("message", "level", "what"),
    [
        ("request failed with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]", None, "nothing_to_do"),
        ("fabric manager version 1 doesn't match with driver version 2", "ERROR", "version_mismatch"),
        ("Successfully configured all the available NVSwitches to route GPU NVLink traffic.", "INFO", "configured"),
        ("multicast group 0 is freed.", "INFO", None),
        ("something went wrong", "ERROR", "error"),
        ("nvidia-fabricmanager.service: Control process exited, code=exited, status=1/FAILURE", None, "error"),
        ("Started NVIDIA fabric manager service.", None, None),
    ],
)
def test_judge(message: str, level: str | None, what: str | None) -> None:
    judged = judge(message, level)
    assert (judged["what"] if judged else None) == what


def test_a_mixed_journal_tells_of_the_fabric_too() -> None:
    text = "Sep 18 03:19:01 node1 nv-fabricmanager[1120]: fabric manager version 1 doesn't match with driver version 2"
    (event,) = [e for e in KERNEL_LOG.read([Line(1, 0, len(text), text)], "x") if isinstance(e, Event)]
    assert (event.kind, event.fields["what"]) == ("fabric.manager", "version_mismatch")


def test_claims_and_refusals() -> None:
    assert PARSER.claims("[Mar 03 2026 10:00:01] [ERROR] [tid 2000] x")
    assert PARSER.claims("Sep 18 03:19:01 node1 nv-fabricmanager[1]: Connected to 1 node.")
    for text in ("Mar 29 15:38:59 node1 kernel: x", "[Mar 03 10:00] x", "INFO 10-10 08:00:01 fabric", ""):
        assert not PARSER.claims(text)
        assert PARSER.sniff(text) == 0.0
