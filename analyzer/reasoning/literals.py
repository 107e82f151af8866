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


def _score(choice: Choice, avoided: Choice) -> float:
    if not choice:
        return 0.0
    if not choice.isdisjoint(avoided):
        return -1_000.0
    worst = min(len(one) for one in choice)
    noisy = any(one.strip() in NOISY or any(one in word for word in NOISY) for one in choice)
    return worst * (0.3 if noisy else 1.0) - 0.2 * len(choice)


def _better(one: Choice | None, two: Choice | None, avoided: Choice) -> Choice | None:
    if one is None or two is None:
        return one or two
    return one if _score(one, avoided) >= _score(two, avoided) else two


def _walk(tree: Any, avoided: Choice) -> tuple[Choice | None, str | None]:
    """(best choice inside, the exact text if this whole subtree is one literal string)"""
    best: Choice | None = None
    run = ""
    exact: str | None = ""

    def close() -> None:
        nonlocal run, best
        if run:
            best = _better(best, frozenset([run]), avoided)
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
            inner, whole = _walk(argument[-1], avoided)
            if whole:
                run += whole
                exact = None if exact is None else exact + whole
                continue
            close()
            best, exact = _better(best, inner, avoided), None
        elif name == "BRANCH":
            close()
            exact = None
            choices = [_walk(branch, avoided)[0] for branch in argument[1]]
            if all(choice for choice in choices):
                best = _better(best, frozenset().union(*(choice for choice in choices if choice)), avoided)
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            low, high, body = argument
            inner, whole = _walk(body, avoided)
            if low == high == 1 and whole:
                run += whole
                continue
            if low >= 1:
                if whole:
                    run += whole
                close()
                best = _better(best, inner, avoided)
            else:
                close()
            exact = None
        elif name in ("AT", "ASSERT_NOT"):
            if name == "ASSERT_NOT":
                close()
            exact = None if name == "ASSERT_NOT" else exact
        elif name in ("ASSERT", "ATOMIC_GROUP"):
            inner, _ = _walk(argument[1] if name == "ASSERT" else argument, avoided)
            close()
            best, exact = _better(best, inner, avoided), None
        elif name == "IN" and len(argument) == 2 and all(str(o) == "LITERAL" for o, _ in argument) and (
                chr(argument[0][1]).lower() == chr(argument[1][1]).lower()):
            run += chr(argument[0][1]).lower()  # [Xx]
            exact = None
        else:
            close()
            exact = None
    close()
    return best, exact


@lru_cache(maxsize=4096)
def required_literals(pattern: str, avoiding: frozenset[bytes] = frozenset()) -> tuple[bytes, ...]:
    """Lower-case literals of which every match of `pattern` contains at least one, none of them in `avoiding`.

    Raises NoLiteral when there is no such set, or its shortest member has fewer than four bytes (three, where some are
    to be avoided: the caller then knows how often they stand in the text).
    """
    from re import _parser as sre  # type: ignore[attr-defined]  # the standard library's own parse tree

    # regex-only spellings that the standard parser refuses or reads otherwise
    plain = re.sub(r"\(\?P?<([A-Za-z_]\w*)>", "(?:", pattern)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            avoided = frozenset(one.decode() for one in avoiding)
            choice, _ = _walk(sre.parse(plain), avoided)
    except (re.error, RecursionError, OverflowError) as problem:
        raise NoLiteral(f"the pattern cannot be read: {problem}") from problem
    usable = sorted(choice or ())
    if not avoided.isdisjoint(usable):
        raise NoLiteral("every literal of the pattern is to be avoided")
    if not usable or min(len(one.strip()) for one in usable) < (MINIMUM - 1 if avoiding else MINIMUM):
        raise NoLiteral(f"every match should contain a literal of at least {MINIMUM} bytes; found {usable or 'none'}")
    return tuple(one.encode() for one in usable)
