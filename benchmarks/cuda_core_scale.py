"""GPU core dumps at size: 120,000 sections, and a hole of 50 GB where global memory would be.

    python benchmarks/cuda_core_scale.py

Makes its own data with the tests' writer (in a temporary folder, sparse files). Limits: a dump of 120,000 sections is
summarised in 3 s and 300 MiB; a 50 GB one takes at most 1.2 times as long as one of 1 GB with the same tables.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "parsers" / "cuda_core")]


def measure(path: str) -> int:
    """In a process of its own: seconds of the best of nine readings, and the peak of memory, on standard output."""
    from parsers.cuda_core import PARSER as parser

    seconds = []
    for _ in range(9):
        started = time.perf_counter()
        with Path(path).open("rb") as file:
            view = parser.inspect_binary(file, path)
        seconds.append(time.perf_counter() - started)
    assert view["complete"] and view["kernels"], view["notes"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 * (1024 if sys.platform == "darwin" else 1))
    print(min(seconds), peak, view["sections"])
    return 0


def scale(short: bool = False) -> dict[str, tuple[float, float, int]]:
    """`120k`, `1GB` and `50GB` -> (seconds, peak MiB, sections). `short` = small dumps, only to see that it works."""
    from dump_writer import Shape, write_dump  # type: ignore[import-not-found]  # the tests' own

    small = Shape(sms=2 if short else 64, warps=8, flags=0)
    full = small if short else Shape(sms=138, warps=9, per_lane=3)
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, shape, gap in (("120k", full, 0), ("1GB", small, 1 << 30), ("50GB", small, 50 << 30)):
            path = Path(folder) / name
            with path.open("wb") as file:
                write_dump(file, shape, gap)
            done = subprocess.run([sys.executable, __file__, str(path)], capture_output=True, text=True, check=True)
            seconds, peak, sections = (float(word) for word in done.stdout.split())
            results[name] = (seconds, peak, int(sections))
    return results


def main() -> int:
    results = scale()
    for name, (seconds, peak, sections) in results.items():
        print(f"{name}: {sections} sections, {seconds:.3f} s, {peak:.0f} MiB")
    ratio = results["50GB"][0] / results["1GB"][0]
    print(f"50 GB against 1 GB: {ratio:.2f}")
    return 0 if results["120k"][0] <= 3 and results["120k"][1] <= 300 and ratio <= 1.2 else 1


if __name__ == "__main__":
    sys.exit(main() if len(sys.argv) == 1 else measure(sys.argv[1]))
