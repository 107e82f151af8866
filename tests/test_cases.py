"""Every case of fixtures/cases against all rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.reasoning.cases import case_folders, run_case
from analyzer.reasoning.rulebook import Rulebook, load

CASES = Path(__file__).parent.parent / "fixtures" / "cases"


@pytest.fixture(scope="module")
def rulebook() -> Rulebook:
    return load()


@pytest.mark.parametrize("folder", case_folders(CASES), ids=lambda f: f"{f.parent.name}/{f.name}")
def test_case(folder: Path, rulebook: Rulebook) -> None:
    assert run_case(folder, rulebook).faults == []
