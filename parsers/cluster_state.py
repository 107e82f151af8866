"""What a cluster says about its parts: `kubectl get events`, the events of `kubectl describe`, `kubectl get pods`,
`docker ps -a`, `ray status`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from parsers.contract import Line, Trouble
from parsers.event import NOBODY, Event
from parsers.pattern import lazy

MAX_EVENTS = 5_000

EVENTS_HEADER = lazy(
    r"(?:NAMESPACE\s+)?LAST SEEN\s+TYPE\s+REASON\s+OBJECT\s+MESSAGE"
    r"|\s+Type\s+Reason\s+Age\s+From\s+Message"
)
EVENT_ROW = lazy(
    r"(?:\S{1,80}\s+)?(?P<age>\d+[smhd][\dsmhd]{0,8}|<unknown>)\s+(?P<type>Normal"
    r"|Warning)\s+(?P<reason>[A-Z]\w{2,60})\s+"
    r"(?P<object>[\w.-]{1,40}/[\w.-]{1,200})\s+(?P<message>\S.{0,2000})$"
)
DESCRIBED = lazy(
    r"\s{1,6}(?P<type>Normal|Warning)\s+(?P<reason>[A-Z]\w{2,60})\s+(?P<age>\S{1,20}(?: \(x\d+ over \S{1,20}\))?)\s+"
    r"(?P<from>[\w./-]{1,80}(?:, \S{1,80})?)\s+(?P<message>\S.{0,2000})$"
)
PODS_HEADER = lazy(r"(?:NAMESPACE\s+)?NAME\s+READY\s+STATUS\s+RESTARTS\s+AGE")
POD_ROW = lazy(
    r"(?:[\w-]{1,80}\s+)?(?P<name>[a-z0-9][\w.-]{0,200})\s+(?P<ready>\d{1,3})/(?P<all>\d{1,3})\s+"
    r"(?P<status>[A-Z][\w:]{2,40})\s+"
    r"(?P<restarts>\d{1,6})\b"
)
DOCKER_HEADER = lazy(r"CONTAINER ID\s+IMAGE\s+COMMAND\s+CREATED\s+STATUS\s+PORTS\s+NAMES")
DOCKER_ROW = lazy(
    r"[0-9a-f]{12}\s+(?P<image>\S{1,200})\s.{0,400}?\bExited \((?P<code>\d{1,3})\) "
    r".{0,60}?\s(?P<name>[\w.-]{1,100})\s*$"
)
DOCKER_UP = lazy(r"[0-9a-f]{12}\s+\S{1,200}\s.{0,400}\b(?:Up|Created|Restarting|Paused)\b")
RAY_HEADER = lazy(r"=+ Autoscaler status: |======== Cluster status: ")
RAY_USAGE = lazy(r"\s(?P<used>\d+(?:\.\d+)?)/(?P<total>\d+(?:\.\d+)?) (?P<what>GPU|CPU)\s*$")
RAY_DEMAND = lazy(r"\s(?P<shape>\{.{1,200}\}(?: \* \d+ \(\w+\))?): (?P<pending>\d{1,6})\+? (?P<what>pending .{1,60})$")
RAY_FAILURE = lazy(r"\s(?P<node>[\w.:-]{3,80}): (?P<what>[A-Z]\w+(?: .{1,200})?)$")
_FAILING = frozenset(
    ("CrashLoopBackOff", "Error", "OOMKilled", "ImagePullBackOff", "ErrImagePull", "Evicted", "CreateContainerError",
     "RunContainerError", "ContainerStatusUnknown", "UnexpectedAdmissionError", "Unknown", "Init:Error",
     "Init:CrashLoopBackOff")
)  # fmt: skip
HEADERS = (EVENTS_HEADER, PODS_HEADER, DOCKER_HEADER, RAY_HEADER)
ROWS = (EVENT_ROW, DESCRIBED, POD_ROW, DOCKER_ROW, DOCKER_UP, RAY_USAGE, RAY_DEMAND, RAY_FAILURE)
RAY_REST = lazy(r"(?:Node status|Resources|Active|Pending|Recent failures|Usage|Demands|Total Usage|Total Demands"
r"|Constraints)\b.{0,40}$"
                r"|-{20,}$| \(no .{1,40}\)$|\s\d+ \w[\w.-]{1,80}$|\s\d\S* .{0,40}(?:memory"
                r"|object_store_memory)$")  # fmt: skip


class ClusterState:
    """A TextParser of tables of pods, containers, events and Ray nodes."""

    name: ClassVar[str] = "cluster_state"
    kind: ClassVar[str] = "process"
    marks: ClassVar[tuple[bytes, ...]] = ()

    def sniff(self, head: str) -> float:
        """0.95 for a text whose first lines hold a header of one of these tables, or that is made of their rows."""
        lines = [line.rstrip() for line in head.split("\n")[:200] if line.strip()]
        if not lines:
            return 0.0
        if any(one.match(line) for line in lines[:4] for one in HEADERS):
            return 0.95
        rows = sum(EVENT_ROW.match(line) is not None or DOCKER_ROW.match(line) is not None for line in lines)
        return 0.9 if rows and rows * 10 >= 8 * len(lines) else 0.0

    def claims(self, text: str) -> bool:
        """A header of one of these tables, or a row of events or of ended containers."""
        return any(one.match(text) for one in (PODS_HEADER, DOCKER_HEADER, RAY_HEADER, EVENT_ROW, DOCKER_ROW))

    def read(self, lines: Iterable[Line], source: str) -> Iterator[Event | Trouble]:
        """`process.cluster_event` for warnings and unmet demands, `process.exit` for what ended or keeps failing."""
        count = 0
        ray = pods = False
        for line in lines:
            text = line.text.rstrip()
            if any(one.match(text) for one in HEADERS):
                ray, pods = RAY_HEADER.match(text) is not None, PODS_HEADER.match(text) is not None
                continue
            found = self._row(text, ray, pods)
            if found is None:
                continue
            count += 1
            if count > MAX_EVENTS:
                yield Trouble(source, "limit", f"more than {MAX_EVENTS} rows: the rest is not read", line.number)
                return
            kind, fields = found
            yield Event(kind, line.span(source), line.text, line.outer, NOBODY, fields)

    @staticmethod
    def _row(text: str, ray: bool, pods: bool) -> tuple[str, dict[str, Any]] | None:
        if ray:
            if (demand := RAY_DEMAND.match(text)) is not None:
                fields = {"type": "Warning", "reason": "pending", "object": demand["shape"], "message": text.strip()}
                return "process.cluster_event", fields
            if (failed := RAY_FAILURE.match(text)) is not None:
                fields = {
                    "type": "Warning",
                    "reason": "node failure",
                    "object": failed["node"],
                    "message": text.strip(),
                }
                return "process.cluster_event", fields
            return None
        if pods:
            row = POD_ROW.match(text)
            if row is None or row["status"] not in _FAILING:
                return None
            return "process.exit", {"exit_code": None, "reason": row["status"], "name": row["name"]}
        if (row := DOCKER_ROW.match(text)) is not None:
            return "process.exit", {"exit_code": int(row["code"]), "reason": None, "name": row["name"]}
        event = EVENT_ROW.match(text) or DESCRIBED.match(text)
        if event is None or event["type"] != "Warning":
            return None
        about = event.groupdict().get("object") or event.groupdict().get("from")
        message = event["message"][:800]
        return "process.cluster_event", {
            "type": "Warning",
            "reason": event["reason"],
            "object": about,
            "message": message,
        }

    def inspect(self, lines: Iterable[Line], source: str) -> dict[str, Any]:
        """`events` and `exits`, each with its line."""
        view: dict[str, Any] = {"events": [], "exits": []}
        for item in self.read(lines, source):
            if isinstance(item, Event):
                place = "exits" if item.kind == "process.exit" else "events"
                view[place].append({"line": item.span.first_line, **item.fields})
        return view


PARSER = ClusterState()
