"""One id for incidents that are the same: made of the cause and of what is essential in its evidence.

Essential are Xid codes, kernel and function names, exception and error names. Times, addresses, pids, ranks, GPU
indexes and host names are not, so the same failure on another node on another day has the same id.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from analyzer.report import Hypothesis, Report

_XID = re.compile(r"\bS?Xid \([^)\n]{1,60}\): (\d{1,5})|\bXid (?:error )?(\d{1,3})\b")
_ERROR = re.compile(
    r"\b(CUDA_ERROR_[A-Z_]{3,60}|cudaError[A-Za-z]{3,60}|(?:CUDNN|CUBLAS)_STATUS_[A-Z_]{3,60}|[A-Z]\w{2,60}(?:Error|Exception))\b"
)
_KERNEL = re.compile(
    r"\b((?:\w{2,60}::){1,6}\w{2,80}|\w{0,60}(?:sm\d{2,3}|kernel|Kernel|fmha|gemm)\w{0,80})\s{0,2}[<(]"
)
_FRAME = re.compile(
    r"^\s{2,12}(?:File \"[^\"\n]{1,300}\", line \d+, in (\w{1,80})|([A-Za-z_]\w{2,80}) \([^()\n]{1,200}:\d+\))",
    re.M,
)
MOST = 6


def essentials(hypothesis: Hypothesis) -> list[str]:
    """What of the evidence names the failure, sorted; at most six of a sort."""
    found: dict[str, dict[str, None]] = {"xid": {}, "error": {}, "kernel": {}, "frame": {}}
    for evidence in hypothesis.evidence_for:
        if evidence.source is None or evidence.strength in ("weak", "fair"):
            continue
        text = evidence.source.text
        for sort, shape in (("xid", _XID), ("error", _ERROR), ("kernel", _KERNEL), ("frame", _FRAME)):
            for one in shape.finditer(text):
                name = next((group for group in one.groups() if group), None)
                if name is not None and len(found[sort]) < MOST:
                    found[sort].setdefault(f"{sort}:{name}")
    return sorted(name for names in found.values() for name in names)


def leading(report: Report) -> Hypothesis | None:
    """The hypothesis that an incident is filed under: the first that is not ruled out."""
    return next((one for one in report.hypotheses if not one.ruled_out), None)


def signature(report: Report) -> str:
    """A stable id: `cause-1a2b3c4d`; `healthy`, `unreadable`, or `unknown-1a2b3c4d` by what is unexplained."""
    if report.verdict in ("healthy", "unreadable"):
        return report.verdict
    first = leading(report)
    if first is not None:
        return f"{first.cause}-{_digest([first.cause, *essentials(first)])}"
    templates = sorted(one.template for one in report.unexplained if one.level in ("ERROR", "CRITICAL"))[:3]
    return f"unknown-{_digest(templates)}"


def features(report: Report) -> set[str]:
    """What two incidents are compared by: causes, clauses seen, essentials, symptoms, unexplained errors."""
    return set(_features(report))


def _features(report: Report) -> Iterator[str]:
    for hypothesis in report.hypotheses[:4]:
        if hypothesis.ruled_out:
            continue
        yield f"cause:{hypothesis.cause}"
        yield from essentials(hypothesis)
        for evidence in hypothesis.evidence_for:
            yield f"clause:{hypothesis.rule}/{evidence.clause}"
    for symptom in report.symptoms:
        yield f"symptom:{symptom.symptom}"
    for one in report.unexplained[:10]:
        yield f"template:{one.template[:120]}"


def _digest(parts: list[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:8]
