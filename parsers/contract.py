"""The seam between intake and parsers: what goes in, what comes out, how parsers are found.

A new parser is one module (or package) in this folder with a module-level `PARSER` (or a tuple `PARSERS`), a fixture
and a test. `discover()` finds it; nothing has to be registered.

In: lines, or a seekable binary, and the source's name. No paths, options or rules. Out: `Event`s and `Trouble`s.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, BinaryIO, ClassVar, NamedTuple, Protocol, runtime_checkable

from parsers.event import Event
from parsers.span import SourceSpan
from parsers.stamp import Stamp


@dataclass(slots=True)
class Line:
    """One line of a text source, transport already taken off.

    `number` counts from 1 and splits on `\\n` only. `start`/`end` are byte offsets of the physical line. `text` is the
    payload without its line end: decoded (bad bytes as `\\xNN`), colour codes removed, `\\r` kept (progress bars).
    `outer` is the transport's own clock reading (docker, CRI, journald …) where there is one, `host` its node name.
    """

    number: int
    start: int
    end: int
    text: str
    outer: Stamp | None = None
    host: str | None = None

    def span(self, source: str) -> SourceSpan:
        """This line as a span of `source`."""
        return SourceSpan(source, self.number, self.number, self.start, self.end)


class Trouble(NamedTuple):
    """What could not be read and why. `tag` is one word of: truncated, corrupt, limit, undecodable, skipped,
    unsupported, unreadable. It is a finding about coverage, never fatal."""

    source: str
    tag: str
    text: str
    line: int = 0
    offset: int = 0


UNREAD = frozenset({"truncated", "corrupt", "limit", "unreadable", "unsupported"})
"""Tags that mean: some of the source was not read, so that nothing may be concluded from what it does not show."""


@runtime_checkable
class TextParser(Protocol):
    """Reads lines.

    `marks` are byte strings. Of a large source the reader passes the first and the last stretch whole and, in
    between, only lines that hold a mark: a line without one must change nothing but counts. An empty tuple asks for
    every line (small artifacts: stacks, tables).
    """

    name: ClassVar[str]
    kind: ClassVar[str]
    marks: ClassVar[tuple[bytes, ...]]

    def sniff(self, head: str) -> float:
        """How surely the head of a source (up to 64 KiB of payload text) is of this kind: 0 no … 1 beyond doubt."""
        ...

    def claims(self, text: str) -> bool:
        """Whether this one line is of this kind beyond doubt: used to cut mixed text into its parts. Must be anchored
        at the start of the line, so that a quotation inside another record is never claimed."""
        ...

    def read(self, lines: Iterable[Line], source: str) -> Iterator[Event | Trouble]:
        """Events in the order of the lines. Never raises for bad input."""
        ...

    def inspect(self, lines: Iterable[Line], source: str) -> dict[str, Any]:
        """The artifact as the contract's `inspect` view shows it (docs/report-format.md). Gets every line."""
        ...


@runtime_checkable
class BinaryParser(Protocol):
    """Reads a seekable binary."""

    name: ClassVar[str]
    kind: ClassVar[str]

    def sniff_bytes(self, head: bytes) -> float:
        """How surely the first bytes (up to 4 KiB) are of this kind."""
        ...

    def read_binary(self, file: BinaryIO, source: str) -> Iterator[Event | Trouble]:
        """Events of the artifact. Never raises for bad input."""
        ...

    def inspect_binary(self, file: BinaryIO, source: str) -> dict[str, Any]:
        """The artifact as the contract's `inspect` view shows it. A key `complete` (bool) and a key `notes` (list of
        `{tag, text}`) beside the view's own keys are moved to the artifact by the caller."""
        ...


Parser = TextParser | BinaryParser


@cache
def discover() -> tuple[Parser, ...]:
    """Every parser of this package, by a walk of the folder, ordered by name."""
    import parsers

    found: list[Parser] = []
    for module_info in pkgutil.iter_modules(parsers.__path__):
        module = importlib.import_module(f"parsers.{module_info.name}")
        found += getattr(module, "PARSERS", ())
        if hasattr(module, "PARSER"):
            found.append(module.PARSER)
    return tuple(sorted(found, key=lambda parser: parser.name))
