"""Which placeholder stands for which value, and where each was put. The values themselves never leave this object."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

PLACEHOLDER = re.compile(
    r"<(?:token|key|uri-login|prompt|local|email|ip|mac|user|serial|guid|machine)-\d+>|(?<![\w.-])(?:host|pod)-\d+(?![\w.-])"
)
GPU_PLACEHOLDER = re.compile(r"0{3}\d{5}(?:-0000-0000-0000-0{12})?")
BARE = ("host", "pod")
"""Kinds without angle brackets: the prefix of a log line must still be a prefix to the parser that reads it."""
PLACES = 1000
"""Places that are listed for one placeholder."""


@dataclass(slots=True)
class Entry:
    """One placeholder: which detectors put it where, how often in all."""

    placeholder: str
    detector: str
    count: int = 0
    places: list[tuple[str, int]] = field(default_factory=list)


class Vault:
    """Values to placeholders, one for one, for as long as the object lives."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}
        self._next: dict[str, int] = {}
        self.entries: dict[str, Entry] = {}

    def reserve(self, text: str) -> None:
        """Placeholders that stand in the input already (it was redacted before) are not given out again."""
        for found in PLACEHOLDER.finditer(text):
            kind, _, number = found.group().strip("<>").rpartition("-")
            if len(number) < 7:
                self._next[kind] = max(self._next.get(kind, 0), int(number))

    def placeholder(self, kind: str, value: str) -> str:
        """The placeholder of a value; a value that is one already stays as it is."""
        if PLACEHOLDER.fullmatch(value):
            return value
        if kind == "gpu":
            return self._gpu(value)
        key = (kind, value)
        known = self._known.get(key)
        if known is None:
            self._next[kind] = self._next.get(kind, 0) + 1
            known = f"{kind}-{self._next[kind]}" if kind in BARE else f"<{kind}-{self._next[kind]}>"
            self._known[key] = known
        return known

    def _gpu(self, value: str) -> str:
        """A GPU's UUID keeps its shape, and a short form keeps agreeing with the long one."""
        prefix, _, rest = value.rpartition("GPU-") if "GPU-" in value else value.rpartition("MIG-")
        letter = "GPU-" if "GPU-" in value else "MIG-"
        if GPU_PLACEHOLDER.fullmatch(rest):
            return value
        whole, short = ("gpu", rest.lower()), ("gpu", rest[:8].lower())
        number = self._known.get(whole)
        if number is None:
            self._next["gpu"] = self._next.get("gpu", 0) + 1
            number = self._known[whole] = f"{self._next['gpu']:08d}"
            self._known.setdefault(short, number)
        return f"{prefix}{letter}{number}" + ("-0000-0000-0000-000000000000" if len(rest) > 8 else "")

    def note(self, placeholder: str, detector: str, artifact: str, line: int) -> None:
        """Keep where a placeholder was put."""
        entry = self.entries.setdefault(placeholder, Entry(placeholder, detector))
        entry.count += 1
        if len(entry.places) < PLACES:
            entry.places.append((artifact, line))

    def ledger(self) -> list[dict[str, object]]:
        """What was replaced where, without the values."""
        return [
            {
                "placeholder": one.placeholder,
                "detector": one.detector,
                "count": one.count,
                "places": [{"artifact": artifact, "line": line} for artifact, line in one.places],
            }
            for one in self.entries.values()
        ]
