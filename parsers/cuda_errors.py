"""CUDA error codes by number, name and text: `cudaError` of the runtime and `CUresult` of the driver API.

The table ships (`parsers/cuda_errors_table.py`, generated from a toolkit), so nothing needs CUDA here. Where
`cuda-python` is installed it is asked for codes that are newer than the table.
"""

from __future__ import annotations

import importlib
import re
from functools import lru_cache
from typing import NamedTuple

from parsers.cuda_errors_table import ROWS
from parsers.pattern import lazy

_NAME = lazy(r"\b(?:cudaError[A-Z][A-Za-z0-9]*|CUDA_ERROR_[A-Z0-9_]+)\b")
_NUMBER = lazy(
    r"(?i)\b(?:cuda (?:driver |runtime )?(?:error|failure)|cudaError(?:_t)?|CUresult)(?: code)?[ :=#(]{1,4}(\d{1,4})\b"
)


class CudaError(NamedTuple):
    """One code: `runtime` and `driver` are its names in the two APIs ('' where it has none), `text` the short text."""

    code: int
    runtime: str
    driver: str
    text: str

    @property
    def name(self) -> str:
        """The runtime's name, else the driver's, else the number."""
        return self.runtime or self.driver or str(self.code)


ERRORS: dict[int, CudaError] = {row[0]: CudaError(*row) for row in ROWS}
_BY_NAME = {name.lower(): error for error in ERRORS.values() for name in (error.runtime, error.driver) if name}
_BY_TEXT = {error.text.lower(): error for error in reversed(ERRORS.values()) if error.text}
# Texts of fewer letters stand in prose of all kinds.
_TELLING = sorted((text for text in _BY_TEXT if len(text) >= 18), key=len, reverse=True)
_TEXT = lazy("|".join(map(re.escape, _TELLING)), re.IGNORECASE)


def decode(code_or_name: int | str) -> CudaError | None:
    """What a number, a name or a short text stands for; None when nothing knows it.

    Names are read without regard to case: `cudaErrorIllegalAddress`, `CUDA_ERROR_ILLEGAL_ADDRESS`,
    `an illegal memory access was encountered`, `700` and `"700"` are the same error.
    """
    if isinstance(code_or_name, int):
        return ERRORS.get(code_or_name) or _newer(code_or_name)
    text = code_or_name.strip().lower()
    if text.isascii() and text.isdecimal() and len(text) <= 9:
        return decode(int(text))
    return _BY_NAME.get(text) or _BY_TEXT.get(text.rstrip(". ")) or _newer_name(code_or_name.strip())


def find(text: str) -> list[CudaError]:
    """Errors that a log line names, each once: by name, by a number that is said to be a CUDA error, by short text."""
    found: dict[int, CudaError] = {}
    for match in _NAME.finditer(text):
        error = decode(match[0])
        if error:
            found.setdefault(error.code, error)
    for match in _NUMBER.finditer(text):
        error = decode(match[1])
        if error and error.code:
            found.setdefault(error.code, error)
    for match in _TEXT.finditer(text):
        error = decode(match[0])
        if error and error.code:
            found.setdefault(error.code, error)
    return list(found.values())


_ENUMERATIONS = (("runtime", "cudaError_t"), ("driver", "CUresult"))


@lru_cache(maxsize=512)
def _newer(code: int) -> CudaError | None:
    """Ask cuda-python's enumerations, if they are here, for a code that the table lacks. Needs no driver."""
    names = ["", ""]
    for slot, (module, enumeration) in enumerate(_ENUMERATIONS):
        try:
            members = getattr(importlib.import_module(f"cuda.bindings.{module}"), enumeration)
            names[slot] = str(members(code).name)
        except Exception:  # without a driver it raises errors of its own kinds
            continue
    return CudaError(code, names[0], names[1], _newer_text(code)) if any(names) else None


def _newer_text(code: int) -> str:
    """The runtime's short text; the wheel carries the runtime itself, so this too needs no driver."""
    try:
        runtime = importlib.import_module("cuda.bindings.runtime")
        _, text = runtime.cudaGetErrorString(runtime.cudaError_t(code))
        return text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
    except Exception:
        return ""


@lru_cache(maxsize=512)
def _newer_name(name: str) -> CudaError | None:
    """The same for a name; only what is spelled like one is asked for."""
    if len(name) > 100 or _NAME.fullmatch(name) is None:
        return None
    for module, enumeration in _ENUMERATIONS:
        try:
            members = getattr(importlib.import_module(f"cuda.bindings.{module}"), enumeration)
            return decode(int(members[name].value))
        except Exception:
            continue
    return None
