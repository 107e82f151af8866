"""Builders of the hostile archives N01 to N14. Bombs are made here, at test time; nothing dangerous is committed."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import socket
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

from tests.hostile.logs import XID
from tests.hostile.quine import gzip_quine

MIB = 1 << 20


def tar_of(members: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    """A plain tar of the given members."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for info, data in members:
            if info.isreg():
                info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return file.getvalue()


def _member(name: str, data: bytes = XID.encode(), **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, data


def _checked(header: bytearray) -> bytes:
    header[148:156] = b" " * 8
    header[148:156] = f"{sum(header):06o}\0 ".encode()
    return bytes(header)


def n01(folder: Path) -> None:
    """Names that leave the archive, drive letters, control characters."""
    names = ["../../etc/x", "/abs/x", "C:\\x", "..\\\\x", "a\nb\x1b[31m", "ok.txt"]
    (folder / "odd.tar").write_bytes(tar_of([_member(name) for name in names]))


def n02(folder: Path) -> None:
    """Links of every kind: out of the archive, in a chain, in a loop, hard to soft."""
    links = [
        ("out", tarfile.SYMTYPE, "/etc/passwd"),
        ("chain", tarfile.SYMTYPE, "out"),
        ("hard", tarfile.LNKTYPE, "out"),
        ("loop-a", tarfile.SYMTYPE, "loop-b"),
        ("loop-b", tarfile.SYMTYPE, "loop-a"),
        ("gone", tarfile.LNKTYPE, "nowhere"),
    ]
    (folder / "links.tar").write_bytes(
        tar_of([*(_member(name, type=kind, linkname=target) for name, kind, target in links), _member("ok.txt")])
    )


def n03(folder: Path) -> None:
    """A device, a pipe, a folder without rights, a sparse file of 1 TiB."""
    sparse = bytearray(tarfile.TarInfo("sparse.log").tobuf(tarfile.GNU_FORMAT))
    sparse[156:157] = b"S"
    big = b"\x80" + (1 << 40).to_bytes(11, "big")
    sparse[386:410] = big + b"00000000000\0"  # one extent of no bytes at the very end
    sparse[483:495] = big
    others = tar_of(
        [
            _member("dev", type=tarfile.CHRTYPE),
            _member("pipe", type=tarfile.FIFOTYPE),
            _member("shut", type=tarfile.DIRTYPE, mode=0),
            _member("ok.txt"),
        ]
    )
    (folder / "special.tar").write_bytes(_checked(sparse) + others)


def n04(folder: Path) -> None:
    """A header whose size is -512 (CVE-2025-8194): its reader would go round for ever."""
    good = tar_of([_member("ok.txt")])[: 512 + (len(XID) + 511) // 512 * 512]
    bad = bytearray(tarfile.TarInfo("b.log").tobuf())
    bad[124:136] = b"\xff" * 10 + b"\xfe\x00"
    (folder / "negative.tar").write_bytes(good + _checked(bad) + bytes(2048))


def n05(folder: Path) -> None:
    """A download that stopped: a .tar.gz cut in the middle of its last member."""
    noise = b"".join(b"[ %d.000000] pcieport 0000:00:%02x.0: probing %d\n" % (i, i % 32, i * i) for i in range(60_000))
    (folder / "cut.tar.gz").write_bytes(
        gzip.compress(tar_of([_member("ok.txt"), _member("dmesg.txt", noise)]))[:-40_000]
    )


def n06(folder: Path) -> None:
    """Zeros: 10 GiB of them in gzip, 100 MiB in bzip2, 512 MiB in xz; each begins with something to read."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    head = deflate.compress(XID.encode()) + deflate.flush(zlib.Z_FULL_FLUSH)
    block = deflate.compress(bytes(16 * MIB)) + deflate.flush(zlib.Z_FULL_FLUSH)
    with (folder / "zeros.gz").open("wb") as out:
        out.write(b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + head)
        for _ in range(640):
            out.write(block)
    (folder / "zeros.bz2").write_bytes(bz2.compress(XID.encode() + bytes(100 * MIB)))
    (folder / "zeros.xz").write_bytes(lzma.compress(XID.encode() + bytes(128 * MIB), preset=0))
    try:
        from backports import zstd
    except ImportError:
        return
    (folder / "zeros.zst").write_bytes(zstd.compress(XID.encode() + bytes(256 * MIB)))


def n07(folder: Path) -> None:
    """2,000 directory entries over one local header."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", XID.encode() + bytes(10 * MIB))
    data = file.getvalue()
    at = data.index(b"PK\x01\x02")
    body, entry = data[:at], bytearray(data[at : data.index(b"PK\x05\x06")])
    entries = b""
    for number in range(2000):
        name = f"n{number:05d}".encode()
        fields = bytearray(entry[:46])
        fields[28:30] = struct.pack("<H", len(name))
        entries += bytes(fields) + name
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 2000, 2000, len(entries), len(body), 0)
    # the local header's name must agree with the first entry's
    body = body[:26] + struct.pack("<H", 6) + body[28:30] + b"n00000" + body[31:]
    shift = 5
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 2000, 2000, len(entries), at + shift, 0)
    (folder / "overlap.zip").write_bytes(body + entries + end)


def n08(folder: Path) -> None:
    """Thirty archives in one another; a gzip file that unpacks to itself for ever."""
    (folder / "itself.gz").write_bytes(gzip_quine())
    data = XID.encode()
    for number in range(15):
        data = gzip.compress(tar_of([_member(f"{number}.tar", data)]))
    (folder / "deep.tgz").write_bytes(data)


def n09(folder: Path) -> None:
    """A zstd frame that asks for a window of 2 GiB, an xz stream that asks for a dictionary of 4 GiB."""
    (folder / "window.zst").write_bytes(b"\x28\xb5\x2f\xfd\x00\xa8" + b"\x01\x00\x00" + bytes(64))
    xz = bytearray(lzma.compress(XID.encode() * 100))
    size = (xz[12] + 1) * 4
    header = xz[12 : 12 + size]
    header[header.index(b"\x21\x01") + 2] = 40
    header[-4:] = struct.pack("<I", zlib.crc32(header[:-4]))
    xz[12 : 12 + size] = header
    (folder / "dictionary.xz").write_bytes(xz)


def n10(folder: Path) -> None:
    """A million empty members of one name; 21,000 of different names."""
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
    head = deflate.compress(tar_of([_member("ok.txt")])[:1024]) + deflate.flush(zlib.Z_FULL_FLUSH)
    block = deflate.compress(tarfile.TarInfo("same.log").tobuf() * 2000) + deflate.flush(zlib.Z_FULL_FLUSH)
    (folder / "same.tgz").write_bytes(b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + head + block * 500)
    many = b"".join(tarfile.TarInfo(f"{number}.log").tobuf() for number in range(21_000))
    (folder / "many.tar.gz").write_bytes(gzip.compress(many + bytes(1024), 1))


def n11(folder: Path) -> None:
    """Names that lie about the content."""
    (folder / "plain.gz").write_text(XID)
    (folder / "packed.log").write_bytes(gzip.compress(b"packed\n" + XID.encode()))
    (folder / "plain.tar.gz").write_bytes(tar_of([_member("in-tar.txt")]))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("in-zip.txt", XID)
    (folder / "zip.txt").write_bytes(file.getvalue())


def n12(folder: Path) -> None:
    """An encrypted zip, methods nobody reads, 7z and rar."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("secret.txt", XID)
    for name, field, value in (("encrypted.zip", 8, 1), ("ppmd.zip", 10, 98), ("aes.zip", 10, 99)):
        data = bytearray(file.getvalue())
        at = data.index(b"PK\x01\x02")
        struct.pack_into("<H", data, at + field, value)
        struct.pack_into("<H", data, field - 2, value)
        (folder / name).write_bytes(data)
    (folder / "a.7z").write_bytes(b"7z\xbc\xaf\x27\x1c\0\4" + bytes(64))
    (folder / "a.rar").write_bytes(b"Rar!\x1a\x07\x01\x00" + bytes(64))


def n13(folder: Path) -> None:
    """Three gzip members, then garbage."""
    third = XID.encode().splitlines(keepends=True)
    (folder / "rotated.gz").write_bytes(
        b"".join(gzip.compress(one) for one in third) + b"\x1f\x8bgarbage that is no member"
    )


def n14(folder: Path) -> None:
    """A folder with a link to its parent, a pipe, a socket, a link loop and a link that leaves it."""
    (folder / "parent").symlink_to("..")
    (folder / "outside").symlink_to("/etc/passwd")
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(folder)  # the path of a socket must be short
        try:
            server.bind("socket")
        finally:
            os.chdir(here)
    (folder / "ok.txt").write_text(XID)
