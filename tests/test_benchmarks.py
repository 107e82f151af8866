"""The benchmarks work; their numbers are never tested."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(shutil.which("rg") is None, reason="the benchmarks compare with ripgrep")
def test_the_short_run_prints_its_table(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "run.py"), "--quick", "--only", "P1,P5,P9",
         "--scratch", str(tmp_path)],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "| P1 |" in done.stdout and "| P9 |" in done.stdout
    assert not list(tmp_path.iterdir())
