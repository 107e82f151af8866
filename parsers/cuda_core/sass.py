"""The few SASS instructions that say what a warp waits for, by opcode.

From Volta on an instruction is 16 bytes; bits 0-11 of the first word are the opcode, bits 12-14 the predicate (7 =
always). The numbers below were read on sm_90 dumps and hold for sm_75, sm_80, sm_86, sm_89, sm_90, sm_100, sm_103 and
sm_120: test kernels compiled by nvcc 13.0 for each and listed by nvdisasm agree.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import StrEnum

INSTRUCTION_BYTES = 16


class Op(StrEnum):
    """What an instruction does, as far as waiting is concerned."""

    BARRIER_SYNC = "BAR.SYNC"
    BARRIER_ARRIVE = "BAR.ARV"
    BARRIER_REDUCE = "BAR.RED"
    MBARRIER_TEST = "SYNCS.PHASECHK"
    MBARRIER_ARRIVE = "SYNCS.ARRIVE"
    MBARRIER_SLEEP = "NANOSLEEP.SYNCS"
    CLUSTER_ARRIVE = "UCGABAR_ARV"
    CLUSTER_WAIT = "UCGABAR_WAIT"
    SLEEP = "NANOSLEEP"
    WARP_SYNC = "WARPSYNC"
    STRONG_LOAD = "LD.STRONG"
    STRONG_GLOBAL_LOAD = "LDG.STRONG"
    LOAD = "LD"
    ATOMIC = "ATOM"
    STORE = "ST"
    BRANCH = "BRA"
    CALL = "CALL"
    RETURN = "RET"
    EXIT = "EXIT"
    TRAP = "BPT.TRAP"
    OTHER = ""


FLOW = frozenset((Op.BRANCH, Op.CALL, Op.RETURN, Op.EXIT))

_OPS: dict[int, Op] = {
    0x31D: Op.BARRIER_SYNC,
    0x51D: Op.BARRIER_SYNC,
    0x91D: Op.BARRIER_SYNC,
    0xB1D: Op.BARRIER_SYNC,
    0x5A7: Op.MBARRIER_TEST,
    0x9A7: Op.MBARRIER_ARRIVE,
    0x9C7: Op.CLUSTER_ARRIVE,
    0xDC7: Op.CLUSTER_WAIT,
    0x35D: Op.SLEEP,
    0x95D: Op.SLEEP,
    0x348: Op.WARP_SYNC,
    0x948: Op.WARP_SYNC,
    0xB48: Op.WARP_SYNC,
    0x980: Op.LOAD,
    0x381: Op.LOAD,
    0x981: Op.LOAD,
    0x984: Op.LOAD,
    0x98A: Op.ATOMIC,
    0x9A8: Op.ATOMIC,
    0x3A9: Op.ATOMIC,
    0x38B: Op.ATOMIC,
    0x98C: Op.ATOMIC,
    0x38D: Op.ATOMIC,
    0x385: Op.STORE,
    0x985: Op.STORE,
    0x386: Op.STORE,
    0x986: Op.STORE,
    0x547: Op.BRANCH,
    0x947: Op.BRANCH,
    0x949: Op.BRANCH,
    0x94A: Op.BRANCH,
    0x343: Op.CALL,
    0x943: Op.CALL,
    0x344: Op.CALL,
    0x944: Op.CALL,
    0x950: Op.RETURN,
    0x94D: Op.EXIT,
    0x95C: Op.TRAP,
}


@dataclass(slots=True, frozen=True)
class Instruction:
    """One instruction: `target` is the address that a direct branch leads to, None for all else."""

    address: int
    op: Op
    always: bool
    target: int | None = None


def decode(low: int, high: int, address: int, sm_major: int) -> Instruction:
    """Decode one instruction. Unknown opcodes are `Op.OTHER`; nothing is ever refused."""
    opcode = low & 0xFFF
    op = _OPS.get(opcode, Op.OTHER)
    always = low >> 12 & 15 == 7
    target = None
    if op is Op.BARRIER_SYNC:
        op = {1: Op.BARRIER_ARRIVE, 2: Op.BARRIER_REDUCE}.get(high >> 13 & 7, op)
    elif op is Op.SLEEP and high >> 20 & 3 == 1:
        op = Op.MBARRIER_SLEEP
    elif op is Op.LOAD and opcode != 0x984:
        # Order and scope; .STRONG.SM and above. sm_7x counts them from 8, where 7 is a weak load.
        if high >> 13 & 15 >= (8 if sm_major < 8 else 5):
            op = Op.STRONG_LOAD if opcode == 0x980 else Op.STRONG_GLOBAL_LOAD
    elif opcode in (0x947, 0x547):
        target = address + INSTRUCTION_BYTES + _branch_offset(low, high, sm_major)
    return Instruction(address, op, always, target)


def _branch_offset(low: int, high: int, sm_major: int) -> int:
    """Bytes from the next instruction. Before sm_90 a 50-bit byte count (two low bits are flags); from sm_90 on the
    count of 4-byte units is split, its low eight bits in bits 16-23."""
    upper = low >> 34 | (high & 0x3FFFF) << 30
    if upper >> 47:
        upper -= 1 << 48
    return (upper << 8 | low >> 16 & 0xFF) * 4 if sm_major >= 9 else upper * 4


def decode_all(code: bytes, start: int, sm_major: int) -> list[Instruction]:
    """Decode a stretch of code that begins at address `start`; a partial instruction at its end is dropped."""
    pairs = struct.iter_unpack("<QQ", code[: len(code) // INSTRUCTION_BYTES * INSTRUCTION_BYTES])
    return [decode(low, high, start + number * INSTRUCTION_BYTES, sm_major) for number, (low, high) in enumerate(pairs)]
