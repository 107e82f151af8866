"""The results of batches: one report a bundle, a file of JSON lines and an SQLite file made from them.

The reports are the truth; each is written as a whole or not at all, and named after the content it is about. The
other two are made anew from them at the end of a run, so a run that was killed leaves nothing half done:

- `reports/<digest>.json`: a report (docs/report-format.md);
- `bundles.jsonl`: which path had which content (appended, one JSON object a line);
- `incidents.jsonl` and table `incidents` of `fleet.sqlite`: one row a bundle, see `Row`;
- table `evidence`: (bundle, feature), what `similar` compares; table `notes`: (signature, ended_by), which is yours to
  fill and is kept.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from analyzer.fleet.bundles import digest
from analyzer.fleet.signature import features, leading, signature
from analyzer.fleet.worker import Task
from analyzer.report import Report


@dataclass(slots=True, frozen=True)
class Row:
    """One bundle. `time` = onset as RFC 3339 or as written; `ended_by` = the remedy that the input shows to have taken
    effect; `run` = the number of the run that brought it; `broken` = why it could not be analysed, or empty."""

    bundle: str
    digest: str
    verdict: str
    signature: str
    cause: str = ""
    title: str = ""
    rule: str = ""
    confidence: str = ""
    gpu: str = ""
    driver: str = ""
    version: str = ""
    node: str = ""
    time: str = ""
    ended_by: str = ""
    summary: str = ""
    broken: str = ""
    run: int = 1


def row_of(report: Report, bundle: str, key: str, run: int = 1) -> Row:
    """The row of one report."""
    first = leading(report)
    known = report.environment

    def value(*names: str) -> str:
        return next(
            (
                f"{name} {known[name].value}" if name in ("vllm", "sglang") else known[name].value
                for name in names
                if name in known
            ),
            "",
        )

    hosts = [event.actor for event in report.timeline.events if event.actor.startswith("host ")]
    node = (
        value("host", "host.name")
        or (hosts[0].removeprefix("host ") if hosts else "")
        or Path(bundle).name.split(".")[0]
    )
    moment = report.timeline.onset or (first.first_event if first is not None else None)
    broken = report.summary if report.verdict == "unreadable" and not report.artifacts else ""
    held = [one.do for one in first.remedies if one.verified == "held"] if first is not None else []
    return Row(
        bundle,
        key,
        report.verdict,
        signature(report),
        first.cause if first else "",
        first.title if first else "",
        first.rule if first else "",
        first.confidence if first else "",
        value("gpu"),
        value("driver"),
        value("vllm", "sglang", "trtllm"),
        node,
        (moment.time or moment.as_written or "") if moment else "",
        held[0] if held else "",
        report.summary,
        broken,
        run,
    )


def write_whole(path: Path, text: str) -> None:
    """Write a file as a whole or not at all, also when the machine loses power."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with partial.open("w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


class Store:
    """The folder of results. Raises OSError when it cannot be made."""

    def __init__(self, folder: Path, rules: tuple[str, ...] = (), limits: tuple[str, ...] = ()) -> None:
        self.folder, self._rules, self._limits = folder, rules, limits
        self._reports = folder / "reports"
        self._reports.mkdir(parents=True, exist_ok=True)
        for left in self._reports.glob(".*.partial"):
            left.unlink(missing_ok=True)
        self._paths: dict[str, str] = {}
        self._named: dict[str, str] = {}

    def report_path(self, key: str) -> Path:
        """Where the report on that content is."""
        return self._reports / f"{key}.json"

    def plan(self, bundles: Sequence[Path], known: Callable[[], None]) -> list[Task]:
        """What is left to be done of `bundles`; `known` is called for each that is not."""
        tasks: list[Task] = []
        planned: set[str] = set()
        for path in bundles:
            key = digest(path)
            self._named[str(path)] = key
            if key in planned or self.report_path(key).is_file():
                known()
                continue
            planned.add(key)
            tasks.append(Task(key, str(path), self._rules, self._limits))
        return tasks

    def put(self, task: Task, report: str) -> None:
        """File one report."""
        write_whole(self.report_path(task.key), report)

    def _load_named(self) -> dict[str, str]:
        named: dict[str, str] = {}
        listing = self.folder / "bundles.jsonl"
        if listing.is_file():
            for line in listing.read_text(encoding="utf-8", errors="replace").splitlines():
                try:
                    one = json.loads(line)
                    named[str(one["bundle"])] = str(one["digest"])
                except (ValueError, KeyError, TypeError):
                    continue
        return named

    def finish(self) -> tuple[list[Row], set[str]]:
        """Make the tables. Returns all rows, by bundle, and the signatures that no earlier run had."""
        named = self._load_named() | self._named
        before, notes = self._before()
        run = max(before.values(), default=0) + 1
        rows: list[Row] = []
        compared: list[tuple[str, str]] = []
        for bundle, key in sorted(named.items()):
            path = self.report_path(key)
            try:
                report = Report.model_validate_json(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            rows.append(row_of(report, bundle, key, before.get((bundle, key), run)))
            compared += [(bundle, feature) for feature in sorted(features(report))]
        write_whole(
            self.folder / "bundles.jsonl",
            "".join(
                json.dumps({"bundle": bundle, "digest": key}, ensure_ascii=False) + "\n"
                for bundle, key in sorted(named.items())
            ),
        )
        write_whole(
            self.folder / "incidents.jsonl", "".join(json.dumps(asdict(row), ensure_ascii=False) + "\n" for row in rows)
        )
        self._sqlite(rows, compared, notes)
        old = {row.signature for row in rows if row.run < run}
        return rows, {row.signature for row in rows if row.run == run and row.signature not in old}

    def _before(self) -> tuple[dict[tuple[str, str], int], list[tuple[str, str]]]:
        path = self.folder / "fleet.sqlite"
        if not path.is_file():
            return {}, []
        try:
            base = sqlite3.connect(path)
            try:
                runs = {
                    (bundle, key): int(run)
                    for bundle, key, run in base.execute("SELECT bundle, digest, run FROM incidents")
                }
                return runs, list(base.execute("SELECT signature, ended_by FROM notes"))
            finally:
                base.close()
        except sqlite3.Error:
            return {}, []

    def _sqlite(self, rows: list[Row], compared: list[tuple[str, str]], notes: list[tuple[str, str]]) -> None:
        path = self.folder / "fleet.sqlite"
        partial = path.with_name(".fleet.sqlite.partial")
        partial.unlink(missing_ok=True)
        names = [one.name for one in fields(Row)]
        base = sqlite3.connect(partial)
        try:
            with base:
                base.execute(f"CREATE TABLE incidents ({', '.join(names[:-1])}, run INTEGER)")
                base.execute("CREATE TABLE evidence (bundle TEXT, feature TEXT)")
                base.execute("CREATE TABLE notes (signature TEXT, ended_by TEXT)")
                base.executemany(
                    f"INSERT INTO incidents VALUES ({', '.join('?' * len(names))})",
                    [tuple(asdict(row).values()) for row in rows],
                )
                base.executemany("INSERT INTO evidence VALUES (?, ?)", compared)
                base.executemany("INSERT INTO notes VALUES (?, ?)", notes)
                base.execute("CREATE INDEX by_signature ON incidents (signature)")
                base.execute("CREATE INDEX by_feature ON evidence (feature)")
        finally:
            base.close()
        partial.replace(path)
