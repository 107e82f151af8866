"""Words by which a shell, an argument parser or an HTTP log tells how something ended."""

from __future__ import annotations

from typing import Any

from parsers.pattern import lazy

KILLED_MARKS = ("Killed", "Illegal instruction", "Aborted", "Segmentation fault", "Bus error", "core dumped",
                "Trace/breakpoint trap", "Fatal Python error", "exit code 1", "exit status 1",
                "exited with code ",
                " received at time=", "Signal: ", "' failed.", "free(): ", "malloc(): ", "realloc(): ",
                "malloc_consolidate(): ", "munmap_chunk(): ", "double free or corruption",
                "corrupted double-linked list", "corrupted size vs. prev_size", "stack smashing detected",
                "terminate called without", "terminate called recursively", "CANCELLED AT ")  # fmt: skip
_SIGNALS = {
    "Killed": ("SIGKILL", 137), "Illegal instruction": ("SIGILL", 132), "Aborted": ("SIGABRT", 134),
    "Segmentation fault": ("SIGSEGV", 139), "Bus error": ("SIGBUS", 135), "Trace/breakpoint trap": ("SIGTRAP", 133),
}  # fmt: skip
_WORD = "|".join(_SIGNALS)
_BARE = lazy(rf"(?:.{{0,4000}}\])?\s*(?P<word>{_WORD})(?: \(core dumped\))?\.?$")
_SHELL = lazy(rf".{{0,400}}?line \d+: +\d+ (?P<word>{_WORD})\b")
_FATAL = lazy(rf"Fatal Python error: (?P<word>{_WORD})")
_CODE = lazy(r".{0,200}?(?:exit code|exit status|exited with code) (?P<code>1[3-5]\d)\b")
# What a process prints of itself when native code ends it: abseil's and Open MPI's signal handlers, a C assertion, and
# glibc's checks of the heap and the stack.
_HANDLER = lazy(r"\*\*\* SIG(?P<name>[A-Z]{3,5}) received at time=|\[[^\]\n]{1,255}\] Signal: (?P<word>"
                r"Segmentation fault|Aborted|Bus error|Illegal instruction) \(\d{1,2}\)")  # fmt: skip
_ABORTS = lazy(
    r"[^\n]{1,600}: Assertion [`'][^\n]{1,600}' failed\.|(?:free|malloc|realloc|malloc_consolidate|munmap_chunk)\(\): "
    r"(?:invalid|corrupted|double free|memory corruption|mismatching|unaligned|unsorted|largebin|smallbin)"
    r"|double free or corruption|corrupted (?:double-linked list|size vs\. prev_size)"
    r"|\*\*\* stack smashing detected|terminate called (?:without an active exception|recursively)"
)
_CANCELLED = lazy(r"slurmstepd: error: \*\*\* (?:STEP|JOB) \S{1,40} ON \S{1,120} CANCELLED AT ")
_BY_NAME = {"SEGV": 139, "ABRT": 134, "BUS": 135, "ILL": 132, "FPE": 136}
_BY_CODE = {code: signal for signal, code in _SIGNALS.values()}

USAGE_MARKS = ("usage: ", "Usage: ", ": error: ", "Error: ")
_USAGE = lazy(r"(?:usage|Usage): \S")
_REFUSED = lazy(r"(?P<program>[\w.\-]{1,80}(?: [\w.\-]{1,80}){0,3}): error: (?P<message>.{1,2000})")
_CLICK = lazy(r"Error: (?P<message>(?:No such|Invalid value|Missing|Got unexpected|Option|Unknown).{1,1000})")
_SERVERS = lazy(r"(?:vllm|sglang|api_server|launch_server|trtllm|python|tritonserver|run_batch|benchmark)")

REQUEST_MARKS = tuple(f'HTTP/{version}{quote} {digit}' for version in ("1.1", "1.0", "2") for quote in ('"', '\\"')
                      for digit in "45")  # fmt: skip
_ACCESS = lazy(
    r"(?:\S{1,100} - )?\"(?P<method>[A-Z]{3,8}) (?P<path>\S{1,2000}) HTTP/[\d.]{1,4}\" (?P<status>\d{3})\b"
)


def killed(text: str) -> dict[str, Any] | None:
    """`{"signal", "exit_code"}` when the line is a shell's word for a process that a signal ended."""
    found = _BARE.match(text) or _SHELL.match(text) or _FATAL.match(text)
    if found is not None:
        signal, code = _SIGNALS[found["word"]]
        return {"signal": signal, "exit_code": code}
    if _ABORTS.match(text):
        return {"signal": "SIGABRT", "exit_code": 134}
    if _CANCELLED.match(text):
        return {"signal": "SIGTERM", "exit_code": 143}
    if found := _HANDLER.search(text):
        if found["word"]:
            signal, code = _SIGNALS[found["word"]]
            return {"signal": signal, "exit_code": code}
        return {"signal": f"SIG{found['name']}", "exit_code": _BY_NAME.get(found["name"])}
    if (found := _CODE.match(text)) and int(found["code"]) in _BY_CODE:
        code = int(found["code"])
        return {"signal": _BY_CODE[code], "exit_code": code}
    return None


class Usage:
    """Recognises an argument parser's refusal: its `usage:` line came shortly before, or it is a server's own name."""

    def __init__(self) -> None:
        self._seen = -10_000

    def refused(self, text: str, number: int) -> str | None:
        """The message, or None."""
        if _USAGE.match(text):
            self._seen = number
            return None
        found = _REFUSED.match(text)
        if found is not None and (number - self._seen < 300 or _SERVERS.match(found["program"])):
            return found["message"]
        if number - self._seen < 300 and (click := _CLICK.match(text)):
            return click["message"]
        return None


def access(text: str) -> tuple[str, str, int] | None:
    """(method, path, status) of an HTTP access line."""
    found = _ACCESS.match(text)
    return (found["method"], found["path"], int(found["status"])) if found else None
