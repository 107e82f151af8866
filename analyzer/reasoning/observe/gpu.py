"""What samples, kernel lines and dumps of a GPU add up to."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from analyzer.reasoning.bundle import Bundle, Observation
from parsers.event import Event

BUSY, COOL = 85.0, 0.30
"""Utilisation in percent from which a GPU counts as busy; share of the power limit below which it does no work. Hung
kernels on an H200 drew 17-20 % of the limit, an arithmetic loop 43 %, matrix products 99 %."""
GB10_COOL, GB10_WORKING = 25.0, 40.0
"""Watts. A GB10 reports neither a power limit nor memory utilisation: hung it drew 13-16 W, serving 40 W and more."""


def observe(bundle: Bundle) -> Iterator[Observation]:
    """Busy but cool, busy and working, idle; fault patterns of Xids; dumps without a grid."""
    yield from _samples(bundle)
    yield from _xids(bundle)
    for event in bundle.events("cuda_core.no_grid", "cuda_gdb.no_grid"):
        yield Observation("no_resident_kernel", [event])


def _of(event: Event, name: str) -> float | None:
    value = event.fields.get(name)
    return float(value) if isinstance(value, int | float) else None


def _samples(bundle: Bundle) -> Iterator[Observation]:
    by_gpu: dict[str, list[Event]] = {}
    for event in bundle.events("gpu_samples.sample"):
        if event.fields.get("cut"):
            continue  # what the other GPUs did stood below: one row alone says nothing of the server
        by_gpu.setdefault(f"{event.span.source} {event.fields.get('gpu')}", []).append(event)
    for samples in by_gpu.values():
        cool, working, idle = [], [], []
        for sample in samples:
            util, memory, power, limit = (_of(sample, n) for n in ("util", "mem_util", "power_w", "power_limit_w"))
            if util is None:
                continue
            share = power / limit if power is not None and limit else None
            small = power if share is None and memory is None and "GB10" in str(sample.fields.get("name")) else None
            if util >= BUSY and (memory is None or memory <= 1) and (
                    share < COOL if share is not None else memory is not None or (small or GB10_COOL) < GB10_COOL):
                cool.append(sample)
            elif util >= 30 and ((memory or 0) >= 5 or (share or 0) >= 0.5 or (small or 0) >= GB10_WORKING):
                working.append(sample)
            elif util <= 1:
                idle.append(sample)
        known = len(cool) + len(working) + len(idle)
        if cool and (len(cool) >= 0.5 * known):
            yield Observation("busy_but_cool", [cool[-1], cool[0]], _fields(cool[-1]))
        elif working:
            yield Observation("busy_and_working", [working[-1]], _fields(working[-1]))
        elif idle:
            yield Observation("gpu_idle", [idle[-1]], _fields(idle[-1]))


def _fields(sample: Event) -> dict[str, object]:
    return {name: sample.fields.get(name) for name in ("gpu", "util", "mem_util", "power_w", "power_limit_w")}


def _xids(bundle: Bundle) -> Iterator[Observation]:
    by_gpu: dict[str, list[Event]] = {}
    for event in bundle.events("kernel_log.xid"):
        by_gpu.setdefault(str(event.actor.gpu or event.fields.get("pci")), []).append(event)
    for gpu, xids in by_gpu.items():
        first = min(xids, key=lambda e: (e.span.source, e.span.first_line))
        yield Observation("first_xid", [first], {"code": first.fields.get("code"), "pci": gpu})
        yield from _units(gpu, [e for e in xids if e.fields.get("code") in (13, 31) and e.fields.get("unit")])


INSTANT, EPISODE = 5.0, 60.0
"""Seconds within which faults belong to one instant; seconds of quiet after which a new run of the program begins."""
MOST_IN_BURST = 200


def _units(gpu: str, faults: list[Event]) -> Iterator[Observation]:
    """Faults spread over many SMs at once (a program), and faults that come back to one unit (a card)."""
    named = [e for e in faults if not str(e.fields["unit"]).startswith("ESR ")]
    faults = named or faults  # the register lines repeat what the lines with GPC, TPC and SM say
    shader = [e for e in faults if e.fields.get("code") == 13]
    for index, event in enumerate(shader):
        burst = islice(shader, index, index + MOST_IN_BURST)
        near = {str(e.fields["unit"]) for e in burst if _apart(event, e) <= INSTANT}
        if len(near) >= 4:
            yield Observation("fault_many_units", [event], {"gpu": gpu, "units": len(near)})
            break
    units: dict[str, list[Event]] = {}
    for event in faults:
        units.setdefault(str(event.fields["unit"]), []).append(event)
    if len(units) > 2:
        return
    for unit, mine in units.items():
        runs = [e for i, e in enumerate(mine) if not i or _another_run(mine[i - 1], e)]
        names = {str(e.fields["name"]) for e in runs if e.fields.get("name")}
        # A small kernel lands on the same SM in every run: only other programs speak for the card.
        if len(runs) >= 3 and len(names) >= 2:
            yield Observation("repeated_fault_same_unit", [mine[0], mine[-1]],
                              {"gpu": gpu, "unit": unit, "count": len(mine), "programs": len(names)})


def _apart(earlier: Event, later: Event) -> float:
    """Seconds between two stamps of one clock; zero where they cannot be compared."""
    if earlier.stamp is None or later.stamp is None or earlier.stamp.clock is not later.stamp.clock:
        return 0.0
    return later.stamp.value - earlier.stamp.value


def _another_run(earlier: Event, later: Event) -> bool:
    pids = earlier.fields.get("pid") or earlier.actor.pid, later.fields.get("pid") or later.actor.pid
    return pids[0] != pids[1] if None not in pids else _apart(earlier, later) > EPISODE
