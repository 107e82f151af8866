"""Input text is carried raw inside the report and is neutralised here, once, for the kind of output it goes to.

A log line can carry escape sequences that write to the clipboard (OSC 52), links that say one thing and open another
(OSC 8), direction overrides that reorder what is read (U+202E), mark-up, mentions, images that call home. Every
renderer passes every string of the report through one function of this module; nothing is dropped: what could act is
shown as a visible escape (`\\x1b`, `\\u202e`).
"""

from __future__ import annotations

import html as _html
import re
from collections.abc import Callable
from itertools import groupby

# All of Unicode's Cc, Cf, Cs, Zl and Zp, the blank fillers, and the tag and variation-selector planes that carry
# invisible text. tests/render/test_sanitise.py holds this against `unicodedata`.
_ACTIVE_RANGES = (
    "\x00-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_ACTIVE = re.compile(f"[{_ACTIVE_RANGES}]")
_TICKS = re.compile("`+")


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code == 0x0A:
        return "\\n"
    if code == 0x0D:
        return "\\r"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible(text: str) -> str:
    """`text` on one line: a tab is a space, every other active or invisible character a visible escape."""
    return _ACTIVE.sub(_escape, text.replace("\t", " "))


def visible_lines(text: str) -> list[str]:
    """`text` cut at its newlines (`\\n` only, as `sed -n` counts), each line made visible."""
    return [visible(line.removesuffix("\r")) for line in text.split("\n")]


def shorten(text: str, limit: int) -> str:
    """`text` in at most `limit` characters, cut in the middle: the head tells who speaks, the tail what was said."""
    if len(text) <= limit:
        return text
    if limit < 8:
        return text[: max(limit - 1, 0)] + "…"
    tail = (limit - 1) * 2 // 5
    return text[: limit - 1 - tail] + "…" + text[len(text) - tail :]


# --- terminal -----------------------------------------------------------------------------------------------------


def terminal(text: str) -> str:
    """One line that is safe to print: no byte below 0x20, none of 0x7f-0x9f, no direction control."""
    return visible(text)


# --- HTML ---------------------------------------------------------------------------------------------------------


def html(text: str) -> str:
    """Text for an element or a quoted attribute."""
    return _html.escape(visible(text), quote=True)


_LINK = re.compile(r"https://[A-Za-z0-9][A-Za-z0-9.-]*(?:/[A-Za-z0-9._~/?#=&%+:@,-]*)?")


def link(url: str) -> str | None:
    """`url` when it is a plain https address (ASCII, no user part, no spaces), otherwise None: then it is only text."""
    return url if len(url) <= 400 and _LINK.fullmatch(url) else None


# --- JSON and trace files -----------------------------------------------------------------------------------------


def json_text(document: str) -> str:
    """A finished JSON document with everything active or invisible inside its strings as `\\uXXXX`.

    Loses nothing: the escapes are JSON's own. Outside strings a JSON document holds no such character but the newline.
    """
    return _ACTIVE.sub(_json_escape, document)


def _json_escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code == 0x0A:
        return "\n"
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def json_in_html(document: str) -> str:
    """A JSON document that can stand inside `<script type="application/json">`: no `<`, `>` or `&` is left."""
    return json_text(document).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


# --- Markdown -----------------------------------------------------------------------------------------------------

# A word of these characters means nothing to Markdown, to GitHub's mention and reference filters, or to a mail client.
_PLAIN_WORD = re.compile(r"(?:[^\W_]|[.,;:'\"“”‘’()/%+=?…–—·±×°→-])+")
_LINKS_ITSELF = re.compile(r"://|\bwww\.|\bGH-\d|:(?!\d\d:)[^\W_]+:", re.IGNORECASE)


def markdown(text: str) -> str:
    """Prose in Markdown: words that mean something to a renderer stand in a code span, so nothing is rewritten."""
    return _coded(text, _plain_in_markdown, markdown_code)


def _plain_in_markdown(word: str) -> bool:
    return _PLAIN_WORD.fullmatch(word) is not None and _LINKS_ITSELF.search(word) is None


def markdown_code(text: str) -> str:
    """An inline code span with longer ticks than any run inside it; mentions and references are inert in it."""
    text = visible(text)
    if not text.strip():
        return ""
    ticks = "`" * (_longest_ticks(text) + 1)
    pad = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def markdown_fence(text: str) -> str:
    """A fenced block whose fence is longer than any run of back-ticks in `text`."""
    lines = visible_lines(text)
    fence = "`" * max(3, 1 + max(map(_longest_ticks, lines), default=0))
    return "\n".join([f"{fence}text", *lines, fence])


_CELL_SPECIAL = re.compile(r"[\\`*_{}\[\]<>()#!|~&@$:\"']")


def markdown_cell(text: str) -> str:
    """Code in a table cell. A code span cannot hold `|` after a back-slash there, so this is `<code>` with entities."""
    text = visible(text).strip()
    return f"<code>{_CELL_SPECIAL.sub(lambda found: f'&#{ord(found.group())};', text)}</code>" if text else ""


def _longest_ticks(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)


# --- Slack --------------------------------------------------------------------------------------------------------

# Slack links bare domains, so a dot inside a word is enough to put the word in code, where nothing is linked.
_SLACK_PLAIN_WORD = re.compile(r"(?:[^\W_]|[,;:'\"“”‘’()/%+=?…–—·±×°→●-]|\.(?![^\W_])|(?<=\d)\.(?=\d))+")


def slack(text: str) -> str:
    """Prose in Slack's mrkdwn: words that format, mention, link or unfurl stand in code."""
    return _coded(text, _plain_in_slack, slack_code)


def _plain_in_slack(word: str) -> bool:
    return _SLACK_PLAIN_WORD.fullmatch(word) is not None and _LINKS_ITSELF.search(word) is None


def slack_code(text: str) -> str:
    """Inline code. Slack has no way to quote a back-tick, so it is shown as `\\x60`; `&<>` are entities there."""
    text = visible(text).replace("`", "\\x60").strip()
    return f"`{_html.escape(text, quote=False)}`" if text else ""


def _coded(text: str, is_plain: Callable[[str], bool], code: Callable[[str], str]) -> str:
    """Prose with every run of words that are not plain put through `code`."""
    out: list[str] = []
    for plain, words in groupby(visible(text).split(), key=is_plain):
        joined = " ".join(words)
        out.append(joined if plain else code(joined))
    return " ".join(out)
