"""Read every source once: recognise it, hand its lines to its parser, and let the rules' patterns see each line.

Of a text up to `Budget.whole_lines` the parser gets every line. Of a longer one it gets the lines of both ends and, in
between, those that hold one of its marks; stage 1 finds them without a Python loop over lines (docs/architecture.md).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from analyzer.intake import exports
from analyzer.intake.budget import Budget
from analyzer.intake.complaint import complaint
from analyzer.intake.foreign import Foreign
from analyzer.intake.lines import Pairs, Unwrapping, lines_of, physical
from analyzer.intake.paste import plain
from analyzer.intake.patterns import PROSE, Sightseer
from analyzer.intake.recognise import Part, arrange, binary_parser, claimed, text_parser
from analyzer.intake.scan import Scanner
from analyzer.intake.sections import Layout, cut, layout_of
from analyzer.intake.skim import Skim
from analyzer.intake.sources import HEAD, Peek, Source
from analyzer.intake.text import LONGEST_CARRY, Block, blocks, decode, encoding_of, without_ansi
from analyzer.intake.transport import transports_of
from analyzer.intake.user_text import shielded
from parsers.contract import UNREAD, BinaryParser, Line, Trouble
from parsers.event import Event
from parsers.stamp import Stamp

__all__ = ["Read", "guarded", "lines_of", "read_source"]


@dataclass(slots=True)
class Read:
    """One artifact as it was read. `lines` = lines of this part, `known` = those that its parser or a rule knows."""

    path: str
    parser: str | None
    kind: str
    size: int = 0
    lines: int = 0
    known: int = 0
    nonblank: int = 0
    events: list[Event] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    transports: tuple[str, ...] = ()
    first_line: Line | None = None
    last_line: Line | None = None
    part: str = ""
    originals: dict[int, str] = field(default_factory=dict)
    """Lines as they were pasted, by number, where what was read differs from them."""
    pairs: list[tuple[int, Stamp, Stamp]] = field(default_factory=list)
    """Readings of two clocks in one record: (line, payload, transport)."""
    repeated: int = 0
    """Events left out because another source of this input has them too."""
    complaint: Line | None = None
    """The first line in which a person writes of trouble."""

    def take(self, item: Event | Trouble) -> None:
        """What a parser yields, to its kind."""
        if isinstance(item, Trouble):
            self.troubles.append(item)
        else:
            self.events.append(item)

    @property
    def complete(self) -> bool:
        """Read to its end, nothing cut or left out."""
        return not any(t.tag in UNREAD for t in self.troubles)


def read_source(source: Source, sightseer: Sightseer, budget: Budget) -> list[Read]:
    """Everything in one source, as one `Read` a part. Never raises for bad input."""
    peek = Peek(source.stream)
    source.stream = peek
    head = peek.peek(HEAD)
    if not head:
        empty = Read(source.name, None, "empty")
        empty.troubles += source.truncated
        return [empty]
    binary = binary_parser(head[:4096])
    if binary is not None:
        return [_read_binary(source, binary, budget)]
    if _opaque(head):
        return [
            Read(
                source.name,
                None,
                "unknown",
                source.size or 0,
                troubles=[Trouble(source.name, "unsupported", "binary content that no parser knows")],
            )
        ]
    return _read_text(source, head, sightseer, budget)


def _opaque(head: bytes) -> bool:
    if encoding_of(head) is not None:
        return False
    sample = head[:4096].replace(b"\0", b"")  # blocks of NUL are what a crash leaves in a log
    control = sum(1 for byte in sample if byte < 9 or 13 < byte < 27 or byte in (28, 29, 30, 31))
    broken = sample.decode("utf-8", "replace").count("\ufffd")
    return bool(sample) and (
        control > 0.1 * len(sample) or (control > 0.02 * len(sample) and broken > 0.05 * len(sample))
    )


def _read_binary(source: Source, parser: BinaryParser, budget: Budget) -> Read:
    file = source.spool(budget)
    read = Read(source.name, parser.name, parser.kind)
    for item in guarded(lambda: parser.read_binary(file, source.name), source.name, parser.name):
        read.take(item)
    file.seek(0, 2)
    read.size = file.tell()
    read.troubles += source.truncated
    read.known = read.nonblank = 1
    return read


def guarded(start: Callable[[], Iterator[Event | Trouble]], source: str, parser: str) -> Iterator[Event | Trouble]:
    """The items of a parser; a fault inside it ends this source with a trouble and costs nothing already read."""
    try:
        yield from start()
    except Exception as problem:  # a parser must not raise; if one does, the rest of the bundle still counts
        yield Trouble(
            source,
            "corrupt",
            f"the parser {parser} stopped on this input "
            f"({type(problem).__name__}: {problem}): what it read before is kept",
        )


def _read_text(source: Source, head: bytes, sightseer: Sightseer, budget: Budget) -> list[Read]:
    troubles: list[Trouble] = list(source.truncated)
    # A document of a log store is often one line, whatever its size.
    document = exports.is_document(head.decode(encoding_of(head) or "utf-8", "ignore"))
    longest = exports.LARGEST if document else LONGEST_CARRY
    stream = blocks(source.name, source.stream, head, budget, troubles, longest)
    first = next(stream)
    layout = layout_of(first.data)
    whole_stream = chain([first], stream)
    if layout is None:
        reads = _read_stream(source.name, whole_stream, sightseer, budget)
    else:
        reads = _read_sections(source.name, layout, whole_stream, sightseer, budget)
    reads[0].troubles = troubles + reads[0].troubles
    return reads


def _read_stream(name: str, stream: Iterator[Block], sightseer: Sightseer, budget: Budget) -> list[Read]:
    """One text: whole when it is short, else its ends and what holds a mark."""
    first = next(stream, None)
    if first is None:
        return [Read(name, None, "empty")]
    second = next(stream, None)
    if second is not None and (second.data or not second.last):
        sample = decode(without_ansi(first.data[:HEAD]))
        document = exports.is_document(sample)
        limit = exports.LARGEST if document else budget.whole_lines
        gathered = [first, second]
        size = len(first.data) + len(second.data)
        while not gathered[-1].last and size <= limit and (block := next(stream, None)) is not None:
            gathered.append(block)
            size += len(block.data)
        if not gathered[-1].last or size > limit:
            if document:
                fault = f"a JSON document of more than {limit >> 20} MiB: read line by line, not by its entries"
                reads = _read_long(name, chain(gathered, stream), sample, sightseer, budget)
                reads[0].troubles.append(Trouble(name, "limit", fault))
                return reads
            return _read_long(name, chain(gathered, stream), sample, sightseer, budget)
        first = Block(b"".join(block.data for block in gathered), first.offset, first.first_line, last=True)
    return _read_short(name, first, sightseer, budget)


def _read_sections(
    name: str, layout: Layout, stream: Iterator[Block], sightseer: Sightseer, budget: Budget
) -> list[Read]:
    """The sections of a bug report or cluster dump: those that a parser knows one by one, the rest in the first."""
    rest = Read(name, layout.name, PROSE)
    reads = [rest]
    taken: dict[str, int] = {}
    whole = not layout.end_mark
    tail = b""

    def watched() -> Iterator[Block]:
        nonlocal tail
        for block in stream:
            tail = (tail + block.data)[-4096:]
            rest.size = block.offset + len(block.data)
            rest.lines += block.data.count(b"\n") + (1 if block.data and not block.data.endswith(b"\n") else 0)
            yield block

    for section in cut(layout, watched()):
        path = f"{name}/{section.name}" if section.name else name
        taken[path] = taken.get(path, 0) + 1
        if section.name and taken[path] > 1:
            path = f"{path}#{taken[path]}"
        for read in _read_stream(path, section.blocks, sightseer, budget):
            if read.parser is not None:
                reads.append(read)
                continue
            rest.nonblank += read.nonblank
            rest.known += read.known
            rest.troubles += read.troubles
            rest.originals.update(read.originals)
    rest.known = min(rest.nonblank, rest.known + sum(taken.values()))
    rest.nonblank = max(rest.nonblank, 1)
    whole = whole or layout.end_mark in tail
    if not whole:
        for read in {id(one): one for one in (rest, reads[-1])}.values():
            read.troubles.append(Trouble(read.path, "truncated", "the report ends before its last line"))
    return reads


def _read_short(name: str, block: Block, sightseer: Sightseer, budget: Budget) -> list[Read]:
    document = exports.is_document(decode(without_ansi(block.data[:HEAD])))
    grouped = arrange(name, list(physical(block, budget, len(block.data) if document else None)), budget)
    total = sum(len(part.lines) for part in grouped)
    if not grouped:
        return [Read(name, None, "empty")]
    if len(grouped) == 1:
        reads = [_read_part(grouped[0], sightseer, len(block.data))]
    else:
        reads = [_read_part(part, sightseer, total=total) for part in grouped]
    return reads


def _read_part(part: Part, sightseer: Sightseer, size: int = 0, total: int = 0) -> Read:
    """What its parser (None: the rules' patterns alone) reads of one part; `total` = lines of the whole text."""
    parser, mine = part.parser, list(shielded(part.lines, part.originals))
    kind = parser.kind if parser is not None else PROSE
    named = parser.name if parser is not None else PROSE if part.prose else None
    read = Read(part.path, named, kind, transports=part.transports, originals=part.originals)
    if total:
        read.part = f"{len(mine)} of {total} lines"
    _account(read, mine)
    read.complaint = complaint(mine, claimed, part.prose or parser is None)
    pairs = Pairs()
    for line in mine:
        if line.outer is not None:
            pairs.take(line)
    read.pairs = pairs.finish()
    read.size = size or sum(line.end - line.start + 1 for line in mine)
    found_lines = 0
    scanner = sightseer.patterns.scanner(kind, read.size)
    for line, wanted in _candidates(mine, scanner, list(sightseer.patterns.literals_for(kind).values())):
        if sightseer.look(part.path, kind, line, wanted):
            found_lines += 1
    if parser is not None:
        for item in guarded(lambda: parser.read(iter(mine), part.path), part.path, parser.name):
            read.take(item)
        read.known = read.nonblank
        _count_repeated(read)
    else:
        read.known = read.nonblank if part.prose else found_lines
    return read


_REPEATED = re.compile(r"\[repeated (\d{1,9})x across cluster\]")


def _count_repeated(read: Read) -> None:
    """Ray's log deduplication: `[repeated 99x across cluster]` at the end of a line is a count."""
    for event in read.events:
        if "x across cluster]" in event.text and (found := _REPEATED.search(event.text)):
            event.fields["count"] = int(found[1])


def _account(read: Read, lines: list[Line]) -> None:
    read.lines = len(lines)
    read.nonblank = sum(1 for line in lines if line.text.strip())
    read.first_line, read.last_line = (lines[0], lines[-1]) if lines else (None, None)


def _candidates(
    lines: list[Line], scanner: Scanner, patterns: list[tuple[int, ...]]
) -> Iterator[tuple[Line, set[int]]]:
    """Lines that hold a literal, with the patterns to be tried on each: one scan over all payload text."""
    encoded = [line.text.encode("utf-8", "backslashreplace") for line in lines]
    starts, at = [], 0
    for text in encoded:
        starts.append(at)
        at += len(text) + 1
    wanted: dict[int, set[int]] = {}
    for end, literal in scanner.scan(b"\n".join(encoded)):
        wanted.setdefault(bisect_right(starts, end - 1) - 1, set()).update(patterns[literal])
    for index in sorted(wanted):
        yield lines[index], wanted[index]


def _read_long(name: str, stream: Iterator[Block], sample: str, sightseer: Sightseer, budget: Budget) -> list[Read]:
    """The source with its own parser, then the parts of it that others know."""
    stack = transports_of(sample)
    if stack:
        first = Unwrapping(stack, budget)
        some = physical(Block(sample.encode("utf-8", "backslashreplace"), 0, 1), budget)
        sample = "\n".join(line.text for line in chain(first.lines(some), first.finish()))
    whole = text_parser(sample)
    unwrapping = Unwrapping(stack, budget)
    pairs = Pairs()
    kind = whole.kind if whole is not None else PROSE
    read = Read(name, whole.name if whole is not None else None, kind, transports=tuple(one.name for one in stack))
    foreign = Foreign(name, whole, read.transports, read.originals)
    everything = whole is not None and not whole.marks

    def lines() -> Iterator[Line]:
        begin = True
        held: list[Block] = []  # the last blocks, until it is known whether they are the end
        for block in chain(stream, [None]):
            if block is not None:
                held.append(block)
                if len(held) < 3 and not block.last:
                    continue
            while held and (block is None or len(held) > 2):
                current = held.pop(0)
                edge = begin or (block is None and sum(len(b.data) for b in held) < budget.edge)
                begin = False
                read.size += len(current.data)
                read.lines += current.data.count(b"\n") + (1 if current.last and current.data else 0)
                if edge or everything or stack:
                    yield from by_line(current, edge)
                else:
                    yield from skim.lines(current)

    def by_line(block: Block, edge: bool = False) -> Iterator[Line]:
        mine = list(physical(block, budget))
        if stack:
            mine = list(unwrapping.lines(mine))
            if block.last:
                mine += unwrapping.finish()
            for line in mine:
                pairs.take(line)
                text = plain(line.text)
                if text != line.text:
                    read.originals.setdefault(line.number, line.text)
                    line.text = text
        if not mine:
            return
        if read.first_line is None:
            read.first_line = mine[0]
        read.last_line = mine[-1]
        watch = skim.watch
        codes = [
            (*tried, *((_MARK,) if spellings else ()), *((_FOREIGN,) if index in watch.foreign else ()))
            for index, (tried, spellings) in enumerate(zip(watch.wanted, watch.marks, strict=True))
        ]
        looks = {id(line): tried for line, tried in _candidates(mine, watch.scanner, codes)}
        for line in foreign.sift(mine, {key for key, tried in looks.items() if _FOREIGN in tried}):
            tried = looks.get(id(line), _NOTHING)
            if wanted := {code for code in tried if code >= 0}:
                sightseer.look(name, kind, line, wanted)
            if edge or everything or _MARK in tried:
                yield line

    skim = Skim(name, kind, whole, sightseer, budget, foreign, by_line)
    feed = shielded(lines(), read.originals)
    if whole is not None:
        for item in guarded(lambda: whole.read(feed, name), name, whole.name):
            read.take(item)
    for _ in feed:  # notes, or what a parser that stopped early left: the rules' patterns still see it
        pass
    read.troubles += skim.troubles() + foreign.troubles()
    read.pairs = pairs.finish()
    _count_repeated(read)
    read.nonblank = read.lines
    read.known = read.lines if whole is not None else 0
    return [read, *(_read_part(part, sightseer, total=read.lines) for part in foreign.parts())]


_MARK, _FOREIGN = -1, -2
_NOTHING: frozenset[int] = frozenset()
