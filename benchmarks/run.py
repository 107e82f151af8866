# ruff: noqa: E501 (records and table rows as they are written)
"""Speed and memory, against ripgrep: `python benchmarks/run.py [--quick] [--only P1,P3] [--scratch FOLDER]`.

Makes its data (deterministic), runs each goal in pairs, prints one table of ratios and removes the data. P1, P2 and P4
compare the CPU of the whole process tree of `stuckwarp analyze` with `rg -c -f` and all rule patterns that ripgrep's
syntax admits, on the same file; both with ripgrep's own Unicode classes (as the patterns are meant) and with
`--no-unicode` (the cheaper one). `--quick` only checks that every benchmark works; its numbers mean nothing.
`--installed` measures the command of an installed wheel in place of the checkout, whose rules are not prebuilt. `--mib`
makes the logs of P1 and P2 smaller where an hour is too long.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import fleet_bundles, serving_log
from benchmarks.measure import STUCKWARP, Cost, measured, pairs, told

MIB = 1 << 20
RIPGREP = ("rg", "--regex-size-limit", "4G", "--dfa-size-limit", "1G", "-c")


@dataclass(slots=True)
class Run:
    """One run of the benchmarks. `rows` = (id, what, result, goal, met)."""

    scratch: Path
    quick: bool
    count: int
    mib: int = 1024
    installed: str | None = None
    rows: list[tuple[str, str, str, str, bool]] = field(default_factory=list)

    @property
    def python(self) -> str:
        """The interpreter of what is measured."""
        return str(Path(self.installed).parent / "python") if self.installed else sys.executable

    @property
    def stuckwarp(self) -> tuple[str, ...]:
        """The command that is measured."""
        return (self.installed,) if self.installed else STUCKWARP

    def size(self, mib: int) -> int:
        """Bytes of a log that the goal wants to have `mib` MiB."""
        return (3 if self.quick else mib) * MIB

    def log(self, size: int, signal: float) -> Path:
        """A serving log of that size, made once."""
        path = self.scratch / f"{size // MIB}-{signal}.log"
        if not path.is_file():
            serving_log.write(path, size, signal)
        return path

    def patterns(self) -> Path:
        """All patterns of the rules that ripgrep's syntax admits, one a line."""
        path = self.scratch / "patterns"
        if not path.is_file():
            from analyzer.reasoning.rulebook import load

            every = sorted({one.pattern for one in load().patterns.sought if "\n" not in one.pattern})
            admitted = [one for one in (every[:50] if self.quick else every) if _admitted(one)]
            path.write_text("\n".join(admitted) + "\n", encoding="utf-8")
            print(f"patterns: {len(admitted)} of {len(every)} are in ripgrep's syntax", file=sys.stderr)
        return path

    def ripgrep(self, log: Path, *options: str) -> Callable[[], Cost]:
        """ripgrep counting the lines of `log` that match."""
        return lambda: measured([*RIPGREP, *options, "-f", str(self.patterns()), str(log)])

    def analyze(self, log: Path, engine: str = "", out: str = "report.json") -> Callable[[], Cost]:
        """The whole product on `log`."""
        command = [*self.stuckwarp, "analyze", "--format", "json", "-o", str(self.scratch / out), str(log)]
        return lambda: measured(command, {"STUCKWARP_SCANNER": engine})

    def add(self, name: str, what: str, result: str, goal: str, met: bool) -> None:
        """One row of the table."""
        self.rows.append((name, what, result, goal, met))
        print(f"{name}  {what}: {result}  (goal {goal}: {'met' if met else 'NOT met'})", flush=True)

    def against(self, name: str, what: str, log: Path, goal: float, engine: str = "", count: int | None = None) -> None:
        """Ratios to ripgrep in both of its modes; the goal is held against the mode in which the patterns are meant."""
        count = count or self.count
        unicode, ours, theirs = pairs(self.analyze(log, engine), self.ripgrep(log), count)
        plain, _, _ = pairs(self.analyze(log, engine), self.ripgrep(log, "--no-unicode"), count)
        middle = sorted(unicode)[len(unicode) // 2]
        if any(one.code not in (0, 1, 3) for one in ours) or any(one.code not in (0, 1) for one in theirs):
            raise SystemExit(f"{name}: a command failed: {[one.code for one in ours + theirs]}")
        self.add(name, what, f"{told(unicode)} x rg, {told(plain)} x rg --no-unicode; {told([o.cpu for o in ours], ' s')}, "
                             f"{max(o.mib for o in ours):.0f} MiB", f"<= {goal}", middle <= goal)  # fmt: skip


def _admitted(pattern: str) -> bool:
    found = subprocess.run(["rg", "-c", "-e", pattern, os.devnull], capture_output=True, check=False)
    return found.returncode != 2


def p1(run: Run) -> None:
    """The main job on a healthy log."""
    run.against("P1", f"{run.mib} MiB, 0.01 % signal", run.log(run.size(run.mib), 0.0001), 1.0)


def p2(run: Run) -> None:
    """Many signal lines, and a crash loop."""
    run.against("P2", f"{run.mib} MiB, 1 % signal", run.log(run.size(run.mib), 0.01), 1.5)
    run.against("P2", f"{run.mib} MiB, 20 % signal", run.log(run.size(run.mib), 0.2), 2.5)


def p3(run: Run) -> None:
    """Memory does not grow with the log."""
    for mib in (200, 1024, 10240):
        log = run.log(run.size(mib), 0.0001)
        cost = run.analyze(log)()
        run.add("P3", f"{mib} MiB log", f"{cost.mib:.0f} MiB peak, {cost.cpu:.1f} s", "<= 100 MiB", cost.mib <= 100)
        if mib > 1024:
            log.unlink()


def p4(run: Run) -> None:
    """Without hyperscan, and with nothing native."""
    size = min(200, run.mib)
    run.against("P4", f"{size} MiB, ahocorasick", run.log(run.size(size), 0.0001), 2.0, "ahocorasick")
    run.against("P4", "20 MiB, pure Python", run.log(run.size(20), 0.0001), 60.0, "find", 1)


def p5(run: Run) -> None:
    """The engines agree."""
    from analyzer.analyze import analyze
    from analyzer.reasoning.rulebook import load

    log, book, reports = run.log(run.size(20), 0.01), load(), []
    for engine in ("hyperscan", "ahocorasick", "find"):
        os.environ["STUCKWARP_SCANNER"] = engine
        reports.append(analyze([str(log)], book).model_copy(update={"took_s": None}))
    del os.environ["STUCKWARP_SCANNER"]
    same = all(one == reports[0] for one in reports)
    run.add("P5", "three engines, one report", "the same" if same else "they differ", "the same", same)


def p6(run: Run) -> None:
    """Compressed input costs what decompression costs."""
    log = run.log(run.size(200), 0.0001)
    packed = log.with_suffix(".log.gz")
    with log.open("rb") as source, gzip.open(packed, "wb", compresslevel=6) as target:
        shutil.copyfileobj(source, target, MIB)
    try:
        import isal  # noqa: F401

        unpack = "from isal import igzip as g"
    except ImportError:
        unpack = "import gzip as g"
    code = f"{unpack}; f = g.open({str(packed)!r}); any(not f.read(1 << 20) for _ in iter(int, 1))"
    costs: list[tuple[float, float, float]] = []
    for _ in range(run.count):
        plain, gz, alone = run.analyze(log)(), run.analyze(packed)(), measured([run.python, "-P", "-c", code])
        costs.append((plain.cpu, gz.cpu, alone.cpu))
    # The difference of two long runs is smaller than a busy machine's noise, and noise only adds: least against least.
    plain_least, gz_least, alone_least = (min(column) for column in zip(*costs, strict=True))
    over = (gz_least - plain_least) / alone_least if alone_least else 0.0
    each = told([(gz - plain) / alone for plain, gz, alone in costs if alone])
    name = unpack.split()[1]
    run.add("P6", f".gz beyond plain, in decompressions ({name})", f"{over:.2f} by the least of each; pairs {each}", "<= 1.2",
            over <= 1.2)  # fmt: skip


def p7(run: Run) -> None:
    """Start-up."""
    paste = run.scratch / "paste.txt"
    paste.write_bytes(run.log(run.size(20), 0.01).read_bytes()[:20_000])
    command = run.stuckwarp
    for what, arguments, goal in (
        ("triage of 20 KB", ["triage", str(paste)], 0.3),
        ("--help", ["--help"], 0.15),
        ("rules search", ["rules", "search", "xid"], 0.2),
    ):
        ratios, ours, _ = pairs(
            lambda a=arguments: measured([*command, *a]),  # type: ignore[misc]
            lambda: measured([sys.executable, "-c", "pass"]),
            max(run.count, 3 if run.quick else 9),
        )
        cpu = sorted(one.cpu for one in ours)
        how = "installed" if run.installed else "checkout, rules not prebuilt"
        run.add("P7", f"{what} ({how})", f"{told(cpu, ' s')}, {told(ratios)} x python", f"<= {goal} s", cpu[len(cpu) // 2] <= goal)


def p8(run: Run) -> None:
    """GPU core dumps of many sections, and sparse ones."""
    from benchmarks import cuda_core_scale

    rounds = [cuda_core_scale.scale(run.quick) for _ in range(run.count)]
    seconds = [one["120k"][0] for one in rounds]
    peak = max(one["120k"][1] for one in rounds)
    run.add("P8", f"core dump of {rounds[0]['120k'][2]} sections", f"{told(seconds, ' s')}, {peak:.0f} MiB", "<= 3 s, 300 MiB",
            sorted(seconds)[len(seconds) // 2] <= 3 and peak <= 300)  # fmt: skip
    ratios = [one["50GB"][0] / one["1GB"][0] for one in rounds]
    run.add("P8", "50 GB sparse to 1 GB, same tables", told(ratios), "<= 1.2", sorted(ratios)[len(ratios) // 2] <= 1.2)


def rules(run: Run) -> None:
    """What more rules cost: 20 against 120 of the shipped ones."""
    log = run.log(run.size(200), 0.0001)
    code = (
        "import sys, zlib; hash_of = lambda n: zlib.crc32(n.encode()); from analyzer.analyze import analyze; from analyzer.reasoning.rulebook import Rulebook, load; b = load(); "
        "names = sorted(b.rules, key=hash_of)[:int(sys.argv[1])]; analyze([sys.argv[2]], "
        "Rulebook({n: b.rules[n] for n in names}, b.causes, b.vocabulary, b.digest, literals=b.literals))"
    )
    ratios, many, few = pairs(
        lambda: measured([run.python, "-P", "-c", code, "120", str(log)]),
        lambda: measured([run.python, "-P", "-c", code, "20", str(log)]),
        run.count,
    )
    if any(one.code for one in many + few):
        raise SystemExit("rules: a run failed")
    run.add("rules", "120 rules to 20, 200 MiB", told(ratios), "<= 1.15", sorted(ratios)[len(ratios) // 2] <= 1.15)


def p9(run: Run) -> None:
    """Batches against a serial loop."""
    folder = run.scratch / "fleet"
    sound, broken = fleet_bundles.make(folder, 12 if run.quick else 200, 6 if run.quick else 50)
    loop = (
        "import sys; from pathlib import Path; from analyzer.analyze import analyze; from analyzer.reasoning.rulebook import load; "
        "b = load(); [analyze([str(p)], b).model_dump_json() for p in sorted(Path(sys.argv[1]).iterdir())]"
    )
    turn = iter(range(1000))
    ratios, _, _ = pairs(
        lambda: measured([*run.stuckwarp, "batch", str(folder), "-o", str(run.scratch / f"out{next(turn)}")]),
        lambda: measured([run.python, "-P", "-c", loop, str(folder)]),
        run.count,
    )
    reports = len(list((run.scratch / "out0" / "reports").glob("*.json")))
    run.add("P9", f"{sound + broken} bundles, {broken} broken: {reports} reports; CPU to a serial loop", told(ratios), "<= 1.5",
            sorted(ratios)[len(ratios) // 2] <= 1.5 and reports > 0)  # fmt: skip


def _libraries() -> str:
    found = []
    for name in ("hyperscan", "ahocorasick-rs", "regex", "pydantic", "isal"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found.append(f"{name} {metadata.version(name)}")
    return ", ".join(found)


EVERY = {"P1": p1, "P2": p2, "P3": p3, "P4": p4, "P5": p5, "P6": p6, "P7": p7, "P8": p8, "P9": p9, "RULES": rules}


def main() -> int:
    """Run what was asked for; 0 = everything ran (whether or not goals were met)."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small data, one pair: only to see that it works")
    parser.add_argument("--only", default="", help="P1,P3 …")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--scratch", type=Path, default=None, help="folder for the data (12 GB for all)")
    parser.add_argument("--mib", type=int, default=1024, help="size of the logs of P1 and P2")
    parser.add_argument("--installed", default=None, help="the command of an installed wheel")
    options = parser.parse_args()
    wanted = [one for one in options.only.upper().split(",") if one] or list(EVERY)
    with tempfile.TemporaryDirectory(prefix="stuckwarp-bench-", dir=options.scratch) as folder:
        run = Run(Path(folder), options.quick, 1 if options.quick else options.pairs, options.mib, options.installed)
        version = subprocess.run(["rg", "--version"], capture_output=True, text=True, check=True).stdout.split("\n")[0]
        print(f"{version}; Python {platform.python_version()}; {_libraries()}; {os.cpu_count()} CPUs; load {os.getloadavg()[0]:.1f}", flush=True)
        for name in wanted:
            EVERY[name](run)
    print("\n| id | what | measured | goal | met |\n|---|---|---|---|---|")
    for row in run.rows:
        print(f"| {' | '.join(row[:4])} | {'yes' if row[4] else 'no'} |")
    if run.quick:
        print("a quick run: small data, one pair; it shows only that every benchmark works")
    print(f"load at the end: {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
