"""Processes and their limits: /proc/PID/status, ps, top, thread lists, docker inspect, kubectl describe, ulimit, df,
/proc/PID/stack and /proc/PID/wchan.

Process states are the kernel's letters (proc(5)): R running, S sleeping, D uninterruptible, T stopped, Z zombie.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from parsers.cluster_state import DESCRIBED
from parsers.collect_env import ENVIRONMENT_PREFIX, SECRET
from parsers.contract import Line, Trouble
from parsers.event import Actor, Event, fact
from parsers.pattern import lazy
from parsers.stacks.model import role
from parsers.stamp import Stamp
from parsers.wallclock import ctime, iso

MAX_ROWS = 20_000
MAX_JSON = 4 * 1024 * 1024

STATUS_STATE = lazy(r"State:\s+(?P<state>[RSDTtZXIPKW])\b")
STATUS_PAIR = lazy(
    r"(?P<key>Name|Pid|PPid|Tgid|TracerPid|Threads|VmRSS|VmHWM|VmLck|CoreDumping):\s+(?P<value>\S+)"
)
PS_HEADER = lazy(
    r"\s*(?:USER|UID|F|S|PID|PPID|LWP|SPID|%CPU|TTY|STAT?|WCHAN|COMMAND|CMD|TIME|COMM)(?:\s+[%A-Z+]+){2,}\s*$"
)
TOP_TITLE = lazy(r"top - \d\d:\d\d:\d\d up ")
AUX_ROW = lazy(
    r"(?P<user>[\w+.-]{1,32})\s+(?P<pid>\d{1,8})\s+(?P<cpu>\d+(?:\.\d+)?)\s+(?P<mem>\d+(?:\.\d+)?)\s+\d+\s+\d+\s+(?P<tty>\S+)\s+"
    r"(?P<state>[RSDTtZXI][\w<+]{0,6})\s+(?P<start>\S+)\s+(?P<time>[\d:.-]+)\s+(?P<name>\S.*)$"
)
TASK_ROW = lazy(r"(?P<name>\S.{0,40}?) wchan=(?P<wchan>\S+) state=(?P<state>[RSDTtZXI])\s*$")
STAT_ROW = lazy(
    r"(?:(?P<comm>\S+) )?(?:(?P<wchan>\w[\w.]*) )?(?P<pid>\d{1,8}) \((?P<name>[^)]{1,64})\) "
    r"(?P<state>[RSDTtZXI]) \d+ \d+ "
)
PROC_STACK = lazy(r"\[<(?:0|[0-9a-f]{8,16})>\] (?P<function>[\w.]+)(?:\+0x[0-9a-f]+/0x[0-9a-f]+)?")
DF_ROW = lazy(
    r"(?P<device>\S+)\s+(?P<size>\d+(?:\.\d+)?[KMGTP]?i?)\s+(?P<used>\d+(?:\.\d+)?[KMGTP]?i?)\s+(?P<free>\d+(?:\.\d+)?[KMGTP]?i?)\s+"
    r"(?P<share>\d{1,3})%\s+(?P<mount>/\S*)"
)
DU_ROW = lazy(r"(?P<size>\d+(?:\.\d+)?[KMGTP])\s+(?P<path>\.{0,2}/?\S*)\s*$")
ULIMIT_ROW = lazy(
    r"(?P<name>[a-z][a-z ]{3,40}?)\s+\((?P<unit>[a-z0-9, -]{1,40})-(?P<flag>\w)\)\s+(?P<value>unlimited|\d+)\s*$"
)
LIMITS_ROW = lazy(
    r"Max (?P<name>[a-z][a-z -]{2,30}?)\s{2,}(?P<soft>unlimited|\d+)\s+(?P<hard>unlimited|\d+)(?:\s+(?P<unit>\w+))?\s*$"
)
CONTAINER_PAIR = lazy(
    r'\s*"?(?P<key>ExitCode|OOMKilled|Status|Error|FinishedAt|StartedAt|RestartCount|Dead)"?\s*:\s*(?P<value>.+?),?\s*$'
)
CONTAINER_CODE = lazy(r'\s*"(?:ExitCode|OOMKilled)"\s*:|\s*(?:ExitCode|OOMKilled)\s*[:=]')
CONTAINER_NAME = lazy(r'\s*"Name"\s*:\s*"/?(?P<name>[^"]+)"')
KUBE_PAIR = lazy(
    r"\s+(?P<key>State|Last State|Reason|Exit Code|Restart Count|Message|Signal|Finished|Started):\s*(?P<value>.*)$"
)
KUBE_CONTAINER = lazy(r"  (?P<name>[a-z0-9][\w.-]{0,80}):\s*$")
KUBE_NAME = lazy(r"Name:\s+(?P<name>[a-z0-9][\w.-]*)\s*$")
FREE_ROW = lazy(
    r"(?P<what>Mem|Swap):\s+(?P<total>\d+(?:\.\d+)?\w{0,2})\s+(?P<used>\d+(?:\.\d+)?\w{0,2})\s+(?P<free>\d+(?:\.\d+)?\w{0,2})"
)
SHM = lazy(r'\s*"?Shm_?[sS]ize"?\s*[:=]\s*"?(?P<value>\d+\w*)')
COMMAND_LINE = lazy(
    r"(?:[\w@:~/.-]{0,60}[$#] ?)\s*(?P<command>ps|top|df|du|ulimit|cat /proc|docker|kubectl|free)\b"
)
KUBE_LIMIT = lazy(r"\s{4,}(?P<name>memory|cpu|nvidia\.com/[\w.-]{1,40}|ephemeral-storage"
r"|hugepages-\w{1,10}):\s+(?P<value>\S{1,40})$")
KUBE_VARIABLE = lazy(r"\s{4,}(?P<name>[A-Z][A-Z0-9_]{2,80}):\s{2,}(?P<value>\S.{0,400})$")
DOCKER_VARIABLE = lazy(r'\s*"(?P<name>[A-Z][A-Z0-9_]{2,80})=(?P<value>[^"]{0,400})",?$')
WCHAN = lazy(r"[a-z_][a-z0-9]*(?:_[a-z0-9]+){1,8}(?:\.[a-z]+\.\d+)?$")
JSON_TITLES = lazy(r'\s*\{\s*"\d{1,8}"\s*:\s*"')


def _letter(state: str) -> str:
    return {"t": "T", "I": "S", "X": "Z"}.get(state[0], state[0])


class _Reading:
    """The walk over the lines."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.columns: list[str] = []
        self.stamp: Stamp | None = None
        self.status: dict[str, tuple[str, Line]] = {}
        self.container: dict[str, tuple[str, Line]] = {}
        self.kube: dict[str, tuple[str, Line]] = {}
        self.kube_name: str | None = None
        self.pod: str | None = None
        self.rows = 0
        self.stack: list[tuple[str, Line]] = []
        self.in_limits = False

    def walk(self, lines: Iterable[Line]) -> Iterator[Event | Trouble]:
        text_lines: list[Line] = []
        stream = iter(lines)
        for number, line in enumerate(stream):
            if number == 0 and (JSON_TITLES.match(line.text) or line.text.strip() == "{"):
                text_lines = [line, *stream]
                break
            yield from self._take(line.text.rstrip("\r").rstrip(), line)
            if self.rows > MAX_ROWS:
                yield Trouble(self.source, "limit", f"more than {MAX_ROWS} rows: the rest is not read", line.number)
                break
            found = WCHAN.match(line.text.strip())
            if number == 0 and found:
                rest = list(itertools.islice(stream, 2))
                if not any(one.text.strip() for one in rest):
                    yield self._event("process.status", line, {"pid": None, "name": None, "wchan": found[0]})
                for one in rest:
                    yield from self._take(one.text.rstrip("\r").rstrip(), one)
        if text_lines:
            yield from self._json(text_lines)
        yield from self._end_stack()
        yield from self._end_status()
        yield from self._end_container()
        yield from self._end_kube()

    def _json(self, lines: list[Line]) -> Iterator[Event | Trouble]:
        """A JSON object of pid -> title; other JSON (docker inspect) is read line by line."""
        text = "\n".join(line.text for line in lines)
        document: Any = None
        if len(text) <= MAX_JSON and text.count("{") <= 2 and text.count("[") == 0:
            try:
                document = json.loads(text)
            except (ValueError, RecursionError):
                document = None
        if not isinstance(document, dict) or not all(str(key).isdecimal() for key in document):
            for line in lines:
                yield from self._take(line.text.rstrip(), line)
            return
        for pid, title in list(document.items())[:MAX_ROWS]:
            line = next((line for line in lines if f'"{pid}"' in line.text), lines[0])
            title = str(title)
            yield self._event("process.status", line, {"pid": int(pid[:9]), "name": title}, title, int(pid[:9]))

    def _event(
        self, kind: str, line: Line, fields: dict[str, Any], name: str | None = None, pid: int | None = None
    ) -> Event:
        self.rows += 1
        return Event(
            kind, line.span(self.source), line.text, self.stamp or line.outer, Actor(role(name) or None, pid), fields
        )

    def _take(self, text: str, line: Line) -> Iterator[Event]:
        frame = PROC_STACK.match(text.strip())
        if frame:
            self.stack.append((frame["function"], line))
            return
        yield from self._end_stack()
        if not text:
            self.columns = []
            return
        stamp = ctime(text.strip()) or (iso(text.strip()) if len(text.strip()) < 40 else None)
        if stamp:
            self.stamp = stamp
            return
        if (
            text.startswith(("Name:", "State:", "Pid:", "PPid:", "Tgid:", "TracerPid:", "Threads:", "VmRSS:"))
            or self.status
        ):
            found = STATUS_PAIR.match(text)
            state = STATUS_STATE.match(text)
            if text.startswith("Name:") and ("\t" in text or not KUBE_NAME.match(text)):
                yield from self._end_status()
            if found or state:
                self.status[found["key"] if found else "State"] = ((found["value"] if found else state["state"]), line)  # type: ignore[index]
                if text.startswith("Name:"):
                    self.pod = found["value"] if found else None
                return
        yield from self._container(text, line)
        yield from self._described(text, line)
        yield from self._table(text, line)
        yield from self._limits(text, line)

    def _end_stack(self) -> Iterator[Event]:
        """`/proc/PID/stack`: the kernel functions in which a task is, the innermost first."""
        stack, self.stack = self.stack, []
        if not stack:
            return
        functions = [function for function, _ in stack[:64]]
        fields: dict[str, Any] = {"pid": None, "name": None, "wchan": functions[0], "frames": functions}
        yield self._event("process.status", stack[0][1], fields)

    def _end_status(self) -> Iterator[Event]:
        status, self.status = self.status, {}
        if "State" not in status or "Pid" not in status:
            return
        state, line = status["State"]
        pid = int(status["Pid"][0][:9]) if status["Pid"][0].isdecimal() else None
        name = status["Name"][0] if "Name" in status else None
        fields: dict[str, Any] = {"pid": pid, "name": name, "state": _letter(state)}
        for key, field in (("Threads", "threads"), ("VmRSS", "rss_kb"), ("TracerPid", "tracer_pid"), ("PPid", "ppid")):
            if key in status and status[key][0].isdecimal():
                fields[field] = int(status[key][0][:18])
        yield self._event("process.status", line, fields, name, pid)

    def _table(self, text: str, line: Line) -> Iterator[Event]:
        if TOP_TITLE.match(text):
            return
        if PS_HEADER.match(text):
            self.columns = text.lower().split()
            return
        found = TASK_ROW.match(text) or STAT_ROW.match(text)
        if found:
            groups = found.groupdict()
            pid = int(groups["pid"][:9]) if groups.get("pid") else None
            fields = {"pid": pid, "name": groups["name"], "state": _letter(groups["state"])}
            if groups.get("wchan") not in (None, "0"):
                fields["wchan"] = groups["wchan"]
            yield self._event("process.status", line, fields, groups["name"], pid)
            return
        row = AUX_ROW.match(text) if not self.columns or "stat" in self.columns else None
        if row:
            pid = int(row["pid"])
            fields = {"pid": pid, "name": row["name"][:400], "state": _letter(row["state"]), "cpu": float(row["cpu"])}
            fields |= {"cpu_time": row["time"]}
            yield self._event("process.status", line, fields, row["name"], pid)
            return
        if self.columns:
            yield from self._columns(text, line)

    def _columns(self, text: str, line: Line) -> Iterator[Event]:
        cells = text.split(None, len(self.columns) - 1)
        if len(cells) < len(self.columns):
            return
        row = dict(zip(self.columns, cells, strict=False))
        number = next((row[key] for key in ("pid", "lwp", "spid", "tid") if key in row), "")
        if not number.isdecimal():
            return
        name = next((row[key] for key in ("command", "cmd", "comm", "args") if key in row), None)
        fields: dict[str, Any] = {"pid": int(number[:9]), "name": name}
        state = row.get("stat") or row.get("s") or row.get("state")
        if state and state[0] in "RSDTtZXI":
            fields["state"] = _letter(state)
        cpu = row.get("%cpu") or row.get("pcpu")
        if cpu and re.fullmatch(r"\d+(?:\.\d+)?", cpu):
            fields["cpu"] = float(cpu)
        if row.get("wchan") not in (None, "-", "0"):
            fields["wchan"] = row["wchan"]
        yield self._event("process.status", line, fields, name, int(number[:9]))

    def _container(self, text: str, line: Line) -> Iterator[Event]:
        named = CONTAINER_NAME.match(text)
        if named:
            self.container["Name"] = (named["name"], line)
            if "ExitCode" in self.container:
                yield from self._end_container()
            return
        found = CONTAINER_PAIR.match(text)
        if found and ('"' in text or text.lstrip().startswith(("ExitCode", "OOMKilled"))):
            if found["key"] in self.container and found["key"] == "ExitCode":
                yield from self._end_container()
            self.container[found["key"]] = (found["value"].strip(' "'), line)
            return
        top = KUBE_NAME.match(text)
        if top:
            self.pod = top["name"]
            return
        inner = KUBE_CONTAINER.match(text)
        if inner:
            yield from self._end_kube()
            self.kube_name = inner["name"]
            return
        pair = KUBE_PAIR.match(text)
        if pair:
            key = pair["key"]
            if key in ("State", "Last State"):
                yield from self._end_kube()
            self.kube[key] = (pair["value"].strip(), line)

    def _described(self, text: str, line: Line) -> Iterator[Event]:
        """What `kubectl describe` and `docker inspect` say beside the state: limits, environment, warnings."""
        if text.strip().endswith(":"):
            self.in_limits = text.strip() == "Limits:"
        elif self.in_limits and (limit := KUBE_LIMIT.match(text)):
            yield self._event("process.limit", line, {"what": f"limit {limit['name']}", "value": limit["value"]})
        variable = DOCKER_VARIABLE.match(text) or KUBE_VARIABLE.match(text)
        if variable and ENVIRONMENT_PREFIX.match(variable["name"]):
            value = "(set)" if SECRET.search(variable["name"]) else variable["value"]
            yield fact(f"env.{variable['name']}", value or "''", line.span(self.source), line.text)
        warned = DESCRIBED.match(text)
        if warned and warned["type"] == "Warning":
            fields = {"type": "Warning", "reason": warned["reason"], "object": self.pod or warned["from"]}
            yield self._event("process.cluster_event", line, fields | {"message": warned["message"][:800]})

    def _end_container(self) -> Iterator[Event]:
        container, self.container = self.container, {}
        if "ExitCode" not in container or not re.fullmatch(r"-?\d{1,9}", container["ExitCode"][0]):
            return
        code, line = container["ExitCode"]
        oom = container.get("OOMKilled", ("", line))
        if oom[0] == "true":
            line = oom[1]
        status = container.get("Status", ("", line))[0]
        if status == "running" and oom[0] != "true":
            return
        fields: dict[str, Any] = {"exit_code": int(code)}
        fields["reason"] = "OOMKilled" if oom[0] == "true" else container.get("Error", ("", line))[0] or status or None
        fields["name"] = container["Name"][0] if "Name" in container else None
        finished = container.get("FinishedAt")
        event = self._event("process.exit", line, fields)
        if finished:
            event.stamp = iso(finished[0]) or event.stamp
        yield event

    def _end_kube(self) -> Iterator[Event]:
        kube, self.kube = self.kube, {}
        state = kube.get("State") or kube.get("Last State")
        if state is None or "Exit Code" not in kube or not kube["Exit Code"][0].lstrip("-").isdecimal():
            return
        reason = kube.get("Reason")
        line = reason[1] if reason else kube["Exit Code"][1]
        fields = {
            "exit_code": int(kube["Exit Code"][0][:9]),
            "reason": reason[0] if reason else None,
            "name": self.kube_name or self.pod,
        }
        yield self._event("process.exit", line, fields)

    def _limits(self, text: str, line: Line) -> Iterator[Event]:
        body = text.strip()
        found = DF_ROW.match(body)
        if found:
            fields = {
                "what": f"df {found['mount']}",
                "value": found["used"],
                "size": found["size"],
                "used_percent": int(found["share"]),
            }
            yield self._event("process.limit", line, fields | {"path": found["mount"]})
            return
        found = DU_ROW.match(body)
        if found and found["path"]:
            yield self._event(
                "process.limit", line, {"what": f"du {found['path']}", "value": found["size"], "path": found["path"]}
            )
            return
        found = ULIMIT_ROW.match(body) or LIMITS_ROW.match(body)
        if found:
            groups = found.groupdict()
            value = groups.get("value") or groups.get("soft")
            yield self._event("process.limit", line, {"what": f"ulimit {groups['name'].strip()}", "value": value})
            return
        found = FREE_ROW.match(body)
        if found:
            fields = {"what": f"free {found['what'].lower()}", "value": found["free"], "size": found["total"]}
            yield self._event("process.limit", line, fields)
            return
        found = SHM.match(body)
        if found:
            yield self._event("process.limit", line, {"what": "shm size", "value": found["value"]})


STRONG = (STATUS_STATE, TOP_TITLE, PS_HEADER, AUX_ROW, TASK_ROW, STAT_ROW, DF_ROW, DU_ROW, ULIMIT_ROW, LIMITS_ROW,
          JSON_TITLES, CONTAINER_CODE, COMMAND_LINE, PROC_STACK, FREE_ROW)  # fmt: skip


class ProcessState:
    """A TextParser of process tables and resource listings."""

    name: ClassVar[str] = "process_state"
    kind: ClassVar[str] = "process"
    marks: ClassVar[tuple[bytes, ...]] = ()

    def sniff(self, head: str) -> float:
        """See `parsers.contract.TextParser`."""
        lines = [text.rstrip() for text in head.split("\n")[:200] if text.strip()]
        if not lines:
            return 0.0
        if len(lines) == 1 and len(head) < 80 and WCHAN.match(lines[0].strip()):
            return 0.9
        if re.match(r"Name:\t\S", lines[0]) and any(STATUS_STATE.match(text) for text in lines[:8]):
            return 0.98
        if TOP_TITLE.match(lines[0]) or (JSON_TITLES.match(head[:400]) and self._titles(head)):
            return 0.96
        if any(PS_HEADER.match(text) for text in lines[:4]):
            return 0.95
        real = sum(any(pattern.match(text) for pattern in STRONG) for text in lines)
        if any("kubectl describe" in text for text in lines[:3]) or (
            any(re.match(r"(?:Last State|    Last State|    State):", text) for text in lines)
            and any("Exit Code:" in text for text in lines)
        ):
            return 0.92
        if any('"OOMKilled"' in text for text in lines) and any('"ExitCode"' in text for text in lines):
            return 0.95
        dates = sum(ctime(text.strip()) is not None for text in lines) if real else 0
        share = (real + dates) / len(lines) if real else 0.0
        return 0.92 if share >= 0.7 else 0.5 if share >= 0.45 else 0.0

    def _titles(self, head: str) -> bool:
        return len(re.findall(r'"\d{1,8}"\s*:\s*"', head[:4_000])) >= 1 and '"pid"' not in head[:4_000]

    def claims(self, text: str) -> bool:
        """See `parsers.contract.TextParser`."""
        return bool(
            TOP_TITLE.match(text)
            or re.match(r"USER +PID +%CPU +%MEM|UID +PID +PPID +C +STIME|Name:\t\S|State:\t[A-Z] \(", text)
            or re.match(r"Filesystem +(?:1K-blocks|Size) +Used", text)
        )

    def read(self, lines: Iterable[Line], source: str) -> Iterator[Event | Trouble]:
        """`process.status`, `process.exit`, `process.limit`, `process.cluster_event` and facts, in the order of the
        lines."""
        yield from _Reading(source).walk(lines)

    def inspect(self, lines: Iterable[Line], source: str) -> dict[str, Any]:
        """`processes`, `exits`, `limits`, `events` of a cluster and `facts`, each with its line."""
        view: dict[str, Any] = {"processes": [], "exits": [], "limits": [], "events": [], "facts": []}
        places = {"process.status": "processes", "process.exit": "exits", "process.limit": "limits"}
        places |= {"process.cluster_event": "events", "fact": "facts"}
        for found in _Reading(source).walk(lines):
            if isinstance(found, Event):
                time = found.stamp.text if found.stamp else None
                view[places[found.kind]].append({"line": found.span.first_line, "time": time, **found.fields})
        return view


PARSER = ProcessState()
