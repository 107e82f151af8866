"""The verdict on a redacted bundle is that on the original, over the cases of the rules."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from analyzer.analyze import analyze
from analyzer.reasoning.rulebook import load
from analyzer.redact import redact_bundle

CASES = sorted((Path(__file__).parents[2] / "fixtures" / "cases").glob("*/*/input"))
PARTS = 8
SHARE = 1.0 if os.environ.get("STUCKWARP_ALL_CASES") else 0.12
"""Share of the cases in an ordinary run (always the same ones); `STUCKWARP_ALL_CASES=1` takes all."""


def _chosen() -> list[Path]:
    return [
        case
        for case in CASES
        if hashlib.sha1(str(case.relative_to(CASES[0].parents[2])).encode()).digest()[0] < 256 * SHARE
    ]


@pytest.mark.skipif(not CASES, reason="there are no cases yet")
@pytest.mark.parametrize("part", range(PARTS))
def test_verdict_of_redacted_equals_verdict_of_raw(part: int, tmp_path: Path) -> None:
    rulebook = load()
    for number, case in enumerate(_chosen()[part::PARTS]):
        out = tmp_path / f"{number}" / case.name
        out.parent.mkdir()
        done = redact_bundle([case], out)
        if done.left_out:
            continue  # a binary cannot be redacted: its evidence is gone, and the list says so
        raw, redacted = analyze([str(case)], rulebook), analyze([str(out)], rulebook)
        assert (redacted.verdict, [(h.rule, h.confidence, h.ruled_out) for h in redacted.hypotheses]) == (
            raw.verdict,
            [(h.rule, h.confidence, h.ruled_out) for h in raw.hypotheses],
        ), case
