"""What the readers of one kernel log share: the events in order, and what is known about its GPUs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from parsers.event import Actor, Event, fact
from parsers.kernel_log.record import Record
from parsers.pattern import lazy

OPEN_FOR = 120
"""Records after which an unfinished block (a call trace, an OOM table) is closed."""

_ADDRESS = lazy(r"(?:([0-9a-fA-F]{4,8}):)?([0-9a-fA-F]{1,2}):(?:0x)?([0-9a-fA-F]{1,2})(?:\.[0-7])?$")


def gpu_address(text: str) -> str | None:
    """A PCI address in the form `0000:41:00` (domain:bus:device, lower case); None when it is none."""
    text = text.strip().removeprefix("PCI:").replace("0x", "")
    found = _ADDRESS.match(text)
    if not found:
        return None
    domain = (found[1] or "0000").lower()
    if len(domain) > 4:
        domain = domain[-4:] if domain.startswith("0" * (len(domain) - 4)) else domain
    return f"{domain}:{int(found[2], 16):02x}:{int(found[3], 16):02x}"


@dataclass(slots=True)
class _Queued:
    event: Event
    close_at: int = 0
    """The record count at which it is closed for good; 0 = closed."""


class Log:
    """Collects events in the order of the lines; an event whose block is still open holds back those after it."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.count = 0
        self.gpus: set[str] = set()
        self.numbered: dict[str, str] = {}
        """The driver's own numbers (`GPU3`) -> PCI address, as far as the lines give it away."""
        self.last_xid: tuple[int, str] = (-100, "")
        self._queue: deque[_Queued] = deque()
        self._facts: set[tuple[str, str, str | None]] = set()

    def emit(
        self, kind: str, record: Record, *, gpu: str | None = None, keep_open: bool = False, **fields: Any
    ) -> Event:
        """One event `kernel_log.<kind>` about this record; a field `pid` also names its actor.

        With `keep_open` the fields may still be filled in. Fields that are None are left out.
        """
        pid = fields.get("pid")
        if record.uptime is not None:
            fields["uptime"] = record.uptime
        if "." not in kind:
            kind = f"kernel_log.{kind}"
        actor = Actor(pid=pid, gpu=gpu, host=record.host)
        event = Event(
            kind,
            record.span(self.source),
            record.line.text,
            record.stamp,
            actor,
            {name: value for name, value in fields.items() if value is not None},
        )
        self._queue.append(_Queued(event, self.count + OPEN_FOR if keep_open else 0))
        return event

    def fact(self, name: str, value: str, record: Record, gpu: str | None = None) -> None:
        """A statement about the machine, once for each value."""
        key = (name, value, gpu)
        if value and key not in self._facts:
            self._facts.add(key)
            event = fact(
                name,
                value,
                record.span(self.source),
                record.line.text,
                stamp=record.stamp,
                actor=Actor(gpu=gpu, host=record.host),
            )
            self._queue.append(_Queued(event))

    def fact_of(self, event: Event, name: str, value: str) -> None:
        """A statement that an open event turned out to make, tied to the same line."""
        if (name, value, None) not in self._facts:
            self._facts.add((name, value, None))
            self._queue.append(_Queued(fact(name, value, event.span, event.text, stamp=event.stamp, actor=event.actor)))

    def move(self, event: Event, record: Record) -> None:
        """Ties an open event to a more telling line of the same block."""
        event.span, event.text, event.stamp = record.span(self.source), record.line.text, record.stamp

    def close(self, event: Event) -> None:
        """Says that nothing more will be added to the event."""
        for queued in self._queue:
            if queued.event is event:
                queued.close_at = 0

    def knows_gpu(self, address: str | None) -> None:
        """Remembers that the device at this address is a GPU."""
        if address:
            self.gpus.add(address)

    def number_of(self, number: str) -> str | None:
        """The address of `GPU3`: as told before, or that of an Xid in the three records before this one."""
        if number not in self.numbered and self.count - self.last_xid[0] <= 3:
            self.numbered[number] = self.last_xid[1]
        return self.numbered.get(number)

    def ready(self, everything: bool = False) -> Iterator[Event]:
        """The events that are complete, in order."""
        while self._queue and (everything or self._queue[0].close_at <= self.count):
            yield self._queue.popleft().event
