"""Which parser reads which source: by content. Short mixed text is cut into its parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from parsers.contract import BinaryParser, Line, Parser, TextParser, discover

SURE = 0.3
"""Below this no parser is taken to know the text; it is read as notes."""


def text_parsers(parsers: Iterable[Parser] | None = None) -> list[TextParser]:
    """The parsers that read lines."""
    return [one for one in (discover() if parsers is None else parsers) if isinstance(one, TextParser)]


def binary_parser(head: bytes) -> BinaryParser | None:
    """The parser that knows this binary head, or None."""
    best: BinaryParser | None = None
    score = 0.5
    for one in discover():
        if isinstance(one, BinaryParser) and (found := one.sniff_bytes(head)) >= score:
            best, score = one, found
    return best


def text_parser(head: str) -> TextParser | None:
    """The parser that knows the head of this text best, or None when none is sure enough."""
    ranked = sorted(((one.sniff(head), one.name, one) for one in text_parsers()), key=lambda r: (-r[0], r[1]))
    return ranked[0][2] if ranked and ranked[0][0] >= SURE else None


def parts(lines: Sequence[Line], whole: TextParser | None) -> list[tuple[TextParser | None, list[Line]]]:
    """Lines grouped by the parser that reads them, in the order in which the parsers first appear.

    `whole` = the parser that knows the text as a whole. A line that another parser claims, and the current one does
    not, begins a part of that parser; lines that nobody claims stay with the current part.
    """
    parsers = text_parsers()
    current = whole
    grouped: dict[str, tuple[TextParser | None, list[Line]]] = {}
    for line in lines:
        text = line.text
        if text and not text.isspace() and not (current is not None and current.claims(text)):
            claimant = next((one for one in parsers if one is not current and one.claims(text)), None)
            if claimant is not None:
                current = claimant
        key = current.name if current is not None else ""
        grouped.setdefault(key, (current, []))[1].append(line)
    return list(grouped.values())
