"""What nvidia-smi and the NVML clients print instead of an answer.

Texts from NVML's nvmlErrorString (nvml.h documents the codes) and nvidia-smi itself.
"""

from __future__ import annotations

import re

from parsers.contract import Line
from parsers.event import Actor, Event
from parsers.nvidia_smi.device import pci_address
from parsers.pattern import lazy
from parsers.stamp import Stamp

ADDRESS = lazy(r"\b[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d")

FAILURES = (
    (lazy(r"Failed to initialize NVML: Driver/library version mismatch"), "mismatch"),
    (lazy(r"Failed to initialize NVML: Unknown Error"), "unknown_error"),
    (lazy(r"GPU requires reset|.{0,120}\b(?:requires reset|reset required)", re.IGNORECASE), "reset_required"),
    (lazy(r"Failed to initialize NVML: GPU is lost", re.IGNORECASE), "lost"),
    (lazy(r"Failed to initialize NVML: "), "init"),
    (lazy(r"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver"), "init"),
    (lazy(r"NVIDIA-SMI couldn't find libnvidia-ml\.so library"), "init"),
    (lazy(r"Unable to determine the device handle for (?:GPU|gpu)"), "lost"),
    (lazy(r"(?:GPU|Unable to) .{0,80}GPU is lost\.", re.IGNORECASE), "lost"),
    (lazy(r"GPU is lost|Reboot the system to recover this GPU", re.IGNORECASE), "lost"),
    (lazy(r"No devices were found\b"), "not_found"),
    (lazy(r"No supported (?:GPUs|devices) (?:were|was)? ?found", re.IGNORECASE), "not_found"),
    (lazy(r"timeout: sending signal TERM to command .?nvidia-smi"), "timeout"),
    (
        lazy(r"nvidia-smi(?:: | )(?:.{0,40} )?(?:timed out|timeout|hangs?|hung|not responding)\b", re.IGNORECASE),
        "timeout",
    ),
    (
        lazy(r"nvidia-container-cli: initialization error: nvml error: driver/library version mismatch"),
        "mismatch",
    ),
    (lazy(r"nvidia-container-cli: (?:.{0,60}: )?(?:nvml error|initialization error): driver not loaded"), "init"),
    (lazy(r"nvidia-container-cli: (?:initialization error|device error)"), "init"),
)


def what(text: str) -> str | None:
    """The kind of failure that a line reports from its start, or None."""
    body = text.strip()
    return next((name for pattern, name in FAILURES if pattern.match(body)), None)


def event(line: Line, source: str, stamp: Stamp | None = None) -> Event | None:
    """The error event of a line, or None."""
    kind = what(line.text)
    if kind is None:
        return None
    address = ADDRESS.search(line.text)
    gpu = pci_address(address[0]) if address else None
    fields = {"what": kind} | ({"gpu": gpu} if gpu else {})
    return Event("gpu_samples.error", line.span(source), line.text, stamp, Actor(gpu=gpu), fields)
