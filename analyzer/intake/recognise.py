"""Which parser reads which source: by content. Short mixed text is cut into its parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

from analyzer.intake import box, exports, paste
from analyzer.intake.budget import Budget
from analyzer.intake.lines import Unwrapping
from analyzer.intake.sources import HEAD
from analyzer.intake.transport import Transport, transports_of
from parsers.contract import BinaryParser, Line, Parser, TextParser, discover

SURE = 0.3
"""Below this no parser is taken to know the text; it is read as notes."""
LOGS = ("server_log", "kernel_log", "collective", "fabric")
"""Kinds of artifacts that are records one after another, each with its own front."""


def text_parsers(parsers: Iterable[Parser] | None = None) -> list[TextParser]:
    """The parsers that read lines."""
    if parsers is None:
        return list(_all_text_parsers())
    return [one for one in parsers if isinstance(one, TextParser)]


@cache
def _all_text_parsers() -> tuple[TextParser, ...]:
    # Telling a protocol is slow, and this is asked for every line of a paste.
    return tuple(one for one in discover() if isinstance(one, TextParser))


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


@dataclass(slots=True)
class Part:
    """What one parser (None: notes) reads of a text. `originals` = lines as they were pasted, where that differs;
    `prose` = a person's words between what was pasted."""

    path: str
    parser: TextParser | None
    lines: list[Line] = field(default_factory=list)
    transports: tuple[str, ...] = ()
    originals: dict[int, str] = field(default_factory=dict)
    prose: bool = False


def arrange(path: str, physical: list[Line], budget: Budget) -> list[Part]:
    """A whole text as parts: mark-up of a paste taken off, transports taken off, each part with its parser.

    Parts of a paste are named after their headings (`issue.md/Your current environment`); all others bear `path`.
    """
    if exports.is_export("\n".join(line.text for line in physical[:2000])[:HEAD]):
        entries = exports.lines_in(physical)
        if entries is not None:
            return _parts_of(path, entries, ("JSON export of a log store",), {}, budget)
    parsers = text_parsers()
    def is_log(text: str) -> bool:
        full = [line for line in text.split("\n") if line.strip()][:200]
        return 2 * sum(1 for line in full if any(one.claims(line) for one in parsers)) > len(full)

    pasted = paste.unmark(physical, is_log)
    found: dict[tuple[str, str], Part] = {}
    unnamed = 0
    for segment in pasted.segments:
        name = f"{path}/{segment.name}" if segment.name else path
        if pasted.marked and not segment.prose and segment.name is None:
            unnamed += 1
            name = f"{path}/part {unnamed}"
        for part in _parts_of(name, segment.lines, (), pasted.originals, budget):
            if part.parser is None and segment.prose:
                part.path, part.prose = f"{path}/{paste.NOTES}", True
            key = (part.path, part.parser.name if part.parser is not None else "")
            if key in found and found[key] is not part:
                found[key].lines += part.lines
            else:
                found[key] = part
    return [part for part in found.values() if len(found) == 1 or any(line.text.strip() for line in part.lines)]


def _parts_of(path: str, lines: list[Line], outer: tuple[str, ...], originals: dict[int, str],
              budget: Budget) -> list[Part]:
    sample = "\n".join(line.text for line in lines[:4000])[:HEAD]
    stack: tuple[Transport, ...] = transports_of(sample) if sample.strip() else ()
    if stack:
        unwrapping = Unwrapping(stack, budget)
        lines = [*unwrapping.lines(lines), *unwrapping.finish()]
    elif not outer:
        lines = box.unbox(paste.rejoin(lines, originals, _begins_record), originals)
    if stack or outer:
        for line in lines:
            text = paste.plain(line.text)
            if text != line.text:
                originals.setdefault(line.number, line.text)
                line.text = text
        sample = "\n".join(line.text for line in lines[:4000])[:HEAD]
    names = (*outer, *(one.name for one in stack))
    return [Part(path, parser, mine, names, originals) for parser, mine in parts(lines, text_parser(sample), originals)]


def _by_likelihood(parsers: list[TextParser], lines: Sequence[Line]) -> list[TextParser]:
    """The parsers in their order, but those of server logs by how surely the text is theirs: several of them claim
    what any Python program writes."""
    sample = "\n".join(line.text for line in lines[:4000])[:HEAD]
    servers = [one for one in parsers if one.kind == "server_log"]
    ranked = iter(sorted(servers, key=lambda one: -one.sniff(sample)))
    return [next(ranked) if one.kind == "server_log" else one for one in parsers]


def _uncover(line: Line, inner: str, originals: dict[int, str] | None) -> None:
    if originals is not None:
        originals.setdefault(line.number, line.text)
    address = paste.ADDRESS.match(line.text)
    line.text, line.host = inner, line.host or (address[1] if address else None)


def claimed(text: str) -> bool:
    """Whether some parser knows this one line beyond doubt."""
    return any(one.claims(text) for one in text_parsers())


def _begins_record(text: str) -> bool:
    return any(one.claims(text) for one in text_parsers() if one.kind in LOGS)


def parts(lines: Sequence[Line], whole: TextParser | None, originals: dict[int, str] | None = None,
          ) -> list[tuple[TextParser | None, list[Line]]]:
    """Lines grouped by the parser that reads them, in the order in which the parsers first appear.

    `whole` = the parser that knows the text as a whole. A line that another parser claims, and the current one does
    not, begins a part of that parser; lines that nobody claims stay with the current part. A line that is claimed only
    without its bullet, back-ticks or `(Actor pid=…)` is given to its parser without them.
    """
    parsers = text_parsers()
    current = whole
    grouped: dict[str, tuple[TextParser | None, list[Line]]] = {}
    of_ranks = [one for one in parsers if one.kind == "collective"]
    ordered: list[TextParser] | None = None
    for line in lines:
        text = line.text
        if text[:1] == "(" and "NCCL" in text and (inner := paste.bare(text)) is not None and (
                claimant := next((one for one in of_ranks if one.claims(inner)), None)) is not None:
            # NCCL names its own rank: behind an actor's or worker's name its lines are still NCCL's.
            _uncover(line, inner, originals)
            current = claimant
        elif text and not text.isspace() and not (current is not None and current.claims(text)):
            if ordered is None:
                ordered = _by_likelihood(parsers, lines)
            claimant = next((one for one in ordered if one is not current and one.claims(text)), None)
            if claimant is None and (inner := paste.bare(text)) is not None:
                claimant = next((one for one in ordered if one is not current and one.claims(inner)), None)
                named = text.lstrip().startswith("(")
                if claimant is None and current is not None and not named and current.claims(inner):
                    claimant = current
                # A server log's parser needs the name of the process that stands in front.
                if claimant is not None and not (named and claimant.kind == "server_log"):
                    _uncover(line, inner, originals)
            if claimant is not None:
                current = claimant
        key = current.name if current is not None else ""
        grouped.setdefault(key, (current, []))[1].append(line)
    return list(grouped.values())
