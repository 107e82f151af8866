"""Start-up phases of vLLM, from the first line of a process to the first answered request.

Templates as they stand in the logger calls of vLLM 0.6.6 to 0.33.0 (`vllm/v1/engine/core.py`,
`vllm/v1/worker/gpu_model_runner.py`, `vllm/compilation/`, `vllm/entrypoints/`). `edge` is begin, end or mark;
`stretch` names the stretch of work that a begin and an end belong to.
"""

from __future__ import annotations

from typing import Any

from parsers.vllm_log.rule import Template, template

# 0.32 puts the compiled part's name before the messages of torch.compile: `[backbone] Dynamo bytecode ...`
_PART = r"(?:\[[\w ./-]{1,60}\] )?"


def phase(
    name: str, edge: str, pattern: str, *marks: str, facts: dict[str, str] | None = None, **more: Any
) -> Template:
    """A template of kind `phase`."""
    return template("phase", pattern, *marks, facts=facts, phase=name, edge=edge, **more)


PHASES: tuple[Template, ...] = (
    # process start, arguments, configuration
    phase("args", "mark", r"non-default args: ", facts={}),
    phase("args", "mark", r"args: Namespace\(", "args: Namespace("),
    phase("platform", "mark", r"Automatically detected platform (?P<platform>\w+)", facts={"platform": "platform"}),
    phase("config", "mark", r"Resolved architecture: (?P<architecture>\S+)",
          facts={"model.architecture": "architecture"}),
    phase("engine_init", "begin", r"Initializing an? (?:V[01] )?LLM engine \(v", "LLM engine (v", stretch="startup"),
    phase("engine_wait", "mark", r"Waiting for \d+ local, \d+ remote core engine proc", "remote core engine proc"),
    phase("ray_placement_wait", "mark",
          r"Waiting for creating a placement group of specs for (?P<seconds>\d+) seconds"),
    # distributed set-up
    phase("dist_begin", "begin", r"world_size=\d+ rank=\d+ local_rank=-?\d+ distributed_init_method=\S+ backend=\S+",
          "distributed_init_method=", stretch="dist"),
    phase("nccl", "mark", r"vLLM is using nccl==(?P<_v>[\w.+]+)", facts={"nccl.version": "_v"}),
    phase("dist", "end", r"rank (?P<_rank>\d+) in world size (?P<_world>\d+) is assigned as DP rank",
          "is assigned as DP rank", stretch="dist"),
    phase("allreduce_selected", "mark", r"Using \[(?P<_b>[^\]]{0,200})\] all-reduce backends",
          "all-reduce backends (in dispatch order)", facts={"allreduce.backend": "_b"}),
    # weights
    phase("model_load_begin", "begin", r"Starting to load model (?P<_model>.{1,300}?)\.\.\.", stretch="model_load"),
    phase("draft_load_begin", "begin", r"Loading drafter model", stretch="draft_load"),
    phase("download", "end", r"Time spent downloading weights for .{1,300}?: (?P<seconds>[\d.]+) seconds"),
    phase("weights_loaded", "end", r"Loading weights took (?P<seconds>[\d.]+) seconds", stretch="model_load"),
    phase("weights_loaded", "end", r"Loading model weights took (?P<gib>[\d.]+) GB", stretch="model_load"),
    phase("model_loaded", "end", r"Model loading took (?P<gib>[\d.]+) GiB(?: memory)? and (?P<seconds>[\d.]+) seconds",
          stretch="model_load"),
    # torch.compile
    phase("compile_begin", "begin", _PART + r"Using cache directory: .{1,400} for vLLM's torch\.compile",
          "Using cache directory: ", stretch="compile"),
    phase("dynamo_done", "mark", _PART + r"Dynamo bytecode transform time: (?P<seconds>[\d.]+) s",
          "Dynamo bytecode transform time"),
    phase("graph_compiled", "mark", _PART + r"Compiling a graph for .{1,80}? takes (?P<seconds>[\d.]+) s",
          "Compiling a graph for "),
    phase("graph_loaded", "mark", _PART + r"Directly load the compiled graph", "Directly load the compiled graph"),
    phase("compile_loaded", "end", _PART + r"Directly load AOT compilation from path", "Directly load AOT compilation",
          stretch="compile"),
    phase("compile_done", "end", _PART + r"saved AOT compiled function to ", "saved AOT compiled function",
          stretch="compile"),
    phase("compile_done", "end", _PART + r"torch\.compile t(?:akes|ook) (?P<seconds>[\d.]+) s in total", "s in total",
          stretch="compile"),
    # memory profile, KV cache
    # (also the end of what torch.compile did where nothing was saved: the draft model's head)
    phase("profile_run", "end", _PART + r"Initial profiling/warmup run took (?P<seconds>[\d.]+) s",
          "Initial profiling/warmup run took", stretch="compile"),
    phase("memory_profile", "mark", r"Memory profiling takes (?P<seconds>[\d.]+) seconds"),
    phase("graph_memory_profile", "mark", r"Profiling CUDA graph memory: ", "Profiling CUDA graph memory"),
    phase("kv_available", "mark", r"Available KV cache memory: (?P<gib>-?[\d.]+) GiB",
          facts={"kv_cache.memory_gib": "gib"}),
    phase("kv_size", "mark", r"(?P<_device>\w+) KV cache size: (?P<tokens>[\d,]+) tokens", "KV cache size: ",
          facts={"kv_cache.tokens": "tokens"}),
    phase("kv_size", "mark", r"# (?P<_device>\w+) blocks: (?P<_blocks>\d+)", " blocks: ",
          facts={"kv_cache.blocks": "_blocks"}),
    # kernel warm-up and autotuning
    phase("warmup_begin", "begin", r"Warming up model for the compilation", stretch="warmup"),
    phase("warmup_done", "end", r"Warming up done", stretch="warmup"),
    phase("attention_warmup", "mark", r"Warming up FlashInfer attention"),
    phase("kernel_warmup_begin", "begin", r"Warming up CuTeDSL compile_units=", "Warming up CuTeDSL",
          stretch="kernel_warmup"),
    phase("kernel_warmup_done", "end", r"CuTeDSL warmup compiled \d+ units in (?P<seconds>[\d.]+) s",
          "CuTeDSL warmup compiled", stretch="kernel_warmup"),
    phase("kernel_warmup_skipped", "mark", r"Skipping CuTeDSL warmup"),
    phase("autotune_skipped", "mark", r"Skipping FlashInfer (?:.{0,40}? )?autotune", "Skipping FlashInfer"),
    phase("autotune_begin", "begin", r"Running FlashInfer autotune with ", "Running FlashInfer autotune",
          stretch="autotune"),
    phase("autotune_begin", "begin", r"\[Auto[Tt]uner\]:? Autotuning process starts", "Autotuning process starts",
          stretch="autotune"),
    phase("autotune_end", "end", r"\[Auto[Tt]uner\]:? Autotuning process ends", "Autotuning process ends",
          stretch="autotune"),
    phase("autotune_saved", "mark", r"\[Auto[Tt]uner\]:? Saved \d+ configs", ": Saved "),
    # graph capture
    phase("capture_begin", "begin", r"Capturing (?:cudagraphs for decoding|the model for CUDA graphs)",
          "Capturing cudagraphs", "Capturing the model for CUDA graphs", stretch="capture"),
    phase("speculator_capture", "mark", r"Capturing model for ", "Capturing model for "),
    phase("capture_done", "end", r"Graph capturing finished in (?P<seconds>\d+) secs", "Graph capturing finished",
          stretch="capture"),
    # ready
    phase("engine_ready", "end", r"init engine \(profile, create kv cache, warmup model\) took (?P<seconds>[\d.]+) s",
          "init engine (profile", stretch="startup"),
    phase("front_ready", "mark", r"(?:Engine \d{3}: )?vllm cache_config_info with initialization",
          "vllm cache_config_info"),
    phase("jit_monitor", "mark", r"Kernel JIT monitor activated"),
    phase("supported_tasks", "mark", r"Supported[ _]tasks: ", "Supported tasks: ", "Supported_tasks: "),
    phase("api_start", "mark", r"Starting vLLM (?:API )?server ", "Starting vLLM "),
    phase("server_process", "mark", r"Started server process \[(?P<pid>\d+)\]"),
    phase("api_ready", "mark", r"Application startup complete"),
)  # fmt: skip
