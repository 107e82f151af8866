"""Rows of a terminal screen: a label column, wrapped text beside it, and the colours laid on at the end.

Every string enters through `Page`, which makes it safe to print before it measures it; colour is added afterwards, so
the only escape sequences of the output are the ones written here. rich is imported when colour is asked for.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Literal

from analyzer.render.sanitise import terminal, visible_lines

Style = Literal["", "verdict", "against", "label", "quiet"]
_RICH_STYLES = {"verdict": "bold cyan", "against": "yellow", "label": "bold", "quiet": "dim"}

NARROWEST, USUAL, WIDEST = 60, 100, 200
LABEL = 12
"""Columns of the label column."""


def wants_colour(environ: Mapping[str, str], is_terminal: bool) -> bool:
    """Whether to colour: NO_COLOR (not empty) says no, then FORCE_COLOR (not empty, not 0) says yes, then a terminal
    that is not dumb. As no-color.org and force-color.org put it."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return environ["FORCE_COLOR"] != "0"
    return is_terminal and environ.get("TERM") != "dumb"


def cells(text: str) -> int:
    """Columns that `text` takes on a terminal: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(map(_cells_of, text))


def _cells_of(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fit(text: str, width: int) -> str:
    """`text` in at most `width` columns, cut in the middle: three fifths of the head, two fifths of the tail."""
    if cells(text) <= width:
        return text
    if width < 8:
        return _head(text, max(width - 1, 0)) + "…"
    tail = (width - 1) * 2 // 5
    return _head(text, width - 1 - tail) + "…" + _head(text[::-1], tail)[::-1]


def _head(text: str, width: int) -> str:
    used = 0
    for index, character in enumerate(text):
        used += _cells_of(character)
        if used > width:
            return text[:index]
    return text


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most `width` columns, broken at blanks, and inside a word only when the word alone is wider."""
    lines: list[str] = []
    line, used = "", 0
    for word in text.split(" "):
        length = cells(word)
        if line and used + 1 + length > width:
            lines.append(line)
            line, used = "", 0
        while length > width:
            head = _head(word, width) or word[0]
            lines.append(head)
            word = word[len(head) :]
            length = cells(word)
        line, used = (f"{line} {word}", used + 1 + length) if line else (word, length)
    return [*lines, line] if line or not lines else lines


class Page:
    """Lines of a screen, `width` columns wide."""

    def __init__(self, width: int | None) -> None:
        self.width = min(max(width or USUAL, NARROWEST), WIDEST)
        self.lines: list[list[tuple[Style, str]]] = []

    def height(self) -> int:
        """Lines that this takes on a terminal: a command that is wider than the screen counts as it wraps there."""
        return sum(max(1, -(-sum(cells(text) for _, text in line) // self.width)) for line in self.lines)

    def blank(self) -> None:
        """An empty line, never two of them."""
        if self.lines and self.lines[-1]:
            self.lines.append([])

    def extend(self, other: Page) -> None:
        """The lines of another page below these."""
        self.lines.extend(other.lines)

    def row(
        self,
        label: str,
        text: str,
        *,
        mark: str = "",
        right: str = "",
        style: Style = "",
        indent: int = LABEL,
        at_most: int | None = None,
    ) -> None:
        """`label`, `mark`, `text` wrapped to the rest of the width, and `right` at the end of the first line that has
        room. `at_most` lines, the last one cut in its middle where more was to be said."""
        label, text, mark, right = terminal(label), terminal(text), terminal(mark), terminal(right)
        label_style: Style = style if style in ("verdict", "against") else "label"
        gap = 5 if mark else 0
        room = self.width - indent - gap
        right_room = room - cells(right) - 2
        pieces = wrap(text, room)
        if at_most == 1 and right and right_room >= room // 3:
            pieces = [fit(text, right_room)]
        elif right and len(pieces) == 1 and cells(text) > right_room >= room // 2:
            # Rather a second line of text than a right part that hangs alone.
            pieces = wrap(text, right_room)
        if at_most is not None and len(pieces) > at_most:
            pieces = [*pieces[: at_most - 1], fit(" ".join(pieces[at_most - 1 :]), room)]
        for number, piece in enumerate(pieces):
            first = number == 0
            line: list[tuple[Style, str]] = [(label_style, (label if first else "").ljust(indent))]
            if gap:
                line.append((style, (mark if first else "").ljust(gap)))
            line.append((style, piece))
            if right and cells(piece) + 2 + cells(right) <= room:
                line.append(("quiet", " " * (room - cells(piece) - cells(right)) + right))
                right = ""
            self.lines.append(line)
        if right:
            right = fit(right, room)
            self.lines.append([("", " " * (self.width - cells(right))), ("quiet", right)])

    def quote(self, where: str, text: str, *, indent: int, whole: bool = False) -> None:
        """Where it stands and the record itself: on one line, shortened in the middle, or all of it when `whole`."""
        room = self.width - indent
        where = fit(terminal(where), max(room // 2, 20))
        rest = room - cells(where) - (3 if where else 0)
        margin: tuple[Style, str] = ("", " " * indent)
        line: list[tuple[Style, str]] = [margin, ("quiet", where)]
        shown = terminal(text.strip())
        if whole and cells(shown) > rest:
            self.lines.append(line)
            for part in visible_lines(text.strip("\n")):
                self.lines.extend([margin, ("quiet", piece)] for piece in wrap(part, room))
            return
        if shown and rest >= 16:
            line.append(("quiet", ("   " if where else "") + fit(shown, rest)))
        self.lines.append(line)

    def command(self, label: str, text: str, *, indent: int = LABEL) -> None:
        """A command as it stands: never wrapped or shortened, so that it can be copied; the terminal may wrap it."""
        for number, line in enumerate(visible_lines(text.strip("\n"))):
            self.lines.append([("label", (terminal(label) if number == 0 else "").ljust(indent)), ("", line)])

    def text(self, colour: bool) -> str:
        """The screen as text, with colours (SGR sequences, the eight standard colours) if asked for."""
        lines = self.lines[: len(self.lines) - (1 if self.lines and not self.lines[-1] else 0)]
        if colour:
            return _painted(lines)
        return "".join("".join(text for _, text in line).rstrip() + "\n" for line in lines)


def _painted(lines: Iterable[list[tuple[Style, str]]]) -> str:
    from io import StringIO

    from rich.console import Console
    from rich.text import Text

    # Text objects only: rich would read mark-up, emoji codes and numbers out of the input.
    console = Console(
        file=StringIO(),
        width=WIDEST,
        force_terminal=True,
        color_system="standard",
        no_color=False,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
        _environ={},
    )
    with console.capture() as capture:
        for line in lines:
            text = Text(end="\n", no_wrap=True)
            for style, part in line:
                text.append(part, _RICH_STYLES.get(style, ""))
            text.rstrip()
            console.print(text, soft_wrap=True, highlight=False)
    return capture.get()
