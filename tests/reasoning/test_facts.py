"""Facts, conditions and gates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from analyzer.reasoning.facts import Facts, gate, holds, sm_of
from parsers.event import fact
from parsers.span import SourceSpan

HERE = SourceSpan("env.txt", 1, 1, 0, 10)


@pytest.mark.parametrize(
    ("name", "sm"),
    [
        ("NVIDIA H200", "9.0"),
        ("GB300", "10.3"),
        ("NVIDIA GB10", "12.1"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "12.0"),
        ("NVIDIA L40S", "8.9"),
        ("Tesla T4", "7.5"),
        ("NVIDIA RTX 6000 Ada Generation", "8.9"),
        ("NVIDIA A100-SXM4-80GB", "8.0"),
        ("NVIDIA GeForce RTX 5090", "12.0"),
        ("Quadro K620", None),
        ("GB1000", None),
    ],
)
def test_compute_capability(name: str, sm: str | None) -> None:
    assert sm_of(name) == sm


@pytest.mark.parametrize(
    ("condition", "value", "expected"),
    [
        ("12.1", "12.1", True),
        (["12.0", "12.1"], "12.1", True),
        ("~(?i)cudnn", "x CUDNN y", True),
        ("~^cudnn", "xcudnn", False),
        (">= 0.6.7, < 0.6.7.post2", "0.6.7.post1", True),
        (">= 0.6.7, < 0.6.7.post2", "0.6.7.post2", False),
        ("< 0.25", "v0.24.1rc1+cu130", True),
        ("> 90", 95.5, True),
        ("> 90", 90, False),
        (79, "79", True),
        (79, 7, False),
        (True, "true", True),
        (False, True, False),
        ("x", None, False),
        (["a", "b"], ["c", "b"], True),
        (">= 1", "no version", False),
    ],
)
def test_conditions(condition: object, value: object, expected: bool) -> None:
    assert holds(condition, value) is expected  # type: ignore[arg-type]


def test_gates_are_three_valued_and_conflicts_are_kept() -> None:
    facts = Facts()
    assert gate(facts, "gpu.sm", "12.1").holds is None
    facts.add(fact("gpu.name", "NVIDIA H200", HERE, "GPU 0: NVIDIA H200"))
    assert gate(facts, "gpu.sm", "12.1").holds is False
    facts.add(fact("gpu.sm", "12.1", HERE, "SM 12.1"))
    assert gate(facts, "gpu.sm", "12.1").holds is True
    assert [one.value for one in facts.get("gpu.sm")] == ["9.0", "12.1"]


def test_nothing_collected_is_no_value() -> None:
    facts = Facts()
    facts.add(fact("cuda.version", "Could not collect", HERE, "CUDA runtime version: Could not collect"))
    assert facts.get("cuda.version") == []


_release = st.lists(st.integers(0, 30), min_size=1, max_size=4).map(lambda numbers: ".".join(map(str, numbers)))
_bound = st.tuples(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), _release).map(" ".join)


@given(_release, st.lists(_bound, min_size=1, max_size=3))
def test_plain_ranges_are_those_of_pep_440(version: str, bounds: list[str]) -> None:
    condition = ", ".join(bounds)
    assert holds(condition, version) is SpecifierSet(condition).contains(version, prereleases=True)


@pytest.mark.parametrize(
    ("condition", "value", "expected"),
    [
        ("~^RuntimeError$", "RuntimeError", True),
        ("~^RuntimeError$", "ValueError", False),
        ("~(?i)out of memory", "CUDA OUT OF MEMORY", True),
        ("~^(?!.*core_client)", "anything", True),
        (">= 0.6.7, < 0.6.7.post2", "0.6.7.post1", True),
        (">= 0.6.7, < 0.6.7.post2", "0.6.8", False),
        ("< 0.12", "0.12.0rc1", False),
    ],
)
def test_conditions_that_are_not_plain(condition: str, value: str, expected: bool) -> None:
    assert holds(condition, value) is expected
