"""What kernel-log lines mean: roles, decoding, blocks, boots, refusal, and the reading of large files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from parsers import xid_catalogue
from parsers.contract import Line
from parsers.event import Event
from parsers.kernel_log import MARKS, PARSER
from parsers.kernel_log.log import gpu_address
from parsers.kernel_log.stall import frames_of, waits_on

ROOT = Path(__file__).parents[3]
FIXTURES = sorted((ROOT / "fixtures" / "kernel_log").glob("*.txt"))


def lines_of(text: str) -> list[Line]:
    lines, start = [], 0
    for number, row in enumerate(text.split("\n"), start=1):
        size = len(row.encode()) + 1
        lines.append(Line(number, start, start + size, row))
        start += size
    return lines


def events_of(text: str) -> list[Event]:
    return [event for event in PARSER.read(lines_of(text), "dmesg") if isinstance(event, Event)]


def xids(text: str) -> list[dict[str, Any]]:
    return [event.fields for event in events_of(text) if event.kind == "kernel_log.xid"]


def one(text: str) -> Event:
    (event,) = [event for event in events_of(text) if event.kind != "fact"]
    return event


def xid(at: float, code: int, body: str = "", pci: str = "0000:41:00") -> str:
    return f"[{at:12.6f}] NVRM: Xid (PCI:{pci}): {code}, {body}"


@pytest.mark.parametrize(
    ("line", "pci", "code", "pid", "name", "message"),
    [
        ("NVRM: Xid (PCI:0000:41:00): 43, pid=7, name=pt_main_thread, Ch 00000008", "0000:41:00", 43, 7,
         "pt_main_thread", "Ch 00000008"),
        ("NVRM: Xid (PCI:0000:41:00 GPU-I:05): 43, pid=7, name=p, Ch 8", "0000:41:00", 43, 7, "p", "Ch 8"),
        ("NVRM: Xid (PCI:0000:41:00 GPU-I:05 GPU-CI:00): 94, pid=7, name=p, Contained", "0000:41:00", 94, 7, "p",
         "Contained"),
        ("NVRM: Xid (PCI:000F:01:00): 79, GPU has fallen off the bus.", "000f:01:00", 79, None, None,
         "GPU has fallen off the bus."),
        ("NVRM: Xid (0000:03:00): 14, Channel 00000001", "0000:03:00", 14, None, None, "Channel 00000001"),
        ("NVRM: Xid (PCI:0000:41:00): 31, pid=13641, Ch 00000008, intr 00000000.", "0000:41:00", 31, 13641, None,
         "Ch 00000008, intr 00000000."),
        ("NVRM: Xid (PCI:0000:41:00): 48, pid='<unknown>', name=<unknown>, DBE", "0000:41:00", 48, None, None, "DBE"),
        ("NVRM: GPU3 func: Xid (PCI:0000:41:00): 8, pid=1, name=a b, channel 0x8", "0000:41:00", 8, 1, "a b",
         "channel 0x8"),
    ],
)  # fmt: skip
def test_xid_shapes(line: str, pci: str, code: int, pid: int | None, name: str | None, message: str) -> None:
    event = one(line)
    fields = event.fields
    assert (fields["pci"], fields["code"], fields.get("pid"), fields.get("name"), fields["message"]) == (
        pci, code, pid, name, message,
    )  # fmt: skip
    assert event.actor.gpu == pci


def test_a_quoted_xid_is_none() -> None:
    assert xids("Mar 29 15:38:59 node1 kernel: audit: user said NVRM-like Xid (PCI:0000:41:00): 79, gone") == []
    assert xids("[    1.000000] foo: last Xid (PCI:0000:41:00): 79, gone") == []


def test_43_belongs_to_the_fault_of_its_own_process() -> None:
    text = "\n".join(
        [
            xid(1, 13, "Graphics SM Warp Exception on (GPC 1, TPC 2, SM 0): MMU Fault"),
            xid(1.1, 43, "pid=10, name=a, Ch 8"),
            xid(1.2, 43, "pid=11, name=b, Ch 8"),
            xid(400, 43, "pid=10, name=a, Ch 8"),
        ]
    )
    assert [(f["role"], f.get("cause_line")) for f in xids(text)] == [
        ("primary", None), ("consequence", 1), ("primary", None), ("primary", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("codes", "roles"),
    [
        ([119, 109, 45, 79, 154], "pcccc"),
        ([62, 154, 45], "pcc"),
        ([79, 119, 31, 154], "pccc"),
        ([48, 63, 94, 154], "pccc"),
        ([38, 109, 109], "pcc"),
        ([109, 109], "pp"),
        ([74, 45], "pc"),
        ([45], "c"),
        ([154], "c"),
        ([64], "p"),
        ([31, 8], "pc"),
    ],
)
def test_roles(codes: list[int], roles: str) -> None:
    found = xids("\n".join(xid(10 + at, code, "x") for at, code in enumerate(codes)))
    assert "".join(f["role"][0] for f in found) == roles


def test_roles_end_with_time_gpu_and_boot() -> None:
    assert [f["role"] for f in xids("\n".join([xid(1, 38), xid(900, 109)]))] == ["primary", "primary"]
    assert [f["role"] for f in xids("\n".join([xid(1, 38), xid(2, 109, pci="0000:42:00")]))] == ["primary", "primary"]
    text = "\n".join([xid(900, 38), "[    0.000000] Linux version 6.8.0", xid(2, 109)])
    assert [f["role"] for f in xids(text)] == ["primary", "primary"]


def test_recovery_action_and_previous() -> None:
    (fields,) = xids(xid(1, 154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"))
    assert (fields["action"], fields["first_action"]) == ("Node Reboot Required", "reboot")
    (fields,) = xids(xid(1, 154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"))
    assert fields["first_action"] == "none"
    (fields,) = xids(xid(1, 45, "pid=9, name=x, Ch 1 caused by previous Xid 149"))
    assert fields["previous"] == 149


def test_link_events_are_decoded_from_their_words() -> None:
    words = "(0x0409a0c2 0x00000008 0x00000001 0x00000000 0x00100000 0x00000004)"
    (fields,) = xids(xid(1, 145, f"RLW_RXPIPE Nonfatal XC0 i0 Link 13 {words}"))
    assert (fields["unit"], fields["link"], fields["sub_reason"], fields["severity"]) == ("RLW_RXPIPE", 13, 0, "warn")
    decoded = xid_catalogue.decode_link_event(149, (0x004505C6, 0))
    assert decoded is not None and decoded.unit.endswith("NETIR_LINK_DOWN") and decoded.sub_reason == 4
    assert decoded.severity == "Link Fatal" and decoded.immediate == "RESET_GPU"
    assert xid_catalogue.decode_link_event(145, (0,)) is None
    assert xid_catalogue.decode_link_event(145, (0xFFFFFFFF, 1)) is None


def test_catalogue() -> None:
    assert len(xid_catalogue.xids()) > 150 and len(xid_catalogue.sxids()) > 400
    entry = xid_catalogue.lookup(79)
    assert (entry.mnemonic, entry.scope, entry.severity) == (
        "ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS", "gpu", "fatal",
    )  # fmt: skip
    assert xid_catalogue.lookup(9999).meaning == xid_catalogue.UNLISTED
    assert xid_catalogue.lookup_sxid(12028).fatality == "non_fatal"
    assert {e.severity for e in xid_catalogue.xids().values()} <= {"info", "warn", "error", "fatal"}


@pytest.mark.parametrize(
    ("text", "address"),
    [("0000:41:00.0", "0000:41:00"), ("PCI:0000:B3:00", "0000:b3:00"), ("00000000:C3:00.0", "0000:c3:00"),
     ("3b:00.0", "0000:3b:00"), ("0x41:0x00.0", "0000:41:00"), ("x", None)],
)  # fmt: skip
def test_addresses(text: str, address: str | None) -> None:
    assert gpu_address(text) == address


def test_version_clash_in_its_three_layouts() -> None:
    split = (
        "[ 7386.259769] NVRM: API mismatch: the client has the version 515.48.07, but\n"
        "               NVRM: this kernel module has the version 510.73.05.  Please\n"
    )
    new = (
        "[    1.400000] NVRM: API mismatch: the client 'nvidia-smi' (pid 1234)\n"
        "               NVRM: has the version 515.48.07, but this kernel module has\n"
        "               NVRM: the version 510.73.05.  Please make sure\n"
    )
    escaped = (
        "Jun 17 20:18:09 node1 kernel: NVRM: API mismatch: the client has the version 515.48.07, but"
        "#012NVRM: this kernel module has the version 510.73.05.  Please"
    )
    for text in (split, new, escaped):
        event = one(text)
        assert event.kind == "kernel_log.api_mismatch" and event.span.first_line == 1
        assert (event.fields["client"], event.fields["module"]) == ("515.48.07", "510.73.05")


def test_lost_at_probe_names_the_card_in_every_layout() -> None:
    each = (
        "Mar 29 15:38:59 node1 kernel: NVRM: The NVIDIA GPU 0000:b3:00.0\n"
        "Mar 29 15:38:59 node1 kernel: NVRM: (PCI ID: 10de:26b5) installed in this system has\n"
        "Mar 29 15:38:59 node1 kernel: NVRM: fallen off the bus and is not responding to commands."
    )
    escaped = (
        "Mar 29 15:38:59 node1 kernel: NVRM: The NVIDIA GPU 0000:b3:00.0#012NVRM: (PCI ID: 10de:26b5) installed in"
        " this system has#012NVRM: fallen off the bus and is not responding to commands."
    )
    for text in (each, escaped):
        event = one(text)
        assert (event.kind, event.fields["pci"]) == ("kernel_log.fallen_off_bus", "0000:b3:00")


def test_gsp_log_file_is_harmless_and_gsp_firmware_is_not() -> None:
    line = "[3.000000] nvidia 0000:41:00.0: Direct firmware load for nvidia/580.95/gsp_{}ga10x.bin failed with error -2"
    assert events_of(line.format("log_")) == []
    assert one(line.format("")).fields["what"] == "missing"
    assert events_of("[ 3.000001] NVRM: RmFetchGspRmImages: Failed to load gsp_log_*.bin (non-fatal)") == []


def test_oom_is_one_event_for_one_victim() -> None:
    text = (
        "[1.000000] pool invoked oom-killer: gfp_mask=0x6200ca\n"
        "[1.000001] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/kubepods/x,"
        "task_memcg=/kubepods/x,task=VLLM::EngineCor,pid=44,uid=0\n"
        "[1.000002] Memory cgroup out of memory: Killed process 44 (VLLM::EngineCor) total-vm:1kB, anon-rss:77kB\n"
        "[1.000003] oom_reaper: reaped process 44 (VLLM::EngineCor), now anon-rss:0kB"
    )
    event = one(text)
    assert event.span.first_line == 3
    assert (event.fields["victim"], event.fields["pid"], event.fields["constraint"], event.fields["anon_rss_kb"]) == (
        "VLLM::EngineCor", 44, "memcg", 77,
    )  # fmt: skip
    assert event.fields["invoked_by"] == "pool"


def test_hung_task_frames_in_three_dialects() -> None:
    assert frames_of(" nfs_wait_bit_killable+0x1e/0x90 [nfs]") == ["nfs_wait_bit_killable [nfs]"]
    assert frames_of(" ? wait_woken+0x60/0x60") == []
    assert frames_of(" [<ffffffffbd3d2146>] __handle_sysrq+0xf6/0x150") == ["__handle_sysrq"]
    assert frames_of("[<80a87848>] (__schedule) from [<80a88018>] (schedule+0x3c/0xa0)") == ["__schedule", "schedule"]
    assert waits_on(["__schedule", "rpc_wait_bit_killable [sunrpc]"]) == "nfs"
    assert waits_on(["__schedule", "ll_file_read [lustre]"]) == "lustre"
    assert waits_on(["__schedule", "request_wait_answer"]) == "fuse"
    assert waits_on(["__schedule", "os_acquire_rwlock_write [nvidia]"]) == "nvidia"
    assert waits_on(["__schedule", "io_schedule", "folio_wait_bit"]) == "block"
    assert waits_on(["__schedule", "pipe_read"]) == "other"


def test_boots_are_counted_from_banners_separators_and_falling_clocks() -> None:
    def boots(text: str) -> int:
        return int(PARSER.inspect(lines_of(text), "x")["boots"])

    assert boots("[  100.000000] a\n[  101.000000] b") == 1
    assert boots("[    0.000000] Linux version 6.8.0\n[  101.000000] b") == 1
    assert boots("[  100.000000] a\n[    0.000000] Linux version 6.8.0\n[    0.100000] b") == 2
    assert boots("[  100.000000] a\n[    5.000000] b") == 2
    assert boots("[  100.000000] a\n[   99.900000] b") == 1  # CPUs print a little out of order
    journal = (
        "-- Boot 0123abcd0123abcd --\nMar 29 15:38:59 n kernel: Linux version 6.8.0\n"
        "-- Reboot --\nMar 30 15:38:59 n kernel: x"
    )
    assert boots(journal) == 2
    assert boots("") == 0


def test_stops_and_unclean_starts() -> None:
    text = (
        "Mar 29 15:38:59 n systemd[1]: Reached target System Reboot.\n"
        "Mar 29 15:39:59 n kernel: EXT4-fs (nvme0n1p2): recovery complete\n"
        "Mar 29 15:39:59 n systemd-journald[3]: File /var/log/journal/x/a.journal corrupted or uncleanly shut down,"
        " renaming and replacing.\n"
        "Mar 29 15:39:59 n systemd-journald[3]: Journal stopped\n"
    )
    assert [(e.kind, e.fields["what"]) for e in events_of(text)] == [
        ("kernel_log.shutdown", "System Reboot"), ("kernel_log.unclean_start", "ext4"),
        ("kernel_log.unclean_start", "journal"),
    ]  # fmt: skip


def test_a_healthy_boot_shows_no_trouble() -> None:
    text = (ROOT / "fixtures" / "kernel_log" / "healthy-boot.log").read_text(encoding="utf-8")
    events = events_of(text)
    complaints = [event.text for event in events if event.kind == "kernel_log.complaint"]
    assert [text for text in complaints if "fork rejected by pids controller" not in text] == []
    kinds = {event.kind for event in events} - {"kernel_log.complaint"}
    assert kinds <= {"fact", "kernel_log.boot", "kernel_log.driver_loaded", "kernel_log.network"}


def test_the_killer_is_known_by_any_line_that_is_left_of_it() -> None:
    (called,) = events_of("[   18.000000] pool invoked oom-killer: gfp_mask=0x6200ca(GFP_HIGHUSER_MOVABLE), order=0\n")
    assert (called.kind, called.fields["invoked_by"]) == ("kernel_log.oom_kill", "pool")
    (reaped,) = events_of("[   18.000000] oom_reaper: reaped process 1440763 (perl), now anon-rss:0kB, file-rss:0kB\n")
    assert (reaped.kind, reaped.fields["victim"], reaped.fields["pid"]) == ("kernel_log.oom_kill", "perl", 1440763)


def test_only_the_first_complaint_that_nobody_knows_is_told() -> None:
    text = "[    1.0] foo bar: DMA engine stuck\n[    2.0] foo bar: reset failed\n[    3.0] foo bar: link is ready\n"
    assert [(e.kind, e.span.first_line) for e in events_of(text)] == [("kernel_log.complaint", 1)]


def test_two_clocks_in_one_line_are_told_once_per_boot() -> None:
    text = "\n".join(f"Sep 19 16:18:{at:02d} n kernel: [{100 + at}.500000] x" for at in range(5))
    (event,) = events_of(text)
    assert (event.kind, event.fields["uptime"]) == ("kernel_log.clock_pair", 100.5)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_sniff_and_marks_hold_for_every_fixture(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert PARSER.sniff(text) >= (0.9 if text.lstrip()[0] in "[<kMSFjD2" and not text.startswith("NVRM") else 0.8)
    for event in events_of(text):
        if event.kind == "kernel_log.complaint":
            continue  # of a large log it is looked for in the ends only
        assert any(mark in event.text.encode() for mark in MARKS), event.text


def test_of_a_large_file_only_marked_lines_are_needed() -> None:
    text = (ROOT / "fixtures" / "kernel_log" / "shapes.txt").read_text(encoding="utf-8")
    lines = lines_of(text)
    marked = [line for line in lines if any(mark in line.text.encode() for mark in MARKS)]
    whole = {(e.kind, e.span.first_line) for e in PARSER.read(lines, "x") if isinstance(e, Event)}
    partly = {(e.kind, e.span.first_line) for e in PARSER.read(marked, "x") if isinstance(e, Event)}
    lost = {(kind, line) for kind, line in whole - partly if kind != "kernel_log.complaint"}
    assert lost <= {("kernel_log.clock_pair", 1)}


@pytest.mark.parametrize(
    "text",
    [
        "INFO 10-10 08:00:01 [kernel.py:58] Selected CutlassFP8ScaledMMLinearKernel for ModelOptFp8LinearMethod\n" * 9,
        'Process 12: python3\nPython v3.12\n\nThread 12 (active): "MainThread"\n    synchronize (torch/cuda.py:1)\n',
        'vllm:num_requests_running{model_name="m"} 1.0\nvllm:generation_tokens_total{model_name="m"} 7.0\n',
        "node1:830:830 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n",
        "Nov 30 20:18:05 node1 vllm[77]: INFO 11-30 20:18:05 [core.py:3] Xid is a word\n" * 5,
        json.dumps({"asctime": "2026-11-30 20:42:11,191", "levelname": "INFO", "message": "kernel: NVRM"}) + "\n",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04\nGCC version:  gcc 13\n",
        "", "\n\n",
    ],
)  # fmt: skip
def test_foreign_files_are_refused(text: str) -> None:
    assert PARSER.sniff(text) <= 0.3
    assert not any(PARSER.claims(row) for row in text.split("\n"))
    assert events_of(text) == []


def test_claims_only_what_stands_at_the_start() -> None:
    for line in (
        "[ 1843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0",
        "               NVRM: (PCI ID: 10de:26b5) installed in this system has",
        "Mar 29 15:38:59 kernel: x",
        "NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus.",
        "-- Boot 0123abcd0123abcd --",
        "python3[12]: segfault at 10 ip 7f sp 7f error 4 in libc.so.6[7f+1]",
    ):
        assert PARSER.claims(line)
    assert not PARSER.claims("user pasted: NVRM: Xid (PCI:0000:41:00): 79")
    assert not PARSER.claims("ERROR 10-10 08:00:01 NVRM: Xid (PCI:0000:41:00): 79")


@pytest.mark.parametrize(
    "unit",
    ["[", "<", "NVRM: Xid (PCI:", '{"pri":1,', "client has the version ", "kern  :warn  : ", "messages:", " on ", "> ",
     "EDAC MC0: 1 CE on ", "LustreError: operation ", "(GPC 1, TPC ", "0x", "\\x0a", "\u2028", "Call Trace: ", "- "],
)  # fmt: skip
def test_hostile_lines_cost_little(unit: str) -> None:
    row = (unit * 65536)[:65536]
    text = "\n".join([row, "[    1.000000] NVRM: " + row, "Mar 29 15:38:59 n kernel: " + row])
    PARSER.sniff(row)
    PARSER.claims(row)
    events_of(text)
    PARSER.inspect(lines_of(text), "x")


def test_a_service_that_a_signal_ended() -> None:
    line = "Dec 01 06:48:11 node1 systemd[1]: {unit}.service: Main process exited, code={code}, status={status}"

    def exits(unit: str, code: str, status: str) -> list[Any]:
        events = events_of(line.format(unit=unit, code=code, status=status))
        return [event.fields["exit_code"] for event in events if event.kind == "process.exit"]

    assert exits("vllm", "killed", "9/KILL") == [-9]
    assert exits("vllm", "dumped", "6/ABRT") == [-6]
    assert exits("vllm", "exited", "1/FAILURE") == [1]
    assert exits("vllm", "killed", "15/TERM") == []  # how a stop ends it
    assert exits("vllm", "exited", "0/SUCCESS") == []
    assert exits("motd-news", "exited", "1/FAILURE") == []
