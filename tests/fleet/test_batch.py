# ruff: noqa: E501 (records as they are written)
"""Batches: one report a bundle, resumable, stable, and no bundle stops the others."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from analyzer.cli.batch import command as batch
from analyzer.cli.similar import command as similar
from analyzer.fleet.bundles import digest, expand
from analyzer.fleet.store import Store
from analyzer.fleet.worker import Limits, Task, pool

XID = "[    0.000000] Linux version 6.8.0 (build@host)\n[ 1234.5] NVRM: Xid (PCI:0000:41:00): 79, pid=7, GPU has fallen off the bus.\n"
OOM = "(EngineCore_DP0 pid=522) ERROR 03-01 00:00:01 [core.py:710] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    for index in range(4):
        (folder / f"node{index}").mkdir(parents=True)
        (folder / f"node{index}" / "dmesg.txt").write_text(XID.replace("1234", f"12{index}4"))
    (folder / "node5.log").write_text(OOM)
    (folder / "node6.gz").write_bytes(gzip.compress(XID.encode() * 9)[:60])
    (folder / "node7.log").write_text(OOM)
    return folder


def run(*arguments: object) -> str:
    result = CliRunner().invoke(batch, [str(one) for one in arguments], standalone_mode=False)
    assert result.exception is None, result.exception
    return result.stdout


def contents(out: Path) -> dict[str, bytes]:
    kept = {str(p.relative_to(out)): p.read_bytes() for p in sorted(out.rglob("*.json*"))}
    base = sqlite3.connect(out / "fleet.sqlite")
    kept["rows"] = repr(list(base.execute("SELECT * FROM incidents ORDER BY bundle"))).encode()
    base.close()
    return kept


def test_every_bundle_is_reported_grouped_and_found_again(fleet: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    groups = json.loads(run(fleet, "-o", out, "-j", 2, "--format", "json"))["groups"]
    assert groups[0]["cause"] == "gpu-fallen-off-bus" and groups[0]["count"] == 4 and groups[0]["new"]
    rows = [json.loads(line) for line in (out / "incidents.jsonl").read_text().splitlines()]
    assert len(rows) == 7 and len({row["digest"] for row in rows}) == 6
    first = contents(out)
    (fleet / "node8.log").write_text(XID.replace("41", "81"))
    groups = json.loads(run(fleet, "-o", out, "-j", 2, "--format", "json"))["groups"]
    assert groups[0]["count"] == 5 and not groups[0]["new"]
    for name, data in first.items():
        if name.startswith("reports/"):
            assert (out / name).read_bytes() == data
    base = sqlite3.connect(out / "fleet.sqlite")
    with base:
        base.execute(
            "INSERT INTO notes SELECT signature, 'reseated the card' FROM incidents WHERE bundle LIKE '%node8%'"
        )
    base.close()
    (tmp_path / "new.log").write_text(XID.replace("1234", "9999"))
    result = CliRunner().invoke(
        similar, [str(tmp_path / "new.log"), "--store", str(out), "--format", "json"], standalone_mode=False
    )
    found = json.loads(result.stdout)[0]["matches"]
    assert found[0]["likeness"] == 1.0 and found[0]["ended_by"] == "reseated the card"


def test_time_and_memory_limits_end_one_bundle_only(fleet: Path, tmp_path: Path) -> None:
    tasks = [Task("a", str(fleet / "node0")), Task("b", str(fleet / "node5.log"))]
    late = [json.loads(report) for _, report in pool(tasks, Limits(0.001, 0), 1)]
    assert [one["verdict"] for one in late] == ["unreadable"] * 2 and "longer than" in late[0]["summary"]


@pytest.mark.skipif(sys.platform != "linux", reason="the address space is limited on Linux only")
def test_a_worker_out_of_memory_is_replaced(fleet: Path) -> None:
    small = list(pool([Task("a", str(fleet / "node0")), Task("b", str(fleet / "node1"))], Limits(60, 40 << 20), 1))
    assert len(small) == 2 and all(json.loads(report)["verdict"] == "unreadable" for _, report in small)


def test_killed_and_run_again_ends_as_if_undisturbed(fleet: Path, tmp_path: Path) -> None:
    calm, torn = tmp_path / "calm", tmp_path / "torn"
    run(fleet, "-o", calm, "-j", 2)
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-m", "analyzer", "batch", str(fleet), "-o", str(torn), "-j", "1"],
        cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    for _ in range(600):
        if list(torn.glob("reports/*.json")) or process.poll() is not None:
            break
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    run(fleet, "-o", torn, "-j", 2)
    assert contents(calm) == contents(torn)


def test_a_half_written_report_is_no_report(tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    (tmp_path / "out" / "reports" / ".x.json.1.partial").write_text("{")
    Store(tmp_path / "out")
    assert not list((tmp_path / "out" / "reports").iterdir()) and store.finish() == ([], set())


def test_bundles_are_named_by_content(fleet: Path, tmp_path: Path) -> None:
    shutil.copytree(fleet / "node0", tmp_path / "copy")
    assert digest(fleet / "node0") == digest(tmp_path / "copy") != digest(fleet / "node1")
    listing = tmp_path / "list.txt"
    listing.write_text(f"# mine\n{fleet / 'node5.log'}\n{fleet / 'node5.log'}\n")
    assert list(expand([f"@{listing}"])) == [fleet / "node5.log"]
    assert [p.name for p in expand([str(fleet / "node?.log")])] == ["node5.log", "node7.log"]
