"""Build hook of the wheel: check every rule and ship them prebuilt (`analyzer/rules/rulebook.json`)."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PrebuiltRulebook(BuildHookInterface[Any]):
    """Adds the prebuilt rulebook to the wheel; a broken rule fails the build."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the wheel is written. An editable install keeps reading the TOML files."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        try:
            from analyzer.reasoning.prebuilt import NAME, freeze
            from analyzer.reasoning.rulebook import load

            text = freeze(load(strict=True))
        finally:
            sys.path.remove(self.root)
        made = Path(tempfile.mkdtemp()) / NAME
        made.write_text(text, encoding="utf-8")
        build_data["force_include"][str(made)] = f"analyzer/rules/{NAME}"
