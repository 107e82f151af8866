"""Which literals a pattern cannot match without: what stage 1 looks for.

Of the sets that a pattern admits the one with the longest shortest member is chosen, with a penalty for words that
healthy logs are full of. `rules lint` refuses a pattern without a literal of four bytes.
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from typing import Any

MINIMUM = 4

# Words that stand in a great share of the records of healthy logs: a literal made of one of them selects nothing.
# Counted over start-up and serving logs, access logs and boot logs.
NOISY = ("info ", "engine", "request", "tokens", "throughput", "http/1.1", "200 ok", "python", "kernel", "pid=", "vllm",
         "cache", "gpu ", "model", ".py", "error", "warning", "time", "worker", "nvidia", "cuda", "running", "usage")


class NoLiteral(ValueError):
    """The pattern has no literal that every match contains."""


Choice = frozenset[str]
ALL, ANY = "&", "|"
Need = str | list[Any]
"""A literal in lower case, or `[ALL, Need, ...]`, or `[ANY, Need, ...]`; plain lists, so that it travels as JSON."""


def _score(choice: Choice, avoided: Choice) -> float:
    if not choice:
        return 0.0
    if not choice.isdisjoint(avoided):
        return -1_000.0
    worst = min(len(one) for one in choice)
    noisy = any(one.strip() in NOISY or any(one in word for word in NOISY) for one in choice)
    return worst * (0.3 if noisy else 1.0) - 0.2 * len(choice)


def _choose(need: Need, avoided: Choice) -> Choice | None:
    """The best set of literals of which every match holds one."""
    if isinstance(need, str):
        return frozenset([need])
    choices = [_choose(one, avoided) for one in need[1:]]
    if need[0] == ANY:
        full = [choice for choice in choices if choice]
        return frozenset().union(*full) if len(full) == len(choices) else None
    return max((one for one in choices if one), key=lambda one: _score(one, avoided), default=None)


def _walk(tree: Any) -> tuple[list[Need], str | None]:
    """(what every match holds, the exact text if this whole subtree is one literal string)"""
    needs: list[Need] = []
    run = ""
    exact: str | None = ""

    def close() -> None:
        nonlocal run
        if run:
            needs.append(run)
        run = ""

    for op, argument in tree:
        name = str(op)
        if name == "LITERAL":
            character = chr(argument).lower()
            if ord(character) < 128:
                run += character
                exact = None if exact is None else exact + character
                continue
            close()
            exact = None
        elif name == "SUBPATTERN":
            inner, whole = _walk(argument[-1])
            if whole:
                run += whole
                exact = None if exact is None else exact + whole
                continue
            close()
            needs += inner
            exact = None
        elif name == "BRANCH":
            close()
            exact = None
            ways = [_walk(branch)[0] for branch in argument[1]]
            if all(ways):
                needs.append([ANY, *([ALL, *way] if len(way) > 1 else way[0] for way in ways)])
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            low, high, body = argument
            inner, whole = _walk(body)
            if low == high == 1 and whole:
                run += whole
                continue
            if low >= 1:
                if whole:
                    run += whole
                close()
                needs += inner
            else:
                close()
            exact = None
        elif name in ("AT", "ASSERT_NOT"):
            if name == "ASSERT_NOT":
                close()
            exact = None if name == "ASSERT_NOT" else exact
        elif name in ("ASSERT", "ATOMIC_GROUP"):
            inner, _ = _walk(argument[1] if name == "ASSERT" else argument)
            close()
            needs += inner
            exact = None
        elif name == "IN" and len(argument) == 2 and all(str(o) == "LITERAL" for o, _ in argument) and (
                chr(argument[0][1]).lower() == chr(argument[1][1]).lower()):
            run += chr(argument[0][1]).lower()  # [Xx]
            exact = None
        else:
            close()
            exact = None
    close()
    return needs, exact


@lru_cache(maxsize=4096)
def needed(pattern: str) -> Need:
    """What the lower-case text of every match of `pattern` holds; `[ALL]` = nothing that is known.

    Raises NoLiteral when the pattern cannot be read.
    """
    from re import _parser as sre  # type: ignore[attr-defined]  # the standard library's own parse tree

    # regex-only spellings that the standard parser refuses or reads otherwise
    plain = re.sub(r"\(\?P?<([A-Za-z_]\w*)>", "(?:", pattern)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            needs, _ = _walk(sre.parse(plain))
    except (re.error, RecursionError, OverflowError) as problem:
        raise NoLiteral(f"the pattern cannot be read: {problem}") from problem
    return needs[0] if len(needs) == 1 else [ALL, *needs]


def may_match(need: Need, low: str) -> bool:
    """Whether a text (in lower case) holds what a pattern needs. A tenth of what compiling the pattern costs."""
    if isinstance(need, str):
        return need in low
    return (any if need[0] == ANY else all)(may_match(one, low) for one in need[1:])


@lru_cache(maxsize=4096)
def required_literals(pattern: str, avoiding: frozenset[bytes] = frozenset()) -> tuple[bytes, ...]:
    """Lower-case literals of which every match of `pattern` contains at least one, none of them in `avoiding`.

    Raises NoLiteral when there is no such set, or its shortest member has fewer than four bytes (three, where some are
    to be avoided: the caller then knows how often they stand in the text).
    """
    avoided = frozenset(one.decode() for one in avoiding)
    choice = _choose(needed(pattern), avoided)
    usable = sorted(choice or ())
    if not avoided.isdisjoint(usable):
        raise NoLiteral("every literal of the pattern is to be avoided")
    if not usable or min(len(one.strip()) for one in usable) < (MINIMUM - 1 if avoiding else MINIMUM):
        raise NoLiteral(f"every match should contain a literal of at least {MINIMUM} bytes; found {usable or 'none'}")
    return tuple(one.encode() for one in usable)
