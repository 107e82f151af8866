"""Archives as streams: content decides, budgets hold, what came before a fault is kept."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from pathlib import Path

import pytest

from analyzer.intake.budget import MIB, Budget
from analyzer.intake.sources import walk
from parsers.contract import Trouble

TEXT = b"INFO 11-30 20:04:27 [core.py:1] hello\n" * 2000


def contents(path: Path, budget: Budget | None = None) -> tuple[dict[str, bytes], list[Trouble]]:
    troubles: list[Trouble] = []
    found = {}
    for source in walk([str(path)], budget or Budget(), troubles):
        parts = []
        while block := source.stream.read(MIB):
            parts.append(block)
        found[source.name] = b"".join(parts)
    return found, troubles


def tar_of(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return file.getvalue()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress], ids=["gz", "bz2", "xz"])
def test_single_compressed_file_by_content(tmp_path: Path, pack: object) -> None:
    path = tmp_path / "misnamed.log"
    path.write_bytes(pack(TEXT))  # type: ignore[operator]
    found, troubles = contents(path)
    assert found == {"misnamed.log": TEXT}
    assert not troubles


def test_plain_text_with_the_name_of_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "server.log.gz"
    path.write_bytes(TEXT)
    assert contents(path)[0] == {"server.log.gz": TEXT}


def test_nested_tar_gz_zip(tmp_path: Path) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("pod/dmesg.txt", TEXT)
    path = tmp_path / "bundle.tgz"
    path.write_bytes(gzip.compress(tar_of({"a/server.log": TEXT, "b/more.zip": inner.getvalue()})))
    found, troubles = contents(path)
    assert list(found) == ["bundle/a/server.log", "bundle/b/more.zip/pod/dmesg.txt"]
    assert set(found.values()) == {TEXT}
    assert not troubles


def test_gzip_cut_short_keeps_what_came(tmp_path: Path) -> None:
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(bytes(range(256)) * 4000 + TEXT)[:-200])
    found, troubles = contents(path)
    assert len(found["cut"]) > 100_000
    assert [t.tag for t in troubles] == ["truncated"]


def test_gzip_members_then_garbage(tmp_path: Path) -> None:
    path = tmp_path / "rotated.gz"
    path.write_bytes(gzip.compress(TEXT) * 3 + b"garbage that is no gzip member")
    found, troubles = contents(path)
    assert found["rotated"] == TEXT * 3
    assert [t.tag for t in troubles] == ["corrupt"]


def test_bomb_stops_at_the_ratio(tmp_path: Path) -> None:
    path = tmp_path / "bomb.bz2"
    path.write_bytes(bz2.compress(bytes(100 * MIB)))
    found, troubles = contents(path)
    assert len(found["bomb"]) < 48 * MIB
    assert [t.tag for t in troubles] == ["limit"]


def test_odd_names_links_and_devices_write_nothing(tmp_path: Path) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name in ("../../etc/x", "/abs/x", "C:\\x"):
            info = tarfile.TarInfo(name)
            info.size = len(TEXT)
            tar.addfile(info, io.BytesIO(TEXT))
        for name, kind in (
            ("link", tarfile.SYMTYPE),
            ("hard", tarfile.LNKTYPE),
            ("fifo", tarfile.FIFOTYPE),
            ("dev", tarfile.CHRTYPE),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            tar.addfile(info)
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "odd.tar"
    path.write_bytes(file.getvalue())
    found, troubles = contents(path)
    assert len(found) == 3 and all(data == TEXT for data in found.values())
    assert sum("not followed" in t.text for t in troubles) == 4
    assert [p.name for p in (tmp_path / "in").iterdir()] == ["odd.tar"]


def test_negative_size_header_keeps_earlier_members(tmp_path: Path) -> None:
    good = tar_of({"a.log": TEXT})[: 512 + (len(TEXT) + 511) // 512 * 512]
    bad = bytearray(tarfile.TarInfo("b.log").tobuf())
    bad[124:136] = b"\xff" * 10 + b"\xfe\x00"  # base-256 for -512
    bad[148:156] = b" " * 8
    bad[148:156] = f"{sum(bad):06o}\0 ".encode()
    path = tmp_path / "negative.tar"
    path.write_bytes(good + bytes(bad) + bytes(1024))
    found, troubles = contents(path)
    assert found["negative.tar/a.log"] == TEXT
    assert troubles


def test_depth_limit(tmp_path: Path) -> None:
    data = TEXT
    for _ in range(9):
        data = gzip.compress(data)
    path = tmp_path / "deep.gz"
    path.write_bytes(data)
    found, troubles = contents(path)
    assert found == {}
    assert "deep" in troubles[0].text


def test_zip_member_without_a_name(tmp_path: Path) -> None:
    """Found by fuzzing: the library's own `is_dir` fails on it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo(""), TEXT)
    path = tmp_path / "nameless.zip"
    path.write_bytes(file.getvalue())
    found, _ = contents(path)
    assert list(found.values()) == [TEXT]


def test_zip_members_that_share_data(tmp_path: Path) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("one.log", TEXT)
        archive.filelist.append(archive.filelist[0])
    path = tmp_path / "overlap.zip"
    path.write_bytes(file.getvalue())
    found, troubles = contents(path)
    assert list(found.values()) == [TEXT]
    assert [t.tag for t in troubles] == ["corrupt"]


def test_same_name_twice_is_told_apart(tmp_path: Path) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for _ in range(3):
            info = tarfile.TarInfo("x.log")
            info.size = 2
            tar.addfile(info, io.BytesIO(b"a\n"))
    path = tmp_path / "t.tar"
    path.write_bytes(file.getvalue())
    assert list(contents(path)[0]) == ["t.tar/x.log", "t.tar/x.log#2", "t.tar/x.log#3"]


def test_folder_with_loop_pipe_and_unreadable(tmp_path: Path) -> None:
    import os

    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "server.log").write_bytes(TEXT)
    (tmp_path / "b" / "loop").symlink_to(tmp_path / "b")
    (tmp_path / "b" / "out").symlink_to("/etc/hostname")
    os.mkfifo(tmp_path / "b" / "pipe")
    found, troubles = contents(tmp_path / "b")
    assert list(found) == ["server.log"]
    assert {t.source for t in troubles} == {"out", "pipe"}
