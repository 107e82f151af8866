"""What a kernel's name tells: the library that wrote it and the operand types it works on.

Both are readings of naming customs, not facts of the dump: cuBLAS (`nvjet_…`, `…_xmma_gemm_…`, `gemmSN`), cuDNN
(`cudnn_generated_…`), NCCL (`ncclDevKernel_…`), TensorRT-LLM generated kernels (`fmhaSm100f…`, `bmm_E4m3…`), and the
C++ namespaces of the others.
"""

from __future__ import annotations

import re
from functools import lru_cache

from parsers.pattern import lazy

MAX_NAME = 4096

# The first that fits names the library; namespaces of a caller stand before those of what it builds upon.
_LIBRARIES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (library, lazy(pattern))
    for library, pattern in (
        ("NCCL", r"^nccl(?:Dev)?(?:Kernel|Func)|^ncclSymk?Dev|^ncclSym"),
        ("NVSHMEM", r"nvshmemi?_|nvshmem"),
        ("DeepEP", r"\bdeep_ep::"),
        ("DeepGEMM", r"\bdeep_gemm::"),
        ("cuDNN", r"^cudnn|\bcudnn::|_cudnn_|^_?cask_cudnn|fort_native_sdpa|implicit_convolve|xmma_[fwd]?[a-z]?prop"),
        ("cuBLAS", r"^nvjet_|^cublas|\bcublas|_xmma_gemm_|^gemm[SN]N|^gemv[2N]|\bgemv2[TN]_|splitKreduce_kernel"),
        ("cuBLAS", r"^(?:ampere|volta|turing|maxwell|hopper)_[a-z0-9]*gemm|^cutlass_\d+_|\bgemmk1_|^internal::gemvx"),
        ("FlashAttention", r"\bflash::|^flash_(?:fwd|bwd)|\bflash_(?:fwd|bwd)_|FlashAttn(?:Fwd|Bwd)|flash_attn"),
        ("TRTLLM-gen", r"^fmhaSm\d+|^(?:bmm|gemm)(?:GatedAct)?_[A-Z][A-Za-z0-9_]*_t\d+x|^batchedGemm|trtllm_gen"),
        ("FlashInfer", r"\bflashinfer::|^flashinfer"),
        ("TensorRT-LLM", r"\btensorrt_llm::|\btensorrt_llm_|^fused_multihead_attention|^fmha_v2"),
        ("FlashMLA", r"\bflash_mla|\bsm(?:90|100)::(?:decode|prefill)::.*mla|mla_kernel"),
        ("vLLM", r"\bvllm::|\bcross_device_reduce|\bmarlin::|\bMarlin<|\bmachete::|\bmarlin_moe"),
        ("SGLang", r"\bsglang::|\bsgl_kernel"),
        ("bitsandbytes", r"^k(?:Dequantize|Quantize|gemm_4bit)|Blockwise<"),
        ("cuSPARSELt", r"cusparselt|^cusparse"),
        ("cuFFT", r"\bcufft|^vector_fft|^regular_fft"),
        ("PyTorch", r"\bat::|\bc10::|\btorch::|\bat_cuda_detail::|\bpytorch_flash::"),
        ("CUTLASS", r"\bcutlass::|\bcute::|^kernel_cutlass_|^cutlass"),
        ("Triton", r"^triton_|^_?fused_moe_kernel|^_fwd_kernel|^_attn_fwd|^kernel_unified_attention"),
        ("CUB", r"\bcub::|\bthrust::"),
    )
)

_NVJET = lazy(r"^nvjet_(?:sm\d+[af]?_)?([a-z]{3,6})_\d")
# Letters of cuBLAS's generated kernels: seen with FP8 (qqtst), bfloat16 (tst, tss), half (hsh, hss) and FP4 (oo…).
_NVJET_LETTERS = {"q": "fp8_e4m3", "r": "fp8_e5m2", "t": "bf16", "h": "fp16", "s": "fp32", "o": "fp4", "d": "fp64"}

_TYPES: tuple[tuple[str, str], ...] = (
    ("fp8_e4m3", r"float8_?e4m3(?:fn|fnuz)?|float_e4m3_?t?|fp8_?e4m3|f8e4m3|e4m3"),
    ("fp8_e5m2", r"float8_?e5m2(?:fnuz)?|float_e5m2_?t?|fp8_?e5m2|f8e5m2|e5m2"),
    ("fp4", r"nv_?float4(?:_t)?|float_e2m1(?:_unpack)?_?t?|mxf4|nvfp4|mxfp4|fp4|e2m1"),
    ("mxfp8", r"mx_?float8(?:_t)?|mxfp8|mxe4m3|mxf8"),
    ("fp8", r"fp8|(?<![a-z0-9])f8(?![a-z0-9])"),
    ("bf16", r"bfloat16(?:_t)?|bf16"),
    ("tf32", r"tfloat32(?:_t)?|tf32"),
    ("fp16", r"float16|__half2?|half_t|c10::half|fp16|(?<![a-z])f16|(?<![a-z0-9_])half(?![a-z])|(?<=_)h(?:gemm|884)"),
    ("fp64", r"(?<![a-z0-9_])double(?![a-z0-9])|fp64|(?<![a-z])f64|(?<![a-z])dgemm"),
    ("fp32", r"float32|(?<![a-z0-9_])float(?![a-z0-9_])|fp32|(?<![a-z])f32|(?<![a-z])sgemm"),
    ("int8", r"u?int8(?:_t)?|(?<![a-z0-9])[isu]8(?![a-z])|signed char"),
    ("int4", r"u?int4(?:_t|b_t)?(?![a-z])|(?<![a-z0-9])[su]4(?![a-z0-9])|(?<![a-z])w4a"),
)
_TYPE = lazy("|".join(f"(?P<t{number}>{pattern})" for number, (_, pattern) in enumerate(_TYPES)), re.IGNORECASE)


def _short(mangled: str) -> str:
    # Loaded when there is a kernel to name: the text parsers import this module, and most texts name none.
    from parsers.cuda_core.demangle import demangle

    return demangle(mangled).short


@lru_cache(maxsize=4096)
def library_of(mangled: str, source_file: str = "") -> str | None:
    """The library that a kernel belongs to by its name, or None; a kernel whose source is a `.py` file is Triton's."""
    for text in (mangled[:MAX_NAME], _short(mangled)[:MAX_NAME]):
        text = text.removeprefix("void ")
        for library, pattern in _LIBRARIES:
            if pattern.search(text):
                return library
    return "Triton" if source_file.endswith(".py") else None


@lru_cache(maxsize=4096)
def dtypes_of(mangled: str) -> tuple[str, ...]:
    """Operand types in the order in which the name mentions them, each once: fp8_e4m3, bf16, fp16, fp32, fp4, int8 …"""
    jet = _NVJET.match(mangled)
    if jet:
        return tuple(dict.fromkeys(_NVJET_LETTERS[c] for c in jet[1] if c in _NVJET_LETTERS))
    text = _short(mangled[:MAX_NAME])[:MAX_NAME]
    found: dict[str, None] = {}
    for match in _TYPE.finditer(text):
        found[_TYPES[int((match.lastgroup or "t0")[1:])][0]] = None
        if len(found) >= 6:
            break
    if any(name.startswith("fp8_") for name in found):
        found.pop("fp8", None)  # the plain word says less than the format beside it
    return tuple(found)


def readable(mangled: str, limit: int = 120) -> str:
    """A name to read in a sentence: demangled without parameters, shortened in the middle."""
    short = _short(mangled)
    return short if len(short) <= limit else f"{short[: limit - 30]}…{short[-29:]}"
