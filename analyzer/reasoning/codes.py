"""What a code in a query means: Xid, SXid, CUDA errors."""

from __future__ import annotations

import re


def code_note(query: str) -> list[str]:
    """Lines that explain the code named in `query` (`Xid 154`, `SXid 12028`, `CUDA error 802`); [] for none."""
    from parsers import xid_catalogue

    lines: list[str] = []
    for found in re.finditer(r"(?i)\bsxid\D{0,12}?(\d{5})\b", query):
        entry = xid_catalogue.lookup_sxid(int(found[1]))
        lines.append(f"SXid {entry.code} {entry.mnemonic}: {entry.meaning} ({entry.fatality.replace('_', ' ')})")
    for found in re.finditer(r"(?i)(?<!s)xid\D{0,12}?(\d{1,3})\b", query):
        xid = xid_catalogue.lookup(int(found[1]))
        lines.append(
            f"Xid {xid.code} {xid.mnemonic}: {xid.meaning}. Scope: {xid.scope}; severity: {xid.severity}; "
            f"first action: {xid.first_action.replace('_', ' ')}." + (f" {xid.notes}" if xid.notes else "")
        )
    for found in re.finditer(
        r"(?i)\b(?:cuda|cu|error)\w*\D{0,10}?\b(\d{1,3})\b|\b(cudaError\w+|CUDA_ERROR_\w+)\b", query
    ):
        lines += _cuda(found[2] or found[1])
    return lines


def _cuda(code: str) -> list[str]:
    from parsers.cuda_errors import decode

    entry = decode(int(code) if code.isdigit() else code)
    return [str(entry)] if entry is not None else []
