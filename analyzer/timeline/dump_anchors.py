"""A GPU core dump carries Unix seconds; the driver's own progress lines carry the time of day of the same moment.

Fact: in thirteen dumps of driver 580 the dump's second is that of the line "Starting GPU coredump generation". The
kernel's Xid lines of the same PCI slot are placed by it as well, within seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analyzer.timeline.timeline import Anchor, Timeline
from parsers.event import Event
from parsers.stamp import ClockKind, Stamp

STARTING = "Starting GPU coredump generation"
WRITING = "Writing ELF file to "
NEAR_XID = 10.0
"""Seconds between a fault and its first kernel line; collecting the state of a full GPU takes up to 5."""
BURST = 60.0
"""Seconds over which the Xid lines of one fault are spread; those further apart are of several."""
FAULT_XIDS = (13, 31)
PACKED = (".gz", ".xz", ".bz2", ".zst")


def core_dumps(timeline: Timeline, by_kind: Mapping[str, Sequence[Event]]) -> None:
    """Ties the clock of `coredump:` lines to the dump they announce: by the file's name, or as the only pair there is.

    Nothing is tied where several dumps or several announcements could be meant.
    """
    dumps = [event for event in by_kind.get("cuda_core.dump", ()) if event.stamp is not None]
    lines = by_kind.get("cuda_gdb.coredump", ())
    begun: list[tuple[Event, str]] = []
    for event in lines:
        message = str(event.fields.get("message"))
        if message.startswith(STARTING):
            begun.append((event, ""))
        elif message.startswith(WRITING) and begun and begun[-1][0].span.source == event.span.source:
            begun[-1] = (begun[-1][0], _base(message.removeprefix(WRITING)))
    _same_gpu(timeline, by_kind)
    for dump in dumps:
        named = [event for event, name in begun if name and name == _base(dump.span.source)]
        mine = named if len(named) == 1 and _alone(dump, dumps) else []
        if not mine and len(dumps) == 1 and len(begun) == 1:
            mine = [begun[0][0]]
        for event in mine:
            _tie(timeline, event, dump)


def _same_gpu(timeline: Timeline, by_kind: Mapping[str, Sequence[Event]]) -> None:
    """An exception in a dump and Xid 13 or 31 of the same PCI slot, where a kernel log shows one burst of them."""
    faults: dict[str, set[Stamp]] = {}
    first: dict[str, Event] = {}
    for event in by_kind.get("cuda_core.exception", ()):
        if event.stamp is not None and event.actor.gpu:
            faults.setdefault(event.actor.gpu, set()).add(event.stamp)
            first.setdefault(event.actor.gpu, event)
    bursts: dict[tuple[str, str, str], list[tuple[float, Event]]] = {}
    for event in by_kind.get("kernel_log.xid", ()):
        stamp, gpu = event.stamp, event.actor.gpu
        if stamp is None or stamp.clock is ClockKind.UTC or event.fields.get("code") not in FAULT_XIDS or not gpu:
            continue
        source, number = event.span.source, event.span.first_line
        value = timeline.clock_of(source, stamp).value(stamp, number)
        bursts.setdefault((source, timeline.domain_of(source, stamp, number), gpu), []).append((value, event))
    for (source, domain, gpu), found in bursts.items():
        values = [value for value, _ in found]
        if len(faults.get(gpu, ())) != 1 or max(values) - min(values) > BURST:
            continue
        value, event = min(found, key=lambda one: one[0])
        dump = first[gpu]
        assert dump.stamp is not None
        anchor = Anchor(
            domain, value, timeline.domain_of(dump.span.source, dump.stamp, 0), dump.stamp.value, 1.0, NEAR_XID,
            f"Xid and GPU core dump of {gpu}",
            f"{source}:{event.span.first_line} is the kernel's line of the exception in {dump.span.source}",
        )  # fmt: skip
        timeline.tie(anchor)


def _alone(dump: Event, dumps: list[Event]) -> bool:
    return sum(_base(each.span.source) == _base(dump.span.source) for each in dumps) == 1


def _base(path: str) -> str:
    name = path.strip().rpartition("/")[2]
    for ending in PACKED:
        name = name.removesuffix(ending)
    return name


def _tie(timeline: Timeline, line: Event, dump: Event) -> None:
    stamp, taken = line.stamp, dump.stamp
    if stamp is None or taken is None or stamp.clock is ClockKind.UTC:
        return
    source, number = line.span.source, line.span.first_line
    domain = timeline.domain_of(source, stamp, number)
    value = timeline.clock_of(source, stamp).value(stamp, number)
    target = timeline.domain_of(dump.span.source, taken, 0)
    # The dump holds whole seconds, cut off.
    anchor = Anchor(
        domain, value, target, taken.value, 0.0, 1.0, "the time stamp in the GPU core dump",
        f"{dump.span.source} is the dump that {source}:{number} announces",
    )  # fmt: skip
    timeline.tie(anchor)
