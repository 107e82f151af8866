"""CUDA error names, codes and texts in free text.

Names, numbers and texts are those of `cudaError_t` and `CUresult` in CUDA's `driver_types.h` and `cuda.h`
(`cudaGetErrorName`, `cudaGetErrorString`); a runtime error and the driver error of the same number share the meaning.
"""

from __future__ import annotations

import re
from typing import Any

MARKS = (
    "CUDA error", "Cuda error", "cuda error", "CUDA driver error", "cudaError", "CUDA_ERROR_", "CUBLAS_STATUS_",
    "CUDNN_STATUS_", "CUSPARSE_STATUS_", "CUDA out of memory", "Error [CUDA]", "cudaGetDeviceCount", "cudaMalloc",
    "NVIDIA driver on your system is too old", "device-side assert", "Assertion `", "re-initialize CUDA",
)  # fmt: skip

_TEXTS = {
    "invalid argument": ("cudaErrorInvalidValue", 1),
    "out of memory": ("cudaErrorMemoryAllocation", 2),
    "initialization error": ("cudaErrorInitializationError", 3),
    "CUDA driver is shutting down": ("cudaErrorCudartUnloading", 4),
    "driver shutting down": ("cudaErrorCudartUnloading", 4),
    "invalid configuration argument": ("cudaErrorInvalidConfiguration", 9),
    "CUDA driver version is insufficient for CUDA runtime version": ("cudaErrorInsufficientDriver", 35),
    "CUDA-capable device(s) is/are busy or unavailable": ("cudaErrorDevicesUnavailable", 46),
    "invalid device function": ("cudaErrorInvalidDeviceFunction", 98),
    "no CUDA-capable device is detected": ("cudaErrorNoDevice", 100),
    "invalid device ordinal": ("cudaErrorInvalidDevice", 101),
    "device kernel image is invalid": ("cudaErrorInvalidKernelImage", 200),
    "invalid device context": ("cudaErrorDeviceUninitialized", 201),
    "no kernel image is available for execution on the device": ("cudaErrorNoKernelImageForDevice", 209),
    "uncorrectable ECC error encountered": ("cudaErrorECCUncorrectable", 214),
    "a PTX JIT compilation failed": ("cudaErrorInvalidPtx", 218),
    "uncorrectable NVLink error detected during the execution": ("cudaErrorNvlinkUncorrectable", 220),
    "the provided PTX was compiled with an unsupported toolchain": ("cudaErrorUnsupportedPtxVersion", 222),
    "CUDA error is contained": ("cudaErrorContained", 226),
    "device ready": ("cudaErrorNotReady", 600),
    "an illegal memory access was encountered": ("cudaErrorIllegalAddress", 700),
    "too many resources requested for launch": ("cudaErrorLaunchOutOfResources", 701),
    "the launch timed out and was terminated": ("cudaErrorLaunchTimeout", 702),
    "peer access is not supported between these two devices": ("cudaErrorPeerAccessUnsupported", 217),
    "peer access is already enabled": ("cudaErrorPeerAccessAlreadyEnabled", 704),
    "context is destroyed": ("cudaErrorContextIsDestroyed", 709),
    "device-side assert triggered": ("cudaErrorAssert", 710),
    "hardware stack error": ("cudaErrorHardwareStackError", 714),
    "an illegal instruction was encountered": ("cudaErrorIllegalInstruction", 715),
    "misaligned address": ("cudaErrorMisalignedAddress", 716),
    "operation not supported on global/shared address space": ("cudaErrorInvalidAddressSpace", 717),
    "invalid program counter": ("cudaErrorInvalidPc", 718),
    "unspecified launch failure": ("cudaErrorLaunchFailure", 719),
    "operation not permitted": ("cudaErrorNotPermitted", 800),
    "operation not supported": ("cudaErrorNotSupported", 801),
    "system not yet initialized": ("cudaErrorSystemNotReady", 802),
    "system has unsupported display driver / cuda driver combination": ("cudaErrorSystemDriverMismatch", 803),
    "forward compatibility was attempted on non supported HW": ("cudaErrorCompatNotSupportedOnDevice", 804),
    "MPS client failed to connect to the MPS control daemon or the MPS server": ("cudaErrorMpsConnectionFailed", 805),
    "MPS client has been terminated": ("cudaErrorMpsClientTerminated", 809),
    "operation not permitted when stream is capturing": ("cudaErrorStreamCaptureUnsupported", 900),
    "operation failed due to a previous error during capture": ("cudaErrorStreamCaptureInvalidated", 901),
    "operation would make the legacy stream depend": ("cudaErrorStreamCaptureImplicit", 906),
    "graph update failed": ("cudaErrorGraphExecUpdateFailure", 910),
    "unknown error": ("cudaErrorUnknown", 999),
}  # fmt: skip
_BY_NAME = dict(_TEXTS.values())
_BY_CODE = {code: name for name, code in _TEXTS.values()}
_BY_TEXT = {text.lower(): found for text, found in _TEXTS.items()}
_DRIVER = {
    "CUDA_ERROR_ILLEGAL_ADDRESS": 700, "CUDA_ERROR_LAUNCH_FAILED": 719, "CUDA_ERROR_OUT_OF_MEMORY": 2,
    "CUDA_ERROR_NO_DEVICE": 100, "CUDA_ERROR_INVALID_VALUE": 1, "CUDA_ERROR_NOT_INITIALIZED": 3,
    "CUDA_ERROR_INVALID_IMAGE": 200, "CUDA_ERROR_NO_BINARY_FOR_GPU": 209, "CUDA_ERROR_ECC_UNCORRECTABLE": 214,
    "CUDA_ERROR_INVALID_PTX": 218, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": 222, "CUDA_ERROR_LAUNCH_TIMEOUT": 702,
    "CUDA_ERROR_MISALIGNED_ADDRESS": 716, "CUDA_ERROR_ILLEGAL_INSTRUCTION": 715, "CUDA_ERROR_ASSERT": 710,
    "CUDA_ERROR_SYSTEM_NOT_READY": 802, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": 803, "CUDA_ERROR_UNKNOWN": 999,
    "CUDA_ERROR_INVALID_DEVICE": 101, "CUDA_ERROR_NOT_PERMITTED": 800, "CUDA_ERROR_NOT_SUPPORTED": 801,
    "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE": 804, "CUDA_ERROR_INVALID_HANDLE": 400,
}  # fmt: skip

_SIGN = re.compile("|".join(re.escape(mark) for mark in MARKS))
_NAME = re.compile(
    r"\b(cudaError[A-Z]\w{2,60}|CUDA_ERROR_[A-Z_]{3,60}|CU(?:BLAS|DNN|SPARSE|SOLVER)_STATUS_[A-Z_]{3,60})\b"
)
_TEXT = re.compile(
    r"(?:CUDA|Cuda|cuda) error(?: \(?(?P<where>[\w./\-]{1,200}:\d+)\)?:?)?(?:: | ')(?P<text>[^'\n]{3,160})|"
    r"Error \[CUDA\]: (?P<triton>.{3,160})"
)
_NUMBER = re.compile(r"\b(?:Error|error|returned|code) (\d{1,3})\b(?:: (.{3,120}))?")
_CALL = re.compile(r"when calling [`'](\w{3,80})|(?<![\w])(cu(?:da|blas|dnn)?[A-Z]\w{3,60})(?=\()")
_ASSERT = re.compile(
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
        name = named[1]
        code = _BY_NAME.get(name, _DRIVER.get(name, -1))
        if code < 0 and (number := re.search(r"\((\d{1,3})\)", text)):
            code = int(number[1])
        return {"code": code, "name": name, "call": call}
    if "out of memory" in text and ("CUDA" in text or "cuda" in text):
        return {"code": 2, "name": "cudaErrorMemoryAllocation", "call": call}
    if said := _TEXT.search(text):
        phrase = (said["text"] or said["triton"]).strip().rstrip(".")
        name, code = _by_phrase(phrase)
        if name:
            return {"code": code, "name": name, "call": call}
    if number := _NUMBER.search(text):
        code = int(number[1])
        if code in _BY_CODE and ("cuda" in text.lower()):
            return {"code": code, "name": _BY_CODE[code], "call": call}
    if "NVIDIA driver on your system is too old" in text:
        return {"code": 35, "name": "cudaErrorInsufficientDriver", "call": call}
    if "re-initialize CUDA in forked subprocess" in text:
        return {"code": -1, "name": "forked", "call": call}
    return None


def _by_phrase(phrase: str) -> tuple[str, int]:
    phrase = phrase.lower()
    if phrase in _BY_TEXT:
        return _BY_TEXT[phrase]
    for text, found in _BY_TEXT.items():
        if phrase.startswith(text):
            return found
    return "", -1
