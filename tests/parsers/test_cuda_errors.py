"""The table of CUDA errors, and the same held against cuda-python where that is installed."""

from __future__ import annotations

import importlib

import pytest

from parsers.cuda_errors import ERRORS, decode, find


@pytest.mark.parametrize(
    "said",
    [
        700,
        "700",
        "cudaErrorIllegalAddress",
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        "an illegal memory access was encountered",
        "An illegal memory access was encountered.",
    ],
)
def test_one_error_in_all_its_names(said: int | str) -> None:
    error = decode(said)
    assert error and error.code == 700 and error.name == "cudaErrorIllegalAddress"


def test_unknown() -> None:
    assert decode(123456) is None and decode("nothing") is None and decode("") is None
    assert decode("9" * 5000) is None


def test_driver_only_and_runtime_only() -> None:
    assert decode("CUDA_ERROR_CONTEXT_ALREADY_CURRENT") and decode(202).name == "CUDA_ERROR_CONTEXT_ALREADY_CURRENT"
    assert decode(98).driver == ""


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        ("RuntimeError: CUDA error: device-side assert triggered", [710]),
        ("CUDA error at scen.cu:211: cudaErrorLaunchFailure (719) unspecified launch failure", [719]),
        ("torch.AcceleratorError: CUDA error: an illegal memory access was encountered", [700]),
        ("Failed: Cuda error /w/custom_all_reduce.cuh:455 'invalid argument'", []),
        ("CUDA driver error: 999", [999]),
        ("[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMalloc: out of memory", []),
        ("NCCL WARN Cuda failure 802 'system not yet initialized'", [802]),
        ("error code 404 from the gateway, no CUDA here", []),
        ("all is well", []),
    ],
)
def test_log_lines(line: str, codes: list[int]) -> None:
    assert [error.code for error in find(line)] == codes


@pytest.mark.parametrize(("module", "enumeration"), [("runtime", "cudaError_t"), ("driver", "CUresult")])
def test_against_cuda_python(module: str, enumeration: str) -> None:
    try:
        members = getattr(importlib.import_module(f"cuda.bindings.{module}"), enumeration)
    except (ImportError, RuntimeError, OSError) as problem:
        pytest.skip(f"cuda-python is not here: {problem}")
    missing = [m.name for m in members if m.value not in ERRORS]
    wrong = [
        m.name
        for m in members
        if m.value in ERRORS and m.name not in (ERRORS[m.value].runtime, ERRORS[m.value].driver)
    ]
    assert (missing, wrong) == ([], [])
