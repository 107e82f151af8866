"""A limit on events that say the same thing: the first ones and the last one stay, with a count."""

from __future__ import annotations

from dataclasses import dataclass, field

from parsers.event import Event
from parsers.pattern import lazy

LIMITS = {"record": 1_000, "request": 1_000, "request_aborted": 1_000, "exception": 200, "cuda_error": 100,
          "shm_broadcast_wait": 1_000, "download": 1_000, "jit": 1_000, "fact": 1_000}  # fmt: skip
_DEFAULT = 2_000
_MOST_KEYS = 20_000
_CROWDED = ((8_000, 8), (3_000, 32))
"""(events admitted in all, limit of each sort from then on): memory stays flat however long the log is, and of every
sort the first ones and the last one are still kept."""
_VARYING = lazy(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)*|[0-9a-f]{16,}")


def shape(text: str) -> str:
    """`text` with its numbers and addresses taken out, so that repetitions look alike."""
    return _VARYING.sub("#", text[:300])


@dataclass(slots=True)
class Flood:
    """Counts events by what they say; holds back those beyond the limit."""

    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    held: dict[tuple[str, str], Event] = field(default_factory=dict)
    admitted: int = 0

    def admit(self, what: str, said: str, event: Event) -> bool:
        """Whether `event` passes; otherwise it is remembered as the last of its kind."""
        key = (what, shape(said))
        count = self.counts.get(key, 0) + 1
        if count == 1 and len(self.counts) >= _MOST_KEYS:
            key = (what, "")
            count = self.counts.get(key, 0) + 1
        self.counts[key] = count
        limit = LIMITS.get(what, _DEFAULT)
        if self.admitted >= _CROWDED[-1][0]:
            limit = min(limit, next(few for total, few in _CROWDED if self.admitted >= total))
        if count < limit:
            self.admitted += 1
            return True
        self.held[key] = event
        return False

    def rest(self) -> list[Event]:
        """The last event of every kind that was held back, with the number of all of them in `count`."""
        for key, event in self.held.items():
            event.fields["count"] = self.counts[key]
        return list(self.held.values())
