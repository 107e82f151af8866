"""Every fixture of stacks, nvidia-smi, metrics, environment, processes, flight recorder, lspci against its snapshot."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from artifact_text import FIXTURES, check_snapshot, head_of, lines_of, read_view, recognise

from parsers.event import Event

KINDS = {
    "stacks": "stacks",
    "nvidia_smi": "gpu_samples",
    "metrics_scrape": "metrics",
    "collect_env": "environment",
    "process_state": "process",
    "flight_recorder": "collective",
    "lspci": "host",
    "infiniband": "host",
    "cluster_state": "process",
}
TEXTS = sorted(path for folder in KINDS for path in (FIXTURES / folder).glob("*.txt"))


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_snapshot(path: Path) -> None:
    data = path.read_bytes()
    surety, parser = recognise(data)
    assert parser.kind == KINDS[path.parent.name]
    assert surety >= 0.9
    found = list(parser.read(lines_of(data), path.name.removesuffix(".txt")))
    check_snapshot(path.with_suffix(".json"), {"parser": parser.name, "events": read_view(found)})
    parser.inspect(lines_of(data), path.name)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_quotes_are_lines_of_the_input(path: Path) -> None:
    data = path.read_bytes()
    lines = lines_of(data)
    _, parser = recognise(data)
    for event in parser.read(lines, path.name):
        if isinstance(event, Event):
            assert event.text == lines[event.span.first_line - 1].text


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_only_one_parser_is_sure(path: Path) -> None:
    from artifact_text import PARSERS

    head = head_of(path.read_bytes())
    sure = {parser.kind for parser in PARSERS if parser.sniff(head) > 0.35}
    assert sure == {KINDS[path.parent.name]}


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
@pytest.mark.parametrize("share", [0.05, 0.5, 0.93])
def test_a_cut_file_never_raises(path: Path, share: float) -> None:
    data = path.read_bytes()
    _, parser = recognise(data)
    cut = data[: int(len(data) * share)]
    for event in parser.read(lines_of(cut), path.name):
        assert event.source if not isinstance(event, Event) else event.kind
    parser.inspect(lines_of(cut), path.name)


FOREIGN = (
    "(EngineCore pid=12) INFO 11-30 20:32:43 [core.py:10] Initializing a V1 LLM engine (v0.32.0)\n" * 20,
    "[  100.000001] NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n" * 5,
    "<html><head><title>503 Service Temporarily Unavailable</title></head><body>nginx</body></html>\n",
    "# A report\n\nThe server froze. We saw Thread 5 (idle) in the dump and 100% utilisation.\n" * 4,
    '{"a": [1, 2, 3]}\n',
    "node1:1:1 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>\n" * 10,
    "",
)


@pytest.mark.parametrize("text", FOREIGN)
def test_foreign_text_is_refused(text: str) -> None:
    surety, _ = recognise(text.encode())
    assert surety <= 0.1


@pytest.mark.parametrize("text", FOREIGN)
def test_foreign_lines_are_not_claimed(text: str) -> None:
    from artifact_text import PARSERS

    for line in text.split("\n"):
        assert not [parser.name for parser in PARSERS if parser.claims(line)]
