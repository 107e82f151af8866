"""Curves on the timeline: tokens per second, requests running, GPU utilisation and power.

The event says its quantities in `values`. A report that was saved before it did (schema 1.0 without `values`) keeps the
record only: there they are read from its text, and only where it names the quantity or its unit without doubt.
"""

from __future__ import annotations

import re

from analyzer.report import TimelineEvent

# vLLM's stats line (vllm/v1/metrics/loggers.py, LoggingStatLogger) and SGLang's (scheduler metrics, "gen throughput").
_STATS = {
    "generation tokens/s": re.compile(
        r"Avg generation throughput: (\d{1,9}(?:\.\d{1,6})?) tokens/s"
        r"|gen throughput \(token/s\): (\d{1,9}(?:\.\d{1,6})?)"
    ),
    "requests running": re.compile(r"Running: (\d{1,9}) reqs|#running-req: (\d{1,9})"),
}
# nvidia-smi prints units; "15 W", "70W / 300W" (draw first). A lone percentage in the table row is the utilisation.
_POWER = re.compile(r"(?<![\w.])(\d{1,5}(?:\.\d{1,3})?) ?W\b")
_PERCENT = re.compile(r"(?<![\w.])(\d{1,3}) ?%")


def readings(event: TimelineEvent) -> dict[str, float]:
    """Quantities that the event's record states, by name with unit; empty when it states none."""
    if event.values:
        return dict(event.values)
    text = event.text[:2000]
    if event.kind == "server_log.stats":
        found = {name: pattern.search(text) for name, pattern in _STATS.items()}
        return {name: float(match[1] or match[2]) for name, match in found.items() if match}
    values: dict[str, float] = {}
    if event.kind == "gpu_samples.sample":
        if power := _POWER.search(text):
            values["power W"] = float(power[1])
        percents = [int(value) for value in _PERCENT.findall(text)]
        if len(percents) == 1 and percents[0] <= 100:
            values["utilisation %"] = float(percents[0])
    return values
