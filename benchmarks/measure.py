# ruff: noqa: E501 (records and table rows as they are written)
"""Commands measured as a whole: CPU of the process tree, peak memory of its largest process."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STUCKWARP = (sys.executable, "-m", "analyzer")


@dataclass(slots=True, frozen=True)
class Cost:
    """CPU seconds (user and system, children that were waited for included), peak resident MiB, wall seconds, exit code."""

    cpu: float
    mib: float
    wall: float
    code: int
    output: str = ""


def measured(command: Sequence[str], environment: Mapping[str, str] | None = None, limit: float = 3600.0) -> Cost:
    """Run a command to its end (it is killed after `limit` seconds). The interpreter itself imports the checkout; an
    installed command what was installed with it."""
    with tempfile.TemporaryFile() as out:
        begin = time.monotonic()
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
            env={**os.environ, **({"PYTHONPATH": str(ROOT)} if command[0] == sys.executable else {}), **(environment or {})},
        )  # fmt: skip
        timer = threading.Timer(limit, process.kill)
        timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        unit = 1 << 20 if sys.platform == "darwin" else 1024
        return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit, time.monotonic() - begin, process.returncode,
                    out.read().decode("utf-8", "replace"))  # fmt: skip


def pairs(one: Callable[[], Cost], two: Callable[[], Cost], count: int) -> tuple[list[float], list[Cost], list[Cost]]:
    """`count` pairs run one after the other; (CPU ratios one / two, costs of one, costs of two)."""
    ratios, ones, twos = [], [], []
    for turn in range(count):
        a, b = (one(), two()) if turn % 2 == 0 else (two(), one())[::-1]
        ratios.append(a.cpu / b.cpu if b.cpu else float("inf"))
        ones.append(a)
        twos.append(b)
    return ratios, ones, twos


def told(values: Sequence[float], unit: str = "") -> str:
    """Median and range."""
    if not values:
        return "-"
    return f"{statistics.median(values):.2f}{unit} ({min(values):.2f} to {max(values):.2f})"
