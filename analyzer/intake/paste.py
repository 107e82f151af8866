"""Text as people paste it: fences, quote marks, entities, typographic characters, gutters, bullets, hard wraps.

Matching is done on the normalised lines; what the person pasted is kept beside them and is what a report quotes.
Fences (and the headings of an issue form) cut a paste into segments; the prose between them is notes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from parsers.contract import Line
from parsers.pattern import lazy

NOTES = "notes"


@dataclass(slots=True)
class Segment:
    """A stretch of a paste. `name` = what its heading or the line above calls it, `prose` = a person's own words."""

    lines: list[Line]
    name: str | None = None
    prose: bool = False


@dataclass(slots=True)
class Pasted:
    """The segments of a text and, by line number, the original of every line that was changed."""

    segments: list[Segment]
    originals: dict[int, str] = field(default_factory=dict)
    marked: bool = False


_INVISIBLE = dict.fromkeys([0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0x00AD, 0x180E])
_PLAIN: dict[int, str | None] = {
    **_INVISIBLE, **dict.fromkeys([0x00A0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], " "),
    **dict.fromkeys(map(ord, "\u2018\u2019\u201a\u201b\u2032"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f\u2033"), '"'),
    **dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2212"), "-"), 0x2026: "...",
}
# Editors turn `--flag` into a dash before a letter.
_FLAG = lazy("(?<!\\S)[\u2013\u2014](?=[a-z])")
_ENTITY = lazy(r"&(?:gt|lt|amp|quot|apos|nbsp|#\d{1,6}|#x[0-9a-fA-F]{1,5});")
_QUOTED = lazy(r" {0,3}(?:> ?){1,4}(?!>)")
_SHELL_OR_REPL = lazy(r" {0,3}>>> ")
_FENCE = lazy(r"(?:\s{0,12}|[-*+] |\d{1,2}[.)] )(`{3,}|~{3,})([^`]{0,60})$")
_PRE = lazy(r"\s{0,8}</?(?:pre|code|samp)(?:\s[^>]{0,120})?>\s*$", re.IGNORECASE)
_HEADING = lazy(r" {0,3}#{2,5} {1,4}(\S.{0,120})$")
_SUMMARY = lazy(r".{0,40}<summary>(.{0,200})</summary>", re.IGNORECASE)
_TAG = lazy(r"</?(?:details|summary|code|b|i|strong|em|br|p|tt|sub|sup)(?:\s[^<>]{0,80})?/?>", re.IGNORECASE)
_GUTTER = lazy(r" {0,8}(\d{1,6})(?: ?[|│┃→]|:(?!\d\d\b)|\t| {1,2}(?=\S)|$) ?")
_BULLET = lazy(r"\s{0,8}(?:[-*+•‣◦▪·]|\d{1,2}[.)])[ \t](?=\s{0,40}\S)")
_TIME = lazy(r".{0,30}?\d\d:\d\d:\d\d")
_TICKED = lazy(r"\s{0,8}`([^`]{4,2000})`\s*$")


def plain(text: str) -> str:
    """A line with entities, typographic quotes and dashes, odd blanks and invisible characters made plain."""
    if "&" in text and _ENTITY.search(text):
        import html

        text = _ENTITY.sub(lambda found: html.unescape(found[0]), text)
    if text.isascii():
        return text
    return _FLAG.sub("--", text).translate(_PLAIN)


def unmark(lines: Sequence[Line], is_log: Callable[[str], bool]) -> Pasted:
    """A text without the marks of the place it was pasted into. Changes the lines in place; keeps their originals.

    `is_log` tells whether a stretch of text is an artifact by itself.
    """
    pasted = Pasted([])
    for line in lines:
        _change(pasted, line, plain(line.text))
    _unquote(pasted, lines)
    pasted.segments = _cut(lines, is_log)
    pasted.marked = len(pasted.segments) > 1 or any(one.name for one in pasted.segments)
    for segment in pasted.segments:
        _ungutter(pasted, segment.lines)
        _unbullet(pasted, segment.lines)
    return pasted


def _change(pasted: Pasted, line: Line, text: str) -> None:
    if text is not line.text and text != line.text:
        pasted.originals.setdefault(line.number, line.text)
        line.text = text


def _unquote(pasted: Pasted, lines: Sequence[Line]) -> None:
    """Take off `> `. It may be a shell's second prompt, which does no harm to take off; `>>> ` is Python's."""
    for line in lines:
        if ">" in line.text[:4] and not _SHELL_OR_REPL.match(line.text) and (found := _QUOTED.match(line.text)):
            _change(pasted, line, line.text[found.end():])


def _fence(text: str) -> tuple[str, str] | None:
    """(mark, info string) of a line that opens or closes a fence; an HTML block counts as one."""
    if ("`" in text or "~" in text) and (found := _FENCE.match(text)):
        return found[1], found[2].strip()
    return ("<", "") if "<" in text and _PRE.match(text) else None


def _title(text: str) -> str | None:
    if "##" in text[:8] and (found := _HEADING.match(text)):
        return found[1]
    return found[1] if "<" in text and (found := _SUMMARY.match(text)) else None


def _cut(lines: Sequence[Line], is_log: Callable[[str], bool]) -> list[Segment]:
    fences = [index for index, line in enumerate(lines) if _fence(line.text) is not None]
    headings = [index for index, line in enumerate(lines) if _title(line.text) is not None]
    if not fences and len(headings) < 2:
        return [Segment(list(lines))]
    first = min([*fences[:1], *headings[:1]])
    if first and is_log("\n".join(line.text for line in lines[:first])):
        return [Segment(list(lines))]  # a log that holds a fence (a model's answer, a prompt)
    segments: list[Segment] = []
    mine: list[Line] = []
    opened: str | None = None
    heading: str | None = None
    told: str | None = None

    def close(prose: bool) -> None:
        nonlocal mine
        if mine:
            names = [heading] if prose else [heading, told]
            segments.append(Segment(mine, "/".join(name for name in names if name) or None, prose))
        mine = []

    for line in lines:
        text = line.text
        mark, info = _fence(text) or (None, "")
        if mark is not None and (opened is None or (mark[0] == opened[0] and len(mark) >= len(opened) and not info)):
            mine.append(line)
            if opened is None:
                opened = mark
                mine.pop()
                close(True)
                mine = [line]
            else:
                close(False)
                opened, told = None, None
            line.text = ""
            continue
        if opened is None:
            title = _title(text)
            if title is not None and (name := label(title)):
                close(True)
                heading, told = name, None
            elif text.strip():
                told = label(text) if len(text) <= 80 and not text.lstrip().startswith("<") else None
            if "<" in text:
                line.text = _TAG.sub("", text)
        mine.append(line)
    close(opened is None)
    return segments


def label(text: str) -> str | None:
    """A heading as a name for a part: letters, digits and a few marks, at most 48 characters."""
    words = re.sub(r"\s{1,20}", " ", re.sub(r"[^\w .,:()+=-]", " ", _TAG.sub("", text))).strip(" .:,-_")
    return words[:48].strip() or None


def _ungutter(pasted: Pasted, lines: list[Line]) -> None:
    """Line numbers of an editor, `cat -n`, `grep -n`: rising from line to line on (nearly) every line."""
    full = [line for line in lines if line.text.strip()]
    if len(full) < 3 or not all(line.text.lstrip()[0].isdecimal() for line in full[:5:2]):
        return
    found = [_GUTTER.match(line.text) for line in full]
    numbers = [int(one[1]) for one in found if one is not None]
    if len(numbers) < 0.95 * len(full) or any(a >= b for a, b in pairwise(numbers)):
        return
    if len(full) < 5 and numbers != list(range(1, len(full) + 1)):
        return
    marked = all(one is None or not one[0].strip().isdecimal() or one[0].endswith("\t") for one in found)
    if not marked and numbers[-1] - numbers[0] != len(numbers) - 1 + (len(full) - len(numbers)):
        return  # bare numbers must count line by line
    if any(line.text[:2] == f"0{line.text[1:2]}" and line.text[1:2].isdecimal() for line in full):
        return  # 01:00.0, 02:00.0 … are PCI addresses
    for line, one in zip(full, found, strict=True):
        if one is not None:
            _change(pasted, line, line.text[one.end():])


def _unbullet(pasted: Pasted, lines: list[Line]) -> None:
    full = [line for line in lines if line.text.strip()]
    if sum(1 for line in full[:5] if not line.text.lstrip()[0].isalnum() or line.text.lstrip()[0].isdecimal()) < 2:
        return
    if sum(1 for line in full if _BULLET.match(line.text)) >= 0.8 * len(full):
        for line in full:
            if found := _BULLET.match(line.text):
                _change(pasted, line, line.text[found.end():])


def bare(text: str) -> str | None:
    """One line without a bullet, back-ticks or an actor's `(Name pid=…)` in front; None when it has none of them."""
    if found := _TICKED.match(text):
        return found[1]
    if found := _BULLET.match(text) or _ACTOR.match(text):
        return text[found.end():]
    return None


_ACTOR = lazy(r"\((?:[A-Za-z][\w.:-]{0,120},? )?(?:rank=\d{1,6} )?pid=\d{1,10}(?:, ip=[^)\s]{1,64})?\) ?")
ADDRESS = lazy(r"\([^)]{0,160}, ip=([^)\s]{1,64})\)")

WIDEST = 400


def rejoin(lines: list[Line], originals: dict[int, str], claimed: Callable[[str], bool]) -> list[Line]:
    """Join what a terminal or a mail program wrapped: a line at the wrap width and the next, which begins no record.

    A log that was never wrapped has no run of lines of one greatest width, so it stays as it is. Tables do have one:
    only a record that a log's parser claims is continued, and only by a line that is not `claimed` as the first of
    another and bears no time of its own.
    """
    width = max((len(line.text) for line in lines), default=0)
    if not 40 <= width <= WIDEST or len(lines) < 4:
        return lines
    by_letter = sum(1 for line in lines if len(line.text) == width) >= 3
    by_word = width <= 132
    full = [_is_full(one.text, two.text, width, by_letter, by_word) for one, two in pairwise(lines)]
    if sum(full) < 3:
        return lines
    starts = [bool(line.text.strip()) and (_TIME.match(line.text) is not None or claimed(line.text)) for line in lines]
    if not sum(1 for index, one in enumerate(full) if one and starts[index] and not starts[index + 1]) >= 2:
        return lines
    joined: list[Line] = []
    in_record = False
    for index, line in enumerate(lines):
        if joined and index and in_record and full[index - 1] and not starts[index] and line.text.strip():
            last = joined[-1]
            glue = "" if by_letter and len(lines[index - 1].text) == width else " "
            before = originals.get(last.number, last.text)
            originals[last.number] = f"{before}\n{originals.pop(line.number, line.text)}"
            text = last.text + glue + line.text.removeprefix(glue)
            joined[-1] = Line(last.number, last.start, line.end, text, last.outer, last.host)
            continue
        in_record = starts[index]
        joined.append(line)
    return joined


def _is_full(text: str, following: str, width: int, by_letter: bool, by_word: bool) -> bool:
    if not text.strip() or not following.strip() or text[-1] in "|+" or text[0] in "|+":
        return False
    if by_letter and len(text) == width:
        return True
    word = following.split(maxsplit=1)[0]
    return by_word and following[0] not in " \t" and len(text) + 1 + len(word) > width >= len(text)
