"""Every limit of a run in one object. Hitting one is a finding about coverage (a `Trouble`), never a silent stop."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

MIB = 1 << 20


@dataclass(slots=True)
class Budget:
    """Limits of one run. Sizes in bytes, times in seconds.

    `ratio` is the greatest expansion of a compressed stream once `ratio_from` bytes came out of it: real logs stay
    under 200 : 1, zeros reach 1,000 : 1 (gzip) to 900,000 : 1 (bzip2).
    """

    total_out: int = 64 << 30
    member_out: int = 16 << 30
    spool: int = 4 << 30
    ratio: int = 400
    ratio_from: int = 32 * MIB
    members: int = 20_000
    depth: int = 5
    line_kept: int = 64 * 1024
    decoder_memory: int = 128 * MIB
    whole_lines: int = 1 * MIB
    """A text up to this size is handed to its parser line by line; of a longer one only the ends are."""
    edge: int = 256 * 1024
    """Bytes at either end of a long text that are handed over whole."""
    hits_per_clause: int = 200
    regex_seconds: float = 0.2
    spent: int = 0

    def spend(self, count: int) -> bool:
        """Count `count` bytes read out of the input; False once the total is used up."""
        self.spent += count
        return self.spent <= self.total_out


SETTABLE = {
    "total-out": "bytes", "member-out": "bytes", "spool": "bytes", "decoder-memory": "bytes", "line-kept": "bytes",
    "ratio": "count", "members": "count", "depth": "count", "regex-seconds": "seconds",
}  # fmt: skip
"""The limits that `--limit NAME=VALUE` sets, and what their values count. The others steer how a text is read."""

_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?) ?([kmgt]?)(i?)b?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_WHAT = {"bytes": "a size such as 512MiB or 8GB", "count": "a whole number", "seconds": "seconds such as 0.5"}


def budget_of(settings: Iterable[str]) -> Budget:
    """A budget with some limits set: `NAME=VALUE` with a name of `SETTABLE`. Sizes take K, M, G, T (powers of 1000; of
    1024 with an i). Raises ValueError, whose message says what to give instead."""
    budget = Budget()
    for setting in settings:
        name, _, value = setting.partition("=")
        unit = SETTABLE.get(name)
        if unit is None:
            raise ValueError(f"there is no limit {name!r}. The limits that can be set are: {', '.join(SETTABLE)}.")
        number = _number(value.strip(), unit)
        if number is None or number <= 0:
            raise ValueError(f"{value!r} is no value for the limit {name}. Give {_WHAT[unit]}, more than 0.")
        setattr(budget, name.replace("-", "_"), number if unit == "seconds" else int(number))
    return budget


def _number(value: str, unit: str) -> float | None:
    if unit == "bytes":
        found = _SIZE.fullmatch(value)
        return float(found[1]) * (1024 if found[3] else 1000) ** _POWERS[found[2].lower()] if found else None
    if not re.fullmatch(r"\d{1,12}" if unit == "count" else r"\d{1,9}(?:\.\d{1,6})?", value):
        return None
    return float(value)
