"""What must survive redaction: values that name nobody and that parsers and rules need."""

from __future__ import annotations

import ipaddress
import re
from functools import cache

PLAIN = frozenset(
    [
        "none",
        "null",
        "false",
        "true",
        "nil",
        "undefined",
        "n/a",
        "na",
        "no",
        "yes",
        "off",
        "on",
        "auto",
        "default",
        "empty",
        "unset",
        "missing",
        "invalid",
        "required",
        "redacted",
        "hidden",
        "str",
        "string",
        "optional",
        "not",
        "is",
        "was",
        "in",
        "the",
        "a",
        "an",
        "of",
        "for",
        "and",
        "or",
        "with",
        "from",
        "to",
        "must",
        "should",
        "required.",
        "error",
        "failed",
        "expired",
        "found",
        "set",
        "int",
        "bool",
        "bytes",
        "list",
        "dict",
        "object",
        "value",
        "env",
        "file",
        "path",
        "key",
        "token",
        "secret",
        "password",
        "credentials",
    ]
)
COMMON_USERS = frozenset(
    [
        "root",
        "ubuntu",
        "nobody",
        "user",
        "users",
        "admin",
        "runner",
        "vllm",
        "nvidia",
        "app",
        "appuser",
        "docker",
        "daemon",
        "shared",
        "public",
        "default",
        "guest",
        "linuxbrew",
        "conda",
        "jovyan",
        "coder",
        "vscode",
        "ec2-user",
        "centos",
        "debian",
        "fedora",
        "rocky",
        "azureuser",
        "opc",
        "core",
        "sglang",
        "triton",
        "trtllm",
        "llm",
        "model",
        "models",
        "server",
        "service",
        "www-data",
        "systemd",
        "messagebus",
        "syslog",
        "triton-server",
        "worker",
        "node",
        "dev",
        "test",
        "home",
        "work",
        "builder",
        "build",
        "python",
        "nonroot",
        "ray",
        "dynamo",
        "kserve",
        "data",
    ]
)
COMMON_HOSTS = frozenset(
    [
        "localhost",
        "localhost.localdomain",
        "kernel",
        "host",
        "hostname",
        "node",
        "worker",
        "master",
        "server",
        "none",
        "null",
        "unknown",
        "localdomain",
        "container",
        "docker",
        "pod",
        "ip6-localhost",
        "kubernetes",
        "kubernetes.default.svc",
        "head",
        "self",
        "here",
        "default",
        "true",
        "false",
        "linux",
        "ubuntu",
        "debian",
        "gpu",
        "vllm",
        "sglang",
        "nvidia",
        "systemd",
        "version",
        "runtime",
        "sha256",
        "file",
        "tcp",
        "http",
        "https",
        "ipc",
        "unix",
        "inproc",
        "zmq",
        "redis",
        "grpc",
        "kube-dns.kube-system.svc",
        "prometheus",
        "grafana",
        "etcd",
        "minio",
        "proxy",
        "api",
    ]
)
_VERSION_BEFORE = re.compile(
    r"(?i:version|driver|firmware|\bfw|vbios|bios|release|cudnn|cublas|cufft|curand|cusolver|cusparse|nvjitlink|nvshmem|cufile|nvtx|nccl|cuda|cupti"
    r"|nvrtc|tensorrt|cutlass|nvidia-[\w-]{2,40}|libnv\w*|cu1\d|\.so|package|wheel|==|>=|<=|~=|!=)[^\n|]{0,24}$|[-_/v~^]$"
)
_CODE_ENDINGS = frozenset(
    [
        "so",
        "py",
        "pyc",
        "cc",
        "cpp",
        "cxx",
        "cu",
        "cuh",
        "hpp",
        "h",
        "c",
        "rs",
        "go",
        "js",
        "ts",
        "json",
        "yaml",
        "yml",
        "toml",
        "txt",
        "log",
        "sh",
        "whl",
        "gz",
        "tar",
        "zip",
        "service",
        "slice",
        "scope",
        "mount",
        "socket",
        "timer",
        "target",
        "device",
        "swap",
        "path",
        "lock",
        "bin",
        "dll",
        "exe",
        "md",
        "html",
    ]
)


def plain_value(_text: str, found: re.Match[str]) -> bool:
    """`None`, `True`, a placeholder word, a type, an option's metavariable: there is no secret in it."""
    value = next((one for one in found.groups() if one), "").strip("[](){}<>'\" ")
    return (
        value.lower() in PLAIN
        or (value.isdigit() and len(value) < 6)
        or value.startswith(("$", "*", "os.environ"))
        or bool(re.fullmatch(r"[*xX.…•]+|<class.*|[A-Z]{1,12}", value))
    )


def plain_word(_text: str, found: re.Match[str]) -> bool:
    """A word of prose (`bearer authentication`)."""
    value = found["v"]
    return value.lower() in PLAIN or (value.isalpha() and value.islower() and len(value) < 16)


def not_an_email(_text: str, found: re.Match[str]) -> bool:
    """Symbol versions, units of systemd and file names have an `@` too; addresses of projects are in sources."""
    value = found["v"]
    return value.rsplit(".", 1)[-1].lower() in _CODE_ENDINGS or value.endswith(
        ("@example.com", "@example.org", "git@github.com")
    )


def no_digit(_text: str, found: re.Match[str]) -> bool:
    """A serial number without a digit is a word."""
    return not any(c.isdigit() for c in found["v"]) or found["v"].lower().startswith("0x0000")


def not_an_ipv4(text: str, found: re.Match[str]) -> bool:
    """Versions of four numbers, net masks, loopback, multicast and addresses of documentation stay."""
    value = found["v"]
    parts = value.split(".")
    if any(int(part) > 255 or (part != "0" and part.startswith("0")) for part in parts):
        return True
    first = int(parts[0])
    if first in (0, 127) or first >= 224 or value in ("169.254.169.254", "172.17.0.1", "8.8.8.8", "1.1.1.1"):
        return True
    before, after = text[max(0, found.start() - 40) : found.start()], text[found.end() : found.end() + 2]
    return bool(_VERSION_BEFORE.search(before)) or after[:1] in ("+", "_") or after == "-0"


def not_an_ipv6(text: str, found: re.Match[str]) -> bool:
    """Times, PCI addresses, scope operators and loopback stay; so does what leads up to a placeholder."""
    if text.startswith("<ip-", found.end()):
        return True
    value = found["v"].rstrip(":.") if not found["v"].endswith("::") else found["v"]
    try:
        address = ipaddress.IPv6Address(value)
    except ValueError:
        return True
    return address.is_loopback or address.is_unspecified or address.is_multicast or len(value) < 4


def common_host(_text: str, found: re.Match[str]) -> bool:
    """Names that every machine has."""
    value = found["v"].lower()
    return (
        value in COMMON_HOSTS
        or len(value) < 2
        or (value.split(".")[0] in COMMON_HOSTS and "." in value and value.endswith("localdomain"))
    )


def common_user(_text: str, found: re.Match[str]) -> bool:
    """Accounts that every image has."""
    return found["v"].lower() in COMMON_USERS or found["v"].startswith("$")


@cache
def words_of_rules() -> frozenset[str]:
    """Words of the shipped rules' patterns: a host or user that is called so is replaced only where the line says
    that it is one, never wherever the word stands."""
    from analyzer.reasoning.rulebook import load

    words: set[str] = set()
    for sought in load().patterns.sought:
        words.update(word.lower() for word in re.findall(r"[A-Za-z][A-Za-z0-9_-]{2,}", sought.pattern))
    return frozenset(words)
