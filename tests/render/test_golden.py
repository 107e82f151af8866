"""The hand-written reports in every format, against reviewed golden files (fixtures/render/README.md)."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

import pytest

from analyzer.render import render, render_timeline
from analyzer.render.saved import load_report

FOLDER = Path(__file__).parents[2] / "fixtures" / "render"
NAMES = ("identified", "candidates", "unknown", "healthy", "unreadable")
VIEWS = {
    "80.txt": ("text", {"width": 80}),
    "100.txt": ("text", {"width": 100}),
    "full.txt": ("text", {"width": 100, "full": True}),
    "md": ("markdown", {}),
    "slack": ("slack", {}),
    "html": ("html", {}),
}


def _compare(path: Path, text: str) -> None:
    if os.environ.get("STUCKWARP_BLESS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def _without_pieces(page: str) -> str:
    """The page without its style and script, which would drown the difference; their hashes change with them."""
    for name in ("report.css", "report.js"):
        page = page.replace(files("analyzer.render").joinpath("page", name).read_text(encoding="utf-8"), name)
    head, _, rest = page.partition("script-src")
    return head + "script-src …" + rest[rest.index("; base-uri") :] if rest else page


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("view", VIEWS)
def test_report_views(name: str, view: str) -> None:
    format, options = VIEWS[view]
    text = render(load_report(FOLDER / f"{name}.json"), format, **options)
    _compare(FOLDER / f"{name}.{view}", _without_pieces(text) if format == "html" else text)


@pytest.mark.parametrize("name", NAMES)
def test_json_is_the_document_again(name: str, tmp_path: Path) -> None:
    report = load_report(FOLDER / f"{name}.json")
    again = tmp_path / "again.json"
    again.write_text(render(report, "json"), encoding="utf-8")
    assert load_report(again) == report


@pytest.mark.parametrize(
    ("format", "ending"),
    [
        ("text", "timeline.txt"),
        ("chrome", "chrome.json"),
        ("timesketch", "timesketch.jsonl"),
        ("jsonl", "events.jsonl"),
    ],
)
def test_timeline_views(format: str, ending: str) -> None:
    report = load_report(FOLDER / "identified.json")
    _compare(FOLDER / f"identified.{ending}", render_timeline(report.timeline, format))
