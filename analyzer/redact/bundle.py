"""A whole bundle: folder, archive or files in; a folder (or .tar.gz) of texts and a list of replacements out."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from analyzer.intake.budget import Budget
from analyzer.intake.recognise import binary_parser
from analyzer.intake.sources import HEAD, Peek, Source, walk
from analyzer.intake.text import blocks, decode, encoding_of
from analyzer.redact.redactor import Redactor
from parsers.contract import Trouble

LEDGER = "redactions.json"
PROMISE = (
    "Best effort: known shapes of secrets, users' text and names were replaced. Look through it before you share it; "
    "docs/safety.md says what this cannot find."
)


@dataclass(slots=True)
class Redaction:
    """What was done. `written` = files in the output, `left_out` = sources that cannot be redacted, with the reason."""

    written: list[str] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    replaced: int = 0
    troubles: list[Trouble] = field(default_factory=list)


class RedactionError(ValueError):
    """The output cannot be written where it was asked for. The message says what to do."""


def redact_bundle(paths: Sequence[str | Path], out: str | Path, budget: Budget | None = None) -> Redaction:
    """Write a redacted copy of `paths` (folders, archives, files) to `out`, with `redactions.json` in it.

    `out` becomes a folder, or one archive when its name ends in `.tar.gz` or `.tgz`. It appears as a whole or not at
    all; an existing folder that is not empty and a place inside the input are refused (`RedactionError`). Inputs are
    read twice, names first, and never changed. Binary artifacts (core dumps, pickles, images) are left out and named.
    """
    given = [str(path) for path in paths]
    target = Path(out)
    _check(given, target)
    budget = budget if budget is not None else Budget()
    redactor = Redactor()
    for source in walk(given, budget, []):
        if _left_out(source) is None:
            redactor.learn(_lines(source, budget, []))
        redactor.learn([source.name])
    budget.spent = 0
    done = Redaction()
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent if str(target.parent) else "."))
    try:
        _write_texts(given, staging, redactor, budget, done)
        ledger = {
            "tool": "stuckwarp redact",
            "promise": PROMISE,
            "files": done.written,
            "left_out": [{"artifact": name, "why": why} for name, why in done.left_out],
            "troubles": [{"artifact": t.source, "tag": t.tag, "text": t.text} for t in done.troubles],
            "replaced": redactor.vault.ledger(),
        }
        (staging / LEDGER).write_text(
            redactor.text(json.dumps(ledger, indent=1, ensure_ascii=False)) + "\n", encoding="utf-8"
        )
        done.replaced = sum(entry.count for entry in redactor.vault.entries.values())
        _put_in_place(staging, target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return done


def _check(given: list[str], target: Path) -> None:
    if "-" in given:
        raise RedactionError("standard input cannot be read twice. Write it to a file first and give that.")
    if not target.parent.is_dir():
        raise RedactionError(f"there is no folder {target.parent}. Make it first, or choose another output.")
    archive = target.name.endswith((".tar.gz", ".tgz"))
    if target.exists() and (archive or not target.is_dir() or any(target.iterdir())):
        raise RedactionError(f"{target} is there already. Choose another output: nothing is overwritten.")
    for one in given:
        path = Path(one).resolve()
        if path.is_dir() and target.resolve().is_relative_to(path):
            raise RedactionError(f"{target} lies inside the input {one}. Choose a place outside it.")


def _left_out(source: Source) -> str | None:
    """Why a source cannot be redacted, or None for a text."""
    peek = Peek(source.stream)
    source.stream = peek
    head = peek.peek(HEAD)
    parser = binary_parser(head[:4096])
    if parser is not None:
        return f"binary artifact ({parser.kind}): memory and names in it cannot be redacted"
    if encoding_of(head) is None:
        sample = head[:4096].replace(b"\0", b"")
        if sum(1 for byte in sample if byte < 9 or 13 < byte < 27 or byte in (28, 29, 30, 31)) > 0.1 * max(
            len(sample), 1
        ):
            return "binary content: it cannot be redacted"
    return None


def _lines(source: Source, budget: Budget, troubles: list[Trouble]) -> Iterator[str]:
    """The source's lines without line ends; the last is empty when the text ends in a newline."""
    peek = Peek(source.stream)
    source.stream = peek
    for block in blocks(source.name, peek, peek.peek(HEAD), budget, troubles):
        pieces = block.data.split(b"\n")
        if not block.last:
            pieces.pop()
        yield from map(decode, pieces)


def _write_texts(given: list[str], staging: Path, redactor: Redactor, budget: Budget, done: Redaction) -> None:
    taken: set[str] = {LEDGER}
    for source in walk(given, budget, done.troubles):
        shown = (
            "/".join(_component(part, redactor) for part in source.name.split("/") if part not in ("", ".", ".."))
            or "text"
        )
        why = _left_out(source)
        if why is not None:
            done.left_out.append((shown, why))
            continue
        name, number = shown, 1
        while any(name == one or one.startswith(f"{name}/") or name.startswith(f"{one}/") for one in taken):
            number += 1
            name = f"{shown}.{number}"
        taken.add(name)
        file = staging / name
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with file.open("x", encoding="utf-8", errors="backslashreplace", newline="\n") as out:
            _write(out, redactor.lines(_lines(source, budget, done.troubles), shown))
        done.troubles += source.truncated
        done.written.append(name)


def _write(out: io.TextIOBase | io.TextIOWrapper, lines: Iterable[str]) -> None:
    first = True
    for line in lines:
        out.write(line if first else f"\n{line}")
        first = False


def _component(part: str, redactor: Redactor) -> str:
    """One part of a path: redacted, and safe as a file name on any system."""
    text = redactor.text(f"/{part}/", "names")[1:-1]
    for kind, names in (("host", redactor.names.hosts), ("user", redactor.names.users)):
        if part in names:
            text = redactor.vault.placeholder(kind, part)
    return re.sub(r"[^\w.+=@,#-]", "_", text.replace("<", "").replace(">", ""))[:120].lstrip(".") or "_"


def _put_in_place(staging: Path, target: Path) -> None:
    if not target.name.endswith((".tar.gz", ".tgz")):
        if target.is_dir():
            target.rmdir()
        staging.rename(target)
        return
    partial = staging.with_name(staging.name + ".tgz")
    top = target.name.removesuffix(".tar.gz").removesuffix(".tgz")
    try:
        with tarfile.open(partial, "w:gz") as tar:
            for path in sorted(staging.rglob("*")):
                info = tar.gettarinfo(path, f"{top}/{path.relative_to(staging)}")
                info.uid = info.gid = 0
                info.uname = info.gname = ""
                info.mtime = 0
                if path.is_file():
                    with path.open("rb") as file:
                        tar.addfile(info, file)
        partial.chmod(0o600)
        os.link(partial, target)  # fails when the target appeared meanwhile
    finally:
        partial.unlink(missing_ok=True)
