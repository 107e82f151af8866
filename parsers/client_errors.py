"""What a server's client saw: time-outs and lost connections of curl, wget, requests, httpx, aiohttp, openai, Node, Go,
gRPC and of proxies.

Read as notes: a client's words say when it gave up, not what the server did. Exit codes of curl are those of
libcurl-errors(3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from parsers.contract import Line, Trouble
from parsers.event import NOBODY, Event
from parsers.heartbeat import reading
from parsers.pattern import lazy

MAX_EVENTS = 2_000

_CURL = lazy(r"curl: \((?P<code>\d{1,2})\) ")
_CURL_WHAT = {
    6: "dns",
    7: "refused",
    18: "cut",
    28: "timeout",
    35: "tls",
    52: "cut",
    56: "reset",
    22: "http",
    92: "cut",
}
ERRORS = (
    (lazy(r"openai\.APITimeoutError|(?:\w{1,40}\.)*APITimeoutError: "), "openai", "timeout"),
    (lazy(r"openai\.(?:APIConnectionError|APIError)"), "openai", "connection"),
    (
        lazy(r"openai\.(?:InternalServerError|RateLimitError|APIStatusError|BadRequestError|NotFoundError)"),
        "openai",
        "http",
    ),
    (
        lazy(r"httpx\.(?:Read|Connect|Write|Pool)Timeout|httpcore\.(?:Read|Connect|Write|Pool)Timeout"),
        "httpx",
        "timeout",
    ),
    (
        lazy(
            r"httpx\.(?:ReadError|RemoteProtocolError|CloseError|WriteError)|httpcore\.(?:ReadError"
            r"|RemoteProtocolError)"
        ),
        "httpx",
        "reset",
    ),
    (lazy(r"httpx\.ConnectError|httpcore\.ConnectError"), "httpx", "refused"),
    (lazy(r"httpx\.HTTPStatusError"), "httpx", "http"),
    (lazy(r"requests\.exceptions\.(?:Read|Connect)?Timeout"), "requests", "timeout"),
    (lazy(r"requests\.exceptions\.(?:ConnectionError|ChunkedEncodingError)"), "requests", "reset"),
    (lazy(r"requests\.exceptions\.HTTPError"), "requests", "http"),
    (lazy(r"urllib3\.exceptions\.(?:ReadTimeoutError|ConnectTimeoutError|MaxRetryError)"), "urllib3", "timeout"),
    (lazy(r"urllib3\.exceptions\.(?:ProtocolError|NewConnectionError)"), "urllib3", "reset"),
    (
        lazy(r"aiohttp\.client_exceptions\.(?:ServerTimeoutError|SocketTimeoutError|ConnectionTimeoutError)"),
        "aiohttp",
        "timeout",
    ),
    (lazy(r"aiohttp\.client_exceptions\.\w{4,40}"), "aiohttp", "reset"),
    (
        lazy(
            r"(?:Uncaught )?(?:Type)?Error: (?:read |write |connect |fetch failed|socket hang up)?(?:ECONNRESET"
            r"|EPIPE|socket hang up)"
            r"|Error: socket hang up|Error: read ECONNRESET"
        ),
        "node",
        "reset",
    ),
    (
        lazy(
            r"(?:Error: )?(?:connect |read )?ETIMEDOUT\b|(?:HeadersTimeoutError|BodyTimeoutError"
            r"|ConnectTimeoutError)\b|UND_ERR_\w*TIMEOUT"
        ),
        "node",
        "timeout",
    ),
    (lazy(r"(?:Error: )?(?:connect )?ECONNREFUSED\b"), "node", "refused"),
    (
        lazy(r"wget: .{0,120}(?:timed out|refused|unable)|.{0,120}Read error \(Connection timed out\) in headers"),
        "wget",
        "timeout",
    ),
    (lazy(r".{0,200}(?:context deadline exceeded|Client\.Timeout exceeded|i/o timeout)"), "go", "timeout"),
    (lazy(r".{0,200}StatusCode\.DEADLINE_EXCEEDED|.{0,200}code = DeadlineExceeded"), "grpc", "timeout"),
    (lazy(r".{0,200}StatusCode\.UNAVAILABLE|.{0,200}code = Unavailable"), "grpc", "refused"),
    (lazy(r".{0,200}upstream (?:timed out|request timeout)|.{0,80}\b504 Gateway Time-?[Oo]ut"), "proxy", "timeout"),
    (
        lazy(
            r".{0,200}upstream (?:prematurely closed|connect error)|.{0,80}\b50[23] (?:Bad Gateway|Service Unavailable)"
        ),
        "proxy",
        "http",
    ),
    (
        lazy(r"ConnectionResetError: |BrokenPipeError: |http\.client\.(?:RemoteDisconnected|IncompleteRead)"),
        "python",
        "reset",
    ),
    (lazy(r"ConnectionRefusedError: "), "python", "refused"),
    (
        lazy(
            r"(?:asyncio\.(?:exceptions\.)?|socket\.|concurrent\.futures\.(?:_base\.)?)?(?:TimeoutError"
            r"|timeout)\b(?:: |$)"
        ),
        "python",
        "timeout",
    ),
    (
        lazy(
            r"(?:Error: )?Request timed out\.?\s*$|(?i:(?:error: )?(?:client |request )?time[d-]? ?out (?:after"
            r"|waiting))"
        ),
        "client",
        "timeout",
    ),
)
_SERVER = lazy(
    r"(?m)/(?:vllm|sglang|tensorrt_llm|huggingface_hub|transformers|ray|torch|lmdeploy|flashinfer)/"
    r"|^\S{0,40}(?:DEBUG|INFO|WARNING|ERROR)"
    r" \d\d-\d\d|EngineCore|Uvicorn running|\bNCCL\b|nvrm|kernel: "
)
_FRAME = lazy(
    r"Traceback \(most recent call last\)|  File \"|    |\s*[~^]+\s*$|During handling of|The above exception|\s*$"
)


def _error(text: str) -> tuple[str, str] | None:
    body = text.strip()
    timed = reading(body)
    body = timed[1].lstrip(" \t]|,:-") if timed else body
    found = _CURL.match(body)
    if found:
        return "curl", _CURL_WHAT.get(int(found["code"]), "other")
    return next(((tool, what) for pattern, tool, what in ERRORS if pattern.match(body)), None)


class ClientErrors:
    """A TextParser of a client's errors."""

    name: ClassVar[str] = "client_errors"
    kind: ClassVar[str] = "notes"
    marks: ClassVar[tuple[bytes, ...]] = ()

    def sniff(self, head: str) -> float:
        """0.65 when, tracebacks aside, half of the lines are a client's errors, and nothing in it is a server's; 0.5
        where nearly all are stamped."""
        lines = [line for line in head.split("\n")[:400] if line.strip()]
        plain = [line for line in lines if not _FRAME.match(line)]
        if not plain or _SERVER.search(head):
            return 0.0
        errors = sum(_error(line) is not None for line in plain)
        if not errors or 2 * errors < len(plain):
            return 0.0
        stamped = sum(reading(line) is not None for line in plain)
        return 0.65 if stamped < 5 or 5 * stamped < 4 * len(plain) else 0.5  # a probe in a loop is a heartbeat

    def claims(self, text: str) -> bool:
        """Only curl's own line: the others stand in servers' logs too."""
        return _CURL.match(text) is not None

    def read(self, lines: Iterable[Line], source: str) -> Iterator[Event | Trouble]:
        """`notes.client_error`, one a line."""
        count = 0
        for line in lines:
            found = _error(line.text[:2_000])
            if found is None:
                continue
            count += 1
            if count > MAX_EVENTS:
                yield Trouble(source, "limit", f"more than {MAX_EVENTS} errors: the rest is not read", line.number)
                return
            timed = reading(line.text.strip())
            fields = {"tool": found[0], "what": found[1]}
            yield Event(
                "notes.client_error", line.span(source), line.text, timed[0] if timed else line.outer, NOBODY, fields
            )

    def inspect(self, lines: Iterable[Line], source: str) -> dict[str, Any]:
        """`errors`: line, time, tool, what."""
        events = [item for item in self.read(lines, source) if isinstance(item, Event)]
        return {
            "errors": [
                {"line": event.span.first_line, "time": event.stamp.text if event.stamp else None, **event.fields}
                for event in events
            ]
        }


PARSER = ClientErrors()
