"""The same artifact in every wrapping gives the same verdict; cutting it never makes the verdict surer or longer."""

from __future__ import annotations

import bz2
import gzip
import html
import io
import json
import lzma
import os
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from analyzer.analysis import Analysis
from analyzer.analyze import investigate
from analyzer.intake.transport import DEPTH, transports_of
from analyzer.reasoning.evidence import Answer
from analyzer.reasoning.match import findings
from analyzer.reasoning.rulebook import load

FIXTURES = Path(__file__).parents[2] / "fixtures"
START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def _lines(text: str) -> list[str]:
    return text.rstrip("\n").split("\n")


def _stamp(index: int) -> str:
    return (START + timedelta(milliseconds=10 * index)).strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"


def _each(shape: Callable[[int, str], str]) -> Callable[[str], bytes]:
    return lambda text: ("\n".join(shape(i, line) for i, line in enumerate(_lines(text))) + "\n").encode()


def docker_json(text: str) -> bytes:
    """json-file, long lines split at 16 KiB (here 200 characters)."""
    out = []
    for i, line in enumerate(_lines(text)):
        pieces = [line[at:at + 200] for at in range(0, len(line), 200)] or [""]
        out += [json.dumps({"log": f"{piece}\n" if n == len(pieces) - 1 else piece, "stream": "stderr",
                            "time": _stamp(i)}) for n, piece in enumerate(pieces)]
    return ("\n".join(out) + "\n").encode()


def cri(text: str) -> bytes:
    """CRI with partial lines."""
    out = []
    for i, line in enumerate(_lines(text)):
        pieces = [line[at:at + 150] for at in range(0, len(line), 150)] or [""]
        out += [f"{_stamp(i)} stderr {'F' if n == len(pieces) - 1 else 'P'} {piece}" for n, piece in enumerate(pieces)]
    return ("\n".join(out) + "\n").encode()


def journal_json(text: str) -> bytes:
    return _each(lambda i, line: json.dumps({
        "__REALTIME_TIMESTAMP": str(1796040000000000 + i * 10000), "_TRANSPORT": "stdout", "SYSLOG_IDENTIFIER": "vllm",
        "_PID": "77", "_HOSTNAME": "node1", "_BOOT_ID": "ab" * 16, "MESSAGE": line}))(text)


def journal_export(text: str) -> bytes:
    return "".join(f"__CURSOR=s=1;i={i}\n__REALTIME_TIMESTAMP={1796040000000000 + i * 10000}\n_BOOT_ID={'ab' * 16}\n"
                   f"_TRANSPORT=stdout\nSYSLOG_IDENTIFIER=vllm\n_HOSTNAME=node1\nMESSAGE={line}\n\n"
                   for i, line in enumerate(_lines(text))).encode()


def loki(text: str) -> bytes:
    values = [[str(1796040000000000000 + i * 10**7), line] for i, line in enumerate(_lines(text))]
    return json.dumps({"status": "success", "data": {"resultType": "streams", "result": [
        {"stream": {"pod": "vllm-0"}, "values": values[::-1]}]}}).encode()


def cloudwatch(text: str) -> bytes:
    events = [{"timestamp": 1796040000000 + i, "message": line, "ingestionTime": 1796040000500 + i}
              for i, line in enumerate(_lines(text))]
    return json.dumps({"events": events, "nextForwardToken": "f/1"}, indent=4).encode()


def google(text: str) -> bytes:
    entries = [{"insertId": f"a{i}", "resource": {"type": "k8s_container", "labels": {"pod_name": "vllm-0"}},
                "textPayload": line, "timestamp": _stamp(i)} for i, line in enumerate(_lines(text))]
    return json.dumps(entries[::-1], indent=2).encode()


def cluster_dump(text: str) -> bytes:
    objects = json.dumps({"kind": "PodList", "items": []}, indent=4)
    return (f"{objects}\n==== START logs for container vllm of pod default/vllm-0 ====\n{text}"
            "==== END logs for container vllm of pod default/vllm-0 ====\n").encode()


TRANSPORTS: dict[str, Callable[[str], bytes]] = {
    "docker json-file": docker_json, "CRI": cri, "journal JSON": journal_json, "journal export": journal_export,
    "loki": loki, "cloudwatch": cloudwatch, "google": google, "cluster-info dump": cluster_dump,
    "docker logs -t": _each(lambda i, line: f"{_stamp(i)} {line}"),
    "kubectl --timestamps --prefix": _each(lambda i, line: f"[pod/vllm-0/vllm] {_stamp(i)} {line}"),
    "compose": _each(lambda _, line: f"vllm-1  | {line}"),
    "compose -t": _each(lambda i, line: f"vllm-1  | {_stamp(i)} {line}"),
    "journal text": _each(lambda i, line: f"Nov 30 12:{i // 60:02}:{i % 60:02} node1 vllm[77]: {line}"),
    "journal short-iso": _each(lambda i, line: f"2026-11-30T12:{i // 60:02}:{i % 60:02}+0000 n1 start.sh[7]: {line}"),
    "srun --label": _each(lambda _, line: f"0: {line}"),
    "logcli": _each(lambda i, line: f'{_stamp(i)} {{app="vllm", pod="vllm-0"}} {line}'),
    "loki jsonl": _each(lambda i, line: json.dumps({"labels": {"pod": "a"}, "line": line, "timestamp": _stamp(i)})),
    "github actions": _each(lambda i, line: f"build\tRun tests\t{_stamp(i)[:-4]}Z {line}"),
    "fluent-bit": _each(lambda i, line: json.dumps({"date": 1796040000.5 + i, "log": line})),
    "fluent-bit CRI": _each(lambda i, line: json.dumps({"time": _stamp(i), "stream": "stderr", "logtag": "F",
                                                        "log": line})),
    "vector": _each(lambda i, line: json.dumps({"file": "/var/log/x.log", "host": "n1", "message": line,
                                                "source_type": "file", "timestamp": _stamp(i)})),
    "filebeat": _each(lambda i, line: json.dumps({"@timestamp": _stamp(i), "host": {"name": "n1"}, "message": line,
                                                  "log": {"offset": i}, "agent": {"type": "filebeat"}})),
    "elasticsearch hits": lambda text: json.dumps({"hits": {"total": {"value": 1}, "hits": [
        {"_index": "logs", "_id": str(i), "_source": {"@timestamp": _stamp(i), "message": line}}
        for i, line in enumerate(_lines(text))]}}).encode(),
    "splunk": _each(lambda i, line: json.dumps({"preview": False, "result": {"_raw": line, "_time": _stamp(i)}})),
    "opentelemetry": _each(lambda i, line: json.dumps({"timestamp": _stamp(i), "body": line, "attributes": {}})),
    "azure": _each(lambda i, line: json.dumps({"TimeGenerated": _stamp(i), "ContainerID": "c", "LogEntry": line})),
    "datadog": _each(lambda i, line: json.dumps({"id": "x", "type": "log", "attributes": {
        "timestamp": _stamp(i), "message": line, "host": "n1"}})),
    "CRI over kubectl": _each(lambda i, line: f"[pod/a/b] {_stamp(i)} stdout F {line}"),
}


def _tar(mode: str) -> Callable[[bytes], bytes]:
    def pack(data: bytes) -> bytes:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode=mode) as tar:
            member = tarfile.TarInfo("bundle/node1/server.log")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        return out.getvalue()

    return pack


def _zip(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bundle/server.log", data)
    return out.getvalue()


ARCHIVES: dict[str, Callable[[bytes], bytes]] = {
    "tar": _tar("w:"), "tgz": _tar("w:gz"), "tar.xz": _tar("w:xz"), "zip": _zip, "gz": gzip.compress,
    "xz": lzma.compress, "bz2": bz2.compress, "zip in gz": lambda data: gzip.compress(_zip(data)),
}
ENCODINGS: dict[str, Callable[[str], bytes]] = {
    "utf-16 (PowerShell)": lambda text: text.replace("\n", "\r\n").encode("utf-16"),
    "utf-8 with mark": lambda text: text.encode("utf-8-sig"), "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "ANSI": lambda text: "".join(f"\x1b[32m{line}\x1b[0m\n" for line in _lines(text)).encode(),
}
_WORD = "It hung again on our box, see below.\n"
PASTES: dict[str, Callable[[str], bytes]] = {
    "fence": lambda text: f"{_WORD}\n```\n{text}```\nThanks!\n".encode(),
    "fence with CRLF": lambda text: f"{_WORD}\n```text\n{text}```\n".replace("\n", "\r\n").encode(),
    "open fence": lambda text: f"{_WORD}\n```\n{text}".encode(),
    "issue": lambda text: (
        "### Your current environment\n\n_No response_\n\n### Describe the bug\n\nIt hangs.\n\n<details>\n<summary>The "
        f"log</summary>\n\n```text\n{text}\n```\n\n</details>\n\n### Before submitting...\n\n- [x] Yes\n").encode(),
    "quoted": lambda text: "".join(f"> {line}\n" for line in _lines(text)).encode(),
    "quoted entities": lambda text: "".join(f"&gt; {html.escape(line)}\n" for line in _lines(text)).encode(),
    "entities": lambda text: html.escape(text).encode(),
    "gutter": lambda text: "".join(f"{i:>6}\t{line}\n" for i, line in enumerate(_lines(text), 1)).encode(),
    "gutter with bar": lambda text: "".join(f"{i:>4} | {line}\n" for i, line in enumerate(_lines(text), 1)).encode(),
    "bullets": lambda text: "".join(f"- {line}\n" if line else "\n" for line in _lines(text)).encode(),
    "typography": lambda text: text.replace("'", "\u2019").replace('"', "\u201d").replace("  ", "\u00a0 ").replace(
        " at ", " \u200bat ").encode(),
}
PACKED: dict[str, Callable[[str], bytes]] = {
    name: lambda text, pack=pack: pack(text.encode()) for name, pack in ARCHIVES.items()  # type: ignore[misc]
}
ALL = {**TRANSPORTS, **PACKED, **ENCODINGS, **PASTES}

SAMPLES = {name: (FIXTURES / name).read_text() for name in (
    "kernel_log/aer-surprise-down-79-tesla.txt", "vllm_log/flashinfer-download-0.7.2.log", "stacks/deadlock-native.txt",
    "nccl_log/ib-status12.txt", "nvidia_smi/hung-csv.txt")}
RULES = load()
JSON_RECORDS = "JSON records of a log collector"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wrapped")


def analysed(data: bytes, folder: Path) -> Analysis:
    file = folder / "input"
    file.write_bytes(data)
    return investigate([str(file)], RULES)


def ranked(analysis: Analysis) -> list[tuple[str, str]]:
    return [(one.rule.id, one.confidence) for one in analysis.ranked if not one.ruled_out]


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_wrapping_gives_the_same_verdict(sample: str, folder: Path) -> None:
    text = SAMPLES[sample]
    expected = ranked(analysed(text.encode(), folder))
    assert expected, "a sample without a verdict proves nothing"
    got = {name: ranked(analysed(wrap(text), folder)) for name, wrap in ALL.items()}
    assert {name: one for name, one in got.items() if one != expected} == {}


def test_three_transports_in_a_stack(folder: Path) -> None:
    text = SAMPLES["vllm_log/flashinfer-download-0.7.2.log"]
    stacked = _each(lambda _, line: f"[pod/a/b] {line}")(_each(lambda i, line: f"{_stamp(i)} {line}")(
        _each(lambda _, line: f"0: {line}")(text).decode()).decode())
    analysis = analysed(stacked, folder)
    assert ranked(analysis) == ranked(analysed(text.encode(), folder))
    assert analysis.bundle.reads[0].transports == ("kubectl --prefix", "time-stamped lines", "srun --label")


DOCUMENTS = ("loki", "cloudwatch", "google", "elasticsearch hits", "journal export", "cluster-info dump")
"""No lines of their own: nothing carries them line by line."""


def _names(wrapped: str) -> list[str]:
    return [one.name for one in transports_of(wrapped)]


@settings(max_examples=600 if os.environ.get("STUCKWARP_ALL_CASES") else 40, deadline=None)
@given(
    st.sampled_from(sorted(SAMPLES)),
    st.lists(st.sampled_from([one for one in TRANSPORTS if one not in DOCUMENTS]), max_size=2, unique=True),
    st.sampled_from(["", *DOCUMENTS]), st.sampled_from(["", *ENCODINGS]), st.sampled_from(["", *ARCHIVES]),
)  # fmt: skip
def test_wrappings_in_wrappings_give_the_same_verdict(
    sample: str, stack: list[str], document: str, encoding: str, archive: str
) -> None:
    text = SAMPLES[sample]
    expected = ranked(_analysed(text.encode()))
    layers = [one for name in stack for one in _names(TRANSPORTS[name](text).decode())]
    layers += ["journal"] if document == "journal export" else []
    # Two that are one to us (two clocks before a line, a journal in a journal) are not told apart, by design.
    twice = [one for one in layers if one != JSON_RECORDS]
    assume(len(twice) == len(set(twice)) and len(layers) <= DEPTH)
    assume(not (document and encoding == "ANSI"))  # colours stand around lines, not inside a document
    for name in [*stack, document] if document else stack:
        text = TRANSPORTS[name](text).decode()
    data = ENCODINGS[encoding](text) if encoding else text.encode()
    if archive:
        data = ARCHIVES[archive](data)
    assert ranked(_analysed(data)) == expected


LOGS = ("kernel_log/aer-surprise-down-79-tesla.txt", "vllm_log/flashinfer-download-0.7.2.log",
        "nccl_log/ib-status12.txt", "stacks/deadlock-native.txt", "stacks/cubin-download.txt",
        "stacks/tp-worker-native.txt", "stacks/engine-waits-for-worker.txt", "stacks/subprocesses.txt",
        "nvidia_smi/hung-csv.txt", "nvidia_smi/failures.txt", "nvidia_smi/query.txt")


@settings(max_examples=600 if os.environ.get("STUCKWARP_ALL_CASES") else 40, deadline=None)
@given(st.sampled_from(LOGS), st.floats(0.0, 1.0))
def test_a_cut_adds_no_hypothesis_and_no_absence(sample: str, share: float) -> None:
    text = (FIXTURES / sample).read_bytes()
    whole, part = _analysed(text), _analysed(text[:int(share * len(text))])
    known = {rule for rule, _ in ranked(whole)}
    new = [(rule, confidence) for rule, confidence in ranked(part) if rule not in known]
    assert [one for one in new if one[1] != "low" or not _open(part, one[0])] == []
    before, after = _answers(whole), _answers(part)
    assert [key for key, answer in after.items() if answer is Answer.ABSENT and before[key] is Answer.UNCHECKED] == []


def _open(analysis: Analysis, rule: str) -> bool:
    """Whether a hypothesis rests on where the input ends: an observation of something open, or a hint."""
    found = next(one for one in analysis.ranked if one.rule.id == rule)
    names = {finding.clause.observed or finding.clause.id for finding in found.seen("for")}
    return bool(names & {"open_phase", "open_bar", "download_without_end", "header-only", "nccl_silence_after_init"})


@pytest.mark.parametrize("size", [12, 58, 108, 110, 123, 160, 193, 211])
def test_a_dump_cut_in_its_header_proves_no_stopped_process(size: int) -> None:
    text = (FIXTURES / "stacks/deadlock-native.txt").read_bytes()[:size]
    analysis = _analysed(text)
    assert {confidence for rule, confidence in ranked(analysis)} <= {"low"}
    cut = [one.tag for read in analysis.bundle.reads for one in read.troubles]
    assert "truncated" in cut or analysis.bundle.events("stacks.error") or not analysis.bundle.by_kind


def _analysed(data: bytes) -> Analysis:
    with tempfile.TemporaryDirectory() as folder:
        return analysed(data, Path(folder))


def _answers(analysis: Analysis) -> dict[tuple[str, str], Answer]:
    return {(rule.id, one.clause.id): one.answer
            for rule in RULES.rules.values() for one in findings(rule, analysis.bundle)}


def test_a_table_of_nvidia_smi_cut_below_its_first_gpu_accuses_nobody() -> None:
    lines = (FIXTURES / "nvidia_smi/table.txt").read_text().splitlines(keepends=True)
    for count in (9, 10, 11):
        analysis = _analysed("".join(lines[:count]).encode())
        assert ranked(analysis) == []
        assert any(one.tag == "truncated" for one in analysis.troubles)
