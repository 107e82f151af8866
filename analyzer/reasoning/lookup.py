"""Search the rules by symptom, code, GPU, version or free text: offline, instant, forgiving of slips of the pen."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from analyzer.reasoning.rule import Rule
from analyzer.reasoning.rulebook import Rulebook

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
class Found:
    """A rule that fits a query, with the words that fitted and a score."""

    rule: Rule
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


def _fields(rule: Rule, rulebook: Rulebook) -> list[tuple[float, str, str]]:
    clauses = rule.for_
    return [
        (4.0, "name", f"{rule.id} {rule.cause}"),
        (3.0, "title", rule.title),
        (2.0, "cause", rulebook.cause(rule.cause).title),
        (1.5, "about", rule.about),
        (2.0, "evidence", " ".join(c.says for c in clauses)),
        (2.5, "sample", " ".join(s for c in clauses for s in c.samples)),
        (
            2.0,
            "codes",
            " ".join(f"xid {v}" for c in clauses if c.event == "kernel_log.xid" for v in _as_list(c.where.get("code"))),
        ),
        (
            1.5,
            "environment",
            " ".join(f"{k} {v}" for k, v in rule.applies.items())
            + f" {rule.versions.affected} {rule.versions.fixed_in}",
        ),
        (1.0, "remedy", " ".join(r.do for r in rule.remedy)),
    ]


def _as_list(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else [] if value is None else [value]


def search(rulebook: Rulebook, query: str, limit: int = 10) -> list[Found]:
    """The best rules for a query, best first; [] when no word of it fits any rule."""
    wanted = list(dict.fromkeys(words_of(query)))
    if not wanted:
        return []
    index = {
        rule.id: [
            (weight, label, frozenset(words_of(text)), text.lower()) for weight, label, text in _fields(rule, rulebook)
        ]
        for rule in rulebook.rules.values()
    }
    spread = {
        word: sum(any(word in words for _, _, words, _ in fields) for fields in index.values()) for word in wanted
    }
    phrase = " ".join(query.lower().split())
    found: list[Found] = []
    for rule in rulebook.rules.values():
        score, fitted = 0.0, []
        for word in wanted:
            best = 0.0
            for weight, label, words, text in index[rule.id]:
                exact = word in words
                near = not exact and any(_near(word, one) for one in words)
                if exact or near:
                    rarity = 1.0 + 3.0 / (1 + spread[word])
                    best = max(best, weight * rarity * (1.0 if exact else 0.5))
                    fitted.append(label)
                if len(phrase) > 6 and phrase in text:
                    best = max(best, weight * 4)
            score += best
        hit = sum(
            1
            for word in wanted
            if any(word in words or any(_near(word, w) for w in words) for _, _, words, _ in index[rule.id])
        )
        if score and hit >= max(1, len(wanted) // 2):
            found.append(Found(rule, score * hit / len(wanted), ", ".join(dict.fromkeys(fitted))))
    found.sort(key=lambda one: (-one.score, one.rule.id))
    return found[:limit]


@lru_cache(maxsize=100_000)
def _near(wanted: str, word: str) -> bool:
    return _close(wanted, word) or word in SAME.get(wanted, ()) or wanted in SAME.get(word, ())
