"""What one input came to, before it is written down."""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.reasoning.bundle import Bundle
from analyzer.reasoning.rank import Candidate
from analyzer.reasoning.rulebook import Rulebook
from analyzer.reasoning.verdict import Signs
from parsers.contract import Trouble


@dataclass(slots=True)
class Analysis:
    """Every intermediate result, for `rules explain`, `timeline` and tests."""

    bundle: Bundle
    ranked: list[Candidate]
    weighed: list[Candidate]
    signs: Signs
    troubles: list[Trouble]
    rulebook: Rulebook
    paths: list[str]
    started: float
