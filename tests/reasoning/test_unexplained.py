"""What no hypothesis explains: templates, noise, order."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.analyze import analyze
from analyzer.reasoning.rulebook import load
from analyzer.reasoning.unexplained import template_of
from analyzer.report import Unexplained

FRONT = "(EngineCore pid=12) {level} 11-30 20:32:{second:02} [{file}.py:10] {text}"
READY = (
    "(EngineCore pid=12) INFO 11-30 20:31:00 [core.py:10] Initializing a V1 LLM engine (v0.32.0) with config: model='m'"
)


def unexplained(tmp_path: Path, *records: tuple[str, str]) -> list[Unexplained]:
    lines = [READY, *(FRONT.format(level=level, second=at, file="widget", text=text)
                      for at, (level, text) in enumerate(records))]  # fmt: skip
    (tmp_path / "server.log").write_text("\n".join(lines) + "\n")
    return analyze([str(tmp_path)], load()).unexplained


@pytest.mark.parametrize(
    ("text", "template"),
    [
        ("Slot 12 of 0x7f2a took 3.5 s", "Slot # of <hex> took # s"),
        ("cannot open /srv/models/a-b/config.json", "cannot open <path>"),
        ("job 123e4567-e89b-12d3-a456-426614174000 lost", "job <uuid> lost"),
        ("shapes 1, 2, 3, 4 differ", "shapes # … differ"),
        ("FA2 on sm_90 with bfloat16", "FA2 on sm_90 with bfloat16"),
    ],
)
def test_template(text: str, template: str) -> None:
    assert template_of(text) == template


def test_errors_first_and_alike_lines_once(tmp_path: Path) -> None:
    found = unexplained(
        tmp_path,
        ("WARNING", "The widget is blue"),
        ("WARNING", "Widget 17 failed to turn"),
        ("WARNING", "Widget 18 failed to turn"),
        ("ERROR", "The widget fell off"),
    )
    assert [(one.template, one.count) for one in found] == [
        ("The widget fell off", 1), ("Widget # failed to turn", 2), ("The widget is blue", 1)]  # fmt: skip


def test_known_noise_is_dropped(tmp_path: Path) -> None:
    noise = "Found ulimit of 4096 and failed to automatically increase with error current limit exceeds maximum limit."
    assert unexplained(tmp_path, ("WARNING", noise)) == []


def test_an_error_that_points_to_another_is_shown_when_it_is_all(tmp_path: Path) -> None:
    pointer = ("ERROR", "Dumping scheduler output for model execution: x")
    assert [one.level for one in unexplained(tmp_path, pointer)] == ["ERROR"]
    assert [one.template for one in unexplained(tmp_path, pointer, ("ERROR", "It fell off"))] == ["It fell off"]


def test_what_a_hypothesis_rests_on_is_explained(tmp_path: Path) -> None:
    text = "Model architectures ['FooForCausalLM'] are not supported for now. Supported architectures: dict_keys(['B'])"
    found = unexplained(tmp_path, ("ERROR", f"ValueError: {text}"), ("ERROR", "The widget fell off"))
    assert [one.template for one in found] == ["The widget fell off"]


def test_every_noise_pattern_has_a_reason() -> None:
    noise = load().vocabulary["noise"]
    assert len(noise) >= 10
    assert all(len(reason) > 10 for reason in noise.values())
