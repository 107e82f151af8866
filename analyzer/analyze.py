"""The whole trip, from paths to a report. A pure function of its input: no global state, no network, no writes
but a private unnamed spool file for what must be read out of order."""

from __future__ import annotations

import time
from collections.abc import Sequence

from analyzer.analysis import Analysis
from analyzer.compose import compose
from analyzer.intake.budget import Budget
from analyzer.intake.duplicates import drop
from analyzer.intake.patterns import Sightseer
from analyzer.intake.read import Read, read_source
from analyzer.intake.sources import walk
from analyzer.reasoning.bundle import Bundle
from analyzer.reasoning.facts import collect
from analyzer.reasoning.next_steps import next_steps
from analyzer.reasoning.observe import observe
from analyzer.reasoning.rank import one_a_cause, weigh_all
from analyzer.reasoning.rulebook import Rulebook, load
from analyzer.reasoning.verdict import decide, signs
from analyzer.report import Report
from analyzer.timeline.anchors import find
from analyzer.timeline.timeline import Timeline
from parsers.contract import Trouble
from parsers.event import Event


def read(paths: Sequence[str], rulebook: Rulebook, budget: Budget) -> tuple[Bundle, list[Trouble]]:
    """Intake, recognition, parsing and the scan for patterns; facts, timeline and observations on top."""
    troubles: list[Trouble] = []
    sightseer = Sightseer(rulebook.patterns, budget)
    reads: list[Read] = []
    for source in walk(list(paths), budget, troubles):
        reads += read_source(source, sightseer, budget)
    timeline = Timeline()
    _tie_clocks(timeline, reads)
    drop(reads, sightseer.seen)
    by_kind = _by_kind(reads)
    bundle = Bundle(
        reads,
        by_kind,
        collect(event for one in reads for event in one.events),
        sightseer.seen,
        timeline,
        slow_patterns=sightseer.slow,
        originals={one.path: one.originals for one in reads if one.originals},
    )
    observe(bundle)
    troubles += [trouble for one in reads for trouble in one.troubles]
    for key in sorted(sightseer.slow):
        troubles.append(
            Trouble("rules", "limit", f"the pattern {key} ran into its time limit and was not used further")
        )
    return bundle, troubles


def _by_kind(reads: list[Read]) -> dict[str, list[Event]]:
    by_kind: dict[str, list[Event]] = {}
    for one in reads:
        for event in one.events:
            by_kind.setdefault(event.kind, []).append(event)
    return by_kind


def _tie_clocks(timeline: Timeline, reads: list[Read]) -> None:
    """Align all clocks. A message that stands in two logs is evidence here, though it counts once for every rule."""
    for one in reads:
        for line, inner, outer in one.pairs:
            timeline.pair(
                one.path,
                inner,
                outer,
                f"the stamps that {', '.join(one.transports) or 'its transport'} put around its lines",
                line,
            )
    by_kind = _by_kind(reads)
    timeline.follow(
        ((event.span, event.stamp) for one in reads for event in one.events if event.stamp is not None),
        (event.span for event in by_kind.get("kernel_log.boot", ())),
    )
    find(timeline, by_kind)
    timeline.align()


def investigate(paths: Sequence[str], rulebook: Rulebook | None = None, budget: Budget | None = None) -> Analysis:
    """Read, match and rank."""
    started = time.monotonic()
    rulebook = rulebook if rulebook is not None else load()
    bundle, troubles = read(paths, rulebook, budget if budget is not None else Budget())
    troubles += [Trouble("rules", "corrupt", fault) for fault in rulebook.faults]
    weighed = weigh_all(rulebook, bundle)
    return Analysis(bundle, one_a_cause(weighed), weighed, signs(bundle), troubles, rulebook, list(paths), started)


def analyze(paths: Sequence[str], rulebook: Rulebook | None = None, budget: Budget | None = None) -> Report:
    """The report on `paths` (files, folders, archives, `-` for standard input)."""


    analysis = investigate(paths, rulebook, budget)
    verdict, summary = decide(analysis.ranked, analysis.bundle, analysis.signs, analysis.troubles)
    steps = next_steps(analysis.ranked, analysis.bundle, analysis.signs)
    return compose(analysis, verdict, summary, steps)
