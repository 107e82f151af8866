"""Small logs with a known answer: `CANARY` lies beside every hostile input, `XID` is what hostile text carries."""
# ruff: noqa: E501  (log lines are data)

from __future__ import annotations

CANARY = """\
[ 5210.123456] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,\
task_memcg=/system.slice/vllm.service,task=python3,pid=4242,uid=0
[ 5210.123460] Out of memory: Killed process 4242 (python3) total-vm:260000000kB, anon-rss:120000000kB, \
file-rss:1024kB, shmem-rss:2048kB, UID:0 pgtables:250000kB oom_score_adj:0
"""
CANARY_RULE = "host-oom-killed"

XID = """\
[ 6120.100001] NVRM: GPU at PCI:0000:41:00: GPU-52a3a85d-3c55-ca3a-a955-82c69ed360fc
[ 6120.100002] NVRM: Xid (PCI:0000:41:00): 79, pid=4242, name=python3, GPU has fallen off the bus.
[ 6120.100003] NVRM: GPU 0000:41:00.0: GPU has fallen off the bus.
"""
XID_RULE = "gpu-fallen-off-bus"

SERVER = """\
(APIServer pid=12) INFO 11-30 20:04:27 [api_server.py:1043] vLLM API server version 0.11.0
(EngineCore_DP0 pid=72) INFO 11-30 20:04:40 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='m'
(APIServer pid=12) INFO 11-30 20:05:28 [launcher.py:29] Available routes are:
(APIServer pid=12) INFO:     Application startup complete.
"""


def stats(second: int) -> str:
    """A line of progress."""
    return (
        f"(APIServer pid=12) INFO 11-30 20:06:{second % 60:02d} [loggers.py:127] Engine 000: Avg prompt throughput: 4.0 "
        "tokens/s, Avg generation throughput: 5.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.1%, "
        "Prefix cache hit rate: 0.0%\n"
    )
