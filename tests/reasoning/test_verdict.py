"""When "healthy" may be said, and when not."""

from __future__ import annotations

from pathlib import Path

from analyzer.analyze import investigate
from analyzer.reasoning.verdict import LONG_ENOUGH, decide

QUIET = "".join(f"[  {at}.000000] eth{at}: link becomes ready\n" for at in range(10, 10 + LONG_ENOUGH))


def _verdict(tmp_path: Path, name: str, text: str) -> tuple[str, str]:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    analysis = investigate([str(path)])
    return decide(analysis.ranked, analysis.bundle, analysis.signs, analysis.troubles)


def test_a_quiet_kernel_log_is_well(tmp_path: Path) -> None:
    assert _verdict(tmp_path, "dmesg.txt", QUIET)[0] == "healthy"


def test_a_few_quiet_lines_that_somebody_cut_out_are_no_proof(tmp_path: Path) -> None:
    assert _verdict(tmp_path, "dmesg.txt", "\n".join(QUIET.split("\n")[:5]) + "\n")[0] == "unknown"


def test_a_complaint_that_no_rule_knows_is_no_clean_bill(tmp_path: Path) -> None:
    verdict, sentence = _verdict(tmp_path, "dmesg.txt", QUIET + "[  99.000000] foo 0000:41:00.0: DMA engine stuck\n")
    assert verdict == "unknown" and f"dmesg.txt:{LONG_ENOUGH + 1}" in sentence


def test_an_orderly_end_without_anything_before_it_is_no_health(tmp_path: Path) -> None:
    text = (
        "(EngineCore pid=3677484) INFO 09-10 09:37:41 [multiproc_executor.py:472] [shutdown] Executor: "
        "waiting for worker exit count=2\n"
    )
    assert _verdict(tmp_path, "server.log", text)[0] == "unknown"


def test_of_a_start_that_nothing_explains_the_sentence_says_where_to_look(tmp_path: Path) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/x/vllm/v1/engine/utils.py", line 964, in wait_for_engine_startup\n'
        "    raise RuntimeError(\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n"
    )
    verdict, sentence = _verdict(tmp_path, "server.log", text)
    assert verdict == "unknown" and sentence.startswith("The server did not start (server.log:4)")


def _stats(second: int, running: int, waiting: int, prompt: float, generation: float) -> str:
    return (
        f"(APIServer pid=1) INFO 04-28 22:54:{second:02d} [loggers.py:257] Engine 000: Avg prompt throughput: {prompt} "
        f"tokens/s, Avg generation throughput: {generation} tokens/s, Running: {running} reqs, Waiting: {waiting} "
        "reqs, GPU KV cache usage: 76.5%, Prefix cache hit rate: 92.0%\n"
    )


def test_a_queue_that_nobody_serves_is_not_well(tmp_path: Path) -> None:
    stands = "".join(_stats(at, 1, 14, 0.0, 25.4) for at in (10, 20, 30))
    assert _verdict(tmp_path, "server.log", stands)[0] == "unknown"
    under_load = "".join(_stats(at, 256, 90, 0.0, 4200.0) for at in (10, 20, 30))
    assert _verdict(tmp_path, "server.log", under_load)[0] == "healthy"
    served = "".join(_stats(at, 1, waiting, 0.0, 25.4) for at, waiting in ((10, 14), (20, 13), (30, 12)))
    assert _verdict(tmp_path, "server.log", served)[0] == "healthy"


def test_somebody_who_says_that_it_hangs_is_believed(tmp_path: Path) -> None:
    log = "".join(_stats(at, 1, 0, 0.0, 25.4) for at in (10, 20, 30))
    assert _verdict(tmp_path, "alone.log", log)[0] == "healthy"
    letter = f"After an hour the server hangs and takes no more requests. The log:\n\n```\n{log}```\n"
    verdict, sentence = _verdict(tmp_path, "issue.md", letter)
    assert verdict == "unknown" and "issue.md/notes:1" in sentence
    quoted = (
        "The server freezes after ten minutes of load, without an error message.\n"
        f'Most recent stats show that "{log.splitlines()[0]}".\nAny idea what might cause this?\n'
    )
    verdict, sentence = _verdict(tmp_path, "letter.md", quoted)
    assert verdict == "unknown" and "letter.md:1" in sentence
    praise = f"All is well since the update, thank you! The log:\n\n```\n{log}```\n"
    assert _verdict(tmp_path, "praise.md", praise)[0] == "healthy"


def test_requests_that_came_in_are_no_progress(tmp_path: Path) -> None:
    text = (
        "INFO 02-12 15:20:24 logger.py:37] Received request cmpl-1: prompt: 'x', params: SamplingParams(n=1)\n"
        'INFO:     10.0.0.1:33816 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
        'INFO:     127.0.0.1:38440 - "GET /health HTTP/1.1" 200 OK\n'
    )
    assert _verdict(tmp_path, "server.log", text)[0] == "unknown"


def test_an_engine_that_is_ready_is_half_a_server(tmp_path: Path) -> None:
    text = (
        "(EngineCore_DP0 pid=594) INFO 11-25 02:39:46 [cuda.py:424] Using FLASH_ATTN backend.\n"
        "(EngineCore_DP0 pid=594) INFO 11-25 02:39:49 [core.py:253] init engine (profile, create kv cache, warmup "
        "model) took 21.55 seconds\n"
    )
    assert _verdict(tmp_path, "server.log", text)[0] == "unknown"
    up = text + "INFO:     Application startup complete.\n"
    assert _verdict(tmp_path, "server.log", up)[0] == "healthy"
