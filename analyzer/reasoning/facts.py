"""What this machine and software are: every value that was read, with its place; conflicts are kept."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from analyzer.reasoning.rule import Condition, Scalar
from parsers.event import Event
from parsers.pattern import words_of

# Compute capability by product name (NVIDIA's CUDA GPU list); the first that fits wins.
SM_OF_GPU: tuple[tuple[str, str], ...] = (
    (r"G?B300", "10.3"), (r"GB10|DGX Spark", "12.1"), (r"G?B200|B100", "10.0"), (r"Thor", "11.0"),
    (r"GH200|H200|H100|H800|H20", "9.0"), (r"RTX PRO|RTX 50[5-9]0", "12.0"),
    (r"RTX \d000 Ada|\w+ Ada Generation|L40S?|L20|L4|RTX 40[5-9]0", "8.9"), (r"A100|A800|A30", "8.0"),
    (r"RTX 30[5-9]0|RTX A\d000|A10G?|A40|A16|A2", "8.6"), (r"T4|RTX 20[5-8]0|Quadro RTX|TITAN RTX|GTX 16[56]0", "7.5"),
    (r"V100|TITAN V", "7.0"), (r"P100", "6.0"), (r"P40|P4|GTX 10[5-8]0", "6.1"),
)


def sm_of(gpu_name: str) -> str | None:
    """The compute capability of a product name such as `NVIDIA H200`, or None when it is not known."""
    for names, sm in SM_OF_GPU:
        if re.search(rf"(?<![A-Za-z0-9])(?:{names})(?![A-Za-z0-9])", gpu_name):
            return sm
    return None


@dataclass(slots=True)
class Fact:
    """One value of one fact and the events that stated it."""

    value: str
    events: list[Event] = field(default_factory=list)


@dataclass(slots=True)
class Facts:
    """name -> values in the order in which they were first read."""

    values: dict[str, list[Fact]] = field(default_factory=dict)

    def add(self, event: Event, name: str | None = None, value: str | None = None) -> None:
        """Take in a `fact` event (or a derived name and value that rest on it)."""
        name = name or str(event.fields.get("name", ""))
        value = (value if value is not None else str(event.fields.get("value", ""))).strip()
        if not name or not value or value.lower() in ("could not collect", "n/a", "none", "unknown", "null"):
            return
        mine = self.values.setdefault(name, [])
        for one in mine:
            if one.value == value:
                if len(one.events) < 4:
                    one.events.append(event)
                break
        else:
            if len(mine) < 64:
                mine.append(Fact(value, [event]))
        if name == "gpu.name" and (sm := sm_of(value)):
            self.add(event, "gpu.sm", sm)

    def get(self, name: str) -> list[Fact]:
        """All values of `name`, [] when it was never read."""
        return self.values.get(name, [])


def collect(events: Iterable[Event]) -> Facts:
    """The facts of all events."""
    facts = Facts()
    for event in events:
        if event.kind == "fact":
            facts.add(event)
    return facts


_RANGE = re.compile(r"^\s*(?:<=|>=|==|!=|<|>)")


_words = lru_cache(maxsize=4096)(words_of)


def holds(condition: Condition, value: object) -> bool:
    """Whether a value meets a condition of a rule: equal, `~regex`, one of a list, a range of versions or numbers."""
    if isinstance(condition, list):
        return any(holds(one, value) for one in condition)
    if value is None:
        return False
    if isinstance(value, list | tuple):
        return any(holds(condition, one) for one in value)
    if isinstance(condition, bool) or isinstance(value, bool):
        return str(condition).lower() == str(value).lower()
    if isinstance(condition, int | float):
        number = _number(value)
        return number is not None and number == float(condition)
    if condition.startswith("~"):
        from analyzer.intake.patterns import compiled

        text, words = str(value), _words(condition[1:])
        if words and not any(word in text for word in words):
            return False  # most values: compiling the expression is the dear part
        try:
            return compiled(condition[1:]).search(text, timeout=0.2) is not None
        except TimeoutError:
            return False
    if _RANGE.match(condition):
        return _in_range(condition, value)
    return condition == str(value)


def _number(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None


def _in_range(condition: str, value: object) -> bool:
    number = _number(value)
    bounds = [one.strip() for one in condition.split(",") if one.strip()]
    if isinstance(value, int | float) and number is not None:
        for bound in bounds:
            sign = _RANGE.match(bound)
            limit = _number(bound[sign.end():]) if sign else None
            if sign is None or limit is None:
                return False
            test = {"<": number < limit, ">": number > limit, "<=": number <= limit, ">=": number >= limit,
                    "==": number == limit, "!=": number != limit}
            if not test[sign[0].strip()]:
                return False
        return True
    found = re.search(r"\d+(?:\.\d+)*(?:[.-]?(?:rc|a|b|post|dev)\d*)*(?:\+[\w.]+)?", str(value))
    if not found:
        return False
    plain = _plain(found[0], bounds)
    if plain is not None:
        return plain
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version

    try:
        return SpecifierSet(condition).contains(Version(found[0]), prereleases=True)
    except (InvalidVersion, InvalidSpecifier):
        return False


_RELEASE = re.compile(r"\d{1,9}(?:\.\d{1,9}){0,9}")
_SIGNS = {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge, "==": operator.eq,
          "!=": operator.ne}  # fmt: skip


def _plain(version: str, bounds: list[str]) -> bool | None:
    """Whether a release of numbers alone lies within bounds of numbers alone (as PEP 440 orders them); None where one
    is not so plain. Loading `packaging` costs more than most other parts of a short run."""
    if not _RELEASE.fullmatch(version):
        return None
    for bound in bounds:
        sign = _RANGE.match(bound)
        limit = bound[sign.end() :].strip() if sign else ""
        if sign is None or not _RELEASE.fullmatch(limit):
            return None
        one, two = (list(map(int, text.split("."))) for text in (version, limit))
        longer = max(len(one), len(two))
        padded = (numbers + [0] * (longer - len(numbers)) for numbers in (one, two))
        if not _SIGNS[sign[0].strip()](*padded):
            return False
    return True


class Gate(NamedTuple):
    """How an environment gate stands: True satisfied by at least one value, False violated by all, None not known."""

    name: str
    holds: bool | None
    condition: Condition
    fact: Fact | None = None


def gate(facts: Facts, name: str, condition: Condition) -> Gate:
    """Check one `applies` entry."""
    known = facts.get(name)
    if not known:
        return Gate(name, None, condition)
    good = [one for one in known if holds(condition, one.value)]
    if not good and isinstance(condition, str) and _RANGE.match(condition):
        known = [one for one in known if re.search(r"\d", one.value)]
        if not known:
            return Gate(name, None, condition)  # `main` or `nightly` is no version that could violate a range
    if good:
        # Several values (two GPUs, or two files that disagree): one that fits keeps the rule in play.
        return Gate(name, True, condition, good[0])
    return Gate(name, False, condition, known[0])


def spelled(condition: Condition) -> str:
    """A condition in words for a report."""
    if isinstance(condition, list):
        return " or ".join(_scalar(one) for one in condition)
    return _scalar(condition)


def _scalar(condition: Scalar) -> str:
    return f"like /{condition[1:]}/" if isinstance(condition, str) and condition.startswith("~") else str(condition)
