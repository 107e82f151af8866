"""Which process a GPU core dump is of: the host thread it names, found in the stacks or the log of a process.

The dump names one Linux thread of the process as that process saw it: not the launching thread but the driver's event
thread (`cuda-EvtHandlr`; seen in three recordings of driver 580). A stack dump of native threads, or a process list,
of the same container shows the same number; one taken on the host may show another, and then nothing is joined.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.reasoning.bundle import Bundle, Observation
from parsers.event import Event

KINDS = ("cuda_core.kernel", "cuda_core.exception", "cuda_core.trap")


def observe(bundle: Bundle) -> Iterator[Observation]:
    """One observation for each host thread of a kernel or fault whose process is known."""
    first: dict[int, Event] = {}
    for event in bundle.events(*KINDS):
        tid = event.fields.get("tid")
        if isinstance(tid, int):
            first.setdefault(tid, event)
    if not first:
        return
    owners = _owners(bundle, set(first))
    for tid, event in first.items():
        owner = owners.get(tid)
        if owner is None:
            continue
        name = "name" if event.kind == "cuda_core.kernel" else "kernel"
        fields: dict[str, object] = {"tid": tid, "kernel": event.fields.get(name), "gpu": event.actor.gpu}
        fields |= {"pid": owner.actor.pid, "process": owner.actor.process, "thread": owner.fields.get("thread")}
        yield Observation("dump_process", [event, owner], fields)


def _owners(bundle: Bundle, wanted: set[int]) -> dict[int, Event]:
    """The record that names each thread: a stack first, then a line of the process itself."""
    found: dict[int, Event] = {}
    for thread in bundle.events("stacks.thread"):
        tid = thread.fields.get("tid")
        if isinstance(tid, int) and tid in wanted:
            found.setdefault(tid, thread)
    for kind, events in bundle.by_kind.items():
        if kind.startswith("server_log."):
            for event in events:
                if event.actor.pid in wanted:
                    found.setdefault(int(event.actor.pid or 0), event)
    return found
