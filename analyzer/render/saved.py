"""Reads a saved report back, so that it can be rendered again without the inputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from analyzer.report import SCHEMA_VERSION, Report

LARGEST = 256 * 1024 * 1024
"""Bytes. A report quotes at most 800 characters a time; one larger than this was not made by this tool."""
_FAULTS_SHOWN = 10


class SavedReportError(ValueError):
    """A report that cannot be read, in four parts: what, where, why probably, what to do."""

    def __init__(self, what: str, where: str, why: str, do: str) -> None:
        super().__init__(what, where, why, do)
        self.what, self.where, self.why, self.do = what, where, why, do

    def __str__(self) -> str:
        return f"{self.what}\n  where  {self.where}\n  why    {self.why}\n  do     {self.do}"


def load_report(path: Path | str) -> Report:
    """The report that `analyze --format json` wrote to `path`.

    A report of the same major and a newer minor is read without the fields that this version does not know. Raises
    SavedReportError for everything else that keeps it from being read; nothing of the file is executed or followed.
    """
    path = Path(path)
    return parse_report(_bytes_of(path), str(path))


def parse_report(data: bytes, name: str) -> Report:
    """As `load_report`, from bytes (standard input); `name` is what errors call the source."""
    if not data.strip():
        raise SavedReportError(
            "the report is empty", name, "the command that wrote it stopped early or its output went elsewhere",
            "write it again: stuckwarp analyze PATH --format json -o report.json",
        )  # fmt: skip
    document = _document_of(data, name)
    newer = _check_version(document, name)
    try:
        return Report.model_validate(document)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        unknown = [fault["loc"] for fault in faults if fault["type"] == "extra_forbidden"]
        if newer and len(unknown) == len(faults):
            for location in unknown:
                _remove(document, location)
            try:
                return Report.model_validate(document)
            except ValidationError as again:
                faults = again.errors(include_url=False, include_context=False, include_input=False)
    lines = [f"{name}: {_dotted(fault['loc'])}: {fault['msg']}" for fault in faults[:_FAULTS_SHOWN]]
    if len(faults) > _FAULTS_SHOWN:
        lines.append(f"and {len(faults) - _FAULTS_SHOWN} more")
    raise SavedReportError(
        f"the report does not have the shape of schema {SCHEMA_VERSION} ({len(faults)} faults)",
        "\n         ".join(lines),
        "it was edited by hand, or another program wrote it",
        "make it again from the inputs; `stuckwarp schema report` prints the shape",
    )


def _bytes_of(path: Path) -> bytes:
    do = "give the path of a file written by: stuckwarp analyze PATH --format json -o report.json"
    try:
        if not path.is_file():
            why = "it is a folder or a special file" if path.exists() else "no such file"
            raise SavedReportError("the report cannot be opened", str(path), why, do)
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, SavedReportError):
            raise
        reason = getattr(error, "strerror", None) or str(error)
        raise SavedReportError("the report cannot be opened", str(path), reason, do) from None
    if len(data) > LARGEST:
        raise SavedReportError("the report is too large", str(path), f"it has more than {LARGEST:,} bytes", do)
    return data


def _document_of(data: bytes, name: str) -> dict[str, Any]:
    do = "give a report, not an input; inputs go to: stuckwarp analyze PATH"
    try:
        document = json.loads(data.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        where = f"{name}:{error.lineno}:{error.colno}"
        at_end = error.pos >= len(error.doc.rstrip()) - 1 or error.msg.startswith("Unterminated")
        cut = "the file seems to be cut short" if at_end else "it is another format"
        raise SavedReportError("the report is not JSON", where, f"{error.msg}; {cut}", do) from None
    except UnicodeDecodeError as error:
        why = f"byte {error.start:,} is not UTF-8; it is another kind of file, or a shell re-encoded it"
        raise SavedReportError("the report is not UTF-8 text", name, why, do) from None
    except (RecursionError, ValueError):
        # Nested without end, or a number of thousands of digits: no report has either.
        raise SavedReportError(
            "the report is not JSON", name, "it is nested too deep or a number is too long", do
        ) from None
    if not isinstance(document, dict) or "schema_version" not in document:
        raise SavedReportError("this is not a report", name, "it is JSON without a schema_version at its top", do)
    return document


def _check_version(document: dict[str, Any], name: str) -> bool:
    """True when the report is of a newer minor of this major; raises for another major."""
    written = document["schema_version"]
    parts = written.split(".") if isinstance(written, str) and len(written) <= 12 else []
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise SavedReportError(
            "the report names no schema version", name, "schema_version is not MAJOR.MINOR", "make the report again"
        )
    major, minor = map(int, SCHEMA_VERSION.split("."))
    if int(parts[0]) != major:
        raise SavedReportError(
            f"the report has schema {written}, this version reads {major}.x", name,
            "another major version wrote it", "render it with that version, or make it again from the inputs",
        )  # fmt: skip
    return int(parts[1]) > minor


def _remove(document: Any, location: tuple[int | str, ...]) -> None:
    for step in location[:-1]:
        document = document[step]
    document.pop(location[-1], None)


def _dotted(location: tuple[int | str, ...]) -> str:
    return ".".join(map(str, location)) or "(top)"
