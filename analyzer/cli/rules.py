"""`stuckwarp rules`: list, show, search, explain, lint, test, new."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from analyzer.cli.output import colour_wanted, limit_option, note, rulebook_of, write

if TYPE_CHECKING:
    from analyzer.intake.budget import Budget
    from analyzer.reasoning.rule import Rule
    from analyzer.reasoning.rulebook import Rulebook


@click.group("rules")
@click.option("--rules", "folders", multiple=True, type=click.Path(file_okay=False), help="A further folder of rules.")
@click.pass_context
def command(ctx: click.Context, folders: tuple[str, ...]) -> None:
    """The rules database.

    \b
    stuckwarp rules search "processed prompts 0%"
    stuckwarp rules show cudnn-fp8-barrier-wait-sm12x
    stuckwarp rules explain pcie-link-fault bundle/
    """
    ctx.obj = folders


def _rule(rulebook: Rulebook, name: str) -> Rule:
    if name in rulebook.rules:
        return rulebook.rules[name]
    of_cause = [rule for rule in rulebook.rules.values() if rule.cause == name]
    if of_cause:
        return of_cause[0]
    from analyzer.reasoning.lookup import search

    close = difflib.get_close_matches(name, rulebook.rules, 3, 0.75)
    near = ", ".join(close or [found.rule.id for found in search(rulebook, name.replace("-", " "), 3)])
    raise click.ClickException(
        f"there is no rule {name!r}."
        + (f" Did you mean: {near}?" if near else "")
        + " `stuckwarp rules list` names all of them."
    )


@command.command("list")
@click.option("--phase", help="Only rules of one phase (folder).")
@click.option("--cause", help="Only rules that argue for one cause.")
@click.pass_obj
def list_rules(folders: tuple[str, ...], phase: str | None, cause: str | None) -> int:
    """All rules, one a line, by phase."""
    rulebook = rulebook_of(folders)
    rows = [rule for rule in rulebook.rules.values() if phase in (None, rule.phase) and cause in (None, rule.cause)]
    rows.sort(key=lambda rule: (rule.phase, rule.id))
    width = max((len(rule.id) for rule in rows), default=0)
    lines, last = [], ""
    for rule in rows:
        if rule.phase != last:
            lines.append(f"{rule.phase}:")
            last = rule.phase
        lines.append(f"  {rule.id:<{width}}  {rule.title}")
    write("\n".join([*lines, f"{len(rows)} rules, rulebook {rulebook.digest}"]), None)
    return 0


@command.command("show")
@click.argument("rule")
@click.pass_obj
def show(folders: tuple[str, ...], rule: str) -> int:
    """One rule for a reader on call: what it is, how to tell, what to do, how to verify."""
    from analyzer.render.rule import rule_text

    rulebook = rulebook_of(folders)
    write(rule_text(_rule(rulebook, rule), rulebook), None)
    return 0


@command.command("search")
@click.argument("query", nargs=-1, required=True)
@click.option("--limit", default=10, show_default=True)
@click.pass_obj
def search(folders: tuple[str, ...], query: tuple[str, ...], limit: int) -> int:
    """Rules that fit QUERY: a symptom, a code (Xid 154), a GPU, a version, or words of a log line."""
    from analyzer.reasoning.lookup import INDEX, thaw
    from analyzer.reasoning.lookup import search as look_up
    from analyzer.shipped import shipped_rules

    index = shipped_rules() / INDEX
    plain = not folders and not os.environ.get("STUCKWARP_RULES")
    found = look_up(thaw(index) if plain and index.is_file() else rulebook_of(folders), " ".join(query), limit)
    lines = []
    for one in found:
        lines += [f"{one.rule.id}   [{one.rule.phase}, {one.rule.impact}]", f"    {one.rule.title}"]
        if one.rule.remedy:
            lines.append(f"    do: {one.rule.remedy}")
    from analyzer.reasoning.codes import code_note

    noted = code_note(" ".join(query))
    if noted:
        lines = [*noted, "", *lines] if lines else noted
    if not lines:
        write("No rule fits these words. Fewer or other words may; `stuckwarp rules list` shows all.", None)
        return 0
    write("\n".join(lines), None)
    return 0


@command.command("explain")
@click.argument("rule")
@click.argument("paths", nargs=-1, required=True)
@limit_option
@click.pass_obj
def explain(folders: tuple[str, ...], rule: str, paths: tuple[str, ...], budget: Budget) -> int:
    """Clause by clause: why RULE did or did not fit PATHS."""
    from analyzer.analyze import read
    from analyzer.reasoning.rank import explain as explain_rule
    from analyzer.render.rule import explanation_text

    for path in paths:
        if path != "-" and not Path(path).exists():
            raise click.ClickException(f"there is no {path}. Give the files that were analysed.")
    rulebook = rulebook_of(folders)
    chosen = _rule(rulebook, rule)
    bundle, _troubles = read(paths, rulebook, budget)
    write(explanation_text(explain_rule(chosen, bundle), colour_wanted(False)), None)
    return 0


@command.command("lint")
@click.argument("folder", required=False, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--cases", type=click.Path(file_okay=False, path_type=Path), help="Folder of cases that each rule must have."
)
@click.pass_obj
def lint(folders: tuple[str, ...], folder: Path | None, cases: Path | None) -> int:
    """Check rules: shape, vocabulary, literals, samples both ways, slow patterns, sources, cases."""
    from analyzer.reasoning.lint import lint as check
    from analyzer.reasoning.rulebook import load

    rulebook = load((*folders, str(folder)) if folder is not None else folders)
    wanted = f"{folder.resolve().name}/" if folder is not None else ""
    faults = [*rulebook.faults, *check(rulebook, wanted, cases)]
    for fault in faults:
        note(str(fault))
    checked = sum(1 for rule_id in rulebook.rules if rule_id.startswith(wanted))
    write(f"{checked} rules checked, {len(faults)} faults", None)
    return 1 if faults else 0


@command.command("test")
@click.argument("folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--only", help="Only cases whose name holds this.")
@click.pass_obj
def test(folders: tuple[str, ...], folder: Path | None, only: str | None) -> int:
    """Run the cases in FOLDER (default: fixtures/cases) against all rules.

    A team's own folder holds rules as *.toml and cases as cases/RULE-ID/NAME/{input/,expect.toml}.
    """
    from analyzer.cases import run_cases

    home = folder if folder is not None else Path("fixtures/cases")
    if not home.is_dir():
        raise click.ClickException(f"there is no folder {home}. Give the folder that holds the cases.")
    own = (str(home),) if folder is not None and any(home.glob("*.toml")) else ()
    rulebook = rulebook_of((*folders, *own))
    cases = home / "cases" if (home / "cases").is_dir() else home
    results = run_cases(cases, rulebook, only)
    for result in results:
        if result.faults:
            note(f"{result.name}: " + "; ".join(result.faults))
    write(f"{len(results)} cases, {sum(1 for r in results if r.faults)} failed", None)
    return 1 if any(r.faults for r in results) or not results else 0


@command.command("pages")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.pass_obj
def pages(folders: tuple[str, ...], folder: Path) -> int:
    """Write one static HTML page per rule, and an index, into FOLDER."""
    from analyzer.render.rule_pages import pages as all_pages

    made = all_pages(rulebook_of(folders))
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")
    write(f"wrote {len(made)} pages to {folder}", None)
    return 0


@command.command("new")
@click.argument("rule_id")
@click.option(
    "--phase", type=click.Choice(("startup", "capture", "serving", "collective", "hardware", "host")), required=True
)
@click.option("--cause", required=True, help="The slug of the cause that it argues for.")
@click.option("--into", type=click.Path(file_okay=False, path_type=Path), default=Path(), show_default=True)
def new(rule_id: str, phase: str, cause: str, into: Path) -> int:
    """Scaffold a rule with three cases that fail until they are filled in."""
    from analyzer.reasoning.scaffold import scaffold

    try:
        made = scaffold(rule_id, phase, cause, into)
    except (FileExistsError, ValueError) as problem:
        raise click.ClickException(str(problem)) from problem
    write("\n".join(f"wrote {path}" for path in made), None)
    return 0
