"""Tracebacks put together: prefixed lines, interleaved ranks, chains, pastes that lost something."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from log_lines import events_of, kinds

from parsers.vllm_log import PARSER as VLLM


def _prefixed(who: str, *rows: str) -> list[str]:
    return [f"({who}) ERROR 11-30 20:00:00 [core.py:10] {row}" for row in rows]


def _trace(tag: str, final: str) -> list[str]:
    return ["Traceback (most recent call last):", f'  File "/v/{tag}.py", line 1, in run', f"    {tag}()",
            f'  File "/v/{tag}_inner.py", line 2, in step', "    raise X", "    ^^^^^^^", final]  # fmt: skip


def test_every_line_carries_the_prefix() -> None:
    text = "\r\n".join(_prefixed("EngineCore pid=1", "EngineCore encountered a fatal error.", *_trace("a",
    "ValueError: no")))
    events = events_of(VLLM, text)
    [raised] = kinds(events, "exception")
    assert raised.fields["type"] == "ValueError" and raised.fields["message"] == "no"
    assert raised.fields["module"] == "/v/a_inner.py" and raised.fields["function"] == "step"
    assert raised.fields["frames"] == [("run", "/v/a.py", 1), ("step", "/v/a_inner.py", 2)]
    assert raised.span.first_line == raised.span.last_line == 8
    assert raised.actor.process == "EngineCore" and raised.stamp is not None
    [record] = kinds(events, "record")
    assert record.fields["message"] == "EngineCore encountered a fatal error."


def test_interleaved_ranks_are_kept_apart() -> None:
    one = _prefixed("Worker_TP0 pid=1", *_trace("a", "RuntimeError: first"))
    two = _prefixed("Worker_TP1 pid=2", *_trace("b", "torch.AcceleratorError: CUDA error: unspecified launch failure"))
    text = "\n".join(line for pair in zip(one, two, strict=True) for line in pair)
    events = events_of(VLLM, text)
    assert [(e.fields["type"], e.fields["module"], e.actor.process) for e in kinds(events, "exception")] == [
        ("RuntimeError", "/v/a_inner.py", "Worker_TP0"),
        ("torch.AcceleratorError", "/v/b_inner.py", "Worker_TP1"),
    ]
    [error] = kinds(events, "cuda_error")
    assert (error.fields["code"], error.fields["name"]) == (719, "cudaErrorLaunchFailure")


def test_the_first_of_a_chain_is_the_root() -> None:
    text = "\n".join([
        *_trace("a", "StopIteration"), "", "During handling of the above exception, another exception occurred:", "",
        *_trace("b", "KeyError: 'x'"), "",
        "The above exception was the direct cause of the following exception:", "",
        *_trace("c", "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): "
                     "{'EngineCore_DP0': -9}"),
    ])  # fmt: skip
    events = events_of(VLLM, text)
    raised = kinds(events, "exception")
    assert [e.fields["type"] for e in raised] == ["StopIteration", "KeyError", "RuntimeError"]
    assert [len(e.fields["chained"]) for e in raised] == [0, 1, 2]
    assert raised[2].fields["chained"][0] == {"type": "StopIteration", "message": ""}
    assert kinds(events, "engine_dead")[0].fields == {"how": "initialization_failed"}
    assert kinds(events, "process_died")[0].fields == {"name": "EngineCore_DP0", "exit_code": -9}


def test_two_tracebacks_without_a_link_are_no_chain() -> None:
    raised = kinds(events_of(VLLM, "\n".join(_trace("a", "ValueError: 1") + _trace("b", "ValueError: 2"))), "exception")
    assert [e.fields["chained"] for e in raised] == [[], []]


def test_a_paste_that_lost_head_indentation_and_prefix() -> None:
    text = (
        'File "vllm/v1/worker/gpu_worker.py", line 71, in compile_or_warm_up_model\n'
        "  cuda_graph_memory_bytes = self.model_runner.capture_model()\n"
        'File "torch/cuda/graphs.py", line 169, in capture_end\n'
        "  super().capture_end()\n"
        "torch.AcceleratorError: CUDA error: operation failed due to a previous error during capture\n"
    )
    [raised] = kinds(events_of(VLLM, text), "exception")
    assert raised.fields["module"] == "torch/cuda/graphs.py" and len(raised.fields["frames"]) == 2


def test_the_last_line_alone_lost_its_prefix() -> None:
    text = "\n".join([*_prefixed("Worker_TP0 pid=1", *_trace("a", "x")[1:4]), "FileNotFoundError: [Errno 2] 'nvcc'"])
    [raised] = kinds(events_of(VLLM, text), "exception")
    assert raised.fields["type"] == "FileNotFoundError" and raised.fields["module"] == "/v/a_inner.py"


def test_a_traceback_cut_at_the_end_keeps_its_frames() -> None:
    [raised] = kinds(events_of(VLLM, "\n".join(_trace("a", "")[:4])), "exception")
    assert raised.fields["type"] == "" and raised.fields["module"] == "/v/a_inner.py" and raised.span.first_line == 4


def test_only_the_last_line_is_there() -> None:
    for text in ("RuntimeError: no kernel", "E       RuntimeError: no kernel", "  - RuntimeError: no kernel",
                 "[rank3]: RuntimeError: no kernel"):  # fmt: skip
        [raised] = kinds(events_of(VLLM, text), "exception")
        assert raised.fields["type"] == "RuntimeError" and raised.fields["frames"] == []
    assert kinds(events_of(VLLM, "[rank3]: RuntimeError: x"), "exception")[0].actor.rank == 3


def test_what_is_no_exception() -> None:
    for text in ("Warning: You are sending unauthenticated requests", "Note: text", "INFO: text",
    "Process EngineCore_0:",
                 "/x/y.py:254: UserWarning: text", "Error: text", "ERROR: Unable to open", "Repro command: /bin/x",
                 "Search for `cudaErrorIllegalAddress' in https://docs.nvidia.com"):  # fmt: skip
        assert kinds(events_of(VLLM, text), "exception") == []


def test_other_text_between_does_not_end_a_traceback() -> None:
    rows = _trace("a", "ValueError: no")
    text = "\n".join([*rows[:3], 'INFO:     127.0.0.1:1 - "GET /health HTTP/1.1" 200 OK', "Killing subprocess",
    *rows[3:]])
    [raised] = kinds(events_of(VLLM, text), "exception")
    assert len(raised.fields["frames"]) == 2


def test_deep_recursion_is_capped() -> None:
    frames = [f'  File "/v/a.py", line {n}, in f' for n in range(5000)]
    [raised] = kinds(events_of(VLLM, "\n".join(["Traceback (most recent call last):", *frames,
    "RecursionError: deep"])),
                     "exception")  # fmt: skip
    assert len(raised.fields["frames"]) == 60 and raised.fields["frames"][-1][2] == 4999


def test_a_cpp_exception() -> None:
    text = "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: out of memory\n"
    [raised] = kinds(events_of(VLLM, text), "exception")
    assert raised.fields["type"] == "c10::Error" and raised.fields["message"].startswith("CUDA error")


def test_a_json_record_with_its_traceback() -> None:
    text = ('{"asctime": "2026-11-30 20:41:16,424", "levelname": "ERROR", "name": "vllm.x", "process": 7, '
            '"message": "EngineCore failed to start.\\nTraceback (most recent call last):\\n  File '
            '\\"/v/a.py\\", line 1, in f\\n    g()\\nValueError: no", "vllm_process_name": "EngineCore"}')  # fmt: skip
    events = events_of(VLLM, text)
    [raised] = kinds(events, "exception")
    assert raised.fields["module"] == "/v/a.py" and raised.stamp is not None and raised.stamp.year_known
    assert len(kinds(events, "record")) == 1
