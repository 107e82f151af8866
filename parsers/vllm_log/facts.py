"""Versions, settings and environment that a server log states.

Settings come from three places: the banner or version line, the dictionary after `non-default args:`, and the one long
line with which the engine starts (`Initializing a V1 LLM engine (vX) with config: ..`; SGLang: `server_args=..`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from parsers.pattern import lazy
from parsers.vllm_log.rule import Template, template

_MOST_TEXT = 65_536
_SECRET = lazy(r"TOKEN|SECRET|PASSW|API_?KEY|ACCESS_KEY|CREDENTIAL", re.IGNORECASE)


def _fact(pattern: str, *marks: str, **facts: str) -> Template:
    return template("", pattern, *marks, facts={name.replace("__", "."): group for name, group in facts.items()})


FACTS: tuple[Template, ...] = (
    _fact(r"vLLM (?:API )?server version (?P<_v>[^\s,]{1,80})(?:, serving model (?P<_m>\S{1,300}))?", "server version ",
          vllm__server_version="_v", model__name="_m"),
    _fact(r"(?:[\u2580-\u259f ]{1,80})version +(?P<_v>\S{1,80})$", "  version ", vllm__server_version="_v"),
    _fact(r"(?:[\u2580-\u259f ]{1,80})model +(?P<_m>\S.{0,300})$", "  model ", model__name="_m"),
    _fact(r"Using max model len (?P<_n>\d+)", max_model_len="_n"),
    _fact(r"Asynchronous scheduling is (?P<_s>enabled|disabled)", async_scheduling="_s"),
    _fact(r"Enforce eager set, ", enforce_eager="=True"),
    _fact(r"Cudagraph is disabled under eager mode", enforce_eager="=True"),
    _fact(r"SymmMemCommunicator: Device capability (?P<_c>\d+\.\d+)", "Device capability", gpu__capability="_c"),
    _fact(r".{0,400}?device_name=(?P<_g>[\w\-]{3,80})", "device_name=", gpu__name="_g"),
    _fact(r".{0,200}?NCCL version:? (?P<_v>\d+\.\d+[\w.+]*)", "NCCL version", nccl__version="_v"),
    _fact(r"Found nccl from environment variable VLLM_NCCL_SO_PATH=(?P<_p>\S{1,300})", "VLLM_NCCL_SO_PATH=",
          env__VLLM_NCCL_SO_PATH="_p"),
    _fact(r"Overriding (?P<_v>VLLM_WORKER_MULTIPROC_METHOD) to '(?P<_m>\w+)'", env__VLLM_WORKER_MULTIPROC_METHOD="_m"),
    _fact(r"We must use the `spawn` multiprocessing start method", env__VLLM_WORKER_MULTIPROC_METHOD="=spawn"),
    _fact(r"(?:NVIDIA|PyTorch|CUDA|TensorRT)?.{0,40}?Using CUDA (?P<_c>\d+\.\d+) driver version (?P<_d>[\d.]+) with "
          r"kernel driver version (?P<_k>[\d.]+)", "with kernel driver version", cuda__version="_c",
          driver__user_version="_d", driver__version="_k"),
    _fact(r".{0,200}?(?P<_k>KV transfer connector|kv_connector)[ '\":=]{1,6}(?P<_c>\w{3,60}Connector\w{0,20})",
          "kv_connector", "KV transfer connector", kv_connector="_c"),
    _fact(r"flashinfer[ -](?:python[ =]{0,3})?version[: ]+(?P<_v>\d[\w.+]*)", "flashinfer version",
          "flashinfer-version",
          flashinfer__version="_v"),
    _fact(r"Detected (?P<_q>[\w .\-]{2,40}?) checkpoint", "Detected ", quantization__checkpoint="_q"),
    _fact(r"SGLang Version (?P<_v>\S{1,60})", sglang__version="_v"),
    _fact(r"vLLM Version (?P<_v>\S{1,60})", "vLLM Version ", vllm__server_version="_v"),
)  # fmt: skip

ENGINE_LINE = lazy(
    r"Initializing an? (?:(?P<engine>V[01]) )?LLM engine \(v(?P<version>[^)]{1,120})\) with config: (?P<config>.*)",
    re.DOTALL,
)
ARGS_LINE = lazy(
    r"(?:non-default args: |args: Namespace\(|server_args=ServerArgs\(|server_args=)(?P<config>.*)", re.DOTALL
)
CONFIG_MARKS = ("LLM engine (v", "non-default args: ", "args: Namespace(", "server_args=")

# A configuration key of the engine line, of the non-default args, or of SGLang's arguments -> the fact's name.
SETTING_NAMES = {
    "model": "model.name", "model_path": "model.name", "dtype": "model.dtype", "quantization": "quantization",
    "tensor_parallel_size": "parallel.tp", "tp_size": "parallel.tp",
    "pipeline_parallel_size": "parallel.pp", "pp_size": "parallel.pp",
    "data_parallel_size": "parallel.dp", "dp_size": "parallel.dp",
    "enable_expert_parallel": "parallel.ep", "ep_size": "parallel.ep",
    "decode_context_parallel_size": "parallel.dcp",
    "enforce_eager": "enforce_eager", "disable_cuda_graph": "enforce_eager",
    "kv_cache_dtype": "kv_cache.dtype", "attention_backend": "attention.backend.requested",
    "moe_backend": "kernel.moe.requested", "moe_runner_backend": "kernel.moe.requested",
    "linear_backend": "kernel.linear.requested", "fp8_gemm_runner_backend": "kernel.linear.requested",
    "disable_custom_all_reduce": "allreduce.custom_disabled", "async_scheduling": "async_scheduling",
    "cudagraph_mode": "cudagraph.mode", "speculative_algorithm": "spec.method",
    "gpu_memory_utilization": "gpu_memory_utilization",
    "mem_fraction_static": "gpu_memory_utilization", "max_num_seqs": "max_num_seqs",
    "max_num_batched_tokens": "max_num_batched_tokens", "max_model_len": "max_model_len",
    "max_seq_len": "max_model_len",
    "all2all_backend": "all2all.backend", "distributed_executor_backend": "distributed.executor",
    "enable_flashinfer_autotune": "flashinfer.autotune", "sampling_backend": "kernel.sampler",
    "load_format": "load_format",
    "enable_prefix_caching": "prefix_caching", "device_config": "device",
}  # fmt: skip
_INNER = {
    ("speculative_config", "method"): "spec.method", ("speculative_config", "model"): "spec.model",
    ("compilation_config", "cudagraph_mode"): "cudagraph.mode",
    ("kernel_config", "moe_backend"): "kernel.moe.requested",
    ("kernel_config", "linear_backend"): "kernel.linear.requested",
    ("kernel_config", "enable_flashinfer_autotune"): "flashinfer.autotune",
    ("kv_transfer_config", "kv_connector"): "kv_connector",
    ("attention_config", "backend"): "attention.backend.requested",
}  # fmt: skip
_EMPTY = frozenset({"None", "", "{}", "[]", "auto"})

_ENV = lazy(
    r"(?:\+ )?(?:export |declare -x |ENV )?(?P<name>(?:VLLM|NCCL|CUDA|TORCH|PYTORCH|FLASHINFER|HF|SGLANG|SGL|RAY|GLOO|"
    r"UCX|NVSHMEM|OMP|TRITON|TRTLLM|TLLM|NVIDIA|LMCACHE|CUTE)_[A-Z0-9_]{2,80})=(?P<value>\"[^\"]{0,400}\"|'[^']{0,400}'|\S{0,400})$"
)
_ENV_USED = lazy(
    r"(?:via|because|set by environment to|environment variable) (?P<name>[A-Z][A-Z0-9_]{4,80})="
    r"(?P<value>[\w./:\-]{1,200})"
)
_ENV_UNKNOWN = lazy(r"Unknown vLLM environment variable detected: (VLLM_[A-Z_0-9]{1,80})")



def pairs(text: str) -> Iterator[tuple[str, str, str]]:
    """(parent, key, value) of every `key=value` and `'key': value` of a printed configuration, values as printed.

    `parent` is the key whose brackets hold the pair ("" at the top). One pass, no evaluation; the pairs inside a value
    come before the pair that holds them.
    """
    text = text[:_MOST_TEXT]
    stack: list[tuple[str, int]] = []
    start = at = 0
    key = quote = ""
    size = len(text)
    while at < size:
        char = text[at]
        if quote:
            if char == "\\":
                at += 1
            elif char == quote:
                quote = ""
        elif char in "'\"":
            quote = char
        elif char in "([{<" and len(stack) < 64:
            stack.append((key, start))
            key, start = "", at + 1
        elif char in ")]}>,":
            if key:
                yield _parent(stack), key, text[start:at].strip()
            key = ""
            if char == ",":
                start = at + 1
            elif not stack:
                return
            else:
                key, start = stack.pop()
        elif char in "=:" and not key:
            word = text[start:at].strip().strip("'\"")
            if word.isidentifier():
                key, start = word, at + 1
        at += 1
    if key:
        yield _parent(stack), key, text[start:at].strip()


def _parent(stack: list[tuple[str, int]]) -> str:
    return next((key for key, _ in reversed(stack) if key), "")


def settings(message: str) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """What a configuration line states: (settings as printed, facts). Inner settings are named `parent.key`."""
    found = ENGINE_LINE.match(message) or ARGS_LINE.match(message)
    if found is None:
        return {}, []
    stated: list[tuple[str, str]] = []
    parts = found.groupdict()
    if parts.get("version"):
        stated.append(("vllm.version", parts["version"]))
        stated.append(("vllm.engine", (parts["engine"] or "V0").lower()))
    values: dict[str, str] = {}
    for parent, key, value in pairs(parts["config"]):
        if not value:
            continue
        values.setdefault(f"{parent}.{key}" if parent else key, value if len(value) <= 400 else value[:400] + "…")
        name = SETTING_NAMES.get(key) if not parent else _INNER.get((parent, key))
        plain_value = _plain(value)
        if name and plain_value not in _EMPTY:
            stated.append((name, plain_value))
    return values, stated


def _plain(value: str) -> str:
    """`<CUDAGraphMode.NONE: 0>` -> NONE, `torch.bfloat16` -> bfloat16, quotes off."""
    value = value.strip().strip("'\"")
    if value.startswith("<") and ":" in value:
        return value[1:].split(":")[0].rpartition(".")[2]
    return value.removeprefix("torch.")[:300]


def environment(message: str, *, bare: bool) -> tuple[str, str] | None:
    """An environment variable that the line echoes: (`env.NAME`, value); secrets are not kept."""
    if unknown := _ENV_UNKNOWN.match(message):
        return f"env.{unknown[1]}", "(set)"
    found = _ENV.match(message) if bare else _ENV_USED.search(message, 0, 2000)
    if found is None:
        return None
    value = found["value"].strip("'\"")
    return f"env.{found['name']}", "(set)" if _SECRET.search(found["name"]) and value else value
