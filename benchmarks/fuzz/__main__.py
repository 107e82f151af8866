"""One command: `python -m benchmarks.fuzz [TARGET ...] [--seconds N]` (default: all, 120 s each).

With atheris it is guided by coverage; without it, seeds are mutated at random. Corpora live in `--corpus` (default
`.fuzz-corpus/TARGET`), inputs that failed in `.fuzz-corpus/TARGET/crash-*`. Exit code 1 when any target failed.

`--keep` then packs what reaches code that no smaller input reaches into `fixtures/fuzz/TARGET.tar.xz`, which the test
run replays (tests/hostile/test_fuzz_corpus.py). It starts from what is packed there already.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import io
import lzma
import os
import pkgutil
import random
import shutil
import subprocess
import sys
import tarfile
import time
import traceback
from pathlib import Path
from types import ModuleType

import analyzer
import parsers

INNER = "STUCKWARP_FUZZ_TARGET"
KEPT, KEPT_BYTES = 300, 1 << 20
"""Inputs, and bytes of them in all, that are packed for one target."""


def _seeds(name: str) -> list[bytes]:
    from benchmarks.fuzz.targets import FIXTURES, TARGETS

    target = TARGETS[name]
    largest = target.largest
    seeds = target.made()
    for pattern in target.seeds:
        for path in sorted(FIXTURES.glob(pattern))[:40]:
            if path.is_file():
                data = path.read_bytes()
                seeds.append(data[:largest])
                if path.suffix == ".xz":
                    seeds.append(lzma.decompress(data)[:largest])
    return seeds


def _keep(name: str, corpus: Path) -> None:
    """Pack the inputs of a merged corpus, the smallest first, into the fixture that the test run replays."""
    from benchmarks.fuzz.targets import kept_path

    found = (path.read_bytes() for path in corpus.glob("*") if path.is_file())
    inputs = sorted(found, key=lambda data: (len(data), data))
    path = kept_path(name)
    path.parent.mkdir(exist_ok=True)
    total = number = 0
    with tarfile.open(path, "w:xz") as archive:
        for data in inputs:
            total += len(data)
            if number >= KEPT or total > KEPT_BYTES:
                break
            member = tarfile.TarInfo(f"{number:04d}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
            number += 1
    print(f"{name}: {number} of {len(inputs)} inputs kept, {path.stat().st_size} bytes", flush=True)


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
    seeds = _seeds(name)
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
    targets = _instrumented()
    for number, seed in enumerate([*_seeds(name), *targets.kept(name)]):
        (corpus / f"seed-{number:03d}").write_bytes(seed)
    _atheris(name, [f"-max_total_time={seconds:.0f}", "-print_final_stats=1", str(corpus)])
    return 0


def _merge(name: str, corpus: Path, into: Path) -> int:
    """Copy to `into` what a smaller corpus needs to reach the same code. libFuzzer starts its own program again for
    this, so it is given one that leads back here."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir()
    again = into.with_suffix(".sh")
    again.write_text(f'#!/bin/sh\n{INNER}={name} exec "{sys.executable}" -m benchmarks.fuzz "$@"\n')
    again.chmod(0o755)
    sys.argv[0] = str(again.resolve())
    _atheris(name, ["-merge=1", str(into), str(corpus)])
    return 0


def _instrumented() -> ModuleType:
    """The targets, with all that they load instrumented: what is imported later would not count as reached."""
    import atheris

    with atheris.instrument_imports(include=["analyzer", "parsers"]):
        from benchmarks.fuzz import targets

        for package in (analyzer, parsers):
            for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
                if not module.name.startswith(("analyzer.cli", "analyzer.fleet", "analyzer.__main__")):
                    importlib.import_module(module.name)
    return targets


def _atheris(name: str, arguments: list[str]) -> None:
    import atheris

    targets = _instrumented()
    target = targets.TARGETS[name]
    limits = [f"-max_len={target.largest}", "-rss_limit_mb=2048", "-timeout=30"]
    artifacts = [f"-artifact_prefix={arguments[-1]}/"]
    atheris.Setup([sys.argv[0], *limits, *artifacts, *arguments], lambda data: targets.timed(target, data))
    atheris.Fuzz()


def main() -> int:
    """Run the targets one after another, each in a process of its own."""
    if INNER in os.environ:
        _atheris(os.environ[INNER], sys.argv[1:])
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--corpus", type=Path, default=Path(".fuzz-corpus"))
    parser.add_argument("--random", action="store_true", help="mutate at random even where atheris is there")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="pack the inputs that matter into fixtures/fuzz (atheris)")
    parser.add_argument("--here", choices=("guided", "random", "merge"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        name = options.targets[0]
        corpus = options.corpus / name
        corpus.mkdir(parents=True, exist_ok=True)
        if options.here == "merge":
            return _merge(name, corpus, options.corpus / f"{name}.merged")
        if options.here == "guided":
            return _guided(name, options.seconds, corpus)
        return _at_random(name, options.seconds, corpus, options.seed)
    from benchmarks.fuzz.targets import TARGETS

    try:
        import atheris  # noqa: F401

        way = "random" if options.random else "guided"
    except ImportError:
        way = "random"
    if options.keep and way == "random":
        parser.error("--keep needs atheris, which tells what an input reaches. pip install atheris")
    failed = []
    common = ["--seconds", str(options.seconds), "--corpus", str(options.corpus), "--seed", str(options.seed)]
    for name in options.targets or TARGETS:
        run = [sys.executable, "-m", "benchmarks.fuzz", name, *common, "--here"]
        if subprocess.run([*run, way]).returncode:
            failed.append(name)
        elif options.keep:
            subprocess.run([*run, "merge"], check=True)
            _keep(name, options.corpus / f"{name}.merged")
    print("failed: " + ", ".join(failed) if failed else "no target failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
