"""What stacks mean: equal classes over tools and versions, waits, errors, hostile dumps."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from artifact_text import FIXTURES, lines_of, recognise

from parsers.contract import Trouble
from parsers.event import Event
from parsers.stacks import PARSERS
from parsers.stacks.model import Frame, bare_name, signature
from parsers.stacks.waits import WAITS, read_wait

FOLDER = FIXTURES / "stacks"


def threads(data: bytes) -> list[dict[str, object]]:
    _, parser = recognise(data)
    return [thread for process in parser.inspect(lines_of(data), "x")["processes"] for thread in process["threads"]]


def events(data: bytes) -> list[Event]:
    _, parser = recognise(data)
    return [event for event in parser.read(lines_of(data), "x") if isinstance(event, Event)]


@pytest.mark.parametrize(
    ("printed", "bare"),
    [
        ("Condition.wait", "wait"),
        ("MultiprocExecutor.collective_rpc.<locals>.get_response", "get_response"),
        ("OpOverloadPacket.op_overloads.<locals>.<listcomp>", "<listcomp>"),
        ("<module>", "<module>"),
        ("c10d::Work::wait", "wait"),
        ("c10d::ProcessGroupNCCL::WorkNCCL::wait(std::chrono::duration<long> )", "wait"),
        ("torch::distributed::c10d::(anonymous namespace)::init", "init"),
        ("cuCtxSynchronize_v2", "cuCtxSynchronize"),
    ],
)
def test_bare_names(printed: str, bare: str) -> None:
    assert bare_name(printed) == bare


def test_versions_of_py_spy_give_one_signature() -> None:
    old = threads((FOLDER / "bare-names.txt").read_bytes())
    new = threads((FOLDER / "qualified-names.txt").read_bytes())
    assert [thread["signature"] for thread in old] == [thread["signature"] for thread in new]


def test_native_frames_and_line_numbers_do_not_change_the_signature() -> None:
    plain = [Frame("wait", "/usr/lib/python3.12/threading.py", 355), Frame("get", "queue.py", 171)]
    native = [
        Frame("0x7f00", "libc.so.6", None, True),
        Frame("Condition.wait", "threading.py", 327),
        Frame("Queue.get", "queue.py", 1),
    ]
    assert signature(plain) == signature(native)
    assert signature(plain) != signature(plain[1:])


def test_the_gil_of_a_sleeper_shows_in_json_only() -> None:
    held = [thread for thread in threads((FOLDER / "gil-held.json.txt").read_bytes()) if thread["owns_gil"]]
    assert [thread["name"] for thread in held] == ["MainThread"]
    assert held[0]["state"] == "idle"


@pytest.mark.parametrize(
    ("stack", "state", "wait"),
    [
        ("synchronize torch/cuda/streams.py", "active", "cuda_sync"),
        ("_to_list vllm/v1/worker/gpu_model_runner.py", "active", "cuda_sync"),
        ("cuEventSynchronize libcuda.so.1 < f a.py", "active", "cuda_sync"),
        ("0x7f libcuda.so.1 < cuMemcpyDtoH_v2 libcuda.so.1 < f a.py", "active", "cuda_sync"),
        ("all_reduce torch/distributed/distributed_c10d.py", "idle", "collective"),
        ("c10d::TCPStore::get libtorch_cpu.so < f a.py", "idle", "collective"),
        ("ncclCommInitRank pynccl_wrapper.py < __init__ pynccl.py", "active", "collective"),
        (
            "poll zmq/sugar/poll.py < dequeue vllm/shm_broadcast.py < get_response multiproc_executor.py",
            "idle",
            "worker_reply",
        ),
        (
            "poll zmq/sugar/poll.py < dequeue vllm/shm_broadcast.py < worker_busy_loop multiproc_executor.py",
            "idle",
            "queue_idle",
        ),
        ("wait threading.py < get queue.py", "idle", "queue_idle"),
        (
            "recv libc.so.6 < recv_into socket.py < "
            "read ssl.py < begin http/client.py < hf_hub_download huggingface_hub/file_download.py",
            "idle",
            "download",
        ),
        (
            "_poll_until_acquired filelock/_core/_acquire.py < download_file flashinfer/jit/cubin_loader.py",
            "idle",
            "file_lock",
        ),
        ("wait torch/utils/file_baton.py < load torch/utils/cpp_extension.py", "idle", "file_lock"),
        (
            "_try_wait subprocess.py < run subprocess.py < _run_ninja_build torch/utils/cpp_extension.py",
            "idle",
            "jit_compile",
        ),
        (
            "wait4 libc.so.6 < poll multiprocessing/popen_fork.py < join multiprocessing/process.py",
            "idle",
            "child_process",
        ),
        ("make_cubin triton/backends/nvidia/compiler.py", "active", "jit_compile"),
        ("wait threading.py < join threading.py", "idle", "lock"),
        ("PyThread_acquire_lock_timed libpython3.12.so.1.0 < first a.py", "idle", "lock"),
        ("clock_nanosleep libc.so.6 < step a.py", "idle", "sleep"),
        ("open64 libc.so.6 < load a.py", "idle", "file_io"),
        ("_recv multiprocessing/connection.py", "idle", "socket"),
        ("device_wait a.py", "idle", "native"),
        ("spin a.py", "active", "running"),
        ("", "idle", "none"),
    ],
)
def test_waits(stack: str, state: str, wait: str) -> None:
    named = [part.rsplit(" ", 1) for part in stack.split(" < ") if part]
    built = [Frame(name, file, 1 if file.endswith(".py") else None, ".so" in file) for name, file in named]
    assert read_wait(built, state).kind == wait
    assert wait in WAITS


def test_a_header_without_threads_is_a_hint_and_an_error_text_a_proof() -> None:
    hint = [event.fields for event in events((FOLDER / "header-only.txt").read_bytes()) if event.kind == "stacks.error"]
    proof = [
        event.fields for event in events((FOLDER / "stopped-error.txt").read_bytes()) if event.kind == "stacks.error"
    ]
    assert hint == [{"error": "stopped_process", "certainty": "hint"}]
    assert proof == [{"error": "stopped_process", "certainty": "shown"}]


def test_locals_are_no_frames() -> None:
    (thread,) = threads((FOLDER / "download-locals.txt").read_bytes())
    assert [frame["function"] for frame in thread["frames"]][:2] == ["SocketIO.readinto", "HTTPResponse._read_status"]  # type: ignore[attr-defined]


def test_a_paste_without_indentation_still_has_its_frames() -> None:
    text = 'Process 7: VLLM::EngineCore\nThread 7 (active): "MainThread"\n'
    text += "synchronize (torch/cuda/streams.py:231)\nstep (core.py:5)\n"
    (thread,) = threads(text.encode())
    assert len(thread["frames"]) == 2  # type: ignore[arg-type]


def test_endless_and_wide_dumps_stay_within_limits() -> None:
    deep = b'Process 1: a\nThread 1 (active): "M"\n' + b"    f (a.py:1)\n" * 5_000
    (thread,) = threads(deep)
    assert len(thread["frames"]) == 2_000  # type: ignore[arg-type]
    _, parser = recognise(deep)
    assert any(isinstance(found, Trouble) and found.tag == "truncated" for found in parser.read(lines_of(deep), "x"))


def test_hostile_json_is_refused_not_raised() -> None:
    json_parser = next(parser for parser in PARSERS if parser.name == "pyspy_json")
    for text in ('[{"pid": 1,' + "[" * 100_000, '[{"pid": 1, "os_thread_id": 2, "frames": 5}, 7]', "[1", '{"pid": 1}'):
        list(json_parser.read(lines_of(text.encode()), "x"))
        json_parser.inspect(lines_of(text.encode()), "x")
