"""The exit codes of docs/report-format.md: what cannot be read is never 0."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.child import run_cli


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    file = tmp_path / "empty.log"
    file.write_bytes(b"")
    return file


@pytest.mark.parametrize("command", [["analyze"], ["triage"], ["inspect"], ["timeline"], ["batch", "-o", "OUT"]])
@pytest.mark.parametrize("given", ["missing", "empty"])
def test_nothing_readable_is_two(command: list[str], given: str, empty: Path, tmp_path: Path) -> None:
    path = empty if given == "empty" else tmp_path / "nope"
    arguments = [str(tmp_path / "out") if one == "OUT" else one for one in command]
    assert run_cli([*arguments, str(path)], tmp_path).code == 2


def test_a_timeline_without_events_of_a_cut_source_is_three(tmp_path: Path) -> None:
    import gzip

    file = tmp_path / "cut.log.gz"
    file.write_bytes(gzip.compress(b"just a word\n" * 5000)[:-12])
    assert run_cli(["timeline", str(file)], tmp_path).code == 3
    file.write_bytes(gzip.compress(b"just a word\n" * 5000))
    assert run_cli(["timeline", str(file)], tmp_path).code == 0
