"""Text files that hold many files: nvidia-bug-report.log, `kubectl cluster-info dump`. Their sections become sources.

Line numbers and offsets stay those of the file as it was given. Layout of a bug report (nvidia-bug-report.sh): a rule
of 44 underscores, a blank line, `*** /path` with `*** ls: …` or a command line, then the content. A cluster-info dump:
`==== START logs for container C of pod NAMESPACE/POD ====` … `==== END logs …`, JSON lists of objects between.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from analyzer.intake.text import Block, decode
from parsers.pattern import lazy_bytes

_RULE = lazy_bytes(rb"(?m)^_{44}\r?\n")
_BUG_REPORT = lazy_bytes(rb"(?m)^Start of NVIDIA bug report log file|^nvidia-bug-report\.sh Version: ")
_END = b"End of NVIDIA bug report log file"
_POD = lazy_bytes(rb"(?m)^==== (START|END) logs for container (\S{1,200}) of pod (\S{1,300}) ====\r?\n")
TITLE_ROOM = 4096


class Layout(NamedTuple):
    """A kind of sectioned text. `title` gives the name of the section that a rule begins (None: between sections) and
    how many bytes its rule and title take; `end_mark` stands in the last bytes of a whole text (empty: it has none)."""

    name: str
    rule: re.Pattern[bytes]
    title: Callable[[bytes], tuple[str | None, int]]
    end_mark: bytes = b""


@dataclass(slots=True)
class Section:
    """One section; its blocks must be read to their end before the next section is asked for."""

    name: str | None
    blocks: Iterator[Block]


def _bug_report_title(data: bytes) -> tuple[str | None, int]:
    """`data` begins with the rule. Title lines: `*** …`, or the first line that is not blank."""
    at = data.index(b"\n") + 1
    name: str | None = None
    while at < len(data):
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end + 1
        line = decode(data[at:end]).strip()
        if line.startswith("***"):
            if name is None and not line.startswith("*** ls:"):
                name = _path_name(line[3:])
        elif name is None and line:
            name = _path_name(line)
        elif line or (name is not None and not line):
            break
        at = end
    return name, at


def _path_name(title: str) -> str:
    """`/var/log/kern.log` -> `var/log/kern.log`; `/usr/bin/lspci -d "10de:*" -v` -> `lspci`."""
    title = title.strip().rstrip(":")
    first, _, rest = title.partition(" ")
    shown = first.rsplit("/", 1)[-1] if rest or "/bin/" in first or "/sbin/" in first else first.lstrip("/")
    if title.startswith("Scanning"):
        shown = "kernel log files"
    if title.startswith(("Start of", "End of")):
        shown = ""
    return re.sub(r"[^\w./+:-]", " ", shown).strip()[:80]


def _pod_title(data: bytes) -> tuple[str | None, int]:
    found = _POD.match(data)
    if found is None:
        return None, data.index(b"\n") + 1
    name = f"{decode(found[3])}/{decode(found[2])}" if found[1] == b"START" else None
    return name, found.end()


BUG_REPORT = Layout("bug_report", _RULE, _bug_report_title, _END)
CLUSTER_DUMP = Layout("cluster_info_dump", _POD, _pod_title)


def layout_of(data: bytes) -> Layout | None:
    """The layout of a text, by its first block."""
    if _BUG_REPORT.search(data[:65536]) and _RULE.search(data[:65536]):
        return BUG_REPORT
    if b"==== START logs for container " in data and _POD.search(data):
        return CLUSTER_DUMP
    return None


def cut(layout: Layout, stream: Iterator[Block]) -> Iterator[Section]:
    """The sections of a text. Bytes of rules and titles belong to none."""
    cutter = _Cutter(layout, stream)
    while cutter.more():
        yield Section(cutter.name, cutter.blocks())


class _Cutter:
    """Reads blocks and gives out those of one section after another."""

    def __init__(self, layout: Layout, stream: Iterator[Block]) -> None:
        self._layout, self._stream = layout, stream
        self._data = b""
        self._offset, self._line = 0, 1
        self._ended = False
        self._started = False
        self.name: str | None = None

    def _fill(self) -> bool:
        block = next(self._stream, None)
        if block is None:
            self._ended = True
            return False
        if not self._data:
            self._offset, self._line = block.offset, block.first_line
        self._data += block.data
        return True

    def _take(self, size: int) -> Block:
        data, self._data = self._data[:size], self._data[size:]
        block = Block(data, self._offset, self._line)
        self._offset += size
        self._line += data.count(b"\n")
        return block

    def more(self) -> bool:
        """Move to the next section; False at the end."""
        if not self._started:
            self._started = True
            return bool(self._data) or self._fill()
        while len(self._data) < TITLE_ROOM and not self._ended:
            self._fill()
        if not self._data:
            return False
        self.name, size = self._layout.title(self._data)
        self._take(size)
        return True

    def blocks(self) -> Iterator[Block]:
        """The rest of the section that `more` moved to."""
        while True:
            if not self._data and not self._fill():
                break
            found = self._layout.rule.search(self._data)
            if found is not None:
                if found.start():
                    yield self._take(found.start())
                break
            if self._data:
                yield self._take(len(self._data))
        yield Block(b"", self._offset, self._line, last=True)
