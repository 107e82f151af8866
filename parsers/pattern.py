"""Regular expressions that are compiled when they are first needed.

The parsers hold some 500 of them, and a run uses those of a few kinds of artifact: compiling all at import would cost
more than a whole triage. A pattern that holds plain text is not compiled either before a text holds that too.
"""

from __future__ import annotations

import re
from typing import Any, cast

ENOUGH = 400
"""Texts that lack its words after which a pattern is compiled all the same: its own search is then the cheaper way."""
_BROKEN = re.compile(r"\\[0-7xuUN].*|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_GROUP = re.compile(r"\([^()]*\)")
_REPEATED = re.compile(r".(?:[*+?]|\{[^}]*\})", re.DOTALL)
_PLAIN = re.compile(r"[^\0.^$*+?(){}\[\]]+")


def words_of(pattern: str) -> tuple[str, ...]:
    """Strings of three characters or more of which every match of `pattern` (compiled without flags) holds one, as it
    is spelled; empty when there is nothing so simple to say. Not exhaustive: it has to be far cheaper than compiling.
    """
    if "(?" in pattern and re.search(r"\(\?[aiLmsux]", pattern):
        return ()
    text = _BROKEN.sub("\0", pattern)
    for _ in range(8):
        if "(" not in text:
            break
        text = _GROUP.sub("\0", text)
    else:
        return ()
    found: list[str] = []
    for way in _REPEATED.sub("\0", text).split("|"):
        longest = max(_PLAIN.findall(way), key=len, default="")
        if len(longest) < 3:
            return ()
        found.append(longest)
    return tuple(found)


class _Lazy:
    """Stands for the compiled pattern; its methods are looked up once and then called directly."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self._source = (pattern, flags)
        self.pattern = pattern  # as of a compiled one: asking for it must not compile it
        self._words: tuple[str, ...] | None = None if isinstance(pattern, str) and not flags else ()
        self._lacked = 0

    def _lacks(self, text: str) -> bool:
        words = self._words
        if words is None:
            words = self._words = words_of(self.pattern)
        if not words or self._lacked >= ENOUGH:
            return False
        for word in words:
            if word in text:
                return False
        self._lacked += 1
        return True

    def search(self, text: Any, *rest: int) -> Any:
        """As of a compiled one."""
        return None if self._lacks(text) else self._compile().search(text, *rest)

    def match(self, text: Any, *rest: int) -> Any:
        """As of a compiled one."""
        return None if self._lacks(text) else self._compile().match(text, *rest)

    def fullmatch(self, text: Any, *rest: int) -> Any:
        """As of a compiled one."""
        return None if self._lacks(text) else self._compile().fullmatch(text, *rest)

    def _compile(self) -> re.Pattern[Any]:
        compiled = re.compile(*self._source)
        for method in ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split"):
            setattr(self, method, getattr(compiled, method))
        self.compiled = compiled
        return compiled

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._compile(), name)


def lazy(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """`re.compile(pattern, flags)`, put off until it is needed."""
    return cast("re.Pattern[str]", _Lazy(pattern, flags))


def lazy_bytes(pattern: bytes, flags: int = 0) -> re.Pattern[bytes]:
    """The same for bytes."""
    return cast("re.Pattern[bytes]", _Lazy(pattern, flags))
