"""Regular expressions that are compiled when they are first used.

The parsers hold some 500 of them, and a run uses those of a few kinds of artifact: compiling all at import would cost
more than a whole triage.
"""

from __future__ import annotations

import re
from typing import Any, cast


class _Lazy:
    """Stands for the compiled pattern; its methods are looked up once and then called directly."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self._source = (pattern, flags)
        self.pattern = pattern  # as of a compiled one: asking for it must not compile it

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        compiled = re.compile(*self._source)
        for method in ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split"):
            setattr(self, method, getattr(compiled, method))
        self.compiled = compiled
        return getattr(compiled, name)


def lazy(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """`re.compile(pattern, flags)`, put off until the first use."""
    return cast("re.Pattern[str]", _Lazy(pattern, flags))


def lazy_bytes(pattern: bytes, flags: int = 0) -> re.Pattern[bytes]:
    """The same for bytes."""
    return cast("re.Pattern[bytes]", _Lazy(pattern, flags))
