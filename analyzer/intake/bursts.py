"""What a restarting server writes over and over: known after some hundred times, then passed on once a block.

Lines are compared byte for byte but for the clock, process id and client address at their head. Not single lines but
bursts are compared (lines that follow each other), so that a new error behind a well-known first line is never lost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

KNOWN = 200
"""Times that a burst is passed on before it counts as known."""
LONGEST = 512
GAP = 3
MOST = 100_000

# What stands before the message: process and its id, level, one reading of a clock in any spelling, a client's address.
_HEAD = re.compile(
    rb"(?:\[?\(([\w ]{1,60}?)(?: pid=|, pid=|=)\d{1,10}\) ?\]?)?(?:([A-Z]{4,8}):? {1,8})?"
    rb"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d )?\[? {0,10}[\dTZ:.,+/-]{0,40} ?[\d:.,]{0,24}\]?"
)


def likeness(line: bytes) -> bytes:
    """The line without what differs from one repetition to the next: the numbers of its head."""
    head = _HEAD.match(line)
    if head is None:
        return line
    return b"%b %b %b" % (head[1] or b"", head[2] or b"", line[head.end() :])


@dataclass(slots=True)
class Bursts:
    """Counts bursts over a whole source."""

    counts: dict[int, int] = field(default_factory=dict)
    left_out: int = 0
    """Lines that were not passed on."""

    def weed(self, lines: list[tuple[int, bytes]]) -> set[int]:
        """Of the lines of one block (number, bytes) the positions in the list that can be left out: all but the last
        of each burst that is known by now."""
        bursts: list[list[int]] = []
        keys: list[bytes] = []
        first, before = b"", -GAP - 1
        for position, (number, line) in enumerate(lines):
            key = likeness(line)
            if number - before > GAP or key == first or len(bursts[-1]) >= LONGEST:
                bursts.append([])
                first = key
            bursts[-1].append(position)
            keys.append(key)
            before = number
        out: set[int] = set()
        last: dict[int, list[int]] = {}
        for burst in bursts:
            name = hash(tuple([keys[position] for position in burst]))
            count = self.counts.get(name, 0) + 1
            if count == 1 and len(self.counts) >= MOST:
                continue
            self.counts[name] = count
            if count > KNOWN:
                out.update(burst)
                last[name] = burst
        for burst in last.values():
            out.difference_update(burst)
        self.left_out += len(out)
        return out
