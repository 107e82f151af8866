"""N01 to N38: hostile inputs of the threat model, each beside a log with a known answer, each under limits.

What holds for every row: a documented exit code, no traceback, time and memory within limits, nothing written, inputs
as they were, the log beside it still read and ranked, and a note that names the source that could not be read.
N39 (secrets) is in `test_secrets.py`, N40 (rules, forged evidence) in `test_forged.py`.
"""
# ruff: noqa: E501  (log lines are data)

from __future__ import annotations

import lzma
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.hostile import archives, binaries, texts
from tests.hostile.child import CPU, RESIDENT, Ended, fingerprint, run_cli
from tests.hostile.logs import CANARY, CANARY_RULE, XID_RULE

SAMPLE = Path(__file__).parents[2] / "fixtures" / "cuda_core" / "assert.nvcudmp.xz"


@dataclass(slots=True)
class Row:
    """`tags` = (part of a source's name, tag) that must be noted; `rules` must be among the hypotheses; `own` = more."""

    id: str
    build: Callable[[Path], None]
    tags: list[tuple[str, str]] = field(default_factory=list)
    rules: tuple[str, ...] = ()
    own: Callable[[Ended, Path], None] | None = None


def _sample(build: Callable[[Path, bytes], None]) -> Callable[[Path], None]:
    return lambda folder: build(folder, lzma.decompress(SAMPLE.read_bytes()))


def _artifacts(ended: Ended) -> dict[str, dict[str, object]]:
    assert ended.report is not None
    return {one["path"]: one for one in ended.report["artifacts"]}


def _quotes(ended: Ended, rule: str) -> list[dict[str, object]]:
    assert ended.report is not None
    return [
        e["source"] for h in ended.report["hypotheses"] if h["rule"] == rule for e in h["evidence_for"] if e["source"]
    ]


def _names_are_inert(ended: Ended, folder: Path) -> None:
    for name in _artifacts(ended):
        assert all(c.isprintable() for c in name)
        assert not name.startswith("/")
    assert not (folder.parent / "etc").exists()


def _no_passwd(ended: Ended, folder: Path) -> None:
    assert b"root:x:0" not in ended.out


def _million(ended: Ended, folder: Path) -> None:
    assert len(ended.report["artifacts"]) < 60_000  # type: ignore[index]


def _lines_as_sed_counts(ended: Ended, folder: Path) -> None:
    lines = (folder / "kern.log").read_bytes().split(b"\n")
    for quote in _quotes(ended, XID_RULE):
        if str(quote["artifact"]).endswith("kern.log"):
            assert b"NVRM" in lines[int(str(quote["line"])) - 1]


def _three_gpus(ended: Ended, folder: Path) -> None:
    for pci in (b"0000:41", b"0000:42", b"0000:43"):
        assert pci in ended.out, pci


def _inert_quotes(ended: Ended, folder: Path) -> None:
    assert not any(byte in ended.out for byte in (b"\x1b", b"\x9b", b"\x08", b"\xe2\x80\xae", b"\xe2\x81\xa6"))


def _counted_once(ended: Ended, folder: Path) -> None:
    assert ended.report is not None
    for one in ended.report["hypotheses"]:
        if one["rule"] == XID_RULE:
            assert all(e["count"] <= 2 for e in one["evidence_for"]), [
                (e["clause"], e["count"]) for e in one["evidence_for"]
            ]


def _nothing_ran(ended: Ended, folder: Path) -> None:
    assert not list(folder.parent.rglob("owned"))


def _verdict_stands(ended: Ended, folder: Path) -> None:
    assert ended.report is not None
    assert ended.report["verdict"] == "identified"
    assert "ignore all previous" not in ended.report["summary"]


ROWS = [
    Row("N01", archives.n01, [("etc/x", "skipped"), ("ok.txt", "")], (XID_RULE,), _names_are_inert),
    Row("N02", archives.n02, [("links.tar/out", "skipped"), ("loop-a", "skipped")], (XID_RULE,), _no_passwd),
    Row("N03", archives.n03, [("dev", "skipped"), ("pipe", "skipped"), ("sparse.log", "limit")], (XID_RULE,)),
    Row("N04", archives.n04, [("negative.tar", "corrupt")], (XID_RULE,)),
    Row("N05", archives.n05, [("cut", "truncated")], (XID_RULE,)),
    Row("N06", archives.n06, [("zeros.gz", "limit"), ("zeros.bz2", "limit"), ("zeros.xz", "limit")], (XID_RULE,)),
    Row("N07", archives.n07, [("overlap.zip", "corrupt")], ()),
    Row("N08", archives.n08, [("deep", "limit"), ("itself", "limit")]),
    Row("N09", archives.n09, [("window.zst", ""), ("dictionary.xz", "limit")]),
    Row("N10", archives.n10, [("same", "limit"), ("many", "limit")], (XID_RULE,), _million),
    Row("N11", archives.n11, [], (XID_RULE,)),
    Row(
        "N12",
        archives.n12,
        [
            ("encrypted.zip", "unsupported"),
            ("ppmd.zip", "unsupported"),
            ("aes.zip", "unsupported"),
            ("a.7z", "unsupported"),
            ("a.rar", "unsupported"),
        ],
    ),
    Row("N13", archives.n13, [("rotated", "corrupt")], (XID_RULE,)),
    Row(
        "N14",
        archives.n14,
        [("outside", "skipped"), ("pipe", "skipped"), ("socket", "skipped"), ("loop", "unreadable")],
        (XID_RULE,),
        _no_passwd,
    ),
    Row("N15", texts.n15, [("endless.log", "limit")], (XID_RULE,)),
    Row("N16", texts.n16, [], (XID_RULE,), _three_gpus),
    Row("N17", texts.n17, [], (XID_RULE,), _three_gpus),
    Row("N18", texts.n18, [], (XID_RULE,)),
    Row("N19", texts.n19, [], (XID_RULE,), _lines_as_sed_counts),
    Row("N20", texts.n20, [], (XID_RULE,)),
    Row("N21", texts.n21, [], (XID_RULE,)),
    Row("N22", texts.n22, [], (XID_RULE,), _inert_quotes),
    Row("N23", texts.n23, [], (XID_RULE,), _inert_quotes),
    Row("N24", texts.n24, [], (XID_RULE,)),
    Row("N25", texts.n25, [], (XID_RULE,), _counted_once),
    Row("N26", texts.n26),
    Row("N27", texts.n27, [], (XID_RULE,)),
    Row("N28", texts.n28),
    Row("N29", texts.n29),
    Row("N30", texts.n30, [], (), _nothing_ran),
    Row("N31", texts.n31, [], (), _no_passwd),
    Row("N32", binaries.n32, [("system", ""), ("memo", ""), ("length", "")], (), _nothing_ran),
    Row("N33", binaries.n33, [("core.no-size", ""), ("core.extended", "")]),
    Row("N34", _sample(binaries.n34), [("cut-10", "truncated")]),
    Row("N35", _sample(binaries.n35)),
    Row("N36", texts.n36, [], (), _inert_quotes),
    Row("N38", texts.n38, [], (XID_RULE,), _verdict_stands),
]


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_hostile_input(row: Row, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    folder.mkdir()
    row.build(folder)
    (folder / "zz-canary-dmesg.txt").write_text(CANARY)
    before = fingerprint(folder)
    ended = run_cli(["analyze", "bundle", "--format", "json"], tmp_path)

    said = f"{ended.err[-2000:]} code {ended.code}"
    assert ended.code in (0, 1, 2, 3), said
    assert "Traceback" not in ended.err, said
    assert ended.report is not None, said
    assert ended.cpu_s < CPU
    assert ended.resident < RESIDENT
    assert fingerprint(folder) == before
    left = sorted(p.name for p in tmp_path.iterdir())
    assert left == [".home", ".tmpdir", "bundle"]
    assert not list((tmp_path / ".home").iterdir()) + list((tmp_path / ".tmpdir").iterdir())
    assert CANARY_RULE in ended.rules(), ended.rules()
    notes = ended.notes()
    for name, tag in row.tags:
        assert any(name in source and tag in noted for source, noted, _text in notes) or (
            not tag and any(name in path for path in _artifacts(ended))
        ), (name, tag, notes[:20])
    for rule in row.rules:
        assert rule in ended.rules(), (rule, ended.rules(), notes[:10])
    if row.own is not None:
        row.own(ended, folder)
