"""Pastes: parts, names, originals, wraps; sectioned files; what is given twice; clocks of transports."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from analyzer.analysis import Analysis
from analyzer.analyze import analyze, investigate
from analyzer.intake.budget import Budget
from analyzer.intake.lines import physical
from analyzer.intake.paste import plain, unmark
from analyzer.intake.recognise import Part, arrange
from analyzer.intake.text import Block
from analyzer.reasoning.rulebook import load

FIXTURES = Path(__file__).parents[2] / "fixtures"
RULES = load()
KERNEL = (FIXTURES / "kernel_log/gsp-119-smi-wedge.txt").read_text()
SERVER = (FIXTURES / "vllm_log/engine-killed-0.32.log").read_text()
XID = "NVRM: Xid (PCI:0000:41:00): 31, pid={}, name=python3, Ch 00000008, intr 10000000. MMU Fault: ENGINE GRAPHICS"


def arranged(text: str) -> list[Part]:
    return arrange("x", list(physical(Block(text.encode(), 0, 1, last=True), Budget())), Budget())


def investigated(folder: Path, **files: str) -> Analysis:
    for name, text in files.items():
        (folder / name).write_text(text)
    return investigate([str(folder)], RULES)


def test_an_issue_body_is_cut_into_named_parts() -> None:
    env = (FIXTURES / "collect_env/vllm-0.33.txt").read_text()
    stack = (FIXTURES / "stacks/cubin-download.txt").read_text()
    body = ("### Your current environment\n\n<details>\n<summary>The output of <code>python collect_env.py</code>"
            f"</summary>\n\n```text\n{env}\n```\n\n</details>\n\n### \U0001f41b Describe the bug\n\nHangs. py-spy:\n"
            f"\n```\n{stack}```\n\ndmesg:\n~~~\n{KERNEL}~~~\n\n### Before submitting...\n\n- [x] I searched.\n")
    found = {part.path: part.parser.name if part.parser else None for part in arranged(body)}
    assert found == {
        "x/notes": None, "x/The output of python collect_env.py": "collect_env",
        "x/Describe the bug/Hangs. py-spy": "pyspy", "x/Describe the bug/dmesg": "kernel_log"}
    numbers = [line.number for part in arranged(body) for line in part.lines]
    assert sorted(numbers) == list(range(1, body.count("\n") + 1))


def test_a_log_that_holds_a_fence_stays_whole() -> None:
    assert [part.path for part in arranged(SERVER + "```\nprint(1)\n```\n" + SERVER)] == ["x"]


def test_what_was_pasted_is_quoted(tmp_path: Path) -> None:
    pasted = ("> [Sun Feb 23 16:24:18 2025] NVRM: Xid\u00a0(PCI:0000:9b:00): 79, name=&lt;unknown&gt;, "
              "GPU has fallen off the bus.")
    (tmp_path / "chat.txt").write_text(f"it died\n{pasted}\n")
    report = analyze([str(tmp_path / "chat.txt")], RULES)
    assert report.hypotheses[0].rule == "gpu-fallen-off-bus"
    quotes = [one.source.text for one in report.hypotheses[0].evidence_for if one.source]
    assert quotes
    assert set(quotes) == {pasted}


@pytest.mark.parametrize(("pasted", "meant"), [
    ("\u2014tensor-parallel-size 2 \u2013 ok", "--tensor-parallel-size 2 - ok"),
    ("\u201ca\u201d \u2019b\u2019", "\"a\" 'b'"), ("a\u00a0b\u200bc\u2026", "a bc..."),
    ("&lt;a &amp;&amp; b&gt;&nbsp;&#39;", "<a && b> '"), ("a&b; &unknown;", "a&b; &unknown;")])
def test_characters_of_editors_are_made_plain(pasted: str, meant: str) -> None:
    assert plain(pasted) == meant


@pytest.mark.parametrize("width", [60, 80, 100, 132])
@pytest.mark.parametrize("text", [KERNEL, SERVER])
def test_a_hard_wrapped_log_is_joined_again(text: str, width: int) -> None:
    wrapped = "".join(f"{line[at:at + width]}\n" for line in text.splitlines()
                      for at in range(0, max(len(line), 1), width))
    stamped = [line for line in text.splitlines() if len(line) > width and line[:1] in "[(" and "  " not in line]
    got = {line.text for part in arranged(wrapped) for line in part.lines}
    assert sum(line in got for line in stamped) >= 0.9 * len(stamped)


def test_a_table_and_a_plain_log_are_never_joined() -> None:
    for name in ("nvidia_smi/table.txt", "vllm_log/engine-killed-0.32.log", "kernel_log/gsp-119-smi-wedge.txt"):
        text = (FIXTURES / name).read_text()
        assert [line.text for part in arranged(text) for line in part.lines] == text.rstrip("\n").split("\n")


def test_pci_addresses_and_times_are_no_gutter() -> None:
    for rows in ([f"0{n}:00.0 VGA compatible controller: NVIDIA" for n in range(1, 8)],
                 [f"12:00:0{n} a" for n in range(8)],
                 [f"{n} GB of memory" for n in (1, 5, 9, 12, 40)]):
        lines = list(physical(Block("\n".join(rows).encode(), 0, 1), Budget()))
        assert [line.text for line in unmark(lines, lambda text: False).segments[0].lines] == rows


def bug_report(kernel: str) -> str:
    rule = "_" * 44
    smi = (FIXTURES / "nvidia_smi/query.txt").read_text()
    return (f"{rule}\n\nStart of NVIDIA bug report log file.  Please include this file, along\nwith a description\n"
            f"\nnvidia-bug-report.sh Version: 36211457\n\nDate: Mon Nov 30 21:08:11 2026\n\n{rule}\n\n*** /etc/issue"
            f"\n*** ls: -rw-r--r-- 1 root root 26 2024-02-13 10:08:05 /etc/issue\nUbuntu 24.04.1 LTS\n\n{rule}\n\n"
            f"/usr/bin/nvidia-smi --query\n\n{smi}\n{rule}\n\n*** /var/log/kern.log\n*** ls: -rw-r-- 1 a adm 9 x\n"
            f"{kernel}\n{rule}\n\n/usr/bin/dmesg:\n\n{kernel}\n{rule}\n\nEnd of NVIDIA bug report log file.\n")


def test_sections_of_a_bug_report_are_sources_with_the_lines_of_the_file(tmp_path: Path) -> None:
    text = bug_report(KERNEL)
    analysis = investigated(tmp_path, **{"nvidia-bug-report.log": text})
    paths = [read.path for read in analysis.bundle.reads if read.parser == "kernel_log"]
    assert paths == ["nvidia-bug-report.log/var/log/kern.log", "nvidia-bug-report.log/dmesg"]
    lines = text.split("\n")
    for event in analysis.bundle.events("kernel_log.xid"):
        assert "Xid" in lines[event.span.first_line - 1]
        assert text.encode()[event.span.start:].startswith(lines[event.span.first_line - 1].encode())
    alone = investigated(tmp_path, **{"nvidia-bug-report.log": KERNEL})
    assert [(one.rule.id, one.confidence, one.score) for one in analysis.ranked] == [
        (one.rule.id, one.confidence, one.score) for one in alone.ranked]
    assert len(analysis.bundle.events("kernel_log.xid")) == len(alone.bundle.events("kernel_log.xid"))


def test_a_cut_bug_report_says_so(tmp_path: Path) -> None:
    analysis = investigated(tmp_path, **{"nvidia-bug-report.log": bug_report(KERNEL)[:-2000]})
    assert [read.path for read in analysis.bundle.reads if not read.complete] == [
        "nvidia-bug-report.log", "nvidia-bug-report.log/dmesg"]


def test_containers_of_a_cluster_dump(tmp_path: Path) -> None:
    dump = "".join(f"==== START logs for container vllm of pod ai/vllm-{n} ====\n{SERVER}"
                   f"==== END logs for container vllm of pod ai/vllm-{n} ====\n" for n in (0, 1))
    analysis = investigated(tmp_path, dump=json.dumps({"kind": "EventList", "items": []}, indent=1) + "\n" + dump)
    assert [read.path for read in analysis.bundle.reads] == ["dump", "dump/ai/vllm-0/vllm", "dump/ai/vllm-1/vllm"]


def stamped(host: str, zone: str = "") -> str:
    start = datetime(2026, 11, 30, 20, 0, tzinfo=UTC)
    form = "%Y-%m-%dT%H:%M:%S" if zone else "%b %d %H:%M:%S"
    return "".join(f"{(start + timedelta(seconds=n)).strftime(form)}{zone} {host} kernel: {XID.format(n)}\n"
                   for n in range(4))


def test_one_kernel_message_in_three_logs_counts_once(tmp_path: Path) -> None:
    analysis = investigated(tmp_path, dmesg="".join(f"[{n + 900:5}.000000] {XID.format(n)}\n" for n in range(4)),
                            kern=stamped("n1"), journal=stamped("n1", "+0000"))
    assert len(analysis.bundle.events("kernel_log.xid")) == 4
    assert analysis.ranked[0].seen("for")[0].count == 4


def test_two_hosts_and_two_times_are_no_repeats(tmp_path: Path) -> None:
    analysis = investigated(tmp_path, one=stamped("n1"), two=stamped("n2"), again=stamped("n1").replace(" 20:", " 21:"))
    assert len(analysis.bundle.events("kernel_log.xid")) == 12


def test_a_log_from_two_collectors_counts_once_and_ties_its_clock(tmp_path: Path) -> None:
    docker = "".join(json.dumps({"log": f"{line}\n", "stream": "stderr", "time": "2026-11-30T21:22:35.5Z"}) + "\n"
                     for line in SERVER.splitlines())
    once = investigated(tmp_path, kubectl=SERVER)
    twice = investigated(tmp_path, docker=docker, kubectl=SERVER)
    assert {kind: len(events) for kind, events in twice.bundle.by_kind.items()} == {
        kind: len(events) for kind, events in once.bundle.by_kind.items()}
    assert twice.bundle.timeline.aligned.keys() > {"UTC"}


def test_ray_repeats_are_a_count(tmp_path: Path) -> None:
    analysis = investigated(tmp_path, driver=(
        "(RayWorkerWrapper pid=101, ip=10.0.0.2) ERROR 11-30 20:18:13 [a.py:99] boom [repeated 7x across cluster]\n"
        "(RayWorkerWrapper pid=102, ip=10.0.0.3) n3:102:33 [0] net_ib.cc:94 NCCL WARN NET/IB : Got async event\n"))
    counts = [event.fields.get("count") for event in analysis.bundle.events("server_log.record")]
    assert 7 in counts
    assert [event.actor.host for event in analysis.bundle.events("collective.nccl_warn")] in (["n3"], ["10.0.0.3"])


def test_a_journal_with_kernel_and_server_lines_goes_to_both() -> None:
    server = [line for line in SERVER.splitlines() if line][:40]
    mixed = "".join(f"Nov 30 20:00:{n:02} n1 {f'kernel: {XID.format(n)}' if n % 4 == 0 else f'vllm[7]: {server[n]}'}\n"
                    for n in range(40))
    found = {part.parser.name: part for part in arranged(mixed) if part.parser}
    assert set(found) == {"kernel_log", "vllm_log"}
    assert found["vllm_log"].lines[0].text == server[1]
    assert found["vllm_log"].lines[0].host == "n1"


@pytest.mark.parametrize("cut", [30, 200, 901])
def test_a_cut_export_keeps_what_came_before(cut: int) -> None:
    entries = json.dumps([{"insertId": str(n), "textPayload": line, "timestamp": f"2026-11-30T20:00:{n:02}Z"}
                          for n, line in enumerate(SERVER.splitlines()[:40])], indent=1)
    part = arranged(entries[:-cut])[0]
    assert part.transports == ("JSON export of a log store",)
    assert len(part.lines) >= 30
