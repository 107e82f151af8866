"""What a parser yields: typed events, each tied to the record it was read from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from parsers.span import SourceSpan
from parsers.stamp import Stamp


class Actor(NamedTuple):
    """Who an event is about, as far as the record says.

    `process` is the role as printed (`EngineCore`, `Worker_TP0`, `APIServer`), `gpu` a PCI address in the form
    `0000:41:00` (domain:bus:device, lower case) or an index as text, `host` a node name.
    """

    process: str | None = None
    pid: int | None = None
    rank: int | None = None
    gpu: str | None = None
    host: str | None = None


NOBODY = Actor()


@dataclass(slots=True)
class Event:
    """One thing that a record says.

    `kind` is `<artifact kind>.<what>` (`kernel_log.xid`, `server_log.kernel_selected`) or `fact`; every kind and its
    fields are listed in `rules/vocabulary.toml`. `text` is the record as it stands (undecoded bytes as `\\xNN`,
    colour codes kept out), which is what a report quotes.
    """

    kind: str
    span: SourceSpan
    text: str
    stamp: Stamp | None = None
    actor: Actor = NOBODY
    fields: dict[str, Any] = field(default_factory=dict)


def fact(
    name: str, value: str, span: SourceSpan, text: str, *, stamp: Stamp | None = None, actor: Actor = NOBODY
) -> Event:
    """A statement about the machine or the software: `gpu.name`, `vllm.version`, `env.NCCL_DEBUG` …

    The names are those of `rules/vocabulary.toml`; the value is kept as printed.
    """
    return Event("fact", span, text, stamp, actor, {"name": name, "value": value})
