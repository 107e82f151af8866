"""What coverage-guided fuzzing found worth keeping, replayed: every input returns, in time, without a fault.

`python -m benchmarks.fuzz --keep` makes the packed inputs; a nightly run is the same command with more `--seconds`.
"""

from __future__ import annotations

import pytest

from benchmarks.fuzz.targets import TARGETS, kept, timed


@pytest.mark.parametrize("name", TARGETS)
def test_kept_inputs_return(name: str) -> None:
    inputs = kept(name)
    assert len(inputs) >= 10, f"no inputs are packed for {name}: run python -m benchmarks.fuzz {name} --keep"
    for data in inputs:
        timed(TARGETS[name], data)
