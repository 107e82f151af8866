"""Versions and hardware as people and tools state them in a short line: `vLLM 0.25.1 / FlashInfer 0.6.13`.

Used for lists that a reporter typed beside raw output. What is found here is somebody's word: the caller marks it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from parsers.pattern import lazy

VERSION = r"(?P<version>v?\d+(?:\.\d+)+(?:[.-]?(?:dev|rc|post|a|b)\d+)*(?:\+[\w.]+)?)"

# Something must stand between a name and its version: `python3.12` in a path states nothing.
SEPARATOR = r"(?: version)?(?: ?(?:==|[:=@]) {0,20}| {1,20}(?:is )?)"

PRODUCTS = (
    ("vllm.version", r"\bvllm(?:/vllm-openai)?(?! commit)"),
    ("sglang.version", r"\b(?:sglang|lmsysorg/sglang)"),
    ("flashinfer.version", r"\bflashinfer(?:[-_ ]python)?"),
    ("torch.version", r"\b(?:pytorch|torch)"),
    ("triton.version", r"\b(?:pytorch-)?triton"),
    ("nccl.version", r"\b(?:nvidia-)?nccl(?:-cu\d\d)?"),
    ("cudnn.version", r"\b(?:nvidia-)?cudnn(?:-cu\d\d)?(?: backend)?"),
    ("transformers.version", r"\btransformers"),
    ("driver.version", r"\b(?:(?:nvidia|gpu) )?(?:kernel )?driver"),
    ("cuda.toolkit", r"\b(?:cuda[ -]toolkit|nvcc|ptxas)"),
    ("cuda.version", r"\bcuda(?: version| driver| runtime)?"),
    ("python.version", r"(?<![-_.])\bpython"),
    ("kernel.version", r"\b(?:linux )?kernel"),
    ("trtllm.version", r"\btensorrt[-_]llm"),
    ("deepgemm.version", r"\bdeep[-_]?gemm"),
    ("ray.version", r"\bray"),
)
PATTERNS = tuple((name, lazy(product + SEPARATOR + VERSION, re.IGNORECASE)) for name, product in PRODUCTS)
KERNEL = lazy(r"\b(?:OS/)?kernel\b.{0,40}?\b(?P<version>\d\.\d+\.\d+-[\w.+-]+)", re.IGNORECASE)
SM = lazy(
    r"\b(?:sm|compute_)[ _]?(?P<digits>\d{2,3})[af]?\b(?!\.\d)|\bSM ?(?P<digits2>\d{2,3})[af]?\b", re.IGNORECASE
)
CAPABILITY = lazy(
    r"\b(?:CC|compute[ _]cap(?:ability)?|SM)\s*[:=]?\s*(?P<major>\d{1,2})\.(?P<minor>\d)\b", re.IGNORECASE
)
MODEL_NAMES = (
    r"NVIDIA (?:GeForce )?(?:RTX|GTX|TITAN|Quadro|Tesla|[ABHLT]\d{1,4}|GB\d{2,3}|GH\d{3}|DGX|Jetson|Thor)[\w .-]{0,60}"
    r"|(?:GeForce )?RTX (?:PRO )?\d{4}\w*(?: (?:Ti|SUPER|Ada|Blackwell|Workstation|Server|Max-Q|Edition|Generation|D))*"
    r"|DGX Spark(?: ?/ ?GB10)?|GB(?:10|200|300)\b(?: NVL\d+)?|B(?:200|300)\b|H(?:20|100|200|800)\b(?: \w+)?"
    r"|A(?:100|10G?|40|800|6000)\b(?:[- ](?:SXM4?|PCIE|PCIe))?(?:-\d+GB)?|L(?:4|40S?|20)\b|Tesla [TVPKA]\d+|V100\b|T4\b"
)
GPU_LINE = lazy(
    r"(?:[-*] )?(?:\*\*)?(?:GPUs?(?: models?| type| name)?|Hardware|Graphics|Card)(?:\*\*)?\s*[:=]?\s+(?:\*\*)?"
    r"(?:(?P<count>\d+) ?[x×]\s*)?"
    rf"(?P<name>{MODEL_NAMES})",
    re.IGNORECASE,
)
GPU_COUNT = lazy(rf"\b(?P<count>\d{{1,3}}) ?[x×] ?(?P<name>{MODEL_NAMES})")
OPEN_MODULE = lazy(r"\bopen(?:[- ](?:source))? (?:gpu )?kernel modules?\b|\(open(?:,|\))|-open\b", re.IGNORECASE)
CLOSED_MODULE = lazy(
    r"\bproprietary\b.{0,30}\b(?:driver|module)|\b(?:driver|module)s?\b.{0,20}\bproprietary\b", re.IGNORECASE
)
BACKEND_VERSION = lazy(r"backend_version\(\)\s*=+\s*(?P<number>\d{4,6})\b")
VBIOS = lazy(r"\bVBIOS(?: version)?\s*[:=]?\s*(?P<version>[0-9A-Fa-f]{2}(?:\.[0-9A-Fa-f]{2}){4})", re.IGNORECASE)
IMAGE = lazy(r"\b(?:image|container)\b\s*[:=]?\s*(?P<image>[\w./-]+:[\w.-]+)", re.IGNORECASE)
MODEL = lazy(
    r"(?:[-*] )?(?:\*\*)?model(?: name| id| path)?(?:\*\*)?\s*[:=]\s*`?(?P<model>[\w.-]+/[\w./-]+)", re.IGNORECASE
)


def sm_text(digits: str) -> str:
    """`121` -> `12.1`, `90` -> `9.0`: the compute capability as major.minor."""
    return f"{int(digits[:-1])}.{digits[-1]}"


def stated(text: str) -> Iterator[tuple[str, str]]:
    """(fact name, value) pairs that a line states, each name at most once."""
    seen: set[str] = set()
    for name, value in _stated(text[:1_000]):
        if name not in seen:
            seen.add(name)
            yield name, value.strip().rstrip(".,;")


def _stated(text: str) -> Iterator[tuple[str, str]]:
    found = GPU_LINE.match(text) or GPU_COUNT.search(text)
    if found:
        yield "gpu.name", found["name"].split("(")[0].strip(" ,;")
        if found["count"]:
            yield "gpu.count", found["count"]
    capability = CAPABILITY.search(text)
    if capability:
        yield "gpu.sm", f"{int(capability['major'])}.{capability['minor']}"
    else:
        architecture = SM.search(text)
        if architecture:
            yield "gpu.sm", sm_text(architecture["digits"] or architecture["digits2"])
    for name, pattern in PATTERNS:
        product = pattern.search(text)
        if product:
            yield name, product["version"].lstrip("v")
    kernel = KERNEL.search(text)
    if kernel:
        yield "kernel.version", kernel["version"]
    if OPEN_MODULE.search(text):
        yield "driver.open", "true"
    elif CLOSED_MODULE.search(text):
        yield "driver.open", "false"
    backend = BACKEND_VERSION.search(text)
    if backend:
        number = int(backend["number"])
        major, rest = divmod(number, 10_000) if number >= 90_000 else divmod(number, 1_000)
        yield "cudnn.version", f"{major}.{rest // 100}.{rest % 100}"
    vbios = VBIOS.search(text)
    if vbios:
        yield "gpu.vbios", vbios["version"]
    image = IMAGE.search(text)
    if image:
        yield "image", image["image"]
    model = MODEL.match(text)
    if model:
        yield "model.name", model["model"]
