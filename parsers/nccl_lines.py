"""The forms of the lines that `nccl_log` reads: NCCL's and PyTorch's prefixes, their telling messages, the tables of
nccl-tests, and the errors of other transports that stand between them."""

from __future__ import annotations

import re

from parsers.pattern import lazy

LEVEL = lazy(r"NCCL (INFO|WARN|TRACE|ERROR) ?")
ORIGIN = lazy(r"([\w.-]{1,255}):(\d{1,10}):(\d{1,10}) \[(-?\d{1,4})\](?: ([\w/.+-]{1,120}:\d{1,6}))? $")
ANCHORED = lazy(
    r"(?:\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?\] |\d{1,3}(?:\.\d{1,3}){3}: "
    r"|\[\d{1,5}\]:? ?|\[rank\d{1,5}\]: ?"
    r"|\d{1,5}: |\([A-Za-z_]\w{0,40}(?: [^)]{1,120})?\) ?){0,3}"
    r"[\w.-]{1,255}:\d{1,10}:\d{1,10} \[-?\d{1,4}\](?:"
    r" [\w/.+-]{1,120}:\d{1,6})? NCCL (?:INFO|WARN|TRACE|ERROR)\b"
)
BARE = lazy(r"(?:[\w/.+-]{1,120}\.\w{1,3}:\d{1,6} )?NCCL (?:WARN|ERROR) \S|NCCL version \d")
# Reporters cut host and process away and leave the place in the source.
PLACE_ONLY = lazy(r"[\s|>]{0,8}([\w/.+-]{1,120}\.\w{1,3}:\d{1,6}) $")
DATED = lazy(
    r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?)\] $|\[(\d{4}-\d\d-\d\d"
    r" \d\d:\d\d:\d\d(?:\.\d{1,9})?)\] "
)
# PyTorch writes the month without a leading zero: `E626` is the 26th of June.
GLOG = lazy(
    r"\[([EWFI])(?:(\d{1,2})(\d\d) (\d\d:\d\d:\d\d)\.(\d{1,9}) )? ?([\w./-]{2,60}\.(?:cpp|hpp|h"
    r"|cc|cu)):(\d{1,6})\] ?(.*)",
    re.DOTALL,
)
GLOG_START = lazy(
    r"(?:\[(?:rank)?\d{1,5}\]:? ?|\([A-Za-z_]\w{0,40}(?: [^)]{1,120})?\) ?|\s{0,4}\|\s{0,4}){0,3}"
    r"\[[EWFI](?:\d{3,4} \d\d:\d\d:\d\d\.\d{1,9})? ?(?:ProcessGroup\w{2,16}|TCPStore\w{0,12}"
    r"|NCCLUtils|HashStore|FileStore|socket|FlightRecorder\w{0,12})\.\w{2,3}:\d"
)
RANK_TAG = lazy(r"\[rank(\d{1,5})\]|\bRank (\d{1,5})\]")
FILES = ("ProcessGroup", "TCPStore", "NCCLUtils", "socket.cpp", "FlightRecorder", "HashStore")

COMM = lazy(r"\brank (\d{1,6}) nranks (\d{1,6})\b")
INIT = lazy(r"Init (START|COMPLETE)")
VERSION = lazy(r"NCCL version (\d[\w.+-]{1,32})")
SETTING = lazy(r"\b(NCCL_[A-Z0-9_]{2,48}) set by environment to (\S.{0,300})")
RETURN = lazy(r"[\w/.+-]{1,120}:\d{1,6} -> \d{1,3}\b")
VIA = lazy(r"\bvia (\S.{1,60}?)(?: comm \S+.*)?$")
INFO: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("interface", lazy(r"Bootstrap ?: Using (\S{1,120}(?:, dev \S{1,20})?)")),
    ("interface", lazy(r"NET/Socket ?: Using (.{1,200})")),
    ("ib", lazy(r"NET/IB ?: (Using .{1,200}|No device found\.?)")),
    ("network", lazy(r"Using network (\S{1,40})")),
    ("gdr", lazy(r"(GPU Direct RDMA (?:Disabled|Enabled))")),
    ("cuda_driver", lazy(r"cudaDriverVersion (\d{4,6})")),
    ("connected", lazy(r"Connected (all (?:rings|trees)|NVLS tree)")),
    ("finished", lazy(r"- ((?:Destroy|Abort) COMPLETE)")),
    ("mnnvl", lazy(r"MNNVL busId \S+ fabric UUID \S+ cliqueId \S+ (state \d+)")),
    ("topology_file", lazy(r"Loading topology file (\S{1,300})")),
    ("p2p", lazy(r"(P2P is disabled.{0,120}|Could not enable P2P.{0,120}|isAllDirectP2p \d.{0,60})")),
    ("port", lazy(r"(NET/IB ?: .{0,60}[Gg]ot async event.{0,80})")),
)

TIMEOUT = lazy(
    r"Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(\d{1,12}),"
    r" OpType=(\w{1,32})(?:, NumelIn=(\d{1,18}))?(?:, NumelOut=(\d{1,18}))?"
    r"(?:, Timeout\(ms\)=(\d{1,12}))?\)(?: ran for (\d{1,12}) milliseconds)?"
)
LAST_WORK = lazy(r"[Ll]ast enqueued (?:NCCL )?work: (-?\d{1,12}), last completed (?:NCCL )?work: (-?\d{1,12})")
SIGNALLED = lazy(r"due to a collective timeout from\s{1,3}rank (\d{1,6})")
QUIET = lazy(
    r"destroy_process_group\(\) was not called|Environment variable \S+ is deprecated"
    r"|preparing to dump debug info"
    r"|First PG on this rank to signal|Using (?:non-device|device) (?:mesh"
    r"|as)|Guessing device ID|using GPU \d+ (?:as|to perform)"
)
SERVER = lazy(
    r"(?:\([A-Za-z_]\w{0,40}(?: [^)]{1,120})?\) ?|\s{0,4}\|\s{0,4}){0,2}(?:INFO|WARNING|ERROR"
    r"|DEBUG|CRITICAL):? {1,5}\S"
)
# Warnings after which NCCL goes on as well as before: no library for cards that are not there, functions that an older
# driver lacks, another order of the rings, Google's socket plugin that asks for a hint.
HARMLESS = lazy(
    r"Failed to open libibverbs\.so|(?:CUDA )?some PFN functions not found|Could not find a path for pattern \d"
    r"|Cannot get incoming CPU|Maximum retry reached for (?:accept|connect)"
)
GLOO = lazy(
    r"Gloo connectFullMesh failed with|\[[\w./-]{0,80}gloo/transport/tcp/\w{2,16}\.cc:\d{1,5}\]"
    r"|gloo::\w{2,12}Exception"
)

# Transports beside NCCL that print lines of their own: UCX, Mooncake (glog), NVSHMEM; and NCCL's, its front cut off.
TRANSPORT = lazy(
    r"\[\d{9,11}\.\d{3,9}\] \[[^\]\n]{1,255}\] {1,16}[\w.-]{1,80}:\d{1,6} {1,8}UCX  (?:ERROR|FATAL) {1,4}\S"
    r"|[EF](?:\d{4}|\d{8}) \d\d:\d\d:\d\d\.\d{1,9} {1,8}\d{1,10} (?:transfer_|rdma_|worker_pool|tcp_transport"
    r"|nvlink_transport|multi_transport)\w{0,40}\.(?:cpp|cc|h):\d{1,6}\] \S"
    r"|[\w./-]{0,200}nvshmem[\w./-]{0,200}:\d{1,6}: (?:non-zero status: -?\d|NULL value )"
    r"|NET/IB ?: Got completion from peer \S{0,120} ?with (?:error|status)"
)

ROW = lazy(
    r"^\s{1,16}(\d{1,16})\s{1,16}(\d{1,16})\s{1,12}(\w{3,10})\s{1,10}(\w{2,8})\s{1,10}(-?\d{1,6"
    r"})\s{1,10}(.{1,120})$"
)
OUT_OF_BOUNDS = lazy(r"#\s{0,4}Out of bounds values\s{0,4}:\s{0,4}(\d{1,12})\s{1,4}(OK|FAILED)")
TEST_FAILED = lazy(r"\S{1,255}: Test (?:NCCL|CUDA) failure \S{1,80}:\d{1,6} '")
TEST_ECHO = lazy(r" \.\. \S{1,255} pid \d{1,10}: Test failure ")
BANDWIDTH = lazy(r"#\s{0,4}Avg bus bandwidth\s{0,6}:\s{0,4}(\d{1,12}(?:\.\d{1,8})?)")
TEST_GPU = lazy(
    r"#\s{1,4}Rank\s{1,6}(\d{1,6}) .{0,24}?Pid\s{1,8}(\d{1,10}) on\s{1,16}(\S{1,255})"
    r" device\s{1,4}(\d{1,3}) \[(\S{2,20})\] (\S.{1,60})"
)
