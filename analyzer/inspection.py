"""One artifact as its parser sees it: the `inspect` view of docs/report-format.md."""

from __future__ import annotations

from typing import Any

from analyzer.intake.budget import Budget
from analyzer.intake.read import lines_of
from analyzer.intake.recognise import binary_parser, parts, text_parser
from analyzer.intake.sources import HEAD, Peek, Source, walk
from analyzer.intake.text import blocks, decode, without_ansi
from analyzer.intake.transport import transports_of, unwrap
from analyzer.report import SCHEMA_VERSION
from parsers.contract import Line, Trouble


def inspect(path: str, budget: Budget | None = None) -> list[dict[str, Any]]:
    """A view for every artifact in `path` that a parser knows (one, unless the file is an archive or a mixed text)."""
    budget = budget if budget is not None else Budget()
    troubles: list[Trouble] = []
    views: list[dict[str, Any]] = []
    for source in walk([path], budget, troubles):
        views += _views(source, budget, troubles)
    return views


def _views(source: Source, budget: Budget, troubles: list[Trouble]) -> list[dict[str, Any]]:
    peek = Peek(source.stream)
    source.stream = peek
    head = peek.peek(HEAD)
    binary = binary_parser(head[:4096])
    if binary is not None:
        file = source.spool(budget)
        view = binary.inspect_binary(file, source.name)
        file.seek(0, 2)
        return [_envelope(source, binary.name, binary.kind, file.tell(), view, [*source.truncated, *troubles])]
    sample = decode(without_ansi(head))
    stack = transports_of(sample)
    payload = "\n".join(unwrap(stack, line).text for line in sample.split("\n")) if stack else sample
    whole = text_parser(payload)
    lines: list[Line] = []
    size = 0
    for block in blocks(source.name, peek, head, budget, troubles):
        lines += lines_of(block, stack, budget)
        size = block.offset + len(block.data)
    found = []
    for parser, mine in parts(lines, whole):
        if parser is not None:
            view = parser.inspect(iter(mine), source.name)
            found.append(_envelope(source, parser.name, parser.kind, size, view, [*source.truncated, *troubles]))
    # The part that the text as a whole was recognised as comes first.
    return sorted(found, key=lambda view: whole is None or view["artifact"]["parser"] != whole.name)


def _envelope(source: Source, parser: str, kind: str, size: int, view: dict[str, Any], troubles: list[Trouble]) -> dict[str, Any]:
    complete = bool(view.pop("complete", True)) and not any(t.tag in ("truncated", "corrupt", "limit") for t in troubles)
    notes = [*view.pop("notes", []), *({"tag": t.tag, "text": t.text} for t in troubles)]
    return {"schema_version": SCHEMA_VERSION,
            "artifact": {"path": source.name, "kind": kind, "parser": parser, "bytes": size, "complete": complete, "notes": notes},
            kind: view}
