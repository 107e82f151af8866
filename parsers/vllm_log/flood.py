"""A limit on events that say the same thing: the first ones and the last one stay, with a count."""

from __future__ import annotations

from dataclasses import dataclass, field

from parsers.event import Event
from parsers.pattern import lazy

LIMITS = {"record": 1_000, "request": 1_000, "request_aborted": 1_000, "exception": 200, "cuda_error": 100,
          "shm_broadcast_wait": 1_000, "download": 1_000, "jit": 1_000, "fact": 1_000}  # fmt: skip
_DEFAULT = 2_000
_MOST_KEYS = 20_000
_VARYING = lazy(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)*|[0-9a-f]{16,}")


def shape(text: str) -> str:
    """`text` with its numbers and addresses taken out, so that repetitions look alike."""
    return _VARYING.sub("#", text[:300])


@dataclass(slots=True)
class Flood:
    """Counts events by what they say; holds back those beyond the limit."""

    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    held: dict[tuple[str, str], Event] = field(default_factory=dict)

    def admit(self, what: str, said: str, event: Event) -> bool:
        """Whether `event` passes; otherwise it is remembered as the last of its kind."""
        key = (what, shape(said))
        count = self.counts.get(key, 0) + 1
        if count == 1 and len(self.counts) >= _MOST_KEYS:
            key = (what, "")
            count = self.counts.get(key, 0) + 1
        self.counts[key] = count
        if count < LIMITS.get(what, _DEFAULT):
            return True
        self.held[key] = event
        return False

    def rest(self) -> list[Event]:
        """The last event of every kind that was held back, with the number of all of them in `count`."""
        for key, event in self.held.items():
            event.fields["count"] = self.counts[key]
        return list(self.held.values())
