"""Where a fact was read: one record of one source."""

from __future__ import annotations

from typing import NamedTuple


class SourceSpan(NamedTuple):
    """A stretch of one source.

    `first_line` and `last_line` count from 1 and split on `\\n` only, as `sed -n` does; both are 0 in a binary
    artifact. `start` and `end` are byte offsets into the source as it was given (after decompression, before
    any transport such as docker's JSON is taken off).
    """

    source: str
    first_line: int
    last_line: int
    start: int
    end: int
