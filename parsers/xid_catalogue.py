"""What an Xid or SXid code means, and what to do first.

The tables beside the kernel-log parser are generated from NVIDIA's published headers and catalogue (`nverror.h`,
`ctrl_dev_nvswitch.h`, "Xid errors: analyzing the Xid catalog", Fabric Manager user guide); each names its source in
its first line. They are read once, when first asked for.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

TABLES = Path(__file__).parent / "kernel_log"


class XidEntry(NamedTuple):
    """One Xid code. `scope` is app, gpu, link or host; `severity` info, warn, error or fatal; `first_action` none,
    restart_app, reset_gpu, reboot, update_driver, check_fabric or drain+RMA; `bucket` NVIDIA's own words."""

    code: int
    mnemonic: str
    meaning: str
    scope: str
    severity: str
    first_action: str
    bucket: str = ""
    notes: str = ""


class SxidEntry(NamedTuple):
    """One NVSwitch code. `fatality` is always_fatal, potentially_fatal, non_fatal or unlisted."""

    code: int
    mnemonic: str
    meaning: str
    fatality: str
    first_action: str


class LinkDecode(NamedTuple):
    """An NVLink 5 event (Xid 144-150) taken apart. `severity` as NVIDIA's sheet prints it (Fatal, Non-fatal, Link
    Fatal …), `immediate`/`investigate` its buckets, `origin` HW or SW; `exact` is False where the error status is
    not in the sheet and only the unit is known."""

    unit: str
    sub_reason: int
    error_status: int
    severity: str
    immediate: str
    investigate: str
    origin: str
    exact: bool


class RecoveryAction(NamedTuple):
    """What Xid 154 asks for: the driver's number, its words, and the first action in this catalogue's terms."""

    number: int
    name: str
    first_action: str


RECOVERY_ACTIONS: tuple[RecoveryAction, ...] = (
    RecoveryAction(0, "None", "none"),
    RecoveryAction(1, "GPU Reset Required", "reset_gpu"),
    RecoveryAction(2, "Node Reboot Required", "reboot"),
    RecoveryAction(3, "Drain P2P", "check_fabric"),
    RecoveryAction(4, "Drain and Reset", "reset_gpu"),
    RecoveryAction(5, "Recover IMEX Domain", "check_fabric"),
)
"""The driver's enumeration of recovery actions, as printed by Xid 154 (open-gpu-kernel-modules, gpu.c)."""

UNLISTED = "not in the catalogue"


def _rows(name: str) -> Iterator[dict[str, str]]:
    try:
        with (TABLES / name).open(encoding="utf-8", newline="") as file:
            file.readline()  # provenance
            yield from csv.DictReader(file)
    except OSError:  # a broken installation must not stop an analysis
        return


@cache
def xids() -> dict[int, XidEntry]:
    """Every catalogued Xid, by code."""
    return {
        int(row["code"]): XidEntry(
            int(row["code"]), row["mnemonic"], row["meaning"], row["scope"], row["severity"], row["first_action"],
            row["bucket"], row["notes"],
        )
        for row in _rows("xid.csv")
    }  # fmt: skip


@cache
def sxids() -> dict[int, SxidEntry]:
    """Every catalogued NVSwitch code."""
    return {
        int(row["code"]): SxidEntry(
            int(row["code"]), row["mnemonic"], row["meaning"], row["class"], row["first_action"]
        )
        for row in _rows("sxid.csv")
    }


@cache
def _link_rows() -> dict[int, list[dict[str, str]]]:
    table: dict[int, list[dict[str, str]]] = {}
    for row in _rows("nvlink5.csv"):
        table.setdefault(int(row["xid"]), []).append(row)
    return table


def lookup(code: int) -> XidEntry:
    """The entry of a code; one that says so for a code the catalogue does not know."""
    return xids().get(code) or XidEntry(code, f"XID_{code}", UNLISTED, "gpu", "error", "none")


def lookup_sxid(code: int) -> SxidEntry:
    """The entry of an NVSwitch code, known or not."""
    return sxids().get(code) or SxidEntry(code, f"SXID_{code}", UNLISTED, "unlisted", "check_fabric")


def _fits(pattern: str, bits: str) -> bool:
    return len(pattern) == len(bits) and all(want in ("-", bit) for want, bit in zip(pattern, bits, strict=True))


def decode_link_event(code: int, words: tuple[int, ...]) -> LinkDecode | None:
    """An Xid 144-150 by its words: word 1 is the interrupt info (bits 20-25 the sub-reason), word 2 the error status.

    The error status is a bit field; the exact row wins, then the worst row of a bit that is set. None when the unit
    is not in the sheet.
    """
    if len(words) < 2:
        return None
    bits = format(words[0] & 0xFFFFFFFF, "032b")
    fitting = [row for row in _link_rows().get(code, ()) if _fits(row["pattern_v1"], bits)]
    fitting = fitting or [row for row in _link_rows().get(code, ()) if _fits(row["pattern_v2"], bits)]
    if not fitting:
        return None
    status = words[1] & 0xFFFFFFFF
    by_status = {int(row["error_status"], 16): row for row in fitting}
    row = by_status.get(status)
    exact = row is not None
    if row is None:
        parts = [r for value, r in by_status.items() if value and value & status == value]
        fatal = [r for r in parts if r["severity"].startswith(("Fatal", "Link"))]
        row = (fatal or parts or fitting)[0]
    return LinkDecode(
        unit=row["unit"], sub_reason=(words[0] >> 20) & 0x3F, error_status=status, severity=row["severity"],
        immediate=row["immediate"], investigate=row["investigate"], origin=row["origin"], exact=exact,
    )  # fmt: skip


def recovery_action(number: int, name: str = "") -> RecoveryAction:
    """The action that Xid 154 names; a number that is new keeps its printed name and asks for a reset."""
    if 0 <= number < len(RECOVERY_ACTIONS):
        return RECOVERY_ACTIONS[number]
    return RecoveryAction(number, name or f"action {number}", "reset_gpu")
