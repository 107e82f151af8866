"""Bytes to blocks of whole lines: encodings, line ends, over-long lines. Lines end at `\\n` only."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

from analyzer.intake.budget import MIB, Budget
from analyzer.intake.sources import Readable
from parsers.contract import Trouble

CHUNK = MIB
LONGEST_CARRY = 4 * MIB

# CSI and OSC sequences, two-byte escapes, and a lone ESC at the end of a cut line.
ANSI = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]{0,2048}(?:\x07|\x1b\\)?|[@-Z\\^_]|\([AB0])")


@dataclass(slots=True)
class Block:
    """Whole lines of a source: `data` ends in a newline unless it is the last. `first_line` counts from 1."""

    data: bytes
    offset: int
    first_line: int
    last: bool = False


def decode(raw: bytes) -> str:
    """UTF-8 with bad bytes shown as `\\xNN`; never fails."""
    return raw.decode("utf-8", "backslashreplace")


def without_ansi(data: bytes) -> bytes:
    """The data without terminal escape sequences; newlines untouched."""
    return ANSI.sub(b"", data) if b"\x1b" in data else data


def encoding_of(head: bytes) -> str | None:
    """`utf-16-le`, `utf-16-be` or `utf-32…` by byte order mark or by the zero bytes of ASCII text; None = as it is."""
    for mark, name in (
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if head.startswith(mark):
            return name
    sample = head[:4096]
    if len(sample) >= 16:
        even, odd = sample[::2].count(0), sample[1::2].count(0)
        half = len(sample) // 2
        if odd > 0.7 * half and even < 0.05 * half:
            return "utf-16-le"
        if even > 0.7 * half and odd < 0.05 * half:
            return "utf-16-be"
    return None


class _Transcoded:
    """A UTF-16/32 stream as UTF-8, bad units as visible escapes."""

    def __init__(self, stream: Readable, encoding: str) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)("backslashreplace")
        self._fresh = True

    def read(self, size: int = -1, /) -> bytes:
        block = self._stream.read(size)
        text = self._decoder.decode(block, final=not block)
        if self._fresh and text:
            text, self._fresh = text.removeprefix("\ufeff"), False
        return text.encode("utf-8", "backslashreplace") if text or not block else self.read(size)


def _overlong(data: bytes, kept: int) -> tuple[int, int]:
    """(lines of `data` longer than `kept` bytes, offset of the first): one look for each `kept` bytes."""
    count, first, at = 0, -1, 0
    while len(data) - at > kept:
        end = data.rfind(b"\n", at, at + kept + 1)
        if end < 0:
            count, first = count + 1, at if first < 0 else first
            end = data.find(b"\n", at + kept)
            if end < 0:
                break
        at = end + 1
    return count, first


def blocks(
    name: str,
    stream: Readable,
    head: bytes,
    budget: Budget,
    troubles: list[Trouble],
    longest: int = LONGEST_CARRY,
) -> Iterator[Block]:
    """The source as blocks of about 1 MiB that end at a newline. `head` = its first bytes, already looked at;
    `longest` = bytes of one line that are read."""
    encoding = encoding_of(head)
    if encoding is not None:
        stream = _Transcoded(stream, encoding)
        troubles.append(
            Trouble(name, "transcoded", f"{encoding.upper()} text: byte offsets are those of its UTF-8 form")
        )
    carry = b""
    offset, line = 0, 1
    dropped = clipped = 0
    clipped_at = 0
    while True:
        chunk = stream.read(CHUNK)
        if not chunk:
            break
        if not offset and not carry and chunk.startswith(codecs.BOM_UTF8):
            chunk, offset = chunk.removeprefix(codecs.BOM_UTF8), len(codecs.BOM_UTF8)
        cut = chunk.rfind(b"\n") + 1
        if not cut:
            carry += chunk
            if len(carry) > longest:
                # A line without end: keep its two ends, count the rest.
                keep = budget.line_kept
                if not dropped:
                    troubles.append(
                        Trouble(
                            name,
                            "limit",
                            f"line {line} is longer than {longest} bytes: its middle was left out",
                            line,
                            offset,
                        )
                    )
                dropped += len(carry) - 2 * keep
                carry = carry[:keep] + carry[-keep:]
            continue
        if dropped:  # the end of an over-long line: a block of its own, so that the offsets after it are right
            end = chunk.index(b"\n") + 1
            yield Block(carry + chunk[:end], offset, line)
            offset += len(carry) + end + dropped
            carry, chunk, cut, dropped, line = b"", chunk[end:], cut - end, 0, line + 1
        data = carry + chunk[:cut]
        carry = chunk[cut:]
        if data:
            count, first = _overlong(data, budget.line_kept) if longest == LONGEST_CARRY else (0, -1)
            if count:
                clipped += count
                clipped_at = clipped_at or line + data.count(b"\n", 0, first)
            yield Block(data, offset, line)
        offset += len(data)
        line += data.count(b"\n")
    if not dropped and longest == LONGEST_CARRY and len(carry) > budget.line_kept:
        clipped, clipped_at = clipped + 1, clipped_at or line
    if clipped:
        # No more than a note: what fills a line of a log so is a prompt or a dump of a configuration.
        text = f"{clipped} lines are longer than {budget.line_kept} bytes: their middles were not looked at"
        troubles.append(Trouble(name, "skipped", text, clipped_at))
    yield Block(carry, offset, line, last=True)


def clip(text: str, kept: int) -> str:
    """An over-long line, shortened in the middle."""
    return text if len(text) <= kept else f"{text[: kept // 2]} … {text[-kept // 2 :]}"
