"""The house has floors: a module imports from its own floor or from below (docs/architecture.md)."""

from __future__ import annotations

import ast
from pathlib import Path

HOME = Path(__file__).parent.parent
FLOORS = [
    ["parsers"],
    ["analyzer.document", "analyzer.report", "analyzer.shipped"],
    ["analyzer.intake"],
    ["analyzer.timeline"],
    ["analyzer.reasoning"],
    ["analyzer.analysis", "analyzer.quote", "analyzer.story", "analyzer.compose", "analyzer.analyze", "analyzer.cases",
     "analyzer.disassembly", "analyzer.inspection", "analyzer.build_hook"],
    ["analyzer.render", "analyzer.redact", "analyzer.fleet"],
    ["analyzer.cli", "analyzer.__main__"],
]


def floor_of(module: str) -> int | None:
    """The floor of a module; None for one that is not ours, or for the package's own version."""
    for number, rooms in enumerate(FLOORS):
        if any(module == room or module.startswith(f"{room}.") for room in rooms):
            return number
    return None


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
    return names


def test_no_module_reaches_up() -> None:
    up, seen = [], set()
    for path in [*(HOME / "analyzer").rglob("*.py"), *(HOME / "parsers").rglob("*.py")]:
        module = ".".join(path.relative_to(HOME).with_suffix("").parts).removesuffix(".__init__")
        mine = floor_of(module)
        if module == "analyzer":
            continue
        assert mine is not None, f"{module} stands on no floor: add it to FLOORS"
        seen.add(mine)
        for name in imported(path):
            other = floor_of(name)
            if other is not None and other > mine:
                up.append(f"{module} imports {name}")
    assert up == []
    assert seen == set(range(len(FLOORS)))
