"""NVLink as `nvidia-smi nvlink` shows it: `-s` (state and speed of each link), `-e` and `-ec` (error counters).

Layout (nvidia-smi nvlink -h, driver 470 and later): `GPU 0: NAME (UUID: …)`, then `Link N: 26.562 GB/s`,
`Link N: <inactive>`, or `Link N: Replay Errors: 0` and its kin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from parsers.contract import Line
from parsers.event import Actor, Event
from parsers.nvidia_smi import topology
from parsers.nvidia_smi.device import Found
from parsers.pattern import lazy

GPU = lazy(r"GPU (?P<index>\d{1,3}): .{3,120}\(UUID: ")
STATE = lazy(
    r"\s{1,8}Link (?P<link>\d{1,3}): (?:(?P<speed>\d+(?:\.\d+)?) GB/s|<?(?P<off>inactive|down"
    r"|disabled)>?)\s*$"
)
COUNTER = lazy(
    r"\s{1,8}Link (?P<link>\d{1,3})(?:: |, )(?P<name>[A-Z][\w /()-]{2,60}?)(?: Errors?"
    r"| Count)?(?: \d)?: (?P<count>\d{1,20})\s*$"
)
MOST = 5_000


def is_row(text: str) -> bool:
    """Whether a line is a link's state or counter."""
    return bool(STATE.match(text) or COUNTER.match(text))


def read(lines: Sequence[Line], source: str) -> Iterator[Found]:
    """The GPUs as facts; `gpu_samples.nvlink` for every link that is down and every counter above 0, and one for each
    GPU with how many of its links are up."""
    yield from topology.read_list([line for line in lines if GPU.match(line.text)], source)
    index: str | None = None
    up: list[tuple[Line, float]] = []
    told = 0
    for line in lines:
        found = GPU.match(line.text)
        if found:
            yield from _summary(index, up, source)
            index, up = found["index"], []
            continue
        state = STATE.match(line.text)
        if state and state["speed"]:
            up.append((line, float(state["speed"])))
            continue
        counter = None if state else COUNTER.match(line.text)
        if told >= MOST or (counter and int(counter["count"]) == 0) or (state is None and counter is None):
            continue
        told += 1
        fields = (
            {"gpu": index, "link": int(state["link"]), "state": "down"}
            if state
            else {"gpu": index, "link": int(counter["link"]), "error": counter["name"], "count": int(counter["count"])}  # type: ignore[index]
        )
        yield Event("gpu_samples.nvlink", line.span(source), line.text, line.outer, Actor(gpu=index), fields)
    yield from _summary(index, up, source)


def _summary(index: str | None, up: list[tuple[Line, float]], source: str) -> Iterator[Event]:
    if up:
        line, slowest = min(up, key=lambda one: one[1])
        fields = {"gpu": index, "state": "up", "links": len(up), "speed": slowest}
        yield Event("gpu_samples.nvlink", line.span(source), line.text, line.outer, Actor(gpu=index), fields)
