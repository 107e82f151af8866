"""Every limit of a run in one object. Hitting one is a finding about coverage (a `Trouble`), never a silent stop."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(slots=True)
class Budget:
    """Limits of one run. Sizes in bytes, times in seconds.

    `ratio` is the greatest expansion of a compressed stream once `ratio_from` bytes came out of it: real logs stay
    under 200 : 1, zeros reach 1,000 : 1 (gzip) to 900,000 : 1 (bzip2).
    """

    total_out: int = 64 << 30
    member_out: int = 16 << 30
    spool: int = 4 << 30
    ratio: int = 400
    ratio_from: int = 32 * MIB
    members: int = 20_000
    depth: int = 5
    line_kept: int = 64 * 1024
    decoder_memory: int = 128 * MIB
    whole_lines: int = 1 * MIB
    """A text up to this size is handed to its parser line by line; of a longer one only the ends are."""
    edge: int = 256 * 1024
    """Bytes at either end of a long text that are handed over whole."""
    hits_per_clause: int = 200
    regex_seconds: float = 0.2
    spent: int = 0

    def spend(self, count: int) -> bool:
        """Count `count` bytes read out of the input; False once the total is used up."""
        self.spent += count
        return self.spent <= self.total_out
