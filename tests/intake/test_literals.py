"""Required literals: stage 1 must never miss what stage 2 would find."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from analyzer.intake.literals import ALL, NoLiteral, may_match, needed, required_literals
from analyzer.reasoning.rulebook import load


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"Selected (?P<kernel>FlashInferFP8\w+) for (?P<m>\w+)", {b"selected flashinferfp8"}),
        (r"(?i)cudnn.*(e4m3|fp8)", {b"cudnn"}),
        (r"EngineDeadError|engine core exited", {b"enginedeaderror", b"engine core exited"}),
        (r"Xid \([^)]*\): (?:43|45),", {b"xid ("}),
        (r"(?:abcd)?efghi", {b"efghi"}),
        (r"[Nn]o such file", {b"no such file"}),
        (r"a{2,3}bcde", {b"bcde"}),
    ],
)
def test_examples(pattern: str, expected: set[bytes]) -> None:
    assert set(required_literals(pattern)) == expected


@pytest.mark.parametrize("pattern", [r"\d+", r"abc|\w+", r"(?:long literal)?x", r"a.b.c", r"(unclosed"])
def test_none(pattern: str) -> None:
    with pytest.raises(NoLiteral):
        required_literals(pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"(?:ValueError|TypeError): .*not supported", "ValueError: it is 7", False),
        (r"(?:ValueError|TypeError): .*not supported", "TypeError: this is not supported", True),
        (r"(?i)Exit (?:code 9|status 9)|died", "EXIT STATUS 9", True),
        (r"(?i)Exit (?:code 9|status 9)|died", "exit 9", False),
        (r"(?!never).*(?:maybe)?|x", "anything", True),
        (r"(?:ab(?:cd|ef)g)+ h", "abcdgabefg h", True),
    ],
)
def test_a_text_without_a_needed_literal_is_passed_by(pattern: str, text: str, expected: bool) -> None:
    assert may_match(needed(pattern), text.lower()) is expected


def test_nothing_known_to_be_needed() -> None:
    assert needed(r"\d+") == [ALL]
    assert may_match([ALL], "")


words = st.sampled_from(["hang", "Xid ", "memory", "a b", "no literal"])
parts = st.one_of(
    words,
    words.map(lambda w: f"(?:{w})?"),
    words.map(lambda w: f"({w}|other words)"),
    st.just(r"\d+"),
    words.map(lambda w: f"{w}+"),
    st.just(".{0,9}"),
    words.map(lambda w: f"(?P<x{abs(hash(w)) % 9999}>{w})"),
)


@given(st.lists(parts, min_size=1, max_size=5, unique=True), st.data())
def test_every_match_holds_a_literal(pieces: list[str], data: st.DataObject) -> None:
    pattern = "".join(pieces)
    try:
        literals = required_literals(pattern)
    except NoLiteral:
        return
    text = data.draw(st.from_regex(pattern, fullmatch=True, alphabet=st.characters(max_codepoint=126)))
    assert regex.search(pattern, text)
    assert any(literal in text.lower().encode() for literal in literals)
    assert may_match(needed(pattern), text.lower())


def test_every_shipped_sample_holds_a_literal_of_its_pattern() -> None:
    for rule in load().rules.values():
        for clause in rule.clauses:
            if clause.pattern is not None:
                literals = required_literals(clause.pattern)
                for sample in clause.samples:
                    assert may_match(needed(clause.pattern), sample.lower()), (rule.id, clause.id)
                    assert any(one in sample.lower().encode() for one in literals), (rule.id, clause.id)
