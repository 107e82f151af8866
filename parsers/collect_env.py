"""What machine and software it was: collect_env of PyTorch, vLLM and SGLang, pip lists, environment dumps, typed lists.

Layouts: `python -m vllm.collect_env` (sections between rules of 30 `=`), PyTorch's collect_env (`PyTorch version: …`,
blank lines between parts), `python -m sglang.check_env` (`GPU 0,1: NVIDIA …`, `sglang: 0.5.5`), `[pip3] name==version`,
`pip freeze`, `pip list`, `NAME=value`. A short list that a person typed is read too; its facts are marked `restated`,
and its other lines go on as `notes.text`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from parsers.contract import Line, Trouble
from parsers.event import Actor, Event, fact
from parsers.nvidia_smi import topology
from parsers.pattern import lazy
from parsers.stated_versions import sm_text, stated

MAX_FACTS = 5_000
MAX_VALUE = 2_000
MAX_NOTES = 200

OPENING = lazy(r"Collecting environment information\.\.\.")
RULE = lazy(r"={20,}$")
PAIR = lazy(r"(?P<key>[A-Za-z][\w /.,()+#-]{0,60}?)\s*:(?:\s+(?P<value>.*))?$")
PIP = lazy(r"(?:\[(?P<manager>pip3?|conda)\] )?(?P<name>[A-Za-z0-9][\w.-]{0,100})==(?P<version>[\w.+!-]+)\s*$")
CONDA = lazy(r"\[conda\] (?P<name>\S+)\s+(?P<version>\d\S*)")
PIP_TABLE = lazy(
    r"(?P<name>[A-Za-z0-9][\w.-]{1,80})\s{2,}(?P<version>\d+(?:\.\w+)+(?:\+\w[\w.]*)?)(?:\s+\S+)?\s*$"
)
PIP_WORDS = lazy(
    r"(?:[-*] )?(?P<name>(?:nvidia|flashinfer|vllm|torch|triton|sgl|deep)[\w-]*) (?P<version>\d+(?:\.\w+)+(?:\+\w+)?)"
)
VARIABLE = lazy(r"(?:export |declare -x |ENV |-e |set |setenv )?(?P<name>[A-Z][A-Z0-9_]{2,80})=(?P<value>.*)$")
GPU_ROW = lazy(r"GPU (?P<index>\d+(?:,\d+)*)\s?: (?P<name>[A-Z].*)$")
CAPABILITY = lazy(r"GPU \d+(?:,\d+)* Compute Capability: (?P<major>\d+)\.(?P<minor>\d)")
RELEASE = lazy(r"release \d+(?:\.\d+)+, V(?P<version>\d+(?:\.\d+)+)")
CUDNN_FILE = lazy(r"libcudnn(?:\.so\.|-)(?P<version>\d+(?:\.\d+)+)")
PLATFORM = lazy(r"Linux-(?P<kernel>\d[\w.+-]*?)-(?:x86_64|aarch64|arm64|ppc64le)")
ABSENT = lazy(r"(?:Could not collect|N/A|None|Not Set|Module Not Found|\(none\)|)$")
SECRET = lazy(r"TOKEN|SECRET|PASSW|API_?KEY|ACCESS_KEY|CREDENTIAL|PRIVATE|AUTH")
ENVIRONMENT_PREFIX = lazy(
    r"(?:VLLM|SGLANG|SGL|CUDA|NCCL|TORCH|PYTORCH|NVIDIA|FLASHINFER|TRITON|HF|LD|OMP|GLOO|UCX|NVSHMEM|TRTLLM|TENSORRT|MKL|RAY|"
    r"HUGGINGFACE|TRANSFORMERS|TOKENIZERS|PYTHON|MAX_JOBS|CUTE|CUTLASS|LMCACHE|DG|NVTE|KINETO|CUBLAS|CUDNN|ROCM|HIP|HSA|XLA|"
    r"PATH|HTTP|HTTPS|NO|MASTER|LOCAL|RANK|WORLD|NODE|POD|KUBERNETES|SM\d+)(?:_|$)"
)

KEYS: dict[str, str] = {
    "os": "os",
    "pytorch version": "torch.version",
    "pytorch": "torch.version",
    "torch": "torch.version",
    "cuda used to build pytorch": "torch.cuda",
    "python version": "python.version",
    "python": "python.version",
    "cuda runtime version": "cuda.toolkit",
    "cuda driver version": "driver.version",
    "nvidia driver version": "driver.version",
    "cudnn version": "cudnn.version",
    "vllm version": "vllm.version",
    "vllm": "vllm.version",
    "sglang": "sglang.version",
    "flashinfer": "flashinfer.version",
    "flashinfer_python": "flashinfer.version",
    "triton": "triton.version",
    "transformers": "transformers.version",
    "model name": "cpu.model",
    "is cuda available": "cuda.available",
    "cuda available": "cuda.available",
    "hypervisor vendor": "hypervisor",
    "libc version": "libc.version",
}
PACKAGES: dict[str, str] = {
    "torch": "torch.version",
    "vllm": "vllm.version",
    "sglang": "sglang.version",
    "flashinfer": "flashinfer.version",
    "flashinfer-python": "flashinfer.version",
    "triton": "triton.version",
    "pytorch-triton": "triton.version",
    "transformers": "transformers.version",
}
FIRST_WORD = {
    "torch.version",
    "python.version",
    "vllm.version",
    "sglang.version",
    "flashinfer.version",
    "driver.version",
}


def package_fact(name: str) -> str | None:
    """The fact that an installed distribution stands for: `nvidia-nccl-cu13` -> `nccl.version`."""
    plain = name.lower().replace("_", "-")
    if re.match(r"nvidia-nccl-cu\d+$", plain):
        return "nccl.version"
    if re.match(r"nvidia-cudnn-cu\d+$", plain):
        return "cudnn.version"
    return PACKAGES.get(plain)


class _Report:
    """The walk over the lines. Yields facts; keeps what the inspect view shows."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.sections: list[dict[str, Any]] = []
        self.fields: dict[str, str] = {}
        self.packages: dict[str, str] = {}
        self.environment: dict[str, str] = {}
        self.gpus: list[str] = []
        self.noise: int | None = None
        self.kept = 0
        self.said: set[tuple[str, str, str | None]] = set()
        self.open_key: str | None = None
        self.section: str | None = None
        self.matrix: list[Line] = []
        self.title_next = False
        self.titled = False
        self.notes = 0

    def walk(self, lines: Iterable[Line]) -> Iterator[Event | Trouble]:
        for line in lines:
            text = line.text.rstrip("\r").rstrip()
            kept = self.kept
            yield from self._take(text, line)
            if self.kept == kept and self.section is None and self.noise is None and not self.matrix:
                yield from self._note(text, line)
            if self.kept > MAX_FACTS:
                yield Trouble(self.source, "limit", f"more than {MAX_FACTS} facts: the rest is not read", line.number)
                break
        yield from self._end_matrix()

    def _say(
        self, name: str, value: str, line: Line, *, restated: bool = False, gpu: str | None = None
    ) -> Iterator[Event]:
        value = value.strip()[:MAX_VALUE]
        if not value or ABSENT.match(value) or (name, value, gpu) in self.said:
            return
        self.said.add((name, value, gpu))
        self.kept += 1
        event = fact(name, value, line.span(self.source), line.text, actor=Actor(gpu=gpu))
        if restated:
            event.fields["restated"] = True
        yield event

    def _take(self, text: str, line: Line) -> Iterator[Event | Trouble]:
        body = text.strip().strip("`")
        if OPENING.match(body):
            self.noise = line.number - 1
            return
        if not body or body.startswith(("<details", "</details", "<summary", "<code", "</code", "<pre", "</pre")):
            return
        if RULE.match(body):
            # Titles stand between two rules: the rule after a title closes it, any other rule opens one.
            self.title_next, self.titled = not self.titled, False
            return
        if self.title_next:
            self.title_next, self.titled = False, True
            self.section = body
            self.sections.append({"title": body, "line": line.number})
            self.open_key = None
            return
        if topology.begins_matrix(text) or (self.matrix and re.match(r"\s*(?:GPU|NIC|mlx5_)\d*", text)):
            self.matrix.append(line)
            return
        yield from self._end_matrix()
        yield from self._package(body, line)
        if "==" in body and PIP.match(body):
            return
        yield from self._variable(body, line)
        if VARIABLE.match(body):
            return
        yield from self._pair(text, body, line)

    def _note(self, text: str, line: Line) -> Iterator[Event]:
        """A line of a typed list that states no fact may still say what was seen: it goes on as prose."""
        body = text.strip()
        if len(body) < 4 or body.startswith(("```", "<")) or _is_environment_line(body) or self.notes >= MAX_NOTES:
            return
        self.notes += 1
        yield Event("notes.text", line.span(self.source), line.text, line.outer)

    def _end_matrix(self) -> Iterator[Event | Trouble]:
        matrix, self.matrix = self.matrix, []
        if matrix:
            yield from topology.read_matrix(matrix, self.source)

    def _package(self, body: str, line: Line) -> Iterator[Event]:
        found = PIP.match(body) or CONDA.match(body) or PIP_TABLE.match(body)
        typed = found is None
        if found is None:
            found = PIP_WORDS.match(body) if self.section is None and ":" not in body[:30] else None
        if found is None or "usage" in found["name"]:
            return
        name, version = found["name"], found["version"]
        self.packages.setdefault(name, version)
        yield from self._say(f"pip.{name.lower()}", version, line, restated=typed)
        known = package_fact(name)
        if known:
            yield from self._say(known, version, line, restated=typed)

    def _variable(self, body: str, line: Line) -> Iterator[Event]:
        found = VARIABLE.match(body)
        if found is None:
            return
        name, value = found["name"], found["value"].strip().rstrip("\\").strip().strip("\"'")
        if not (self.section or ENVIRONMENT_PREFIX.match(name) or body.startswith(("export ", "declare ", "ENV "))):
            return
        if SECRET.search(name):
            # That it is set may matter; what it is set to never does.
            self.environment[name] = ""
            return
        remark = re.match(r"(?P<value>[\w./,+-]{1,80}): \S", value) if self.section is None else None
        if remark:
            # `NCCL_P2P_DISABLE=1: all_reduce returns`: what a reporter tried, not a dump of the environment.
            value = remark["value"]
        self.environment[name] = value[:MAX_VALUE]
        yield from self._say(f"env.{name}", value if value else "''", line, restated=bool(remark))

    def _pair(self, text: str, body: str, line: Line) -> Iterator[Event]:
        row = GPU_ROW.match(body.removeprefix("GPU models and configuration").lstrip(" :"))
        if row and "UUID" not in row["name"] and "Compute" not in row["name"]:
            yield from self._gpus(row, line)
            if body.startswith("GPU models"):
                self.fields.setdefault("GPU models and configuration", body.split(":", 1)[1].strip())
            return
        capability = CAPABILITY.match(body)
        if capability:
            yield from self._say("gpu.sm", f"{capability['major']}.{capability['minor']}", line)
            return
        found = PAIR.match(body)
        if found is None:
            if self.open_key and "cudnn" in self.open_key.lower():
                file = CUDNN_FILE.search(body)
                if file:
                    yield from self._say("cudnn.version", file["version"], line)
            elif self.noise is None and self.section is None:
                yield from self._stated(body, line)
            return
        key, value = re.sub(r"\s+", " ", found["key"]).strip(), (found["value"] or "").strip()
        self.open_key = key
        official = self.section is not None or self.noise is not None or key in ("CUDA available", "NVCC")
        if value and len(self.fields) < 1_000:
            self.fields.setdefault(key, value)
        name = KEYS.get(key.lower())
        if name is not None and value and (official or name not in ("os", "python.version", "cpu.model")
                                           or re.match(r"[A-Z]|\d+\.\d+", value)):  # fmt: skip
            cudnn = CUDNN_FILE.search(value)
            if name == "cudnn.version" and cudnn:
                value = cudnn["version"]
            elif name in FIRST_WORD and not ABSENT.match(value):
                value = value.split()[0].lstrip("v")
                if not value[0].isdigit() and not official:
                    yield from self._stated(body, line)
                    return
            if name == "cuda.toolkit" and not re.match(r"\d", value):
                return
            yield from self._say(name, value, line)
            return
        release = RELEASE.search(value)
        if key == "NVCC" and release:
            yield from self._say("cuda.toolkit", release["version"], line)
            return
        if key == "Python platform":
            platform = PLATFORM.match(value)
            if platform:
                yield from self._say("kernel.version", platform["kernel"], line)
            return
        if not official:
            yield from self._stated(body, line)

    def _gpus(self, row: re.Match[str], line: Line) -> Iterator[Event]:
        indices = row["index"].split(",")
        for index in indices[:64]:
            self.gpus.append(row["name"].strip())
            yield from self._say("gpu.name", row["name"], line, gpu=index)
        if len(indices) > 1:
            yield from self._say("gpu.count", str(len(indices)), line)

    def _stated(self, body: str, line: Line) -> Iterator[Event]:
        if len(body) > 300:
            return
        for name, value in stated(body):
            yield from self._say(name, value, line, restated=True)


LOG_RECORD = lazy(
    r"\s*(?:\([\w .]{1,60}pid=\d+|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL|FATAL)\b|\[?\d{4}-\d\d-\d\d[T ]\d\d:"
    r"|Traceback \(|File \"|\[rank\d|[\w.-]+:\d+:\d+ \[\d+\] NCCL|[\w.]*(?:Error|Exception|Warning): |\[\s*\d+\.\d{6}\]"
    r"|raise |return |self\.|Process \d+:|Thread \w+ \(|GPU \d+: .*UUID|NVRM version)"
)


def _is_environment_line(text: str) -> bool:
    body = text.strip().lstrip("-* ").strip("`")
    found = VARIABLE.match(body)
    if found:
        return bool(ENVIRONMENT_PREFIX.match(found["name"]) or body.startswith("export "))
    if PIP.match(body) or CONDA.match(body) or GPU_ROW.match(body) or PIP_WORDS.match(body):
        return True
    pair = PAIR.match(body)
    if pair and pair["key"].strip().lower() in KEYS:
        return True
    return len(body) <= 200 and any(True for _ in stated(body))


class CollectEnv:
    """A TextParser of environment reports and lists."""

    name: ClassVar[str] = "collect_env"
    kind: ClassVar[str] = "environment"
    marks: ClassVar[tuple[bytes, ...]] = ()

    def sniff(self, head: str) -> float:
        """See `parsers.contract.TextParser`."""
        lines = [text for text in head.split("\n")[:400] if text.strip() and not text.strip().startswith(("```", "<"))]
        if not lines:
            return 0.0
        opened = next((at for at, text in enumerate(lines) if OPENING.match(text.strip())), None)
        if opened is not None:
            return 0.97 if opened <= 20 else 0.5
        if any(re.match(r"PyTorch version\s*: \d|CUDA available: (?:True|False)", text) for text in lines[:12]):
            return 0.95
        if any(LOG_RECORD.match(text) for text in lines):
            return 0.0
        good = sum(_is_environment_line(text) for text in lines)
        raw = sum(bool(PIP.match(text.strip()) or VARIABLE.match(text.strip())) for text in lines)
        share = good / len(lines)
        if share >= 0.8 and (raw == len(lines) or len(lines) <= 60):
            return 0.93
        if share >= 0.45 and len(lines) <= 40:
            return 0.9
        return 0.3 if share >= 0.25 and len(lines) <= 40 else 0.0

    def claims(self, text: str) -> bool:
        """See `parsers.contract.TextParser`."""
        return bool(
            re.match(
                r"Collecting environment information\.\.\.|\[(?:pip3?|conda)\] \S|(?:PyTorch|vLLM Version|Nvidia driver"
                r"|CUDA runtime|Libc|GCC|Clang|CMake|cuDNN|HIP runtime|MIOpen runtime) ?(?:version)?\s*: "
                r"|(?:CUDA|ROCM|XPU) used to build PyTorch|GPU models and configuration\s*:"
                r"|Is (?:debug build|CUDA available|XNNPACK available)\s*:|Python platform\s*: "
                r"|CUDA_MODULE_LOADING set to\s*:|vLLM Build Flags:|GPU Topology:|Vulnerability [A-Z][\w .]+: ",
                text,
            )
        )

    def read(self, lines: Iterable[Line], source: str) -> Iterator[Event | Trouble]:
        """Facts, each once; those of a typed list carry `restated`."""
        yield from _Report(source).walk(lines)

    def inspect(self, lines: Iterable[Line], source: str) -> dict[str, Any]:
        """`facts` (name -> values), `sections`, `fields`, `pip_packages`, `environment`, `gpus` and
        `noise_before_report` (lines)."""
        report = _Report(source)
        facts: dict[str, list[str]] = {}
        for found in report.walk(lines):
            if isinstance(found, Event) and found.kind == "fact":
                facts.setdefault(found.fields["name"], []).append(found.fields["value"])
        return {
            "facts": facts,
            "sections": report.sections,
            "fields": report.fields,
            "pip_packages": report.packages,
            "environment": report.environment,
            "gpus": report.gpus,
            "noise_before_report": report.noise,
        }


PARSER = CollectEnv()

__all__ = ["PARSER", "CollectEnv", "package_fact", "sm_text"]
