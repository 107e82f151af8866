"""Settings that had no effect: set in one place, while a line of the log shows that something else was done."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from analyzer.reasoning.bundle import Bundle, Observation
from analyzer.reasoning.facts import Fact
from parsers.event import Event
from parsers.pattern import lazy

ON = lazy(r"(?i)1|true|yes|on")
Against = Callable[[str, Bundle], Iterator[Event]]
"""Yields the events which show that a setting of that value had no effect."""


def _plain(text: object) -> str:
    return re.sub(r"[^a-z0-9]", "", str(text).lower().removeprefix("attentionbackendenum."))


def _of_fact(bundle: Bundle, name: str, differs: Callable[[str], bool]) -> Iterator[Event]:
    """What states a fact with a value that differs, unless some place states one that does not."""
    known = [one for one in bundle.facts.get(name) if not _restated(one)]
    if known and all(differs(one.value) for one in known):
        yield from known[0].events[:1]


def _disabled_kernels(value: str, bundle: Bundle) -> Iterator[Event]:
    names = {name.strip() for name in value.split(",") if name.strip()}
    yield from (event for event in bundle.events("server_log.kernel_selected") if event.fields.get("kernel") in names)


def _attention(value: str, bundle: Bundle) -> Iterator[Event]:
    wanted = _plain(value)
    yield from _of_fact(
        bundle, "attention.backend", lambda got: wanted not in _plain(got) and _plain(got) not in wanted
    )


def _no_flashinfer_sampler(value: str, bundle: Bundle) -> Iterator[Event]:
    wanted = ON.fullmatch(value) is not None
    yield from _of_fact(bundle, "kernel.sampler", lambda got: ("flashinfer" in _plain(got)) is not wanted)


def _engine(value: str, bundle: Bundle) -> Iterator[Event]:
    wanted = "v1" if ON.fullmatch(value) else "v0"
    yield from _of_fact(bundle, "vllm.engine", lambda got: _plain(got) != wanted)


def _nccl(pattern: str, when: re.Pattern[str] = ON) -> Against:
    shown = lazy(pattern)

    def against(value: str, bundle: Bundle) -> Iterator[Event]:
        if when.fullmatch(value):
            yield from (event for event in bundle.events("collective.nccl_info") if shown.search(event.text))

    return against


def _interface(value: str, bundle: Bundle) -> Iterator[Event]:
    """`NCCL_SOCKET_IFNAME`: prefixes, `^` for all but them, `=` for exact names (NCCL's environment variables)."""
    wanted = [name.strip() for name in value.lstrip("^=").split(",") if name.strip()]
    for event in bundle.events("collective.nccl_info"):
        used = re.search(r"Bootstrap\s*: Using ([\w.-]{1,40}):", event.text)
        if used is None or not wanted:
            continue
        fits = any(used[1] == name if value.startswith("=") else used[1].startswith(name) for name in wanted)
        if fits is value.startswith("^"):
            yield event


def _offline(value: str, bundle: Bundle) -> Iterator[Event]:
    if ON.fullmatch(value):
        yield from (event for event in bundle.events("server_log.download") if "huggingface.co" in event.text)


RULES: dict[str, Against] = {
    "env.VLLM_DISABLED_KERNELS": _disabled_kernels,
    "env.VLLM_ATTENTION_BACKEND": _attention,
    "attention.backend.requested": _attention,
    "env.VLLM_USE_FLASHINFER_SAMPLER": _no_flashinfer_sampler,
    "env.VLLM_USE_V1": _engine,
    "env.NCCL_P2P_DISABLE": _nccl(r" via P2P/"),
    "env.NCCL_SHM_DISABLE": _nccl(r" via SHM/"),
    "env.NCCL_IB_DISABLE": _nccl(r"NET/IB : Using|Using network IB|via NET/IB"),
    "env.NCCL_SOCKET_IFNAME": _interface,
    "env.HF_HUB_OFFLINE": _offline,
}
UNKNOWN = lazy(r"Unknown vLLM environment variable detected: (VLLM_\w{1,80})")


def _restated(fact: Fact) -> bool:
    """Whether only a person's list states it: what somebody tried, perhaps in another run."""
    return all(event.fields.get("restated") for event in fact.events)


def observe(bundle: Bundle) -> Iterator[Observation]:
    """`setting_without_effect`, once for each setting: name, value, shown (the line that says otherwise)."""
    for name, against in RULES.items():
        known = [one for one in bundle.facts.get(name) if not _restated(one)]
        if len(known) != 1 or known[0].value in ("(set)", "''"):
            continue  # not set, or set to different things: nothing says which value was in force
        shown = next(against(known[0].value, bundle), None)
        if shown is not None:
            fields: dict[str, object] = {"name": name, "value": known[0].value, "shown": shown.text[:300]}
            yield Observation("setting_without_effect", [known[0].events[0], shown], fields)
    yield from _unknown(bundle)


def _unknown(bundle: Bundle) -> Iterator[Observation]:
    """A variable that a person set elsewhere, and that the server says it does not know."""
    for event in bundle.events("server_log.record"):
        found = UNKNOWN.search(event.text)
        if found is None:
            continue
        name = f"env.{found[1]}"
        set_by = next((one for one in bundle.facts.get(name) if one.value != "(set)" and not _restated(one)), None)
        if set_by is not None:
            fields: dict[str, object] = {"name": name, "value": set_by.value, "shown": event.text[:300]}
            yield Observation("setting_without_effect", [set_by.events[0], event], fields)
