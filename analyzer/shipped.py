"""Where the shipped rules are: inside the wheel, or beside the package in a checkout."""

from __future__ import annotations

from pathlib import Path


def shipped_rules() -> Path:
    """The folder of the shipped rules."""
    inside = Path(__file__).parent / "rules"
    return inside if inside.is_dir() else Path(__file__).parent.parent / "rules"
