"""The prefix in front of a kernel message: every container of `dmesg`, journald, syslog, pstore and Talos.

`peel` takes one line apart into clock reading, host, writer, level and message. What it cannot take apart it leaves
alone: a bare `NVRM: …` line (`dmesg -t`, a grep) is a message without a prefix. Shapes: util-linux `dmesg`, systemd
`journalctl --output`, rsyslog templates, Documentation/ABI/testing/dev-kmsg, Talos `dmesg`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from parsers.kernel_log import clock
from parsers.pattern import lazy
from parsers.stamp import ClockKind, Stamp

LEVELS = ("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug")


class Prefix(NamedTuple):
    """A line taken apart. `form` names the container, `writer` the syslog identifier (`kernel`, `systemd` …; None
    where the container holds kernel lines only), `uptime` the inner `[seconds]` of a syslog line. `delta` is the
    seconds after the line before (`dmesg -e`), whose own clock only the reader can rebuild."""

    form: str
    message: str
    stamp: Stamp | None = None
    host: str | None = None
    writer: str | None = None
    pid: int | None = None
    level: str | None = None
    uptime: float | None = None
    delta: float | None = None

    @property
    def is_kernel(self) -> bool:
        """Whether the kernel wrote the line, as far as the container says."""
        return self.writer in (None, "kernel", "kern")


_BOOT = lazy(r"\[\s*(\d{1,9}\.\d{6})(?:\s*<\s*[+-]?\d+\.\d+\s*>)?\] ?")
_CALLER = lazy(r"\[\s*[TC]\d{1,8}\] ?")
_DELTA_ONLY = lazy(r"\[\s{0,8}(?:<\s*)?\+?\s*(\d{1,6}\.\d{6})>?\] ?")
_MINUTE = lazy(r"\[\s*(\w{1,12}\.?)\s{1,2}(\d{1,2})\s(\d\d:\d\d)\] ?")
_CTIME = lazy(
    r"\[([^\W\d][^\s\]]{0,15}|[^\W\d]{1,6}[.,]?)\s{1,2}(\S{2,12})\s{1,2}(\d{1,2})\s(\d\d:\d\d:\d\d)\s(\d{4})"
    r"(?:\s*<\s*[+-]?\d+\.\d+\s*>)?\] ?"
)
_PRIORITY = lazy(r"<(\d{1,3})>")
_RFC5424 = lazy(r"1 (\S{10,40}) (\S{1,255}) (\S{1,64}) (\S{1,64}) (\S{1,64}) (?:-|\[[^\]]*\]) ?")
_DECODED = lazy(
    r"(kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|local\d)\s{0,8}:"
    r"(emerg|alert|crit|err|warn|notice|info|debug)\s{0,8}: ?"
)
_KMSG = lazy(r"(\d{1,4}),(\d{1,12}),(\d{1,15}),[^;,]{0,8}(?:,[^;]{0,200})?;")
_ISO_START = lazy(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:\s?(?:Z|UTC|[+-]\d\d:?\d\d))? ")
_BSD = lazy(r"([^\W\d]\w{1,11}\.?|\d{1,2}[月월])\s{1,2}(\d{1,2}) (?:(\d{4}) )?(\d\d:\d\d:\d\d)(?:\.(\d{1,9}))? ")
_FULL = lazy(r"\w{2,12}\.? (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?) ([A-Z]{2,5}|[+-]\d\d(?:\d\d)?) ")
_UNIX = lazy(r"(\d{10}\.\d{6}) ")
_TALOS = lazy(
    r"(?:(\S{2,255}): )?(kern|user|daemon|syslog|local\d):\s{1,5}(\w{3,8}): "
    r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z)\]: ?"
)
_WRITER = lazy(r"([A-Za-z0-9][\w.:-]{0,253}[\w]|\w) ([A-Za-z(][\w.@/()+-]{0,63})(?:\[(\d{1,10})\])?:(?: |$)")
_WRITER_ALONE = lazy(r"()([A-Za-z(][\w.@/()+-]{0,63})(?:\[(\d{1,10})\])?:(?: |$)")
_WRITER_STRICT = lazy(r"([A-Za-z0-9][\w.:-]{0,254}) (?:(kernel)|([A-Za-z(][\w.@/()+-]{0,63})\[(\d{1,10})\]): ?")
_CLOCK = lazy(r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\s{1,4}(?:kernel: )?")
_GREP = lazy(
    r"(?:\S{0,200}?(?:messages|syslog|kern\.log|dmesg|kernel|journal)[\w.-]{0,40}?"
    r"|\S{1,200}\.(?:log|txt)(?:\.\d{1,3})?)"
    r"[:-](?:\d{1,9}[:-])?"
)
_QUOTE = lazy(r"(?:(?:>|&gt;) ?){1,4}|[│|] {0,4}")
_SHELL = lazy(r"(?:\[pod/[^\]]{1,253}\] |[\w.-]{1,64} {1,32}\| )")
_DOCKER_T = lazy(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}(?:Z|[+-]\d\d:\d\d)) (?:std(?:out|err) [FP] )?")
_INNER = lazy(r"\[\s{0,8}(\d{1,9}\.\d{6})\] ?")

BARE = lazy(
    r"\s{0,40}(?:NVRM: |NVRM _?[a-z]+[A-Z_]\w{2,60}: |nvidia-nvswitch\d+: |nvidia-(?:modeset|nvlink|uvm|nvswitch"
    r"|peermem)\b|nvidia \w{4,8}:\w\w:\w\w\.\w: "
    r"|pcieport \w{4,8}:\w\w:\w\w\.\w: |nouveau \w{4,8}:|mlx5_core \w{4}:|EDAC \w|mce: "
    r"|DMAR: |AMD-Vi: |Lustre(?:Error)?: "
    r"|nfs: server |rcu: INFO|watchdog: BUG|NMI watchdog: |INFO: task .{1,40} blocked |Kernel panic - "
    r"|Out of memory: Kill|Memory cgroup out of memory: |oom-kill:constraint|oom_reaper: |traps: \S{1,40}\[\d"
    r"|Xid \(PCI:|SXid \(PCI:|Linux version \d|sysrq: |\{\d{1,4}\}\[Hardware Error\]|\[Hardware Error\]"
    r"|[\w.:/-]{1,16}\[\d{1,8}\]: segfault at |[\w.:/-]{1,16} invoked oom-killer: )"
)
"""A kernel message that names itself, at the start of a line without any prefix."""


def unescape(message: str) -> str:
    """rsyslog's `#012`/`#011` and kmsg's `\\x0a` back into what they stand for."""
    if "#0" in message:
        message = message.replace("#012", "\n").replace("#011", "\t").replace("#015", "")
    if "\\x" in message:
        message = message.replace("\\x0a", "\n").replace("\\x09", "\t")
    return message


def _after_writer(rest: str, form: str, stamp: Stamp | None, level: str | None = None) -> Prefix | None:
    """`host writer[pid]: message`, the host being optional (`--no-hostname`)."""
    found = _WRITER_ALONE.match(rest) or _WRITER.match(rest)
    if not found:
        return None
    host, writer, pid = found.groups()
    message = rest[found.end() :]
    uptime: float | None = None
    if writer == "kernel" and (inner := _INNER.match(message)):
        uptime = float(inner[1])
        message = message[inner.end() :]
    return Prefix(form, message, stamp, host or None, writer, int(pid) if pid else None, level, uptime)


def _boot_form(text: str, level: str | None) -> Prefix | None:
    found = _BOOT.match(text)
    if not found:
        return None
    stamp, rest = clock.boot(found[1]), text[found.end() :]
    if caller := _CALLER.match(rest):
        rest = rest[caller.end() :]
    elif named := _WRITER_STRICT.match(rest):
        host, kernel, writer, pid = named.groups()
        return Prefix(
            "journal-monotonic", rest[named.end() :], stamp, host, kernel or writer, int(pid) if pid else None, level
        )
    return Prefix("dmesg-raw" if level else "dmesg", rest, stamp, level=level)


def _bracketed(text: str, level: str | None) -> Prefix | None:
    if prefix := _boot_form(text, level):
        return prefix
    if found := _CTIME.match(text):
        stamp = clock.wall(found[0].strip(" []"), found[2], found[3], found[4], year=found[5])
        rest = text[found.end() :]
        if stamp is None or (rest.startswith("[") and re.match(r"\[[a-z_:]{3,20}\]", rest)):
            return None  # an httpd error log
        if caller := _CALLER.match(rest):
            rest = rest[caller.end() :]
        return Prefix("dmesg-T", rest, stamp, level=level)
    if found := _MINUTE.match(text):
        stamp = clock.wall(found[0].strip(" []"), found[1], found[2], found[3])
        return Prefix("dmesg-e", text[found.end() :], stamp, level=level) if stamp else None
    if (found := _DELTA_ONLY.match(text)) and ("+" in found[0] or "<" in found[0]):
        return Prefix("dmesg-e", text[found.end() :], None, level=level, delta=float(found[1]))
    return None


def _iso_form(text: str, level: str | None) -> Prefix | None:
    found = _ISO_START.match(text)
    stamp = clock.iso(text) if found else None
    if not found or stamp is None:
        return None
    rest = text[found.end() :]
    if "," in found[0]:  # only dmesg writes a decimal comma with six places and a zone
        return Prefix("dmesg-iso", rest, stamp, level=level) if stamp.clock is ClockKind.UTC else None
    if text[10] != "T":
        return None
    if BARE.match(rest):
        return Prefix("bare", rest, stamp, level=level)
    if named := _after_writer(rest, "syslog-iso", stamp, level):
        return named
    if inner := peel(rest):  # docker logs -t, CRI
        return _with_outer(inner, stamp)
    return None


def _with_outer(inner: Prefix, stamp: Stamp) -> Prefix:
    """The inner reading wins: the outer one says when a collector saw the line."""
    if inner.stamp is not None:
        return inner
    return Prefix(inner.form, inner.message, stamp, inner.host, inner.writer, inner.pid, inner.level, inner.uptime)


def _priority_form(text: str) -> Prefix | None:
    found = _PRIORITY.match(text)
    if not found:
        return None
    level, rest = LEVELS[int(found[1]) % 8], text[found.end() :]
    if structured := _RFC5424.match(rest):
        stamp = clock.iso(structured[1])
        writer, pid = structured[3], structured[4]
        return Prefix(
            "syslog-5424",
            rest[structured.end() :],
            stamp,
            structured[2],
            "kernel" if writer == "kernel" else writer,
            int(pid) if pid.isdecimal() else None,
            level,
        )
    inner = _boot_form(rest, level) or _bracketed(rest, level) or _bsd_form(rest, level)
    return inner or Prefix("dmesg-raw", rest, level=level)


def _bsd_form(text: str, level: str | None) -> Prefix | None:
    if found := _BSD.match(text):
        stamp = clock.wall(found[0].strip(), found[1], found[2], found[4], found[5], found[3])
        return _after_writer(text[found.end() :], "syslog", stamp, level) if stamp else None
    if found := _FULL.match(text):
        zone = found[2]
        stamp = clock.iso(f"{found[1]} {zone}" if zone == "UTC" or zone[0] in "+-" else found[1])
        return _after_writer(text[found.end() :], "journal-full", stamp, level) if stamp else None
    return None


def _digit_form(text: str) -> Prefix | None:
    if found := _KMSG.match(text):
        micros = int(found[3])
        stamp = Stamp(found[3], ClockKind.BOOT, micros / 1e6, 1e-6)
        facility, level = divmod(int(found[1]), 8)
        return Prefix(
            "kmsg", text[found.end() :], stamp, level=LEVELS[level], writer="kernel" if facility == 0 else "user"
        )
    if found := _UNIX.match(text):
        return _after_writer(text[found.end() :], "journal-unix", clock.epoch(found[1], float(found[1])))
    return _iso_form(text, None)


def _talos_form(text: str) -> Prefix | None:
    found = _TALOS.match(text)
    if not found:
        return None
    host, facility, level, written = found.groups()
    return Prefix(
        "talos",
        text[found.end() :],
        clock.iso(written),
        host,
        "kernel" if facility == "kern" else facility,
        level=level,
    )


def peel(text: str, depth: int = 0) -> Prefix | None:
    """The line taken apart, or None when it wears no prefix that a kernel log has.

    Quote marks, compose and kubectl prefixes, `docker logs -t` stamps and the file name that grep puts in front are
    looked through, at most three deep.
    """
    if not text:
        return None
    first = text[0]
    found: Prefix | None = None
    if first == "[":
        found = _bracketed(text, None)
    elif first == "<":
        found = _priority_form(text)
    elif first.isdecimal():
        found = _digit_form(text) or _bsd_form(text, None) or _talos_form(text)
    elif decoded := _DECODED.match(text):
        rest, level = text[decoded.end() :], decoded[2]
        found = _bracketed(rest, level) or _iso_form(rest, level) or Prefix("dmesg-x", rest, level=level)
        if decoded[1] != "kern" and found.writer is None:
            found = Prefix(found.form, found.message, found.stamp, found.host, decoded[1], found.pid, level)
    elif first.isalpha() or first.isalnum():
        found = _bsd_form(text, None) or _talos_form(text)
    if found is not None or depth >= 3:
        return found
    for wrapper in (_DOCKER_T, _QUOTE, _SHELL, _CLOCK, _GREP):
        if (wrapped := wrapper.match(text)) and wrapped.end() < len(text):
            rest = text[wrapped.end() :]
            inner = peel(rest, depth + 1)
            if inner is None and BARE.match(rest):
                inner = Prefix("bare", rest.strip())
            if inner is not None:
                outer = clock.iso(wrapped[1]) if wrapper is _DOCKER_T else None
                return _with_outer(inner, outer) if outer else inner
    return None
