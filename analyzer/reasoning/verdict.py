"""Identified, candidates, unknown, healthy, unreadable: what may be claimed, and in which words.

Healthy is a claim like any other: what was read was read to its end, shows progress or an orderly end, and no sign of
trouble. A dead system that still answers must never pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from analyzer.reasoning.bundle import Bundle
from analyzer.reasoning.lives import belongs_to_stop, stops_of
from analyzer.reasoning.rank import Candidate
from analyzer.reasoning.rulebook import SYMPTOM
from analyzer.report import Verdict
from parsers.contract import UNREAD, Trouble
from parsers.event import Event

# Kinds of events that are trouble by themselves.
TROUBLE = (
    "server_log.exception",
    "server_log.engine_dead",
    "server_log.process_died",
    "server_log.rpc_timeout",
    "server_log.killed",
    "server_log.usage_error",
    "server_log.cuda_error",
    "kernel_log.xid",
    "kernel_log.sxid",
    "kernel_log.fallen_off_bus",
    "kernel_log.gsp",
    "kernel_log.nvrm",
    "kernel_log.init_failure",
    "kernel_log.api_mismatch",
    "kernel_log.module_rejected",
    "kernel_log.driver_conflict",
    "kernel_log.aer",
    "kernel_log.iommu_fault",
    "kernel_log.mce",
    "kernel_log.edac",
    "kernel_log.oom_kill",
    "kernel_log.hung_task",
    "kernel_log.lockup",
    "kernel_log.segfault",
    "kernel_log.invalid_opcode",
    "kernel_log.sysrq_crash",
    "kernel_log.panic",
    "kernel_log.unclean_start",
    "kernel_log.thermal",
    "kernel_log.remote_fs",
    "gpu_samples.error",
    "cuda_core.exception",
    "cuda_core.trap",
    "cuda_core.kernel",
    "cuda_gdb.exception",
    "collective.watchdog_timeout",
    "collective.rank_behind",
    "collective.nccl_warn",
    "stacks.error",
    "cuda_core.no_grid",
    "cuda_gdb.no_grid",
    "cuda_gdb.kernel",
    "server_log.watchdog",
    "process.exit",
    "notes.failure",
    "notes.client_error",
    "process.cluster_event",
)
TROUBLING = (
    "flat_counter",
    "zero_throughput_running",
    "queue_stands",
    "silent_end",
    "engine_stands",
    "uninterruptible",
    "all_refused",
    "left_paused",
    "slow_but_moving",
    "open_phase",
    "open_bar",
    "waits_after_ready",
    "stopped_process",
    "busy_but_cool",
    "gil_held",
    "lock_cycle",
    "host_stopped",
    "rank_behind",
    "download_without_end",
    "nccl_silence_after_init",
)
WELL = ("serving_progress", "ready_reached", "orderly_stop", "busy_and_working", "moving_counter", "idle_engine_stack")
# What a look at the GPU shows of a working system too.
RESIDENT = ("cuda_core.kernel", "cuda_gdb.kernel")
# Marks of a front end that has its engine. An engine that is ready and a front end that took requests look the same
# beside a dead other half.
WHOLE = ("api_start", "front_ready")
# Parsers of what people wrote or chose to run: it proves no health.
WORDS = ("handwritten", "terminal", "client_errors")
# Exit codes of a process that ended by SIGTERM or SIGINT, as an orderly stop does it.
ASKED = (143, -15, 130, -2)
# Kinds whose reading to the end without a fault is itself a claim of health: a kernel log without faults. It must be
# long enough to be a log (what a person cut out was cut out for a reason), and nothing in it may complain.
QUIET_IS_WELL = ("kernel_log", "fabric")
LONG_ENOUGH = 20


@dataclass(slots=True)
class Signs:
    """Signs of trouble and of health."""

    trouble: list[tuple[str, Event]] = field(default_factory=list)
    health: list[str] = field(default_factory=list)
    complaint: str = ""
    """Where a person writes of trouble."""


def signs(bundle: Bundle) -> Signs:
    """What in this input speaks of trouble, and what of health."""
    found = Signs()
    stops = stops_of(bundle)
    for kind in TROUBLE:
        for event in bundle.events(kind):
            if belongs_to_stop(event, stops):
                continue  # killed workers and leak lists
            if (
                kind == "process.exit"
                and event.fields.get("exit_code") in (0, "0", None)
                and not event.fields.get("reason")
            ):
                continue
            if kind == "process.exit" and event.fields.get("exit_code") in ASKED and bundle.observed("orderly_stop"):
                continue
            found.trouble.append((kind, event))
    for name in TROUBLING:
        for observation in bundle.observed(name):
            found.trouble.append((name, observation.events[0]))
    for event in bundle.events("server_log.record"):
        if str(event.fields.get("level")) in ("ERROR", "CRITICAL") and not belongs_to_stop(event, stops):
            found.trouble.append(("server_log.record", event))
    found.health = [name for name in WELL if bundle.observed(name)]
    if found.health == ["orderly_stop"]:
        found.health = []  # it ended in order, but nothing shows that it ever worked
    if found.health == ["ready_reached"] and not (
        bundle.events("server_log.ready")
        or any(one.fields.get("phase") in WHOLE for one in bundle.events("server_log.phase"))
    ):
        found.health = []
    wrote = next((one for one in bundle.reads if one.complaint is not None), None)
    if wrote is not None and wrote.complaint is not None:
        found.complaint = f"{wrote.path}:{wrote.complaint.number}"
    results = bundle.events("collective.result")
    if results and not any(_number(e.fields.get("wrong")) for e in results):
        found.health.append("collective_result")
    return found


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def decide(ranked: list[Candidate], bundle: Bundle, found: Signs, troubles: list[Trouble]) -> tuple[Verdict, str]:
    """The verdict and the one sentence that a person on call can read aloud."""
    usable = [r for r in bundle.reads if r.events or (r.lines and r.nonblank)]
    if not usable:
        return "unreadable", "Nothing in the input could be read: " + (
            troubles[0].text if troubles else "it is empty"
        ) + "."
    live = [c for c in ranked if not c.ruled_out]
    faults = [c for c in live if not c.rule.harmless]
    harmless = [c for c in live if c.rule.harmless]
    unread = [t for t in troubles if t.tag in UNREAD]
    strange = [r for r in usable if r.parser is None or (r.parser in WORDS and r.nonblank > 2)]
    serious = [c for c in faults if c.confidence != "low"]
    if serious:
        top = serious[0]
        since = _since(top)
        if top.confidence == "high" and not top.rule.harmless:
            return "identified", f"{top.rule.title}{since}."
        return "candidates", f"Probably: {top.rule.title}{since} ({top.confidence} confidence, not proven)."
    explained = bool(harmless) and not _unexplained(found, harmless)
    if not found.trouble or explained:
        quiet = any(r.kind in QUIET_IS_WELL and r.nonblank >= LONG_ENOUGH for r in usable)
        complaints = [] if found.health or explained else bundle.events("kernel_log.complaint")
        sound = found.health or (quiet and not complaints) or explained
        if sound and not unread and not strange and (explained or not found.complaint):
            return "healthy", _healthy(bundle, found, harmless)
        if not faults and found.complaint and not unread:
            return "unknown", (
                f"Somebody writes of trouble ({found.complaint}), and nothing else that was read shows it: no clean "
                "bill of health."
            )
        if not faults:
            why = (
                "part of the input could not be read to its end"
                if unread
                else "a source was not recognised, or is somebody's own words"
                if strange
                else f"a line of the kernel log complains, and no rule knows it ({_at(complaints[0])})"
                if complaints
                else "what was read shows neither progress nor an orderly end"
            )
            return "unknown", f"No sign of trouble was found, but this is no clean bill of health: {why}."
    if faults:
        return "candidates", f"Not clear; the best fit is: {faults[0].rule.title} (low confidence)."
    kind, event = found.trouble[0]
    failed = bundle.sightings.get(f"{SYMPTOM}engine-init-failed")
    if failed is not None and failed.kept and not bundle.observed("ready_reached"):
        span = failed.kept[0].span
        return "unknown", (
            f"The server did not start ({span.source}:{span.first_line}), and what was read does not say why in words "
            "that a rule knows: the first error stands above that line, or in the part of the log that is not here."
        )
    if all(one in RESIDENT for one, _ in found.trouble):
        return "unknown", (
            f"A kernel was resident when the GPU was looked at ({_at(event)}); one look cannot tell work from a hang."
        )
    there = "is one sign" if len(found.trouble) == 1 else f"are {len(found.trouble)} signs"
    return "unknown", (
        f"There {there} of trouble that no rule explains; the first is of the kind {kind.replace('_', ' ')} "
        f"({_at(event)})."
    )


def _at(event: Event) -> str:
    return f"{event.span.source}:{event.span.first_line}"


def _unexplained(found: Signs, harmless: list[Candidate]) -> bool:
    shown = {(r.span.source, r.span.first_line) for c in harmless for f in c.seen("for") for r in f.records}
    return any((event.span.source, event.span.first_line) not in shown for _, event in found.trouble)


def _since(candidate: Candidate) -> str:
    return (
        f", first seen at {candidate.first.place.text}"
        if candidate.first is not None and candidate.first.place.text
        else ""
    )


def _healthy(bundle: Bundle, found: Signs, harmless: list[Candidate]) -> str:
    words = {
        "serving_progress": "tokens moved",
        "ready_reached": "start-up reached ready",
        "orderly_stop": "it ended in order",
        "busy_and_working": "the GPU was doing work",
        "moving_counter": "counters moved",
        "idle_engine_stack": "the engine waits for requests",
        "collective_result": "a collective test finished without wrong values",
    }
    shows = ", ".join(words[name] for name in found.health) or "no fault in it"
    note = f" ({harmless[0].rule.title}: harmless)" if harmless else ""
    kinds = bundle.kinds()
    unseen = [
        name
        for kind, name in (
            ("server_log", "server log"),
            ("kernel_log", "kernel log"),
            ("metrics", "/metrics"),
            ("stacks", "stacks"),
            ("gpu_samples", "GPU samples"),
        )
        if kind not in kinds
    ]
    missing = f" Not looked at, because not given: {', '.join(unseen)}." if unseen else ""
    return f"What was read looks healthy: {shows}{note}.{missing}"
