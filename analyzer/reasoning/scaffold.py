"""A new rule with three cases that fail until they are filled in."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

RULE = """# What does this cause look like, and what tells it from its look-alikes?
id = "{id}"
cause = "{cause}"
title = "One line that a person on call can read aloud"
phase = "{phase}"
impact = "service-down"
status = "draft"
checked = "{today}"

[[for]]
id = "telling-message"
strength = "decisive"
pattern = \'\'\'replace this by the message as the program prints it\'\'\'
says = "the program says what happened"
sample = \'\'\'replace this by the message as the program prints it\'\'\'
collect = "the command that gets it"

[[against]]
id = "look-alike"
strength = "strong"
pattern = \'\'\'a line that only the look-alike prints\'\'\'
says = "another cause is shown"
sample = \'\'\'a line that only the look-alike prints\'\'\'

[[remedy]]
do = "what to do"
verify = "how to see that it took effect"
grade = "inferred"

[[source]]
url = "https://example.org/replace-by-the-issue"
status = "page"
"""
EXPECT = {
    "hit-todo": 'provenance = "where the lines come from"\nfirst = "{cause}"\nat_least = "high"\n',
    "near-miss-todo": 'provenance = "where the lines come from"\nnever_first = ["{cause}"]\n',
    "evidence-removed-todo": (
        'provenance = "the hit without its decisive line"\nat_most = "low"\nnever_first = ["{cause}"]\n'
    ),
}


def scaffold(rule_id: str, phase: str, cause: str, into: Path) -> list[Path]:
    """Write the rule and its cases under `into`. Raises ValueError for an id that is no slug, FileExistsError rather
    than overwrite."""
    if not re.fullmatch(r"[a-z0-9]+(?:[.-][a-z0-9]+)*", rule_id):
        raise ValueError(f"{rule_id!r} is no rule id: use lower-case words joined by hyphens")
    rule = into / phase / f"{rule_id}.toml"
    if rule.exists():
        raise FileExistsError(f"{rule} is there already; nothing was overwritten")
    made = [rule]
    rule.parent.mkdir(parents=True, exist_ok=True)
    rule.write_text(RULE.format(id=rule_id, cause=cause, phase=phase, today=date.today().isoformat()), encoding="utf-8")
    for name, text in EXPECT.items():
        folder = into / "cases" / rule_id / name
        (folder / "input").mkdir(parents=True, exist_ok=True)
        (folder / "expect.toml").write_text(text.format(cause=cause), encoding="utf-8")
        (folder / "input" / "server.log").write_text("replace this by the lines of the case\n", encoding="utf-8")
        made.append(folder / "expect.toml")
    return made
