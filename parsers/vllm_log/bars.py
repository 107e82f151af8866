"""Progress bars (tqdm and its kin): the last state of each run of each bar.

Shapes: `desc:  33%|███▎  | 6/51 [00:01<00:09, 4.5it/s]`, vLLM's own `desc:  33% Completed | 1/3 [..]`, copies that lost
the art (`desc: 14%| | 1/7 [..`), FlashInfer's `[AutoTuner]: Tuning op: 3/12 profile`, byte counts (`598M/4.98G`).
"""

from __future__ import annotations

from dataclasses import dataclass

from parsers.pattern import lazy

MARKS = ("%|", "% Completed |", "it/s", "s/it", "profile/s")

_BAR = lazy(
    r"(?:(?P<name>[^\r|%]{0,300}?):? {0,8})?(?P<percent>\d{1,3})%(?: Completed)? ?\|(?P<art>[^|\r]{0,400})"
    r"(?:\| {0,2}|(?<=\s)|[. ]{1,12})(?P<done>\d[\d.,]{0,12}[kKMGT]?i?B?)/(?P<total>\d[\d.,]{0,12}[kKMGT]?i?B?|\?)"
    r"(?: \[(?P<clock>[\d:?]{1,12})<)?"
)
_COMPLETED = lazy(
    r"(?P<name>[^\r|%]{0,300}?):? {0,8}(?P<percent>\d{1,3})% Completed \| (?P<done>\d+)/(?P<total>\d+)"
)
_COUNT = lazy(
    r"(?P<name>\[Auto[Tt]uner\]: Tuning .{1,200}?): {1,4}(?:\d{1,3}%\|[^|]{0,200}\| )?(?P<done>\d+)/(?P<total>\d+)"
)
_BARE = lazy(r"(?P<name>[^\r|%]{1,300}?): {1,8}(?P<percent>\d{1,3})% (?P<done>\d+)/(?P<total>\d+) \[")
_DETAIL = lazy(r" ?\((?:[^()]{0,80}=[^()]{0,80})\)")
_UNITS = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


@dataclass(slots=True)
class Bar:
    """One update: `name` without changing details, counts as numbers, `text` the piece of the line."""

    name: str
    done: float
    total: float
    finished: bool
    text: str

    @property
    def family(self) -> str:
        """The kind of work: capture, weights, autotune, prompts, download, compile, or other."""
        lowered = self.name.lower()
        if "captur" in lowered:
            return "capture"
        if "loading" in lowered and any(word in lowered for word in ("shard", "safetensors", "checkpoint", "weight")):
            return "weights"
        if "tun" in lowered and "auto" in lowered:
            return "autotune"
        if "prompt" in lowered or "requests" in lowered:
            return "prompts"
        if "fetching" in lowered or "download" in lowered or lowered.endswith((".safetensors", ".bin", ".json")):
            return "download"
        if "compil" in lowered or "warmup" in lowered:
            return "compile"
        return "other"


def read_bar(text: str) -> Bar | None:
    """The bar that `text` (one piece between carriage returns) shows, or None."""
    if "/" not in text or ("%" not in text and "uner]" not in text):
        return None
    found = _COUNT.match(text) or _COMPLETED.match(text) or _BAR.match(text) or _BARE.match(text)
    if found is None:
        return None
    done, total = _number(found["done"]), _number(found["total"])
    if total < 0 or done < 0:
        return None
    name = _DETAIL.sub("", found["name"] or "").strip(" :")
    return Bar(name, done, total, 0 < total <= done, text.strip())


def _number(text: str) -> float:
    if text == "?":
        return 0.0
    text = text.rstrip("Bi")
    scale = _UNITS.get(text[-1:], 1.0)
    try:
        return float(text.rstrip("kKMGT").replace(",", "")) * scale
    except ValueError:
        return -1.0
