"""What to collect next, ordered by what separates the leading hypotheses; then what costs nothing and always helps."""

from __future__ import annotations

from analyzer.reasoning.bundle import Bundle
from analyzer.reasoning.evidence import Answer
from analyzer.reasoning.rank import Candidate
from analyzer.reasoning.verdict import Signs
from analyzer.report import NextStep

# (artifact kind, what, command, risk): the standing order of collection before anything is restarted. py-spy samples
# without stopping the process; the GPU dump comes last because it ends the CUDA context.
STANDING = (
    ("gpu_samples", "utilisation, memory utilisation, power and clocks of every GPU for 10 s",
     "nvidia-smi --query-gpu=timestamp,index,name,utilization.gpu,utilization.memory,power.draw,power.limit,clocks.sm"
     " --format=csv -lms 500 > smi.csv & sleep 10; kill %1", ""),
    ("metrics", "two /metrics scrapes 30 s apart", "curl -s localhost:8000/metrics > metrics_1.txt; sleep 30; "
     "curl -s localhost:8000/metrics > metrics_2.txt", ""),
    ("stacks", "stacks of the engine and of every worker",
     "for p in $(pgrep -f 'VLLM::|EngineCore|vllm serve'); do py-spy dump --nonblocking --pid $p > pyspy_$p.txt; done",
     "needs SYS_PTRACE in a container"),
    ("kernel_log", "the kernel log with wall-clock times", "sudo dmesg --time-format iso > dmesg.txt", ""),
    ("server_log", "the server log from start-up on", "docker logs -t CONTAINER > server.log 2>&1", ""),
    ("cuda_core", "a GPU core dump that names the resident kernel",
     "echo 1 > corepipe_$(hostname)_PID   # needs CUDA_ENABLE_USER_TRIGGERED_COREDUMP=1 set before the start",
     "ends the process's CUDA context: do it last"),
)


def next_steps(ranked: list[Candidate], bundle: Bundle, found: Signs, limit: int = 6) -> list[NextStep]:
    """At most `limit` steps. Empty when nothing is wrong."""
    live = [c for c in ranked if not c.ruled_out and not c.rule.harmless][:3]
    if not live and not found.trouble:
        return []
    gathered: dict[str, tuple[float, NextStep]] = {}
    for position, candidate in enumerate(live):
        for finding in candidate.findings:
            if finding.answer is not Answer.UNCHECKED or not finding.clause.collect:
                continue
            others = [c.rule.id for c in live if c is not candidate]
            worth = finding.clause.strength.weight / (1 + position)
            step = NextStep(collect=finding.clause.says, command=finding.clause.collect,
                            separates=[candidate.rule.id, *others[:1]], risk=_risk(finding.clause.collect))
            held = gathered.get(finding.clause.collect)
            if held is None or held[0] < worth:
                gathered[finding.clause.collect] = (worth, step)
    chosen = sorted(gathered.values(), key=lambda one: (bool(one[1].risk), -one[0]))
    steps = [step for _, step in chosen][:limit]
    certain = bool(live) and live[0].confidence == "high"
    if not certain:
        have = bundle.kinds()
        for kind, what, command, risk in STANDING:
            covered = any(_covers(kind, step.command) for step in steps)
            if kind not in have and not covered and len(steps) < limit:
                steps.append(NextStep(collect=what, command=command, risk=risk))
    return sorted(steps, key=lambda step: bool(step.risk and "context" in step.risk))


def _risk(command: str) -> str:
    low = command.lower()
    if "corepipe" in low or "core dump" in low:
        return "ends the process's CUDA context: do it last"
    return "needs SYS_PTRACE in a container" if "py-spy" in low else ""


def _covers(kind: str, command: str) -> bool:
    words = {"gpu_samples": "nvidia-smi", "metrics": "/metrics", "stacks": "py-spy", "kernel_log": "dmesg",
             "server_log": "server log", "cuda_core": "core"}
    return words[kind] in command.lower()
