"""The Chrome trace keeps the rules of the Trace Event Format that Perfetto's importer counts as errors when broken."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from analyzer.analyze import investigate
from analyzer.render import render_timeline
from analyzer.report import Timeline, TimelineEvent
from analyzer.story import story

BUNDLE = Path(__file__).parents[2] / "fixtures" / "timeline" / "host-lock"


def problems(trace: dict[str, Any]) -> list[str]:
    """Every broken rule: known phases, numbers where numbers belong, times in order, slices that nest, named tracks."""
    found: list[str] = []
    open_slices: dict[tuple[int, int], list[float]] = {}
    named, last = set(), -math.inf
    for event in trace["traceEvents"]:
        if event["ph"] not in ("M", "i", "X", "C") or not isinstance(event["name"], str):
            found.append(f"unknown {event['ph']}")
        if not (isinstance(event["pid"], int) and isinstance(event["tid"], int)):
            found.append("track without a number")
        if event["ph"] == "M":
            named.add((event["name"], event["pid"], event["tid"] if event["name"] == "thread_name" else 0))
            continue
        if not math.isfinite(event["ts"]) or event["ts"] < 0 or event["ts"] < last:
            found.append(f"time {event['ts']} after {last}")
        last = event["ts"]
        if event["ph"] == "i" and event["s"] not in ("g", "p", "t"):
            found.append("scope")
        if event["ph"] == "C" and not all(isinstance(value, int | float) for value in event["args"].values()):
            found.append("a counter that is no number")
        if event["ph"] == "X":
            stack = open_slices.setdefault((event["pid"], event["tid"]), [])
            while stack and stack[-1] <= event["ts"] + 1e-6:
                stack.pop()
            if event["dur"] < 0 or (stack and event["ts"] + event["dur"] > stack[-1] + 1e-3):
                found.append(f"slice {event['name']} does not nest")
            stack.append(event["ts"] + event["dur"])
        if event["pid"] and ("thread_name", event["pid"], event["tid"]) not in named:
            found.append("track without a name")
    return found


def test_a_whole_bundle_is_valid_with_phases_as_slices() -> None:
    trace = json.loads(render_timeline(story(investigate([str(BUNDLE)]), limit=None), "chrome"))
    assert problems(trace) == []
    slices = {event["name"]: event for event in trace["traceEvents"] if event["ph"] == "X"}
    assert abs(slices["autotune"]["dur"] - 11e6) < 1
    assert "startup (no end seen)" in slices


def test_samples_become_counters() -> None:
    events = [
        TimelineEvent(
            time=f"2026-01-01T00:00:0{n}Z",
            kind="gpu_samples.sample",
            actor="GPU 0",
            text="row",
            values={"power W": 80.0 + n, "utilisation %": 100.0},
        )
        for n in range(3)
    ]
    trace = json.loads(render_timeline(Timeline(events=events), "chrome"))
    assert problems(trace) == []
    counters = [(event["name"], *event["args"].values()) for event in trace["traceEvents"] if event["ph"] == "C"]
    assert ("GPU 0 power W", 82.0) in counters and len(counters) == 6


def test_overlapping_phases_of_one_process_still_nest() -> None:
    def mark(at: int, phase: str, edge: str) -> TimelineEvent:
        return TimelineEvent.model_validate(
            {
                "time": f"2026-01-01T00:00:{at:02d}Z",
                "kind": "server_log.phase",
                "actor": "W",
                "text": phase,
                "phase": phase,
                "edge": edge,
            }
        )

    events = [mark(1, "a", "begin"), mark(2, "b", "begin"), mark(5, "a", "end"), mark(9, "b", "end")]
    assert problems(json.loads(render_timeline(Timeline(events=events), "chrome"))) == []
