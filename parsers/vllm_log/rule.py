"""A line template: what a message looks like and which event it is.

The tables (`phases`, `kernels`, `signs`, `facts`) are lists of templates. Every template names the fixed texts (marks)
one of which its line must hold; the reader that skips the healthy middle of a huge log asks for exactly those, so a
template can never depend on a line that is not passed on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from parsers.pattern import lazy

_WHOLE = frozenset({"pid", "rank", "exit_code", "status", "done", "total", "tokens", "warps"})
_REAL = frozenset({"seconds", "gib", "prompt_tps", "generation_tps", "running", "waiting", "kv_usage"})
_GROUP = lazy(r"\A\(\?P<\w+>")
_FIRST_WORD = lazy(r"[A-Za-z][\w'/&\-]*(?= )")


@dataclass(slots=True, frozen=True)
class Template:
    """One line template.

    `pattern` is matched at the start of the message; its named groups become fields (numbers where the field is a
    number), `fields` are constants beside them. `facts` maps a fact's name to a group, or to a constant written
    `=value`. A template of kind "" yields facts only.
    """

    kind: str
    pattern: re.Pattern[str]
    marks: tuple[str, ...]
    fields: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)

    def read(self, found: re.Match[str]) -> dict[str, Any]:
        """The event's fields."""
        values: dict[str, Any] = dict(self.fields)
        for name, text in found.groupdict().items():
            if text is not None and not name.startswith("_"):
                values[name] = _value(name, text)
        return values

    def stated(self, found: re.Match[str]) -> list[tuple[str, str]]:
        """The facts that the line states: (name, value as printed)."""
        said = []
        for name, group in self.facts.items():
            value = group[1:] if group.startswith("=") else found[group]
            if value:
                said.append((name, value.strip().strip("'\"")))
        return said


def template(
    kind: str, pattern: str, *marks: str, facts: Mapping[str, str] | None = None, **fields: Any
) -> Template:
    """A template; without `marks` the pattern's own literal head is the mark."""
    return Template(kind, lazy(pattern), marks or (_literal_head(pattern),), fields, facts or {})


def _literal_head(pattern: str) -> str:
    pattern = _GROUP.sub("", pattern)
    head = re.match(r"[^\\.()\[\]{}*+?^$|]*", pattern)
    text = head[0] if head else ""
    if head and head.end() < len(pattern) and pattern[head.end()] in "*+?{":
        text = text[:-1]
    if len(text) < 6:
        raise ValueError(f"no literal head to mark lines by in {pattern!r}")
    return text


def _value(name: str, text: str) -> Any:
    try:
        if name in _WHOLE:
            return int(text.replace(",", ""))
        if name in _REAL:
            return float(text.replace(",", ""))
    except ValueError:
        return text
    return text


class Templates:
    """Many templates, searched by the first word of the message where the pattern begins with one."""

    def __init__(self, templates: Iterable[Template]) -> None:
        self._by_word: dict[str, list[tuple[str, Template]]] = {}
        self._anywhere: list[tuple[str, Template]] = []
        marks: dict[str, None] = {}
        for row in templates:
            marks.update(dict.fromkeys(row.marks))
            word = _FIRST_WORD.match(_GROUP.sub("", row.pattern.pattern))
            rows = self._by_word.setdefault(word[0], []) if word else self._anywhere
            rows += [(mark, row) for mark in row.marks]
        self.marks = tuple(marks)

    def match(self, message: str) -> list[tuple[Template, re.Match[str]]]:
        """Every template that fits `message`."""
        hits: list[tuple[Template, re.Match[str]]] = []
        word = message[: message.find(" ")] if " " in message else message
        for rows in (self._by_word.get(word, ()), self._anywhere):
            for mark, row in rows:
                if mark in message and (not hits or hits[-1][0] is not row) and (found := row.pattern.match(message)):
                    hits.append((row, found))
        return hits
