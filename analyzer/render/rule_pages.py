"""One static page per rule, and an index: HTML without scripts or loads, for a wiki or a plain web server."""

from __future__ import annotations

from analyzer.reasoning.facts import spelled
from analyzer.reasoning.rule import Clause, Rule
from analyzer.reasoning.rulebook import Rulebook
from analyzer.render.sanitise import html, link

STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;
background:#fff}
h1{font-size:1.4rem}h2{font-size:1.05rem;margin:1.6rem 0 .4rem}code,pre{font:13px/1.45 ui-monospace,monospace}
pre{background:#f3f3f1;padding:.5rem;overflow-x:auto;white-space:pre-wrap}dt{font-weight:600}dd{margin:0 0 .7rem}
table{border-collapse:collapse}td{padding:.15rem .8rem .15rem 0;vertical-align:top}
@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#161616}pre{background:#242424}a{color:#8ab4f8}}"""


def _page(title: str, body: list[str]) -> str:
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            '<meta name="viewport" content="width=device-width">',
            f"<title>{html(title)}</title><style>{STYLE}</style>",
            "</head><body>",
            *body,
            "</body></html>",
            "",
        ]
    )


def _address(url: str) -> str:
    safe = link(url)
    return f'<a href="{safe}" rel="noreferrer">{html(url)}</a>' if safe else html(url)


def _clauses(heading: str, clauses: list[Clause]) -> list[str]:
    if not clauses:
        return []
    lines = [f"<h2>{heading}</h2>", "<dl>"]
    for clause in clauses:
        lines.append(f"<dt>{html(clause.says)} <small>({clause.strength.value})</small></dt>")
        shown = "".join(f"<pre>{html(sample)}</pre>" for sample in clause.samples[:2])
        got = f"<p>Get it: <code>{html(clause.collect)}</code></p>" if clause.collect else ""
        lines.append(f"<dd>{shown}{got}</dd>")
    return [*lines, "</dl>"]


def rule_page(rule: Rule, rulebook: Rulebook) -> str:
    """The page of one rule."""
    cause = rulebook.cause(rule.cause)
    body = [
        '<p><a href="index.html">All rules</a></p>',
        f"<h1>{html(rule.title)}</h1>",
        f"<p><code>{html(rule.id)}</code> · {rule.phase} · {rule.impact} · sources checked {rule.checked}</p>",
        f"<p>Cause: <code>{html(rule.cause)}</code>, {html(cause.title)}</p>",
    ]
    if rule.about:
        body.append(f"<p>{html(rule.about)}</p>")
    if rule.applies:
        body.append("<p>Only on: " + "; ".join(html(f"{k} {spelled(v)}") for k, v in rule.applies.items()) + "</p>")
    if rule.versions.affected or rule.versions.fixed_in:
        body.append(
            f"<p>Affected: {html(rule.versions.affected or 'not stated')}. Fixed in: "
            f"{html(rule.versions.fixed_in or 'not stated')}.</p>"
        )
    body += _clauses("Speaks for it", rule.for_) + _clauses("Speaks against it", rule.against)
    if rule.rival:
        body += [
            "<h2>Looks alike</h2>",
            "<dl>",
            *(f"<dt><code>{html(r.cause)}</code></dt><dd>{html(r.tell_apart)}</dd>" for r in rule.rival),
            "</dl>",
        ]
    if rule.remedy:
        body.append("<h2>What to do</h2>")
    for remedy in rule.remedy:
        body += [
            f"<pre>{html(remedy.do)}</pre>",
            f"<p>Verify: {html(remedy.verify)}. Grade: {remedy.grade}"
            + (f" ({html(remedy.evidence)})" if remedy.evidence else "")
            + "."
            + (f" Caveat: {html(remedy.caveat)}." if remedy.caveat else "")
            + "</p>",
        ]
    body += [
        "<h2>Sources</h2>",
        "<ul>",
        *(
            f"<li>{_address(s.url)} {html(s.title)} ({html(s.status)}, checked {s.checked or rule.checked})</li>"
            for s in rule.source
        ),
        "</ul>",
    ]
    return _page(rule.title, body)


def pages(rulebook: Rulebook) -> dict[str, str]:
    """File name -> page, for every rule, and `index.html`."""
    made = {f"{rule.id.replace('/', '--')}.html": rule_page(rule, rulebook) for rule in rulebook.rules.values()}
    rows = []
    for phase in ("startup", "capture", "serving", "collective", "hardware", "host"):
        rows.append(f"<h2>{phase}</h2><table>")
        rows += [
            f'<tr><td><a href="{html(rule.id.replace("/", "--"))}.html">{html(rule.id)}</a></td>'
            f"<td>{html(rule.title)}</td></tr>"
            for rule in sorted(rulebook.rules.values(), key=lambda r: r.id)
            if rule.phase == phase
        ]
        rows.append("</table>")
    made["index.html"] = _page(
        "stuckwarp rules", [f"<h1>{len(rulebook.rules)} rules, rulebook {rulebook.digest}</h1>", *rows]
    )
    return made
