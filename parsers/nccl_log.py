"""NCCL's own log, PyTorch's collective watchdog, Gloo set-up failures and nccl-tests results, in one text.

NCCL: `host:pid:tid [cudaDev] [file:line] NCCL LEVEL text`, newer releases with `[date time]` in front of a WARN
(nccl/src/debug.cc). PyTorch: `[rank0]:[E1130 20:14:45.294557233 ProcessGroupNCCL.cpp:689] text`, before 2.4 without a
stamp (c10/util/Logging.cpp, ProcessGroupNCCL.cpp). nccl-tests: the table that `*_perf` programs print. Prefixes of
launchers (Ray, torchrun, kubectl, mpirun) may stand in front; NCCL writes in one call, so another program's output
may stand on the same line as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, NamedTuple

from parsers.contract import Line, Trouble
from parsers.event import Actor, Event, fact
from parsers.kernel_log import clock
from parsers.pattern import lazy
from parsers.span import SourceSpan
from parsers.stamp import Stamp

MAX_KEYS = 20_000
"""Different statements of one text that are kept."""
_LEVEL = lazy(r"NCCL (INFO|WARN|TRACE|ERROR) ?")
_ORIGIN = lazy(r"([\w.-]{1,255}):(\d{1,10}):(\d{1,10}) \[(-?\d{1,4})\](?: ([\w/.+-]{1,120}:\d{1,6}))? $")
_ANCHORED = lazy(
    r"(?:\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?\] |\d{1,3}(?:\.\d{1,3}){3}: "
    r"|\[\d{1,5}\]:? ?|\[rank\d{1,5}\]: ?"
    r"|\d{1,5}: |\([A-Za-z_]\w{0,40}(?: [^)]{1,120})?\) ?){0,3}"
    r"[\w.-]{1,255}:\d{1,10}:\d{1,10} \[-?\d{1,4}\](?:"
    r" [\w/.+-]{1,120}:\d{1,6})? NCCL (?:INFO|WARN|TRACE|ERROR)\b"
)
_BARE = lazy(r"(?:[\w/.+-]{1,120}\.\w{1,3}:\d{1,6} )?NCCL (?:WARN|ERROR) \S|NCCL version \d")
# Reporters cut host and process away and leave the place in the source.
_PLACE_ONLY = lazy(r"[\s|>]{0,8}([\w/.+-]{1,120}\.\w{1,3}:\d{1,6}) $")
_DATED = lazy(
    r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?)\] $|\[(\d{4}-\d\d-\d\d"
    r" \d\d:\d\d:\d\d(?:\.\d{1,9})?)\] "
)
# PyTorch writes the month without a leading zero: `E626` is the 26th of June.
_GLOG = lazy(
    r"\[([EWFI])(?:(\d{1,2})(\d\d) (\d\d:\d\d:\d\d)\.(\d{1,9}) )? ?([\w./-]{2,60}\.(?:cpp|hpp|h"
    r"|cc|cu)):(\d{1,6})\] ?(.*)",
    re.DOTALL,
)
_GLOG_START = lazy(
    r"(?:\[(?:rank)?\d{1,5}\]:? ?|\([A-Za-z_]\w{0,40}(?: [^)]{1,120})?\) ?|\s{0,4}\|\s{0,4}){0,3}"
    r"\[[EWFI](?:\d{3,4} \d\d:\d\d:\d\d\.\d{1,9})? ?(?:ProcessGroup\w{2,16}|TCPStore\w{0,12}"
    r"|NCCLUtils|HashStore|FileStore|socket|FlightRecorder\w{0,12})\.\w{2,3}:\d"
)
_RANK_TAG = lazy(r"\[rank(\d{1,5})\]|\bRank (\d{1,5})\]")
_FILES = ("ProcessGroup", "TCPStore", "NCCLUtils", "socket.cpp", "FlightRecorder", "HashStore")

_COMM = lazy(r"\brank (\d{1,6}) nranks (\d{1,6})\b")
_INIT = lazy(r"Init (START|COMPLETE)")
_VERSION = lazy(r"NCCL version (\d[\w.+-]{1,32})")
_SETTING = lazy(r"\b(NCCL_[A-Z0-9_]{2,48}) set by environment to (\S.{0,300})")
_RETURN = lazy(r"[\w/.+-]{1,120}:\d{1,6} -> \d{1,3}\b")
_VIA = lazy(r"\bvia (\S.{1,60}?)(?: comm \S+.*)?$")
_INFO: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("interface", lazy(r"Bootstrap ?: Using (\S{1,120}(?:, dev \S{1,20})?)")),
    ("interface", lazy(r"NET/Socket ?: Using (.{1,200})")),
    ("ib", lazy(r"NET/IB ?: (Using .{1,200}|No device found\.?)")),
    ("network", lazy(r"Using network (\S{1,40})")),
    ("gdr", lazy(r"(GPU Direct RDMA (?:Disabled|Enabled))")),
    ("cuda_driver", lazy(r"cudaDriverVersion (\d{4,6})")),
    ("connected", lazy(r"Connected (all (?:rings|trees)|NVLS tree)")),
    ("finished", lazy(r"- ((?:Destroy|Abort) COMPLETE)")),
    ("mnnvl", lazy(r"MNNVL busId \S+ fabric UUID \S+ cliqueId \S+ (state \d+)")),
    ("topology_file", lazy(r"Loading topology file (\S{1,300})")),
    ("p2p", lazy(r"(P2P is disabled.{0,120}|Could not enable P2P.{0,120}|isAllDirectP2p \d.{0,60})")),
    ("port", lazy(r"(NET/IB ?: .{0,60}[Gg]ot async event.{0,80})")),
)

_TIMEOUT = lazy(
    r"Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(\d{1,12}),"
    r" OpType=(\w{1,32})(?:, NumelIn=(\d{1,18}))?(?:, NumelOut=(\d{1,18}))?"
    r"(?:, Timeout\(ms\)=(\d{1,12}))?\)(?: ran for (\d{1,12}) milliseconds)?"
)
_LAST_WORK = lazy(r"[Ll]ast enqueued (?:NCCL )?work: (-?\d{1,12}), last completed (?:NCCL )?work: (-?\d{1,12})")
_SIGNALLED = lazy(r"due to a collective timeout from\s{1,3}rank (\d{1,6})")
_QUIET = lazy(
    r"destroy_process_group\(\) was not called|Environment variable \S+ is deprecated"
    r"|preparing to dump debug info"
    r"|First PG on this rank to signal|Using (?:non-device|device) (?:mesh"
    r"|as)|Guessing device ID|using GPU \d+ (?:as|to perform)"
)
_SERVER = lazy(
    r"(?:\([A-Za-z_]\w{0,40}(?: [^)]{1,120})?\) ?|\s{0,4}\|\s{0,4}){0,2}(?:INFO|WARNING|ERROR"
    r"|DEBUG|CRITICAL):? {1,5}\S"
)
# Warnings after which NCCL goes on as well as before: no library for cards that are not there, functions that an older
# driver lacks, another order of the rings, Google's socket plugin that asks for a hint.
_HARMLESS = lazy(
    r"Failed to open libibverbs\.so|(?:CUDA )?some PFN functions not found|Could not find a path for pattern \d"
    r"|Cannot get incoming CPU|Maximum retry reached for (?:accept|connect)"
)
_GLOO = lazy(
    r"Gloo connectFullMesh failed with|\[[\w./-]{0,80}gloo/transport/tcp/\w{2,16}\.cc:\d{1,5}\]"
    r"|gloo::\w{2,12}Exception"
)

# Transports beside NCCL that print lines of their own: UCX, Mooncake (glog), NVSHMEM; and NCCL's, its front cut off.
_TRANSPORT = lazy(
    r"\[\d{9,11}\.\d{3,9}\] \[[^\]\n]{1,255}\] {1,16}[\w.-]{1,80}:\d{1,6} {1,8}UCX  (?:ERROR|FATAL) {1,4}\S"
    r"|[EF](?:\d{4}|\d{8}) \d\d:\d\d:\d\d\.\d{1,9} {1,8}\d{1,10} (?:transfer_|rdma_|worker_pool|tcp_transport"
    r"|nvlink_transport|multi_transport)\w{0,40}\.(?:cpp|cc|h):\d{1,6}\] \S"
    r"|[\w./-]{0,200}nvshmem[\w./-]{0,200}:\d{1,6}: (?:non-zero status: -?\d|NULL value )"
    r"|NET/IB ?: Got completion from peer \S{0,120} ?with (?:error|status)"
)

_ROW = lazy(
    r"^\s{1,16}(\d{1,16})\s{1,16}(\d{1,16})\s{1,12}(\w{3,10})\s{1,10}(\w{2,8})\s{1,10}(-?\d{1,6"
    r"})\s{1,10}(.{1,120})$"
)
_OUT_OF_BOUNDS = lazy(r"#\s{0,4}Out of bounds values\s{0,4}:\s{0,4}(\d{1,12})\s{1,4}(OK|FAILED)")
_TEST_FAILED = lazy(r"\S{1,255}: Test (?:NCCL|CUDA) failure \S{1,80}:\d{1,6} '")
_TEST_ECHO = lazy(r" \.\. \S{1,255} pid \d{1,10}: Test failure ")
_BANDWIDTH = lazy(r"#\s{0,4}Avg bus bandwidth\s{0,6}:\s{0,4}(\d{1,12}(?:\.\d{1,8})?)")
_TEST_GPU = lazy(
    r"#\s{1,4}Rank\s{1,6}(\d{1,6}) .{0,24}?Pid\s{1,8}(\d{1,10}) on\s{1,16}(\S{1,255})"
    r" device\s{1,4}(\d{1,3}) \[(\S{2,20})\] (\S.{1,60})"
)


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
    found = _LEVEL.search(text)
    if not found:
        return None
    before, message = text[: found.start()], text[found.end() :]
    origin = _ORIGIN.search(before[-420:])
    if origin is None:
        place = _PLACE_ONLY.match(before[-140:])
        if place is None and before.strip(" |>"):
            return None
        return Said(found[1], message.strip(), place=place[1] if place else None)
    lead = before[: len(before) - len(origin[0])]
    dated = _DATED.search(lead[-64:])
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
            elif "NCCL version" in text and (found := _VERSION.match(text.strip())) and self.once("version", found[1]):
                yield fact("nccl.version", found[1], line.span(self.source), text, stamp=line.outer)
            elif ("pp:" in text or "Watchdog caught" in text) and ("[" in text or "what()" in text):
                yield from self._torch(line, text)
            elif "gloo" in text or "Gloo" in text:
                yield from self._gloo(line, text)
            elif ("UCX  " in text or "] " in text or "nvshmem" in text or "NET/IB" in text) and (
                found := _TRANSPORT.search(text)
            ):
                fields = {"message": text[found.start() :].strip()}
                yield Event("collective.nccl_warn", line.span(self.source), text, line.outer, Actor(), fields)
            elif "Test " in text and " failure " in text and _TEST_FAILED.match(text):
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
        if comm := _COMM.search(said.message):
            self.ranks.setdefault(where, int(comm[1]))
        rank = self.ranks.get(where)
        actor = Actor(pid=said.pid, rank=rank, host=said.host or line.host)
        if said.level == "WARN" and _HARMLESS.match(said.message):
            if self.once("harmless", said.message[:60]):
                fields = {"what": "harmless", "value": said.message}
                yield Event("collective.nccl_info", span, text, stamp, actor, fields)
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
        if (setting := _SETTING.search(said.message)) and self.once(setting[1], setting[2]):
            yield fact(f"env.{setting[1]}", setting[2].strip().removesuffix("."), span, text, stamp=stamp, actor=actor)
            return
        if (version := _VERSION.search(said.message)) and self.once("version", version[1]):
            yield fact("nccl.version", version[1], span, text, stamp=stamp, actor=actor)
            return
        if comm and (step := _INIT.search(said.message)):
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
        if found := _RETURN.match(message):
            return "return", found[0]
        if " via " in message and (found := _VIA.search(message)):
            return "transport", found[1]
        for what, pattern in _INFO:
            if found := pattern.search(message):
                return what, found[1].strip()
        return None, None

    def _torch(self, line: Line, text: str) -> Iterator[Event]:
        found = _GLOG.search(text)
        message = found[8] if found else text
        if found and not found[6].rpartition("/")[2].startswith(_FILES):
            return
        tagged = _RANK_TAG.search(text)
        rank = int(tagged[1] or tagged[2]) if tagged else None
        stamp = line.outer
        if found and found[2]:
            written = f"{found[2]}{found[3]} {found[4]}.{found[5]}"
            stamp = _month_day(written, int(found[2]), int(found[3]), found[4], found[5]) or stamp
        span = line.span(self.source)
        actor = Actor(rank=rank, host=line.host)
        if work := _TIMEOUT.search(message):
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
        if not found or _QUIET.search(message) or not (found[1] in "EFW" or _LAST_WORK.search(message)):
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
        work = _LAST_WORK.search(message)
        if work is None or rank is None:
            return
        enqueued, completed = int(work[1]), int(work[2])
        late = [seq for other, seq, _ in self.timeouts if other != rank]
        signalled = _SIGNALLED.search(message)
        behind = (signalled is not None and int(signalled[1]) != rank and enqueued == completed) or (
            bool(late) and enqueued < min(late) and not any(other == rank for other, _, _ in self.timeouts)
        )
        if behind and self.once("behind", str(rank)):
            op = next((name for _, seq, name in self.timeouts if seq == enqueued + 1), None)
            fields = _known({"rank": rank, "seq": enqueued, "op": op})
            yield Event("collective.rank_behind", span, text, stamp, actor, fields)

    def _gloo(self, line: Line, text: str) -> Iterator[Event]:
        found = _GLOO.search(text)
        if found and ("rror" in text or "failed" in text or "refused" in text or "Timed out" in text):
            tagged = _RANK_TAG.search(text)
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
        if gpu := _TEST_GPU.match(text):
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
        elif found := _OUT_OF_BOUNDS.match(text):
            self.result = Event(
                "collective.result",
                span,
                text,
                line.outer,
                Actor(host=line.host),
                {"wrong": max(int(found[1]), self.wrong)},
            )
        elif found := _BANDWIDTH.match(text):
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
        elif row := _ROW.match(text):
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
            elif _GLOG_START.match(text):
                watchdog += 1
            elif text.startswith("#") and ("nThread" in text or "Collective test" in text or "Avg bus" in text):
                own += 2
            elif _ROW.match(text) or _TEST_FAILED.match(text) or _TEST_ECHO.match(text):
                table += 1
            elif text.startswith("#"):
                heads += 1
            else:
                other += 1
                server += bool(_SERVER.match(text))
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
            _ANCHORED.match(text) or _BARE.match(text) or _GLOG_START.match(text) or _TRANSPORT.match(text[:1200])
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
