"""Shell transcripts, clients' errors and people's lists: snapshots, refusal of foreign text, cut files, no secrets."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from parsers import client_errors, handwritten, terminal
from parsers.command_line import read_command
from parsers.contract import Line, TextParser, Trouble, discover
from parsers.event import Event

FIXTURES = Path(__file__).parents[3] / "fixtures"
PARSERS: dict[str, TextParser] = {
    "terminal": terminal.PARSER,
    "client_errors": client_errors.PARSER,
    "handwritten": handwritten.PARSER,
}
TEXTS = sorted(path for name in PARSERS for path in (FIXTURES / name).glob("*.txt"))


def lines_of(data: bytes) -> list[Line]:
    lines: list[Line] = []
    start = 0
    for number, raw in enumerate(data.split(b"\n"), start=1):
        if raw or start + len(raw) < len(data):
            lines.append(Line(number, start, start + len(raw), raw.decode("utf-8", "backslashreplace")))
        start += len(raw) + 1
    return lines


def view(items: list[Event | Trouble]) -> list[dict[str, Any]]:
    return [
        {
            "kind": one.kind,
            "line": one.span.first_line,
            "time": one.stamp.text if one.stamp else None,
            "fields": one.fields,
        }
        if isinstance(one, Event)
        else {"trouble": one.tag, "text": one.text, "line": one.line}
        for one in items
    ]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_snapshot(path: Path) -> None:
    data = path.read_bytes()
    parser = PARSERS[path.parent.name]
    found = {"parser": parser.name, "events": view(list(parser.read(lines_of(data), path.name)))}
    plain = json.loads(json.dumps(found, ensure_ascii=False))
    snapshot = path.with_suffix(".json")
    if os.environ.get("STUCKWARP_WRITE_SNAPSHOTS"):
        snapshot.write_text(json.dumps(plain, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert plain == json.loads(snapshot.read_text(encoding="utf-8"))
    parser.inspect(lines_of(data), path.name)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_its_own_parser_is_the_surest(path: Path) -> None:
    head = path.read_text(encoding="utf-8")
    texts = [one for one in discover() if isinstance(one, TextParser)]
    best = max(texts, key=lambda one: one.sniff(head))
    assert best.name == path.parent.name
    assert best.sniff(head) >= 0.3


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
@pytest.mark.parametrize("share", [0.03, 0.3, 0.6, 0.97])
def test_a_cut_file_never_raises_and_adds_nothing(path: Path, share: float) -> None:
    data = path.read_bytes()
    parser = PARSERS[path.parent.name]
    whole = [(one.kind, one.span.first_line) for one in parser.read(lines_of(data), "x") if isinstance(one, Event)]
    cut = data[: int(len(data) * share)]
    ends = cut.count(b"\n") + 1
    for one in parser.read(lines_of(cut), "x"):
        if isinstance(one, Event) and one.span.first_line < ends:
            assert one.kind == "fact" or (one.kind, one.span.first_line) in whole
    parser.inspect(lines_of(cut), "x")


FOREIGN = (
    "(EngineCore pid=12) INFO 11-30 20:32:43 [core.py:10] Initializing a V1 LLM engine (v0.32.0)\n" * 20,
    "[  100.000001] NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n" * 5,
    "# A report\n\nThe server froze. We saw Thread 5 (idle) in the dump and 100% utilisation.\n" * 4,
    '{"a": [1, 2, 3]}\n',
    "node1:1:1 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>\n" * 10,
    "import vllm\n\ndef main():\n    llm = vllm.LLM('m')\n",
    'Traceback (most recent call last):\n  File "/opt/vllm/engine.py", line 3, in x\nRuntimeError: CUDA error\n',
    "+-----------------------------------------+\n| NVIDIA-SMI 580.159.04   Driver Version: 580.159.04 |\n",
    "I upgraded the driver last week. Since then nothing works.\n",
    "",
)


@pytest.mark.parametrize("text", FOREIGN)
def test_foreign_text_is_refused(text: str) -> None:
    for parser in PARSERS.values():
        assert parser.sniff(text) < 0.3
        assert not [line for line in text.split("\n") if parser.claims(line)]


def test_secrets_of_a_command_line_are_not_kept() -> None:
    path = FIXTURES / "terminal" / "session.txt"
    facts = [one.fields for one in terminal.PARSER.read(lines_of(path.read_bytes()), "x")
             if isinstance(one, Event) and one.kind == "fact"]  # fmt: skip
    assert "not_a_real" not in repr(facts)
    assert {"name": "env.NCCL_DEBUG", "value": "INFO"} in facts


def test_a_command_is_taken_apart() -> None:
    command = read_command(
        'FOO=1 vllm serve "m/x" --tensor-parallel-size=2 --enforce-eager --seed -1 –kv-cache-dtype fp8'
    )
    assert command is not None and command.server and command.model == "m/x"
    assert dict(command.options) == {
        "tensor-parallel-size": "2", "enforce-eager": "True", "seed": "-1", "kv-cache-dtype": "fp8"}  # fmt: skip
    assert ("parallel.tp", "2", "tensor-parallel-size") in list(command.facts())
    assert read_command("the server hangs --always") is None


def test_a_python_client_is_no_server() -> None:
    text = (FIXTURES / "client_errors" / "openai-traceback.txt").read_text()
    assert client_errors.PARSER.sniff(text.replace("/openai/", "/vllm/")) == 0.0
