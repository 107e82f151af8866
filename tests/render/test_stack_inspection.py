"""The screen of `inspect` for host stacks."""

from __future__ import annotations

from typing import Any

from analyzer.render.stack_inspection import BOTTOM, GROUPS, TOP, stacks_text


def _thread(name: str, signature: str, frames: int = 3, **more: Any) -> dict[str, Any]:
    return {
        "name": name, "signature": signature, "wait": "lock",
        "frames": [{"function": f"f{at}", "file": "a.py", "line": at} for at in range(frames)], **more,
    }  # fmt: skip


def _screen(*threads: dict[str, Any], **process: Any) -> str:
    return "\n".join(stacks_text({"processes": [{"pid": 7, "threads": list(threads), **process}]}))


def test_equal_stacks_are_one_group_and_the_main_thread_comes_first() -> None:
    text = _screen(
        _thread("w1", "a", wait="queue_idle"), _thread("w2", "a", wait="queue_idle"), _thread("MainThread", "b")
    )
    assert text.index("MainThread: waits for a lock") < text.index("2 x w1, w2: idle")


def test_frames_left_out_are_counted() -> None:
    text = _screen(_thread("MainThread", "a", frames=20))
    assert f"… {20 - TOP - BOTTOM} frames" in text
    assert all(f"f{at}  (a.py:{at})" in text for at in (0, TOP - 1, 20 - BOTTOM, 19))
    assert f"f{TOP}  " not in text
    assert "…" not in _screen(_thread("MainThread", "a", frames=TOP + BOTTOM))


def test_threads_and_processes_left_out_are_counted() -> None:
    text = _screen(*(_thread(f"t{at}", str(at)) for at in range(GROUPS + 3)))
    assert "… 3 more threads" in text


def test_who_holds_the_gil_is_said() -> None:
    assert "MainThread: runs, holds the GIL" in _screen(_thread("MainThread", "a", wait="running", owns_gil=True))


def test_what_the_dump_says_is_made_safe() -> None:
    text = _screen(_thread("\x1b[31mred", "a"), command="python \x1b]0;title\x07 serve", tool="py-spy")
    assert "\x1b" not in text and "\x07" not in text
