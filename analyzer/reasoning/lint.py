"""Lints of a rulebook: one small function each, every fault with its place and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analyzer.intake.literals import NoLiteral, required_literals
from analyzer.intake.patterns import compiled
from analyzer.reasoning.facts import holds
from analyzer.reasoning.match import SHOWN_BY
from analyzer.reasoning.rule import Condition, Rule
from analyzer.reasoning.rulebook import Rulebook

PROBE_SECONDS = 1.0
"""A pattern that is bounded takes a tenth of it on an idle core; one that backtracks without end takes minutes."""
STABLE = 3
"""Incidents whose real output a rule must have named before it may be called stable."""
_MADE_UP = re.compile(r"(?i)reconstruct|restated|retold|\bwith only what\b")
KINDS = {
    "server_log",
    "kernel_log",
    "stacks",
    "gpu_samples",
    "metrics",
    "environment",
    "collective",
    "cuda_core",
    "cuda_gdb",
    "process",
    "fabric",
    "host",
    "notes",
}


@dataclass(slots=True, frozen=True)
class Fault:
    """A fault of a rule: where, what, and what to do."""

    where: str
    what: str
    do: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}. {self.do}"


Lint = Callable[[Rule, Rulebook], Iterator[tuple[str, str]]]


def lint(rulebook: Rulebook, prefix: str = "", cases: Path | None = None) -> list[Fault]:
    """All faults of the rules whose id begins with `prefix`; with `cases`, also of their case folders."""
    faults: list[Fault] = []
    for rule in rulebook.rules.values():
        if not rule.id.startswith(prefix):
            continue
        where = rulebook.paths.get(rule.id, rule.id)
        for check in (patterns, vocabulary, samples, slowness, sources, conditions, argument, causes, folder_of(where)):
            faults += [Fault(where, what, do) for what, do in check(rule, rulebook)]
        if cases is not None:
            faults += [Fault(where, what, do) for what, do in has_cases(rule, cases)]
    return faults


def patterns(rule: Rule, _rulebook: Rulebook) -> Iterator[tuple[str, str]]:
    """Every pattern compiles and holds a literal of four bytes."""
    for clause in rule.clauses:
        if clause.pattern is None:
            continue
        try:
            compiled(clause.pattern)
        except Exception as problem:
            yield f"clause {clause.id}: the pattern does not compile ({problem})", "Mend the regular expression"
            continue
        try:
            required_literals(clause.pattern)
        except NoLiteral as problem:
            yield f"clause {clause.id}: {problem}", "Add a fixed word that every match contains, in each branch"


def _kinds_of(rulebook: Rulebook) -> dict[str, str]:
    return {
        f"{artifact}.{kind}": text
        for artifact, kinds in rulebook.vocabulary.get("events", {}).items()
        for kind, text in kinds.items()
    }


def vocabulary(rule: Rule, rulebook: Rulebook) -> Iterator[tuple[str, str]]:
    """Kinds, observations, symptoms and artifact kinds are those of vocabulary.toml."""
    events = _kinds_of(rulebook)
    observations = rulebook.vocabulary.get("observations", {})
    known_facts = rulebook.vocabulary.get("facts", {})
    for clause in rule.clauses:
        if clause.event is not None and clause.event not in events:
            yield f"clause {clause.id}: no parser yields {clause.event!r}", "Use an event of vocabulary.toml"
        if clause.observed is not None and clause.observed not in observations:
            yield f"clause {clause.id}: nothing observes {clause.observed!r}", "Use an observation of vocabulary.toml"
        if clause.observed is not None and clause.observed not in SHOWN_BY:
            yield f"clause {clause.id}: {clause.observed!r} has no artifact that shows it", "Name it in match.SHOWN_BY"
        if clause.absent is not None and clause.absent not in events and clause.absent not in observations:
            yield (
                f"clause {clause.id}: {clause.absent!r} is neither event nor observation",
                "Use one of vocabulary.toml",
            )
        if clause.fact is not None and not _known_fact(clause.fact, known_facts):
            yield f"clause {clause.id}: no parser states the fact {clause.fact!r}", "Use a fact of vocabulary.toml"
        for kind in clause.sources:
            if kind not in KINDS:
                yield f"clause {clause.id}: no artifact is of kind {kind!r}", f"Use one of {', '.join(sorted(KINDS))}"
    for name in rule.applies:
        if not _known_fact(name, known_facts):
            yield f"applies: no parser states the fact {name!r}", "Use a fact of vocabulary.toml"
    for name in rule.symptoms:
        if name not in rulebook.vocabulary.get("symptoms", {}):
            yield f"{name!r} is no symptom", "Use a symptom of vocabulary.toml"


def _known_fact(name: str, known: dict[str, str]) -> bool:
    return name in known or name.startswith(("env.", "pip.", "arg."))


def samples(rule: Rule, _rulebook: Rulebook) -> Iterator[tuple[str, str]]:
    """Every sample matches its pattern; every line that it should reject does not."""
    for clause in rule.clauses:
        if clause.pattern is None:
            continue
        try:
            pattern = compiled(clause.pattern)
        except Exception:
            continue  # told by `patterns`
        try:
            for line in clause.samples:
                if not pattern.search(line, timeout=1.0):
                    yield (
                        f"clause {clause.id}: its sample does not match: {line[:80]!r}",
                        "Mend the pattern or the sample",
                    )
            for line in clause.rejects:
                if pattern.search(line, timeout=1.0):
                    yield f"clause {clause.id}: it matches what it should reject: {line[:80]!r}", "Narrow the pattern"
        except TimeoutError:
            yield f"clause {clause.id}: the pattern is slow on its own sample", "No repeat inside a repeat"


def _slow(pattern: Any, probe: str) -> bool:
    """Whether every one of three searches runs into the limit: one alone may fall on a pause of the machine, while a
    pattern that backtracks without end fails them all."""
    for _ in range(3):
        try:
            pattern.search(probe, timeout=PROBE_SECONDS)
        except TimeoutError:
            continue
        return False
    return True


def slowness(rule: Rule, _rulebook: Rulebook) -> Iterator[tuple[str, str]]:
    """No pattern takes more than a second on 64 KiB of blanks, letters, or its own literal over and over."""
    for clause in rule.clauses:
        if clause.pattern is None:
            continue
        try:
            pattern = compiled(clause.pattern)
            words = [word.decode() for word in required_literals(clause.pattern)]
        except Exception:
            continue
        size = 64 * 1024
        probes = [
            " " * size,
            "a" * size,
            *((word * (size // len(word) + 1))[:size] for word in words[:2]),
            *(word + " " + "x" * size for word in words[:1]),
            *(
                f"{head}{letter * 2048}\x01"
                for head in _heads(clause.samples, words)
                for letter in _letters(clause.pattern)
            ),
        ]
        for probe in probes:
            if _slow(pattern, probe):
                yield (
                    f"clause {clause.id}: the pattern is slow on {probe[:24]!r}…",
                    "Bound its repeats: [^\\n]{0,200} in place of .*, and no repeat inside a repeat",
                )
                break


def _heads(samples: list[str], words: list[str]) -> list[str]:
    """A sample up to the end of its literal: what leads a search into the rest of the pattern."""
    return [
        sample[: at + len(word)]
        for sample in samples[:2]
        for word in words[:2]
        if (at := sample.lower().find(word.lower())) >= 0
    ]


def _letters(pattern: str) -> list[str]:
    """Characters that the pattern repeats: what stands before a `+`, `*`, `{` or a closing bracket with one."""
    found = re.findall(r"(\w)[)\]]{0,3}(?:[+*]|\{\d*,)", pattern)
    return list(dict.fromkeys([*found, "1"]))[:6]


def sources(rule: Rule, _rulebook: Rulebook) -> Iterator[tuple[str, str]]:
    """At least one source with a link, and graded remedies that say how to verify them."""
    if not rule.source:
        yield "it names no source", "Add [[source]] with url, status and the date on which it was looked up"
    for source in rule.source:
        if not re.match(r"https://[\w.-]+/\S*$", source.url):
            yield f"the source {source.url!r} is no https link", "Give the full address"
        if not re.match(r"(open|merged|closed|page|fixed-in \S+)", source.status):
            yield f"the status {source.status!r} of {source.url} is unknown", "open, merged, closed, page or fixed-in X"
    for remedy in rule.remedy:
        if remedy.grade in ("fixed-in", "maintainer", "reporter-observed") and not remedy.source:
            yield f"the remedy {remedy.do[:50]!r} is graded {remedy.grade} without a source", "Add its source"
        if remedy.grade == "fixed-in" and not (rule.versions and rule.versions.fixed_in):
            yield f"the remedy {remedy.do[:50]!r} is a fix, but in no version", "Add [versions] fixed_in"


def conditions(rule: Rule, _rulebook: Rulebook) -> Iterator[tuple[str, str]]:
    """Version ranges and regular expressions of `where` and `applies` can be read."""
    for place, condition in [
        *((f"applies.{k}", v) for k, v in rule.applies.items()),
        *((f"clause {c.id}.{k}", v) for c in rule.clauses for k, v in c.where.items()),
    ]:
        for one in condition if isinstance(condition, list) else [condition]:
            problem = _unreadable(one)
            if problem:
                yield f"{place}: {problem}", "Write '>= 0.6.7, < 0.6.8', '~regex', a value, or a list of these"


def _unreadable(condition: Condition) -> str:
    if not isinstance(condition, str):
        return ""
    if condition.startswith("~"):
        try:
            compiled(condition[1:])
        except Exception as problem:
            return f"the expression does not compile ({problem})"
    elif condition[:1] in "<>=!" and condition:
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        try:
            SpecifierSet(condition)
        except InvalidSpecifier:
            if not holds(condition, 0) and not holds(condition, 1e9) and not re.match(r"^\s*[<>=!]+\s*-?\d", condition):
                return f"the range {condition!r} cannot be read"
    return ""


def argument(rule: Rule, _rulebook: Rulebook) -> Iterator[tuple[str, str]]:
    """At least two independent clauses, or a decisive one; something that speaks against, or a rival."""
    groups = {clause.group or clause.id for clause in rule.for_}
    if not any(clause.strength.value == "decisive" for clause in rule.for_) and len(groups) < 2:
        yield "it rests on one clause that is not decisive", "Add an independent clause"
    if not rule.against and not rule.rival and not rule.applies:
        yield "nothing could speak against it and it names no rival", "Add an `against` clause, a gate or a [[rival]]"
    if not rule.remedy and not rule.harmless:
        yield "it says nothing of what to do", "Add a [[remedy]]"


def causes(rule: Rule, rulebook: Rulebook) -> Iterator[tuple[str, str]]:
    """Slugs of causes are those of causes.toml."""
    named = [rule.cause, *rule.consequence_of, *(rival.cause for rival in rule.rival)]
    for slug in dict.fromkeys(named):
        if slug not in rulebook.causes and slug not in ("healthy", "unknown"):
            yield f"{slug!r} is no cause of causes.toml", "Add it there with family and title, or use the listed slug"


def folder_of(where: str) -> Lint:
    """The folder of the file is the rule's phase."""

    def check(rule: Rule, _rulebook: Rulebook) -> Iterator[tuple[str, str]]:
        parent = Path(where).parent.name
        if parent in ("startup", "capture", "serving", "collective", "hardware", "host") and parent != rule.phase:
            yield f"it lies in {parent}/ but its phase is {rule.phase}", "Move the file or change the phase"

    return check


def has_cases(rule: Rule, cases: Path) -> Iterator[tuple[str, str]]:
    """A hit, a near miss and an evidence-removed case, and a status that says what the hits were made of."""
    home = cases / rule.id.split("/")[-1]
    names = [path.name for path in home.glob("*") if (path / "expect.toml").is_file()]
    for wanted in ("hit", "near-miss", "evidence-removed"):
        if not any(name.startswith(wanted) for name in names):
            yield f"it has no {wanted} case", f"Add {cases.name}/{rule.id}/{wanted}-…/ with input/ and expect.toml"
    real = _real_hits(home)
    if rule.status == "draft" and real:
        yield "its status is draft, but a hit case holds real output", 'Say status = "tested"'
    elif rule.status != "draft" and not real:
        yield (
            f"its status is {rule.status}, but every hit case is a reconstruction",
            'Say status = "draft", or add a case of real output (its `provenance` says where from)',
        )
    elif rule.status == "stable" and len(real) < STABLE:
        yield f"its status is stable with real output of {len(real)} incidents", f"It takes {STABLE}"


def _real_hits(home: Path) -> set[str]:
    """Where the hit cases of real output come from: what the rule was seen to work on."""
    import tomllib

    found = set()
    for path in home.glob("hit*/expect.toml"):
        try:
            provenance = str(tomllib.loads(path.read_text(encoding="utf-8")).get("provenance", ""))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError):
            continue  # `rules test` tells of it
        if provenance and not _MADE_UP.search(provenance):
            found.add(provenance)
    return found
