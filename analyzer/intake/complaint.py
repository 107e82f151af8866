"""What a person writes of trouble. It is no evidence for a cause, but where somebody says that the server hangs, a log
without a fault is no clean bill of health."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from parsers.contract import Line
from parsers.pattern import lazy

MOST_LINES = 4_000
"""Lines that are looked at: longer texts are logs, not letters."""
_STANDS = lazy(
    r"(?i)\b(?:hangs?|hung|hanging|stuck|freez(?:e|es|ing)|fro(?:ze|zen)|unresponsive|dead-?lock\w*"
    r"|no (?:more )?response|not respond\w*|stop(?:s|ped)? (?:respond|work|generat|process|handl)\w*"
    r"|never (?:return|finish|complet|respond|com|end|start|reach|ma[dk]e)\w*|crash(?:es|ed|ing)?)\b"
    r"|卡住|卡死|挂起|挂掉|无响应|没有响应|没有反应|崩溃"
)
_FAILS = lazy(
    r"(?i)\b(?:time[sd]? ?-?outs?|fail(?:s|ed|ing|ures?)?|errors?|broken|killed|bugs?|dies|died|slow(?:er|s)?"
    r"|(?:does|do|did|is|are|was|can|could|will|would)(?:n[o'\u2019]?t| not)"
    r" (?:work|start|load|respond|generate|run|come|answer)\w*|cannot (?:work|start|load|respond|run)\w*"
    r"|restart(?:s|ed|ing) (?:by itself|every|again))\b|报错|超时|失败|错误"
)
_SENTENCE = lazy(r"[-*#>\s\d.)]{0,12}\W{0,3}[A-Za-z\u4e00-\u9fff][^{}=|]{0,60}(?: \w[^{}=|]{0,400}){2}")


def complaint(lines: Iterable[Line], claimed: Callable[[str], bool], prose: bool) -> Line | None:
    """The first line in which a person writes of trouble, or None. In `prose` every word counts; elsewhere only
    sentences that no parser claims, and only what says that something stands still or crashed."""
    for count, line in enumerate(lines):
        if count >= MOST_LINES:
            return None
        text = line.text[:1_000]
        if not (_STANDS.search(text) or (prose and _FAILS.search(text))):
            continue
        if prose or (_SENTENCE.match(text) and not claimed(text)):
            return line
    return None
