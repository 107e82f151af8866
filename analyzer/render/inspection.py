"""The `inspect` view for people: one screen of what an artifact holds. Core dumps have a screen of their own."""

from __future__ import annotations

from typing import Any

from analyzer.render.sanitise import shorten, terminal

ROWS = 12


def inspection_text(view: dict[str, Any]) -> str:
    """A view of `analyzer.inspection.inspect` as text; input text is made safe."""
    artifact = view["artifact"]
    state = "read to its end" if artifact["complete"] else "NOT complete"
    lines = [f"{terminal(artifact['path'])}   {artifact['kind']} ({artifact['parser']}), {artifact['bytes']:,} bytes, {state}"]
    lines += [f"  note     {terminal(note['tag'])}: {terminal(note['text'])}" for note in artifact["notes"]]
    body = view[artifact["kind"]]
    if artifact["kind"] == "cuda_core":
        lines += _core(body)
    else:
        lines += _tree(body, 1)
    return "\n".join(lines)


def _one(value: object) -> str:
    return shorten(terminal(str(value)), 140)


def _tree(value: Any, depth: int) -> list[str]:
    pad = "  " * depth
    lines: list[str] = []
    for key, inner in value.items():
        label = terminal(str(key))
        if isinstance(inner, dict) and inner:
            if all(not isinstance(v, dict | list) for v in inner.values()):
                lines.append(f"{pad}{label}: " + shorten(", ".join(f"{terminal(str(k))} {_one(v)}" for k, v in list(inner.items())[:40]), 400))
            else:
                lines.append(f"{pad}{label}:")
                lines += _tree(dict(list(inner.items())[:ROWS]), depth + 1)
        elif isinstance(inner, list) and inner:
            lines.append(f"{pad}{label}: {len(inner)}")
            for row in inner[:ROWS]:
                if isinstance(row, dict):
                    flat = {k: v for k, v in row.items() if not isinstance(v, dict | list)}
                    lines.append(f"{pad}  - " + shorten("  ".join(f"{terminal(str(k))}={_one(v)}" for k, v in flat.items()), 400))
                    nested = {k: v for k, v in row.items() if isinstance(v, dict | list) and v}
                    if nested and depth < 4:
                        lines += _tree(nested, depth + 2)
                else:
                    lines.append(f"{pad}  - {_one(row)}")
            if len(inner) > ROWS:
                lines.append(f"{pad}  … {len(inner) - ROWS} more")
        elif inner not in ({}, [], None, ""):
            lines.append(f"{pad}{label}: {_one(inner)}")
    return lines


def _core(core: dict[str, Any]) -> list[str]:
    lines = []
    generator = core.get("generator") or {}
    if generator:
        lines.append("  dump     " + ", ".join(f"{k} {_one(v)}" for k, v in generator.items() if v not in (None, [], "")))
    for device in core.get("devices") or []:
        lines.append(f"  device   {device.get('dev')}: {_one(device.get('name'))} {_one(device.get('sm_type'))} at {_one(device.get('pci'))}, "
                     f"{device.get('active_sms')} of {device.get('num_sms')} SMs active")
    kernels = core.get("kernels") or []
    if not kernels and core.get("devices"):
        lines.append("  kernel   none is resident: the GPU was idle or between kernels at that moment")
    warps = core.get("warps") or []
    for kernel in kernels[:ROWS]:
        lines.append(f"  kernel   grid {kernel.get('grid_id')} on device {kernel.get('dev')}: {_one(kernel.get('name'))}")
        lines.append(f"           grid {kernel.get('grid_dim')} block {kernel.get('block_dim')} cluster {kernel.get('cluster_dim')}, "
                     f"{kernel.get('warps')} warps resident on {kernel.get('sms')} SMs")
        lines += _warp_groups([w for w in warps if w.get("grid_id") == kernel.get("grid_id") and w.get("dev") == kernel.get("dev")])
    for fault in (core.get("exceptions") or [])[:ROWS]:
        lines.append(f"  fault    {_one(fault.get('name'))} (code {fault.get('code')}) on device {fault.get('dev')} SM {fault.get('sm')} "
                     f"warp {fault.get('warp')} at {_one(fault.get('error_pc'))} {_one(fault.get('symbol') or '')}")
    for absent in core.get("missing") or []:
        lines.append(f"  absent   {_one(absent)}")
    return lines


def _warp_groups(warps: list[dict[str, Any]]) -> list[str]:
    groups: dict[tuple[str, str, str], int] = {}
    for warp in warps:
        at = f"{warp.get('symbol') or '?'}+{warp.get('offset')}"
        key = (str(warp.get("wait_kind") or ("exception: " + str(warp["exception"]) if warp.get("exception") else "not waiting as far as its "
                   "instruction tells")), at, str(warp.get("line") or ""))
        groups[key] = groups.get(key, 0) + 1
    lines = []
    ordered = sorted(groups.items(), key=lambda one: -one[1])
    for (wait, at, line), count in ordered[:8]:
        lines.append(f"           {count:>6} warps  {wait}  {shorten(terminal(at), 90)} {terminal(line)}")
    if len(ordered) > 8:
        lines.append(f"           … {len(ordered) - 8} more places")
    return lines
