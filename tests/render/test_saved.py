"""Reading a saved report back: four-part errors, never a traceback of another kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.render.saved import SavedReportError, load_report, parse_report
from analyzer.report import SCHEMA_VERSION

FOLDER = Path(__file__).parents[2] / "fixtures" / "render"


def _document() -> dict[str, Any]:
    return json.loads((FOLDER / "identified.json").read_text(encoding="utf-8"))


def _fails(data: bytes, part: str) -> SavedReportError:
    with pytest.raises(SavedReportError) as caught:
        parse_report(data, "r.json")
    error = caught.value
    assert error.what and error.where and error.why and error.do
    assert part in str(error)
    return error


def test_byte_order_mark_is_taken() -> None:
    assert parse_report(b"\xef\xbb\xbf" + (FOLDER / "healthy.json").read_bytes(), "r").verdict == "healthy"


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"", "empty"),
        (b"Xid 79", "r.json:1:1"),
        ((FOLDER / "healthy.json").read_bytes()[:300], "cut short"),
        ("{}".encode("utf-16"), "not UTF-8"),
        (b"[]", "not a report"),
        (b"{}", "schema_version"),
        (b'{"schema_version": "2.0"}', "2.0"),
        (b'{"schema_version": 1}', "MAJOR.MINOR"),
        (b'{"schema_version": "1.x"}', "MAJOR.MINOR"),
        (b"[" * 200_000, "nested"),
        (b'{"a":' + b"9" * 100_000 + b"}", "number"),
        (b'{"schema_version": "1.0"}', "tool"),
    ],
)
def test_errors_have_four_parts(data: bytes, part: str) -> None:
    _fails(data, part)


def test_all_faults_are_named_at_once() -> None:
    document = _document()
    document["verdict"] = "perhaps"
    document["hypotheses"][0]["confidence"] = "87 %"
    error = _fails(json.dumps(document).encode(), "2 faults")
    assert "hypotheses.0.confidence" in error.where and "verdict" in error.where


def test_newer_minor_loses_only_what_is_not_known() -> None:
    document = _document()
    document["schema_version"] = f"{SCHEMA_VERSION.split('.')[0]}.99"
    document["added"] = {"x": 1}
    document["hypotheses"][0]["evidence_for"][0]["added"] = [1]
    report = parse_report(json.dumps(document).encode(), "r.json")
    assert report.hypotheses == load_report(FOLDER / "identified.json").hypotheses


def test_same_minor_with_an_unknown_field_is_refused() -> None:
    _fails(json.dumps(_document() | {"added": 1}).encode(), "added")


def test_folder_and_missing_file(tmp_path: Path) -> None:
    for path, part in ((tmp_path, "folder"), (tmp_path / "no.json", "no such file"), (tmp_path / "a\0b", "cannot")):
        with pytest.raises(SavedReportError, match=part):
            load_report(path)


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    with pytest.raises(SavedReportError):
        parse_report(data, "r.json")
