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
            from analyzer.reasoning import lookup, prebuilt
            from analyzer.reasoning.rulebook import load

            rulebook = load(strict=True)
            texts = {
                prebuilt.NAME: prebuilt.freeze(rulebook),
                lookup.INDEX: lookup.freeze(lookup.entries_of(rulebook)),
            }
        finally:
            sys.path.remove(self.root)
        folder = Path(tempfile.mkdtemp())
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
            build_data["force_include"][str(folder / name)] = f"analyzer/rules/{name}"
