"""Box tables of two columns whose right cell was broken over several rows (`dcgmi diag`, `dcgmi health`).

A row with an empty left cell continues the right cell of the row above. The program breaks at a fixed width, in the
middle of words, so that no pattern finds a message in the rows as they stand.
"""

from __future__ import annotations

from parsers.contract import Line
from parsers.pattern import lazy

MOST_ROWS = 40
"""Rows that are joined to one cell at most."""

_ROW = lazy(r"\|(?P<left>[^|]{3,60})\|(?P<right> [^|]{8,120})\|\s*$")
_OWN_RESULT = lazy(r" GPU ?\d{1,3}: ")


def unbox(lines: list[Line], originals: dict[int, str]) -> list[Line]:
    """`lines` with every broken cell in one line, the rows as they stood kept in `originals` (by line number)."""
    if not any(line.text.startswith("|  ") for line in lines):
        return lines
    joined: list[Line] = []
    above: tuple[int, str] | None = None  # width of the right cell and its text in full width, of the row above
    rows = 0
    for line in lines:
        row = _ROW.match(line.text)
        if row is None:
            above = None
        elif above is not None and not row["left"].strip() and len(row["right"]) == above[0] and rows < MOST_ROWS and (
                _OWN_RESULT.match(row["right"]) is None):
            last = joined[-1]
            before = originals.get(last.number, last.text)
            originals[last.number] = f"{before}\n{originals.pop(line.number, line.text)}"
            # The cell is padded by one blank in front and two behind.
            cell = above[1][:-2] + row["right"][1:]
            head = last.text[: last.text.index("|", 1) + 1]
            joined[-1] = Line(last.number, last.start, line.end, f"{head}{cell.rstrip()} |", last.outer, last.host)
            above, rows = (above[0], cell), rows + 1
            continue
        else:
            above, rows = (len(row["right"]), row["right"]), 0
        joined.append(line)
    return joined
