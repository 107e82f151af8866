"""The one table at the end of a batch: incidents grouped by signature, what is new first."""

from __future__ import annotations

import json
from collections import Counter

from analyzer.fleet.store import Row

QUIET = ("healthy", "unreadable")


def groups(rows: list[Row], new: set[str]) -> list[dict[str, object]]:
    """One entry a signature: how many, where, when; new ones first, then the most frequent."""
    gathered: dict[str, list[Row]] = {}
    for row in rows:
        gathered.setdefault(row.signature, []).append(row)

    def most(values: list[str]) -> list[str]:
        return [
            f"{name} ({count})" if count > 1 else name for name, count in Counter(v for v in values if v).most_common(4)
        ]

    made = []
    for name, mine in gathered.items():
        times = sorted(row.time for row in mine if row.time)
        made.append(
            {
                "signature": name,
                "new": name in new,
                "count": len(mine),
                "cause": mine[0].cause,
                "title": mine[0].title,
                "confidence": most([row.confidence for row in mine]),
                "gpus": most([row.gpu for row in mine]),
                "versions": most([row.version for row in mine]),
                "nodes": most([row.node for row in mine]),
                "first": times[0] if times else "",
                "last": times[-1] if times else "",
                "ended_by": next((row.ended_by for row in mine if row.ended_by), ""),
                "bundles": [row.bundle for row in mine[:50]],
            }
        )
    return sorted(
        made,
        key=lambda g: (g["signature"] in QUIET, not g["new"], -len(gathered[str(g["signature"])]), str(g["signature"])),
    )


def render_table(rows: list[Row], new: set[str], format_: str) -> str:
    """The table as text, or the groups as JSON."""
    made = groups(rows, new)
    if format_ == "json":
        return json.dumps(
            {"groups": made, "broken": [{"bundle": row.bundle, "why": row.broken} for row in rows if row.broken]},
            ensure_ascii=False,
            indent=1,
        )
    from analyzer.render.sanitise import terminal

    lines = []
    for group in made:
        mark = "NEW" if group["new"] and group["signature"] not in QUIET else ""
        lines.append(f"{group['count']:>6}  {mark:<3}  {group['signature']}")
        if group["title"]:
            lines.append(f"{'':13}{group['title']}")
        told: list[str] = []
        for word, key in (("GPU", "gpus"), ("version", "versions"), ("nodes", "nodes")):
            named = group[key]
            if isinstance(named, list) and named and group["signature"] not in QUIET:
                told.append(f"{word}: {', '.join(named)}")
        if group["first"] and group["signature"] not in QUIET:
            told.append(
                f"{group['first']} to {group['last']}" if group["last"] != group["first"] else str(group["first"])
            )
        if told:
            lines.append(f"{'':13}{'; '.join(told)}")
        if group["ended_by"]:
            lines.append(f"{'':13}ended by: {group['ended_by']}")
    lines += [f"not analysed: {row.bundle}: {row.broken}" for row in rows if row.broken][:20]
    return "\n".join(terminal(line) for line in lines)
