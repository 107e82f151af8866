"""How far start-up came, and how the log ends."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from analyzer.reasoning.bundle import Bundle, Observation
from analyzer.reasoning.lives import Stop, beginnings, last_life, life_of, stops_of
from analyzer.reasoning.observe.progress import by_source
from parsers.event import Event

DONE = ("api_start", "engine_ready", "first_request")
FATAL = ("server_log.exception", "server_log.engine_dead", "server_log.process_died", "server_log.killed",
         "server_log.usage_error", "server_log.rpc_timeout", "server_log.cuda_error")


def observe(bundle: Bundle) -> Iterator[Observation]:
    """Ready reached, phases and bars left open, an orderly stop, lives without an end, downloads without an end."""
    stops, begun = stops_of(bundle), beginnings(bundle)
    for source, marks in by_source(bundle.events("server_log.phase")):
        yield from _phases(bundle, source, marks, last_life(source, stops, begun))
    told = set()
    for ready in bundle.events("server_log.ready"):
        life = life_of(ready.span, begun)
        if life not in told:
            told.add(life)
            yield Observation("ready_reached", [ready])
    for source, steps in by_source(bundle.events("server_log.shutdown")):
        for stop in stops.get(source, ()):
            mine = [e for e in steps if stop.begins <= e.span.first_line < (stop.next_life or 1 << 62)]
            if stop.whole and mine:
                yield Observation("orderly_stop", [mine[-1], mine[0]])
    yield from _silent_ends(bundle, stops, begun)
    yield from _bars(bundle)
    yield from _downloads(bundle)


def _silent_ends(bundle: Bundle, stops: dict[str, list[Stop]], begun: dict[str, list[int]]) -> Iterator[Observation]:
    """Lives that had become ready and are followed by the next start with neither a stop nor an error in between: the
    server was gone without a word. The telling event is the next start."""
    for source, lives in begun.items():
        for line, following in pairwise(lives):
            up = [e for e in bundle.events("server_log.ready") if _within(e, source, line, following)]
            ended = any(stop.next_life == following for stop in stops.get(source, ())) or any(
                _within(e, source, line, following) for e in bundle.events(*FATAL))
            again = [e for e in bundle.events("server_log.phase") if _within(e, source, following, following + 1)]
            if up and again and not ended:
                lasts = [e for e in bundle.events("server_log.stats") if _within(e, source, line, following)]
                yield Observation("silent_end", [again[0], (lasts or up)[-1]])


def _within(event: Event, source: str, first: int, following: int) -> bool:
    return event.span.source == source and first <= event.span.first_line < following


def _ends_at(bundle: Bundle, source: str) -> int:
    return max((r.last_line.number for r in bundle.reads if r.path == source and r.last_line is not None), default=0)


def _stopped(bundle: Bundle, source: str, after: int) -> bool:
    return any(e.span.source == source and e.span.first_line >= after
               for e in bundle.events(*FATAL, "server_log.shutdown"))


def _phases(bundle: Bundle, source: str, marks: list[Event], begins: int) -> Iterator[Observation]:
    marks = [e for e in marks if e.span.first_line >= begins]
    if any(e.fields.get("phase") in DONE for e in marks) or _ready(bundle, source, marks, begins):
        if not bundle.events("server_log.ready"):
            yield Observation("ready_reached", [next(e for e in marks if e.fields.get("phase") in DONE)])
        return
    last = marks[-1]
    if "captur" in str(last.fields.get("phase")) and _captured(bundle, source):
        return
    if not _stopped(bundle, source, last.span.first_line) and not any(
            e.span.source == source and e.span.first_line >= begins for e in bundle.events("server_log.stats")):
        yield Observation("open_phase", [last], {"phase": last.fields.get("phase"), "process": last.actor.process})


def _ready(bundle: Bundle, source: str, marks: list[Event], begins: int) -> bool:
    """Whether the server that this log belongs to came up. Another log may say so for it (a file for each process),
    but not that of another server: one whose arguments stand in it, where they stand in this one too."""
    ready = bundle.events("server_log.ready")
    if any(e.span.source == source and e.span.first_line >= begins for e in ready):
        return True
    others = {e.span.source for e in ready} - {source}
    if begins:
        return False
    own = [e for e in marks if e.fields.get("phase") == "args"]
    if not own or any("headless" in e.text for e in own):
        return bool(others)
    servers = {e.span.source for e in bundle.events("server_log.phase") if e.fields.get("phase") == "args"}
    return bool(others - servers)


def _captured(bundle: Bundle, source: str) -> bool:
    """Whether the last bar of graph capture is full: a log that ends right there was cut, not stuck in capture."""
    bars = [e for e in bundle.events("server_log.progress_bar")
            if e.span.source == source and e.fields.get("family") == "capture"]
    return bool(bars) and bool(bars[-1].fields.get("finished"))


def _bars(bundle: Bundle) -> Iterator[Observation]:
    for source, bars in by_source(bundle.events("server_log.progress_bar")):
        last = bars[-1]
        end = _ends_at(bundle, source)
        if not last.fields.get("finished") and last.span.last_line >= end - 2 and not _stopped(
                bundle, source, last.span.first_line):
            yield Observation("open_bar", [last], {k: last.fields.get(k) for k in ("bar", "done", "total")})


def _downloads(bundle: Bundle) -> Iterator[Observation]:
    for source, steps in by_source(bundle.events("server_log.download")):
        names = {str(e.fields.get("name")) for e in steps}
        if len(names) >= 5:
            yield Observation("many_downloads", [steps[-1], steps[0]], {"count": len(names)})
        last = steps[-1]
        if last.fields.get("state") != "done" and _ends_at(bundle, source) - last.span.first_line < 40:
            yield Observation("download_without_end", [last, steps[0]], {"name": last.fields.get("name")})
