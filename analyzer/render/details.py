"""What stands below the first screen with `--full`: next steps, unexplained lines, environment, coverage, timeline."""

from __future__ import annotations

from analyzer.render import phrases
from analyzer.render.columns import LABEL, Page
from analyzer.report import Report

EVENTS_SHOWN = 200


def append_details(page: Page, report: Report) -> None:
    """Every list of the report, each under its heading."""
    for part in (_next_steps, _symptoms, _unexplained, _environment, _artifacts, _troubles, _last_records, _timeline):
        page.blank()
        part(page, report)


def _next_steps(page: Page, report: Report) -> None:
    for title, steps in phrases.steps_by_time(report):
        page.blank()
        page.row("NEXT", title)
        for number, step in enumerate(steps, start=1):
            separates = f"   tells apart: {', '.join(step.separates)}" if step.separates else ""
            page.row("", step.collect + (f"   ({step.risk})" if step.risk else "") + separates, mark=f"{number}")
            if step.command:
                page.command("", step.command, indent=LABEL + 5)


def _symptoms(page: Page, report: Report) -> None:
    if report.verdict not in ("identified", "candidates"):
        return
    label = "SYMPTOMS"
    for symptom in report.symptoms:
        by = f", explained by {', '.join(symptom.explained_by)}" if symptom.explained_by else ", not explained"
        page.row(label, f"{symptom.symptom} ×{symptom.count:,}{by}", right=phrases.place(symptom.first))
        label = ""


def _unexplained(page: Page, report: Report) -> None:
    label = "UNEXPLAINED"
    for item in report.unexplained:
        page.row(label, f"{item.level} ×{item.count:,}  {item.template}", right=phrases.place(item.first))
        label = ""


def _environment(page: Page, report: Report) -> None:
    label = "MACHINE"
    for name, fact in report.environment.items():
        others = f"   (also: {', '.join(fact.conflicts)})" if fact.conflicts else ""
        where = phrases.place(fact.source) if fact.source else ""
        page.row(label, f"{name} = {fact.value}{others}", right=where, style="against" if fact.conflicts else "")
        label = ""


def _artifacts(page: Page, report: Report) -> None:
    label = "READ"
    windows = phrases.windows(report)
    for item in report.artifacts:
        speaks = windows.get(item.path)
        covered = f", {window}" if (window := phrases.window(item.first, item.last, speaks)) else ""
        onset = phrases.speaks_of_onset(speaks, report)
        how = f"read as {item.parser}" if item.parser else "not recognised"
        known = f", {100 * item.recognised_share:.0f} % of its lines known" if item.parser and item.lines else ""
        end = "" if item.complete else ", NOT read to its end"
        text = f"{item.path}  {how}, {phrases.size(item.bytes)}, {phrases.count_of(item.lines, 'line')}"
        text += known + covered + end
        page.row(label, text, style="" if item.complete else "against")
        if onset:
            page.row("", f"the onset covered: {onset}", mark="–")
        for note in item.notes:
            page.row("", f"{note.tag}: {note.text}", mark="–")
        label = ""
    if blind := phrases.not_seen(report):
        page.row("NOT SEEN", " · ".join(blind))


def _troubles(page: Page, report: Report) -> None:
    if report.verdict not in ("identified", "candidates"):
        return
    label = "NOT READ"
    for trouble in report.troubles:
        where = f"{trouble.source}:{trouble.line}" if trouble.line else trouble.source
        page.row(label, f"{where}  {trouble.tag}: {trouble.text}", style="against")
        label = ""


def _last_records(page: Page, report: Report) -> None:
    for number, (name, last) in enumerate(report.timeline.last_records.items()):
        where = phrases.place(last.source) if last.source else ""
        page.row("LAST WORDS" if number == 0 else "", f"{name}  {phrases.moment(last)}", right=where)
        if last.source and last.source.text:
            page.quote("", last.source.text, indent=LABEL)


def _timeline(page: Page, report: Report) -> None:
    timeline = report.timeline
    for number, clock in enumerate(timeline.clocks):
        offset = f", offset {phrases.seconds(clock.offset_s)}" if clock.offset_s is not None else ""
        doubt = f" ±{phrases.seconds(clock.uncertainty_s)}" if clock.uncertainty_s is not None else ""
        assumed = f"; assumed: {', '.join(clock.assumptions)}" if clock.assumptions else ""
        how = f"aligned by {clock.aligned_by}" if clock.aligned_by else "not aligned"
        page.row("CLOCKS" if number == 0 else "", f"{clock.domain}: {how}{offset}{doubt}{assumed}")
    page.blank()
    for number, event in enumerate(timeline.events[:EVENTS_SHOWN]):
        when = phrases.moment(event) or "no instant known"
        who = f"  {event.actor}" if event.actor else ""
        where = phrases.place(event.source) if event.source else ""
        page.row("TIMELINE" if number == 0 else "", f"{when}  {event.kind}{who}", right=where)
        if event.text:
            page.quote("", event.text, indent=LABEL)
    if len(timeline.events) > EVENTS_SHOWN:
        page.row("", f"{len(timeline.events) - EVENTS_SHOWN:,} more: see the timeline command")
