"""Walk what the user gave: folders, files, archives in archives, standard input. Nothing is ever written to disk except
one private unnamed spool file for a member that must be read out of order (zip, GPU core dumps)."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

from analyzer.intake.budget import MIB, Budget
from parsers.contract import Trouble

HEAD = 64 * 1024
PSEUDO = 1 << 30
"""Bytes that are read of a file that says it has none."""
LEDGER_HEAD = b'{\n "tool": "stuckwarp redact"'
"""How `redactions.json` begins: it came out of this tool, so it says nothing about the server."""


class Readable(Protocol):
    """The only thing that is asked of a stream."""

    def read(self, size: int = -1, /) -> bytes: ...


@dataclass(slots=True)
class Source:
    """One artifact, to be read once, front to back, before the next is asked for.

    `name` is its path inside the bundle (`logs.tar.gz/pod-1/server.log`), `size` in bytes where it is known
    beforehand, `seekable` an open file where it can be read in place.
    """

    name: str
    stream: Readable
    size: int | None = None
    seekable: BinaryIO | None = None
    container: str = ""
    truncated: list[Trouble] = field(default_factory=list)

    def spool(self, budget: Budget) -> BinaryIO:
        """A seekable file with the source's content: the file itself, or an unnamed private copy of at most
        `budget.spool` bytes (then a `limit` trouble is added)."""
        if self.seekable is not None:
            self.seekable.seek(0)
            return self.seekable
        import tempfile  # loads much, and few sources have to be copied

        copy = tempfile.SpooledTemporaryFile(max_size=16 * MIB)  # noqa: SIM115  (closed by the garbage collector)
        left = budget.spool
        while left > 0 and (block := self.stream.read(min(MIB, left))):
            copy.write(block)
            left -= len(block)
        if left <= 0 and self.stream.read(1):
            text = f"only the first {budget.spool} bytes were read (--limit spool)"
            self.truncated.append(Trouble(self.name, "limit", text))
        copy.seek(0)
        return copy  # type: ignore[return-value]  # SpooledTemporaryFile is a BinaryIO in all but name


class Peek:
    """A stream whose first bytes can be looked at before they are read."""

    __slots__ = ("_head", "_rest")

    def __init__(self, rest: Readable) -> None:
        self._rest = rest
        self._head = b""

    def peek(self, size: int) -> bytes:
        """Up to `size` first bytes, without taking them."""
        while len(self._head) < size and (block := self._rest.read(size - len(self._head))):
            self._head += block
        return self._head[:size]

    def read(self, size: int = -1, /) -> bytes:
        """Like a file's `read`; never more than one underlying read after the peeked bytes."""
        if self._head:
            if size < 0:
                taken, self._head = self._head, b""
                return taken + self._rest.read(-1)
            taken, self._head = self._head[:size], self._head[size:]
            return taken
        return self._rest.read(size)


def printable(name: str) -> str:
    """A member name fit to be shown and compared: no control characters, forward slashes, no leading root."""
    shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in name.replace("\\", "/"))
    return shown.lstrip("/") or "?"


def walk(paths: list[str], budget: Budget, troubles: list[Trouble]) -> Iterator[Source]:
    """Every source under `paths` (`-` = standard input), archives unfolded, in a stable order."""
    from analyzer.intake.archive import unfold

    taken: dict[str, int] = {}
    read: set[tuple[int, int]] = set()

    def unique(source: Source) -> Source:
        taken[source.name] = taken.get(source.name, 0) + 1
        if taken[source.name] > 1:
            source.name = f"{source.name}#{taken[source.name]}"
        return source

    for path, name, opener in _files(paths, troubles):
        try:
            with opener() as file:
                status = os.fstat(file.fileno())
                if stat.S_ISREG(status.st_mode):
                    if (status.st_dev, status.st_ino) in read:
                        troubles.append(Trouble(name, "skipped", "the same file was read before: it counts once"))
                        continue
                    read.add((status.st_dev, status.st_ino))
                seekable = file if path is not None and file.seekable() else None
                size = os.fstat(file.fileno()).st_size if seekable is not None else None
                stream: Readable = _Bounded(name, file, size, troubles)
                for source in unfold(Source(name, stream, size, seekable), budget, troubles):
                    source.stream = peek = Peek(source.stream)
                    if peek.peek(len(LEDGER_HEAD)) == LEDGER_HEAD:
                        troubles.append(
                            Trouble(
                                source.name, "skipped", "the list of replacements of `stuckwarp redact`: not evidence"
                            )
                        )
                        continue
                    yield unique(source)
        except OSError as problem:
            troubles.append(Trouble(name, "unreadable", f"{problem.strerror or problem}"))


class _Bounded:
    """A file that may grow while it is read (its size is fixed at open) or fail: what came before is kept."""

    __slots__ = ("_file", "_left", "_name", "_troubles")

    def __init__(self, name: str, file: BinaryIO, size: int | None, troubles: list[Trouble]) -> None:
        self._name, self._file, self._troubles = name, file, troubles
        # Files of /proc say that they are empty and are not.
        self._left = size if size else PSEUDO if size == 0 else 1 << 62

    def read(self, size: int = -1, /) -> bytes:
        size = self._left if size < 0 else min(size, self._left)
        if size == 0:
            return b""
        try:
            block = self._file.read(size)
        except OSError as problem:
            self._troubles.append(Trouble(self._name, "unreadable", f"reading stopped: {problem.strerror or problem}"))
            block = b""
        self._left = self._left - len(block) if block else 0
        return block


Opener = Callable[[], BinaryIO]


def _files(paths: list[str], troubles: list[Trouble]) -> Iterator[tuple[Path | None, str, Opener]]:
    for given in paths:
        if given == "-":
            yield None, "standard input", lambda: io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False))
            continue
        path = Path(given)
        if path.is_dir():
            # Of several folders each keeps its name, so that their files are told apart.
            prefix = f"{path.resolve().name}/" if len(paths) > 1 else ""
            for found, shown, opener in _folder(path, troubles):
                yield found, prefix + shown, opener
        else:
            # Opened even when it is no regular file: `analyze <(zcat …)` is a pipe that the user named himself.
            yield path, path.name, lambda path=path: path.open("rb")  # type: ignore[misc]


def _folder(top: Path, troubles: list[Trouble]) -> Iterator[tuple[Path, str, Opener]]:
    root = top.resolve()
    for folder, subfolders, names in os.walk(
        top, onerror=lambda e: troubles.append(Trouble(str(e.filename), "unreadable", str(e.strerror)))
    ):
        subfolders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            shown = printable(str(path.relative_to(top)))
            try:
                if path.is_symlink() and not path.resolve(strict=True).is_relative_to(root):
                    troubles.append(Trouble(shown, "skipped", "a link that leaves the folder is not followed"))
                    continue
                mode = path.stat().st_mode
            except (OSError, RuntimeError) as problem:
                troubles.append(Trouble(shown, "unreadable", f"{problem}"))
                continue
            if not stat.S_ISREG(mode):
                troubles.append(Trouble(shown, "skipped", "not a regular file (pipe, socket or device)"))
                continue
            yield path, shown, lambda path=path: path.open("rb")  # type: ignore[misc]
