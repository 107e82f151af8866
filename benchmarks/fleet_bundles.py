# ruff: noqa: E501 (lines as a server writes them)
"""Made-up bundles of a fleet: the same for the same arguments. One in fifty is broken or hostile."""

from __future__ import annotations

import gzip
import io
import random
import tarfile
from pathlib import Path

from benchmarks.serving_log import pieces, signals


def make(folder: Path, count: int, broken_every: int = 50, seed: int = 11) -> tuple[int, int]:
    """Write `count` bundles into `folder`; returns (sound, broken)."""
    rng = random.Random(seed)
    folder.mkdir(parents=True)
    telling = signals()
    broken = 0
    for index in range(count):
        name = f"node{index:05d}"
        log = next(pieces(0, 0.0)) + rng.choice(_quiet()) * rng.randrange(3, 40) + b"".join(rng.sample(telling, 3))
        stamped = log.replace(b"##-## ##:##:##", f"03-{1 + index % 28:02d} 12:{index % 60:02d}:00".encode())
        if broken_every and index % broken_every == broken_every - 1:
            _broken(folder / name, stamped, broken)
            broken += 1
        elif index % 3 == 0:
            (folder / f"{name}.log").write_bytes(stamped)
        elif index % 3 == 1:
            (folder / name).mkdir()
            (folder / name / "server.log").write_bytes(stamped)
            (folder / name / "dmesg.txt").write_bytes(
                b"[    0.000000] Linux version 6.8.0 (build@host)\n[ 1234.%06d] NVRM: Xid (PCI:0000:41:00): %d, pid=1, name=VLLM\n"
                % (index, rng.choice((13, 31, 43, 79)))
            )
        else:
            with tarfile.open(folder / f"{name}.tar.gz", "w:gz") as tar:
                member = tarfile.TarInfo("server.log")
                member.size = len(stamped)
                tar.addfile(member, io.BytesIO(stamped))
    return count - broken, broken


def _quiet() -> list[bytes]:
    return [b'(APIServer pid=411) INFO:     10.0.0.%d:4000 - "POST /v1/completions HTTP/1.1" 200 OK\n' % n for n in range(9)]


def _broken(path: Path, log: bytes, which: int) -> None:
    sort = which % 5
    if sort == 0:  # ends in the middle
        path.with_suffix(".tar.gz").write_bytes(gzip.compress(log * 20)[:700])
    elif sort == 1:  # expands a thousandfold
        path.with_suffix(".gz").write_bytes(gzip.compress(b"\0" * (64 << 20)))
    elif sort == 2:  # no text at all
        path.with_suffix(".bin").write_bytes(random.Random(which).randbytes(200_000))
    elif sort == 3:  # one line without end
        path.with_suffix(".log").write_bytes(b"(" * 8_000_000)
    else:  # nothing in it
        path.with_suffix(".log").write_bytes(b"")
