"""The shipped rules as one JSON file, made when the wheel is built, so that a start does not parse 100 TOML files.

The file holds what `load` would give from the TOML files, checked once at build time; in a checkout it does not exist
and the TOML files are read.
"""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analyzer.reasoning.literals import NoLiteral, required_literals
from analyzer.reasoning.rule import Clause, Remedy, Rival, Rule, Source, Strength, Versions

if TYPE_CHECKING:
    from analyzer.reasoning.rulebook import Rulebook

NAME = "rulebook.json"


def freeze(rulebook: Rulebook) -> str:
    """The rulebook as JSON text."""
    literals: dict[str, list[str]] = {}
    for pattern in {clause.pattern for rule in rulebook.rules.values() for clause in rule.clauses if clause.pattern} | set(
            rulebook.vocabulary.get("symptoms", {}).values()):
        try:
            literals[pattern] = [one.decode() for one in required_literals(pattern)]
        except NoLiteral:
            literals[pattern] = []
    return json.dumps({
        "digest": rulebook.digest,
        "rules": [rule.model_dump(mode="json", exclude_defaults=True) for rule in rulebook.rules.values()],
        "causes": {slug: [cause.family, cause.title] for slug, cause in rulebook.causes.items()},
        "vocabulary": rulebook.vocabulary, "literals": literals}, ensure_ascii=False, separators=(",", ":"))


def thaw(path: Path) -> Rulebook:
    """The rulebook from a file that `freeze` wrote. It was validated then, so it is not validated again."""
    from analyzer.reasoning.rulebook import Cause, Rulebook

    data = json.loads(path.read_text(encoding="utf-8"))
    rules = {one["id"]: _rule(one) for one in data["rules"]}
    causes = {slug: Cause(slug, family, title) for slug, (family, title) in data["causes"].items()}
    literals = {pattern: tuple(one.encode() for one in found) for pattern, found in data["literals"].items()}
    return Rulebook(rules, causes, data["vocabulary"], data["digest"],
                    {rule_id: f"rules/{rule.phase}/{rule_id}.toml" for rule_id, rule in rules.items()}, literals=literals)


def _rule(data: dict[str, Any]) -> Rule:
    data = dict(data)
    data["checked"] = date.fromisoformat(data["checked"])
    for side in ("for_", "against"):
        if side in data:
            data[side] = [Clause.model_construct(**{**one, "strength": Strength(one["strength"])}) for one in data[side]]
    for name, model in (("remedy", Remedy), ("rival", Rival)):
        if name in data:
            data[name] = [model.model_construct(**one) for one in data[name]]
    if "source" in data:
        data["source"] = [Source.model_construct(**{**one, "checked": date.fromisoformat(one["checked"])} if one.get("checked") else one)
                          for one in data["source"]]
    if "versions" in data:
        data["versions"] = Versions.model_construct(**data["versions"])
    return Rule.model_construct(**data)
