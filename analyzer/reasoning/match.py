"""Every clause of every rule gets one of four answers: seen, contradicted, absent where we looked, not checkable."""

from __future__ import annotations

import re
from collections.abc import Iterable

from analyzer.intake.patterns import KEPT, PROSE, Sighting
from analyzer.intake.readings import reading_of
from analyzer.reasoning.bundle import Bundle, Observation
from analyzer.reasoning.coverage import looked
from analyzer.reasoning.evidence import Answer, Finding, Record
from analyzer.reasoning.facts import Gate, gate, holds
from analyzer.reasoning.lives import beginnings, life_of
from analyzer.reasoning.rule import Clause, Rule, Strength
from analyzer.timeline.timeline import before
from parsers.event import Event

# Which kinds of artifact could have shown an observation: absence counts only where one of them was read to its end.
SHOWN_BY: dict[str, tuple[str, ...]] = {
    "flat_counter": ("metrics",),
    "moving_counter": ("metrics",),
    "zero_throughput_running": ("server_log",),
    "queue_stands": ("server_log",),
    "slow_but_moving": ("server_log",),
    "still_moving": ("server_log",),
    "moving_at_end": ("server_log",),
    "all_refused": ("server_log",),
    "left_paused": ("server_log",),
    "serving_progress": ("server_log", "metrics"),
    "open_phase": ("server_log",),
    "open_bar": ("server_log",),
    "waits_after_ready": ("server_log",),
    "waits_then_progress": ("server_log",),
    "ready_reached": ("server_log",),
    "orderly_stop": ("server_log",),
    "silent_end": ("server_log",),
    "abrupt_end": ("server_log",),
    "same_stack_twice": ("stacks",),
    "thread_waits": ("stacks",),
    "engine_waits_for_worker": ("stacks",),
    "engine_stands": ("stacks",),
    "uninterruptible": ("process",),
    "idle_engine_stack": ("stacks",),
    "idle_spin": ("stacks",),
    "gil_held": ("stacks",),
    "lock_cycle": ("stacks",),
    "stopped_process": ("process", "stacks"),
    "busy_but_cool": ("gpu_samples",),
    "busy_and_working": ("gpu_samples",),
    "gpu_idle": ("gpu_samples",),
    "repeated_fault_same_unit": ("kernel_log",),
    "fault_many_units": ("kernel_log",),
    "first_xid": ("kernel_log",),
    "host_stopped": ("kernel_log",),
    "no_resident_kernel": ("cuda_core",),
    "rank_behind": ("collective",),
    "rank_count_mismatch": ("collective",),
    "nccl_silence_after_init": ("collective", "server_log"),
    "many_downloads": ("server_log",),
    "download_without_end": ("server_log", "stacks"),
    "late_progress": ("server_log",),
    "setting_without_effect": ("server_log", "collective"),
}


def gates(rule: Rule, bundle: Bundle) -> list[Gate]:
    """How the rule's environment gates stand."""
    return [gate(bundle.facts, name, condition) for name, condition in rule.applies.items()]


def findings(rule: Rule, bundle: Bundle) -> list[Finding]:
    """The answers to all clauses of one rule."""
    answered: dict[str, Finding] = {}
    for side, clauses in (("for", rule.for_), ("against", rule.against)):
        for clause in clauses:
            answered[clause.id] = _answer(rule, clause, side, bundle)
    settled: set[str] = set()
    for finding in answered.values():
        _in_order(finding, answered, settled)
    _of_one_server(list(answered.values()), bundle)
    return list(answered.values())


def _of_one_server(answers: list[Finding], bundle: Bundle) -> None:
    """Take back what speaks against a rule in the log of another server, or in another life of the same one, than
    all that speaks for it: that one server came up says nothing of its neighbour. The kernel's log, stacks and the
    like belong to no single server, and count."""
    begun = beginnings(bundle)
    if sum(len(lives) for lives in begun.values()) < 2:
        return
    lives = {life_of(record.span, begun) for one in answers
             if one.side == "for" and one.answer is Answer.SEEN for record in one.records} - {None}
    for finding in answers if lives else ():
        if finding.side == "against" and finding.answer is Answer.SEEN and finding.records:
            kept = [record for record in finding.records if life_of(record.span, begun) in {None, *lives}]
            if not kept:
                finding.answer, finding.count = Answer.ABSENT, 0
            finding.records = kept


def _in_order(finding: Finding, answered: dict[str, Finding], settled: set[str]) -> None:
    """Take back what stands on the wrong side of another clause, the other clause first. An order that is not known
    takes nothing back."""
    if finding.clause.id in settled:
        return
    settled.add(finding.clause.id)
    for other_id, wants_after in ((finding.clause.after, True), (finding.clause.before, False)):
        if other_id is None or finding.answer is not Answer.SEEN:
            continue
        other = answered[other_id]
        _in_order(other, answered, settled)
        if not other.records:
            finding.answer = Answer.UNCHECKED if other.answer is Answer.UNCHECKED else Answer.ABSENT
            finding.records, finding.count = [], 0
            continue
        reference = other.records[0].place
        wrong = not wants_after
        kept = [record for record in finding.records if before(reference, record.place) is not wrong]
        lost = len(finding.records) - len(kept)
        if lost and len(kept) < finding.clause.count:
            finding.answer, finding.records, finding.count = Answer.ABSENT, [], 0
        elif lost:
            finding.records, finding.count = kept, max(finding.count - lost, len(kept))


def _answer(rule: Rule, clause: Clause, side: str, bundle: Bundle) -> Finding:
    if clause.pattern is not None:
        return _pattern(rule, clause, side, bundle)
    if clause.event is not None:
        found = [e for e in bundle.events(clause.event) if _fits(clause, e.fields)]
        return _events(clause, side, bundle, found, (clause.event.split(".", 1)[0],))
    if clause.observed is not None:
        seen = [o for o in bundle.observed(clause.observed) if _fits(clause, o.fields)]
        finding = _events(clause, side, bundle, [e for o in seen for e in o.events], SHOWN_BY.get(clause.observed, ()))
        if finding.answer is Answer.SEEN:
            finding.count = len(seen)
            finding.answer = Answer.SEEN if len(seen) >= clause.count else Answer.ABSENT
            finding.detail = _told(seen)
        return finding
    if clause.fact is not None:
        return _fact(clause, side, bundle)
    return _absence(clause, side, bundle)


_TELLING = (
    "rank",
    "ranks",
    "op",
    "seq",
    "gpu",
    "unit",
    "units",
    "counter",
    "value",
    "seconds",
    "phase",
    "bar",
    "done",
    "total",
    "name",
)


def _told(seen: list[Observation]) -> str:
    """What the observations name (`rank 1, op ALLREDUCE`), for the sentence beside their quotes: at most three."""
    told: list[str] = []
    for one in seen[:3]:
        text = ", ".join(f"{name} {one.fields[name]}" for name in _TELLING if one.fields.get(name) not in (None, ""))
        if text and text not in told:
            told.append(text)
    return "; ".join(told)[:160]


def _fits(clause: Clause, fields: dict[str, object] | dict[str, str]) -> bool:
    return all(holds(condition, fields.get(name)) for name, condition in clause.where.items())


def record_of(event: Event, bundle: Bundle) -> Record:
    """An event as a quotable record."""
    stamp = event.stamp or reading_of(event.text)
    return Record(
        event.span, bundle.original(event.span, event.text), bundle.timeline.place(event.span, stamp), event.kind
    )


def _record_of_sighting(sighting: Sighting, bundle: Bundle) -> Record:
    place = bundle.timeline.place(sighting.span, reading_of(sighting.text), sighting.outer)
    return Record(sighting.span, bundle.original(sighting.span, sighting.text), place, sighting.kind)


def _pattern(rule: Rule, clause: Clause, side: str, bundle: Bundle) -> Finding:
    key = f"{rule.id}/{clause.id}"
    seen = bundle.sightings.get(key)
    hits = [one for one in (seen.kept if seen else []) if _fits(clause, one.groups)]
    count = seen.count if seen is not None and not clause.where else len(hits)
    if hits and count >= clause.count:
        # Raw output before prose, then in the order of reading.
        hits.sort(key=lambda one: one.kind == PROSE or _is_prose(one))
        only_prose = all(one.kind == PROSE and _is_prose(one) for one in hits)
        strength = clause.strength.lowered if only_prose else clause.strength
        return Finding(clause, side, Answer.SEEN, strength, [_record_of_sighting(one, bundle) for one in hits], count)
    if key in bundle.slow_patterns:
        return Finding(clause, side, Answer.UNCHECKED, clause.strength, detail="the pattern ran into its time limit")
    kinds = clause.sources or sorted(bundle.kinds())
    looked = any(bundle.looked(kind) for kind in kinds)
    return Finding(clause, side, Answer.ABSENT if looked else Answer.UNCHECKED, clause.strength)


# A person speaks: no program prints these words about itself.
PERSON = re.compile(r"\b(?:I|I'm|I've|we|We|my|our|colleague|someone|not sure|I think|maybe)\b")
PROSE_NAMES = (
    "observed",
    "state",
    "notes",
    "timeline",
    "env",
    "args",
    "versions",
    "context",
    "description",
    "summary",
    "readme",
)


def _is_prose(sighting: Sighting) -> bool:
    """Whether a person tells it, as far as file name and words show: in a file of notes, or in the first person."""
    stem = sighting.span.source.rsplit("/", 1)[-1].split(".", 1)[0].lower()
    return stem in PROSE_NAMES or (sighting.kind == PROSE and PERSON.search(sighting.text) is not None)


def _events(clause: Clause, side: str, bundle: Bundle, found: list[Event], kinds: Iterable[str]) -> Finding:
    if len(found) >= clause.count and found:
        return Finding(
            clause,
            side,
            Answer.SEEN,
            clause.strength,
            [record_of(e, bundle) for e in found[:KEPT]],
            sum(int(e.fields.get("count") or 1) for e in found),
        )
    looked = any(bundle.looked(kind) for kind in kinds)
    return Finding(clause, side, Answer.ABSENT if looked else Answer.UNCHECKED, clause.strength)


def _fact(clause: Clause, side: str, bundle: Bundle) -> Finding:
    known = bundle.facts.get(clause.fact or "")
    if not known:
        return Finding(clause, side, Answer.UNCHECKED, clause.strength)
    condition = clause.where.get("value")
    good = [one for one in known if condition is None or holds(condition, one.value)]
    if not good:
        return Finding(clause, side, Answer.ABSENT, clause.strength, detail=f"{clause.fact} is {known[0].value}")
    records = [record_of(event, bundle) for one in good[:2] for event in one.events[:1]]
    return Finding(
        clause, side, Answer.SEEN, clause.strength, records, len(good), detail=f"{clause.fact} {good[0].value}"
    )


def _absence(clause: Clause, side: str, bundle: Bundle) -> Finding:
    name = clause.absent or ""
    if "." in name:
        there = [e for e in bundle.events(name) if _fits(clause, e.fields)]
        kinds: tuple[str, ...] = (name.split(".", 1)[0],)
    else:
        there = [e for o in bundle.observed(name) if _fits(clause, o.fields) for e in o.events]
        kinds = SHOWN_BY.get(name, ())
    if there:
        return Finding(
            clause, side, Answer.CONTRADICTED, clause.strength, [record_of(e, bundle) for e in there[:2]], len(there)
        )
    answers = [looked(bundle, kind) for kind in kinds]
    if any(counts for counts, _ in answers):
        return Finding(clause, side, Answer.SEEN, clause.strength, [], 1, detail="looked for and not found")
    why = next((reason for _, reason in answers if reason), "")
    return Finding(clause, side, Answer.UNCHECKED, clause.strength, detail=why)


def strongest(values: Iterable[Strength]) -> Strength | None:
    """The strongest of some strengths."""
    return max(values, key=lambda one: one.weight, default=None)
