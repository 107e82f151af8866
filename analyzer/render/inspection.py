"""The `inspect` view for people: one screen of what an artifact holds. Core dumps and stacks have their own screens."""

from __future__ import annotations

from typing import Any

from analyzer.render.core_inspection import core_text
from analyzer.render.sanitise import shorten, terminal
from analyzer.render.stack_inspection import stacks_text

ROWS = 12


def inspection_text(view: dict[str, Any]) -> str:
    """A view of `analyzer.inspection.inspect` as text; input text is made safe."""
    artifact = view["artifact"]
    state = "read to its end" if artifact["complete"] else "NOT complete"
    what = f"{artifact['kind']} ({artifact['parser']}), {artifact['bytes']:,} bytes, {state}"
    lines = [f"{terminal(artifact['path'])}   {what}"]
    lines += [f"  note     {terminal(note['tag'])}: {terminal(note['text'])}" for note in artifact["notes"]]
    body = view[artifact["kind"]]
    if artifact["kind"] == "cuda_core":
        lines += core_text(body)
    elif artifact["kind"] == "stacks":
        lines += stacks_text(body)
    else:
        lines += _tree(body, 1)
    return "\n".join(lines)


def _one(value: object) -> str:
    return shorten(terminal(str(value)), 140)


def _flat(row: dict[str, Any], between: str, apart: str) -> str:
    return apart.join(f"{terminal(str(key))}{between}{_one(value)}" for key, value in row.items())


def _tree(value: Any, depth: int) -> list[str]:
    pad = "  " * depth
    lines: list[str] = []
    for key, inner in value.items():
        label = terminal(str(key))
        if isinstance(inner, dict) and inner:
            if all(not isinstance(v, dict | list) for v in inner.values()):
                lines.append(f"{pad}{label}: " + shorten(_flat(dict(list(inner.items())[:40]), " ", ", "), 400))
            else:
                lines.append(f"{pad}{label}:")
                lines += _tree(dict(list(inner.items())[:ROWS]), depth + 1)
        elif isinstance(inner, list) and inner:
            lines.append(f"{pad}{label}: {len(inner)}")
            for row in inner[:ROWS]:
                if isinstance(row, dict):
                    flat = {k: v for k, v in row.items() if not isinstance(v, dict | list)}
                    lines.append(f"{pad}  - " + shorten(_flat(flat, "=", "  "), 400))
                    nested = {k: v for k, v in row.items() if isinstance(v, dict | list) and v}
                    if nested and depth < 4:
                        lines += _tree(nested, depth + 2)
                else:
                    lines.append(f"{pad}  - {_one(row)}")
            if len(inner) > ROWS:
                lines.append(f"{pad}  … {len(inner) - ROWS} more")
        elif inner not in ({}, [], None, ""):
            lines.append(f"{pad}{label}: {_one(inner)}")
    return lines
