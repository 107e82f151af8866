"""Which stretches of a record were written by a user of the server, not by the server: prompts, generated text, bodies.

Two readers need them: the rules' patterns, which must not take a quoted line for evidence (a prompt may hold any
trigger line there is), and redaction. Shapes: vLLM's request logger (`Received request ID: prompt: '…', params: …`,
`Generated response ID: output: '…'`), SGLang's (`Receive: obj=GenerateReqInput(… text='…'`), OpenAI-style bodies
(`"messages": [{"role": …, "content": "…"}]`), offline `LLM.generate` loops, access lines of uvicorn.
"""
# ruff: noqa: E501  (a pattern is read as one line)

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from parsers.contract import Line
from parsers.pattern import lazy

LONGEST_OPEN = 5_000
"""Lines after a text that was opened and not closed that are still taken to belong to it."""


class Stretch(NamedTuple):
    """`text[start:end]` is a user's. `open` = the closing quote did not come on this line. `what`: prompt or ids."""

    start: int
    end: int
    what: str = "prompt"
    open: bool = False


# Words that open a user's text wherever they stand …
_ALWAYS = (
    r"(?<![A-Za-z0-9])(?:prompts?|generated[_ ]text|prompt_text|input_text|input_value|user_prompt|system_prompt"
    r"|system_message|negative_prompt|reasoning_content)"
)
# … and those that do only in a record about a request.
_IN_REQUEST = r"(?<![A-Za-z0-9])(?:text|output|outputs|query|response|input|inputs|arguments|body|delta|completion|reasoning|suffix)"
_QUOTED_KEY = r"""\\{0,3}["'](?:content|messages)"""
_LEAD = r"""\\{0,3}["']?\s{0,4}[:=]\s{0,4}[\[(]?\s{0,2}b?(?P<quote>\\{0,3}["'])"""
_OPENERS = lazy(rf"(?i:{_ALWAYS}|{_QUOTED_KEY}){_LEAD}")
_OPENERS_IN_REQUEST = lazy(rf"(?i:{_ALWAYS}|{_QUOTED_KEY}|{_IN_REQUEST}){_LEAD}")
_RAW = lazy(r"(?:Received request|Generated response)[^\n]{0,200}?\b(?:prompt|output): (?=[^'\"\s])")
_ABOUT_REQUEST = lazy(
    r"Received request|Generated response|Receive: obj|Finish: obj|GenerateReqInput|ChatCompletionRequest|CompletionRequest"
    r"|CompletionOutput|RequestOutput|chatcmpl-|[Rr]equest body|[\"']role\\{0,3}[\"']|[\"']type\\{0,3}[\"']: ?\\{0,3}[\"']text"
)
_IDS = lazy(
    r"(?:prompt_token_ids|input_ids|output_token_ids|output_ids|token_ids)\\{0,3}[\"']?\s{0,4}[:=]\s{0,4}(?P<ids>\[[\d,\s.]{2,}\]?)"
)
_NAMED = lazy(r"(?:Received|Added|Aborted|Finished|Aborting) request(?:\(s\))? (?P<id>[^\s:]{1,512})")
_ACCESS = lazy(
    r'"(?:GET|POST|PUT|DELETE|HEAD|OPTIONS|PATCH) (?P<path>[^"\s?]{1,8192})(?P<query>\?[^"\s]{0,8192})?(?: HTTP/[\d.]+" (?P<code>\d{3}))?'
)
_INVENTED = ("400", "404", "405")
"""Answers to a path that the server does not have: then the path too is the client's words."""
_SETTING = lazy(r"\?[a-z_]{1,20}=[a-z0-9_,]{0,12}")
"""A query that sets something of the server (`/sleep?level=1`)."""
_AFTER_PROMPT = lazy(
    r", (?:params|sampling_params|prompt_token_ids|lora_request|output_token_ids|finish_reason)[:=]"
)
RECORD = lazy(
    r"(?:\([\w ]{1,60}=\d+\) |\[[^\]\n]{1,80}\] |\{\"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d "
    r"|(?:INFO|WARNING|ERROR|DEBUG|CRITICAL|WARN)\b)"
)
"""How a line that begins a record of its own looks: a text that was left open ends before it."""


def _closing(text: str, quote: str, at: int) -> int:
    """The offset of the closing `quote` from `at` on, or -1. A quote behind an odd run of back-slashes is inside."""
    while (at := text.find(quote, at)) >= 0:
        before = at
        while before > 0 and text[before - 1] == "\\":
            before -= 1
        if (at - before) % 2 == 0 if quote[0] != "\\" else at == before:
            return at
        at += len(quote)
    return -1


def user_text(text: str) -> list[Stretch]:
    """The stretches of `text` (one record) that users wrote, in order, not overlapping. Linear in its length."""
    if not (
        "rompt" in text or "equest" in text or "HTTP/" in text or "ontent" in text or "enerated" in text
        or "_ids" in text
        or "esponse" in text or "Input" in text or "input_" in text or "utput(" in text or "chatcmpl-" in text
        or "system_message" in text or "reasoning" in text or "PROMPT" in text or '"role' in text or "'role" in text
        or "messages" in text or "Receive: obj" in text or "Finish: obj" in text
    ):  # fmt: skip
        return []
    found: list[Stretch] = []
    openers = _OPENERS_IN_REQUEST if _ABOUT_REQUEST.search(text) else _OPENERS
    at, first = 0, True
    while opener := openers.search(text, at):
        start, quote = opener.end(), opener["quote"]
        end = _closing(text, quote, start)
        if end >= 0 and first and "Received request" in text[:start]:
            # A prompt printed without escapes may hold a quote: it ends where the server's own fields begin.
            ends = [
                m.start() - len(quote) for m in _AFTER_PROMPT.finditer(text, end) if text[: m.start()].endswith(quote)
            ]
            end = max([end, *ends])
        first = False
        if end < 0:
            found.append(Stretch(start, len(text), "prompt", True))
            break
        if end > start:
            found.append(Stretch(start, end))
        at = end + len(quote)
    if not found and (raw := _RAW.search(text)):
        after = _AFTER_PROMPT.search(text, raw.end())
        found.append(Stretch(raw.end(), after.start() if after else len(text), "prompt", after is None))
    found += [Stretch(*one.span("ids"), "ids") for one in _IDS.finditer(text)]
    found += [Stretch(*one.span("id"), "id") for one in _NAMED.finditer(text)]
    for one in _ACCESS.finditer(text):
        if one["code"] in _INVENTED and not one["path"].startswith("/v1/"):
            found.append(Stretch(*one.span("path"), "target"))
        if one["query"] and not _SETTING.fullmatch(one["query"]):
            found.append(Stretch(*one.span("query"), "target"))
    found.sort()
    kept: list[Stretch] = []
    for stretch in found:
        if not kept or stretch.start >= kept[-1].end:
            kept.append(stretch)
    return kept


FILLER = "\u2027"


def without_user_text(text: str) -> str:
    """`text` with every stretch of a user's as filler of the same length: offsets stay, nothing in it is matched."""
    return _masked(text)[0]


def _masked(text: str) -> tuple[str, bool]:
    stretches = user_text(text)
    if not stretches:
        return text, False
    out, at = [], 0
    for one in stretches:
        out += [text[at : one.start], FILLER * (one.end - one.start)]
        at = one.end
    out.append(text[at:])
    return "".join(out), stretches[-1].open


OPEN_FOR = 200
"""Lines after an unclosed text that are taken for a part of it when evidence is looked for; redaction goes further."""


def shielded(lines: Iterable[Line], originals: dict[int, str]) -> Iterator[Line]:
    """The lines with users' text as filler; the text of a changed line goes into `originals` under its number."""
    left, last = 0, 0
    for line in lines:
        text = line.text
        if left and line.number == last + 1 and not RECORD.match(text):
            left -= 1
            masked = FILLER * len(text)
        else:
            masked, still_open = _masked(text)
            left = OPEN_FOR if still_open else 0
        last = line.number
        if masked != text:
            originals.setdefault(line.number, text)
            line = replace(line, text=masked)
        yield line
