"""Every container of a kernel line: prefix off, clock read, nothing guessed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from parsers.contract import Line
from parsers.kernel_log.prefix import peel
from parsers.kernel_log.record import Record, records
from parsers.stamp import ClockKind

MESSAGE = "NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus."


def utc(*parts: int) -> float:
    return datetime(*parts, tzinfo=UTC).timestamp()  # type: ignore[misc,arg-type]


BOOT, WALL, UTC_ = ClockKind.BOOT, ClockKind.WALL, ClockKind.UTC

CONTAINERS = [
    ("6,3998,261229012,-;", "261229012", BOOT, 261.229012),
    ("<4>[93297.027938] ", "93297.027938", BOOT, 93297.027938),
    ("[    0.000000] ", "0.000000", BOOT, 0.0),
    ("[  130.456250] [   T1946] ", "130.456250", BOOT, 130.45625),
    ("[  130.456250] [    C12] ", "130.456250", BOOT, 130.45625),
    ("[93297.027938 <    0.000000>] ", "93297.027938", BOOT, 93297.027938),
    ("kern  :warn  : [93297.027938] ", "93297.027938", BOOT, 93297.027938),
    ("kern  :notice: [93297.027938] ", "93297.027938", BOOT, 93297.027938),
    ("[93297.027938] node1 kernel: ", "93297.027938", BOOT, 93297.027938),
    ("[Tue Dec  1 21:38:21 2026] ", "Tue Dec  1 21:38:21 2026", WALL, utc(2026, 12, 1, 21, 38, 21)),
    ("[wto gru  1 21:38:21 2026] ", "wto gru  1 21:38:21 2026", WALL, utc(2026, 12, 1, 21, 38, 21)),
    ("[二 12月  1 21:38:21 2026] ", "二 12月  1 21:38:21 2026", WALL, utc(2026, 12, 1, 21, 38, 21)),
    ("[Dec 1 21:38] ", "Dec 1 21:38", WALL, utc(1972, 12, 1, 21, 38)),
    ("2026-12-01T21:38:21,027938+00:00 ", "2026-12-01T21:38:21,027938+00:00", UTC_,
     utc(2026, 12, 1, 21, 38, 21) + 0.027938),
    ("kern  :warn  : 2025-01-21T04:41:44,283302+01:00 ", "2025-01-21T04:41:44,283302+01:00", UTC_,
     utc(2025, 1, 21, 3, 41, 44) + 0.283302),
    ("Mar 29 15:38:59 node1 kernel: ", "Mar 29 15:38:59", WALL, utc(1972, 3, 29, 15, 38, 59)),
    ("Mar 29 15:38:59 kernel: ", "Mar 29 15:38:59", WALL, utc(1972, 3, 29, 15, 38, 59)),
    ("Mar 29 15:38:59.121546 node1 kernel: ", "Mar 29 15:38:59.121546", WALL, utc(1972, 3, 29, 15, 38, 59) + 0.121546),
    ("Feb 29 15:38:59 node1 kernel: ", "Feb 29 15:38:59", WALL, utc(1972, 2, 29, 15, 38, 59)),
    ("2026-03-29T15:38:59+0200 node1 kernel: ", "2026-03-29T15:38:59+0200", UTC_, utc(2026, 3, 29, 13, 38, 59)),
    ("2026-03-29T15:38:59+02:00 node1 kernel: ", "2026-03-29T15:38:59+02:00", UTC_, utc(2026, 3, 29, 13, 38, 59)),
    ("2026-03-29T15:38:59.121546+0200 node1 kernel: ", "2026-03-29T15:38:59.121546+0200", UTC_,
     utc(2026, 3, 29, 13, 38, 59) + 0.121546),
    ("1774798739.121546 node1 kernel: ", "1774798739.121546", UTC_, 1774798739.121546),
    ("Sep 19 16:18:02 node1 kernel: [68183.615790] ", "Sep 19 16:18:02", WALL, utc(1972, 9, 19, 16, 18, 2)),
    ("2026-03-29T15:38:59.121546+02:00 node1 kernel: [93297.027938] ", "2026-03-29T15:38:59.121546+02:00", UTC_,
     utc(2026, 3, 29, 13, 38, 59) + 0.121546),
    ("kwi 15 07:56:59 node1 kernel: ", "kwi 15 07:56:59", WALL, utc(1972, 4, 15, 7, 56, 59)),
    ("1月 02 03:04:05 node1 kernel: ", "1月 02 03:04:05", WALL, utc(1972, 1, 2, 3, 4, 5)),
    ("messages:Jun 17 20:18:09 node1 kernel: ", "Jun 17 20:18:09", WALL, utc(1972, 6, 17, 20, 18, 9)),
    ("kern.log.1-Jun 17 20:18:09 node1 kernel: ", "Jun 17 20:18:09", WALL, utc(1972, 6, 17, 20, 18, 9)),
    ("/var/log/syslog:123:Jun 17 20:18:09 node1 kernel: ", "Jun 17 20:18:09", WALL, utc(1972, 6, 17, 20, 18, 9)),
    ("2026-03-29T15:38:59.121546123Z [   12.123456] ", "12.123456", BOOT, 12.123456),
    ("2026-03-29T15:38:59.121546123+00:00 stderr F [   12.123456] ", "12.123456", BOOT, 12.123456),
    ("[pod/driver-abc/driver] [   12.123456] ", "12.123456", BOOT, 12.123456),
    ("driver-1  | [   12.123456] ", "12.123456", BOOT, 12.123456),
    ("> [   12.123456] ", "12.123456", BOOT, 12.123456),
    ("192.0.2.10: kern: warning: [2026-01-02T03:04:05.123456789Z]: ", "2026-01-02T03:04:05.123456789Z", UTC_,
     utc(2026, 1, 2, 3, 4, 5) + 0.123456789),
    ("<4>1 2026-03-29T15:38:59.121546+02:00 node1 kernel - - - ", "2026-03-29T15:38:59.121546+02:00", UTC_,
     utc(2026, 3, 29, 13, 38, 59) + 0.121546),
    ("Tue 2026-03-31 15:38:59 CEST node1 kernel: ", "2026-03-31 15:38:59", WALL, utc(2026, 3, 31, 15, 38, 59)),
]  # fmt: skip


@pytest.mark.parametrize(("prefix", "written", "kind", "value"), CONTAINERS)
def test_container(prefix: str, written: str, kind: ClockKind, value: float) -> None:
    found = peel(prefix + MESSAGE)
    assert found is not None and found.is_kernel
    assert found.message == MESSAGE
    assert found.stamp is not None
    assert (found.stamp.text, found.stamp.clock) == (written, kind)
    assert found.stamp.value == pytest.approx(value, abs=1e-5)
    assert found.stamp.year_known == (value > utc(1973, 1, 1) or kind is BOOT)


@pytest.mark.parametrize(
    "text",
    [
        "INFO 10-10 08:00:01 [kernel.py:58] Selected FlashInferFP8ScaledMMLinearKernel for ModelOptFp8LinearMethod",
        "(EngineCore_DP0 pid=3) INFO 11-30 20:18:05 [core.py:3] NVRM: no",
        "2026-03-29 15:38:59,121 INFO kernel: x",
        "[12:00:00] NVRM: x",
        "[Wed Oct 11 14:32:52 2000] [error] [client 192.0.2.1] kernel: x",
        '[    45.123] (II) LoadModule: "nvidia"',
        'Thread 123 (active): "MainThread"',
        'vllm:num_requests_running{model_name="m"} 1.0',
        "# HELP x y",
        "",
    ],
)
def test_foreign_lines_are_left_alone(text: str) -> None:
    assert peel(text) is None


def test_second_clock_host_and_level() -> None:
    found = peel("Sep 19 16:18:02 node1 kernel: [68183.615790] x")
    assert found is not None and (found.uptime, found.host) == (68183.61579, "node1")
    found = peel("kern  :err   : [1.000000] x")
    assert found is not None and found.level == "err"
    found = peel("Mar 29 15:38:59 node1 systemd[1]: Started x")
    assert found is not None and (found.is_kernel, found.writer, found.pid) == (False, "systemd", 1)


def test_a_month_in_an_unknown_language_leaves_the_time_of_day() -> None:
    found = peel("xyz 15 07:56:59 node1 kernel: x")
    assert found is not None and found.stamp is not None
    assert (found.stamp.date_known, found.stamp.value) == (False, 7 * 3600 + 56 * 60 + 59)


def read(text: str) -> list[Record]:
    offset, lines = 0, []
    for number, row in enumerate(text.split("\n"), start=1):
        size = len(row.encode()) + 1
        lines.append(Line(number, offset, offset + size, row))
        offset += size
    return list(records(lines))


def test_dmesg_json_in_one_line_and_spread() -> None:
    one = (
        '{"dmesg":[{"pri":4,"time":93297.027938,"msg":"NVRM: \\"x\\""},'
        '{"pri":4,"time":    0.000000,"msg":"b\\n<6>[ 1.0] raw"}]}'
    )
    assert [(r.message, r.stamp and r.stamp.value) for r in read(one)] == [('NVRM: "x"', 93297.027938), ("b", 0.0)]
    spread = '{\n   "dmesg": [\n  {\n     "pri": 4,\n     "time":     0.500000,\n     "msg": "hello"\n  },{\n'
    found = [r for r in read(spread) if r.form == "dmesg-json"]
    assert [(r.message, r.level, r.line.number) for r in found] == [("hello", "warn", 6)]


def test_journal_json_bytes_pretty_and_export() -> None:
    entry = (
        '{"__REALTIME_TIMESTAMP":"1774798739121546","_SOURCE_MONOTONIC_TIMESTAMP":"93297027938","_BOOT_ID":"ab",'
        '"PRIORITY":"4","_TRANSPORT":"kernel","MESSAGE":"NVRM: x","_HOSTNAME":"node1"}'
    )
    (record,) = read(entry)
    assert (record.message, record.host, record.uptime, record.is_kernel) == ("NVRM: x", "node1", 93297.027938, True)
    (record,) = read('{"MESSAGE":[78,86,82,77,58,32,255],"_TRANSPORT":"kernel"}')
    assert record.message == "NVRM: \\xff"
    assert read('{"MESSAGE":null,"_TRANSPORT":"kernel"}') == []
    pretty = '{\n\t"__REALTIME_TIMESTAMP" : "1774798739121546",\n\t"_TRANSPORT" : "kernel",\n\t"MESSAGE" : "p"\n}'
    assert [r.message for r in read(pretty)] == ["p"]
    export = (
        "__CURSOR=s=1\n__REALTIME_TIMESTAMP=1774798739121546\nMESSAGE=one\n_TRANSPORT=kernel\n\n"
        "__CURSOR=s=2\nMESSAGE=two\n"
    )
    assert [r.message for r in read(export)] == ["one", "two"]


def test_relative_dmesg_counts_from_the_minute_that_was_printed() -> None:
    found = read("[  +0.500000] before\n[Dec 1 21:38] a\n[  +1.972063] b\n[  +2.000000] c")
    assert found[0].stamp is None
    assert found[3].stamp is not None and found[1].stamp is not None
    assert found[3].stamp.value - found[1].stamp.value == pytest.approx(3.972063)


def test_wrapped_and_continued_lines() -> None:
    wrapped = (
        "[18026.221140] Memory cgroup out of memory: Killed process 140339 (python3) total-vm:120832\n"
        "  kB, anon-rss:15596kB, file-rss:8924kB, shmem-rss:0kB, UID:0 pgtables:276kB\n"
    )
    (record,) = read(wrapped)
    assert "anon-rss:15596kB" in record.message
    first, second = read(
        "[ 7386.259769] NVRM: API mismatch: the client has X, but\n               NVRM: this kernel module"
    )
    assert second.stamp == first.stamp and second.message == "NVRM: this kernel module"
    (record,) = read("Jun 17 20:18:09 node1 kernel: NVRM: a, but#012NVRM: b")
    assert record.message == "NVRM: a, but\nNVRM: b"


def test_talosctl_of_one_node_may_lack_the_address() -> None:
    found = peel(
        "kern: warning: [2023-09-14T03:08:37.434129757Z]: NVRM: The NVIDIA probe routine failed for 1 device(s)."
    )
    assert found is not None and found.form == "talos" and found.host is None and found.is_kernel
