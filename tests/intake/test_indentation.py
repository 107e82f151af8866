"""A log that somebody indented (a code block, YAML, a quoted message) reads as it would without the blanks."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.analyze import investigate

FIXTURES = Path(__file__).parents[2] / "fixtures" / "kernel_log"


def _ranked(path: Path) -> list[tuple[str, str, bool]]:
    return [(one.rule.id, one.confidence, one.ruled_out) for one in investigate([str(path)]).ranked]


@pytest.mark.parametrize("blanks", ["  ", "    ", "\t\t"])
def test_the_same_answer_and_the_line_as_it_stands(tmp_path: Path, blanks: str) -> None:
    text = (FIXTURES / "gsp-119-smi-wedge.txt").read_text(encoding="utf-8")
    bare, indented = tmp_path / "bare.txt", tmp_path / "indented.txt"
    bare.write_text(text, encoding="utf-8")
    indented.write_text("\n".join(f"{blanks}{line}" if line else line for line in text.split("\n")), encoding="utf-8")
    assert _ranked(indented) == _ranked(bare) != []


def test_deeper_blanks_stay(tmp_path: Path) -> None:
    """Only what all lines share is taken off: the frames of an indented stack still stand below their thread."""
    path = tmp_path / "stack.txt"
    path.write_text(
        '    Thread 7 (idle): "MainThread"\n        wait (threading.py:359)\n        run (app.py:3)\n', encoding="utf-8"
    )
    (thread,) = investigate([str(path)]).bundle.events("stacks.thread")
    assert (thread.fields["thread"], len(thread.fields["frames"])) == ("MainThread", 2)
