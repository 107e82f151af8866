"""The lives of a server in one log: a start, an orderly stop, perhaps another start.

What stands between the first step of a stop and the next start belongs to that stop (killed workers, leak lists,
aborted requests) and is no trouble of its own. What comes after the next start is a new life, of which an old one
proves nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from analyzer.reasoning.bundle import Bundle
from parsers.event import Event
from parsers.span import SourceSpan

# Marks with which a start begins.
STARTS = ("args", "config", "engine_init")
# Who says that the whole server is being stopped; an engine or a worker that gets a signal is not the server.
WHOLE = ("API server", "uvicorn", "MPClient", "Process manager", "executor", "signal", "tokenizer")
PARTS = ("EngineCore", "Worker")


class Stop(NamedTuple):
    """Lines of one stop: the first step, the line on which the next life begins (0: none), the first step of the
    server as a whole (0: only parts of it were stopped)."""

    begins: int
    next_life: int
    whole: int


def stops_of(bundle: Bundle) -> dict[str, list[Stop]]:
    """The stops of each source, in order."""
    steps: dict[str, list[Event]] = {}
    for event in bundle.events("server_log.shutdown"):
        steps.setdefault(event.span.source, []).append(event)
    starts: dict[str, list[int]] = {}
    for event in bundle.events("server_log.phase"):
        if event.fields.get("phase") in STARTS:
            starts.setdefault(event.span.source, []).append(event.span.first_line)
    found: dict[str, list[Stop]] = {}
    for source, mine in steps.items():
        mine.sort(key=lambda one: one.span.first_line)
        after = 0
        while rest := [one for one in mine if one.span.first_line > after]:
            begins = rest[0].span.first_line
            following = min((line for line in starts.get(source, ()) if line > begins), default=0)
            whole = next((one.span.first_line for one in rest if _of_the_whole(one)), 0)
            found.setdefault(source, []).append(Stop(begins, following, 0 if 0 < following <= whole else whole))
            if not following:
                break
            after = following
    return found


def _of_the_whole(step: Event) -> bool:
    who, process = step.fields.get("who"), str(step.actor.process or "")
    if who == "Process manager" and process.startswith("APIServer"):
        return False  # an API server says so before; without that it clears away after a death
    return who in WHOLE and not process.startswith(PARTS)


def belongs_to_stop(event: Event, stops: dict[str, list[Stop]]) -> bool:
    """Whether the event is part of an orderly stop. A refused command line never is, and a lost engine is not while
    nobody stopped the whole server."""
    if event.kind == "server_log.usage_error":
        return False
    line = event.span.first_line
    for stop in stops.get(event.span.source, ()):
        if line >= stop.begins and not 0 < stop.next_life <= line:
            return event.kind != "server_log.engine_dead" or 0 < stop.whole <= line
    return False


def last_life(source: str, stops: dict[str, list[Stop]], begun: dict[str, list[int]]) -> int:
    """The line on which the last life of a source begins; 0 where the log shows no earlier life."""
    return max([stop.next_life for stop in stops.get(source, ())] + begun.get(source, [0])[-1:])


def beginnings(bundle: Bundle) -> dict[str, list[int]]:
    """The lines on which the lives of each server's log begin, the first one at 0. Only for sources in which a server
    prints its arguments: the log of a single worker belongs to whoever started it.

    A process prints its arguments once, so the second time in one log is the next start.
    """
    found: dict[str, list[int]] = {}
    seen: dict[str, dict[str, Event]] = {}
    marks = [event for event in bundle.events("server_log.phase") if event.fields.get("phase") == "args"]
    for mark in sorted(marks, key=lambda one: (one.span.source, one.span.first_line)):
        lives, mine = found.setdefault(mark.span.source, [0]), seen.setdefault(mark.span.source, {})
        name = str(mark.actor.process or "")
        before = mine.get(name)
        if before is not None and mark.span.first_line - before.span.first_line > 3:
            lives.append(mark.span.first_line)
            mine.clear()
        mine[name] = mark
    return found


Life = tuple[str, int]
"""A source and the line on which one life of its server begins."""


def life_of(span: SourceSpan, begun: dict[str, list[int]]) -> Life | None:
    """Which server, and which life of it, a record belongs to; None for what belongs to no single server (a kernel
    log, stacks, the log of one worker)."""
    lives = begun.get(span.source)
    if lives is None:
        return None
    return span.source, max(line for line in lives if line <= max(span.first_line, 0))
