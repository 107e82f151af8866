"""Renderers: one report document in, one text out. Each works on a saved report, without the inputs.

Only the renderer that is asked for is imported, so `--format json` pays for neither rich nor the HTML page.
"""

from __future__ import annotations

from typing import Literal, get_args

from analyzer.report import Report, Timeline

Format = Literal["text", "json", "markdown", "html", "slack"]
FORMATS: tuple[str, ...] = get_args(Format)
TimelineFormat = Literal["text", "json", "jsonl", "chrome", "timesketch"]
TIMELINE_FORMATS: tuple[str, ...] = get_args(TimelineFormat)


def render(report: Report, format: str, *, width: int | None = None, colour: bool = False, full: bool = False) -> str:
    """The report in one of `FORMATS`, ending in a newline.

    `width` (columns, default 100), `colour` and `full` (every hypothesis, quote and list) matter to `text` only, but
    for `full`, which `slack` ignores too. Raises ValueError for a format that is not known.
    """
    match format:
        case "text":
            from analyzer.render.terminal import render_terminal

            return render_terminal(report, width=width, colour=colour, full=full)
        case "json":
            from analyzer.render.trace import render_json

            return render_json(report)
        case "markdown":
            from analyzer.render.markdown import render_markdown

            return render_markdown(report)
        case "html":
            from analyzer.render.html import render_html

            return render_html(report)
        case "slack":
            from analyzer.render.slack import render_slack

            return render_slack(report)
    raise ValueError(f"unknown report format {format!r}; known: {', '.join(FORMATS)}")


def render_timeline(timeline: Timeline, format: str, *, width: int | None = None, colour: bool = False) -> str:
    """The timeline in one of `TIMELINE_FORMATS`, ending in a newline. Raises ValueError for any other."""
    from analyzer.render import trace

    match format:
        case "text":
            from analyzer.render.chronicle import render_chronicle

            return render_chronicle(timeline, width=width, colour=colour)
        case "json":
            return trace.render_json(timeline)
        case "jsonl":
            return trace.render_json_lines(timeline)
        case "chrome":
            return trace.render_chrome(timeline)
        case "timesketch":
            return trace.render_timesketch(timeline)
    raise ValueError(f"unknown timeline format {format!r}; known: {', '.join(TIMELINE_FORMATS)}")
