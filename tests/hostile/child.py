"""Runs the command line in a child process with a memory limit and a wall limit, and looks at what it left behind."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analyzer.reasoning.rulebook import Rulebook

MIB = 1 << 20
MEMORY = 768 * MIB
"""Address space that a run may take beyond what the interpreter with all modules has already."""
RESIDENT = 640 * MIB
WALL = 90.0
CPU = 10.0


@dataclass(slots=True)
class Ended:
    """How a run ended. `report` = the JSON on standard output, where there is one."""

    code: int
    out: bytes
    err: str
    cpu_s: float
    resident: int
    report: dict[str, Any] | None

    def rules(self) -> list[str]:
        """Rules of the hypotheses that were not ruled out."""
        assert self.report is not None, self.err
        return [one["rule"] for one in self.report["hypotheses"] if not one["ruled_out"]]

    def notes(self) -> list[tuple[str, str, str]]:
        """(source, tag, text) of everything that was said about reading."""
        assert self.report is not None, self.err
        said = [(one["source"], one["tag"], one["text"]) for one in self.report["troubles"]]
        said += [(a["path"], n["tag"], n["text"]) for a in self.report["artifacts"] for n in a["notes"]]
        return said


@cache
def _shipped_rules() -> Rulebook:
    """The shipped rules with their patterns indexed, read once for all children (each has a copy of its own)."""
    from analyzer.reasoning.rulebook import load

    book = load()
    assert book.patterns.sought
    return book


def run_cli(arguments: list[str], cwd: Path, memory: int | None = MEMORY, uid: int | None = None) -> Ended:
    """`stuckwarp ARGUMENTS` in a forked child whose current folder, home and temporary folder are below `cwd`."""
    import analyzer.analyze
    import analyzer.cli.analyze
    import analyzer.compose
    import analyzer.render.trace  # noqa: F401  (imported once, before the fork)

    _shipped_rules()
    out, err = cwd / ".out", cwd / ".err"
    child = os.fork()
    if child == 0:
        _in_child(arguments, cwd, out, err, memory, uid)
    deadline = time.monotonic() + WALL
    while True:
        ended, status, usage = os.wait4(child, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.005)
    data, said = out.read_bytes(), err.read_text(errors="replace")
    out.unlink()
    err.unlink()
    try:
        report = json.loads(data)
    except ValueError:
        report = None
    return Ended(
        os.waitstatus_to_exitcode(status), data, said, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, report
    )


def _in_child(arguments: list[str], cwd: Path, out: Path, err: Path, memory: int | None, uid: int | None) -> None:
    code = 99
    try:
        os.chdir(cwd)
        for name in ("HOME", "TMPDIR"):
            folder = cwd / f".{name.lower()}"
            folder.mkdir(exist_ok=True)
            os.environ[name] = str(folder)
        import tempfile

        tempfile.tempdir = None
        for number, path in ((1, out), (2, err)):
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(file, number)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        if uid is not None:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
        if memory is not None:
            mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (mapped + memory, mapped + memory))
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        from analyzer.reasoning import rulebook

        read_rules = rulebook.load
        rulebook.load = lambda extra=(), **options: read_rules(extra, **options) if extra else _shipped_rules()
        sys.argv = ["stuckwarp", *arguments]
        from analyzer.cli import run

        try:
            run()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def fingerprint(folder: Path) -> dict[str, tuple[str, int]]:
    """Names, contents and times of everything below a folder; pipes and sockets by name only."""
    found: dict[str, tuple[str, int]] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = (f"link {path.readlink()}", 0)
        elif path.is_file():
            digest = hashlib.blake2b()
            with path.open("rb") as file:
                while block := file.read(MIB):
                    digest.update(block)
            found[name] = (digest.hexdigest(), path.stat().st_mtime_ns)
        else:
            found[name] = ("folder" if path.is_dir() else "special", 0)
    return found
