"""N39: none of the planted secrets survives in what is made to be shared, and what the reader needs does."""
# ruff: noqa: E501  (log lines are data)

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.analyze import analyze
from analyzer.redact import redact_bundle, redact_report, redact_text
from analyzer.redact.bundle import RedactionError
from analyzer.render import render
from tests.hostile.child import fingerprint, run_cli
from tests.hostile.logs import SERVER, XID, XID_RULE, stats

# Put together here so that no scanner takes this file for a leak.
HF = "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789"[:34]
OPENAI = "sk-" + "proj-Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2Ji1Hg0"
NVIDIA = "nvapi-" + "qWeRtYuIoP1234567890aSdFgHjKlZxCvBnM"
GITHUB = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
AWS_ID, AWS_SECRET = "AKIA" + "IOSFODNN7EXAMPL3", "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"
JWT = "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
PEM_BODY = [
    "MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF8PbnGy0AHB7Mhgwl3bzgbH",
    "qlXBvNn8F2yVYVfzJdP1a0sYg8j4Q7qTqk2dZ5y6Xo3wL9nM4rE1uIhK7fC",
    "c2Vj==",
]
PLANTED = {
    "token": HF,
    "openai": OPENAI,
    "nvidia": NVIDIA,
    "github": GITHUB,
    "aws id": AWS_ID,
    "aws": AWS_SECRET,
    "jwt": JWT,
    "pem 1": PEM_BODY[0],
    "pem 2": PEM_BODY[1],
    "pem 3": PEM_BODY[2],
    "uri": "s3cr3tPassw0rd",
    "option": "optionSecret42",
    "list": "listSecret-one",
    "list 2": "listSecret-two",
    "prompt": "my medical history is",
    "prompt 2": "Dear doctor",
    "generated": "you should see a",
    "local": "local variable text",
    "e-mail": "jane.doe@acme-corp.com",
    "ipv4": "10.20.30.41",
    "ipv6": "2001:db8:85a3::8a2e:370:7334",
    "mac": "3c:ec:ef:12:34:56",
    "gpu": "52a3a85d-3c55-ca3a-a955-82c69ed360fc",
    "serial": "1324021040372",
    "host": "acme-gpu-node-17",
    "user": "jdoe42",
    "env": "envSecretValue9",
    "json key": "jsonSecretValue7",
    "ids": "128000, 9906, 1917",
    "query": "querySecret123",
    "basic": "dXNlcjpwYXNz",
    "fqdn": "db7.prod.internal",
}

PLANTED_LOG = f"""\
Nov 30 20:04:20 acme-gpu-node-17 sshd[812]: Accepted publickey for user jdoe42 from 10.20.30.41 port 51022
(APIServer pid=12) INFO 11-30 20:04:26 [utils.py:233] non-default args: {{'api_key': ['listSecret-one', 'listSecret-two'], \
'hf_token': '{HF}', 'model': '/home/jdoe42/models/llama', 'port': 8000}}
export HF_TOKEN={HF} OPENAI_API_KEY={OPENAI} NGC={NVIDIA} WANDB_API_KEY=envSecretValue9
$ vllm serve /home/jdoe42/models/llama --api-key optionSecret42 --port 8000
git clone https://x:{GITHUB}@github.com/acme/private.git && psql postgres://jane:s3cr3tPassw0rd@db7.prod.internal:5432/x
aws_access_key_id={AWS_ID} aws_secret_access_key = {AWS_SECRET}
curl -H "Authorization: Bearer {JWT}" -H 'Authorization: Basic dXNlcjpwYXNz' "https://h.example/x?token=querySecret123&n=1"
{{"level": "info", "api_key": "jsonSecretValue7", "msg": "contact jane.doe@acme-corp.com", "messages": [{{"role": "user", "content": "Dear doctor"}}]}}
-----BEGIN RSA PRIVATE KEY-----
{PEM_BODY[0]}
{PEM_BODY[1]}
{PEM_BODY[2]}
-----END RSA PRIVATE KEY-----
(APIServer pid=12) INFO 11-30 20:05:30 [logger.py:43] Received request chatcmpl-1: prompt: 'my medical history is it\\'s "long", \
and more', params: SamplingParams(n=1), prompt_token_ids: [128000, 9906, 1917], lora_request: None.
(APIServer pid=12) INFO 11-30 20:05:31 [logger.py:63] Generated response chatcmpl-1: output: 'you should see a', finish_reason: stop
acme-gpu-node-17:412:512 [0] NCCL INFO NET/Socket : Using [0]eth0:10.20.30.41<0> [1]eth1:2001:db8:85a3::8a2e:370:7334<0>
link/ether 3c:ec:ef:12:34:56 brd ff:ff:ff:ff:ff:ff
GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-52a3a85d-3c55-ca3a-a955-82c69ed360fc)
    Serial Number                         : 1324021040372
"""
PYSPY = """\
Process 5077: /opt/venv/bin/python /home/jdoe42/run.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 5077 (idle): "MainThread"
    generate (/home/jdoe42/run.py:7)
        Arguments:
            self: <Engine at 0x7f0d3bf7ba90>
            prompt: "local variable text"
        Locals:
            n: 5
            batch: ["local variable text", 2]
    main (run.py:12)
"""
KEPT = (
    "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16",
    "NVRM: Xid (PCI:0000:41:00): 79",
    "0000:41:00.0",
    "nvidia-cudnn-cu12==9.10.2.21",
    "nvidia-curand-cu12 10.3.9.90",
    "NVIDIA H100 80GB HBM3",
    "eos_token",
    "127.0.0.1:8000",
    "0.0.0.0",
    "at::native::vectorized_gather_kernel<16, long>",
    "Driver Version: 570.124.06",
    "max_tokens=16",
    "20:04:27",
    "libcudart.so.12@libcudart.so.12",
)
NEEDED = "\n".join(
    [
        "kernel cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16 on 0000:41:00.0",
        "nvidia-cudnn-cu12==9.10.2.21",
        "nvidia-curand-cu12 10.3.9.90",
        "GPU 0: NVIDIA H100 80GB HBM3",
        "eos_token: '</s>', max_tokens=16, token=None, api_key: None",
        "http://127.0.0.1:8000 0.0.0.0",
        "at::native::vectorized_gather_kernel<16, long>(char*, char*)",
        "Driver Version: 570.124.06 at 20:04:27",
        "libcudart.so.12@libcudart.so.12",
        "",
    ]
)


def _bundle(folder: Path) -> None:
    folder.mkdir()
    (folder / "server.log").write_text(PLANTED_LOG + SERVER + stats(1))
    (folder / "acme-gpu-node-17-dmesg.txt").write_text(XID + NEEDED)
    (folder / "pyspy.txt").write_text(PYSPY)
    (folder / "core.bin").write_bytes(bytes(range(32)) * 40)
    cut = f"{'-' * 16_375}{HF[:9]}"
    (folder / "docker.json").write_text(
        "".join(
            json.dumps({"log": piece, "stream": "stdout", "time": "2026-11-30T20:04:27.000000001Z"}) + "\n"
            for piece in (cut, HF[9:] + " end\n")
        )
    )
    coloured = f"{OPENAI[:9]}\x1b[31m{OPENAI[9:]}\x1b[0m and {NVIDIA[:12]}\u200b{NVIDIA[12:]}\n"
    (folder / "coloured.log").write_text(coloured)
    (folder / "cri.log").write_text(
        f"2026-11-30T20:04:27.000000001Z stdout P x {GITHUB[:10]}\n2026-11-30T20:04:27.000000002Z stdout F {GITHUB[10:]} y\n"
    )


def _leaks(text: str) -> list[str]:
    pieces = {
        **PLANTED,
        "cut hf": HF[9:],
        "cut hf head": HF[:9],
        "cut gh": GITHUB[10:],
        "cut gh head": GITHUB[:10],
        "cut sk": OPENAI[9:],
        "cut nv": NVIDIA[12:],
    }
    return [name for name, secret in pieces.items() if secret in text]


def test_nothing_planted_survives_in_a_redacted_bundle(tmp_path: Path) -> None:
    _bundle(tmp_path / "in")
    before = fingerprint(tmp_path / "in")
    done = redact_bundle([tmp_path / "in"], tmp_path / "out")
    assert fingerprint(tmp_path / "in") == before
    assert done.left_out and done.left_out[0][0] == "core.bin"
    names = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert "core.bin" not in names and "redactions.json" in names
    for path in (tmp_path / "out").iterdir():
        assert not _leaks(path.read_text()), (path.name, _leaks(path.read_text()))
        assert not _leaks(path.name)
    for name in ("server.log", "pyspy.txt", "docker.json", "coloured.log", "cri.log"):
        assert (tmp_path / "out" / name).read_bytes().count(b"\n") == (tmp_path / "in" / name).read_bytes().count(b"\n")


def test_one_value_has_one_placeholder(tmp_path: Path) -> None:
    _bundle(tmp_path / "in")
    redact_bundle([tmp_path / "in"], tmp_path / "out")
    server = (tmp_path / "out" / "server.log").read_text()
    token = re.search(r"'hf_token': '(<token-\d+>)'", server)
    assert token and f"HF_TOKEN={token[1]}" in server
    assert token[1] in (tmp_path / "out" / "docker.json").read_text()
    host = re.search(r"20:04:20 (host-\d+) sshd", server)
    assert host and f"\n{host[1]}:412:512 [0] NCCL" in server
    assert any(p.name.startswith(host[1]) for p in (tmp_path / "out").iterdir())
    address = re.search(r"eth0:(<ip-\d+>)<0>", server)
    assert address and f"from {address[1]} port" in server


def test_the_ledger_says_what_where_without_values(tmp_path: Path) -> None:
    _bundle(tmp_path / "in")
    redact_bundle([tmp_path / "in"], tmp_path / "out")
    ledger = json.loads((tmp_path / "out" / "redactions.json").read_text())
    assert {"placeholder", "detector", "count", "places"} <= set(ledger["replaced"][0])
    detectors = {one["detector"] for one in ledger["replaced"]}
    assert {"user's text", "PEM block", "stack local", "IPv4 address", "host name", "home folder"} <= detectors
    assert all(place["line"] >= 1 for one in ledger["replaced"] for place in one["places"])
    assert [one["artifact"] for one in ledger["left_out"]] == ["core.bin"]


def test_what_readers_need_survives() -> None:
    text = XID + NEEDED
    redacted = redact_text(text)
    for kept in KEPT:
        assert kept in redacted, kept


def test_archive_in_archive_out(tmp_path: Path) -> None:
    _bundle(tmp_path / "in")
    with tarfile.open(tmp_path / "in.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "in", "in")
    redact_bundle([tmp_path / "in.tar.gz"], tmp_path / "out.tar.gz")
    with tarfile.open(tmp_path / "out.tar.gz") as tar:
        texts = {m.name: tar.extractfile(m).read().decode() for m in tar if m.isfile()}  # type: ignore[union-attr]
        assert all(m.uname == m.gname == "" and m.mtime == 0 for m in tar.getmembers())
    assert any(name.endswith("server.log") for name in texts)
    assert not _leaks("".join(texts.values()) + "".join(texts))


@pytest.mark.parametrize("where", ["in/out", "there", "no/such/folder"])
def test_output_is_never_put_over_or_into_something(tmp_path: Path, where: str) -> None:
    _bundle(tmp_path / "in")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine").write_text("x")
    before = fingerprint(tmp_path)
    with pytest.raises(RedactionError):
        redact_bundle([tmp_path / "in"], tmp_path / where)
    assert fingerprint(tmp_path) == before


def test_shared_forms_of_a_report_are_redacted_by_default(tmp_path: Path) -> None:
    _bundle(tmp_path / "bundle")
    for form in ("markdown", "html", "slack"):
        ended = run_cli(["analyze", "bundle", "--format", form], tmp_path)
        text = ended.out.decode()
        leaks = [name for name in _leaks(text) if name != "gpu"]
        assert not leaks, (form, leaks)
        assert PLANTED["gpu"] not in text
    raw = run_cli(["analyze", "bundle", "--format", "markdown", "--no-redact"], tmp_path)
    assert PLANTED["gpu"].encode() in raw.out or PLANTED["host"].encode() in raw.out


def test_a_report_keeps_its_verdict_scores_and_places(tmp_path: Path) -> None:
    _bundle(tmp_path / "bundle")
    report = analyze([str(tmp_path / "bundle")])
    shared = redact_report(report)
    assert (shared.verdict, [(h.rule, h.score, h.confidence) for h in shared.hypotheses]) == (
        report.verdict,
        [(h.rule, h.score, h.confidence) for h in report.hypotheses],
    )
    assert XID_RULE in [h.rule for h in shared.hypotheses]
    assert not _leaks(render(shared, "json"))
    places = [[(e.source.line, e.source.offset) for e in h.evidence_for if e.source] for h in report.hypotheses]
    assert [[(e.source.line, e.source.offset) for e in h.evidence_for if e.source] for h in shared.hypotheses] == places


def test_redaction_of_a_saved_report(tmp_path: Path) -> None:
    _bundle(tmp_path / "bundle")
    report = analyze([str(tmp_path / "bundle")])
    (tmp_path / "report.json").write_text(render(report, "json"))
    assert run_cli(["redact", "report.json", "-o", "shared.json"], tmp_path).code == 0
    assert not _leaks((tmp_path / "shared.json").read_text())
    assert run_cli(["redact", "report.json", "-o", "shared.json"], tmp_path).code == 2  # nothing is overwritten


@given(st.text(alphabet=st.sampled_from("hfsk-_abc019.:@/=\"'[]{}<>\\ \n\t-token1prompt:€\x1b\u200b"), max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_text_keeps_its_lines_and_redaction_is_idempotent(text: str) -> None:
    once = redact_text(text)
    assert once.count("\n") == text.count("\n")
    assert redact_text(once) == once


def test_planted_log_is_stable_under_a_second_redaction() -> None:
    once = redact_text(PLANTED_LOG)
    assert redact_text(once) == once


def test_long_lines_are_redacted_in_linear_time() -> None:
    import time

    for text in (
        "=" * 200_000,
        "a" * 200_000,
        "a." * 100_000,
        "a@" * 100_000,
        "key=" * 50_000,
        "-----BEGIN A KEY-----" * 5_000,
        "prompt: '" * 20_000,
        "\\" * 200_000,
        "1." * 100_000,
        ":" * 200_000,
        "eyJ" * 60_000,
        "://" * 60_000,
        " " * 200_000,
        "[" * 100_000,
    ):
        began = time.process_time()
        redact_text(text)
        assert time.process_time() - began < 4, text[:12]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("rank 3 on gpu-node-17.prod.example.com failed", "rank 3 on host-1 failed"),
        ("tcp://head.cluster.acme-corp.com:6379 is down", "tcp://host-1:6379 is down"),
        ("lost r7i1n3.ib0.ice.example.de; gone", "lost host-1; gone"),
        ("write to jane@acme-corp.com or see mail.acme-corp.com", "write to <email-1> or see host-1"),
        ("write to bob@example.com", "write to <email-1>"),
        ("joe@acme-corp.com: proxy acme-corp.com refused", "<email-1>: proxy host-1 refused"),
    ],
)
def test_hosts_in_a_domain(written: str, expected: str) -> None:
    assert redact_text(written) == expected


@pytest.mark.parametrize(
    "written",
    [
        "from vllm.v1.engine.core import x; model.layers.0.id, torch.nn.functional, scipy.sparse.io, self.model.net",
        "https://huggingface.co/x https://edge.urm.nvidia.com/y https://files.pythonhosted.org/z quay.io/a/b",
        "torch-2.9.0.dev vllm-0.10.2.dev1 v1.2.3.dev triton.language.math (foo.py:12) docker.io/vllm/vllm-openai:v0.9",
    ],
)
def test_dotted_names_that_are_no_host(written: str) -> None:
    assert redact_text(written) == written
