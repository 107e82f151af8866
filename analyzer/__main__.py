"""The command's entry: checks its own installation first, then hands over to the command line."""

from __future__ import annotations

import sys
from pathlib import Path


def _foreign_parsers() -> str | None:
    """The place of a `parsers` package that is not ours and would be imported instead, or None."""
    from importlib.util import find_spec

    spec = find_spec("parsers")
    origin = Path(spec.origin).parent if spec is not None and spec.origin else None
    mine = Path(__file__).resolve().parent.parent / "parsers"
    return None if origin is not None and origin.resolve() == mine else str(origin)


def main() -> None:
    """Run `stuckwarp`."""
    foreign = _foreign_parsers()
    if foreign is not None:
        sys.exit(
            f"stuckwarp cannot start: Python would load another package named 'parsers' ({foreign}) "
            "in place of its own.\n"
            "Probably the current folder or PYTHONPATH holds one. Run from another folder, or install with pipx."
        )
    from analyzer.cli import run

    run()


if __name__ == "__main__":
    main()
