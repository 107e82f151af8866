"""One model for every stack dump: frames, threads, processes, and classes of equal stacks.

Two dumps of one place in the code must compare equal whatever tool wrote them. Versions of py-spy print qualified
(`Condition.wait`) or bare (`wait`) names, faulthandler prints full paths, `--native` adds C frames and line numbers
move between releases. A signature therefore holds the bare name and the file's base name of the Python frames only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from parsers.contract import Line
from parsers.pattern import lazy
from parsers.stamp import Stamp

ADDRESS = lazy(r"0x[0-9a-fA-F]+$")
SHARED_LIBRARY = lazy(r"\.so(?:$|[.\d])|\.dylib$|^lib[\w+.-]*$")
NATIVE_SOURCE = (".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hpp", ".rs", ".pyx", ".pxd", ".S", ".inc")
QUALIFIER = lazy(r"(?:.*\.)?(?P<bare>[^.]+)$")


class Frame(NamedTuple):
    """A frame. `file` is as printed (short or full path, or a library), `line` counts from 1, None when not shown.

    `at` is the line of the dump that shows it.
    """

    function: str
    file: str = ""
    line: int | None = None
    native: bool = False
    at: Line | None = None

    @property
    def bare(self) -> str:
        """The function's own name: `Condition.wait` -> `wait`, `a.<locals>.b` -> `b`, `c10d::Work::wait` -> `wait`."""
        return bare_name(self.function)

    @property
    def base(self) -> str:
        """The file's base name."""
        return self.file.replace("\\", "/").rsplit("/", 1)[-1]


@dataclass(slots=True)
class Thread:
    """A thread. `id` is what the dump calls it, `os_tid` the kernel's number where it is known.

    `state` is `active`, `idle` or `unknown` (faulthandler and gdb do not say). `owns_gil` is None when the tool cannot
    tell: py-spy's text form prints plain `(idle)` for a thread that sleeps in a system call with the GIL held.
    `cut` = frames are missing; `open_end` = the source ends in this stack, before the function at which it began.
    """

    id: int | str
    os_tid: int | None = None
    name: str | None = None
    state: str = "unknown"
    owns_gil: bool | None = None
    frames: list[Frame] = field(default_factory=list)
    header: Line | None = None
    current: bool = False
    cut: bool = False
    open_end: bool = False


@dataclass(slots=True)
class Process:
    """A process at one moment. `tool` is `py-spy`, `py-spy top`, `faulthandler`, `vllm-watchdog` or `gdb`.
    `whole_header` = py-spy's empty line after its header was seen: it prints that line before it looks at threads."""

    tool: str
    pid: int | None = None
    command: str | None = None
    python: str | None = None
    parent: int | None = None
    dump: int | None = None
    reason: str | None = None
    stamp: Stamp | None = None
    threads: list[Thread] = field(default_factory=list)
    header: Line | None = None
    python_line: Line | None = None
    whole_header: bool = False


class DumpError(NamedTuple):
    """A dump that failed. `error` is one of stopped_process, permission, not_found, python_version, other;
    `certainty` is `shown` when the tool said so, `hint` when it is only likely."""

    error: str
    at: Line
    certainty: str = "shown"
    pid: int | None = None


def bare_name(function: str) -> str:
    """The last part of a qualified Python, C or C++ name, without template and call arguments."""
    name = function.strip()
    if "::" in name:
        # Templates hold `::` and `(` of their own; the name proper ends where the first bracket opens.
        name = name.replace("(anonymous namespace)", "anonymous")
        opened = min((at for at in (name.find("<", 1), name.find("(", 1)) if at > 0), default=len(name))
        name = name[:opened].rstrip(":").rsplit("::", 1)[-1]
        return name or function
    if "(" in name[1:] and not name.startswith("<"):
        name = name[: name.index("(", 1)]
    found = QUALIFIER.match(name)
    name = found["bare"] if found else name
    for prefix in ("__GI_", "__libc_", "__new_"):
        name = name.removeprefix(prefix)
    return name.removesuffix("_v2").removesuffix("@plt") or function


def looks_native(function: str, file: str, line: int | None) -> bool:
    """Whether a frame is compiled code: a library, a C source, or a bare address.

    A script without an extension (`vllm:10`) and `<string>` are Python.
    """
    if ADDRESS.match(function) or function == "??":
        return True
    base = file.replace("\\", "/").rsplit("/", 1)[-1]
    if base.endswith(".py") or base.startswith("<"):
        return False
    if base.endswith(NATIVE_SOURCE) or SHARED_LIBRARY.search(base):
        return True
    return line is None


def signature(frames: Sequence[Frame]) -> str:
    """A stable name of a stack: 12 hexadecimal digits over the Python frames, or over native symbols if there are
    no Python frames. Same place in the code, same signature, whatever the tool, its version or the line numbers."""
    parts = [f"{frame.bare}@{frame.base}" for frame in frames if not frame.native]
    if not parts:
        parts = [frame.bare for frame in frames if not ADDRESS.match(frame.function) and frame.function != "??"]
    from hashlib import sha256  # loads OpenSSL: only where there is a stack

    return sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()[:12]


def role(command: str | None) -> str | None:
    """The server's own name for a process, from its command line or title: `EngineCore`, `Worker_TP0`, `APIServer`."""
    if not command:
        return None
    if "::" in command.split(" ", 1)[0]:
        return command.split(" ", 1)[0].split("::", 1)[1] or None
    if re.search(r"\bvllm serve\b|vllm[./]entrypoints|sglang[./]launch_server", command):
        return "APIServer"
    return None


def groups(processes: Iterable[Process], waits: dict[int, str]) -> list[dict[str, Any]]:
    """Classes of threads with equal stacks, largest first; `waits` maps `id(thread)` to its wait."""
    classes: dict[str, dict[str, Any]] = {}
    for process in processes:
        for thread in process.threads:
            name = signature(thread.frames)
            found = classes.setdefault(
                name,
                {
                    "signature": name,
                    "wait": waits.get(id(thread), "none"),
                    "top": thread.frames[0].function if thread.frames else None,
                    "functions": [frame.bare for frame in thread.frames if not frame.native][:40],
                    "count": 0,
                    "members": [],
                },
            )
            found["count"] += 1
            member = {"pid": process.pid, "id": thread.id, "name": thread.name}
            if process.dump is not None:
                member["dump"] = process.dump
            found["members"].append(member)
    return sorted(classes.values(), key=lambda entry: -int(entry["count"]))
