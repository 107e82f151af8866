"""The report on a terminal: the first 28 lines at 100 columns answer what, how sure, why, and what now.

Order, density and words follow what a person on call needs at night: one colour for the verdict, one for what speaks
against it, meaning never by colour alone; quotes are the record as it stands, shortened in the middle; commands are
never wrapped. `full` lifts every limit and adds the lists below the first screen.
"""

from __future__ import annotations

from analyzer.render import phrases
from analyzer.render.columns import LABEL, USUAL, Page, cells, wrap
from analyzer.render.details import append_details
from analyzer.render.sanitise import terminal
from analyzer.report import Evidence, Hypothesis, Missing, NextStep, RemedyNote, Report

FIRST_SCREEN = 28
"""Lines of the first screen."""
_MARK = 5


def render_terminal(report: Report, *, width: int | None = None, colour: bool = False, full: bool = False) -> str:
    """The report as text of `width` columns (60 to 200, default 100)."""
    page = Page(width)
    name = f"{report.tool.name}  {report.input}" if report.input else report.tool.name
    took = phrases.seconds(report.took_s) if report.took_s is not None else ""
    coverage = phrases.coverage(report)
    if cells(terminal(f"{name}   {coverage}")) + 2 + cells(took) <= page.width:
        page.row("", f"{name}   {coverage}", right=took, indent=0)
    else:
        page.row("", name, right=took, indent=0, at_most=1)
        page.row("", coverage)
    page.blank()
    if report.verdict in ("identified", "candidates") and report.hypotheses:
        _argued(page, report, full)
    else:
        _plain(page, report, full)
    if full:
        append_details(page, report)
    return page.text(colour)


def _verdict(page: Page, report: Report, text: str, right: str, at_most: int | None) -> None:
    page.row(phrases.VERDICT[report.verdict], text, right=right, style="verdict", at_most=at_most)


# --- a cause is named ---------------------------------------------------------------------------------------------


def _parts(page: Page, label: str, parts: list[str], at_most: int | None, *, keep: int = 1, right: str = "") -> None:
    """A row of parts, the most telling first: what does not fit is left out whole, but for the first `keep`."""
    parts = [part for part in parts if part]
    room = page.width - LABEL - (cells(right) + 2 if right else 0)
    while len(parts) > keep and at_most is not None and len(wrap(terminal(" · ".join(parts)), room)) > at_most:
        parts.pop()
    if parts:
        page.row(label, " · ".join(parts), right=right, at_most=at_most and max(at_most, keep))


def _argued(page: Page, report: Report, full: bool) -> None:
    leading, *others = report.hypotheses
    if full:
        _argued_head(page, report, None)
        _evidence(page, leading, None)
        _after_evidence(page, report, leading, None)
        for hypothesis in others:
            _argued_whole(page, report, hypothesis)
        return
    # The evidence gets what the rest leaves of the first screen; the rest is laid out tighter until that is enough.
    enough = min(len(leading.evidence_for), 5) + 2
    for looseness in (2, 1):
        head, below = Page(page.width), Page(page.width)
        _argued_head(head, report, looseness)
        _after_evidence(below, report, leading, looseness)
        below.blank()
        _others(below, others, looseness + 1)
        _more(below, report)
        budget = FIRST_SCREEN - page.height() - head.height() - below.height()
        if budget >= enough:
            break
    page.extend(head)
    # A narrow screen wraps more: rather a longer first screen there than a verdict without its reasons.
    _evidence(page, leading, max(budget, 3 if page.width >= USUAL else 7))
    page.extend(below)


def _argued_head(page: Page, report: Report, at_most: int | None) -> None:
    leading = report.hypotheses[0]
    _verdict(page, report, leading.title, phrases.standing(leading), at_most and 2)
    fitting = sum(not hypothesis.ruled_out for hypothesis in report.hypotheses)
    open_question = f"first of {fitting}, none is proved" if report.verdict == "candidates" and fitting > 1 else ""
    _since(page, report, open_question, whole=at_most is None)
    if at_most is None and report.summary:
        page.row("", report.summary)
    page.blank()


def _since(page: Page, report: Report, before: str, *, whole: bool) -> None:
    """When it began and what moved last, a line each, the machine behind them. What does not fit in a line is told more
    briefly rather than cut: first without its reason, then the machine part by part."""
    if whole:
        page.row("", " · ".join(filter(None, [before, *phrases.since(report)])))
        return
    onset = report.timeline.onset
    why = onset.what.partition("; ")[0] if onset else ""
    bare = phrases.onset(report, why=False)
    reasoned = f"{bare}: {why}" if bare and why not in ("", "onset") else bare
    if before and bare and cells(terminal(f"{before} · {reasoned}")) <= page.width - LABEL:
        reasoned, before = f"{before} · {reasoned}", ""
    _fitting(page, [reasoned, bare])
    machine, progress = phrases.machine(report), phrases.last_progress(report)
    ways = [[before, part, *machine] for part in (progress, phrases.last_progress(report, why=False))]
    ways = [list(filter(None, way)) for way in ways]
    ways += [ways[-1][:count] for count in range(len(ways[-1]) - 1, 0, -1)]
    _fitting(page, [" · ".join(way) for way in ways])


def _fitting(page: Page, ways: list[str]) -> None:
    """The first of `ways` to say it that fits in one line, or the last one in two."""
    room = page.width - LABEL
    chosen = next((way for way in ways if cells(terminal(way)) <= room), ways[-1])
    if chosen:
        page.row("", chosen, at_most=2)


def _argued_whole(page: Page, report: Report, hypothesis: Hypothesis) -> None:
    page.blank()
    page.row(f"{hypothesis.rank}", hypothesis.title, right=phrases.standing(hypothesis), style="verdict")
    page.blank()
    _evidence(page, hypothesis, None)
    _after_evidence(page, report, hypothesis, None)


def _evidence(page: Page, hypothesis: Hypothesis, budget: int | None) -> None:
    """What speaks for it, in `budget` lines: statements with their quotes, the strongest first, as many as fit."""
    items = phrases.by_strength(hypothesis.evidence_for)
    if not items:
        page.row("  for", "nothing was seen", mark="–")
        return
    if budget is None:
        for number, evidence in enumerate(items):
            _statement(page, "  for" if number == 0 else "", evidence, True, None)
        return
    # One record a statement; two statements with their quotes tell more than four without.
    distinct = list({item.statement: item for item in reversed(items)}.values())[::-1]
    shown = 0
    for evidence in distinct:
        room = budget - (shown + 1 < len(items))  # a line is kept to say that there is more
        block = Page(page.width)
        _statement(block, "  for" if shown == 0 else "", evidence, True, 2)
        if shown and block.height() > room:
            block = Page(page.width)
            _statement(block, "", evidence, False, 2)
            if block.height() > room:
                break
        page.extend(block)
        budget -= block.height()
        shown += 1
    if rest := len(items) - shown:
        page.row("", f"{phrases.count_of(rest, 'more piece', 'more pieces')} of evidence with --full", mark="…")


def _statement(page: Page, label: str, evidence: Evidence, with_quote: bool, at_most: int | None) -> None:
    where = phrases.place(evidence.source) if evidence.source else ""
    text, mark = phrases.statement(evidence), phrases.MARKS[evidence.strength]
    if evidence.source and evidence.source.text and with_quote:
        page.row(label, text, mark=mark, at_most=at_most)
        page.quote(where, evidence.source.text, indent=LABEL + _MARK, whole=at_most is None)
    elif at_most is not None and cells(where) > (page.width - LABEL) // 2:
        page.row(label, text, mark=mark, at_most=at_most)
    else:
        page.row(label, text, mark=mark, right=where, at_most=at_most)


def _after_evidence(page: Page, report: Report, hypothesis: Hypothesis, looseness: int | None) -> None:
    """What comes below the evidence; `looseness` is the lines that a text may take, None for all of everything."""
    full = looseness is None
    _against(page, hypothesis, looseness)
    for number, missing in enumerate(hypothesis.missing_evidence[:looseness]):
        _missing(page, "  missing" if number == 0 else "", missing, looseness)
    if full and hypothesis.why_here:
        page.row("  here", hypothesis.why_here)
    if full and hypothesis.about:
        page.row("  about", hypothesis.about)
    page.blank()
    for remedy in hypothesis.remedies if full else hypothesis.remedies[:1]:
        _remedy(page, remedy, looseness)
    if not hypothesis.remedies:
        page.row("  do", "no remedy is known")
    if not full and not hypothesis.missing_evidence and report.verdict == "candidates":
        for step in report.next_steps[:1]:
            _step(page, "  collect", 1, step)
    for rival in hypothesis.rivals if full else []:
        page.row("  rival", f"{rival.cause}: {rival.tell_apart}")
    if full:
        for number, source in enumerate(hypothesis.sources):
            page.row("  sources" if number == 0 else "", source.title or source.url)
            address = f"{source.url}   " if source.title else ""
            page.row("", f"{address}{source.status}, checked {source.checked}", style="quiet")
    elif hypothesis.sources:
        # An address that would have to be cut is no address: those that fit in a line, or the first one in two.
        sources = list(map(phrases.short_source, hypothesis.sources))
        fitting = [text for text in sources if cells(terminal(text)) <= page.width - LABEL]
        _parts(page, "  sources", fitting or sources[:1], 1 if fitting else 2)


def _against(page: Page, hypothesis: Hypothesis, looseness: int | None) -> None:
    if not hypothesis.evidence_against:
        page.row("  against", "nothing found", mark="–")
    items = phrases.by_strength(hypothesis.evidence_against)
    for number, evidence in enumerate(items[:looseness]):
        where = phrases.place(evidence.source) if evidence.source else ""
        label, mark = "  against" if number == 0 else "", phrases.MARKS[evidence.strength]
        quoted = looseness is None and evidence.source is not None and evidence.source.text
        right, lines = "" if quoted else where, None if looseness is None else 2
        page.row(label, phrases.statement(evidence), mark=mark, right=right, style="against", at_most=lines)
        if quoted:
            page.quote(where, quoted, indent=LABEL + _MARK, whole=True)


def _missing(page: Page, label: str, missing: Missing, looseness: int | None) -> None:
    at_most = None if looseness is None else 2
    page.row(label, missing.statement, mark="?", right=phrases.WOULD[missing.would], at_most=at_most)
    if not missing.how_to_get:
        return
    if phrases.is_command(missing.how_to_get):
        page.command("", missing.how_to_get, indent=LABEL + _MARK)
    else:
        page.row("", f"get it: {missing.how_to_get}", indent=LABEL + _MARK, at_most=at_most)


def _remedy(page: Page, remedy: RemedyNote, looseness: int | None) -> None:
    # What is to be done may be a command, so it is never cut; nor is the check that belongs to it.
    grade = phrases.GRADE[remedy.grade]
    beside = cells(terminal(remedy.do)) + cells(grade) + 2 <= page.width - LABEL
    page.row("  do", remedy.do, right=grade if beside else "")
    if remedy.evidence and looseness != 1:
        said = remedy.evidence if beside else f"{grade}: {remedy.evidence}"
        page.row("", said, style="quiet", at_most=looseness)
    elif not beside:
        page.row("", grade, style="quiet")
    page.row("  verify", remedy.verify or "no check is known", right=phrases.TOOK_EFFECT[remedy.verified])
    if remedy.caveat:
        page.row("  caveat", remedy.caveat, at_most=looseness and 2)
    if remedy.source and looseness is None:
        page.row("", remedy.source, style="quiet")


def _others(page: Page, others: list[Hypothesis], at_most: int) -> None:
    shown = others[:at_most]
    # What was ruled out is part of the answer: one place is kept for it.
    if len(others) > at_most and not any(hypothesis.ruled_out for hypothesis in shown):
        shown = shown[: at_most - 1] + [item for item in others if item.ruled_out][:1] or shown
    for number, hypothesis in enumerate(shown):
        label = "ALSO" if number == 0 else ""
        if hypothesis.ruled_out:
            _ruled_out(page, label, hypothesis, at_most)
        else:
            # No fault of its own: "medium" beside it, below the word HEALTHY, would read like one.
            word = "benign" if hypothesis.impact == "info" else hypothesis.confidence
            _line(page, label, f"{hypothesis.rank}", f"{word:<8}", hypothesis.title)
    if len(others) > len(shown):
        page.row("", f"{phrases.count_of(len(others) - len(shown), 'other')} with --full", mark="…")


def _line(page: Page, label: str, mark: str, word: str, text: str) -> None:
    """A second line of `text` stands under its first, not under the `word` before it."""
    lines = wrap(terminal(text), page.width - LABEL - _MARK - len(word))
    for number, line in enumerate([*lines[:1], " ".join(lines[1:])] if len(lines) > 1 else lines):
        page.row(label if number == 0 else "", (word if number == 0 else " " * len(word)) + line,
                 mark=mark if number == 0 else " ", at_most=1)


def _ruled_out(page: Page, label: str, hypothesis: Hypothesis, at_most: int) -> None:
    """The title, and behind or below it the record that refutes it; only the title where lines are short."""
    _line(page, label, "–", "out     ", hypothesis.title)
    for evidence in phrases.by_strength(hypothesis.evidence_against)[:1] if at_most > 2 else []:
        place = f", {phrases.place(evidence.source)}" if evidence.source else ""
        _line(page, "", " ", " " * 8, f"({evidence.statement}{place})")


def _more(page: Page, report: Report) -> None:
    parts = []
    if report.timeline.events:
        parts.append(f"timeline of {phrases.count_of(len(report.timeline.events), 'event')}")
    if report.next_steps and report.verdict in ("identified", "candidates"):
        parts.append(phrases.count_of(len(report.next_steps), "next step"))
    if report.unexplained:
        parts.append(f"{len(report.unexplained)} unexplained")
    if report.troubles:
        parts.append(phrases.count_of(len(report.troubles), "reading trouble"))
    if aligned := phrases.clocks(report):
        parts.append(f"clocks: {aligned}")
    _parts(page, "MORE", parts or ["nothing further"], 1, right="--full")


# --- no cause is named --------------------------------------------------------------------------------------------


def _plain(page: Page, report: Report, full: bool) -> None:
    signs = len(report.symptoms)
    right = f"signs of trouble: {signs}" if report.verdict == "unknown" and signs else ""
    _verdict(page, report, report.summary, right, None if full else 3)
    _since(page, report, "", whole=full)
    page.blank()
    below = Page(page.width)
    if report.verdict == "healthy":
        _read(page, report, full)
    else:
        _seen(page, report, full)
    if report.verdict == "unreadable" or report.troubles:
        _troubles(page, report, full)
    if report.verdict != "unreadable" and (blind := phrases.not_seen(report)):
        page.row("  not seen", " · ".join(blind), at_most=None if full else 3)
    below.blank()
    if not full:
        _others(below, report.hypotheses, 3)
        _more(below, report)
    if report.verdict != "healthy":
        room = None if full else max(FIRST_SCREEN - page.height() - below.height(), 3)
        _collect(page, report, room)
    page.extend(below)
    if full:
        for hypothesis in report.hypotheses:
            _argued_whole(page, report, hypothesis)


def _seen(page: Page, report: Report, full: bool) -> None:
    label = "  seen"
    for symptom in report.symptoms if full else report.symptoms[:4]:
        times = f" ×{symptom.count:,}" if symptom.count > 1 else ""
        page.row(label, f"{symptom.symptom}{times} (a symptom)", right=phrases.place(symptom.first), at_most=2)
        if full:
            page.quote(phrases.place(symptom.first), symptom.first.text, indent=LABEL)
        label = ""
    if len(report.symptoms) > 4 and not full:
        page.row("", f"{len(report.symptoms) - 4} more with --full")
    for unexplained in [] if full else report.unexplained[:3]:
        times = f" ×{unexplained.count:,}" if unexplained.count > 1 else ""
        where = phrases.place(unexplained.first)
        page.row(label, f"{unexplained.level}{times}  {unexplained.template}", right=where, at_most=2)
        label = ""


def _read(page: Page, report: Report, full: bool) -> None:
    """Healthy is a claim: over what was read, and to which moment."""
    artifacts = report.artifacts if full else report.artifacts[:6]
    for number, artifact in enumerate(artifacts):
        until = f", to {phrases.instant(artifact.last)}" if artifact.last else ""
        text = f"{artifact.path}: {artifact.kind}, {phrases.count_of(artifact.lines, 'line')}{until}"
        page.row("  read" if number == 0 else "", text, at_most=1)
    if len(report.artifacts) > len(artifacts):
        page.row("", f"{len(report.artifacts) - len(artifacts)} more with --full")


def _troubles(page: Page, report: Report, full: bool) -> None:
    shown = report.troubles if full else report.troubles[: 8 if report.verdict == "unreadable" else 2]
    for number, trouble in enumerate(shown):
        where = f"{trouble.source}:{trouble.line}" if trouble.line else trouble.source
        label = "  not read" if number == 0 else ""
        page.row(label, f"{where}  {trouble.tag}: {trouble.text}", style="against", at_most=None if full else 2)
    if len(report.troubles) > len(shown):
        page.row("", f"{len(report.troubles) - len(shown)} more with --full")


def _collect(page: Page, report: Report, budget: int | None) -> None:
    """The next steps, in order, as many as fit whole."""
    label = "  collect"
    for number, step in enumerate(report.next_steps, start=1):
        block = Page(page.width)
        _step(block, label, number, step)
        if budget is not None:
            if number > 1 and block.height() > budget:
                break
            budget -= block.height()
        page.extend(block)
        label = "  first" if number == 1 else ""


def _step(page: Page, label: str, number: int, step: NextStep) -> None:
    risk = f"   ({step.risk})" if step.risk else ""
    if step.command:
        page.command(label, f"{number:<3}{step.command}")
        if step.collect or risk:
            page.row("", f"{step.collect}{risk}", indent=LABEL + 3, style="quiet", at_most=2)
    else:
        page.row(label, f"{number:<3}{step.collect}{risk}", at_most=2)
