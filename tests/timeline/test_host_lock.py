"""A host that locked up: container log, heartbeat, journal of two boots and another machine's probe on one axis."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from analyzer.analysis import Analysis
from analyzer.analyze import analyze, investigate
from analyzer.report import Report

BUNDLE = Path(__file__).parents[2] / "fixtures" / "timeline" / "host-lock"


@cache
def report() -> Report:
    return analyze([str(BUNDLE)])


@cache
def analysis() -> Analysis:
    return investigate([str(BUNDLE)])


def test_the_onset_lies_between_the_last_line_and_the_lost_probe() -> None:
    onset = report().timeline.onset
    assert onset is not None
    assert onset.time == "2026-07-21T16:41:37Z"
    assert onset.as_written == "07-21 16:41:37"
    assert onset.latest is not None and onset.latest.startswith("2026-07-21T16:41:39")
    assert onset.source is not None and "Skipping CuTeDSL warmup" in onset.source.text


def test_the_beats_that_outlived_the_network_are_explained() -> None:
    onset = report().timeline.onset
    assert onset is not None
    assert "72 s longer" in onset.what and "timers and disk" in onset.what
    assert "no probe from 2026-07-21T16:41:39" in onset.what


def test_start_up_is_rebuilt_to_the_second() -> None:
    marks = {(event.phase, event.edge, (event.time or "")[11:19]) for event in report().timeline.events if event.phase}
    for wanted in (
        ("startup", "begin", "16:39:58"),
        ("model_load", "begin", "16:39:59"),
        ("model_load", "end", "16:40:47"),
        ("autotune", "begin", "16:41:25"),
        ("autotune", "end", "16:41:36"),
    ):
        assert wanted in marks
    beats = {(event.time or "")[11:19] for event in report().timeline.events if event.kind == "heartbeat.beat"}
    assert "16:42:51" in beats


def test_the_host_stopped_and_its_silence_proves_nothing() -> None:
    seen = analysis().bundle.observed("host_stopped")
    assert len(seen) == 1 and "18:42:51" in str(seen[0].fields["last"])
    journal = next(one for one in report().timeline.coverage if one.artifact.endswith("journal.txt"))
    assert journal.covers_onset == "no" and "never have reached the disk" in journal.says
    assert not any(
        "no Xid" in evidence.statement
        for hypothesis in report().hypotheses
        for evidence in hypothesis.evidence_for
        if evidence.source is None
    )


def test_clocks_of_container_and_host_are_aligned_with_their_zone_stated() -> None:
    clock = next(one for one in report().timeline.clocks if "container.log" in one.domain)
    assert clock.offset_s == 0 and clock.uncertainty_s is not None and clock.uncertainty_s < 1
    assert any("UTC+00:00" in text for text in clock.assumptions)
    assert any("year 2026" in text for text in clock.assumptions)


def test_live_steps_are_not_asked_of_a_dead_host() -> None:
    commands = " ".join(step.command for step in report().next_steps if step.when == "now")
    assert "py-spy" not in commands and "corepipe" not in commands
