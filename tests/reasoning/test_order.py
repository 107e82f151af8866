"""Causes before their consequences, whatever the order of the lines; and where a hypothesis begins."""

from __future__ import annotations

from pathlib import Path

from analyzer.analyze import investigate
from analyzer.reasoning.rank import Candidate
from analyzer.reasoning.rulebook import load

SERVER = "RuntimeError: No CUDA GPUs are available\n"
KERNEL = (
    "[Mon Nov  3 11:02:10 2025] NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, "
    "GPU has fallen off the bus.\n"
    "[Mon Nov  3 11:02:10 2025] NVRM: GPU 0000:41:00.0: GPU has fallen off the bus.\n"
)
SERVING = (
    "(APIServer pid=1) INFO 05-05 12:36:49 [loggers.py:271] Engine 000: Avg prompt throughput: 1201.3 tokens/s, "
    "Avg generation throughput: 31.7 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 41.2%, "
    "Prefix cache hit rate: 0.0%\n"
    "(EngineCore pid=104) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 50.00 MiB. GPU 0 has a total "
    "capacity of 23.56 GiB of which 56.88 MiB is free.\n"
)


def ranked(text: str, folder: Path) -> list[Candidate]:
    (folder / "paste.txt").write_text(text, encoding="utf-8")
    return [one for one in investigate([str(folder)], load()).ranked if not one.ruled_out]


def test_a_consequence_pasted_above_its_cause_yields(tmp_path: Path) -> None:
    for text in (SERVER + KERNEL, KERNEL + SERVER):
        assert [one.rule.cause for one in ranked(text, tmp_path)][:2] == ["gpu-fallen-off-bus", "no-gpu-visible"]


def test_what_went_well_is_not_where_a_fault_begins(tmp_path: Path) -> None:
    first = ranked(SERVING, tmp_path)[0]
    assert first.rule.cause == "gpu-out-of-memory"
    assert first.first is not None and "OutOfMemoryError" in first.first.text
