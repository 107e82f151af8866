"""The report as GitHub-flavoured Markdown, ready to paste into an upstream issue: under 65,000 characters.

Evidence is folded; quotes stand in fences longer than any run of back-ticks in them; words that would mention, link,
reference or format stand in code, so that pasting pings nobody and loads nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.render import phrases
from analyzer.render.sanitise import link, markdown, markdown_cell, markdown_code, markdown_fence, shorten, visible
from analyzer.report import Evidence, Hypothesis, NextStep, Quote, Report

LIMIT = 65_000
"""Characters; GitHub refuses a comment of more than 65,536."""


@dataclass(frozen=True)
class _Measure:
    """How much of everything is shown; `items` of each list, characters of each sentence and quote."""

    hypotheses: int
    items: int
    sentence: int
    quote: int


_MEASURES = (
    _Measure(20, 40, 2_000, 800),
    _Measure(10, 20, 600, 400),
    _Measure(6, 10, 300, 200),
    _Measure(3, 5, 150, 100),
    _Measure(2, 3, 60, 40),
)


def render_markdown(report: Report) -> str:
    """The report in the largest measure that fits; what was left out is counted in the text."""
    text = ""
    for measure in _MEASURES:
        text = _Writer(report, measure).text()
        if len(text) < LIMIT:
            return text
    raise AssertionError("the smallest measure bounds the length by construction")


class _Writer:
    def __init__(self, report: Report, measure: _Measure) -> None:
        self._report = report
        self._measure = measure
        self._out: list[str] = []

    def text(self) -> str:
        """All sections, blank lines between blocks."""
        self._head()
        shown = self._report.hypotheses[: self._measure.hypotheses]
        for hypothesis in shown:
            self._hypothesis(hypothesis)
        self._left_out(len(self._report.hypotheses) - len(shown), "hypothesis", "hypotheses")
        self._symptoms()
        self._next_steps()
        self._environment()
        self._timeline()
        self._coverage()
        self._unexplained()
        tool = self._report.tool
        foot = f"{tool.name} {tool.version}, rules {tool.rulebook}, report schema {self._report.schema_version}"
        self._add(f"<sub>Made by {self._say(foot)}; quotes are the records as they stand.</sub>")
        return "\n\n".join(block for block in self._out if block) + "\n"

    # blocks and words

    def _add(self, block: str) -> None:
        self._out.append(block)

    def _say(self, text: str) -> str:
        return markdown(shorten(visible(text), self._measure.sentence))

    def _code(self, text: str) -> str:
        return markdown_code(shorten(visible(text), self._measure.quote))

    def _cell(self, text: str) -> str:
        return markdown_cell(shorten(visible(text), min(self._measure.quote, 200))) or "–"

    def _left_out(self, count: int, singular: str, plural: str | None = None) -> None:
        if count > 0:
            self._add(f"… and {phrases.count_of(count, singular, plural)} more, left out for length.")

    def _folded(self, summary: str, blocks: list[str]) -> None:
        # The blank lines make GitHub read what is inside as Markdown.
        self._add("\n\n".join([f"<details><summary>{summary}</summary>", *blocks, "</details>"]))

    def _place(self, quote: Quote | None) -> str:
        return f" ({self._code(phrases.place(quote))})" if quote else ""

    # sections

    def _head(self) -> None:
        report = self._report
        argued = report.verdict in ("identified", "candidates") and report.hypotheses
        title = report.hypotheses[0].title if argued else report.summary
        self._add(f"### {phrases.VERDICT[report.verdict].capitalize()}: {self._say(title)}")
        if argued:
            certainty = self._say(phrases.standing(report.hypotheses[0]))
            self._add(f"**{certainty}.** {self._say(report.summary)}")
        lines = []
        if text := " · ".join(phrases.since(report)):
            lines.append(f"- when and where: {self._say(text)}")
        lines.append(f"- read: {self._say(phrases.coverage(report))}")
        if aligned := phrases.clocks(report):
            lines.append(f"- clocks: {self._say(aligned)}")
        if blind := phrases.not_seen(report):
            lines.append(f"- not seen: {self._say('; '.join(blind))}")
        self._add("\n".join(lines))

    def _hypothesis(self, item: Hypothesis) -> None:
        items = self._measure.items
        self._add(f"#### Hypothesis {item.rank}: {self._say(item.title)} ({self._say(phrases.standing(item))})")
        lines = [f"- cause {self._code(item.cause)}, rule {self._code(item.rule)}"]
        if item.about:
            lines.append(f"- about: {self._say(item.about)}")
        if item.why_here:
            lines.append(f"- here: {self._say(item.why_here)}")
        if item.first_event and (when := phrases.moment(item.first_event)):
            what = f" {self._say(item.first_event.what)}" if item.first_event.what else ""
            lines.append(f"- first event: {self._say(when)}{what}{self._place(item.first_event.source)}")
        lines += [self._piece("for", piece) for piece in phrases.by_strength(item.evidence_for)[:items]]
        lines += [self._piece("against", piece) for piece in phrases.by_strength(item.evidence_against)[:items]]
        if not item.evidence_against:
            lines.append("- **against**: nothing found")
        for missing in item.missing_evidence[:items]:
            how = f", get it: {self._code(missing.how_to_get)}" if missing.how_to_get else ""
            lines.append(f"- **missing**: {self._say(missing.statement)} ({phrases.WOULD[missing.would]}){how}")
        for remedy in item.remedies[:items]:
            lines.append(f"- **do**: {self._say(remedy.do)} ({phrases.GRADE[remedy.grade]})")
            if remedy.evidence:
                lines.append(f"  - seen: {self._say(remedy.evidence)}")
            if remedy.verify:
                lines.append(f"  - verify: {self._say(remedy.verify)} ({phrases.VERIFIED[remedy.verified]})")
            if remedy.caveat:
                lines.append(f"  - caveat: {self._say(remedy.caveat)}")
            if remedy.source:
                lines.append(f"  - source: {self._url(remedy.source)}")
        lines += [f"- rival {self._code(rival.cause)}: {self._say(rival.tell_apart)}" for rival in item.rivals[:items]]
        for source in item.sources[:items]:
            title = f"{self._say(source.title)} " if source.title else ""
            status = self._say(f"{source.status}, checked {source.checked}")
            lines.append(f"- source: {title}{self._url(source.url)} ({status})")
        self._add("\n".join(lines))
        self._quotes(phrases.by_strength(item.evidence_for) + phrases.by_strength(item.evidence_against))

    def _piece(self, side: str, piece: Evidence) -> str:
        return f"- **{side}** ({piece.strength}): {self._say(phrases.statement(piece))}{self._place(piece.source)}"

    def _quotes(self, evidence: list[Evidence]) -> None:
        blocks: list[str] = []
        quoted = [piece.source for piece in evidence if piece.source and piece.source.text]
        for quote in quoted[: self._measure.items]:
            blocks.append(self._code(phrases.place(quote)))
            blocks.append(markdown_fence(shorten(quote.text, self._measure.quote)))
        if blocks:
            self._folded(f"Quoted records ({len(blocks) // 2} of {len(quoted)})", blocks)

    def _url(self, url: str) -> str:
        # A long address is cut, and then it is no link any more.
        safe = link(url) if len(url) <= self._measure.sentence else None
        return f"<{safe}>" if safe and "@" not in safe else self._code(url)

    def _symptoms(self) -> None:
        if not self._report.symptoms:
            return
        lines = []
        for item in self._report.symptoms[: self._measure.items]:
            by = ", ".join(item.explained_by[:5])
            explained = f", explained by {self._code(by)}" if by else ", not explained"
            lines.append(f"- {self._code(item.symptom)} ×{item.count:,}{self._place(item.first)}{explained}")
        self._add("#### Symptoms")
        self._add("\n".join(lines))
        self._left_out(len(self._report.symptoms) - len(lines), "symptom")

    def _next_steps(self) -> None:
        for title, steps in phrases.steps_by_time(self._report):
            self._add(f"#### {title}")
            self._steps(steps)

    def _steps(self, steps: list[NextStep]) -> None:
        shown = steps[: self._measure.items]
        for number, step in enumerate(shown, start=1):
            risk = f" (risk: {self._say(step.risk)})" if step.risk else ""
            separates = f" Tells apart {self._code(', '.join(step.separates[:5]))}." if step.separates else ""
            self._add(f"**{number}.** {self._say(step.collect)}{risk}.{separates}")
            # A shortened command is not one: the whole, or its place taken by a word.
            if step.command and len(step.command) <= self._measure.sentence:
                self._add(markdown_fence(step.command))
            elif step.command:
                self._add("(the command is too long for this format)")
        self._left_out(len(steps) - len(shown), "step")

    def _environment(self) -> None:
        if not self._report.environment:
            return
        rows = ["| what | value | read from |", "|---|---|---|"]
        facts = list(self._report.environment.items())
        shown = facts[: self._measure.items * 2]
        for name, fact in shown:
            others = f" also {self._cell(', '.join(fact.conflicts[:5]))}" if fact.conflicts else ""
            where = self._cell(phrases.place(fact.source)) if fact.source else "–"
            rows.append(f"| {self._cell(name)} | {self._cell(fact.value)}{others} | {where} |")
        self._add("#### Environment")
        self._add("\n".join(rows))
        self._left_out(len(facts) - len(shown), "fact")

    def _timeline(self) -> None:
        timeline = self._report.timeline
        shown = timeline.events[: self._measure.items]
        if not shown:
            return
        lines = []
        for event in shown:
            when = phrases.moment(event) or "no instant known"
            where = f"  [{phrases.place(event.source)}]" if event.source else ""
            line = visible(f"{when}  {event.kind}  {event.actor}  {event.text}{where}")
            lines.append(shorten(line, self._measure.quote))
        last_records = list(timeline.last_records.items())[: self._measure.items]
        words = ["| process | last record | where |", "|---|---|---|"] + [
            f"| {self._cell(name)} | {self._cell(phrases.moment(last))} | "
            f"{self._cell(phrases.place(last.source)) if last.source else '–'} |"
            for name, last in last_records
        ]
        if last_records:
            self._add("\n".join(words))
        total = phrases.count_of(len(timeline.events), "event")
        self._folded(f"Timeline ({len(shown)} of {total})", [markdown_fence("\n".join(lines))])

    def _coverage(self) -> None:
        report = self._report
        blocks = []
        windows = phrases.windows(report)
        rows = ["| artifact | read as | lines | covers | the onset too | to its end | notes |"]
        rows.append("|---|---|---|---|---|---|---|")
        for item in report.artifacts[: self._measure.items]:
            notes = self._cell("; ".join(f"{note.tag}: {note.text}" for note in item.notes[:5]))
            parser = self._cell(item.parser or "not recognised")
            whole = "yes" if item.complete else "no"
            speaks = windows.get(item.path)
            covers = self._cell(phrases.window(item.first, item.last, speaks))
            onset = self._cell(phrases.speaks_of_onset(speaks, report))
            rows.append(
                f"| {self._cell(item.path)} | {parser} | {item.lines:,} | {covers} | {onset} | {whole} | {notes} |"
            )
        if report.artifacts:
            blocks.append("\n".join(rows))
        troubles = [
            f"- {self._code(item.source)} {self._code(item.tag)}: {self._say(item.text)}"
            for item in report.troubles[: self._measure.items]
        ]
        if troubles:
            blocks.append("\n".join(troubles))
        if blocks:
            troubles_count = phrases.count_of(len(report.troubles), "trouble")
            self._folded(
                f"What was read ({phrases.count_of(len(report.artifacts), 'artifact')}, {troubles_count})", blocks
            )

    def _unexplained(self) -> None:
        items = self._report.unexplained
        if not items:
            return
        lines = []
        for item in items[: self._measure.items]:
            line = f"{item.level} x{item.count} {item.template}  [{phrases.place(item.first)}]"
            lines.append(shorten(visible(line), self._measure.quote))
        summary = f"Warnings and errors that nothing explains ({len(lines)} of {len(items)})"
        self._folded(summary, [markdown_fence("\n".join(lines))])
