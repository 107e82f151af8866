"""The swim lanes as data: what is drawn, on which clock, and what is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.render.lanes import lanes_of
from analyzer.render.saved import load_report
from analyzer.report import Moment, Quote, Report, TimelineEvent

FOLDER = Path(__file__).parents[2] / "fixtures" / "render"


def _report(events: list[TimelineEvent], onset: Moment | None = None) -> Report:
    report = load_report(FOLDER / "unknown.json")
    timeline = report.timeline.model_copy(update={"events": events, "onset": onset, "last_progress": None})
    return report.model_copy(update={"timeline": timeline})


def _event(written: str, artifact: str = "smi.csv", **more: object) -> TimelineEvent:
    fields = {"as_written": written, "kind": "gpu_samples.sample", "source": Quote(artifact=artifact, line=1)}
    return TimelineEvent.model_validate(fields | more)


@pytest.mark.parametrize(
    "readings",
    [
        ("2026/11/30 20:03:31.500", "2026/11/30 20:03:33.000"),
        ("11-30 20:03:31.5", "11-30 20:03:33"),
        ("1130 20:03:31.500000000", "1130 20:03:33.000000000"),
        ("81.5", "83.0"),
    ],
)
def test_without_zone_the_fullest_source_is_drawn_on_its_own_clock(readings: tuple[str, str]) -> None:
    events = [_event(text, values={"power W": 80.0}) for text in readings] + [_event(readings[0], "other.log")]
    onset = Moment(as_written=readings[1], source=Quote(artifact="smi.csv", line=1))
    data = lanes_of(_report(events, onset))
    assert data["clock"] == "as written" and data["lanes"] == ["smi.csv"] and data["unplaced"] == 1
    assert data["curves"] == {"power W": [[0.0, 80.0], [1.5, 80.0]]}
    assert data["marks"] == [[1.5, "onset", 1.5, 1.5]]


def test_an_onset_on_another_clock_is_not_marked() -> None:
    onset = Moment(as_written="11-30 20:03:33", source=Quote(artifact="server.log", line=1))
    assert lanes_of(_report([_event("11-30 20:03:31")], onset))["marks"] == []


def test_phases_become_slices_and_flat_curves_are_left_out() -> None:
    def mark(second: int, edge: str) -> TimelineEvent:
        time = f"2026-01-01T00:00:0{second}Z"
        return _event("x", time=time, phase="load", edge=edge, actor="W", values={"requests waiting": 0.0})

    data = lanes_of(_report([mark(1, "begin"), mark(4, "end")]))
    assert data["phases"] == [[0, 0.0, 3.0, "load"]] and data["curves"] == {} and data["clock"] == ""


def test_the_onset_has_its_uncertainty() -> None:
    onset = Moment(time="2026-01-01T00:00:03Z", earliest="2026-01-01T00:00:02Z", latest="2026-01-01T00:00:05Z")
    data = lanes_of(_report([_event("x", time="2026-01-01T00:00:01Z")], onset))
    assert data["marks"] == [[2.0, "onset", 1.0, 4.0]]
