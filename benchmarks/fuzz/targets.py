"""What is fuzzed: a name, a function of bytes that must return, and the fixtures that it starts from.

A target raises only for a fault: a parser's Trouble or a documented error type is an answer, not a crash.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from analyzer.intake.archive import unfold
from analyzer.intake.budget import MIB, Budget
from analyzer.intake.lines import physical
from analyzer.intake.readings import reading_of
from analyzer.intake.sources import HEAD, Peek, Source
from analyzer.intake.text import blocks, decode, without_ansi
from analyzer.intake.transport import transports_of
from analyzer.intake.user_text import without_user_text
from analyzer.redact.redactor import redact_text
from parsers.contract import BinaryParser, Line, TextParser, Trouble, discover

FIXTURES = Path(__file__).parents[2] / "fixtures"
SLOW = 5.0
"""CPU seconds that one input may take."""


@dataclass(frozen=True, slots=True)
class Target:
    """`seeds` are globs below fixtures/, `made` gives further ones; `largest` is the most bytes that are fed."""

    run: Callable[[bytes], None]
    seeds: tuple[str, ...]
    largest: int = 64 * 1024
    made: Callable[[], list[bytes]] = list


def _budget() -> Budget:
    return Budget(total_out=64 * MIB, member_out=16 * MIB, spool=16 * MIB, ratio_from=4 * MIB, members=200)


def archive(data: bytes) -> None:
    """The archive walker: everything it yields is read to its end."""
    troubles: list[Trouble] = []
    for source in unfold(Source("fuzz", io.BytesIO(data), len(data), io.BytesIO(data)), _budget(), troubles):
        while source.stream.read(MIB):
            pass
        assert "\n" not in source.name and "\x1b" not in source.name


def splitter(data: bytes) -> None:
    """Line splitter and decoder: no byte lost or counted twice in plain text, offsets in order."""
    budget, troubles = _budget(), []  # type: Budget, list[Trouble]
    end, number = 0, 0
    for block in blocks("fuzz", Peek(io.BytesIO(data)), data[:HEAD], budget, troubles):
        assert block.offset >= end - 1
        for line in physical(block, budget):
            assert line.number == number + 1 and line.start <= line.end
            number = line.number
        end = block.offset + len(block.data)


def transports(data: bytes) -> None:
    """Transports are recognised on any head and taken off any line; users' text is found in it."""
    from analyzer.intake.lines import lines_of
    from analyzer.intake.text import Block

    head = decode(without_ansi(data))
    stack = transports_of(head)
    for line in lines_of(Block(data, 0, 1, last=True), stack, _budget()):
        masked = without_user_text(line.text)
        assert len(masked) == len(line.text)


def stamps(data: bytes) -> None:
    """Readings of clocks in any line."""
    for line in decode(data).split("\n")[:200]:
        reading_of(line)


def rules(data: bytes) -> None:
    """The loader of rule files: a rule, or a list of faults."""
    from analyzer.reasoning.rulebook import RuleFault, read_rule

    with suppress(RuleFault):
        read_rule(data, Path("fuzz.toml"))


def pickles(data: bytes) -> None:
    """The gate in front of flight recorder pickles."""
    from parsers.flight_recorder.plain_pickle import PickleRefusedError, load_plain

    with suppress(PickleRefusedError):
        load_plain(data)


def _binary(name: str) -> Callable[[bytes], None]:
    def run(data: bytes) -> None:
        parser = next(one for one in discover() if one.name == name)
        assert isinstance(parser, BinaryParser)
        list(parser.read_binary(io.BytesIO(data), "fuzz"))
        parser.inspect_binary(io.BytesIO(data), "fuzz")

    return run


def texts(data: bytes) -> None:
    """Every text parser on any text."""
    lines, at = [], 0
    for number, raw in enumerate(data.split(b"\n"), 1):
        lines.append(Line(number, at, at + len(raw), decode(without_ansi(raw))))
        at += len(raw) + 1
    for parser in discover():
        if isinstance(parser, TextParser):
            parser.sniff(decode(data[:HEAD]))
            for line in lines[:50]:
                parser.claims(line.text)
            list(parser.read(iter(lines), "fuzz"))
            parser.inspect(iter(lines), "fuzz")


def redaction(data: bytes) -> None:
    """Redaction keeps lines and is idempotent."""
    text = decode(data)
    once = redact_text(text)
    assert once.count("\n") == text.count("\n")
    assert redact_text(once) == once


def whole(data: bytes) -> None:
    """The whole trip on one file."""
    from analyzer.analyze import analyze
    from analyzer.reasoning.rulebook import load

    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        analyze([file.name], load(), _budget())


def archives() -> list[bytes]:
    """One small archive of each kind, and some in one another."""
    text = b"INFO 07-31 15:52:26 [core.py:77] Initializing a V1 LLM engine\n" * 8
    tar, packed = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        member = tarfile.TarInfo("bundle/server.log")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
        link = tarfile.TarInfo("bundle/latest")
        link.type, link.linkname = tarfile.SYMTYPE, "../../etc/passwd"
        archive.addfile(link)
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive_of_zip:
        archive_of_zip.writestr("bundle/server.log", text)
        archive_of_zip.writestr("inner.tar", tar.getvalue())
    plain = [text, tar.getvalue(), packed.getvalue()]
    return [pack(data) for data in plain for pack in (bytes, gzip.compress, bz2.compress, lzma.compress)]


TARGETS: dict[str, Target] = {
    "archive": Target(archive, ("cuda_core/cut-short*.xz",), made=archives),
    "splitter": Target(splitter, ("kernel_log/*.txt", "vllm_log/*")),
    "transports": Target(transports, ("vllm_log/*", "kernel_log/*.txt"), 8 * 1024),
    "stamps": Target(stamps, ("kernel_log/*.txt", "vllm_log/*", "nccl_log/*"), 4 * 1024),
    "rules": Target(rules, ("../rules/*/*.toml",), 8 * 1024),
    "pickles": Target(pickles, ("flight_recorder/nccl_trace_rank_?",)),
    "cuda_core": Target(_binary("cuda_core"), ("cuda_core/trap*.xz", "cuda_core/assert.*.xz"), 512 * 1024),
    "texts": Target(texts, ("*/*.txt", "*/*.log"), 8 * 1024),
    "redaction": Target(redaction, ("vllm_log/*", "stacks/*.txt", "nccl_log/*"), 4 * 1024),
    "whole": Target(whole, ("*/*.txt",), 32 * 1024),
}


def kept_path(name: str) -> Path:
    """Where the inputs that the test run replays are packed."""
    return FIXTURES / "fuzz" / f"{name}.tar.xz"


def kept(name: str) -> list[bytes]:
    """The packed inputs of a target; none where nothing is packed yet."""
    if not kept_path(name).is_file():
        return []
    with tarfile.open(kept_path(name)) as archive:
        return [file.read() for member in archive if (file := archive.extractfile(member)) is not None]


def timed(target: Target, data: bytes) -> None:
    """One input; raises for a fault or for more than `SLOW` seconds."""
    began = time.process_time()
    target.run(data[: target.largest])
    spent = time.process_time() - began
    if spent > SLOW:
        raise TimeoutError(f"{spent:.1f} s of CPU on {len(data)} bytes")
