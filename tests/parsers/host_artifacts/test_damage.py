"""Hostile and damaged input of the small artifacts: pickles, XML with entities, broken scrapes, secrets."""

from __future__ import annotations

import io
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from artifact_text import FIXTURES, check_snapshot, lines_of, read_view

from parsers import collect_env, flight_recorder, metrics_scrape, nvidia_smi
from parsers.contract import Trouble
from parsers.event import Event

PICKLES = flight_recorder.PARSERS[1]


class _Call:
    def __reduce__(self) -> Any:
        return os.system, ("exit 1",)


def _doubling() -> list[Any]:
    value: list[Any] = [1]
    for _ in range(60):
        value = [value, value]
    return value


HOSTILE = {
    "call": pickle.dumps({"entries": [_Call()]}),
    "eval": b"cbuiltins\neval\n(S'1'\ntR.",
    "persistent": b"\x80\x02U\x01aQ.",
    "memo": b"\x80\x02]r\x00\x00\x00\x08.",
    "length": b"\x80\x04\x8d" + (2**60).to_bytes(8, "little") + b"a.",
    "nested": b"\x80\x02" + b"(" * 300_000 + b"t" * 300_000 + b".",
    "doubling": pickle.dumps({"entries": _doubling()}),
    "empty": b"",
    "noise": b"\x80\x02" + bytes(range(256)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pickles_are_refused(name: str) -> None:
    (trouble,) = PICKLES.read_binary(io.BytesIO(HOSTILE[name]), "nccl_trace_rank_0")
    assert isinstance(trouble, Trouble)
    assert trouble.tag == "unsupported"
    assert trouble.text.startswith("pickle-refused")
    assert PICKLES.inspect_binary(io.BytesIO(HOSTILE[name]), "x")["complete"] is False


@pytest.mark.parametrize("name", ["nccl_trace_rank_0", "nccl_trace_rank_1"])
def test_real_pickles(name: str) -> None:
    data = (FIXTURES / "flight_recorder" / name).read_bytes()
    assert PICKLES.sniff_bytes(data[:4096]) >= 0.9
    found = list(PICKLES.read_binary(io.BytesIO(data), name))
    check_snapshot(FIXTURES / "flight_recorder" / f"{name}.json", {"parser": PICKLES.name, "events": read_view(found)})


def test_the_pickle_and_the_json_say_the_same() -> None:
    folder = FIXTURES / "flight_recorder"
    name = "nccl_trace_rank_0"
    binary = PICKLES.read_binary(io.BytesIO((folder / name).read_bytes()), name)
    text = flight_recorder.PARSERS[0].read(lines_of((folder / f"{name}.json.txt").read_bytes()), name)
    assert [event.fields for event in binary if isinstance(event, Event)] == [
        event.fields for event in text if isinstance(event, Event)
    ]


def test_xml_with_entities_is_refused() -> None:
    text = '<?xml version="1.0"?>\n<!DOCTYPE nvidia_smi_log [<!ENTITY a "b">]>\n'
    text += '<nvidia_smi_log><gpu id="x">&a;</gpu></nvidia_smi_log>\n'
    found = list(nvidia_smi.PARSER.read(lines_of(text.encode()), "x"))
    assert [item.tag for item in found if isinstance(item, Trouble)] == ["unsupported"]
    assert not [item for item in found if isinstance(item, Event)]


def test_the_xml_and_the_text_of_one_query_agree() -> None:
    def sample(name: str) -> dict[str, Any]:
        found = nvidia_smi.PARSER.read(lines_of((FIXTURES / "nvidia_smi" / name).read_bytes()), name)
        fields = next(
            event.fields for event in found if isinstance(event, Event) and event.kind == "gpu_samples.sample"
        )
        return {key: value for key, value in fields.items() if key != "power_w"}

    assert sample("query.txt") == sample("query-xml.txt")


def test_long_recordings_are_thinned_and_counted() -> None:
    rows = ["timestamp, index, utilization.gpu [%], power.draw [W]"]
    rows += [f"2026/11/30 20:00:00.000, 0, {100 if at != 333 else 7} %, {120 + at / 1000:.2f} W" for at in range(1_000)]
    found = [
        event for event in nvidia_smi.PARSER.read(lines_of("\n".join(rows).encode()), "x") if isinstance(event, Event)
    ]
    assert 40 <= len(found) <= 60
    assert {event.fields["count"] for event in found} == {1_000}
    assert 7 in [event.fields["util"] for event in found]


def test_a_scrape_cut_in_a_label_keeps_its_good_samples() -> None:
    text = 'vllm:num_requests_running{engine="0"} 2.0\nvllm:generation_tokens_total{engine="0"} 7.0\n'
    text += "vllm:prompt_tokens_total{engi"
    found = list(metrics_scrape.PARSER.read(lines_of(text.encode()), "x"))
    scrape = next(event for event in found if isinstance(event, Event))
    assert scrape.fields["values"] == {"vllm:num_requests_running": 2, "vllm:generation_tokens_total": 7}
    assert [item.tag for item in found if isinstance(item, Trouble)] == ["truncated"]


def test_two_scrapes_in_a_file_are_told_apart() -> None:
    data = (FIXTURES / "metrics_scrape" / "two-scrapes.txt").read_bytes()
    view = metrics_scrape.PARSER.inspect(lines_of(data), "x")
    assert len(view["scrapes"]) == 2
    assert view["differences"][0]["changed"]


def test_a_web_page_is_no_scrape() -> None:
    page = "<html><head><title>503</title></head>\n<body><h1>503 Service Unavailable</h1></body></html>\n"
    assert metrics_scrape.PARSER.sniff(page) == 0.0
    found = list(metrics_scrape.PARSER.read(lines_of(page.encode()), "x"))
    assert not [item for item in found if isinstance(item, Event)]
    assert found


def test_secrets_are_not_kept() -> None:
    data = (FIXTURES / "collect_env" / "variables.txt").read_bytes()
    found = list(collect_env.PARSER.read(lines_of(data), "x"))
    assert {event.fields["name"] for event in found if isinstance(event, Event) and event.kind == "fact"} == {
        "env.NCCL_P2P_DISABLE",
        "env.VLLM_LOGGING_LEVEL",
    }
    assert "not_a_real" not in repr(collect_env.PARSER.inspect(lines_of(data), "x"))
