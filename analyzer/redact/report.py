"""A report without secrets: every string of it that came from the input, with one set of placeholders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analyzer.redact.redactor import Redactor
from analyzer.report import Report

OURS = frozenset(
    [
        "schema_version",
        "tool",
        "verdict",
        "rule",
        "cause",
        "family",
        "title",
        "about",
        "impact",
        "confidence",
        "ruled_out",
        "clause",
        "strength",
        "how_to_get",
        "would",
        "rivals",
        "remedies",
        "sources",
        "collect",
        "command",
        "separates",
        "risk",
        "symptom",
        "explained_by",
        "level",
        "tag",
        "kind",
        "parser",
    ]
)
"""Fields that this tool and its rules wrote, never the input."""


def redact_report(report: Report, redactor: Redactor | None = None) -> Report:
    """The report with placeholders; scores, order, times and places are as they were. `redactor` shares placeholders
    with a bundle's."""
    redactor = redactor if redactor is not None else Redactor()
    document = report.model_dump(mode="json")
    redactor.learn(line for text in _strings(document) for line in text.split("\n"))
    return Report.model_validate(_walk(document, "", redactor))


def _strings(value: Any, key: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, one in value.items():
            if name not in OURS:
                yield from _strings(one, name)
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one, key)
    elif isinstance(value, str):
        yield value


def _walk(value: Any, key: str, redactor: Redactor) -> Any:
    if isinstance(value, dict):
        if key == "environment":
            return {name: _setting(name, one, redactor) for name, one in value.items()}
        return {name: one if name in OURS else _walk(one, name, redactor) for name, one in value.items()}
    if isinstance(value, list):
        return [_walk(one, key, redactor) for one in value]
    return redactor.text(value, key) if isinstance(value, str) else value


def _setting(name: str, fact: dict[str, Any], redactor: Redactor) -> dict[str, Any]:
    """A fact: whether its value is a secret may show in its name only (`env.HF_TOKEN`)."""
    head = f"{name.removeprefix('env.')}="

    def value(text: str) -> str:
        return redactor.text(head + text, "environment").removeprefix(head)

    return {
        **_walk(fact, "fact", redactor),
        "value": value(fact["value"]),
        "conflicts": [value(one) for one in fact["conflicts"]],
    }
