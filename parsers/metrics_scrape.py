"""Prometheus text of inference servers and DCGM: one or several scrapes in a file.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/. Every line is read on its own, so a
scrape that was cut or mixed with other output keeps its good samples. vLLM's gauges are copies which the API server
holds: they stay at their last value when the engine is frozen, and one scrape alone shows neither progress nor a stall.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from parsers.contract import Line, Trouble
from parsers.event import Actor, Event, fact
from parsers.pattern import lazy
from parsers.stamp import Stamp
from parsers.wallclock import ctime, iso

MAX_NAMES = 20_000
MAX_LINE = 16_384
MAX_SCRAPES = 10_000
MAX_BAD_NOTES = 20

SAMPLE = lazy(
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:.]{0,200})(?P<labels>\{.*\})?[ \t]+"
    r"(?P<value>[-+]?(?:\d[\d.eE+-]{0,40}|Inf|NaN|inf|nan))"
    r"(?:[ \t]+(?P<time>\d{1,16}(?:\.\d+)?))?(?:[ \t]*#.*)?\s*$"
)
LABEL = lazy(r'(?P<name>[a-zA-Z_][a-zA-Z0-9_]*)="(?P<value>(?:[^"\\]|\\.)*)"')
COMMENT = lazy(r"# (?P<what>HELP|TYPE) (?P<name>\S{1,200})")
MARKUP = lazy(r"\s*<(?:!doctype html|html|head|body|title|h1|center|hr|p>|/)", re.IGNORECASE)
HTTP_HEADER = lazy(r"HTTP/\d(?:\.\d)? (?P<status>\d{3})")
KNOWN_NAME = lazy(r"(?:vllm:|sglang:|DCGM_FI_|python_info|python_gc_|process_|http_request|tgi_|ray_)")
NAME_AT_START = lazy(r"[a-zA-Z_:][a-zA-Z0-9_:]*[{ ]")

# Counters and gauges whose line is quoted for a scrape, best first.
TELLING = (
    "vllm:generation_tokens_total",
    "vllm:iteration_tokens_total_count",
    "vllm:num_requests_running",
    "sglang:generation_tokens_total",
    "sglang:num_running_reqs",
    "sglang:gen_throughput",
    "DCGM_FI_DEV_GPU_UTIL",
    "vllm:prompt_tokens_total",
    "vllm:spec_decode_num_draft_tokens_total",
)
SPLIT_BY = {
    "vllm:request_success_total": "finished_reason",
    "vllm:request_success": "finished_reason",
    "vllm:num_requests_waiting_by_reason": "reason",
    "vllm:engine_sleep_state": "sleep_state",
    "vllm:admission_rejections_total": "reason",
}
PROGRESS = lazy(
    r"(?:vllm|sglang):(?:generation_tokens|prompt_tokens|iteration_tokens_total_count|request_success|num_preemptions"
    r"|e2e_request_latency_seconds_count|time_to_first_token_seconds_count|inter_token_latency_seconds_count"
    r"|spec_decode_num_\w*tokens|num_requests_total)(?:_total)?$|vllm:iteration_tokens_total_count$"
)
DCGM_FIELDS = {
    "DCGM_FI_DEV_GPU_UTIL": "util",
    "DCGM_FI_DEV_MEM_COPY_UTIL": "mem_util",
    "DCGM_FI_DEV_POWER_USAGE": "power_w",
    "DCGM_FI_DEV_GPU_TEMP": "temp_c",
    "DCGM_FI_DEV_SM_CLOCK": "sm_clock_mhz",
    "DCGM_FI_DEV_FB_USED": "mem_used_mib",
}


@dataclass(slots=True)
class Scrape:
    """One scrape: `values` are sums over labels, `split` keeps the reason labels apart."""

    stamp: Stamp | None = None
    first: Line | None = None
    values: dict[str, float] = field(default_factory=dict)
    split: dict[str, dict[str, float]] = field(default_factory=dict)
    headers: set[tuple[str, str]] = field(default_factory=set)
    lines: dict[str, Line] = field(default_factory=dict)
    gpus: dict[str, dict[str, Any]] = field(default_factory=dict)
    info: dict[str, tuple[str, Line]] = field(default_factory=dict)
    samples: int = 0
    first_key: str = ""

    @property
    def source_kind(self) -> str:
        """Whose metrics these are: vllm, sglang, dcgm or other."""
        for name in self.values:
            if name.startswith("vllm:"):
                return "vllm"
            if name.startswith("sglang:"):
                return "sglang"
            if name.startswith("DCGM_FI_"):
                return "dcgm"
        return "other"

    def telling(self) -> Line | None:
        """The line that says most about progress."""
        return next((self.lines[name] for name in TELLING if name in self.lines), self.first)


_ESCAPE = lazy(r"\\(.)")
_ESCAPED = {"n": "\n", '"': '"', "\\": "\\"}


def labels_of(text: str) -> dict[str, str]:
    """`{a="1",b="x\\"y"}` as a dict; escapes of the format (`\\\\`, `\\"`, `\\n`) are undone, each once."""
    return {
        found["name"]: _ESCAPE.sub(lambda one: _ESCAPED.get(one[1], one[0]), found["value"])
        for found in LABEL.finditer(text)
    }


class _Reading:
    """The walk over the lines, which cuts the scrapes apart."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.scrape = Scrape()
        self.stamp: Stamp | None = None
        self.bad = 0
        self.scrapes = self.left_out = self.left_out_from = 0
        self.markup = False

    def walk(self, lines: Iterable[Line]) -> Iterator[Scrape | Trouble]:
        last: Line | None = None
        for line in lines:
            text = line.text.strip()
            last = line
            if not text:
                continue
            if len(text) > MAX_LINE:
                yield from self._bad(line, f"a line of {len(text)} characters is not read", "limit")
                continue
            if text[0] == "#":
                yield from self._comment(text, line)
                continue
            found = SAMPLE.match(text)
            if found:
                yield from self._sample(found, text, line)
                continue
            stamp = iso(text) or ctime(text)
            status = HTTP_HEADER.match(text)
            if stamp or status:
                yield from self._end()
                self.stamp = stamp or self.stamp
            elif MARKUP.match(text):
                if not self.markup:
                    self.markup = True
                    yield from self._bad(line, "a web page stands where metrics should be", "skipped")
            elif NAME_AT_START.match(text) and KNOWN_NAME.match(text):
                yield from self._bad(line, "a sample is cut", "truncated")
            elif text.startswith(("$ ", "curl ")) or set(text) <= set("-=*~ "):
                yield from self._end()
        yield from self._end()
        if last is not None and not self.scrapes and not self.bad:
            yield Trouble(self.source, "unreadable", "no metric sample was found", last.number)
        if self.left_out:
            text = f"more than {MAX_SCRAPES} scrapes: {self.left_out} were not read"
            yield Trouble(self.source, "limit", text, self.left_out_from)

    def _bad(self, line: Line, text: str, tag: str) -> Iterator[Trouble]:
        self.bad += 1
        if self.bad <= MAX_BAD_NOTES:
            yield Trouble(self.source, tag, text, line.number, line.start)

    def _end(self) -> Iterator[Scrape]:
        scrape, self.scrape = self.scrape, Scrape()
        if not scrape.samples:
            return
        if self.scrapes == MAX_SCRAPES:
            if not self.left_out and scrape.first is not None:
                self.left_out_from = scrape.first.number
            self.left_out += 1
            return
        self.scrapes += 1
        scrape.stamp, self.stamp = self.stamp, None
        yield scrape

    def _comment(self, text: str, line: Line) -> Iterator[Scrape | Trouble]:
        found = COMMENT.match(text)
        if found is None:
            stamp = next((s for s in (iso(part) or ctime(part) for part in _dates(text)) if s), None)
            if stamp:
                yield from self._end()
                self.stamp = stamp
            return
        key = (found["what"], found["name"])
        # vLLM repeats a family's comments when several engines or models register it; then samples of it follow at
        # once, so only a repeat of the scrape's first family starts a new scrape.
        if key in self.scrape.headers and self.scrape.samples and key == next(iter(self.scrape.headers)):
            yield from self._end()
        if not self.scrape.headers:
            self.scrape.headers.add(key)

    def _sample(self, found: re.Match[str], text: str, line: Line) -> Iterator[Scrape | Trouble]:
        name = found["name"]
        try:
            value = float(found["value"])
        except ValueError:
            yield from self._bad(line, "a value is no number", "corrupt")
            return
        key = name + (found["labels"] or "")
        if self.scrape.samples and key == self.scrape.first_key:
            yield from self._end()
        scrape = self.scrape
        if not scrape.samples:
            scrape.first, scrape.first_key = line, key
        scrape.samples += 1
        if name not in scrape.values and len(scrape.values) >= MAX_NAMES:
            if self.bad <= MAX_BAD_NOTES:
                yield from self._bad(line, f"more than {MAX_NAMES} metric names", "limit")
            return
        scrape.lines.setdefault(name, line)
        if math.isfinite(value):
            scrape.values[name] = scrape.values.get(name, 0.0) + value
        labels = found["labels"]
        if not labels:
            return
        by = SPLIT_BY.get(name)
        if by:
            reason = labels_of(labels).get(by)
            if reason is not None and len(scrape.split.setdefault(name, {})) < 64:
                scrape.split[name][reason] = scrape.split[name].get(reason, 0.0) + value
        if name in DCGM_FIELDS or name.endswith("_info") or "model_name" not in scrape.info:
            self._labels(name, value, labels, line)

    def _labels(self, name: str, value: float, labels: str, line: Line) -> None:
        pairs = labels_of(labels)
        info = self.scrape.info
        if pairs.get("model_name") and "model_name" not in info:
            info["model_name"] = (pairs["model_name"], line)
        if name == "python_info" and pairs.get("version"):
            info["python"] = (pairs["version"], line)
        if name.endswith("cache_config_info"):
            for key in (
                "block_size",
                "cache_dtype",
                "gpu_memory_utilization",
                "num_gpu_blocks",
                "enable_prefix_caching",
            ):
                if pairs.get(key) and pairs[key] != "None":
                    info[f"cache.{key}"] = (pairs[key], line)
        if name in DCGM_FIELDS and "gpu" in pairs and len(self.scrape.gpus) < 1_024:
            gpu = self.scrape.gpus.setdefault(pairs["gpu"], {"line": line, "host": pairs.get("Hostname")})
            gpu["name"] = pairs.get("modelName")
            if name == "DCGM_FI_DEV_GPU_UTIL":
                gpu["line"] = line
            if math.isfinite(value):
                gpu[DCGM_FIELDS[name]] = value


def _dates(text: str) -> Iterator[str]:
    body = text.lstrip("# ")
    yield body
    for word in re.finditer(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S{0,20}|[A-Z][a-z]{2} [A-Z][a-z]{2} .{5,30}", body):
        yield word[0]


def plain(value: float) -> float | int:
    """Whole numbers as int, the way they are compared and read."""
    return int(value) if value == int(value) and abs(value) < 2**53 else value


class MetricsScrape:
    """A TextParser of Prometheus text."""

    name: ClassVar[str] = "metrics_scrape"
    kind: ClassVar[str] = "metrics"
    marks: ClassVar[tuple[bytes, ...]] = ()

    def sniff(self, head: str) -> float:
        """See `parsers.contract.TextParser`."""
        good = other = known = 0
        for text in head.split("\n")[:200]:
            text = text.strip()
            if not text:
                continue
            if COMMENT.match(text) or SAMPLE.match(text):
                # `key 12` alone is too weak: du, wc and many tables look so.
                good += 1
                body = text[7:] if text.startswith("# ") else text
                known += bool(KNOWN_NAME.match(body) or text.startswith(("# HELP ", "# TYPE ")) or "{" in text)
            else:
                other += 1
        if not known:
            return 0.0
        share = good / (good + other)
        return 0.97 if share >= 0.8 else 0.9 if share >= 0.5 else 0.1

    def claims(self, text: str) -> bool:
        """See `parsers.contract.TextParser`."""
        if text.startswith("# "):
            return bool(re.match(r"# (?:HELP|TYPE) (?:vllm:|sglang:|DCGM_FI_|python_|process_|http_)", text))
        return bool(re.match(r"(?:vllm:|sglang:|DCGM_FI_)\w+(?:\{.*\})? [-+]?[\d.NIni]", text))

    def read(self, lines: Iterable[Line], source: str) -> Iterator[Event | Trouble]:
        """One `metrics.scrape` a scrape, GPU samples of DCGM, and facts of the info metrics."""
        said: set[tuple[str, str]] = set()
        for found in _Reading(source).walk(lines):
            if isinstance(found, Trouble):
                yield found
                continue
            line = found.telling()
            if line is None:
                continue
            fields: dict[str, Any] = {
                "values": {name: plain(value) for name, value in found.values.items()},
                "source": found.source_kind,
                "samples": found.samples,
            }
            if found.split:
                fields["reasons"] = found.split
            stamp = found.stamp or line.outer
            events = [Event("metrics.scrape", line.span(source), line.text, stamp, fields=fields)]
            events += self._facts(found, source, said)
            events += self._samples(found, source, stamp)
            yield from sorted(events, key=lambda event: event.span.first_line)

    def _facts(self, scrape: Scrape, source: str, said: set[tuple[str, str]]) -> Iterator[Event]:
        names = {"model_name": "model.name", "python": "python.version", "cache.cache_dtype": "kv_cache.dtype"}
        for key, name in names.items():
            if key in scrape.info and (name, scrape.info[key][0]) not in said:
                value, line = scrape.info[key]
                said.add((name, value))
                yield fact(name, value, line.span(source), line.text)

    def _samples(self, scrape: Scrape, source: str, stamp: Stamp | None) -> Iterator[Event]:
        for gpu, readings in scrape.gpus.items():
            line: Line = readings["line"]
            fields = {"gpu": gpu} | {k: v for k, v in readings.items() if k not in ("line", "host") and v is not None}
            actor = Actor(gpu=gpu, host=readings["host"])
            yield Event("gpu_samples.sample", line.span(source), line.text, stamp, actor, fields)

    def inspect(self, lines: Iterable[Line], source: str) -> dict[str, Any]:
        """`scrapes` (time, values, reasons, source, info) and `differences` between each two that follow."""
        scrapes = [found for found in _Reading(source).walk(lines) if isinstance(found, Scrape)]
        view = [
            {
                "time": scrape.stamp.text if scrape.stamp else None,
                "values": {name: plain(value) for name, value in scrape.values.items()},
                "reasons": scrape.split,
                "source": scrape.source_kind,
                "samples": scrape.samples,
                "info": {key: value for key, (value, _) in scrape.info.items()},
            }
            for scrape in scrapes
        ]
        differences = []
        for at in range(1, len(scrapes)):
            before, after = scrapes[at - 1].values, scrapes[at].values
            changed = {n: plain(after[n] - before[n]) for n in after if n in before and after[n] != before[n]}
            flat = [n for n in after if n in before and after[n] == before[n] and PROGRESS.search(n)]
            differences.append({"from": at - 1, "to": at, "changed": changed, "flat": flat})
        return {"scrapes": view, "differences": differences}


PARSER = MetricsScrape()
