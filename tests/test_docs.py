"""What the documents say is what the code does."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from analyzer.analyze import analyze
from analyzer.cases import KEYS
from analyzer.cli import COMMANDS
from analyzer.reasoning.rule import Clause, Rule
from analyzer.render import render
from analyzer.report import Report

HOME = Path(__file__).parent.parent
README = (HOME / "README.md").read_text(encoding="utf-8")


def test_every_command_is_in_the_readme_and_has_help() -> None:
    for name in COMMANDS:
        assert f"stuckwarp {name}" in README, name
        done = subprocess.run(
            [sys.executable, "-m", "analyzer", name, "--help"], capture_output=True, text=True, cwd=HOME
        )
        assert done.returncode == 0 and len(done.stdout) > 100, done.stderr


def test_links_and_paths_exist() -> None:
    for path in [*HOME.glob("*.md"), *HOME.glob("docs/*.md")]:
        text = path.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (path.parent / target).exists(), (path.name, target)
        for target in re.findall(r"`((?:analyzer|parsers|rules|fixtures|tests|benchmarks)/[\w./-]+)`", text):
            found = target if "." in target.rsplit("/", 1)[-1] else target.rstrip("/")
            assert (HOME / found).exists() or found == "analyzer/rules", (path.name, target)


def test_the_report_in_the_readme_is_what_the_example_gives() -> None:
    path = re.search(r"stuckwarp analyze (fixtures/\S+)", README)
    assert path is not None
    report = analyze([str(HOME / path[1])])
    shown = README.split("```text\n", 1)[1].split("```", 1)[0]
    fresh = render(report, "text", width=100)

    def told(text: str) -> list[str]:
        # the first line holds the path as given and the time that it took
        return [line.rstrip() for line in text.strip().splitlines()[1:]]

    assert told(shown) == told(fresh)


def test_the_rule_in_the_guide_is_a_rule() -> None:
    text = (HOME / "docs" / "writing-a-rule.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```toml\n(.*?)```", text, re.S)
    rule = Rule.model_validate(tomllib.loads(blocks[0]))
    assert rule.id == "cuda-fork-reinit"
    assert tomllib.loads(blocks[1]).keys() <= KEYS
    for name in ("pattern", "event", "observed", "fact", "absent", "after", "before", "group", "count"):
        assert name in Clause.__annotations__ and f"`{name}`" in text


def test_every_field_of_the_report_is_in_its_document() -> None:
    text = (HOME / "docs" / "report-format.md").read_text(encoding="utf-8")
    for name in Report.__annotations__:
        if name not in ("tool", "input", "took_s"):
            assert f"`{name}" in text or f"`{name}[]`" in text, name


@pytest.mark.parametrize("name", ["report", "rule", "inspection"])
def test_schemas_print(name: str) -> None:
    done = subprocess.run([sys.executable, "-m", "analyzer", "schema", name], capture_output=True, text=True, cwd=HOME)
    assert done.returncode == 0 and done.stdout.startswith("{")
