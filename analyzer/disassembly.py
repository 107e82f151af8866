"""SASS around the PCs of a core dump, by the optional `nvidia-cuda-nvdisasm` wheel, in a boxed child process.

The child gets one file with the bytes of one stretch of one function and nothing else: no shell, an empty
environment, an own folder, limits on memory, processor and wall time, file size and output. Nothing else of stuckwarp
needs the wheel.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import threading
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO

from parsers.cuda_core.excerpts import Excerpt, cut_out

PACKAGE = "nvidia-cuda-nvdisasm"
AROUND = 8
MEMORY_BYTES = 1 << 30
CPU_SECONDS = 10
WALL_SECONDS = 30
OUTPUT_BYTES = 4 << 20
_LINE = re.compile(r"^\s+/\*([0-9a-f]{4,16})\*/\s+(\S.{0,400}?)\s*;")


class DisassemblerMissing(Exception):
    """The wheel is not installed; the text says what, where, why and what to do."""


def find_disassembler() -> Path:
    """The program of the installed wheel; it is never looked for on PATH. Raises `DisassemblerMissing`."""
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name in ("nvdisasm", "nvdisasm.exe"):
            path = Path(str(file.locate()))
            if path.is_file():
                return path.resolve()
    raise DisassemblerMissing(
        "--sass cannot show instructions: no disassembler is here.\n"
        f"  where: the Python environment of stuckwarp holds no package {PACKAGE} with its program nvdisasm\n"
        "  why:   it is optional, since nothing else needs it; what warps wait for is read without it\n"
        "  do:    pip install 'stuckwarp[sass]' (or pipx inject stuckwarp nvidia-cuda-nvdisasm), or leave --sass out"
    )


def sass_of(file: BinaryIO, symbol: str | None, program: Path) -> dict[str, Any]:
    """The `sass` part of an inspection: excerpts with instructions, offsets from the function's start, and notes."""
    cut = cut_out(file, symbol, AROUND)
    excerpts, notes = [], []
    for excerpt in cut.found:
        lines, problem = disassemble(excerpt, program)
        if problem:
            notes.append(f"{excerpt.function}: {problem}")
            continue
        excerpts.append(
            {
                "dev": excerpt.device,
                "function": excerpt.function,
                "places": excerpt.places,
                "instructions": [
                    {
                        "offset": offset,
                        "text": text,
                        "warps": excerpt.warps.get(offset, 0),
                        "error_pc": offset in excerpt.faults,
                    }
                    for offset, text in lines
                ],
            }
        )
    if symbol is not None and not cut.found:
        notes.append(f"no warp stands in a function whose name holds {symbol!r}")
    if cut.without_lines:
        names = ", ".join(cut.without_lines[:3]) + (" …" if len(cut.without_lines) > 3 else "")
        notes.append(f"left alone, since it carries no line information: {names}; --sass-symbol NAME shows it")
    if cut.more:
        notes.append(f"{cut.more} more places were left out")
    return {"excerpts": excerpts, "notes": notes}


def disassemble(excerpt: Excerpt, program: Path) -> tuple[list[tuple[int, str]], str]:
    """(offset in the function, instruction) of the excerpt, and what went wrong ('' when nothing did)."""
    major, minor = excerpt.capability
    problem = ""
    for suffix in ("", "a"):
        output, problem = _run(program, excerpt, f"SM{major}{minor}{suffix}")
        lines = []
        for line in output.split("\n"):
            found = _LINE.match(line)
            if found:
                lines.append((int(found[1], 16), found[2]))
        if lines:
            return lines, ""
    return [], problem or "the disassembler printed no instruction"


def _run(program: Path, excerpt: Excerpt, architecture: str) -> tuple[str, str]:
    """Output and problem of one run. Offsets are counted from the function's start."""
    with tempfile.TemporaryDirectory(prefix="stuckwarp-sass-") as folder:
        code = Path(folder, "code.bin")
        code.write_bytes(excerpt.code)
        command = [str(program), "-ndf", "-b", architecture, "-base", f"{excerpt.start:#x}", str(code)]
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={},
                close_fds=True,
                start_new_session=True,
                preexec_fn=_limits,
            )
        except (OSError, subprocess.SubprocessError) as problem:
            return "", f"the disassembler could not be started: {problem}"
        timer = threading.Timer(WALL_SECONDS, child.kill)
        timer.start()
        try:
            assert child.stdout is not None
            output = child.stdout.read(OUTPUT_BYTES).decode("utf-8", "backslashreplace")
        finally:
            child.kill()
            child.wait()
            late = not timer.is_alive()
            timer.cancel()
            if child.stdout is not None:
                child.stdout.close()
        if late:
            return "", f"the disassembler was stopped after {WALL_SECONDS} s"
        if "fatal" in output or "error" in output.lower()[:200]:
            return "", shown(output)
        return output, ""


def shown(output: str) -> str:
    """The first line of what the disassembler said, without the folder it ran in."""
    first = next((line.strip() for line in output.split("\n") if line.strip()), "")
    return re.sub(r"/\S{0,400}code\.bin", "the excerpt", first)[:200]


def _limits() -> None:
    """Runs in the child before the program does."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
