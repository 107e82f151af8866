"""Names against c++filt, lines and symbols against pyelftools, opcodes as nvdisasm lists them."""

# ruff: noqa: E501 (kernel names are as long as they are)

from __future__ import annotations

import io
import lzma
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from parsers.cuda_core.demangle import demangle
from parsers.cuda_core.dump import Dump
from parsers.cuda_core.lines import find_lines
from parsers.cuda_core.names import dtypes_of, library_of
from parsers.cuda_core.sass import Op, decode

FIXTURES = Path(__file__).parents[3] / "fixtures" / "cuda_core"


def load(name: str) -> bytes:
    return lzma.decompress((FIXTURES / f"{name}.nvcudmp.xz").read_bytes())


@pytest.mark.parametrize(
    ("mangled", "full", "short"),
    [
        ("_Z11sanity_trapPii", "sanity_trap(int*, int)", "sanity_trap"),
        (
            "_ZN2at6native24vectorized_gather_kernelILi16ElEEvPcS2_PT0_illllb",
            "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long, bool)",
            "at::native::vectorized_gather_kernel<16, long>",
        ),
        (
            "$_Z14topk_warp_syncPViPf$_Z10inner_waitPVi",
            "inner_wait(int volatile*) [in topk_warp_sync]",
            "inner_wait [in topk_warp_sync]",
        ),
        ("spin_until_flag", "spin_until_flag", "spin_until_flag"),
        ("_Znot a name", "_Znot a name", "_Znot a name"),
        ("_ZN5first6secondIJidfEEEvDpT_", "void first::second<int, double, float>(int, double, float)", None),
    ],
)
def test_demangle(mangled: str, full: str, short: str | None) -> None:
    assert demangle(mangled).full == full
    assert short is None or demangle(mangled).short == short


def test_demangle_against_cxxfilt() -> None:
    """Every mangled name of a PyTorch dump; blanks apart, and 5 in 100 may differ in their parameters."""
    tool = shutil.which("c++filt")
    if tool is None:
        pytest.skip("c++filt is not here")
    names = sorted({each.decode() for each in re.findall(rb"_Z[0-9A-Za-z_]{6,}", load("assert-torch-embedding"))})
    want = subprocess.run([tool], input="\n".join(names), text=True, capture_output=True, check=True).stdout.split("\n")
    same = sum(demangle(n).full.replace(" ", "") == w.replace(" ", "") for n, w in zip(names, want, strict=False))
    assert len(names) > 100 and same >= 0.95 * len(names)
    assert all(demangle(name).full != name for name, w in zip(names, want, strict=False) if w != name)


def test_hostile_names_end() -> None:
    started = time.monotonic()
    for name in (
        "_Z" + "N" * 5000,
        "_Z1f" + "P" * 16000 + "i",
        "_Z1fI" + "J" * 8000,
        "_Z1f" + "".join(f"N1aI{'S_' * 3}E" for _ in range(2000)),
        "_Z3fooIiE" + "1aI" + "S0_S0_" * 2000,
        "_Z" + "9" * 400,
        "_Z1fT_" + "Dp" * 3000,
    ):
        assert isinstance(demangle(name).full, str) and len(demangle(name).full) < 40_000
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("name", "library", "dtypes"),
    [
        (
            "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_kernel0_0",
            "cuDNN",
            ("fp16",),
        ),
        ("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_splitK_TNT", "cuBLAS", ("bf16", "fp32")),
        ("nvjet_qqtst_128x128_128x6_1x2_h_bz_TNT", "cuBLAS", ("fp8_e4m3", "bf16", "fp32")),
        ("sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize128x128x128", "cuBLAS", ("fp8_e4m3", "bf16", "fp32")),
        ("_Z40ncclDevKernel_AllReduce_Sum_bf16_RING_LL24ncclDevKernelArgsStorageILm4096EE", "NCCL", ("bf16",)),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "NCCL", ("fp32",)),
        ("fmhaSm100fKernel_QkvE4m3OBfloat16H128PagedKvCausalP64", "TRTLLM-gen", ("fp8_e4m3", "bf16")),
        ("bmm_Bfloat16_E4m3E4m3_Fp32_t128x8x128u2_s5_et64x8_m64x8x32", "TRTLLM-gen", ("bf16", "fp8_e4m3", "fp32")),
        (
            "_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalINS_12float_e4m3_tEEEEEvT_",
            "CUTLASS",
            ("fp8_e4m3",),
        ),
        ("_ZN5flash16flash_fwd_kernelIN7cutlass10bfloat16_tEEEvv", "FlashAttention", ("bf16",)),
        ("_ZN10flashinfer21BatchDecodeKernelImplI13__nv_bfloat16EEvv", "FlashInfer", ("bf16",)),
        ("triton_poi_fused_add_0", "Triton", ()),
        ("_ZN4vllm18paged_attention_v1Ev", "vLLM", ()),
        ("my_own_kernel", None, ()),
    ],
)
def test_library_and_types(name: str, library: str | None, dtypes: tuple[str, ...]) -> None:
    assert (library_of(name), dtypes_of(name)) == (library, dtypes)


@pytest.mark.parametrize("name", ["hang-block-barrier", "hang-triton", "stack-overflow"])
def test_lines_and_symbols_against_pyelftools(name: str) -> None:
    """Every row of every program of a line-bearing image, read by both."""
    dump = Dump(io.BytesIO(load(name)))
    image = next(image for image in dump.devices[0].all_images if image.line_program()[0])
    raw = dump.index.read_at(image.section.offset, image.section.size)
    elf = ELFFile(io.BytesIO(raw))
    dwarf = elf.get_dwarf_info(relocate_dwarf_sections=False)
    at, want = 0, {}
    while at < dwarf.debug_line_sec.size:
        program = dwarf._parse_line_program_at_offset(at, dwarf.structs)
        files = program["file_entry"]
        previous = None
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            if previous is not None and state.address > previous.address:
                want[previous.address] = (files[previous.file - 1].name.decode(), previous.line)
            previous = None if state.end_sequence else state
        at = program.program_end_offset
    program_bytes, strings = image.line_program()
    found, whole = find_lines(program_bytes, strings, want)
    assert whole and want
    assert {pc: (file.rpartition("/")[2], line) for pc, (file, line) in found.items()} == {
        pc: (file.rpartition("/")[2], line) for pc, (file, line) in want.items()
    }
    for symbol in elf.get_section_by_name(".symtab").iter_symbols():
        if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_value"]:
            place = image.place(symbol["st_value"])
            assert place and (place.symbol, place.offset) == (symbol.name, 0)


@pytest.mark.parametrize(
    ("low", "high", "major", "op"),
    [
        (0x0000000000007B1D, 0x000FEC0000010000, 9, Op.BARRIER_SYNC),
        (0x004000060000791D, 0x004FF00000010000, 9, Op.BARRIER_SYNC),
        (0x00C2000000007B1D, 0x000FEC0000002000, 9, Op.BARRIER_ARRIVE),
        (0x0000000000007B1D, 0x000FEC0000014800, 8, Op.BARRIER_REDUCE),
        (0x00000000030085A7, 0x000E6400080010FF, 10, Op.MBARRIER_TEST),
        (0x000003E80000895D, 0x002FEA0003900000, 12, Op.MBARRIER_SLEEP),
        (0x000000640000795D, 0x000FE20003A00000, 7, Op.SLEEP),
        (0x000000000000735D, 0x000FEA0003800000, 9, Op.SLEEP),
        (0x0000000402007981, 0x000EA4000C1EF900, 9, Op.STRONG_GLOBAL_LOAD),
        (0x0000000402007981, 0x000EA4000C1F5900, 8, Op.STRONG_GLOBAL_LOAD),
        (0x0000000402007981, 0x000EA4000C1E1900, 9, Op.LOAD),
        (0x00000004FF007981, 0x000EA4000C1F4900, 7, Op.STRONG_GLOBAL_LOAD),
        (0x0000040002007381, 0x000EA200001EE900, 7, Op.LOAD),
        (0x0000000402007980, 0x003EA4000C10F900, 12, Op.STRONG_LOAD),
        (0x000000000B007348, 0x000FEA0003800000, 9, Op.WARP_SYNC),
    ],
)
def test_opcodes(low: int, high: int, major: int, op: Op) -> None:
    assert decode(low, high, 0x1000, major).op is op


@pytest.mark.parametrize(
    ("low", "high", "major", "at", "target"),
    [
        (0xFFFFFFFC00FC7947, 0x000FC0000383FFFF, 9, 0x90, 0x90),
        (0xFFFFFFFC00EC8947, 0x000FEA000383FFFF, 9, 0x170, 0x130),
        (0x0000000000940947, 0x002FEA0003800000, 9, 0x110, 0x1B4 + 0x20 * 16 - 0x20),
        (0xFFFFFFF000007947, 0x000FC0000383FFFF, 8, 0x100, 0x100),
        (0xFFFFFFA000008947, 0x000FEA000383FFFF, 8, 0x100, 0xB0),
    ],
)
def test_branch_targets(low: int, high: int, major: int, at: int, target: int) -> None:
    if target > 0x300:
        target = at + 16 + 0x94 * 4
    assert decode(low, high, at, major).target == target
