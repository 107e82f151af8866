"""`dcgmi dmon` samples and `dcgmi diag` verdicts (DCGM user guide)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from parsers.contract import Line
from parsers.event import Event
from parsers.nvidia_smi.device import Device, Found, number
from parsers.pattern import lazy

DMON_HEADER = lazy(r"#\s*Entity\s")
DMON_ROW = lazy(r"GPU (?P<gpu>\d+)\s+(?P<cells>\S.*)$")
DIAG_ROW = lazy(r"\|\s*(?P<test>\S.*?)\s*\|\s*(?P<result>Pass|Fail|Skip|Warn)\b(?P<rest>[^|]*)\|")
DIAG_TITLE = lazy(r"Successfully ran diagnostic|\|\s*Diagnostic\s*\|\s*Result")

COLUMNS = {
    "GPUTL": "util",
    "MCUTL": "mem_util",
    "POWER": "power_w",
    "TMPTR": "temp_c",
    "SMCLK": "sm_clock_mhz",
    "FBUSD": "mem_used_mib",
    "DBEAT": "aggregate_uncorrected",
    "DBEVT": "volatile_uncorrected",
}


def begins(text: str) -> bool:
    """Whether a line opens `dcgmi dmon` or `dcgmi diag`."""
    return bool(DMON_HEADER.match(text) or DIAG_TITLE.match(text))


def read(lines: Sequence[Line], source: str) -> Iterator[Found]:
    """Samples of dmon; failed tests of diag as errors."""
    columns: list[str] = []
    for line in lines:
        text = line.text.rstrip()
        if DMON_HEADER.match(text):
            columns = text.lstrip("# ").split()[1:]
            continue
        row = DMON_ROW.match(text.strip())
        if row and columns:
            device = Device(row["gpu"])
            for column, cell in zip(columns, row["cells"].split(), strict=False):
                if column in COLUMNS:
                    device.put(COLUMNS[column], number(cell), line)
            yield from device.events(source)
            continue
        verdict = DIAG_ROW.match(text)
        if verdict and verdict["result"] == "Fail":
            fields = {"what": "init", "test": verdict["test"], "result": verdict["result"] + verdict["rest"].rstrip()}
            yield Event("gpu_samples.error", line.span(source), line.text, fields=fields)
