"""Which bundles are meant, and what is in them: by content, so that a bundle is never analysed twice."""

from __future__ import annotations

import glob
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path


def expand(given: Iterable[str]) -> Iterator[Path]:
    """The bundles named by folders (each entry is one bundle), globs, list files (`@FILE`, one path a line) and paths.

    A folder that is named is a folder OF bundles; hidden entries are left out. Order is stable, nothing comes twice.
    """
    taken: set[str] = set()
    for path in _named(given):
        name = os.path.abspath(path)  # noqa: PTH100  (links are kept apart)
        if name not in taken:
            taken.add(name)
            yield path


def _named(given: Iterable[str]) -> Iterator[Path]:
    for one in given:
        if one.startswith("@"):
            for line in Path(one[1:]).read_text(encoding="utf-8", errors="replace").splitlines():
                if line.strip() and not line.startswith("#"):
                    yield Path(line.strip())
        elif Path(one).is_dir():
            yield from sorted(path for path in Path(one).iterdir() if not path.name.startswith("."))
        elif Path(one).exists() or not any(mark in one for mark in "*?["):
            yield Path(one)
        else:
            yield from (Path(found) for found in sorted(glob.glob(one)))  # noqa: PTH207  (absolute patterns too)


def digest(bundle: Path) -> str:
    """A name for the content of a bundle: 24 hexadecimal digits over its files' names and bytes. What cannot be read
    counts by its name; links are not followed."""
    hashed = hashlib.blake2b(digest_size=12)
    for path in _files(bundle):
        inside = path.relative_to(bundle).as_posix() if path != bundle else "."
        hashed.update(inside.encode("utf-8", "surrogateescape") + b"\0")
        try:
            if stat.S_ISREG(path.stat().st_mode):
                with path.open("rb") as file:
                    while block := file.read(1 << 20):
                        hashed.update(block)
        except OSError:
            hashed.update(b"?")
        hashed.update(b"\0")
    return hashed.hexdigest()


def _files(bundle: Path) -> Iterator[Path]:
    if not bundle.is_dir():
        yield bundle
        return
    for folder, subfolders, names in os.walk(bundle):
        subfolders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            if not path.is_symlink():
                yield path
