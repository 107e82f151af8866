"""One artifact as its parser sees it: the `inspect` view of docs/report-format.md."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, BinaryIO

from analyzer.intake.budget import Budget
from analyzer.intake.lines import physical
from analyzer.intake.recognise import arrange, binary_parser
from analyzer.intake.sections import Section, cut, layout_of
from analyzer.intake.sources import HEAD, Peek, Source, walk
from analyzer.intake.text import blocks
from analyzer.report import SCHEMA_VERSION
from parsers.contract import Line, Trouble

Addition = Callable[[str, BinaryIO], dict[str, Any]]
"""(kind, the artifact's file) -> further keys of its view."""


def inspect(path: str, budget: Budget | None = None, addition: Addition | None = None) -> list[dict[str, Any]]:
    """A view for every artifact in `path` that a parser knows (one, unless the file is an archive or a mixed text).

    `addition` is asked for more of each binary artifact (`inspect --sass`).
    """
    budget = budget if budget is not None else Budget()
    troubles: list[Trouble] = []
    views: list[dict[str, Any]] = []
    for source in walk([path], budget, troubles):
        views += _views(source, budget, troubles, addition)
    return views


def _views(
    source: Source, budget: Budget, troubles: list[Trouble], addition: Addition | None
) -> list[dict[str, Any]]:
    peek = Peek(source.stream)
    source.stream = peek
    head = peek.peek(HEAD)
    binary = binary_parser(head[:4096])
    if binary is not None:
        file = source.spool(budget)
        view = binary.inspect_binary(file, source.name)
        if addition is not None:
            view |= addition(binary.kind, file)
        file.seek(0, 2)
        return [_envelope(source.name, binary.name, binary.kind, file.tell(), view, [*source.truncated, *troubles])]
    stream = blocks(source.name, peek, head, budget, troubles)
    first = next(stream)
    layout = layout_of(first.data)
    everything = chain([first], stream)
    sections = cut(layout, everything) if layout is not None else iter([Section(None, everything)])
    found: list[tuple[int, dict[str, Any]]] = []
    for section in sections:
        lines: list[Line] = []
        size = 0
        for block in section.blocks:
            lines += physical(block, budget)
            size += len(block.data)
        for part in arrange(f"{source.name}/{section.name}" if section.name else source.name, lines, budget):
            if part.parser is not None:
                view = part.parser.inspect(iter(part.lines), part.path)
                found.append((len(part.lines), _envelope(part.path, part.parser.name, part.parser.kind, size, view,
                                                         [*source.truncated, *troubles])))
    # The part with the most lines comes first.
    return [view for _, view in sorted(found, key=lambda one: -one[0])]


def _envelope(path: str, parser: str, kind: str, size: int, view: dict[str, Any],
              troubles: list[Trouble]) -> dict[str, Any]:
    cut_short = any(t.tag in ("truncated", "corrupt", "limit") for t in troubles)
    complete = bool(view.pop("complete", True)) and not cut_short
    notes = [*view.pop("notes", []), *({"tag": t.tag, "text": t.text} for t in troubles)]
    return {"schema_version": SCHEMA_VERSION,
            "artifact": {"path": path, "kind": kind, "parser": parser, "bytes": size, "complete": complete,
                         "notes": notes},
            kind: view}
