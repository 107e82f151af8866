"""What a thread waits for, read from its stack.

The reading works on the bare function names (py-spy before 0.4.2 and Python below 3.11 show no qualified ones) and on
parts of file paths, native tops included. It says where a thread is, never why: a stack in a CUDA synchronise call is
the same for a long kernel and for a stuck one.

Wait kinds: lock, socket, download, queue_idle, collective, cuda_sync, jit_compile, file_lock, file_io, child_process,
sleep, worker_reply, native (a C call that the dump does not show), running, none (no frames).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from parsers.pattern import lazy
from parsers.stacks.model import ADDRESS, Frame

WAITS = (
    "lock", "socket", "download", "queue_idle", "collective", "cuda_sync", "jit_compile", "file_lock", "file_io",
    "child_process", "sleep", "worker_reply", "native", "running", "none",
)  # fmt: skip


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CUDA_WAIT = lazy(
    r"(?:cu|cuda|hip)(?:Ctx|Stream|Event|Device|Thread)(?:Synchronize|WaitEvent)|(?:cu|cuda|hip)Memcpy\w*|"
    r"(?:cu|cuda)Memset\w*|(?:cu|cuda|hip)(?:MemFree|Free|FreeHost|HostUnregister)(?:Host)?$|"
    r"(?:cu|cuda)Launch\w+|(?:cu|cuda)Graph(?:Launch|Exec\w*)|(?:cu|cuda)Module(?:Load|Unload)\w*|"
    r"(?:cu|cuda)(?:Ctx(?:Create|Destroy|SetCurrent)|DevicePrimaryCtx|Init)\w*|cuLibraryLoad\w*"
)
COLLECTIVE_NATIVE = lazy(
    r"c10d::|ProcessGroup(?:NCCL|Gloo|MPI|UCC)|^nccl(?!_?Proxy)[A-Z_]|^p?nccl[A-Z]|gloo::|TCPStore|bootstrap(?:AllGather|Init)"
    r"|^MPI_|^nvshmem|^rccl"
)
COLLECTIVE_NAMES = _words(
    "all_reduce all_gather all_gather_into_tensor all_gather_object all_gatherv all_to_all all_to_all_single barrier "
    "monitored_barrier broadcast broadcast_object broadcast_object_list broadcast_tensor_dict gather gather_object "
    "scatter scatter_object_list reduce reduce_scatter reduce_scatter_tensor reduce_scatterv send recv isend irecv "
    "send_object recv_object batch_isend_irecv init_process_group new_group _new_process_group_helper "
    "_create_c10d_store _tcp_rendezvous_handler _env_rendezvous_handler rendezvous store_based_barrier "
    "_store_based_barrier ncclAllReduce ncclAllGather ncclReduceScatter ncclBroadcast ncclSend ncclRecv "
    "ncclCommInitRank ncclCommInitRankConfig ncclGroupEnd NCCL_CHECK init_device_mesh wait_for_workers "
    "all_reduce_coalesced custom_all_reduce _allgather_base destroy_process_group"
)
COLLECTIVE_FILES = ("torch/distributed", "distributed_c10d.py", "rendezvous.py", "pynccl", "parallel_state.py",
                    "device_communicators/", "communication_op.py", "deep_ep", "pymscclpp", "symm_mem")  # fmt: skip
SHARED_QUEUE = ("shm_broadcast.py",)
WORKER_REPLY_NAMES = _words(
    "get_response _wait_for_response collective_rpc wait_for_ready wait_for_engine_startup launch_core_engines "
    "_wait_for_engine_startup wait_for_engine_identities _run_workers _get_output get_output call_utility "
    "_call_utility wait_for_completion_or_failure recv_response"
)
IDLE_LOOPS = _words(
    "_process_input_queue process_input_sockets process_output_sockets worker_busy_loop monitor_workers "
    "monitor_engine_cores monitor_engine_liveness monitor_death_pipe monitor_parent_process watchdog_thread "
    "_report_continuous_usage run_forever run_until_complete _run_once wait_for_work _worker recv_requests "
    "wait_for_signals output_handler async_output_busy_loop _local_worker_loop event_loop_idle idle_sleeper "
    "process_outputs_socket monitor_cores _drain_queue lazy_init_loop heartbeat_loop resource_tracker main_loop"
)
IDLE_FILES = ("concurrent/futures/thread.py", "tqdm/_monitor.py", "asyncio/base_events.py", "asyncio/runners.py",
              "uvloop/", "anyio/_backends", "torch/_inductor/compile_worker", "opentelemetry/sdk", "prometheus_client",
              "multiprocessing/resource_tracker.py", "usage_lib.py", "zmq/utils/garbage.py",
              "resource_tracker.py")  # fmt: skip
HTTP_FILES = ("http/client.py", "urllib/request.py", "urllib3/", "requests/", "huggingface_hub/", "httpx", "httpcore",
              "aiohttp/client", "hf_transfer", "hf_xet", "botocore/", "boto3/", "modelscope/hub", "smart_open/",
              "runai_model_streamer", "gcsfs/", "s3fs/")  # fmt: skip
DOWNLOAD_NAMES = lazy(r"download|urlretrieve|urlopen|snapshot_|http_get|xet_get|get_cubin|get_artifact|fetch_")
COMPILE = lazy(
    r"ninja|nvcc|ptxas|cicc|\bjit|jit_|_jit|compil|cpp_extension|inductor|triton|build_and_load|build_ext|cubin|nvrtc"
    r"|gen_\w+_module|tilelang|deep_gemm|cute/|/dsl/|llvm|make_ir|make_llir|make_ptx|autotun|mlir",
    re.IGNORECASE,
)
COMPILE_NATIVE = lazy(r"nvrtc|nvPTX|nvJitLink|llvm::|mlir::|libtriton|libnvrtc|libLLVM|libnvJitLink|cuLink\w+")
CHILD_NAMES = _words("wait4 waitpid waitid os_waitpid os_wait4")
SUBPROCESS_FILES = ("subprocess.py", "multiprocessing/popen", "multiprocessing/process.py")
FILE_LOCK_NAMES = lazy(r"^(?:flock|fcntl_flock|lockf|_poll_until_acquired|_acquire_level|fcntl_lockf)$")
FILE_LOCK_FILES = ("filelock/", "file_baton.py", "fasteners/", "portalocker/", "_filelock.py")
FILE_IO_NAMES = _words(
    "open open64 openat openat64 pread pread64 preadv preadv2 fsync fdatasync io_getevents io_submit readahead stat "
    "fstat statx lstat getdents64 readdir64 copy_file_range sendfile64 msync ftruncate safe_open mmap64 unlink "
    "io_uring_enter _Py_open cuFileRead"
)
SLEEP_NAMES = _words("sleep clock_nanosleep nanosleep usleep time_sleep pysleep sleep_ms")
SOCKET_NAMES = _words(
    "recv recvfrom recvmsg recv_into recv_multipart recv_pyobj recv_bytes _recv _recv_bytes _recvall accept accept4 "
    "connect readinto poll ppoll epoll_wait epoll_pwait select pselect zmq_poll zmq_msg_recv getaddrinfo "
    "create_connection do_handshake uv__io_poll _poll kevent read_status _read_status select_poll_poll recvmmsg "
    "sock_recv sendmsg sendall"
)
LOCK_NAMES = _words(
    "acquire _wait_for_tstate_lock join wait result futex futex_wait pthread_mutex_lock pthread_rwlock_wrlock "
    "pthread_cond_wait pthread_cond_timedwait pthread_cond_clockwait __lll_lock_wait lll_lock_wait sem_wait "
    "sem_timedwait PyThread_acquire_lock_timed lock_PyThread_acquire_lock take_gil PyEval_RestoreThread "
    "acquire_timed rlock_acquire _PySemaphore_Wait PyMutex_LockTimed _PyParkingLot_Park syscall do_futex_wait"
)
LOCK_FILES = ("threading.py", "concurrent/futures/_base.py", "multiprocessing/synchronize.py", "asyncio/locks.py")
QUEUE_FILES = ("queue.py", "multiprocessing/queues.py")
CUDA_SYNC_PYTHON = _words("synchronize _to_list tolist item _local_scalar_dense cpu is_nonzero nonzero")
CUDA_SYNC_FILES = ("torch/cuda", "cuda/streams", "streams.py", "gpu_model_runner", "async_utils", "model_runner",
                   "torch/_tensor.py", "cupy/", "torch/accelerator")  # fmt: skip
DRIVER_THREAD = lazy(r"cuda-Evt|cuda\d{6,}|pt_nccl_|pt_autograd|NCCL Progress|NCCL Service|nv-|jemalloc_bg")
WATCHER = lazy(
    r"monitor|watchdog|watch_|heartbeat|signal_?callback|_idle|keep_?alive|liveness|metrics_loop|reporter"
)
SOCKET_FILES = ("zmq/", "socket.py", "ssl.py", "selectors.py", "connection.py", "http/", "uvloop", "asyncio/", "grpc/",
                "websockets/", "redis/", "anyio/", "trio/", "select.py", "torch/distributed")  # fmt: skip
WRAPPERS = _words("wrapper inner _fn decorate_context __enter__ __call__ _call_impl _wrapped_call_impl")


class Wait(NamedTuple):
    """What a thread waits for and which of its frames tells it (index into the frames, None when there is none)."""

    kind: str
    frame: int | None = None


def read_wait(frames: Sequence[Frame], state: str = "unknown", name: str | None = None) -> Wait:
    """Reads the wait of one thread; `state` is `active`, `idle` or `unknown`, `name` the thread's name."""
    if not frames:
        return Wait("none")
    first_python = next((at for at, frame in enumerate(frames) if not frame.native), len(frames))
    native = [(at, frame) for at, frame in enumerate(frames[:first_python])]
    python = [(at, frame) for at, frame in enumerate(frames) if not frame.native]
    helper = any("libcudadebugger" in frame.file for _, frame in native[:4])
    if state != "active" and (helper or (name and DRIVER_THREAD.match(name))):
        return Wait("queue_idle", 0)
    wait = (
        _device(native, python)
        or _between_ranks(native, python)
        or _host(native, python)
        or _leftover(native, python, state)
    )
    if wait.kind in ("lock", "socket", "sleep") and name and WATCHER.search(name.lower().replace("-", "_")):
        return Wait("queue_idle", wait.frame)
    return wait


def _within(file: str, parts: Sequence[str]) -> bool:
    return any(part in file for part in parts)


def _device(native: list[tuple[int, Frame]], python: list[tuple[int, Frame]]) -> Wait | None:
    """Waits for the GPU: a CUDA call among the native tops, or a synchronising Python call on top."""
    for at, frame in native:
        if COLLECTIVE_NATIVE.search(frame.function):
            return None
        if CUDA_WAIT.match(frame.bare) or (frame.bare == "synchronize" and "CUDA" in frame.function):
            return Wait("cuda_sync", at)
        if "device_synchronize" in frame.function or "cuda_synchronize" in frame.function.lower():
            return Wait("cuda_sync", at)
    for at, frame in python[:2]:
        if frame.bare in CUDA_SYNC_PYTHON and (frame.bare == "synchronize" or _within(frame.file, CUDA_SYNC_FILES)):
            return Wait("cuda_sync", at)
        if frame.bare not in WRAPPERS:
            break
    return None


def _between_ranks(native: list[tuple[int, Frame]], python: list[tuple[int, Frame]]) -> Wait | None:
    """Waits for other ranks (collective, store) or for a worker's answer."""
    for at, frame in native:
        if COLLECTIVE_NATIVE.search(frame.function):
            return Wait("collective", at)
    in_queue = any(_within(frame.file, SHARED_QUEUE) for _, frame in python[:6])
    for at, frame in python[:4]:
        if in_queue:
            break
        if frame.bare in COLLECTIVE_NAMES and _within(frame.file, COLLECTIVE_FILES):
            return Wait("collective", at)
        if frame.bare not in WRAPPERS and frame.bare not in ("wait", "__init__") and "torch" not in frame.file:
            break
    for at, frame in python[:12]:
        if frame.bare in WORKER_REPLY_NAMES and not _within(frame.file, HTTP_FILES):
            blocked = in_queue or _blocks(native, python)
            if blocked and (frame.bare != "collective_rpc" or in_queue or at <= 3):
                return Wait("worker_reply", at)
    return None


def _blocks(native: list[tuple[int, Frame]], python: list[tuple[int, Frame]]) -> bool:
    """Whether the top of the stack is a waiting call at all."""
    tops = [frame for _, frame in native[:6]] + [frame for _, frame in python[:1]]
    return any(
        frame.bare in SOCKET_NAMES
        or frame.bare in SLEEP_NAMES
        or frame.bare in LOCK_NAMES
        or (frame.bare == "get" and frame.file.endswith(QUEUE_FILES))
        for frame in tops
    )


def _host(native: list[tuple[int, Frame]], python: list[tuple[int, Frame]]) -> Wait | None:
    """Waits inside the host: file locks, downloads, compilers, child processes, queues, sockets, locks, sleep."""
    near = python[:12]
    tops = [frame for _, frame in native[:8]]
    for at, frame in [*native[:4], *near[:4]]:
        if FILE_LOCK_NAMES.match(frame.bare) or _within(frame.file, FILE_LOCK_FILES):
            return Wait("file_lock", at)
    http = next((at for at, frame in near if _within(frame.file, HTTP_FILES)), None)
    fetch = next((at for at, frame in near if DOWNLOAD_NAMES.search(frame.bare)), None)
    if http is not None and (fetch is not None or _network_top(native, python)):
        return Wait("download", fetch if fetch is not None else http)
    if fetch is not None and fetch <= (python[0][0] if python else 0) + 2:
        return Wait("download", fetch)
    for at, frame in native:
        if COMPILE_NATIVE.search(frame.function) or COMPILE_NATIVE.search(frame.file):
            return Wait("jit_compile", at)
    child = next(
        (
            at
            for at, frame in [*native[:4], *near[:4]]
            if frame.bare in CHILD_NAMES or _within(frame.file, SUBPROCESS_FILES)
        ),
        None,
    )
    if child is not None and _is_child_wait(native, python):
        spawned = any("multiprocessing/" in frame.file for _, frame in near[:4])
        below = next(
            (
                at
                for at, frame in near
                if not _within(frame.file, SUBPROCESS_FILES)
                and (COMPILE.search(frame.bare) or COMPILE.search(frame.file))
            ),
            None,
        )
        if below is not None and not spawned:
            return Wait("jit_compile", below)
        return Wait("child_process", child)
    queue = _queue(near)
    if queue is not None:
        return Wait("queue_idle", queue)
    for at, frame in near[:2]:
        if re.search(
            r"triton/(?:compiler|backends)|torch/_inductor|cpp_extension\.py|flashinfer/jit|cutlass/", frame.file
        ):
            return Wait("jit_compile", at)
    for at, frame in native[:8]:
        if frame.bare in SLEEP_NAMES:
            return Wait("sleep", at)
    for at, frame in native[:4]:
        if frame.bare in FILE_IO_NAMES:
            return Wait("file_io", at)
    if _network_top(native, python):
        return Wait("socket", (native or python)[0][0] if not python else _first_socket(native, python))
    for at, frame in native[:6]:
        if frame.bare in LOCK_NAMES:
            return Wait("lock", python[0][0] if python else at)
    if python:
        at, frame = python[0]
        if frame.bare in SLEEP_NAMES:
            return Wait("sleep", at)
        if frame.bare in LOCK_NAMES and _within(frame.file, LOCK_FILES):
            return Wait("lock", at)
        if frame.bare in ("acquire", "_wait_for_tstate_lock"):
            return Wait("lock", at)
    return None if tops or python else Wait("none")


def _is_child_wait(native: list[tuple[int, Frame]], python: list[tuple[int, Frame]]) -> bool:
    """Whether the stack ends in waiting for a child, not in some other call of the subprocess module."""
    if any(frame.bare in CHILD_NAMES for _, frame in native[:4]):
        return True
    names = {frame.bare for _, frame in python[:4]}
    return bool(names & {"_try_wait", "_wait", "wait", "communicate", "_communicate", "poll", "check_output", "join"})


def _queue(near: list[tuple[int, Frame]]) -> int | None:
    """The frame that shows an idle consumer: it takes from a queue, or it stands in a loop that waits for work."""
    if not near:
        return None
    shared = next((at for at, frame in near[:6] if _within(frame.file, SHARED_QUEUE)), None)
    if shared is not None:
        return next((at for at, frame in near if frame.bare in IDLE_LOOPS), shared)
    for at, frame in near[:4]:
        if frame.bare == "get" and frame.file.endswith(QUEUE_FILES):
            return next((loop for loop, other in near if other.bare in IDLE_LOOPS), at)
    for at, frame in near[1:6]:
        if WATCHER.search(frame.bare) and not _within(frame.file, HTTP_FILES):
            return at
    for at, frame in near[:5]:
        if frame.bare in IDLE_LOOPS and (frame.bare != "_worker" or _within(frame.file, IDLE_FILES)):
            return at
        if _within(frame.file, IDLE_FILES):
            return at
    return None


def _network_top(native: list[tuple[int, Frame]], python: list[tuple[int, Frame]]) -> bool:
    if any(frame.bare in SOCKET_NAMES for _, frame in native[:4]):
        return True
    return any(
        (frame.bare in SOCKET_NAMES and _within(frame.file, SOCKET_FILES))
        or frame.base in ("ssl.py", "socket.py", "selectors.py")
        or (frame.bare == "wait" and frame.file.endswith("multiprocessing/connection.py"))
        or ("httpcore" in frame.file and "_backends/" in frame.file)  # reads of its sockets, whose C call is not shown
        for _, frame in python[:2]
    )


def _first_socket(native: list[tuple[int, Frame]], python: list[tuple[int, Frame]]) -> int:
    return next((at for at, frame in [*python[:2], *native[:4]] if frame.bare in SOCKET_NAMES), python[0][0])


def _leftover(native: list[tuple[int, Frame]], python: list[tuple[int, Frame]], state: str) -> Wait:
    """No known waiting call. An idle thread is then in a C call that the dump does not show."""
    at = python[0][0] if python else native[0][0]
    if state == "active":
        if native and "libcuda.so" in native[0][1].file and ADDRESS.match(native[0][1].function):
            return Wait("cuda_sync", native[0][0])
        return Wait("running", at)
    if native and not python:
        return Wait("native", next((i for i, frame in native if not ADDRESS.match(frame.function)), at))
    if state == "idle" or native:
        return Wait("native", at)
    return Wait("running" if state == "active" else "native", at)
