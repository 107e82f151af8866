"""Search the rules by symptom, code, GPU, version or free text: offline, instant, forgiving of slips of the pen."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from analyzer.reasoning.rule import Rule
    from analyzer.reasoning.rulebook import Rulebook

INDEX = "search.json"
"""The entries of the shipped rules, made when the wheel is built: a look-up then needs neither rules nor pydantic."""

# What people say for what rules say.
SAME = {
    "hang": ("hangs", "hung", "stuck", "freeze", "frozen", "wedge", "deadlock", "stall"),
    "crash": ("dies", "died", "killed", "abort"),
    "oom": ("memory", "outofmemory"),
    "mismatch": ("version",),
    "nvlink": ("fabric", "nvswitch"),
    "rank": ("tp", "worker"),
}


@dataclass(slots=True, frozen=True)
class Entry:
    """What a look-up needs of a rule. `fields` are (weight, name, words, text in lower case)."""

    id: str
    cause: str
    phase: str
    impact: str
    title: str
    remedy: str
    fields: tuple[tuple[float, str, frozenset[str], str], ...]


@dataclass(slots=True, frozen=True)
class Found:
    """A rule that fits a query, with the words that fitted and a score."""

    rule: Entry
    score: float
    why: str


def words_of(text: str) -> list[str]:
    """Lower-case words and numbers; `Xid 154` also as one word, so that a code is never confused with a line number."""
    low = text.lower()
    words = re.findall(r"[a-z0-9_]+(?:\.[0-9]+)*", low)
    return [*words, *(f"xid{n}" for n in re.findall(r"\b(?:s?xid|error)\D{0,12}?(\d{1,5})\b", low))]


def _close(one: str, two: str) -> bool:
    """Whether two words differ by one slip (insertion, deletion, exchange) or one begins with the other."""
    if one == two:
        return True
    if one.isdigit() or two.isdigit() or min(len(one), len(two)) < 4:
        return False
    if one.startswith(two) or two.startswith(one):
        return abs(len(one) - len(two)) <= 4
    if abs(len(one) - len(two)) > 1:
        return False
    if len(one) == len(two):
        different = [i for i in range(len(one)) if one[i] != two[i]]
        return len(different) == 1 or (
            len(different) == 2 and one[different[0]] == two[different[1]] and one[different[1]] == two[different[0]]
        )
    short, long = sorted((one, two), key=len)
    return any(long[:i] + long[i + 1 :] == short for i in range(len(long)))


def _texts(rule: Rule, rulebook: Rulebook) -> list[tuple[float, str, str]]:
    clauses = rule.for_
    codes = [str(v) for c in clauses if c.event == "kernel_log.xid" for v in _as_list(c.where.get("code"))]
    gates = " ".join(f"{name} {value}" for name, value in rule.applies.items())
    return [
        (4.0, "name", f"{rule.id} {rule.cause}"),
        (3.0, "title", rule.title),
        (2.0, "cause", rulebook.cause(rule.cause).title),
        (1.5, "about", rule.about),
        (2.0, "evidence", " ".join(c.says for c in clauses)),
        (2.5, "sample", " ".join(sample for c in clauses for sample in c.samples)),
        (2.0, "codes", " ".join(f"xid {code}" for code in codes)),
        (1.5, "environment", f"{gates} {rule.versions.affected} {rule.versions.fixed_in}"),
        (1.0, "remedy", " ".join(remedy.do for remedy in rule.remedy)),
    ]


def _as_list(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else [] if value is None else [value]


def entries_of(rulebook: Rulebook) -> list[Entry]:
    """The entries of a rulebook."""
    return [
        Entry(
            rule.id,
            rule.cause,
            rule.phase,
            rule.impact,
            rule.title,
            rule.remedy[0].do if rule.remedy else "",
            tuple((weight, name, frozenset(words_of(text)), text.lower())
                  for weight, name, text in _texts(rule, rulebook)),
        )
        for rule in rulebook.rules.values()
    ]


def freeze(entries: Iterable[Entry]) -> str:
    """Entries as JSON text."""
    return json.dumps(
        [[e.id, e.cause, e.phase, e.impact, e.title, e.remedy,
          [[weight, name, sorted(words), text] for weight, name, words, text in e.fields]] for e in entries],
        ensure_ascii=False, separators=(",", ":"),
    )


def thaw(path: Path) -> list[Entry]:
    """Entries from a file that `freeze` wrote."""
    rows: list[list[Any]] = json.loads(path.read_text(encoding="utf-8"))
    return [
        Entry(rule_id, cause, phase, impact, title, remedy,
              tuple((weight, name, frozenset(words), text) for weight, name, words, text in fields))
        for rule_id, cause, phase, impact, title, remedy, fields in rows
    ]


def search(rules: Rulebook | list[Entry], query: str, limit: int = 10) -> list[Found]:
    """The best rules for a query, best first; [] when no word of it fits any rule."""
    entries = rules if isinstance(rules, list) else entries_of(rules)
    wanted = list(dict.fromkeys(words_of(query)))
    if not wanted:
        return []
    known = frozenset(word for entry in entries for _, _, words, _ in entry.fields for word in words)
    near = {word: frozenset(one for one in known if one != word and _near(word, one)) for word in wanted}
    spread = {word: sum(any(word in words for _, _, words, _ in entry.fields) for entry in entries) for word in wanted}
    phrase = " ".join(query.lower().split())
    found = []
    for entry in entries:
        one = _score(entry, wanted, near, spread, phrase)
        if one is not None:
            found.append(one)
    found.sort(key=lambda one: (-one.score, one.rule.id))
    return found[:limit]


def _score(entry: Entry, wanted: list[str], near: dict[str, frozenset[str]], spread: dict[str, int],
           phrase: str) -> Found | None:
    score, hits = 0.0, 0
    fitted: dict[str, None] = {}
    for word in wanted:
        best = 0.0
        for weight, name, words, text in entry.fields:
            exact = word in words
            if exact or not near[word].isdisjoint(words):
                # A word that few rules hold says more.
                best = max(best, weight * (1.0 + 3.0 / (1 + spread[word])) * (1.0 if exact else 0.5))
                fitted[name] = None
            if len(phrase) > 6 and phrase in text:
                best = max(best, weight * 4)
        score += best
        hits += best > 0
    if hits < max(1, len(wanted) // 2):
        return None
    return Found(entry, score * hits / len(wanted), ", ".join(fitted))


def _near(wanted: str, word: str) -> bool:
    return _close(wanted, word) or word in SAME.get(wanted, ()) or wanted in SAME.get(word, ())
