"""Cells of a two-column box that were broken over several rows."""

from __future__ import annotations

from analyzer.intake.box import unbox
from parsers.contract import Line

TABLE = """\
| Info                      | GPU 0 API call cudaStreamCreate failed: 'CUDA  |
|                           | -capable device(s) is/are busy or unavailable  |
|                           | ' Check DCGM and system logs for errors. Rese  |
|                           | t GPU.                                         |
| memory                    | Fail                                           |
|                           | GPU0: Fail                                     |
+-----  Hardware  ----------+------------------------------------------------+
|                           | belongs to no row                              |"""


def lines(text: str) -> list[Line]:
    return [Line(number, 0, 0, one) for number, one in enumerate(text.split("\n"), 1)]


def test_broken_cell_is_one_line() -> None:
    originals: dict[int, str] = {}
    joined = unbox(lines(TABLE), originals)
    assert [line.number for line in joined] == [1, 5, 6, 7, 8]
    assert "failed: 'CUDA-capable device(s) is/are busy or unavailable' Check DCGM" in joined[0].text
    assert joined[0].text.endswith("errors. Reset GPU. |")
    assert originals[1] == "\n".join(TABLE.split("\n")[:4])


def test_table_of_nvidia_smi_stays() -> None:
    smi = """\
| N/A   51C    P0    15W /  N/A |      0MiB /  4096MiB |      0%      Default |
|                               |                      |                  N/A |"""
    given = lines(smi)
    assert unbox(given, {}) == given


def test_other_text_is_returned_as_it_is() -> None:
    given = lines("|  a | b |\nno table\n|   | c |")
    assert unbox(given, {}) == given
