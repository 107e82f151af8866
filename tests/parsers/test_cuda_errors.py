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
        m.name for m in members if m.value in ERRORS and m.name not in (ERRORS[m.value].runtime, ERRORS[m.value].driver)
    ]
    assert (missing, wrong) == ([], [])


def test_names_newer_than_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for a later cuda-python: by number, by name, in a log line, with the runtime's text."""
    import enum
    import sys
    import types

    from parsers import cuda_errors

    members = enum.IntEnum("cudaError_t", {"cudaErrorBrandNew": 1234})
    runtime = types.SimpleNamespace(cudaError_t=members, cudaGetErrorString=lambda code: (0, b"brand new trouble"))
    monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", runtime)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", types.SimpleNamespace())  # type: ignore[arg-type]
    for cached in (cuda_errors._newer, cuda_errors._newer_name):
        cached.cache_clear()
    try:
        for said in (1234, "1234", "cudaErrorBrandNew"):
            error = decode(said)
            assert error and (error.code, error.name, error.text) == (1234, "cudaErrorBrandNew", "brand new trouble")
        assert [error.code for error in find("RuntimeError: cudaErrorBrandNew (1234)")] == [1234]
        assert decode("cudaErrorOther") is None and decode("CUDA_ERROR_OTHER") is None
    finally:
        for cached in (cuda_errors._newer, cuda_errors._newer_name):
            cached.cache_clear()


def test_broken_cuda_python_is_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    from parsers import cuda_errors
    from parsers.cuda_core import flag_names

    def no(name: str) -> None:
        raise RuntimeError("Failed to dlopen libcuda.so.1")

    for cached in (cuda_errors._newer, cuda_errors._newer_name, flag_names._newer):
        cached.cache_clear()
    monkeypatch.setattr(importlib, "import_module", no)
    assert decode(4321) is None and decode("cudaErrorNever") is None
    assert flag_names.flag_names(0x20000003) == (["nonrelocated_elf_images", "global_memory"], ["0x20000000"])
    flag_names._newer.cache_clear()


def test_dump_flags_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import enum
    import sys
    import types

    from parsers.cuda_core import flag_names

    assert flag_names.flag_names(0x1C0) == (["tensor_memory"], ["gzip_compress", "faulted_contexts_only"])
    assert flag_names.flag_names(None) == ([], [])
    members = enum.IntEnum("F", {"CU_COREDUMP_SKIP_NEW_MEMORY": 0x800, "CU_COREDUMP_WITH_CLOCKS": 0x1000})
    flag_names._newer.cache_clear()
    driver = types.SimpleNamespace(CUcoredumpGenerationFlags=members)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", driver)  # type: ignore[arg-type]
    assert flag_names.flag_names(0x1801) == (["nonrelocated_elf_images", "new_memory"], ["with_clocks"])
    flag_names._newer.cache_clear()
