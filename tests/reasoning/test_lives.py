"""Several lives of a server in one log: a stop excuses what belongs to it, and nothing of the life after it."""

from __future__ import annotations

from pathlib import Path

from analyzer.analyze import investigate
from analyzer.reasoning.verdict import decide

API, CORE = "(APIServer pid=2547) ", "(EngineCore pid=29787) "
START = (
    API + "INFO 11-30 20:1{n}:01 [utils.py:253] non-default args: {{'model_tag': '/models/tiny', 'port': 8112}}\n"
    + API + "INFO 11-30 20:1{n}:09 [model.py:557] Resolved architecture: LlamaForCausalLM\n"
    + CORE + "INFO 11-30 20:1{n}:15 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: model='/m'\n"
)  # fmt: skip
SERVES = (
    CORE + "INFO 11-30 20:1{n}:20 [core.py:333] init engine (profile, create kv cache, warmup model) took 5.1 s\n"
    "INFO:     Started server process [28284]\nINFO:     Waiting for application startup.\n"
    "INFO:     Application startup complete.\n"
    'INFO:     127.0.0.1:40718 - "POST /v1/completions HTTP/1.1" 200 OK\n'
    + API + "INFO 11-30 20:1{n}:32 [loggers.py:335] Engine 000: Avg prompt throughput: 11.2 tokens/s, Avg generation "
    "throughput: 42.0 tokens/s, Running: 0 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.0%\n"
)  # fmt: skip
STOP = (
    API + "INFO 11-30 20:1{n}:40 [launcher.py:110] [shutdown] API server: shutdown triggered\n"
    + CORE + "INFO 11-30 20:1{n}:40 [core.py:1454] [shutdown] EngineCore: trigger received signal=SIGTERM\n"
    "INFO:     Shutting down\nINFO:     Waiting for application shutdown.\n"
    "INFO:     Application shutdown complete.\n"
)  # fmt: skip
DIES = API + "ERROR 11-30 20:1{n}:22 [core_client.py:614] EngineCore_DP0 died unexpectedly, shutting down client.\n"
REFUSED = "ValueError: User-specified max_model_len (99999) is greater than the derived max_model_len (2048)\n"


def _verdict(tmp_path: Path, *parts: str) -> str:
    path = tmp_path / "server.log"
    path.write_text("".join(part.format(n=at // 2) for at, part in enumerate(parts)), encoding="utf-8")
    analysis = investigate([str(path)])
    return decide(analysis.ranked, analysis.bundle, analysis.signs, analysis.troubles)[0]


def test_a_clean_restart_is_well(tmp_path: Path) -> None:
    assert _verdict(tmp_path, START, SERVES, STOP) == "healthy"
    assert _verdict(tmp_path, START, SERVES, STOP, START, SERVES) == "healthy"


def test_an_old_life_proves_nothing_of_the_new_one(tmp_path: Path) -> None:
    assert _verdict(tmp_path, START, SERVES, STOP, START) != "healthy"
    assert _verdict(tmp_path, START, SERVES, STOP, START, DIES) != "healthy"
    assert _verdict(tmp_path, START, SERVES, STOP, START, REFUSED) != "healthy"


def test_an_engine_that_is_stopped_alone_takes_the_server_with_it(tmp_path: Path) -> None:
    alone = STOP.split("\n")[1] + "\n"
    lost = (
        API + "WARNING 11-30 20:1{n}:41 [core_client.py:817] [shutdown] MPClient: engine core exited unexpectedly; "
        "starting cleanup\n"
    )
    assert _verdict(tmp_path, START, SERVES, alone, lost) != "healthy"
