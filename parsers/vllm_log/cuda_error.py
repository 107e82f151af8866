"""Where a server's text speaks of a CUDA error: torch's, Triton's, DeepGEMM's and custom kernels' wordings.

What a name, number or text stands for is `parsers.cuda_errors`' knowledge.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from parsers.cuda_errors import ERRORS, decode
from parsers.pattern import lazy

MARKS = (
    "CUDA error", "Cuda error", "cuda error", "CUDA driver error", "cudaError", "CUDA_ERROR_", "CUBLAS_STATUS_",
    "CUDNN_STATUS_", "CUSPARSE_STATUS_", "CUDA out of memory", "Error [CUDA]", "cudaGetDeviceCount", "cudaMalloc",
    "NVIDIA driver on your system is too old", "device-side assert", "Assertion `", "re-initialize CUDA",
)  # fmt: skip

_SIGN = lazy("|".join(re.escape(mark) for mark in MARKS))
_NAME = lazy(
    r"\b(cudaError[A-Z]\w{2,60}|CUDA_ERROR_[A-Z_]{3,60}|CU(?:BLAS|DNN|SPARSE|SOLVER)_STATUS_[A-Z_]{3,60})\b"
)
_TEXT = lazy(
    r"(?:CUDA|Cuda|cuda) error(?: \(?(?P<where>[\w./\-]{1,200}:\d+)\)?:?)?(?:: | ')(?P<text>[^'\n]{3,160})|"
    r"Error \[CUDA\]: (?P<triton>.{3,160})"
)
_NUMBER = lazy(r"\b(?:Error|error|returned|code) (\d{1,3})\b(?:: (.{3,120}))?")
_CALL = lazy(r"when calling [`'](\w{3,80})|(?<![\w])(cu(?:da|blas|dnn)?[A-Z]\w{3,60})(?=\()")
_ASSERT = lazy(
    r"(?P<file>\S{1,300}\.(?:cuh?|h|cpp)):\d+: (?P<call>.{1,300}?): block: \[\d+,\d+,\d+\], "
    r"thread: \[\d+,\d+,\d+\] Assertion"
)


def find(text: str) -> dict[str, Any] | None:
    """`{"code", "name", "call"}` of the CUDA error that `text` speaks of, or None. `code` is -1 where none is known."""
    if _SIGN.search(text) is None:
        return None
    call = found[1] or found[2] if (found := _CALL.search(text)) else ""
    if asserted := _ASSERT.search(text):
        return {"code": 710, "name": "cudaErrorAssert", "call": asserted["call"][:120]}
    if text.startswith("Search for `"):  # torch's help line: repeats the name of the line before
        return None
    if named := _NAME.search(text):
        return _row(named[1], call)
    if "out of memory" in text and ("CUDA" in text or "cuda" in text):
        return _row("cudaErrorMemoryAllocation", call)
    if said := _TEXT.search(text):
        phrase = (said["text"] or said["triton"]).strip().rstrip(".")
        if name := _by_phrase(phrase):
            return _row(name, call)
    if (number := _NUMBER.search(text)) and "cuda" in text.lower() and (known := decode(int(number[1]))) and known.code:
        return {"code": known.code, "name": known.name, "call": call}
    if "NVIDIA driver on your system is too old" in text:
        return _row("cudaErrorInsufficientDriver", call)
    if "re-initialize CUDA in forked subprocess" in text:
        return {"code": -1, "name": "forked", "call": call}
    return None


def _row(name: str, call: str) -> dict[str, Any]:
    known = decode(name)
    return {"code": known.code if known else -1, "name": known.name if known else name, "call": call}


@cache
def _texts() -> tuple[tuple[str, str], ...]:
    return tuple((error.text.lower(), error.name) for error in ERRORS.values() if len(error.text) > 6)


def _by_phrase(phrase: str) -> str:
    known = decode(phrase)
    if known is not None:
        return known.name if known.code else ""
    lowered = phrase.lower()
    return next((name for text, name in _texts() if lowered.startswith(text)), "")
