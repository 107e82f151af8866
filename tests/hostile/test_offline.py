"""Nothing under analysis opens a socket, starts a program, loads code from the input or writes outside the output path."""
# ruff: noqa: E501  (log lines are data)

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.logs import CANARY, SERVER, XID, stats

ROOT = Path(__file__).parents[2]

WATCH = """
import json, os, sys
seen = []
OUTSIDE = ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn",
           "os.fork", "pty.spawn", "urllib.Request", "ftplib.connect", "smtplib.connect", "ctypes.dlopen.input", "webbrowser.open", "pickle.find_class",
           "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.chmod", "os.chown", "os.link", "os.symlink", "os.truncate", "shutil.move",
           "shutil.copyfile", "shutil.rmtree", "shutil.unpack_archive", "tempfile.mkdtemp", "tempfile.mkstemp", "sqlite3.connect", "code.__new__")
def hook(event, arguments):
    if event in OUTSIDE:
        seen.append([event, repr(arguments)[:200]])
    elif event == "open" and arguments[1] is not None and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        seen.append([event, repr(arguments[:2])])
    elif event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        seen.append([event, repr(arguments)])
sys.path.insert(0, ROOT)
sys.dont_write_bytecode = True
sys.addaudithook(hook)
sys.argv = ["stuckwarp", *ARGUMENTS]
from analyzer.cli import run
try:
    run()
except SystemExit as end:
    code = end.code
sys.stdout.flush()
os.write(2, ("\\nSEEN " + json.dumps([code, seen])).encode())
"""


def _watched(arguments: list[str], cwd: Path) -> tuple[int, list[list[str]]]:
    program = f"ROOT = {str(ROOT)!r}\nARGUMENTS = {arguments!r}\n{WATCH}"
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=cwd,
        capture_output=True,
        timeout=120,
        text=True,
        env={**os.environ, "STUCKWARP_DEBUG": "", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert "SEEN " in ended.stderr, ended.stderr[-2000:]
    code, seen = json.loads(ended.stderr.rsplit("SEEN ", 1)[1])
    return code or 0, seen


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    import gzip
    import lzma
    import zipfile

    folder = tmp_path / "bundle"
    folder.mkdir()
    (folder / "dmesg.txt").write_text(XID + CANARY)
    (folder / "server.log").write_text(SERVER + stats(1))
    (folder / "packed.gz").write_bytes(gzip.compress((SERVER + stats(2)).encode()))
    (folder / "pickle_rank_0").write_bytes(b"\x80\x02cposix\nsystem\nX\x0b\0\0\0touch owned\x85R.")
    (folder / "entities.xml").write_text(
        '<?xml version="1.0"?><!DOCTYPE nvidia_smi_log [<!ENTITY x SYSTEM "http://127.0.0.1:9/x">]>'
        "<nvidia_smi_log><driver_version>&x;</driver_version></nvidia_smi_log>"
    )
    (folder / "core.nvcudmp").write_bytes(
        lzma.decompress((ROOT / "fixtures" / "cuda_core" / "trap.nvcudmp.xz").read_bytes())
    )
    with zipfile.ZipFile(folder / "more.zip", "w") as archive:
        archive.writestr("../../outside.txt", XID)
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ["analyze", "bundle", "--format", "json"],
        ["analyze", "bundle", "--full"],
        ["analyze", "bundle", "--format", "html"],
        ["triage", "bundle/dmesg.txt"],
        ["timeline", "bundle", "--format", "chrome"],
        ["inspect", "bundle/core.nvcudmp", "--format", "json"],
        ["rules", "explain", "gpu-fallen-off-bus", "bundle"],
    ],
    ids=lambda one: "-".join(part for part in one if "/" not in part),
)
def test_nothing_leaves_the_process(arguments: list[str], bundle: Path, tmp_path: Path) -> None:
    code, seen = _watched(arguments, tmp_path)
    assert code in (0, 1, 2, 3)
    assert not seen, seen[:10]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bundle"]


def test_only_the_output_is_written(bundle: Path, tmp_path: Path) -> None:
    code, seen = _watched(["analyze", "bundle", "--format", "json", "-o", "report.json"], tmp_path)
    assert code in (0, 3)
    assert seen and all("report.json" in what for _event, what in seen), seen
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bundle", "report.json"]


def test_redaction_writes_only_below_its_output(bundle: Path, tmp_path: Path) -> None:
    code, seen = _watched(["redact", "bundle", "-o", "shared"], tmp_path)
    assert code in (0, 3)
    assert all("shared" in what or event == "shutil.rmtree" for event, what in seen), [
        one for one in seen if "shared" not in one[1]
    ]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bundle", "shared"]
