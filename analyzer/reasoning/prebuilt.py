"""The shipped rules as one JSON file, made when the wheel is built, so that a start does not parse 100 TOML files.

The file holds what `load` would give from the TOML files, checked once at build time; in a checkout it does not exist
and the TOML files are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, MutableMapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analyzer.intake.literals import NoLiteral, needed, required_literals
from analyzer.reasoning.rule import Clause, Remedy, Rival, Rule, Source, Strength, Versions

if TYPE_CHECKING:
    from analyzer.reasoning.rulebook import Rulebook

NAME = "rulebook.json"


def freeze(rulebook: Rulebook) -> str:
    """The rulebook as JSON text."""
    literals: dict[str, list[str]] = {}
    patterns = {clause.pattern for rule in rulebook.rules.values() for clause in rule.clauses if clause.pattern}
    for pattern in sorted(patterns | set(rulebook.vocabulary.get("symptoms", {}).values())):
        try:
            need = json.dumps(needed(pattern), separators=(",", ":"))
            literals[pattern] = [need, *(one.decode() for one in required_literals(pattern))]
        except NoLiteral:
            continue  # `rules lint` has refused it
    return json.dumps(
        {
            "digest": rulebook.digest,
            "rules": [rule.model_dump(mode="json", exclude_defaults=True) for rule in rulebook.rules.values()],
            "causes": {slug: [cause.family, cause.title] for slug, cause in rulebook.causes.items()},
            "vocabulary": rulebook.vocabulary,
            "literals": literals,
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )


def thaw(path: Path) -> Rulebook:
    """The rulebook from a file that `freeze` wrote. It was validated then, so it is not validated again."""
    from analyzer.reasoning.rulebook import Cause, Rulebook

    data = json.loads(path.read_text(encoding="utf-8"))
    rules = Thawing({one["id"]: one for one in data["rules"]})
    causes = {slug: Cause(slug, family, title) for slug, (family, title) in data["causes"].items()}
    return Rulebook(
        rules,
        causes,
        data["vocabulary"],
        data["digest"],
        {one["id"]: f"rules/{one['phase']}/{one['id']}.toml" for one in data["rules"]},
        literals=data["literals"],
    )


class Thawing(MutableMapping[str, Rule]):
    """Rules by id, each built when first asked for: a run asks only for those that may speak (`rank.may_speak`)."""

    def __init__(self, frozen: dict[str, dict[str, Any]]) -> None:
        self._frozen = frozen
        self._built: dict[str, Rule | None] = dict.fromkeys(frozen)

    def __getitem__(self, name: str) -> Rule:
        rule = self._built[name]
        if rule is None:
            rule = self._built[name] = _rule(self._frozen[name])
        return rule

    def __setitem__(self, name: str, rule: Rule) -> None:
        self._built[name] = rule
        self._frozen.pop(name, None)

    def __delitem__(self, name: str) -> None:
        del self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._built)

    def __len__(self) -> int:
        return len(self._built)

    def is_frozen(self, name: str) -> bool:
        """Whether the rule was not built yet."""
        return self._built[name] is None

    def clauses(self, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """(side, clause as frozen) of a rule that was not built yet."""
        data = self._frozen[name]
        for side in ("for_", "against"):
            for clause in data.get(side, ()):
                yield side, clause


def _rule(data: dict[str, Any]) -> Rule:
    data = dict(data)
    data["checked"] = date.fromisoformat(data["checked"])
    for side in ("for_", "against"):
        if side in data:
            data[side] = [Clause(**{**one, "strength": Strength(one["strength"])}) for one in data[side]]
    if "remedy" in data:
        data["remedy"] = [Remedy(**one) for one in data["remedy"]]
    if "rival" in data:
        data["rival"] = [Rival(**one) for one in data["rival"]]
    if "source" in data:
        data["source"] = [
            Source(**{**one, "checked": date.fromisoformat(one["checked"])} if one.get("checked") else one)
            for one in data["source"]
        ]
    if "versions" in data:
        data["versions"] = Versions(**data["versions"])
    return Rule(**data)
