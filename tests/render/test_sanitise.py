"""The sanitiser: what no output may hold, over every code point and over any text."""

from __future__ import annotations

import json
import re
import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.render import sanitise

ANY = st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=200)
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def test_every_active_category_is_escaped() -> None:
    for code in range(0x110000):
        character = chr(code)
        if character != "\t" and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            assert character not in sanitise.visible(character), hex(code)


def test_ordinary_text_is_kept() -> None:
    text = "Xid (PCI:0000:41:00): 79 — 内核 é ● é 🙂 100 % \\n"
    assert sanitise.visible(text) == text


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b]52;c;ZXZpbA==\x07", "\\x1b]52;c;ZXZpbA==\\x07"),
        ("\x9b2J", "\\x9b2J"),
        ("a\u202eb", "a\\u202eb"),
        ("a\nb\rc\td", "a\\nb\\rc d"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
    ],
)
def test_escapes_are_visible(raw: str, shown: str) -> None:
    assert sanitise.visible(raw) == shown


@given(ANY)
def test_terminal(text: str) -> None:
    shown = sanitise.terminal(text)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", shown)
    assert not set(shown) & set(BIDI)
    shown.encode("utf-8")
    assert sanitise.terminal(shown) == shown


@given(ANY)
def test_html_is_text(text: str) -> None:
    seen: list[str] = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            seen.append(tag)

        def handle_data(self, data: str) -> None:
            assert data == sanitise.visible(text)

    parser = Parser()
    parser.feed(f"<p>{sanitise.html(text)}</p>")
    parser.close()
    assert seen == ["p"]


@given(st.text(max_size=200))
def test_json_loses_nothing(text: str) -> None:
    for document in (sanitise.json_text(json.dumps(text, ensure_ascii=False)), sanitise.json_in_html(json.dumps(text))):
        assert json.loads(document) == text
        assert sanitise.visible(document) == document
    assert not set("<>&") & set(sanitise.json_in_html(json.dumps(text, ensure_ascii=False)))


@given(st.text(alphabet="`ab \n~", max_size=80))
def test_fence_is_longer_than_what_it_holds(text: str) -> None:
    block = sanitise.markdown_fence(text)
    fence = block.split("\n")[-1]
    assert all(len(run) < len(fence) for run in re.findall("`+", "\n".join(block.split("\n")[1:-1])))


@given(ANY)
def test_markdown_leaves_no_active_mark_outside_code(text: str) -> None:
    outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", " ", sanitise.markdown(text))
    assert not set("`*_[]<>#!|~&@$\\{}") & set(outside)
    assert "://" not in outside and "www." not in outside


@given(ANY)
def test_table_cell_stays_in_its_cell(text: str) -> None:
    cell = sanitise.markdown_cell(text)
    inner = cell.removeprefix("<code>").removesuffix("</code>")
    assert not set("|`<>*_[]@\n") & set(inner)


@given(ANY)
def test_slack_leaves_no_active_mark_outside_code(text: str) -> None:
    shown = sanitise.slack(text)
    assert not set("<>") & set(shown)
    outside = re.sub(r"`[^`]*`", " ", shown)
    assert not set("`*_~@#&") & set(outside) and "://" not in outside


@pytest.mark.parametrize(
    ("url", "is_link"),
    [
        ("https://github.com/vllm-project/vllm/issues/61007", True),
        ("http://x.example/y.png", False),
        ("javascript:alert(1)", False),
        ("https://user:pw@evil.example/", False),
        ('https://x.example/"onmouseover="x', False),
        ("https://x.example/\n", False),
        ("data:text/html,<script>", False),
    ],
)
def test_only_plain_https_addresses_are_links(url: str, is_link: bool) -> None:
    assert (sanitise.link(url) is not None) is is_link


@given(ANY, st.integers(min_value=1, max_value=60))
def test_shorten_keeps_the_limit(text: str, limit: int) -> None:
    assert len(sanitise.shorten(text, limit)) <= limit
