"""The words and numbers that every renderer of the report shares: sizes, instants, confidence, what was not seen.

Nothing here is safe to print: what is returned may hold input text and still passes the renderer's sanitiser.
"""

from __future__ import annotations

import math
import re
from datetime import datetime

from analyzer.report import Coverage, Evidence, Hypothesis, Moment, NextStep, Quote, Report, SourceNote, TimelineEvent

STRENGTHS = ("decisive", "strong", "fair", "weak")
MARKS = {"decisive": "●●●●", "strong": "●●", "fair": "●", "weak": "·"}
IMPACT = {"service-down": "service down", "degraded": "degraded", "risk": "a risk", "info": "for information"}
WOULD = {
    "settle": "would settle it",
    "raise": "would make it more certain",
    "lower": "would make it less certain",
}
GRADE = {
    "fixed-in": "fixed in a release",
    "maintainer": "said by a maintainer",
    "reporter-observed": "seen by reporters",
    "inferred": "inferred, not tried",
}
VERIFIED = {
    "held": "the input shows that it took effect",
    "failed": "the input shows that it did not take effect",
    "not-checkable": "the input does not show whether it took effect",
}
TOOK_EFFECT = {"held": "it took effect", "failed": "it did not take effect", "not-checkable": ""}
VERDICT = {
    "identified": "IDENTIFIED",
    "candidates": "CANDIDATES",
    "unknown": "UNKNOWN",
    "healthy": "HEALTHY",
    "unreadable": "UNREADABLE",
}

# Artifact kinds whose absence limits what can be said, and the question that each would answer.
LOOKED_FOR = {
    "server_log": "the server's log",
    "kernel_log": "the kernel log (Xid, OOM, PCIe)",
    "stacks": "the host stacks",
    "gpu_samples": "GPU utilisation and power",
    "metrics": "the /metrics counters",
    "cuda_core": "which GPU kernel is resident",
}
_COVERED_BY = {"cuda_core": ("cuda_core", "cuda_gdb")}

_BARE_SECONDS = re.compile(r"\d{1,9}(?:\.\d{1,9})?")
_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)")


def count_of(number: int, singular: str, plural: str | None = None) -> str:
    """`1 artifact`, `7 artifacts`, `12,345 lines`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def size(count: int) -> str:
    """Bytes with a unit, decimal (1 kB = 1,000 B), as `ls -h --si` and disk labels count."""
    amount = float(max(count, 0))
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:,.1f} TB"


def seconds(amount: float) -> str:
    """A duration in seconds with two telling digits: `0.41 s`, `3 s`, `22 min`, `2.5 h`, `4.0 d`."""
    if not math.isfinite(amount):
        return "? s"
    span = abs(amount)
    sign = "-" if amount < 0 else ""
    if span < 10:
        text = f"{span:.2f}".rstrip("0").rstrip(".") + " s"
    elif span < 120:
        text = f"{span:.0f} s"
    elif span < 7200:
        text = f"{span / 60:.0f} min"
    elif span < 172_800:
        text = f"{span / 3600:.1f} h"
    else:
        text = f"{span / 86_400:.1f} d"
    return sign + text


def instant(time: str) -> str:
    """An RFC 3339 time as people read it, with its zone: `2026-05-02 03:41:10 +08:00`."""
    found = _RFC3339.fullmatch(time)
    if not found:
        return time
    date, clock, fraction, zone = found.groups()
    fraction = (fraction or "").rstrip("0")[:3]
    return f"{date} {clock}{'.' + fraction if fraction else ''} {'UTC' if zone in 'Zz' else zone}"


def unix_seconds(time: str | None) -> float | None:
    """Unix seconds of an RFC 3339 time, or None when it is no such time."""
    if not time or not _RFC3339.fullmatch(time):
        return None
    try:
        return datetime.fromisoformat(time.upper().replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        return None


def moment(when: Moment | TimelineEvent) -> str:
    """When it was: the instant with its zone, or the reading as it was written, with what is uncertain about it."""
    if when.time:
        text = instant(when.time)
    elif when.earliest or when.latest:
        written = f" (written {when.as_written})" if when.as_written else ""
        if when.earliest and when.latest:
            return f"{instant(when.earliest)} to {instant(when.latest)}{written}"
        if when.earliest:
            return f"after {instant(when.earliest)}{written}"
        return f"before {instant(when.latest or '')}{written}"
    elif when.as_written:
        # Bare seconds are a clock that started at some zero (boot, process start); all else lacks a year or a zone.
        bare = _BARE_SECONDS.fullmatch(when.as_written)
        lacks = "seconds of its log's own clock" if bare else "year or zone not known"
        text = f"{when.as_written} (as written; {lacks})"
    else:
        return ""
    doubt = getattr(when, "uncertainty_s", None)
    return f"{text} ±{seconds(doubt)}" if doubt else text


def place(quote: Quote) -> str:
    """Where a quote stands: `server.log:318`, `smi.csv:12-40`, `core_731.nvcudmp @ byte 4,096`."""
    if quote.line is not None:
        last = f"-{quote.last_line}" if quote.last_line is not None and quote.last_line > quote.line else ""
        return f"{quote.artifact}:{quote.line}{last}"
    return f"{quote.artifact} @ byte {quote.offset:,}" if quote.offset else quote.artifact


def statement(evidence: Evidence) -> str:
    """The statement, with how often it was seen."""
    return f"{evidence.statement} (×{evidence.count:,})" if evidence.count > 1 else evidence.statement


def is_command(text: str) -> bool:
    """Whether what says how to get something is a command to copy rather than a sentence."""
    return any(sign in text for sign in (" -", " | ", " > ", "$(", "\n"))


def by_strength(evidence: list[Evidence]) -> list[Evidence]:
    """Decisive first; the order within a strength is kept."""
    return sorted(evidence, key=lambda item: STRENGTHS.index(item.strength))


def standing(hypothesis: Hypothesis) -> str:
    """`high · service down`, or `ruled out`."""
    return "ruled out" if hypothesis.ruled_out else f"{hypothesis.confidence} · {IMPACT[hypothesis.impact]}"


def coverage(report: Report) -> str:
    """What was read: `7 artifacts, 2.4 MB, read to the end` or how many were not."""
    total = len(report.artifacts)
    if not total:
        return "no artifact"
    cut = sum(not artifact.complete for artifact in report.artifacts)
    foreign = sum(artifact.parser is None for artifact in report.artifacts)
    text = f"{count_of(total, 'artifact')}, {size(sum(artifact.bytes for artifact in report.artifacts))}, "
    text += "read to the end" if not cut else f"{cut} of {total} not read to the end"
    return text + (f", {foreign} not recognised" if foreign else "")


def not_seen(report: Report) -> list[str]:
    """The questions that no artifact of this input answers, as phrases."""
    kinds = {artifact.kind for artifact in report.artifacts if artifact.parser is not None}
    kinds |= {event.kind.partition(".")[0] for event in report.timeline.events}
    return [text for kind, text in LOOKED_FOR.items() if kinds.isdisjoint(_COVERED_BY.get(kind, (kind,)))]


def machine(report: Report) -> list[str]:
    """The machine and the software as far as known: `NVIDIA GB10`, `sm_121`, `vllm 0.19.1`."""
    named = {"gpu": "", "gpu.name": ""}
    labelled = {"vllm": "vllm ", "vllm.version": "vllm ", "sglang.version": "sglang "}
    labelled |= {"sm": "compute capability ", "gpu.sm": "compute capability "}
    labelled |= {"driver": "driver ", "driver.version": "driver ", "cuda": "CUDA ", "cuda.version": "CUDA "}
    parts: list[str] = []
    for key, label in (named | labelled).items():
        found = report.environment.get(key)
        if found and found.value:
            # `sm_121` names itself; `9.0` alone could be anything.
            text = found.value if found.value.startswith("sm_") else label + found.value
            parts += [text] if text not in parts else []
    return parts


def onset(report: Report, *, why: bool = True) -> str:
    """`since 2026-05-02 03:41:10 +08:00: the last token`, without the words behind the colon unless `why`."""
    return _began("since", report.timeline.onset, why)


def last_progress(report: Report, *, why: bool = True) -> str:
    """`last progress …`, empty when nothing is known or when it is the onset itself."""
    progress, stop = report.timeline.last_progress, report.timeline.onset
    same = progress and stop and (progress.time, progress.as_written) == (stop.time, stop.as_written)
    return "" if same else _began("last progress", progress, why)


def _began(word: str, when: Moment | None, why: bool) -> str:
    text = moment(when) if when else ""
    if not when or not text:
        return ""
    return f"{word} {text}" + (f": {when.what}" if why and when.what not in ("", "onset") else "")


def since(report: Report) -> list[str]:
    """What stands under the verdict: when it began, what moved last, on which machine, the most telling first."""
    return [part for part in (onset(report), last_progress(report), *machine(report)) if part]


def steps_by_time(report: Report) -> list[tuple[str, list[NextStep]]]:
    """The next steps under their headings: what is collected now, and what is switched on for the next time."""
    groups = (("now", "Collect now, before anything is restarted, in this order"),
              ("next time", "Switch on, so that the evidence exists next time"))  # fmt: skip
    found = [(title, [step for step in report.next_steps if step.when == when]) for when, title in groups]
    return [(title, steps) for title, steps in found if steps]


def windows(report: Report) -> dict[str, Coverage]:
    """What each source can say about the stop, by artifact."""
    return {item.artifact: item for item in report.timeline.coverage}


def window(first: str | None, last: str | None, item: Coverage | None) -> str:
    """From when to when a source speaks: `… to …`, on the common axis where it is placed there, else as written."""
    edges = [moment_in_brief(edge) for edge in (item.first, item.last) if edge] if item else []
    edges = [edge for edge in edges if edge] or [instant(time) for time in (first, last) if time]
    return edges[0] if len(set(edges)) == 1 else " to ".join(edges)


def moment_in_brief(when: Moment) -> str:
    """The instant, or the reading as it was written, without what is uncertain about it."""
    return instant(when.time) if when.time else when.as_written or ""


def speaks_of_onset(item: Coverage | None, report: Report) -> str:
    """Whether a source could have shown the stop: `yes`, `no: it begins after the stop …`, `not known`; empty where no
    stop is known."""
    if item is None or report.timeline.onset is None:
        return ""
    answer = {"yes": "yes", "no": "no", "unknown": "not known"}[item.covers_onset]
    return f"{answer}: {item.says}" if item.says else answer


def clocks(report: Report) -> str:
    """How the clocks were aligned: `log by docker stamps ±1 s`."""
    parts = []
    for clock in report.timeline.clocks:
        doubt = f" ±{seconds(clock.uncertainty_s)}" if clock.uncertainty_s is not None else ""
        parts.append(
            f"{clock.domain} by {clock.aligned_by}{doubt}" if clock.aligned_by else f"{clock.domain} not aligned"
        )
    return " · ".join(parts)


_ISSUE = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+)/(?:issues|pull)/(\d+)")


def short_source(source: SourceNote) -> str:
    """`vllm-project/vllm#61007 open (checked 2026-11-30)`."""
    found = _ISSUE.fullmatch(source.url)
    name = f"{found[1]}#{found[2]}" if found else source.url
    return f"{name} {source.status} (checked {source.checked})"
