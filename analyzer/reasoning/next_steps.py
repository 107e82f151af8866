"""What to collect next, before anything is restarted: ordered by what tells the two leading hypotheses apart.

What a rule could not check comes first, then what always helps, at last the GPU dump, which has a price: the CUDA
context ends. Commands bear the pids, port, pod or container that the input names. Steps marked `next time` switch on
what was missing now.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from analyzer.reasoning.bundle import Bundle
from analyzer.reasoning.evidence import Answer
from analyzer.reasoning.rank import Candidate
from analyzer.reasoning.target import Target, target_of
from analyzer.reasoning.verdict import Signs
from analyzer.report import NextStep
from parsers.pattern import lazy

NOW, LATER = 6, 4
DUMP_RISK = "ends the process's CUDA context, so the server must be restarted after it: do it last"
PTRACE = "needs SYS_PTRACE in a container; does not stop the process"
PAUSES = "needs SYS_PTRACE in a container; stops the process for a moment"


class _Kind(NamedTuple):
    """A way of collecting: the artifact kind it yields, words by which a rule's own command is known as one of it, and
    whether the server must still run for it."""

    name: str
    kind: str
    words: re.Pattern[str]
    what: str
    live: bool
    risk: str = ""


# In the standing order: what is gone after a restart and costs nothing first, the GPU dump last.
KINDS = (
    _Kind(
        "stacks",
        "stacks",
        lazy(r"py-spy(?!.*--native)"),
        "stacks of the engine and of every worker, twice",
        True,
        PTRACE,
    ),
    _Kind("metrics", "metrics", lazy(r"/metrics|metrics scrape"), "two /metrics scrapes 30 s apart", True),
    _Kind(
        "samples",
        "gpu_samples",
        lazy(r"nvidia-smi --query-gpu|nvidia-smi dmon"),
        "utilisation, memory utilisation, power and clocks of every GPU for 10 s",
        True,
    ),
    _Kind(
        "kernel log", "kernel_log", lazy(r"dmesg|journalctl -k"), "the kernel log with wall-clock times", False
    ),
    _Kind("server log", "server_log", lazy(r"server log|start-up log"), "the server log from start-up on", False),
    _Kind(
        "native stacks",
        "",
        lazy(r"py-spy.*--native"),
        "native stacks of the engine and of every worker",
        True,
        PAUSES,
    ),
    _Kind(
        "debugger",
        "",
        lazy(r"cuda-gdb"),
        "the resident kernels as the debugger sees them",
        True,
        "stops the process while it is attached",
    ),
    _Kind(
        "GPU dump",
        "cuda_core",
        lazy(r"(?i)corepipe|core ?pipe|core dump"),
        "a GPU core dump that names the resident kernel and where its warps wait",
        True,
        DUMP_RISK,
    ),
)
STANDING = ("stacks", "metrics", "samples", "kernel log", "server log", "GPU dump")


@dataclass(slots=True)
class _Wanted:
    """A way of collecting with what it is worth: strengths of the clauses that it would answer."""

    command: str
    says: str
    kind: _Kind | None
    worth: float = 0.0
    rules: list[str] = field(default_factory=list)


def next_steps(ranked: list[Candidate], bundle: Bundle, found: Signs, limit: int = NOW) -> list[NextStep]:
    """At most `limit` steps for now and four for next time. Empty when nothing is wrong."""
    live = [c for c in ranked if not c.ruled_out and not c.rule.harmless][:3]
    if not live and not found.trouble:
        return []
    target = target_of(bundle)
    certain = bool(live) and live[0].confidence == "high"
    wanted = _wanted(live, target)
    chosen = sorted(
        wanted, key=lambda one: (one.kind is not None and one.kind.name == "GPU dump", -one.worth, _standing(one.kind))
    )
    steps = [_step(one, live, target) for one in chosen][:limit]
    if not certain:
        have, covered = bundle.kinds(), {one.kind.name for one in chosen if one.kind is not None}
        for kind in KINDS:
            missing = kind.name in STANDING and kind.kind not in have and kind.name not in covered
            if missing and len(steps) < limit and (target.alive or not kind.live):
                steps.append(_step(_Wanted(target.command(kind.name), kind.what, kind), [], target))
        if target.failed_start:
            steps = [*_of_a_failed_start(target), *steps][:limit]
    steps.sort(key=lambda step: step.risk == DUMP_RISK)
    # Stacks without a pause come before those that pause the process, whichever would tell more.
    pausing = next((at for at, step in enumerate(steps) if step.risk == PAUSES), None)
    gentle = next((at for at, step in enumerate(steps) if "--nonblocking" in step.command), None)
    if pausing is not None and gentle is not None and pausing < gentle:
        steps.insert(pausing, steps.pop(gentle))
    return steps + ([] if certain or target.failed_start else _next_time(live, bundle, target))


def _of_a_failed_start(target: Target) -> list[NextStep]:
    """What is left of a server that never came up: its whole log, and what it was started on."""
    return [
        NextStep(
            collect="the start-up log from its first line on: the first error stands above the last one",
            command=target.command("server log"),
        ),
        NextStep(
            collect="the versions of server, PyTorch, CUDA, driver and GPUs, where the server was started",
            command=target.inside("vllm collect-env > collect_env.txt   # SGLang: python -m sglang.check_env"),
        ),
    ]


def _kind_of(command: str) -> _Kind | None:
    return next((kind for kind in reversed(KINDS) if kind.words.search(command)), None)


def _standing(kind: _Kind | None) -> int:
    return KINDS.index(kind) if kind is not None else len(KINDS)


def _wanted(live: list[Candidate], target: Target) -> list[_Wanted]:
    gathered: dict[str, _Wanted] = {}
    for position, candidate in enumerate(live):
        for finding in candidate.findings:
            clause = finding.clause
            if finding.answer is not Answer.UNCHECKED or not clause.collect:
                continue
            kind = _kind_of(clause.collect)
            if kind is not None and kind.live and not target.alive:
                continue  # the process is gone, and what it could have shown with it
            key = kind.name if kind is not None else clause.collect
            says = f"{clause.says} ({finding.detail})" if finding.detail else clause.says
            one = gathered.setdefault(key, _Wanted(clause.collect, says, kind))
            # Half for the runner-up: the answer that moves the first hypothesis moves the decision most. What speaks
            # against a hypothesis tells it from the others as well as what speaks for it.
            one.worth += clause.strength.weight / (1 + position)
            if candidate.rule.id not in one.rules:
                one.rules.append(candidate.rule.id)
    return list(gathered.values())


def _step(one: _Wanted, live: list[Candidate], target: Target) -> NextStep:
    command = one.command
    if one.kind is not None and one.kind.name in ("stacks", "metrics", "GPU dump"):
        command = target.command(one.kind.name)  # the rule's own wording leaves pid and port open
    others = [c.rule.id for c in live[:2] if c.rule.id not in one.rules]
    # A clause states what it would see; as something to collect it is a question.
    collect = f"to see whether {one.says}" if one.rules else one.says
    for first in live[:1]:
        tell = next((r.tell_apart for r in first.rule.rival if len(live) > 1 and r.cause == live[1].rule.cause), "")
        if tell and first.rule.id in one.rules and one.rules[0] == first.rule.id:
            collect = f"{collect}. {tell}" if tell not in one.says else collect
    return NextStep(
        collect=collect,
        command=target.fill(command),
        separates=[*one.rules, *others][:3] if one.rules else [],
        risk=one.kind.risk if one.kind is not None else "",
    )


def _next_time(live: list[Candidate], bundle: Bundle, target: Target) -> list[NextStep]:
    """What to switch on so that the evidence exists when it happens again."""
    have = bundle.kinds()
    stopped = bool(bundle.observed("host_stopped"))
    many = any(
        str(fact.value) not in ("1", "0", "")
        for name in ("parallel.tp", "parallel.pp", "parallel.dp")
        for fact in bundle.facts.get(name)
    ) or any("collective" in c.rule.id or "nccl" in c.rule.cause for c in live)
    steps: list[tuple[str, str]] = []
    if "kernel_log" not in have or stopped:
        steps.append(
            (
                "a journal that survives a reboot"
                + (
                    ", and a copy of the kernel's messages on another machine, since "
                    "this host died before it wrote its own"
                    if stopped
                    else ""
                ),
                "sudo mkdir -p /var/log/journal && sudo systemctl restart systemd-journald"
                + ("; sudo modprobe netconsole netconsole=@/,@LOGHOST/" if stopped else ""),
            )
        )
    if "cuda_core" not in have:
        steps.append(
            (
                "GPU core dumps: on an exception by themselves, of a hang on demand",
                "CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1 CUDA_ENABLE_USER_TRIGGERED_COREDUMP=1 "
                "CUDA_COREDUMP_FILE=/var/tmp/core_%h_%p.nvcudmp CUDA_COREDUMP_PIPE=/var/tmp/corepipe_%h_%p "
                "in the server's environment",
            )
        )
    if "stacks" not in have:
        steps.append(
            (
                "stack dumps by the server's own watchdog (vLLM 0.33 and newer; before that run py-spy from a timer)",
                "vllm serve … --watchdog-config.dump_dir /var/tmp/stacks",
            )
        )
    if many and not bundle.events("collective.flight_record"):
        steps.append(
            (
                "NCCL's flight recorder: which rank did not arrive at which collective",
                "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 "
                "TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/var/tmp/nccl_trace_rank_ in the server's environment",
            )
        )
    return [
        NextStep(collect=f"For next time: {what}", command=command, when="next time") for what, command in steps[:LATER]
    ]
