"""Real dumps against reviewed views; synthetic ones for what no real dump here shows."""

from __future__ import annotations

import io
import json
import lzma
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import dump_writer as writer
from dump_writer import Shape, write_dump

from parsers.contract import BinaryParser, Trouble
from parsers.cuda_core import PARSER
from parsers.event import Event

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "fixtures" / "cuda_core"
DUMPS = sorted(path.name.removesuffix(".nvcudmp.xz") for path in FIXTURES.glob("*.nvcudmp.xz"))


def load(name: str) -> io.BytesIO:
    return io.BytesIO(lzma.decompress((FIXTURES / f"{name}.nvcudmp.xz").read_bytes()))


def synthetic(shape: Shape) -> io.BytesIO:
    file = io.BytesIO()
    write_dump(file, shape)
    return file


def events_of(file: io.BytesIO) -> list[Event]:
    return [event for event in PARSER.read_binary(file, "core") if isinstance(event, Event)]


def view_of(shape: Shape) -> dict[str, Any]:
    return PARSER.inspect_binary(synthetic(shape), "core")


def test_it_is_a_parser() -> None:
    assert isinstance(PARSER, BinaryParser)
    assert (PARSER.name, PARSER.kind) == ("cuda_core", "cuda_core")


@pytest.mark.parametrize("name", DUMPS)
def test_real_dump(name: str) -> None:
    """The view (its first eight warps) and the events as reviewed."""
    view = PARSER.inspect_binary(load(name), f"{name}.nvcudmp.xz")
    view["warps"] = view["warps"][:8]
    view["events"] = [
        f"{event.kind}: {event.text}" if isinstance(event, Event) else f"trouble {event.tag}: {event.text}"
        for event in PARSER.read_binary(load(name), f"{name}.nvcudmp.xz")
    ]
    assert json.loads(json.dumps(view)) == json.loads((FIXTURES / f"{name}.json").read_text())


@pytest.mark.parametrize("name", DUMPS)
def test_events_hold_to_the_vocabulary(name: str) -> None:
    import tomllib

    vocabulary = tomllib.loads((ROOT / "rules" / "vocabulary.toml").read_text())["events"]["cuda_core"]
    for event in events_of(load(name)):
        assert event.text and "\n" not in event.text
        assert (event.span.first_line, event.span.last_line) == (0, 0)
        if event.kind == "fact":
            assert event.fields["name"] in ("gpu.name", "gpu.sm", "driver.version")
            continue
        listed = vocabulary[event.kind.removeprefix("cuda_core.")]
        assert all(field in listed for field in event.fields), (event.kind, event.fields)


def test_foreign_files_are_refused() -> None:
    host_core = b"\x7fELF\x02\x01\x01\0".ljust(16, b"\0") + struct.pack("<HH", 4, 62) + bytes(44)
    cubin = b"\x7fELF\x02\x01\x01\x41\x08".ljust(16, b"\0") + struct.pack("<HH", 2, 190) + bytes(44)
    for head in (host_core, cubin, b"\x1f\x8b" + bytes(62), b"plain text", b""):
        assert PARSER.sniff_bytes(head) == 0.0
    assert PARSER.sniff_bytes(load("trap").read(4096)) == 1.0


def test_the_hang_that_started_it() -> None:
    """Warps at a barrier and one elsewhere: the event says where, with line, tid, slot and time."""
    kernel = next(event for event in events_of(load("hang-block-barrier")) if event.kind == "cuda_core.kernel")
    assert kernel.fields["waits"] == "block_barrier" and kernel.fields["wait_share"] == 0.75
    assert kernel.fields["all_at_barrier"] is False and "scen.cu:62" in kernel.fields["elsewhere"][0]
    assert kernel.actor.gpu == "0000:00:06" and kernel.fields["tid"] == 1314
    assert kernel.stamp and kernel.stamp.value == 1796068728


def test_synthetic_equals_real_in_shape() -> None:
    """What the writer makes of a plain hang has the same tables, row sizes and parents as a real dump."""
    from parsers.cuda_core.elf_index import Kind, Notes, SectionIndex

    real = SectionIndex(load("hang-block-barrier"), Notes())
    made = SectionIndex(synthetic(Shape(sms=3)), Notes())

    def sizes(index: SectionIndex) -> dict[int, set[int]]:
        found: dict[int, set[int]] = {}
        for section in index.by_number.values():
            if section.kind > 0 and section.size and section.kind != Kind.RELOCATED_IMAGE:
                found.setdefault(section.kind, set()).add(section.entsize)
        return found

    def parents(index: SectionIndex) -> set[tuple[int, int]]:
        rows = [each for each in index.by_number.values() if each.kind > 0 and each.link]
        return {(each.kind, index.by_number[each.link].kind) for each in rows}

    assert sizes(made) == sizes(real)
    assert parents(made) == parents(real)


@pytest.mark.parametrize(
    ("shape", "waits"),
    [
        (Shape(), {"block_barrier": 16}),
        (Shape(odd_pc=writer.AT_SLEEP), {"block_barrier": 12, "sleep_poll": 4}),
        (Shape(pc=writer.AT_MBARRIER, devices=2), {"mbarrier_wait": 16}),
        (Shape(sm_version=(10, 0)), {"block_barrier": 16}),
        (Shape(code=(writer.NOP, writer.BAR_ARV, writer.NOP, writer.EXIT)), {"none": 16}),
        (Shape(code=(writer.NOP, writer.BAR_RED, writer.NOP, writer.EXIT)), {"block_barrier": 16}),
        (Shape(code=(writer.NOP, writer.LDG_STRONG, writer.NOP, writer.EXIT)), {"memory_poll": 16}),
        (Shape(code=(writer.NOP, writer.LDG_WEAK, writer.NOP, writer.EXIT)), {"none": 16}),
        (Shape(code=(writer.NOP, writer.NOP, writer.CLUSTER_WAIT, writer.EXIT)), {"cluster_barrier": 16}),
        (Shape(code=(writer.NOP, writer.NOP, writer.WARPSYNC, writer.EXIT)), {"warp_sync": 16}),
        (Shape(code=(writer.BAR_SYNC, writer.BRA_SELF, writer.NOP, writer.EXIT)), {"none": 16}),
        (Shape(instruction_bytes=8, sm_version=(6, 1)), {"none": 16}),
        (Shape(exception=14), {"none": 16}),
    ],
)
def test_waits(shape: Shape, waits: dict[str, int]) -> None:
    assert view_of(shape)["kernels"][0]["waits"] == waits


def test_older_and_newer_rows() -> None:
    """Rows of a driver before r555 and of one to come: the fields that are there, None for the others."""
    old = view_of(Shape(rows={"lane": 48, "warp": 32, "cta": 24, "grid": 104, "sm": 8, "device": 72}, metadata=False))
    assert old["complete"] and old["kernels"][0]["waits"] == {"block_barrier": 16}
    assert old["warps"][0]["numregs"] is None and old["warps"][0]["lane_states"] == {}
    assert old["generator"]["driver"] is None and any("r565" in text for text in old["missing"])
    new = view_of(Shape(rows={"lane": 64, "warp": 96, "cta": 72, "grid": 192, "sm": 64, "device": 120, "metadata": 64}))
    assert new["complete"] and new["kernels"][0]["waits"] == {"block_barrier": 16}
    assert new["generator"]["driver"] == "580.159"


def test_unknown_numbers_stay_numbers() -> None:
    view = view_of(Shape(exception=99, grid_status=77))
    assert view["exceptions"][0]["code"] == 99 and view["exceptions"][0]["name"] == "exception 99"
    assert view["kernels"][0]["status"] == "77"


def test_fault_kept_by_the_sm_alone() -> None:
    view = view_of(Shape(sm_exception=6, warps=0))
    assert (view["exceptions"][0]["warp"], view["exceptions"][0]["name"]) == (None, "warp misaligned address")
    texts = [event.text for event in events_of(synthetic(Shape(sm_exception=6, warps=0)))]
    assert any("whose warps have exited" in text for text in texts)


def test_nothing_resident_and_nothing_named() -> None:
    kinds = [event.kind for event in events_of(synthetic(Shape(grids=False)))]
    assert "cuda_core.no_grid" in kinds and "cuda_core.kernel" not in kinds
    bare = view_of(Shape(images=False))
    assert any("relocated module images" in text for text in bare["missing"])
    assert bare["kernels"][0]["name"] == "" and bare["warps"][0]["symbol"] is None


def test_stacks_and_traps() -> None:
    assert len(view_of(Shape(depth=3))["warps"][0]["stack"]) == 3
    assert [event.kind for event in events_of(synthetic(Shape(broken=1, warps=1, sms=1)))].count("cuda_core.trap") == 1


def test_producers_that_have_exited() -> None:
    texts = PARSER.inspect_binary(load("hang-mbarrier"), "core")["kernels"][0]["conclusions"]
    assert any("have exited" in text for text in texts)


def test_a_hole_where_memory_was() -> None:
    """Global memory is stepped over, whatever its size."""
    file = io.BytesIO()
    write_dump(file, Shape(flags=0), gap=1 << 20)
    view = PARSER.inspect_binary(file, "core")
    assert view["complete"] and view["kernels"][0]["warps"] == 16


def test_extended_numbering() -> None:
    view = view_of(Shape(extended=True))
    assert view["complete"] and view["kernels"][0]["waits"] == {"block_barrier": 16}


def test_hostile_links_and_sizes() -> None:
    """Loops in links, tables that overlap, rows of size 0: a note each, no endless walk."""
    data = bytearray(synthetic(Shape()).getvalue())
    table = struct.unpack_from("<Q", data, 40)[0]
    count = struct.unpack_from("<H", data, 60)[0]
    for number in range(1, count):
        struct.pack_into("<II", data, table + number * 64 + 40, number, 0)
    view = PARSER.inspect_binary(io.BytesIO(bytes(data)), "core")
    assert view["devices"] == [] and view["complete"] is False
    data = bytearray(synthetic(Shape()).getvalue())
    for number in range(1, count):
        struct.pack_into("<Q", data, table + number * 64 + 56, 0)
    view = PARSER.inspect_binary(io.BytesIO(bytes(data)), "core")
    assert view["complete"] is False and any("rows of 0 bytes" in note["text"] for note in view["notes"])


def test_cut_inside_the_header_table() -> None:
    data = load("two-devices").getvalue()
    view = PARSER.inspect_binary(io.BytesIO(data[:-640]), "core")
    assert view["complete"] is False and view["devices"]
    troubles = [each for each in PARSER.read_binary(io.BytesIO(data[:-640]), "core") if isinstance(each, Trouble)]
    assert any(trouble.tag == "truncated" for trouble in troubles)


def test_names_left_in_a_cut_file() -> None:
    data = load("hang-block-barrier").getvalue()
    table = struct.unpack_from("<Q", data, 40)[0]
    view = PARSER.inspect_binary(io.BytesIO(data[: table - 1]), "core")
    assert view["complete"] is False and "_Z15layernorm_fusedPKfPfPVii" in view["named"]


def test_a_stack_that_ran_over_shows_its_recursion() -> None:
    """Driver 580 reports endless recursion as an out-of-range address; the call stack tells it apart."""
    (fault,) = (event for event in events_of(load("stack-overflow")) if event.kind == "cuda_core.exception")
    assert "tree_depth" in fault.fields["recursion"] and "in a recursion of" in fault.text
    (fault,) = (event for event in events_of(load("misaligned")) if event.kind == "cuda_core.exception")
    assert fault.fields["recursion"] is None
