"""What a warp waits for, from the instructions around its PC; what a grid's warps say together.

A hint, never proof: one sample, and a warp that was released a moment ago looks like one that still waits. The PC of
a warp blocked in BAR.SYNC.DEFER_BLOCKING stands one to four instructions behind it, because independent instructions
still issue; hence the look back, which never crosses a branch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from parsers.cuda_core.sass import FLOW, INSTRUCTION_BYTES, Instruction, Op, decode_all

LOOK_BACK = 6
LONGEST_LOOP = 14
_BLOCKED_PLUS = 6


class Wait(StrEnum):
    """The closed list of the report's `wait_kind`."""

    BLOCK_BARRIER = "block_barrier"
    MBARRIER = "mbarrier_wait"
    CLUSTER_BARRIER = "cluster_barrier"
    WARP_SYNC = "warp_sync"
    SLEEP_POLL = "sleep_poll"
    MEMORY_POLL = "memory_poll"


_POLLS = (Wait.MEMORY_POLL, Wait.SLEEP_POLL)


@dataclass(slots=True, frozen=True)
class Surroundings:
    """What the code around one PC shows."""

    before: Op
    at: Op
    barrier_behind: bool
    loop: Wait | None
    reduces: bool


NOWHERE = Surroundings(Op.OTHER, Op.OTHER, False, None, False)


def surroundings(code: bytes, start: int, pc: int, sm_major: int) -> Surroundings:
    """Decode the stretch of code that begins at `start` and look at it from `pc`."""
    if (pc - start) % INSTRUCTION_BYTES or pc < start:
        return NOWHERE
    instructions = decode_all(code, start, sm_major)
    here = (pc - start) // INSTRUCTION_BYTES
    if here >= len(instructions):
        return NOWHERE
    before = instructions[here - 1].op if here else Op.OTHER
    behind = False
    for step in range(1, min(LOOK_BACK, here) + 1):
        op = instructions[here - step].op
        if op in (Op.BARRIER_SYNC, Op.BARRIER_REDUCE):
            behind = True
            break
        if op in FLOW:
            break
    reduces = before is Op.BARRIER_REDUCE
    return Surroundings(before, instructions[here].op, behind, _loop(instructions, here), reduces)


def _loop(instructions: list[Instruction], here: int) -> Wait | None:
    """The kind of the short polling loop around the PC: a branch at or behind it that leads back to or before it."""
    pc = instructions[here].address
    for at in range(here, min(len(instructions), here + LONGEST_LOOP)):
        instruction = instructions[at]
        if instruction.op in (Op.CALL, Op.RETURN) or (instruction.op is Op.EXIT and instruction.always):
            return None
        if instruction.target is None:
            continue
        if instruction.target > pc:
            if instruction.always and instruction.target > instruction.address:
                return None
            continue
        first = here - (pc - instruction.target) // INSTRUCTION_BYTES
        if first < 0 or at - first >= LONGEST_LOOP:
            return None
        body = {each.op for each in instructions[first : at + 1]}
        if Op.STORE in body or Op.BARRIER_SYNC in body:
            return None
        if body & {Op.MBARRIER_TEST, Op.MBARRIER_SLEEP}:
            return Wait.MBARRIER
        if Op.SLEEP in body:
            return Wait.SLEEP_POLL
        if body & {Op.STRONG_GLOBAL_LOAD, Op.STRONG_LOAD, Op.ATOMIC}:
            return Wait.MEMORY_POLL
        return None
    return None


def classify(
    lowest: Surroundings, states: Iterable[int], others: Iterable[Surroundings], exception_in_dump: bool
) -> Wait | None:
    """The wait of one warp: its lowest valid lane first, then any other PC of it.

    `others` are the remaining PCs, the most frequent first. The look back over several instructions is not trusted in
    a dump that holds an exception: there, warps were stopped wherever they were.
    """
    plain = _at_pc(lowest, any(state == _BLOCKED_PLUS for state in states))
    if plain is not None:
        return plain
    if lowest.barrier_behind and not exception_in_dump:
        return Wait.BLOCK_BARRIER
    if lowest.loop is not None:
        return lowest.loop
    for other in others:
        found = _at_pc(other, False) or other.loop
        if found is not None:
            return found
    return None


def _at_pc(seen: Surroundings, blocked_lane: bool) -> Wait | None:
    pair = (seen.before, seen.at)
    if seen.before in (Op.BARRIER_SYNC, Op.BARRIER_REDUCE) and seen.at is not Op.BRANCH:
        return Wait.BLOCK_BARRIER
    if Op.MBARRIER_TEST in pair or seen.at is Op.MBARRIER_SLEEP:
        return Wait.MBARRIER
    if seen.at is Op.CLUSTER_WAIT:
        return Wait.CLUSTER_BARRIER
    if seen.at is Op.WARP_SYNC or blocked_lane:
        return Wait.WARP_SYNC
    if Op.SLEEP in pair or Op.MBARRIER_SLEEP in pair:
        return Wait.SLEEP_POLL
    if Op.STRONG_GLOBAL_LOAD in pair:
        return Wait.MEMORY_POLL
    return None


@dataclass(slots=True)
class WarpSeen:
    """What the conclusions need of a warp."""

    block: tuple[int, int, int]
    wait: Wait | None
    faulted: bool
    where: str
    polls: Wait | None = None
    """What the lowest lanes loop on while the others of the warp wait for them at a warp sync."""


@dataclass(slots=True)
class Conclusion:
    """What the warps of one grid say together; `texts` are sentences that claim no more than one sample can."""

    waits: Counter[str] = field(default_factory=Counter)
    all_at_barrier: bool = False
    missing_warps: int = 0
    texts: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)


def conclude(warps: list[WarpSeen], warps_per_block: int, library: str | None) -> Conclusion:
    """Conclusions about one grid.

    `warps_per_block` is what the launch asked for (0 = unknown): fewer resident warps in a block have exited.
    """
    end = Conclusion()
    blocks: dict[tuple[int, int, int], list[WarpSeen]] = {}
    for warp in warps:
        end.waits[warp.wait.value if warp.wait else "none"] += 1
        blocks.setdefault(warp.block, []).append(warp)
    barrier_blocks = odd_blocks = exited_blocks = 0
    odd: Counter[str] = Counter()
    for members in blocks.values():
        waits = Counter(member.wait for member in members)
        exited_blocks += bool(warps_per_block and len(members) < warps_per_block)
        end.missing_warps += max(0, warps_per_block - len(members)) if warps_per_block else 0
        if waits[Wait.BLOCK_BARRIER] == len(members):
            barrier_blocks += 1
        elif waits[Wait.BLOCK_BARRIER] and len(members) - waits[Wait.BLOCK_BARRIER] <= max(1, len(members) // 4):
            odd_blocks += 1
            odd.update(_where(member) for member in members if member.wait is not Wait.BLOCK_BARRIER)
    end.all_at_barrier = bool(blocks) and barrier_blocks == len(blocks)
    faulted = sum(warp.faulted for warp in warps)
    if end.all_at_barrier:
        end.texts.append(
            "every resident warp of every block is consistent with waiting at a block barrier: the barrier expects "
            "more threads than ever arrive" + (" (some warps of the blocks have exited)" if exited_blocks else "")
        )
    elif barrier_blocks:
        end.texts.append(f"all resident warps of {barrier_blocks} of {len(blocks)} blocks wait at a block barrier")
    if odd_blocks * 2 > len(blocks):
        end.elsewhere = [place for place, _ in odd.most_common(4)]
        end.texts.append(
            f"in {odd_blocks} of {len(blocks)} blocks the other warps wait at a block barrier for "
            f"{', '.join(end.elsewhere)}: the warps that do not wait there are the lead"
        )
    consumers = end.waits[Wait.MBARRIER]
    if consumers and faulted:
        end.texts.append(
            f"{consumers} warps wait on an mbarrier while {faulted} warps carry an exception: the waiting warps are "
            "the symptom, the faulting ones the cause"
        )
    elif consumers == len(warps) and consumers and end.missing_warps:
        end.texts.append(
            f"every resident warp waits on an mbarrier and {end.missing_warps} warps of these blocks have exited: "
            "consistent with partners that exited before they signalled (data to consumers, a free slot to producers)"
        )
    elif consumers == len(warps) and consumers:
        end.texts.append("every resident warp waits on an mbarrier: consistent with a lost arrive or transaction count")
    synced = [warp for warp in warps if warp.wait is Wait.WARP_SYNC]
    if synced and len(synced) * 2 > len(warps):
        places = [place for place, _ in Counter(_where(warp) for warp in synced).most_common(2)]
        end.texts.append(
            f"in {len(synced)} warps some lanes wait for others of their own warp; the lowest of them: "
            + ", ".join(places)
        )
    cluster = end.waits[Wait.CLUSTER_BARRIER]
    if cluster and cluster < len(warps):
        rest = Counter(_where(warp) for warp in warps if warp.wait is not Wait.CLUSTER_BARRIER)
        end.elsewhere = end.elsewhere or [place for place, _ in rest.most_common(4)]
        end.texts.append(
            f"{cluster} of {len(warps)} warps wait at a cluster barrier; the others stand at "
            f"{', '.join(place for place, _ in rest.most_common(2))}: those are the lead"
        )
    elif cluster:
        end.texts.append("every resident warp waits at a cluster barrier: consistent with a block that never arrives")
    polling = sum(warp.wait in _POLLS or warp.polls in _POLLS for warp in warps)
    if polling and polling == len(warps):
        end.texts.append(
            "every resident warp polls memory: consistent with a flag, lock or counter that nobody sets (a peer, the "
            "host or another kernel would have to)"
        )
    if library == "NCCL" and end.waits.total() > end.waits["none"]:
        end.texts.append("an NCCL kernel is resident: consistent with waiting for a peer (compare the other ranks)")
    return end


def _where(warp: WarpSeen) -> str:
    wait = f" ({warp.wait.value})" if warp.wait else " (faulted)" if warp.faulted else ""
    if warp.polls:
        wait = f" ({warp.polls.value}, the other lanes at warp_sync)"
    return f"a warp at {warp.where}{wait}"
