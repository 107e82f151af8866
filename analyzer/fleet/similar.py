"""Have we seen this before? The same signature first, then the nearest by evidence."""

from __future__ import annotations

import math
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from analyzer.fleet.signature import features, signature
from analyzer.report import Report


@dataclass(slots=True, frozen=True)
class Match:
    """An earlier incident. `likeness` 1.0 = same signature, else the shared share of weighted evidence (0 to 1)."""

    bundle: str
    signature: str
    likeness: float
    cause: str
    title: str
    gpu: str
    version: str
    node: str
    time: str
    ended_by: str
    shared: tuple[str, ...]


def similar(report: Report, store: Path, limit: int = 5) -> list[Match]:
    """Earlier incidents of a store (`fleet.sqlite` or its folder), nearest first. Rare evidence weighs more.

    Raises sqlite3.Error or OSError when the store cannot be read.
    """
    path = store / "fleet.sqlite" if store.is_dir() else store
    if not path.is_file():
        raise FileNotFoundError(2, "no such store", str(path))
    base = sqlite3.connect(f"file:{path.as_posix()}?mode=ro", uri=True)
    try:
        return _matches(report, base, limit)
    finally:
        base.close()


def _matches(report: Report, base: sqlite3.Connection, limit: int) -> list[Match]:
    mine, name = features(report), signature(report)
    total = base.execute("SELECT count(*) FROM incidents").fetchone()[0] or 1
    weight: dict[str, float] = {}
    having: dict[str, set[str]] = {}
    for feature in mine:
        bundles = [row[0] for row in base.execute("SELECT bundle FROM evidence WHERE feature = ?", (feature,))]
        weight[feature] = math.log(1 + (total + 1) / (len(bundles) + 1))
        for bundle in bundles:
            having.setdefault(bundle, set()).add(feature)
    whole = sum(weight.values()) or 1.0
    near = {bundle: sum(weight[f] for f in shared) / whole for bundle, shared in having.items()}
    same = {row[0] for row in base.execute("SELECT bundle FROM incidents WHERE signature = ?", (name,))}
    chosen = sorted({*same, *near}, key=lambda b: (b not in same, -near.get(b, 0.0), b))
    notes = dict(base.execute("SELECT signature, ended_by FROM notes"))
    matches: list[Match] = []
    for bundle in chosen:
        if bundle not in same and near.get(bundle, 0.0) < 0.2:
            break
        row = base.execute(
            "SELECT signature, cause, title, gpu, version, node, time, ended_by, verdict FROM incidents"
            " WHERE bundle = ?",
            (bundle,),
        ).fetchone()
        if row is None or row[8] in ("healthy", "unreadable"):
            continue
        shared = tuple(sorted(having.get(bundle, ()), key=lambda f: -weight[f])[:6])
        matches.append(
            Match(
                bundle,
                row[0],
                1.0 if bundle in same else round(min(near[bundle], 0.99), 2),
                row[1],
                row[2],
                row[3],
                row[4],
                row[5],
                row[6],
                notes.get(row[0]) or row[7],
                shared,
            )
        )
        if len(matches) == limit:
            break
    return matches
