"""Patterns that are compiled late: never later than the first text that they match."""

from __future__ import annotations

import gc
import importlib
import pkgutil
import re
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

import analyzer
import parsers
from analyzer.intake.literals import ALL, ANY, Need, needed
from parsers.pattern import ENOUGH, _Lazy, lazy, words_of


@cache
def shipped() -> tuple[str, ...]:
    """Every pattern of the code that may be passed by for lack of a word."""
    for package in (parsers, analyzer):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if "__main__" not in module.name:
                importlib.import_module(module.name)
    every = {one.pattern for one in gc.get_objects() if isinstance(one, _Lazy) and one._words != ()}
    return tuple(sorted(pattern for pattern in every if words_of(pattern)))


def implied(need: Need, words: list[str]) -> bool:
    """Whether what a pattern needs always holds one of the words."""
    if isinstance(need, str):
        return any(word in need for word in words)
    return len(need) > 1 and (all if need[0] == ANY else any)(implied(one, words) for one in need[1:])


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"\[(\d+)\] NCCL WARN (?:a|b) Timeout", (" NCCL WARN ",)),
        (r"Killed|(?:very )?Aborted at \d|line \d+: stop", ("Killed", "Aborted at ", ": stop")),
        (r"ab|line", ()),
        (r"\d+ [A-Z]{3,9}", ()),
        (r"(?i)killed", ()),
        (r"kille?d", ("kill",)),
        (r"[\]abc]x", ()),
        (r"[]abc]x", ()),
        (r"abcd{2}ef", ("abc",)),
        (r"\x41bcdefg", ()),
        (r"(?!abcdef)xyz1", ("xyz1",)),
    ],
)
def test_words(pattern: str, words: tuple[str, ...]) -> None:
    assert words_of(pattern) == words


def test_words_follow_from_what_the_patterns_need() -> None:
    patterns = shipped()
    proven = [one for one in patterns if implied(needed(one), [word.lower() for word in words_of(one)])]
    assert needed(r"\d") == [ALL]
    assert len(patterns) > 300
    assert len(proven) >= 0.97 * len(patterns)  # the standard parser takes common beginnings out of alternatives


@given(st.data())
def test_every_match_of_a_shipped_pattern_holds_a_word(data: st.DataObject) -> None:
    pattern = data.draw(st.sampled_from(shipped()))
    text = data.draw(st.from_regex(pattern, alphabet=st.characters(max_codepoint=126)))
    assert any(word in text for word in words_of(pattern))


def test_a_pattern_is_compiled_with_the_first_text_that_has_its_words() -> None:
    pattern = lazy(r"Killed by (\w+)")
    assert pattern.search("nobody was") is None
    assert "compiled" not in vars(pattern)
    found = pattern.search("it was Killed by kernel")
    assert found is not None
    assert found[1] == "kernel"
    assert isinstance(vars(pattern)["compiled"], re.Pattern)


def test_a_pattern_that_is_asked_often_is_compiled() -> None:
    pattern = lazy(r"Killed by (\w+)")
    for _ in range(ENOUGH + 1):
        assert pattern.match("something else") is None
    assert "compiled" in vars(pattern)
