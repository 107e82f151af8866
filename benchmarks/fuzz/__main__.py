"""One command: `python -m benchmarks.fuzz [TARGET ...] [--seconds N]` (default: all, 120 s each).

With atheris it is guided by coverage; without it, seeds are mutated at random. Corpora live in `--corpus` (default
`.fuzz-corpus/TARGET`), inputs that failed in `.fuzz-corpus/TARGET/crash-*`. Exit code 1 when any target failed.
"""

from __future__ import annotations

import argparse
import hashlib
import lzma
import random
import subprocess
import sys
import time
import traceback
from pathlib import Path


def _seeds(patterns: tuple[str, ...], largest: int) -> list[bytes]:
    from benchmarks.fuzz.targets import FIXTURES

    seeds = []
    for pattern in patterns:
        for path in sorted(FIXTURES.glob(pattern))[:40]:
            if path.is_file():
                data = path.read_bytes()
                seeds.append(data[:largest])
                if path.suffix == ".xz":
                    seeds.append(lzma.decompress(data)[:largest])
    return seeds


def _mutant(chance: random.Random, seeds: list[bytes], largest: int) -> bytes:
    data = bytearray(chance.choice(seeds) if seeds else b"")
    for _ in range(chance.randint(1, 12)):
        at = chance.randrange(len(data) + 1)
        what = chance.randrange(5)
        if what == 0:
            data[at:at] = chance.randbytes(chance.randint(1, 8))
        elif what == 1:
            del data[at : at + chance.randint(1, 64)]
        elif what == 2 and data:
            data[at % len(data)] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        elif what == 3:
            data[at:at] = data[at : at + chance.randint(1, 200)] * chance.randint(1, 40)
        elif seeds:
            other = chance.choice(seeds)
            start = chance.randrange(len(other) + 1)
            data[at:at] = other[start : start + chance.randint(1, 400)]
    return bytes(data[:largest])


def _at_random(name: str, seconds: float, corpus: Path, seed: int) -> int:
    from benchmarks.fuzz.targets import TARGETS, timed

    target = TARGETS[name]
    seeds = _seeds(target.seeds, target.largest)
    chance = random.Random(seed)
    began, runs, faults = time.monotonic(), 0, {}  # type: float, int, dict[str, Path]
    while time.monotonic() - began < seconds:
        data = seeds[runs] if runs < len(seeds) else _mutant(chance, seeds, target.largest)
        runs += 1
        try:
            timed(target, data)
        except Exception as problem:
            last = traceback.extract_tb(problem.__traceback__)[-1]
            key = f"{type(problem).__name__} {Path(last.filename).name}:{last.lineno}"
            if key not in faults:
                faults[key] = corpus / f"crash-{hashlib.sha1(data).hexdigest()[:12]}"
                faults[key].write_bytes(data)
                print(f"{name}: {key}: {str(problem)[:160]} -> {faults[key]}", flush=True)
    print(f"{name}: {runs} executions in {time.monotonic() - began:.0f} s (random), {len(faults)} faults", flush=True)
    return 1 if faults else 0


def _guided(name: str, seconds: float, corpus: Path) -> int:
    import atheris

    with atheris.instrument_imports(include=["analyzer", "parsers"]):
        from benchmarks.fuzz.targets import TARGETS, timed
    target = TARGETS[name]
    for number, seed in enumerate(_seeds(target.seeds, target.largest)):
        (corpus / f"seed-{number:03d}").write_bytes(seed)
    atheris.Setup(
        [
            sys.argv[0],
            str(corpus),
            f"-artifact_prefix={corpus}/",
            f"-max_total_time={seconds:.0f}",
            f"-max_len={target.largest}",
            "-rss_limit_mb=2048",
            "-timeout=30",
            "-print_final_stats=1",
        ],
        lambda data: timed(target, data),
    )
    atheris.Fuzz()
    return 0


def main() -> int:
    """Run the targets one after another, each in a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--corpus", type=Path, default=Path(".fuzz-corpus"))
    parser.add_argument("--random", action="store_true", help="mutate at random even where atheris is there")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--here", choices=("guided", "random"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        name = options.targets[0]
        corpus = options.corpus / name
        corpus.mkdir(parents=True, exist_ok=True)
        return (
            _guided(name, options.seconds, corpus)
            if options.here == "guided"
            else _at_random(name, options.seconds, corpus, options.seed)
        )
    from benchmarks.fuzz.targets import TARGETS

    try:
        import atheris  # noqa: F401

        way = "random" if options.random else "guided"
    except ImportError:
        way = "random"
    failed = []
    for name in options.targets or TARGETS:
        ended = subprocess.run(
            [
                sys.executable,
                "-m",
                "benchmarks.fuzz",
                name,
                "--seconds",
                str(options.seconds),
                "--corpus",
                str(options.corpus),
                "--seed",
                str(options.seed),
                "--here",
                way,
            ]
        )
        if ended.returncode:
            failed.append(name)
    print("failed: " + ", ".join(failed) if failed else "no target failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
