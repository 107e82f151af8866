"""NCCL's own log, PyTorch's collective watchdog, Gloo set-up failures and nccl-tests results, in one text.

NCCL: `host:pid:tid [cudaDev] [file:line] NCCL LEVEL text`, newer releases with `[date time]` in front of a WARN
(nccl/src/debug.cc). PyTorch: `[rank0]:[E1130 20:14:45.294557233 ProcessGroupNCCL.cpp:689] text`, before 2.4 without a
stamp (c10/util/Logging.cpp, ProcessGroupNCCL.cpp). nccl-tests: the table that `*_perf` programs print. Prefixes of
launchers (Ray, torchrun, kubectl, mpirun) may stand in front; NCCL writes in one call, so another program's output
may stand on the same line as well. Errors of UCX, Mooncake and NVSHMEM are read as warnings of the same kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, NamedTuple

from parsers.contract import Line, Trouble
from parsers.event import Actor, Event, fact
from parsers.kernel_log import clock
from parsers.nccl_lines import (
    ANCHORED,
    BANDWIDTH,
    BARE,
    COMM,
    DATED,
    FILES,
    GLOG,
    GLOG_START,
    GLOO,
    HARMLESS,
    INFO,
    INIT,
    LAST_WORK,
    LEVEL,
    ORIGIN,
    OUT_OF_BOUNDS,
    PLACE_ONLY,
    QUIET,
    RANK_TAG,
    RETURN,
    ROW,
    SERVER,
    SETTING,
    SIGNALLED,
    TEST_ECHO,
    TEST_FAILED,
    TEST_GPU,
    TIMEOUT,
    TRANSPORT,
    VERSION,
    VIA,
)
from parsers.span import SourceSpan
from parsers.stamp import Stamp

MAX_KEYS = 20_000
"""Different statements of one text that are kept."""


class Said(NamedTuple):
    """One NCCL line taken apart. `device` is the CUDA device number, not the rank."""

    level: str
    message: str
    host: str | None = None
    pid: int | None = None
    device: int | None = None
    place: str | None = None
    stamp: Stamp | None = None


def take_apart(text: str) -> Said | None:
    """NCCL's part of a line, whatever stands before it; None when NCCL did not speak."""
    found = LEVEL.search(text)
    if not found:
        return None
    before, message = text[: found.start()], text[found.end() :]
    origin = ORIGIN.search(before[-420:])
    if origin is None:
        place = PLACE_ONLY.match(before[-140:])
        if place is None and before.strip(" |>"):
            return None
        return Said(found[1], message.strip(), place=place[1] if place else None)
    lead = before[: len(before) - len(origin[0])]
    dated = DATED.search(lead[-64:])
    stamp = clock.iso(dated[1] or dated[2]) if dated else None
    return Said(found[1], message.strip(), origin[1], int(origin[2]), int(origin[4]), origin[5], stamp)


def _known(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


class _Reading:
    """One pass over a text: which process has which rank, and what was said already."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.ranks: dict[tuple[str | None, int | None, int | None], int] = {}
        self.seen: set[tuple[str, ...]] = set()
        self.left_out = 0
        self.timeouts: set[tuple[int | None, int, str]] = set()
        self.wrong = 0
        self.result: Event | None = None

    def once(self, *key: str) -> bool:
        """True the first time only."""
        if key in self.seen:
            return False
        if len(self.seen) >= MAX_KEYS:
            self.left_out += 1
            return False
        self.seen.add(key)
        return True

    def read(self, lines: Iterable[Line]) -> Iterator[Event]:
        for line in lines:
            text = line.text
            if "NCCL" in text and (said := take_apart(text)) is not None:
                yield from self._nccl(line, said)
            elif "NCCL version" in text and (found := VERSION.match(text.strip())) and self.once("version", found[1]):
                yield fact("nccl.version", found[1], line.span(self.source), text, stamp=line.outer)
            elif ("pp:" in text or "Watchdog caught" in text) and ("[" in text or "what()" in text):
                yield from self._torch(line, text)
            elif "gloo" in text or "Gloo" in text:
                yield from self._gloo(line, text)
            elif ("UCX  " in text or "] " in text or "nvshmem" in text or "NET/IB" in text) and (
                found := TRANSPORT.search(text)
            ):
                fields = {"message": text[found.start() :].strip()}
                yield Event("collective.nccl_warn", line.span(self.source), text, line.outer, Actor(), fields)
            elif "Test " in text and " failure " in text and TEST_FAILED.match(text):
                fields = {"message": text.strip()}
                yield Event("collective.nccl_warn", line.span(self.source), text, line.outer, Actor(), fields)
            elif text.startswith("#") or (text[:1] == " " and "  " in text[1:]):
                yield from self._table(line, text)
        if self.result is not None:
            yield self.result

    def _nccl(self, line: Line, said: Said) -> Iterator[Event]:
        span, text = line.span(self.source), line.text
        stamp = said.stamp or line.outer
        where = (said.host, said.pid, said.device)
        if comm := COMM.search(said.message):
            self.ranks.setdefault(where, int(comm[1]))
        rank = self.ranks.get(where)
        actor = Actor(pid=said.pid, rank=rank, host=said.host or line.host)
        if said.level == "WARN" and HARMLESS.match(said.message):
            if self.once("harmless", said.message[:60]):
                told = {"what": "harmless", "value": said.message}
                yield Event("collective.nccl_info", span, text, stamp, actor, told)
            return
        if said.level in ("WARN", "ERROR"):
            fields = {
                "message": said.message,
                "rank": rank,
                "host": said.host,
                "device": said.device,
                "place": said.place,
            }
            yield Event("collective.nccl_warn", span, text, stamp, actor, _known(fields))
            return
        if (setting := SETTING.search(said.message)) and self.once(setting[1], setting[2]):
            yield fact(f"env.{setting[1]}", setting[2].strip().removesuffix("."), span, text, stamp=stamp, actor=actor)
            return
        if (version := VERSION.search(said.message)) and self.once("version", version[1]):
            yield fact("nccl.version", version[1], span, text, stamp=stamp, actor=actor)
            return
        if comm and (step := INIT.search(said.message)):
            yield Event(
                "collective.nccl_init",
                span,
                text,
                stamp,
                actor,
                {"step": step[1].lower(), "rank": int(comm[1]), "nranks": int(comm[2])},
            )
            return
        what, value = self._telling(said)
        if what and value and self.once(what, value, str(rank) if what in ("connected", "finished", "return") else ""):
            yield Event("collective.nccl_info", span, text, stamp, actor, {"what": what, "value": value})

    def _telling(self, said: Said) -> tuple[str | None, str | None]:
        message = said.message
        if found := RETURN.match(message):
            return "return", found[0]
        if " via " in message and (found := VIA.search(message)):
            return "transport", found[1]
        for what, pattern in INFO:
            if found := pattern.search(message):
                return what, found[1].strip()
        return None, None

    def _torch(self, line: Line, text: str) -> Iterator[Event]:
        found = GLOG.search(text)
        message = found[8] if found else text
        if found and not found[6].rpartition("/")[2].startswith(FILES):
            return
        tagged = RANK_TAG.search(text)
        rank = int(tagged[1] or tagged[2]) if tagged else None
        stamp = line.outer
        if found and found[2]:
            written = f"{found[2]}{found[3]} {found[4]}.{found[5]}"
            stamp = _month_day(written, int(found[2]), int(found[3]), found[4], found[5]) or stamp
        span = line.span(self.source)
        actor = Actor(rank=rank, host=line.host)
        if work := TIMEOUT.search(message):
            seq, op = int(work[1]), work[2]
            if (rank, seq, op) in self.timeouts:
                return
            self.timeouts.add((rank, seq, op))
            fields = {
                "op": op,
                "seq": seq,
                "rank": rank,
                "timeout_ms": int(work[5]) if work[5] else None,
                "numel": int(work[3]) if work[3] else None,
                "ran_ms": int(work[6]) if work[6] else None,
            }
            yield Event(
                "collective.watchdog_timeout",
                span,
                text,
                stamp,
                actor,
                _known(fields),
            )
            return
        if not found or QUIET.search(message) or not (found[1] in "EFW" or LAST_WORK.search(message)):
            return
        fields = {"message": message.strip(), "place": f"{found[6]}:{found[7]}", "rank": rank}
        yield Event("collective.nccl_warn", span, text, stamp, actor, _known(fields))
        yield from self._behind(message, rank, span, text, stamp, actor)

    def _behind(
        self, message: str, rank: int | None, span: SourceSpan, text: str, stamp: Stamp | None, actor: Actor
    ) -> Iterator[Event]:
        """A rank whose last work lies before the one that timed out elsewhere never arrived at it.

        "Received a dump signal … from rank N" with nothing in flight says so about the speaker itself.
        """
        work = LAST_WORK.search(message)
        if work is None or rank is None:
            return
        enqueued, completed = int(work[1]), int(work[2])
        late = [seq for other, seq, _ in self.timeouts if other != rank]
        signalled = SIGNALLED.search(message)
        behind = (signalled is not None and int(signalled[1]) != rank and enqueued == completed) or (
            bool(late) and enqueued < min(late) and not any(other == rank for other, _, _ in self.timeouts)
        )
        if behind and self.once("behind", str(rank)):
            op = next((name for _, seq, name in self.timeouts if seq == enqueued + 1), None)
            fields = _known({"rank": rank, "seq": enqueued, "op": op})
            yield Event("collective.rank_behind", span, text, stamp, actor, fields)

    def _gloo(self, line: Line, text: str) -> Iterator[Event]:
        found = GLOO.search(text)
        if found and ("rror" in text or "failed" in text or "refused" in text or "Timed out" in text):
            tagged = RANK_TAG.search(text)
            rank = int(tagged[1] or tagged[2]) if tagged else None
            message = text[found.start() :].strip()
            yield Event(
                "collective.nccl_warn",
                line.span(self.source),
                text,
                line.outer,
                Actor(rank=rank, host=line.host),
                _known({"message": message, "rank": rank}),
            )

    def _table(self, line: Line, text: str) -> Iterator[Event]:
        span = line.span(self.source)
        if gpu := TEST_GPU.match(text):
            rank, pid, host, _, address, name = gpu.groups()
            self.ranks.setdefault((host, int(pid), int(gpu[4])), int(rank))
            yield fact(
                "gpu.name",
                name.strip(),
                span,
                text,
                stamp=line.outer,
                actor=Actor(gpu=address.lower().removesuffix(".0"), rank=int(rank), host=host),
            )
        elif found := OUT_OF_BOUNDS.match(text):
            self.result = Event(
                "collective.result",
                span,
                text,
                line.outer,
                Actor(host=line.host),
                {"wrong": max(int(found[1]), self.wrong)},
            )
        elif found := BANDWIDTH.match(text):
            wrong = self.result.fields["wrong"] if self.result else self.wrong
            self.result = None
            yield Event(
                "collective.result",
                span,
                text,
                line.outer,
                Actor(host=line.host),
                {"wrong": wrong, "bandwidth": float(found[1])},
            )
            self.wrong = 0
        elif row := ROW.match(text):
            # time, algbw, busbw, #wrong once out of place and once in place
            columns = row[6].split()
            for at in (3, 7):
                if len(columns) > at and columns[at].isdecimal():
                    self.wrong += int(columns[at])


def _month_day(written: str, month: int, day: int, time: str, fraction: str) -> Stamp | None:
    return clock.wall(written, f"{month}月", str(day), time, fraction)


class NcclLog:
    """Reads collective-communication logs (see the module)."""

    name: ClassVar[str] = "nccl_log"
    kind: ClassVar[str] = "collective"
    marks: ClassVar[tuple[bytes, ...]] = (
        b"NCCL WARN", b"NCCL ERROR", b"set by environment",
        b"Init START", b"Init COMPLETE", b"NCCL version", b"Watchdog caught",
        b"ProcessGroupNCCL", b"ProcessGroupGloo", b"TCPStore.cpp",
        b"socket.cpp", b"NCCLUtils", b"connectFullMesh", b"gloo/transport",
        b"gloo::", b" via ", b"Bootstrap", b"NET/", b"Using network",
        b"GPU Direct RDMA", b"Connected all", b"COMPLETE", b" -> 1", b" -> 2",
        b" -> 3", b" -> 4", b" -> 5", b" -> 6", b" -> 7", b" -> 8", b" -> 9", b"# Out of bounds", b"# Avg bus",
        b": Test NCCL failure", b": Test CUDA failure", b"UCX  ERROR", b"UCX  FATAL", b"transfer_", b"rdma_",
        b"worker_pool", b"tcp_transport", b"nvlink_transport", b"multi_transport", b"non-zero status", b"NULL value",
        b"#  Rank", b"MNNVL", b"P2P is disabled", b"FlightRecorder", b"HashStore", b"cudaDriverVersion",
        b"Loading topology file", b"isAllDirectP2p", b"enable P2P",
    )  # fmt: skip

    def sniff(self, head: str) -> float:
        """By the share of lines that NCCL, the watchdog or a collective test wrote."""
        own = watchdog = other = server = table = heads = 0
        for text in head.split("\n")[:600]:
            if not text.strip():
                continue
            if "NCCL" in text and take_apart(text) is not None:
                own += 1
            elif GLOG_START.match(text):
                watchdog += 1
            elif text.startswith("#") and ("nThread" in text or "Collective test" in text or "Avg bus" in text):
                own += 2
            elif ROW.match(text) or TEST_FAILED.match(text) or TEST_ECHO.match(text):
                table += 1
            elif text.startswith("#"):
                heads += 1
            else:
                other += 1
                server += bool(SERVER.match(text))
        if table >= 3:  # a table of a collective test, of which the reporter may have cut the head and the end
            own += table + heads
        else:
            other += table + heads
        total = own + watchdog + other
        if not total or not (own or watchdog):
            return 0.0
        share = (own + watchdog) / total
        if server and (not own or server * 20 > own):  # a server's log in which NCCL or the watchdog speaks too
            return min(0.5, share)
        if share >= 0.5:
            return 0.95
        if share >= 0.25 and own:
            return 0.6
        return 0.2 if share >= 0.05 else 0.1

    def claims(self, text: str) -> bool:
        """NCCL's own prefix, the watchdog's, or a bare `NCCL WARN`, at the start of the line."""
        return bool(
            ANCHORED.match(text) or BARE.match(text) or GLOG_START.match(text) or TRANSPORT.match(text[:1200])
        )

    def read(self, lines: Iterable[Line], source: str) -> Iterator[Event | Trouble]:
        """Events in the order of the lines; a line that only repeats what was said before yields none."""
        reading = _Reading(source)
        yield from reading.read(lines)
        if reading.left_out:
            yield Trouble(source, "limit", f"more than {MAX_KEYS} statements: {reading.left_out} were left out")

    def inspect(self, lines: Iterable[Line], source: str) -> dict[str, Any]:
        """`{"lines", "version", "ranks", "inits", "settings", "transports", "interfaces", "warnings", "timeouts",
        "behind", "results"}`."""
        count = 0

        def counted() -> Iterator[Line]:
            nonlocal count
            for line in lines:
                count += 1
                yield line

        events = list(_Reading(source).read(counted()))

        def rows(kind: str) -> list[dict[str, Any]]:
            return [
                {"time": event.stamp.text if event.stamp else None, "line": event.span.first_line, **event.fields}
                for event in events
                if event.kind == kind
            ]

        facts = {event.fields["name"]: event.fields["value"] for event in events if event.kind == "fact"}
        infos = rows("collective.nccl_info")
        inits = rows("collective.nccl_init")
        return {
            "lines": count,
            "version": facts.get("nccl.version"),
            "ranks": sorted({row["rank"] for row in inits}),
            "inits": inits,
            "settings": {name.removeprefix("env."): value for name, value in facts.items() if name.startswith("env.")},
            "transports": sorted({row["value"] for row in infos if row["what"] == "transport"}),
            "interfaces": sorted({row["value"] for row in infos if row["what"] in ("interface", "ib", "network")}),
            "warnings": rows("collective.nccl_warn"),
            "timeouts": rows("collective.watchdog_timeout"),
            "behind": rows("collective.rank_behind"),
            "results": rows("collective.result"),
        }


PARSER = NcclLog()
