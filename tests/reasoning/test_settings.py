"""Settings that a log line shows to have had no effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.analyze import analyze, investigate
from analyzer.reasoning.rulebook import load

LOG = "(EngineCore pid=12) INFO 11-30 20:32:01 [core.py:10] Initializing a V1 LLM engine (v0.32.0)\n"
SELECTED = "(EngineCore pid=12) INFO 11-30 20:32:05 [modelopt.py:160] Selected {kernel} for ModelOptFp8LinearMethod\n"
SAMPLER = (
    "(EngineCore pid=12) INFO 11-30 20:32:06 [topk_topp_sampler.py:55] Using FlashInfer for top-p & top-k sampling.\n"
)
NCCL = (
    "node1:88:88 [0] NCCL INFO Bootstrap: Using ens3:10.0.0.1<0>\n"
    "node1:88:88 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n"
    "node1:88:99 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n"
)
UNKNOWN = (
    "(APIServer pid=1) WARNING 11-30 20:32:00 [envs.py:1] Unknown vLLM environment variable detected: VLLM_X_MODE\n"
)


def observed(tmp_path: Path, env: str, log: str) -> list[dict[str, object]]:
    (tmp_path / "env.txt").write_text(env)
    (tmp_path / "server.log").write_text(log)
    return [one.fields for one in investigate([str(tmp_path)], load()).bundle.observed("setting_without_effect")]


@pytest.mark.parametrize(
    ("env", "log"),
    [
        ("export VLLM_DISABLED_KERNELS=AKernel,BKernel", LOG + SELECTED.format(kernel="BKernel")),
        ("export VLLM_USE_FLASHINFER_SAMPLER=0", LOG + SAMPLER),
        ("export NCCL_P2P_DISABLE=1", LOG + NCCL),
        ("export NCCL_SOCKET_IFNAME=eth", LOG + NCCL),
        ("export VLLM_X_MODE=fast", UNKNOWN + LOG),
    ],
)
def test_without_effect(tmp_path: Path, env: str, log: str) -> None:
    (found,) = observed(tmp_path, env + "\nexport VLLM_LOGGING_LEVEL=INFO\n", log)
    name, _, value = env.removeprefix("export ").partition("=")
    assert (found["name"], found["value"]) == (f"env.{name}", value)
    report = analyze([str(tmp_path)], load())
    assert any(one.startswith("no effect: ") for one in report.environment[f"env.{name}"].conflicts)


@pytest.mark.parametrize(
    ("env", "log"),
    [
        ("export VLLM_DISABLED_KERNELS=AKernel", LOG + SELECTED.format(kernel="BKernel")),
        ("export VLLM_USE_FLASHINFER_SAMPLER=1", LOG + SAMPLER),
        ("export NCCL_P2P_DISABLE=0", LOG + NCCL),
        ("export NCCL_SOCKET_IFNAME=^lo,docker", LOG + NCCL),
        ("export NCCL_P2P_DISABLE=1", LOG),
    ],
)
def test_with_effect_or_not_shown(tmp_path: Path, env: str, log: str) -> None:
    assert observed(tmp_path, env + "\nexport VLLM_LOGGING_LEVEL=INFO\n", log) == []
