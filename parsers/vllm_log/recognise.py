"""How surely a text is a server log, and which single lines are one's beyond doubt."""

from __future__ import annotations

from parsers.pattern import lazy
from parsers.vllm_log import traceback
from parsers.vllm_log.bars import read_bar
from parsers.vllm_log.record import CORE, plain

_FRONT = (
    r"\s{0,8}(?:[\w./\-]{1,80} *\| ?|\| ?)?(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S{0,20} )?"
    r"(?:\[[\w./:@\- ]{1,120}\] ?){0,3}(?:[\w.\-]{1,60}: )?"
)
_DECORATED = r"(?:\((?:[A-Za-z][\w.:\-]{0,120},? )?(?:rank=\d{1,6} )?pid=\d{1,10}(?:, ip=[^)\s]{1,64})?\) ?)"
_VLLM_LINE = lazy(
    rf"{_FRONT}{_DECORATED}{{0,4}}(?:\[[\w.:@\-]{{1,80}}\] ?)?(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) "
    r"(?:\d\d-\d\d \d\d:\d\d:\d\d )?\[?[\w./<>-]{1,200}\.pyx?:\d{1,6}\]"
)
_PROCESS = lazy(
    rf"{_FRONT}{_DECORATED}{{0,4}}\((?:APIServer|ApiServer|EngineCore|Worker|VllmWorker|VllmWorkerProcess|MainProcess|"
    r"RayWorkerWrapper|RayWorkerProc|DPCoordinator|RayTrainWorker|ServeReplica)[\w:.\-]{0,120}"
    r"(?: rank=\d{1,6})?,? pid=\d{1,10}(?:, ip=[^)\s]{1,64})?\)"
)
_JSON_LINE = lazy(
    r"\s{0,8}\{\"asctime\": \"[^\"]{1,60}\", \"levelname\": \"|.{0,80}\{[^{}]{0,400}\"levelname\": \"[A-Z]"
)
_UVICORN = lazy(
    r"(?:INFO|WARNING|ERROR|DEBUG|CRITICAL): {4,9}(?:\S{1,100} - \"|Started server|Waiting for|Application|Uvicorn|"
    r"Shutting|Finished server|Exception in ASGI|Will watch|Started reloader)|(?:ERROR|WARNING): {2,9}Exception in ASGI"
)
_TORCH = lazy(
    r"(?:\[rank\d{1,6}\]: ?)?(?:\[[WE]\d{0,4} ?(?:\d\d:\d\d:\d\d\.\d+ )?(?!ProcessGroup)[\w/]{1,100}\."
    r"(?:cpp|cc|cu|h):\d+\]|[WE]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ torch/)"
)
_LOGGER = lazy(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} - (?:INFO|WARNING|ERROR|DEBUG) - (?:[\w./]{1,80}\.py:\d+ - )?flashinfer"
)
_WORDS = lazy(
    r"No available shared memory broadcast block|Triton is installed|Triton not installed|INFO \[\w+\.py:\d+\]|"
    r"(?:vllm|sglang|api_server\.py|launch_server\.py|trtllm-serve)(?: \w+)?: error: |"
    r"\[AutoTuner\]: Tuning |DeepEP dispatch |LMCache (?:INFO|WARNING|ERROR|DEBUG): |"
    r"Process (?:EngineCore|SpawnProcess|VllmWorker)"
)
_TRACING = lazy(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z {1,4}(?:DEBUG|INFO|WARN|ERROR) "
    r"(?:core|engine|worker|api|llm|vllm|sglang|"
    r"dynamo|async_llm|model|gpu_|kv_|loggers)[\w.:]{0,120}: "
)
# What a program that runs a server puts before each of its lines (logging, loguru): time, name, level, stream.
_WRAPPED = lazy(
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[,.]\d{1,9})? (?:(?:-|\|) [\w.\-]{1,60} {1,4}){1,3}(?:-|\|) "
)
_ENDINGS = lazy(
    r"(?:Killed|Aborted|Illegal instruction|Segmentation fault|Bus error)(?: \(core dumped\))?\s*$|usage: \w+ |"
    r"terminate called after throwing|nvcc fatal +:|ptxas fatal"
)
_SGLANG = lazy(r"\[20\d\d-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?(?: (?:DP|TP|PP|EP)\d+){0,4}\] ")

_FOREIGN = lazy(
    r"(?m)^(?:\[ *\d{1,8}\.\d{6}\] |\w{3} +\d{1,2} \d\d:\d\d:\d\d \S+ kernel: |# HELP |# TYPE |Process \d+: |"
    r"Thread (?:\d+|0x\w+) \(|\+-{20,}\+|Collecting environment information|\|? ?NVIDIA-SMI |==============NVSMI LOG|"
    r"PyTorch version: |Current thread 0x\w+ \(most recent|\[\w{3} \d\d \d{4} \d\d:\d\d:\d\d\] \[\w+\] )"
)


def confidence(head: str) -> float:
    """For vLLM and other Python servers: 0.95 for a vLLM log, 0.8 for a text that holds one vLLM record, 0.6 for a bare
    traceback, less for other program output, at most 0.1 for what is nobody's log."""
    head = plain(head)
    lines = [line for line in head.split("\n") if line.strip()]
    if not lines:
        return 0.0
    own = sum(1 for line in lines if _own(line))
    if own:
        return 0.95 if own >= 3 or own * 4 >= len(lines) else 0.8
    if sum(1 for line in lines if _JSON_LINE.match(line)) >= 1:
        return 0.95
    if any(".py:" in line and CORE.search(line) for line in lines):
        return 0.8
    if any(_SGLANG.match(line) for line in lines[:400]):
        return min(0.3, _python(head, lines))  # SGLang or another program's stamps
    return _python(head, lines)


def _own(line: str) -> bool:
    if "pid=" in line and _PROCESS.match(line):
        return True
    return ".py" in line and _VLLM_LINE.match(line) is not None


def _python(head: str, lines: list[str]) -> float:
    foreign = len(_FOREIGN.findall(head))
    ours = sum(1 for line in lines if python_line(line))
    if not ours:
        return 0.0
    if foreign and foreign * 2 >= ours:
        return 0.1
    if any(traceback.is_part(line) for line in lines) or any(traceback.is_final(line) for line in lines):
        return 0.6
    if any(_UVICORN.match(line) or _LOGGER.match(line) or _WORDS.match(line.lstrip()) for line in lines):
        return 0.7
    return 0.5


def python_line(text: str) -> bool:
    """Whether a line is Python's, torch's or a progress bar's beyond doubt: shared by all server-log parsers."""
    text = plain(text)
    if traceback.is_part(text) or traceback.is_final(text):
        return True
    bare = text.lstrip(" |\r")
    if bare.startswith("[rank") and (_TORCH.match(bare) or "Traceback (most" in bare[:60]):
        return True
    if _UVICORN.match(bare) or _LOGGER.match(bare) or _TORCH.match(bare) or _WORDS.match(bare) or _ENDINGS.match(bare):
        return True
    if bare[:2] == "20":
        if _TRACING.match(bare):
            return True
        if wrapped := _WRAPPED.match(bare):
            inner = bare[wrapped.end() :]
            return traceback.is_part(inner) or traceback.is_final(inner)
    if "%" in bare and "/" in bare and ("it]" in bare or "it/s" in bare or "s/it" in bare or "Completed |" in bare):
        return read_bar(bare.split("\r")[0]) is not None
    return False


def claimed(text: str) -> bool:
    """Whether the line is a vLLM record, or Python's own output, at its very start."""
    text = plain(text)
    return _own(text) or _JSON_LINE.match(text) is not None or python_line(text)
