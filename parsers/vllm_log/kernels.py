"""Which kernel or backend the server chose, per layer.

Templates of the selectors in vLLM 0.6.6 to 0.33.0: `platforms/cuda.py` (attention), `model_executor/kernels/linear/`,
`model_executor/layers/fused_moe/oracle/`, `model_executor/layers/quantization/`, `v1/sample/ops/topk_topp_sampler.py`.
"""

from __future__ import annotations

from parsers.vllm_log.rule import Template, template


def kernel(layer: str, pattern: str, *marks: str, facts: dict[str, str] | None = None, **more: str) -> Template:
    """A template of kind `kernel_selected`."""
    return template("kernel_selected", pattern, *marks, facts=facts, layer=layer, **more)


_ATTENTION = {"attention.backend": "kernel"}
_LINEAR = {"kernel.linear": "kernel"}
_MOE = {"kernel.moe": "kernel"}

KERNELS: tuple[Template, ...] = (
    kernel("mla", r"Using (?P<kernel>[\w .\-]{1,60}?) MLA prefill backend", "MLA prefill backend",
           method="prefill", facts={"kernel.mla_prefill": "kernel"}),
    kernel("attention", r"Using (?:AttentionBackendEnum\.)?(?P<kernel>[\w.]{1,60}) attention backend\b",
           "attention backend", facts=_ATTENTION),
    kernel("attention", r"Using AttentionBackendEnum\.(?P<kernel>\w{1,60}) backend", "AttentionBackendEnum.",
           facts=_ATTENTION),
    kernel("attention", r"Using (?P<kernel>[\w \-]{1,60}?) backend on V1 engine", "backend on V1 engine",
           facts=_ATTENTION),
    kernel("attention",
           r"Using (?P<kernel>Flash Attention|XFormers|FlashInfer|Triton MLA|FlashMLA|FlashMLA Sparse|Torch SDPA|"
           r"ROCmFlashAttention|Pallas|Outlines|FlashInfer MLA|Cutlass MLA|TORCH_SDPA) backend\.",
           "Using Flash", "Using XFormers backend", "Using Triton MLA", "Using Torch SDPA", "Using Cutlass MLA",
           "Using ROCmFlash", "Using TORCH_SDPA", facts=_ATTENTION),
    kernel("attention", r"Using FlashAttention version (?P<kernel>\d)", "Using FlashAttention version",
           method="flash_attn_version", facts={"attention.flash_attn_version": "kernel"}),
    kernel("attention", r"(?:Overriding|Forcing) .{0,80}?attention backend.{0,40}? (?:to|with) (?P<kernel>\w{1,60})",
           "attention backend"),
    kernel("attention", r"Using (?P<kernel>FlashInfer \w{1,30}) (?P<method>KDA \w{1,20}|fused KDA \w{1,20}) backend",
           " KDA "),
    kernel("linear", r"Selected (?P<kernel>\w{1,100}) for (?P<method>[\w.]{1,100})", "Selected ", facts=_LINEAR),
    kernel("linear",
           r"Using (?P<kernel>[\w\-]{1,100}) for (?P<method>(?:NVFP4|MXFP8|MXFP6|MXFP4|FP8|INT8|W4A16|W8A8) GEMM)",
           " GEMM", facts=_LINEAR),
    kernel("linear", r"Using (?P<kernel>FlashInfer \S{1,60}) for eligible (?P<method>unquantized BF16 GEMMs)",
           "for eligible unquantized", facts={"kernel.linear_unquantized": "kernel"}),
    kernel("linear", r"Using (?P<kernel>\w{1,100}(?:LinearKernel|Kernel)) for (?P<method>\w{1,100})(?! GEMM)\b",
           "Kernel for ", facts=_LINEAR),
    kernel("moe", r"Using '?(?P<kernel>[\w \-]{1,60}?)'? (?P<method>[\w\-]{1,20}) MoE backend\b", "MoE backend",
           facts=_MOE),
    kernel("moe", r"Using '?(?P<kernel>\w{1,60})'? MoE backend\b", "MoE backend", facts=_MOE),
    kernel("moe", r"Using (?P<kernel>[\w \-]{1,60}?) backend for (?P<method>[\w\-]{1,20} MoE)", " MoE", facts=_MOE),
    kernel("moe", r"Using (?P<kernel>\w{1,60}) kernels for (?P<method>\w{1,60}MoEMethod)", "MoEMethod", facts=_MOE),
    kernel("moe",
           r"Using (?P<kernel>FlashInfer [\w ]{1,40}? (?:TRTLLM|CUTLASS|CuteDSL|CUTEDSL)) backend for "
           r"(?P<method>\w{1,20})",
           "Using FlashInfer", facts=_MOE),
    kernel("moe", r"Using (?P<kernel>FlashInfer) kernels for (?P<method>[\w ]{1,40}MoE)", "Using FlashInfer",
           facts=_MOE),
    kernel("moe", r"DeepGEMM E8M0 (?P<kernel>enabled|disabled)", "DeepGEMM E8M0", method="deep_gemm_e8m0",
           facts={"kernel.deep_gemm_e8m0": "kernel"}),
    kernel("sampler", r"Using (?P<kernel>FlashInfer) for top-p & top-k sampling", "top-p & top-k sampling",
           facts={"kernel.sampler": "kernel"}),
    kernel("sampler",
           r"FlashInfer is not available. Falling back to the (?P<kernel>PyTorch-native) implementation of top-p",
           "implementation of top-p", facts={"kernel.sampler": "kernel"}),
    kernel("kv", r"Using (?P<kernel>\w{1,40}) KV cache layout", "KV cache layout", facts={"kv_cache.layout": "kernel"}),
    kernel("kv", r"Using (?P<kernel>[\w.]{1,40}) data type to store kv cache", "data type to store kv cache",
           facts={"kv_cache.dtype": "kernel"}),
    kernel("kv", r"Using (?:DeepSeek's )?(?P<kernel>\w{1,40}) KV cache format", "KV cache format",
           facts={"kv_cache.dtype": "kernel"}),
)  # fmt: skip
