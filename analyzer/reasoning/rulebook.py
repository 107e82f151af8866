"""The rules that were loaded, the causes they may name, and the vocabulary they may use."""

from __future__ import annotations

import os
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from analyzer.intake.patterns import PatternSet, Sought
from analyzer.reasoning.rule import Rule
from analyzer.shipped import shipped_rules

SYMPTOM = "symptom:"
MOST_RULES = 2_000
LARGEST_RULE = 256 * 1024
"""Limits of one folder of rules: files, and bytes of a file."""


class RuleFault(ValueError):
    """A rule file that cannot be used. `faults` are lines of what, where, why and what to do."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


class Cause(NamedTuple):
    """A slug of the vocabulary of causes."""

    slug: str
    family: str
    title: str


class Asked(NamedTuple):
    """What a clause asks for, without the rest of it."""

    id: str
    speaks_for: bool
    pattern: str | None
    event: str | None
    observed: str | None
    fact: str | None
    sources: tuple[str, ...]


@dataclass
class Rulebook:
    """Rules by id, causes by slug, vocabulary, and the digest that a report carries."""

    rules: MutableMapping[str, Rule]
    causes: dict[str, Cause]
    vocabulary: dict[str, Any]
    digest: str
    paths: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    literals: dict[str, list[str]] = field(default_factory=dict)

    @cached_property
    def patterns(self) -> PatternSet:
        """Every pattern of every clause, and of the symptoms."""
        sought: list[Sought] = []
        for rule_id, clauses in self._asked.items():
            for one in clauses:
                if one.pattern is not None:
                    sought.append(Sought(f"{rule_id}/{one.id}", one.pattern, frozenset(one.sources)))
        sought += [
            Sought(f"{SYMPTOM}{name}", pattern, frozenset())
            for name, pattern in self.vocabulary.get("symptoms", {}).items()
        ]
        return PatternSet(sought, self.literals)

    @cached_property
    def _asked(self) -> dict[str, tuple[Asked, ...]]:
        return {rule_id: tuple(self._clauses(rule_id)) for rule_id in self.rules}

    def _clauses(self, rule_id: str) -> Iterator[Asked]:
        from analyzer.reasoning.prebuilt import Thawing

        if isinstance(self.rules, Thawing) and self.rules.is_frozen(rule_id):
            for side, one in self.rules.clauses(rule_id):
                yield Asked(
                    one["id"],
                    side == "for_",
                    one.get("pattern"),
                    one.get("event"),
                    one.get("observed"),
                    one.get("fact"),
                    tuple(one.get("sources", ())),
                )
            return
        rule = self.rules[rule_id]
        for clause in rule.clauses:
            yield Asked(
                clause.id,
                clause in rule.for_,
                clause.pattern,
                clause.event,
                clause.observed,
                clause.fact,
                tuple(clause.sources),
            )

    @cached_property
    def openers(self) -> dict[str, tuple[Asked, ...]]:
        """Rule id -> the `for` clauses with a record behind them. A rule of which none is seen has nothing to say."""
        return {rule_id: tuple(one for one in clauses if one.speaks_for) for rule_id, clauses in self._asked.items()}

    def cause(self, slug: str) -> Cause:
        """The cause of that slug; one that the vocabulary lacks is named after its slug."""
        return self.causes.get(slug) or Cause(slug, "", slug)


def load(extra: tuple[str, ...] = (), *, strict: bool = False) -> Rulebook:
    """The shipped rules and those of `extra` folders (also `STUCKWARP_RULES`, separated like PATH).

    A broken rule of an extra folder never silences the rest: its faults are in `Rulebook.faults`; with `strict` they
    raise RuleFault. Ids of an extra folder are prefixed with its name (`team/…`), so nothing is shadowed.
    """
    from analyzer.reasoning import prebuilt

    home = shipped_rules()
    folders = [*extra, *filter(None, os.environ.get("STUCKWARP_RULES", "").split(os.pathsep))]
    if (home / prebuilt.NAME).is_file():
        shipped = prebuilt.thaw(home / prebuilt.NAME)
        if not folders:
            return shipped
        from hashlib import sha256  # loads OpenSSL: only where rules are read that are not prebuilt

        return _with(shipped, folders, sha256(shipped.digest.encode()), strict)
    from hashlib import sha256

    causes = {
        slug: Cause(slug, entry.get("family", ""), entry.get("title", slug))
        for slug, entry in _toml(home / "causes.toml").items()
    }
    digest = sha256()
    rules: dict[str, Rule] = {}
    paths: dict[str, str] = {}
    faults: list[str] = []
    _take(home, "", rules, paths, digest, faults)
    if faults and strict:
        raise RuleFault(faults)
    book = Rulebook(rules, causes, _toml(home / "vocabulary.toml"), digest.hexdigest()[:12], paths, faults)
    return _with(book, folders, digest, strict)


def _with(book: Rulebook, folders: list[str], digest: Any, strict: bool) -> Rulebook:
    for folder in folders:
        path = Path(folder)
        if not path.is_dir():
            book.faults.append(
                f"no rules were read from {folder}: it is not a folder. Give a folder of .toml rule files"
            )
            continue
        _take(path, f"{path.resolve().name}/", book.rules, book.paths, digest, book.faults)
        extra_causes = path / "causes.toml"
        if extra_causes.is_file():
            _take_causes(book, extra_causes)
    if book.faults and strict:
        raise RuleFault(book.faults)
    book.digest = digest.hexdigest()[:12]
    return book


def _take_causes(book: Rulebook, path: Path) -> None:
    import tomllib

    try:
        entries = _toml(path)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as problem:
        book.faults.append(f"{path}: the causes cannot be read: {problem}. The rules beside it are used all the same")
        return
    for slug, entry in entries.items():
        if isinstance(entry, dict):
            book.causes.setdefault(slug, Cause(slug, str(entry.get("family", "")), str(entry.get("title", slug))))
        else:
            book.faults.append(f"{path}: {slug} is no table. Write [{slug}] with family and title")


def _toml(path: Path) -> dict[str, Any]:
    import tomllib

    with path.open("rb") as file:
        return tomllib.load(file)


def _take(
    folder: Path, prefix: str, rules: MutableMapping[str, Rule], paths: dict[str, str], digest: Any, faults: list[str]
) -> None:
    found = sorted(folder.glob("*/*.toml")) + sorted(
        p for p in folder.glob("*.toml") if p.name not in ("causes.toml", "vocabulary.toml")
    )
    if len(found) > MOST_RULES:
        faults.append(f"{folder}: more than {MOST_RULES} rules: the rest was not read. Give the folder that is meant")
    for path in found[:MOST_RULES]:
        try:
            if not path.is_file() or path.stat().st_size > LARGEST_RULE:
                faults.append(
                    f"{path}: no file, or larger than {LARGEST_RULE} bytes: not read. A rule is a page of text"
                )
                continue
            content = path.read_bytes()
            rule = read_rule(content, path)
        except RuleFault as fault:
            faults += fault.faults
            continue
        except OSError as problem:
            faults.append(f"{path}: the rule cannot be read: {problem.strerror}. Check its permissions")
            continue
        if prefix:
            rule = rule.model_copy(update={"id": prefix + rule.id})
        if rule.id in rules:
            faults.append(f"{path}: the id {rule.id!r} is taken by {paths[rule.id]}. Rename one of the two")
            continue
        digest.update(content)
        rules[rule.id], paths[rule.id] = rule, str(path)


def read_rule(content: bytes, path: Path) -> Rule:
    """One rule file. Raises RuleFault with every fault of the file at once."""
    import tomllib

    from pydantic import ValidationError

    try:
        data = tomllib.loads(content.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise RuleFault([f"{path}: not valid TOML: {problem}. Patterns are easiest in ''' strings"]) from problem
    try:
        rule = Rule.model_validate(data)
    except ValidationError as problem:
        raise RuleFault(
            [f"{path}: {'.'.join(map(str, one['loc'])) or 'rule'}: {one['msg']}" for one in problem.errors()]
        ) from problem
    if rule.id != path.stem:
        raise RuleFault(
            [f"{path}: the file is named {path.stem!r} but its id is {rule.id!r}. Name the file after the id"]
        )
    return rule
