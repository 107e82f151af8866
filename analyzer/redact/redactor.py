"""Text in, text out: the same lines with placeholders where secrets, users' text and names stood."""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from analyzer.intake.user_text import LONGEST_OPEN, RECORD, user_text
from analyzer.redact import keep
from analyzer.redact.detectors import DETECTORS
from analyzer.redact.names import HOSTS, PODS, USERS, Names
from analyzer.redact.pieces import records, shell
from analyzer.redact.vault import PLACEHOLDER, Vault

_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]{0,2048}(?:\x07|\x1b\\)?|[@-Z\\^_]|\([AB0])|\x9b[0-?]*[ -/]*[@-~]"
)
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]|.?\x08")
_PEM_BEGIN = re.compile(r"-----BEGIN ([A-Z0-9 ]{3,40})-----")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{3,40}-----")
_BASE64 = re.compile(r"[A-Za-z0-9+/=_-]{16,}")
_BASE64_LAST = re.compile(r"[A-Za-z0-9+/=]{1,}\s*$")
_LOCALS_HEAD = re.compile(r"(?P<indent>[ \t]{1,40})(?:Arguments|Locals):\s*$")
_LOCAL = re.compile(r"(?P<indent>[ \t]{1,60})[\w.*]{1,200}: (?P<v>.+)$")
_RICH_LOCAL = re.compile(r"\s{0,40}[│|][\s│|]{1,80}[\w.]{1,80}\s{0,60} = (?P<v>.{1,4096}?)\s{0,200}[│|]?[\s│|]*$")
_REPR = re.compile(r'"(?:repr|locals?_repr)":\s{0,4}"(?P<v>(?:[^"\\]|\\.){1,65536})"')
_GDB_STRING = re.compile(r'= 0x[0-9a-f]{1,16} (?:<[^>\n]{1,200}> )?"(?P<v>(?:[^"\\]|\\.){4,65536})"')
_PLAIN_LOCAL = re.compile(
    r"(?:-?\d[\d._e+-]{0,30}|None|True|False|null|true|false|\.\.\.|[(\[{][)\]}]"
    r"|<[\w.]{1,120}(?: object)? at 0x[0-9a-f]{1,16}>)$"
)
_SECRET_KEY = re.compile(
    r"(?i:.{0,60}(?:api[_-]?keys?|passw(?:or)?d|passphrase|secret|credential|private[_-]?key|access[_-]?key(?:[_-]?id)?|cookie|authorization)"
    r"|(?:.{0,60}[_-])?(?:auth|access|refresh|hf|github|api|bearer|session|id)[_-]?token|token)"
)
_HOST_KEY = re.compile(r"(?i:_?hostname|host|node_?name|node|instance)")
_PROMPT_KEY = re.compile(
    r"(?i:prompts?|content|generated_text|input_text|reasoning_content|prompt_text|user_prompt|system_prompt|completion)"
)
_IDS_KEY = re.compile(r"(?i:(?:prompt_|output_)?token_ids|input_ids|output_ids)")
_DATA_URI = re.compile(r"data:[\w/+.-]{3,60};base64,(?P<v>[A-Za-z0-9+/=]{8,})")
JSON_LIMIT = 1 << 20
JSON_DEPTH = 4
AHEAD = 400
"""Lines that are looked ahead for the end of a PEM block."""


class Found(NamedTuple):
    """One thing to be replaced."""

    start: int
    end: int
    kind: str
    detector: str
    rank: int


class Redactor:
    """Redacts the texts of one bundle with one set of placeholders.

    `learn` every text first, so that a name that one file gives away is known in all; then `lines` each text.
    """

    def __init__(self) -> None:
        self.vault = Vault()
        self.names = Names()

    def learn(self, lines: Iterable[str]) -> None:
        """Take up names and the placeholders that are there already."""
        for line in lines:
            line = plain(line)
            self.names.learn(line)
            if "-" in line:
                self.vault.reserve(line)

    def lines(self, lines: Iterable[str], artifact: str = "") -> Iterator[str]:
        """As many lines as came in (without line ends), redacted. `artifact` is what the ledger calls the text."""
        state = _State()
        number = 0
        for record in records(plain(line) for line in lines):
            if len(record) == 1:
                yield self._line(record[0], artifact, number + 1, state)
            else:
                yield from self._partials(record, artifact, number + 1, state)
            number += len(record)

    def text(self, text: str, artifact: str = "") -> str:
        """A text of any number of lines, redacted with what was learned so far."""
        return "\n".join(self.lines(text.split("\n"), artifact))

    # --- one line -------------------------------------------------------------------------------------------------

    def _line(self, line: str, artifact: str, number: int, state: _State, depth: int = 0) -> str:
        if line[:1] in "{[" and line[-1:] in "}]\r" and len(line) <= JSON_LIMIT and depth < JSON_DEPTH:
            done = self._json_line(line, artifact, number, state, depth)
            if done is not None:
                return done
        return self._replace(line, self._found(line, state), artifact, number)

    def _found(self, line: str, state: _State) -> list[Found]:
        found = state.across(line)
        if found:
            return found
        stretches = user_text(line)
        found = [
            Found(one.start, one.end, "prompt", "user's text", 0) for one in stretches if one.what in ("prompt", "ids")
        ]
        state.prompt = LONGEST_OPEN if any(one.open for one in stretches) else 0
        found += self._pem(line, state)
        for shape, name in ((_REPR, "stack local"), (_GDB_STRING, "stack local"), (_DATA_URI, "user's text")):
            found += [
                Found(*one.span("v"), "local" if "local" in name else "prompt", name, 1) for one in shape.finditer(line)
            ]
        if "│" in line and (rich := _RICH_LOCAL.match(line)) and not _PLAIN_LOCAL.match(rich["v"]):
            found.append(Found(*rich.span("v"), "local", "stack local", 1))
        found += _detected(line)
        found += self._named(line)
        return found

    def _pem(self, line: str, state: _State) -> list[Found]:
        found = []
        at = 0
        while begin := _PEM_BEGIN.search(line, at):
            end = _PEM_END.search(line, begin.end())
            if end is None:
                state.pem = AHEAD
                if begin.end() < len(line.rstrip()):
                    found.append(Found(begin.end(), len(line), "key", "PEM block", 0))
                break
            if end.start() > begin.end():
                found.append(Found(begin.end(), end.start(), "key", "PEM block", 0))
            at = end.end()
        return found

    def _named(self, line: str) -> list[Found]:
        found: list[Found] = []
        for kind, shapes, common in (
            ("host", HOSTS, keep.COMMON_HOSTS),
            ("pod", PODS, keep.COMMON_HOSTS),
            ("user", USERS, keep.COMMON_USERS),
        ):
            known = {"host": self.names.hosts, "pod": self.names.pods, "user": self.names.users}[kind]
            if not known:
                continue
            for shape in shapes:
                for one in shape.finditer(line):
                    value = one["v"].strip(".-") if kind == "host" else one["v"]
                    if value in known and value.lower() not in common:
                        start = one.start("v") + one["v"].find(value)
                        found.append(Found(start, start + len(value), kind, f"{kind} name", 90))
        for kind, pattern in self.names.everywhere:
            found += [Found(*one.span("v"), kind, f"{kind} name", 91) for one in pattern.finditer(line)]
        return found

    def _replace(self, line: str, found: list[Found], artifact: str, number: int) -> str:
        if not found:
            return line
        out, at = [], 0
        for one in _without_overlap(_beside_placeholders(line, found)):
            value = line[one.start : one.end]
            put = self._put(value, one, artifact, number)
            out += [line[at : one.start], put]
            at = one.end
        out.append(line[at:])
        return "".join(out)

    def _put(self, value: str, one: Found, artifact: str, number: int) -> str:
        if one.kind in ("token", "prompt") and value.startswith("[") and "'" in value + '"':
            items = re.findall(r"""["']([^"'\n]{1,4096})["']""", value)
            if items and one.kind == "token":
                for item in items:
                    value = (
                        value.replace(item, self._put(item, one, artifact, number))
                        if not PLACEHOLDER.fullmatch(item)
                        else value
                    )
                return value
        placeholder = self.vault.placeholder(one.kind, value)
        if placeholder != value:
            self.vault.note(placeholder, one.detector, artifact, number)
        return f"[{placeholder}]" if one.kind == "prompt" and value.startswith("[") else placeholder

    # --- lines of JSON --------------------------------------------------------------------------------------------

    def _json_line(self, line: str, artifact: str, number: int, state: _State, depth: int) -> str | None:
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(document, dict | list):
            return None
        try:
            redacted = self._json(document, "", artifact, number, state, depth)
            if redacted == document:
                return line
            compact = '": ' not in line[:200]
            return json.dumps(redacted, ensure_ascii=False, separators=(",", ":") if compact else (", ", ": ")) + (
                "\r" if line.endswith("\r") else ""
            )
        except RecursionError:
            return None

    def _json(self, value: Any, key: str, artifact: str, number: int, state: _State, depth: int) -> Any:
        if isinstance(value, dict):
            return {
                self._inner(str(name), artifact, number, state, depth) if len(str(name)) > 12 else name: self._json(
                    one, str(name), artifact, number, state, depth
                )
                for name, one in value.items()
            }
        if isinstance(value, list):
            if _IDS_KEY.fullmatch(key) and len(value) > 1:
                return [self._whole(json.dumps(value), "prompt", "user's text", artifact, number)]
            if key == "MESSAGE" and value and all(isinstance(one, int) and 0 <= one < 256 for one in value):
                return self._inner(bytes(value).decode("utf-8", "backslashreplace"), artifact, number, state, depth)
            return [self._json(one, key, artifact, number, state, depth) for one in value]
        if not isinstance(value, str) or not value:
            return value
        if _SECRET_KEY.fullmatch(key) and value.lower() not in keep.PLAIN:
            return self._whole(value, "token", "value of a secret's name", artifact, number)
        if _PROMPT_KEY.fullmatch(key):
            return self._whole(value, "prompt", "user's text", artifact, number)
        if _HOST_KEY.fullmatch(key) and value in self.names.hosts:
            return self._whole(value, "host", "host name", artifact, number)
        return self._inner(value, artifact, number, state, depth)

    def _inner(self, value: str, artifact: str, number: int, state: _State, depth: int) -> str:
        return "\n".join(self._line(plain(one), artifact, number, state, depth + 1) for one in value.split("\n"))

    def _whole(self, value: str, kind: str, detector: str, artifact: str, number: int) -> str:
        return self._replace(value, [Found(0, len(value), kind, detector, 0)], artifact, number)

    # --- one record in several lines ------------------------------------------------------------------------------

    def _partials(self, record: list[str], artifact: str, number: int, state: _State) -> Iterator[str]:
        """A record that docker (16 KiB) or a CRI runtime cut: redacted as a whole, put back line for line."""
        shells = [shell(line) for line in record]
        payloads = [one[1] for one in shells]
        whole = "".join(one.rstrip("\n") for one in payloads)
        found = _without_overlap(_beside_placeholders(whole, self._found(whole, state)))
        begin = 0
        for index, (wrap, payload) in enumerate(zip(shells, payloads, strict=True)):
            body = payload.rstrip("\n")
            end = begin + len(body)
            out, at = [], begin
            for one in found:
                if one.end <= begin or one.start >= end:
                    continue
                out.append(whole[at : max(one.start, at)])
                value = whole[one.start : one.end]
                if one.start >= begin:
                    out.append(self._put(value, one, artifact, number + index))
                at = min(one.end, end)
            out.append(whole[at:end])
            yield wrap[0]("".join(out) + payload[len(body) :])
            begin = end


class _State:
    """What an earlier line left open: a PEM block, a prompt, a list of locals."""

    def __init__(self) -> None:
        self.pem = 0
        self.prompt = 0
        self.locals: int | None = None

    def across(self, line: str) -> list[Found]:
        """What must go from `line` because of the lines before it; empty when nothing is open."""
        if self.pem:
            self.pem -= 1
            end = _PEM_END.search(line)
            if end is not None:
                self.pem = 0
                return [Found(*one.span(), "key", "PEM block", 0) for one in _BASE64.finditer(line, 0, end.start())]
            found = [Found(*one.span(), "key", "PEM block", 0) for one in _BASE64.finditer(line)]
            last = _BASE64_LAST.search(line)
            if found or last:
                return found or ([Found(last.start(), len(line.rstrip()), "key", "PEM block", 0)] if last else [])
            if line.strip() and ":" not in line:
                self.pem = 0
        if self.prompt:
            self.prompt -= 1
            if not RECORD.match(line):
                return [Found(0, len(line), "prompt", "user's text", 0)] if line.strip() else []
            self.prompt = 0
        head = _LOCALS_HEAD.match(line)
        if head is not None:
            self.locals = len(head["indent"])
            return []
        if self.locals is not None:
            local = _LOCAL.match(line)
            if local is not None and len(local["indent"]) > self.locals:
                value = local["v"].rstrip()
                plain_one = _PLAIN_LOCAL.match(value) is not None
                return (
                    []
                    if plain_one
                    else [Found(local.start("v"), local.start("v") + len(value), "local", "stack local", 0)]
                )
            self.locals = None
        return []


def plain(line: str) -> str:
    """The line without colour codes, overstrikes and invisible characters that could cut a value in two."""
    if "\x1b" in line or "\x9b" in line:
        line = _ANSI.sub("", line)
    return line if line.isascii() and "\x08" not in line else _INVISIBLE.sub("", line)


def _detected(line: str) -> list[Found]:
    low = line.lower()
    found = []
    for rank, detector in enumerate(DETECTORS, 2):
        if detector.words and not any(word in low for word in detector.words):
            continue
        for one in detector.pattern.finditer(line):
            if detector.keeps is not None and detector.keeps(line, one):
                continue
            group = next((name for name in ("v", "v2", "v3", "v4") if name in one.groupdict() and one[name]), None)
            if group is not None:
                found.append(Found(*one.span(group), detector.kind, detector.name, rank))
    return found


def _beside_placeholders(line: str, found: list[Found]) -> list[Found]:
    """Without the finds that are blank, or that are, cut or (but for whole texts and lists) hold a placeholder."""
    there = [one.span() for one in PLACEHOLDER.finditer(line)]
    starts = [start for start, _end in there]
    kept = []
    for one in found:
        value = line[one.start : one.end]
        if not value.strip():
            continue
        first = max(bisect_right(starts, one.start) - 1, 0)
        touched = [span for span in there[first : bisect_left(starts, one.end)] if span[1] > one.start]
        if touched:
            whole = one.kind in ("prompt", "local", "key") or value[0] == "["
            inside = touched[0][0] >= one.start and touched[-1][1] <= one.end
            if not (whole and inside and PLACEHOLDER.sub("", value).strip(" []'\",\\")):
                continue
        kept.append(one)
    return kept


def _without_overlap(found: list[Found]) -> list[Found]:
    """By precedence, then length; in order of place."""
    kept: list[Found] = []  # sorted and free of overlap at every step, so only the neighbours are looked at
    for one in sorted(found, key=lambda f: (f.rank, f.start - f.end, f.start)):
        at = bisect_left(kept, one)
        if (at == 0 or kept[at - 1].end <= one.start) and (at == len(kept) or kept[at].start >= one.end):
            kept.insert(at, one)
    return kept


def redact_text(text: str) -> str:
    """One text on its own: learned from, then redacted. As many lines as before."""
    redactor = Redactor()
    redactor.learn(text.split("\n"))
    return redactor.text(text)
