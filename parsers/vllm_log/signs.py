"""What a running or dying server says: waits, deaths, timeouts, stops, compilations, downloads.

Templates of vLLM 0.6.6 to 0.33.0 (`v1/engine/core_client.py`, `v1/executor/multiproc_executor.py`,
`distributed/device_communicators/shm_broadcast.py`, `utils/watch_dog.py`), uvicorn's `server.py`, FlashInfer's
`jit/cubin_loader.py` and `autotuner.py`, huggingface_hub's `utils/_http.py`, torchrun and Ray.
"""

from __future__ import annotations

from parsers.vllm_log.rule import Template, template

_NAME = r"(?P<name>[\w./\-]{1,120})"

SIGNS: tuple[Template, ...] = (
    template("shm_broadcast_wait", r"No available shared memory broadcast block found ?in (?P<seconds>\d+) second",
             "shared memory broadcast block"),
    # --- a process is gone
    template("process_died",
             rf"Worker proc {_NAME} died unexpectedly(?: \(exit code: (?P<exit_code>-?\w+)\))?", "died unexpectedly"),
    template("process_died", rf"Engine core proc(?:ess)? {_NAME} died unexpectedly", "died unexpectedly"),
    template("process_died", r"(?P<name>RayWorkerProc rank=\S{1,20}) died unexpectedly", "died unexpectedly"),
    template("process_died", rf"Worker {_NAME} pid (?P<pid>\d+) died, exit code: (?P<exit_code>-?\d+)",
             "died, exit code"),
    template("process_died",
             r"failed \(exitcode: (?P<exit_code>-?\d+)\) (?P<name>local_rank: \d+) \(pid: (?P<pid>\d+)\) of binary",
             "failed (exitcode: "),
    template("process_died", r"\s{0,8}exitcode +: (?P<exit_code>-\d+) \(pid: (?P<pid>\d+)\)", "exitcode ",
             name="local rank"),
    template("process_died", r"(?:\(raylet\) )?A worker died or was killed (?:while|due)",
             "A worker died or was killed", name="ray worker"),
    template("process_died", r"(?:\(raylet\) )?The node with node id: .{0,200}? has been marked dead",
             "has been marked dead", name="ray node"),
    template("process_died",
             r"(?:mpirun|prterun|mpiexec|prun) noticed that process rank (?P<rank>\d+) with PID (?P<pid>\d+)",
             "noticed that process rank", name="mpi rank"),
    # the signal handler of TVM's FFI library, which comes with xgrammar and FlashInfer; a stack in C follows
    template("process_died", r"!{3,12} Segfault encountered !{3,12}", "Segfault encountered", name="unnamed",
             exit_code=-11),
    template("engine_dead", r"AsyncLLM output_handler failed", how="output_handler_failed"),
    template("engine_dead", r"\[shutdown\] MPClient: engine core exited unexpectedly", "exited unexpectedly",
             how="exited_unexpectedly"),
    template("engine_dead", r"Engine background task failed", how="background_task_failed"),
    template("engine_dead", r"Engine loop is not running", how="loop_not_running"),
    # --- a call that never came back
    template("rpc_timeout", r"RPC call to (?P<call>\w{1,80}) timed out", "RPC call to "),
    template("rpc_timeout", r"Timed out waiting for (?:new )?engine core processes to start(?:.{0,400}?Waited "
             r"(?P<seconds>\d+)s)?", "Timed out waiting for", call="engine_start"),
    template("rpc_timeout", r"Engine iteration timed out", call="engine_iteration"),
    template("watchdog", r"\[Watchdog\] ?Dumped stack to (?P<file>\S{1,300}) due to (?P<reason>.{1,80})", "[Watchdog]",
             who="vllm"),
    # --- stops
    template("shutdown", r"\[shutdown\] (?P<who>[^:]{1,60}): (?!engine core exited unexpectedly)(?P<step>.{1,200})",
             "[shutdown] "),
    template("shutdown", r"\[shutdown\] (?P<step>force killing .{1,200})", "[shutdown] force killing", who="system"),
    template("shutdown", r"(?P<step>Shutting down)$", "Shutting down", who="uvicorn"),
    template("shutdown", r"(?P<step>Waiting for (?:application shutdown|connections to close|background tasks).{0,80})",
             "Waiting for application shutdown", "Waiting for connections to close", "Waiting for background tasks",
             who="uvicorn"),
    template("shutdown", r"(?P<step>Application shutdown complete)", who="uvicorn"),
    template("shutdown", r"(?P<step>Finished server process \[\d+\])", "Finished server process", who="uvicorn"),
    template("shutdown", r"(?P<step>Shutting down FastAPI HTTP server)", who="API server"),
    template("shutdown", r"(?P<step>Parent process exited, terminating worker.{0,20})", "Parent process exited",
             who="Worker"),
    template("shutdown", r"(?P<step>Killing local vLLM worker processes)", who="executor"),
    template("shutdown", r"(?P<step>(?:Received|Caught|Got) (?:signal|SIG)\S{0,20}.{0,120})", "eceived SIG",
             "eceived signal",
             "Caught SIG", "Caught signal", "Got SIG", "Got signal", who="signal"),
    template("ready", r"(?P<what>Application startup complete)"),
    template("ready", r"(?P<what>Uvicorn running on \S{1,200})", "Uvicorn running on"),
    template("request_aborted", r"Aborted request(?:\(s\))? (?P<request_id>[\w\-.,]{1,200}?)\.?$", "Aborted request"),
    template("request_aborted", r"Request (?P<request_id>[\w\-.]{1,200}) aborted", " aborted"),
    template("pause", r"setting pause state to (?P<state>\w{1,40})", "setting pause state to"),
    template("dump_input", r"Dumping input data for ", "Dumping input data"),
    # --- compilation and autotuning outside torch.compile
    template("jit", r"Loading JIT ops: (?P<name>\S{1,200})", what="flashinfer", edge="begin"),
    template("jit", r"Finished loading JIT ops: (?P<name>\S{1,200})", what="flashinfer", edge="end"),
    template("jit", r"Building JIT ops?:? ?(?P<name>\S{0,200})", "Building JIT op", what="flashinfer", edge="begin"),
    template("jit", r"\[Auto[Tt]uner\]:? Autotuning process starts", "Autotuning process starts", what="autotune",
             edge="begin"),
    template("jit", r"\[Auto[Tt]uner\]:? Autotuning process ends", "Autotuning process ends", what="autotune",
             edge="end"),
    template("jit", r"\[Auto[Tt]uner\]:? (?:Skipping|Failed|An error).{0,80}", "[Autotuner]: ", "[AutoTuner]: ",
             what="autotune", edge="mark"),
    template("jit", r"(?P<_lib>Triton|CuTeDSL|TileLang)(?: kernel)? JIT compilation during inference: (?P<name>[\w.]{"
                    r"0,199}\w)",
             "JIT compilation during inference", what="late_compile", edge="mark"),
    template("jit", r"nvcc fatal +: (?P<name>.{1,300})", "nvcc fatal", what="nvcc", edge="failed"),
    template("jit", r"ptxas (?:fatal|error) +: (?P<name>.{1,300})", "ptxas fatal", "ptxas error", what="ptxas",
             edge="failed"),
    template("jit", r"ninja: build stopped: (?P<name>.{1,200})", "ninja: build stopped", what="ninja", edge="failed"),
    template("jit", r"FAILED: (?:\[code=\d+\] )?(?P<name>\S{1,300}\.(?:o|so|cubin))", "FAILED: ", what="ninja",
             edge="failed"),
    template("jit", r"(?:fatal error|.{1,200}?: fatal error): (?P<name>\S{1,200}): No such file", "fatal error: ",
             what="compiler", edge="failed"),
    # --- downloads
    template("download", r"Fetching cubin (?P<name>\S{1,400}) from ", "Fetching cubin ", what="cubin", state="start"),
    template("download", r"Fetching (?P<name>\S{1,400}) from https?://", " from http", what="file", state="start"),
    template("download", r"Acquired lock for (?P<name>\S{1,400})", what="file", state="lock"),
    template("download", r"Failed to acquire lock for (?P<name>\S{1,400}) within", "Failed to acquire lock",
             what="file",
             state="failed"),
    template("download", r"Downloading (?P<name>\S{1,400}): attempt (?P<attempt>\d+) failed", ": attempt ", what="file",
             state="retry"),
    template("download", r"Retrying in (?P<seconds>[\d.]+) ?s", what="file", state="retry"),
    template("download", r"Max retries reached\. Download failed", what="file", state="failed"),
    template("download", r"Failed to (?:get file|download) (?P<name>\S{1,400})", "Failed to get file",
             "Failed to download", what="file", state="failed"),
    template("download", r".{0,2000}?thrown while requesting (?:HEAD|GET) (?P<name>https?://\S{1,400})",
             "thrown while requesting", what="model", state="retry"),
    template("download", r"Time spent downloading weights for (?P<name>.{1,300}?): (?P<seconds>[\d.]+) seconds",
             "Time spent downloading", what="model", state="done"),
    template("download", r"Downloading (?:Model|model) from (?P<name>https?://\S{1,300})", "Downloading Model from",
             "Downloading model from", what="model", state="start"),
)  # fmt: skip
