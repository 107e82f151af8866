"""The server that the next steps are aimed at: its pids, port, pod or container, as far as the input names them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from analyzer.reasoning.bundle import Bundle
from analyzer.reasoning.lives import stops_of
from parsers.pattern import lazy

_PORT = lazy(r"(?:server on https?://\S{1,80}?:|--port[ =]|running on https?://\S{1,80}?:)(\d{2,5})\b")
_CONTAINER = lazy(r"(?:^|/)([0-9a-f]{12})[0-9a-f]{52}(?:-json\.log|/)")
_POD = lazy(r"^[a-z0-9][a-z0-9.-]{1,252}$")
_ENGINE = lazy(r"(?i)engine|scheduler")
_WORKER = lazy(r"(?i)worker|rank|^TP\d|DetokenizerManager")
_OPEN_PID = lazy(r"<[^<>]{0,30}pids?>|\bPID\b|\$PID\b")
_OPEN_PORT = lazy(r"localhost:8000\b")
DEFAULT_PORT = 8000
"""vLLM's port where the log does not say another."""
MOST_PIDS = 16
LOGS = (("", "server"), ("--previous ", "server_previous"))
OVER = ("server_log.engine_dead", "server_log.process_died", "server_log.killed", "server_log.usage_error")
# Functions through which a start goes and a request does not (vLLM, SGLang).
STARTING = frozenset({
    "from_engine_args", "from_vllm_config", "make_async_mp_client", "create_engine_config", "create_model_config",
    "build_async_engine_client", "launch_core_engines", "wait_for_engine_startup", "wait_for_ready", "load_model",
    "load_weights", "initialize_model", "_initialize_kv_caches", "determine_available_memory", "init_device",
    "prepare_server_args", "init_model_worker", "launch_subprocesses", "_launch_subprocesses", "_init_executor",
    "_init_engine", "init_worker", "initialize_from_config", "capture_model", "compile_or_warm_up_model",
})  # fmt: skip
_FAILED_START = lazy(
    r"^(?:Engine (?:core initialization failed|process failed to start)|WorkerProc initial|"
    r"\d+ validation errors? for \w*(?:Config|Args)\b)"
)


@dataclass(slots=True)
class Target:
    """`alive` is False when the input shows that the server or its host is gone; `failed_start`: it never came up."""

    engine: int | None = None
    workers: list[int] = field(default_factory=list)
    port: int = DEFAULT_PORT
    pod: str | None = None
    container: str | None = None
    alive: bool = True
    failed_start: bool = False

    def inside(self, command: str) -> str:
        """The command where the server runs: in its pod, or as it stands on the host."""
        if self.pod is None:
            return command
        quoted = command.replace("'", "'\\''")
        return f"kubectl exec {self.pod} -- sh -c '{quoted}'"

    def command(self, name: str) -> str:
        """The command for one way of collecting, see `next_steps.KINDS`."""
        pids = [pid for pid in (self.engine, *self.workers) if pid is not None][:MOST_PIDS]
        which = " ".join(map(str, pids)) if pids else "$(pgrep -f 'VLLM::|EngineCore|vllm serve|sglang')"
        if name == "stacks":
            return self.inside(
                f"for n in 1 2; do for p in {which}; do py-spy dump --nonblocking --pid $p "
                "> pyspy_${p}_$n.txt; done; sleep 10; done"
            )
        if name == "metrics":
            return self.inside(
                f"curl -s localhost:{self.port}/metrics > metrics_1.txt; sleep 30; "
                f"curl -s localhost:{self.port}/metrics > metrics_2.txt"
            )
        if name == "samples":
            return (
                "nvidia-smi --query-gpu=timestamp,index,name,utilization.gpu,utilization.memory,power.draw,power.limit,"
                "clocks.sm --format=csv -lms 500 > smi.csv & sleep 10; kill %1"
            )
        if name == "kernel log":
            return "sudo dmesg --time-format iso > dmesg.txt; date; uptime"
        if name == "server log":
            if self.pod is not None:
                return " ".join(f"kubectl logs --timestamps {way}{self.pod} > {name}.log;" for way, name in LOGS)
            return f"docker logs -t {self.container or 'CONTAINER'} > server.log 2>&1"
        pid = (
            str(self.engine)
            if self.engine is not None and not self.workers
            else " or ".join(map(str, self.workers[:2]))
        )
        # CUDA's default pipe, in the folder where the server was started (CUDA_COREDUMP_PIPE names another).
        return self.inside(
            f"echo 1 > corepipe.cuda.$(hostname).{pid.split(' ')[0] or 'PID'}   # "
            "needs CUDA_ENABLE_USER_TRIGGERED_COREDUMP=1 set before the start"
        )

    def fill(self, command: str) -> str:
        """A rule's own command with the pid and the port that the input names."""
        pid = self.engine if self.engine is not None else self.workers[0] if self.workers else None
        if pid is not None:
            workers = " ".join(map(str, self.workers[:MOST_PIDS])) or str(pid)
            command = re.sub(r"<each worker pid>", f"EACH OF {workers}" if len(self.workers) > 1 else workers, command)
            command = _OPEN_PID.sub(str(pid), command)
        return _OPEN_PORT.sub(f"localhost:{self.port}", command)


def target_of(bundle: Bundle) -> Target:
    """What the input says about where the server runs."""
    target = Target()
    roles: dict[int, str] = {}
    for kind, events in bundle.by_kind.items():
        if kind.startswith(("server_log.", "process.status", "stacks.process")):
            for event in events:
                pid, role = event.actor.pid, event.actor.process
                if pid is not None and role and pid not in roles:
                    roles[pid] = role
    engines = [pid for pid, role in roles.items() if _ENGINE.search(role)]
    target.engine = engines[-1] if engines else None
    target.workers = [pid for pid, role in roles.items() if _WORKER.search(role)]
    ports = [
        found[1]
        for kind in ("server_log.phase", "server_log.ready", "process.status")
        for event in bundle.events(kind)
        if (found := _PORT.search(event.text))
    ]
    if ports and 0 < int(ports[-1]) < 65536:
        target.port = int(ports[-1])
    for read in bundle.reads:
        if (
            "kubectl --prefix" in read.transports
            and read.first_line is not None
            and _POD.match(read.first_line.host or "")
        ):
            target.pod = read.first_line.host
        if found := _CONTAINER.search(read.path):
            target.container = found[1]
    ended = any(not stops[-1].next_life for stops in stops_of(bundle).values())
    target.failed_start = _failed_start(bundle)
    target.alive = not (
        bundle.observed("host_stopped") or any(map(bundle.events, OVER)) or ended or target.failed_start
    )
    return target


def _failed_start(bundle: Bundle) -> bool:
    """Whether an exception ended the start: the process is gone, and only its log and its surroundings are left."""
    if bundle.observed("ready_reached") or bundle.events("server_log.stats"):
        return False
    for event in bundle.events("server_log.exception"):
        if not event.fields.get("type"):
            continue  # cut off: it may as well be the stack of a process that hangs
        if _FAILED_START.match(str(event.fields.get("message"))):
            return True
        functions = {frame[0] for frame in event.fields.get("frames", ())}
        if functions & STARTING or (str(event.fields["type"]).endswith(("ImportError", "ModuleNotFoundError"))):
            return True
    return False
