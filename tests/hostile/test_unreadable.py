"""N14: what the operating system does not let be read, for real, although tests may run as root."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

import analyzer
from tests.hostile.child import run_cli
from tests.hostile.logs import XID, XID_RULE

NOBODY = 65534


def _open_to_all(path: Path) -> bool:
    return all(one.stat().st_mode & 0o005 == 0o005 for one in (path, *path.parents))


def test_a_file_of_another_user_is_noted_and_the_rest_is_read() -> None:
    root = os.geteuid() == 0
    places = (Path(analyzer.__file__).parent, Path(pytest.__file__).parent)
    if root and not all(map(_open_to_all, places)):
        pytest.skip("another user could not run the program from here")
    with tempfile.TemporaryDirectory() as made:
        cwd = Path(made)
        bundle = cwd / "bundle"
        (bundle / "closed").mkdir(parents=True)
        (bundle / "ok.txt").write_text(XID)
        (bundle / "secret.log").write_text(XID)
        (bundle / "closed" / "inside.log").write_text(XID)
        if root:
            for path in (cwd, bundle):
                os.chown(path, NOBODY, NOBODY)
        (bundle / "secret.log").chmod(0)
        (bundle / "closed").chmod(0)
        try:
            ended = run_cli(["analyze", str(bundle), "--format", "json"], cwd, uid=NOBODY if root else None)
        finally:
            (bundle / "closed").chmod(0o700)
    assert ended.code == 0, ended.err
    assert ended.rules()[0] == XID_RULE
    assert ended.report is not None
    noted = {one["source"].rsplit("/", 1)[-1]: one["tag"] for one in ended.report["troubles"]}
    assert (noted["secret.log"], noted["closed"]) == ("unreadable", "unreadable")


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="no /proc here")
def test_a_file_whose_reading_fails_is_noted_and_the_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "ok.txt").write_text(XID)
    ended = run_cli(["analyze", str(tmp_path / "ok.txt"), "/proc/self/mem", "--format", "json"], tmp_path)
    assert ended.code == 0, ended.err
    assert ended.rules()[0] == XID_RULE
    assert ended.report is not None
    assert [(one["source"], one["tag"]) for one in ended.report["troubles"]] == [("mem", "unreadable")]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc here")
def test_a_file_that_claims_to_be_empty_is_read(tmp_path: Path) -> None:
    ended = run_cli(["analyze", "/proc/self/status", "--format", "json"], tmp_path)
    assert ended.report is not None
    assert ended.report["artifacts"][0]["bytes"] > 100
