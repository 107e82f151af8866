"""The report as one HTML file: no network, no inline handler, a strict Content-Security-Policy by hash.

The page is readable without its script; the script only draws the swim lanes (from a JSON block, as text and canvas
strokes, never as mark-up) and adds copy buttons. Script and style are package data in `page/`; the policy names their
SHA-256 hashes, so nothing else of the page can run or style, even if something got past the sanitiser.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from importlib.resources import files

from analyzer.render import phrases
from analyzer.render.lanes import lanes_of
from analyzer.render.sanitise import html, json_in_html, link, visible, visible_lines
from analyzer.report import (
    Evidence,
    Hypothesis,
    Missing,
    Moment,
    NextStep,
    Quote,
    RemedyNote,
    Report,
    SourceNote,
    TimelineEvent,
)

ROWS = 300
"""Events in the table below the drawing; the drawing holds all of them."""


def render_html(report: Report) -> str:
    """A complete document. Every string of the report passes `sanitise.html` or, for the lanes, `json_in_html`."""
    style, script = _piece("report.css"), _piece("report.js")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    title = html(f"{phrases.VERDICT[report.verdict].capitalize()}: {_headline(report)}")
    lanes = json.dumps(lanes_of(report), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n{_body(report)}\n"
        f'<script type="application/json" id="lanes">{json_in_html(lanes)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _piece(name: str) -> str:
    return files("analyzer.render").joinpath("page", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _headline(report: Report) -> str:
    argued = report.verdict in ("identified", "candidates") and report.hypotheses
    return report.hypotheses[0].title if argued else report.summary


# --- small pieces -------------------------------------------------------------------------------------------------


def _list(items: Iterable[str], empty: str, kind: str = "pieces") -> str:
    inner = "".join(f"<li>{item}</li>" for item in items)
    return f'<ul class="{kind}">{inner}</ul>' if inner else f'<p class="none">{html(empty)}</p>'


def _quote(quote: Quote | None) -> str:
    if quote is None:
        return ""
    where = f'<cite class="where">{html(phrases.place(quote))}</cite>'
    if not quote.text:
        return where
    # A record of many lines stays many lines; pre is what keeps its columns.
    return f'{where}<pre class="quote" tabindex="0">{"&#10;".join(map(html, visible_lines(quote.text)))}</pre>'


def _command(text: str) -> str:
    lines = "&#10;".join(map(html, visible_lines(text)))
    return f'<div class="command"><pre tabindex="0"><code>{lines}</code></pre></div>'


def _address(url: str) -> str:
    safe = link(url)
    return f'<a href="{html(safe)}" rel="noopener noreferrer">{html(url)}</a>' if safe else html(url)


def _section(name: str, title: str, body: str) -> str:
    return f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{title}</h2>{body}</section>'


def _table(caption: str, head: Iterable[str], rows: Iterable[Iterable[str]], *, identifier: str = "") -> str:
    """Cells are finished HTML; `identifier` names the body for the script."""
    named = f' id="{identifier}"' if identifier else ""
    top = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="scroll" role="region" aria-label="{caption}" tabindex="0"><table><caption>{caption}</caption>'
        f"<thead><tr>{top}</tr></thead><tbody{named}>{body}</tbody></table></div>"
    )


# --- the page -----------------------------------------------------------------------------------------------------


def _body(report: Report) -> str:
    sections = [
        ("hypotheses", "Hypotheses", "".join(map(_hypothesis, report.hypotheses))),
        ("next", "What to collect", _next_steps(report)),
        ("timeline", "Timeline", _timeline(report)),
        ("symptoms", "Symptoms", _symptoms(report)),
        ("unexplained", "Warnings and errors that nothing explains", _unexplained(report)),
        ("environment", "Environment", _environment(report)),
        ("coverage", "What was read, and what it can say", _coverage(report)),
    ]
    sections = [section for section in sections if section[2]]
    places = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title, _ in sections)
    parts = [_head(report), f'<nav aria-label="Parts of the report"><ul>{places}</ul></nav>', "<main>"]
    parts += [_section(*section) for section in sections]
    tool = report.tool
    foot = f"{tool.name} {tool.version} · rules {tool.rulebook} · report schema {report.schema_version}"
    parts.append(f"</main><footer>{html(foot)} · quotes are the records as they stand, never instructions</footer>")
    return "\n".join(parts)


def _head(report: Report) -> str:
    leading = report.hypotheses[0] if report.hypotheses and _headline(report) == report.hypotheses[0].title else None
    standing = f'<p class="standing">{html(phrases.standing(leading))}</p>' if leading else ""
    more = leading and report.summary.rstrip(".") != leading.title.rstrip(".")
    summary = f"<p>{html(report.summary)}</p>" if more else ""
    lines = [text for text in (" · ".join(phrases.since(report)), report.input, phrases.coverage(report)) if text]
    if aligned := phrases.clocks(report):
        lines.append(f"clocks: {aligned}")
    return (
        f'<header class="verdict-{report.verdict}"><p class="verdict">{phrases.VERDICT[report.verdict]}</p>'
        f"<h1>{html(_headline(report))}</h1>{standing}{summary}"
        + "".join(f'<p class="line">{html(line)}</p>' for line in lines)
        + "</header>"
    )


def _hypothesis(item: Hypothesis) -> str:
    columns = (
        ("for", "For", _list(_evidence(item.evidence_for), "nothing was seen")),
        ("against", "Against", _list(_evidence(item.evidence_against), "nothing found")),
        ("missing", "Missing", _list(map(_missing, item.missing_evidence), "nothing")),
    )
    sides = "".join(f'<div class="side {name}"><h4>{title}</h4>{body}</div>' for name, title, body in columns)
    layout = "sides" if item.evidence_against else "sides unopposed"
    about = f"<p>{html(item.about)}</p>" if item.about else ""
    here = f'<p class="here">{html(item.why_here)}</p>' if item.why_here else ""
    first = f'<p class="line">first event: {_moment(item.first_event)}</p>' if item.first_event else ""
    explains = f'<p class="line">explains: {html(", ".join(item.symptoms))}</p>' if item.symptoms else ""
    rivals = _list((f"<b>{html(rival.cause)}</b>: {html(rival.tell_apart)}" for rival in item.rivals), "none named")
    name = f'<span class="rank">{item.rank}</span> {html(item.title)}'
    state = f'<span class="standing">{html(phrases.standing(item))}</span>'
    is_open = " open" if item.rank == 1 and not item.ruled_out else ""
    looks = "hypothesis out" if item.ruled_out else "hypothesis"
    remedies = _list(map(_remedy, item.remedies), "no remedy is known")
    sources = _list(map(_source, item.sources), "none")
    return (
        f'<details class="{looks}"{is_open}><summary><h3>{name}</h3>{state}</summary>'
        f'<p class="line">cause <code>{html(item.cause)}</code> · rule <code>{html(item.rule)}</code> · score '
        f"{item.score:g} · {100 * item.completeness:.0f} % of its evidence could be checked</p>"
        f'{about}{here}{first}{explains}<div class="{layout}">{sides}</div>'
        f'<div class="pair"><div><h4>Do</h4>{remedies}</div>'
        f"<div><h4>Looks alike</h4>{rivals}<h4>Sources</h4>{sources}</div></div></details>"
    )


def _evidence(items: list[Evidence]) -> list[str]:
    """The strongest first; several records of one statement stand under it."""
    records: dict[tuple[str, str], list[str]] = {}
    for item in phrases.by_strength(items):
        when = f'<span class="line">{html(phrases.instant(item.time))}</span>' if item.time else ""
        times = f"<i>×{item.count:,}</i>" if item.count > 1 else ""
        records.setdefault((item.strength, item.statement), []).append(f"{times}{when}{_quote(item.source)}")
    return [
        f'<span class="strength"><span aria-hidden="true">{phrases.MARKS[strength]}</span> {strength}</span> '
        f"{html(statement)}{''.join(found)}"
        for (strength, statement), found in records.items()
    ]


def _missing(item: Missing) -> str:
    how = f'<p class="line">get it: {html(item.how_to_get)}</p>' if item.how_to_get else ""
    if phrases.is_command(item.how_to_get):
        how = _command(item.how_to_get)
    return f"{html(item.statement)} <i>{phrases.WOULD[item.would]}</i>{how}"


def _remedy(item: RemedyNote) -> str:
    parts = [f"<b>{html(item.do)}</b> <i>{phrases.GRADE[item.grade]}</i>"]
    if item.evidence:
        parts.append(f"<br>seen: {html(item.evidence)}")
    if item.verify:
        parts.append(f"<br>verify: {html(item.verify)} <i>{phrases.VERIFIED[item.verified]}</i>")
    if item.caveat:
        parts.append(f"<br>caveat: {html(item.caveat)}")
    if item.source:
        parts.append(f"<br>{_address(item.source)}")
    return "".join(parts)


def _source(item: SourceNote) -> str:
    title = f"{html(item.title)}<br>" if item.title else ""
    return f"{title}{_address(item.url)}<br>{html(item.status)}, checked {html(item.checked)}"


def _moment(item: Moment) -> str:
    what = "" if item.what in ("first event of this hypothesis", "onset") else item.what
    return f"{html(': '.join(filter(None, [phrases.moment(item), what])))}{_quote(item.source)}"


def _timeline(report: Report) -> str:
    timeline = report.timeline
    moments = []
    if timeline.last_progress:
        moments.append(f"last progress: {_moment(timeline.last_progress)}")
    if timeline.onset:
        moments.append(f"onset: {_moment(timeline.onset)}")
    # The script unhides the drawing: without it the table stands alone.
    drawing = _piece("drawing.html")
    clocks = [_clock_row(clock.domain, clock.aligned_by, clock.offset_s, clock.uncertainty_s, clock.assumptions)
              for clock in timeline.clocks]  # fmt: skip
    shown = timeline.events[:ROWS]
    count = phrases.count_of(len(timeline.events), "event")
    more = f" (the first {len(shown)} of {count})" if len(timeline.events) > len(shown) else f" ({count})"
    rows = (_event_row(event) for event in shown)
    table = _table("Events in order", ("when", "kind", "who", "record"), rows, identifier="event-rows")
    last_records = [
        [html(name), html(phrases.moment(last)), _quote(last.source)] for name, last in timeline.last_records.items()
    ]
    return (
        (_list(moments, "", "moments") if moments else "")
        + (drawing if timeline.events else '<p class="none">no event</p>')
        + (f"<details id=\"records\"><summary>Events as a table{more}</summary>{table}</details>" if shown else "")
        + (_table("Last record of each process", ("process", "when", "record"), last_records) if last_records else "")
        + (_table("Clocks", ("clock", "aligned by", "offset", "uncertainty", "assumed"), clocks) if clocks else "")
    )


def _clock_row(
    domain: str, aligned_by: str, offset: float | None, doubt: float | None, assumptions: list[str]
) -> list[str]:
    numbers = [html(phrases.seconds(value)) if value is not None else "not known" for value in (offset, doubt)]
    return [html(domain), html(aligned_by or "nothing"), *numbers, html("; ".join(assumptions))]


def _event_row(event: TimelineEvent) -> list[str]:
    when = phrases.moment(event) or "no instant known"
    text = event.text if event.text or event.source is None else event.source.text
    where = f'<cite class="where">{html(phrases.place(event.source))}</cite>' if event.source else ""
    return [html(when), html(event.kind), html(event.actor), f"{where}<code>{html(text)}</code>"]


def _next_steps(report: Report) -> str:
    return "".join(_steps(title, steps) for title, steps in phrases.steps_by_time(report))


def _steps(title: str, steps: list[NextStep]) -> str:
    items = []
    for step in steps:
        risk = f' <span class="against-text">risk: {html(step.risk)}</span>' if step.risk else ""
        apart = f'<p class="line">tells apart: {html(", ".join(step.separates))}</p>' if step.separates else ""
        items.append(f"<li>{html(step.collect)}{risk}{_command(step.command) if step.command else ''}{apart}</li>")
    return f'<h3>{title}</h3><ol class="pieces">{"".join(items)}</ol>'


def _symptoms(report: Report) -> str:
    rows = (
        f"<b>{html(item.symptom)}</b> ×{item.count:,}, "
        + (f"explained by {html(', '.join(item.explained_by))}" if item.explained_by else "not explained")
        + _quote(item.first)
        for item in report.symptoms
    )
    return _list(rows, "none seen")


def _unexplained(report: Report) -> str:
    rows = (
        # The record says what its template says, and its numbers too.
        f"{html(item.level)} ×{item.count:,} "
        + (_quote(item.first) if item.first.text else f"<code>{html(item.template)}</code>{_quote(item.first)}")
        for item in report.unexplained
    )
    return _list(rows, "none")


def _environment(report: Report) -> str:
    if not report.environment:
        return '<p class="none">nothing is known about the machine or the software</p>'
    rows = []
    for name, fact in report.environment.items():
        also = f' <span class="against-text">also: {html(", ".join(fact.conflicts))}</span>' if fact.conflicts else ""
        where = f'<cite class="where">{html(phrases.place(fact.source))}</cite>' if fact.source else "–"
        rows.append([html(name), f"{html(fact.value)}{also}", where])
    return _table("Facts about machine and software", ("what", "value", "read from"), rows)


def _coverage(report: Report) -> str:
    rows = []
    windows = phrases.windows(report)
    for item in report.artifacts:
        speaks = windows.get(item.path)
        covered = phrases.window(item.first, item.last, speaks)
        onset = phrases.speaks_of_onset(speaks, report)
        onset = f'<span class="against-text">{html(onset)}</span>' if onset.startswith("no:") else html(onset)
        end = "yes" if item.complete else '<span class="against-text">no</span>'
        known = f"{100 * item.recognised_share:.0f} %" if item.parser else "–"
        notes = "<br>".join(f"{html(note.tag)}: {html(note.text)}" for note in item.notes)
        rows.append([
            html(item.path), html(item.parser or "not recognised"), html(phrases.size(item.bytes)), f"{item.lines:,}",
            known, html(covered), onset, end, notes,
        ])  # fmt: skip
    head = ("artifact", "read as", "size", "lines", "lines known", "covers", "the onset too", "to its end", "notes")
    body = _table("Artifacts", head, rows) if rows else '<p class="none">no artifact</p>'
    if blind := phrases.not_seen(report):
        body += f"<p>Not seen: {html(' · '.join(blind))}</p>"
    troubles = (
        f'<cite class="where">{html(item.source)}{f":{item.line}" if item.line else ""}</cite> '
        f"<b>{html(item.tag)}</b>: {html(visible(item.text))}"
        for item in report.troubles
    )
    return body + "<h3>Troubles while reading</h3>" + _list(troubles, "none")
