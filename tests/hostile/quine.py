"""A gzip file that unpacks to itself: built from its two instructions, copy what stands here and repeat what came out.

With `L n` = "output the next n tokens" and `R n` = "output the last n tokens again", the tokens

    P  L3 P L3  R3  L1 R3  L1 L1  L4 R3 L1 L1 L4  R4  L4 R4 L4 R4 L4  R4  L4 R4 S  R4  S

output themselves, where P is gzip's header (two tokens) and S its end (three). Every token takes seven bytes: a stored
block behind two empty ones is an L, one block of three copies is an R. The check sum stands in what it sums; it is a
linear equation over single bits.
"""

from __future__ import annotations

import zlib

UNIT = 7


class _Bits:
    """Deflate's bits, least significant first."""

    def __init__(self) -> None:
        self._value = self._count = 0

    def put(self, value: int, count: int) -> None:
        self._value |= value << self._count
        self._count += count

    def code(self, value: int, count: int) -> None:
        """A Huffman code: its most significant bit first."""
        self.put(int(f"{value:0{count}b}"[::-1], 2), count)

    def done(self) -> bytes:
        return self._value.to_bytes((self._count + 7) // 8, "little")


def _stored(size: int, empty: int, last: bool = False) -> bytes:
    """A stored block's header behind `empty` blocks of nothing."""
    bits = _Bits()
    for _ in range(empty):
        bits.put(0b010, 3)
        bits.code(0, 7)
    bits.put(1 if last else 0, 3)
    return bits.done() + size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little")


def _literal(tokens: int) -> bytes:
    return _stored(tokens * UNIT, 2)


def _repeat(tokens: int) -> bytes:
    distance = tokens * UNIT
    bits = _Bits()
    bits.put(0b010, 3)
    for length in (3, 3, distance - 6) if distance == 21 else (5, 6, distance - 11):
        if length <= 10:
            bits.code(length - 2, 7)
        else:
            bits.code(9 + (length - 11) // 2, 7)
            bits.put((length - 11) % 2, 1)
        first, code = (17, 8) if distance <= 24 else (25, 9)
        bits.code(code, 5)
        bits.put(distance - first, 3)
    bits.code(0, 7)
    return bits.done()


def gzip_quine() -> bytes:
    """Bytes that `gzip -d` turns into the same bytes."""
    head = b"\x1f\x8b\x08\x08\0\0\0\0\0\xff" + b"qqq\0"  # a name fills the second token
    one, three, four = _literal(1), _literal(3), _literal(4)
    again3, again4 = _repeat(3), _repeat(4)

    def whole(check: int, size: int) -> bytes:
        end = _stored(0, 1) + _stored(0, 2, last=True) + check.to_bytes(4, "little") + size.to_bytes(4, "little")
        parts = (head, three, head, three, again3, one, again3, one, one, four, again3, one, one, four, again4,
                 four, again4, four, again4, four, again4, four, again4, end, again4, end)  # fmt: skip
        return b"".join(parts)

    size = len(whole(0, 0))
    base = zlib.crc32(whole(0, size))
    # check = base + sum of columns[i] over the bits i of check
    rows = [0] * 32
    for bit in range(32):
        column = zlib.crc32(whole(1 << bit, size)) ^ base ^ (1 << bit)
        for row in range(32):
            rows[row] |= (column >> row & 1) << bit
    rows = [row | (base >> index & 1) << 32 for index, row in enumerate(rows)]
    return whole(_solved(rows), size)


def _solved(rows: list[int]) -> int:
    """The 32 bits that satisfy 32 equations, each a sum of bits 0 to 31 that equals bit 32."""
    for bit in range(32):
        pivot = next(index for index in range(bit, 32) if rows[index] >> bit & 1)
        rows[bit], rows[pivot] = rows[pivot], rows[bit]
        rows = [row ^ rows[bit] if index != bit and row >> bit & 1 else row for index, row in enumerate(rows)]
    return sum((row >> 32 & 1) << index for index, row in enumerate(rows))
