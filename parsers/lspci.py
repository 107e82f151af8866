"""`lspci -vv` and PCIe link files of sysfs: ACS, AER status, link width and speed of GPUs and the ports above them.

Link speeds per PCIe generation: 2.5, 5, 8, 16, 32, 64 GT/s (PCIe base specification).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from parsers.contract import Line, Trouble
from parsers.event import Actor, Event, fact
from parsers.pattern import lazy

MAX_EVENTS = 10_000

DEVICE = lazy(
    r"(?P<address>(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (?P<class>[A-Z][\w ,/()-]{2,60}?)"
    r"(?: \[[0-9a-f]{4}\])?: (?P<name>\S.*)$"
)
LINK = lazy(
    r"\s+Lnk(?P<what>Cap|Sta):.{0,80}?Speed (?P<speed>\d+(?:\.\d+)?)GT/s(?: \((?P<note>\w+)\))?, Width x(?P<width>\d+)"
    r"(?: \((?P<width_note>\w+)\))?"
)
ACS = lazy(r"\s+ACSCtl:\s+(?P<flags>\S.*)$")
AER = lazy(r"\s+(?P<what>UESta|CESta):\s+(?P<flags>\S.*)$")
DRIVER = lazy(r"\s+Kernel driver in use: (?P<driver>[\w-]+)")
SYSFS = lazy(
    r"(?:\S{0,40}[$#] )?(?:cat |grep \S* )?/sys/bus/pci/devices/"
    r"(?P<address>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])/"
    r"(?P<file>(?:current|max)_link_(?:width|speed))(?P<rest>.*)$"
)
VALUE = lazy(r"\D{0,8}(?P<value>\d+(?:\.\d+)?)")
MAX_WIDTH = lazy(r"max_link_width\s*[=:]\s*(?P<value>\d+)")
GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}


def _pci(address: str) -> str:
    whole = address if address.count(":") == 2 else f"0000:{address}"
    return whole.rsplit(".", 1)[0].lower()


class Lspci:
    """A TextParser of lspci and of PCIe link files."""

    name: ClassVar[str] = "lspci"
    kind: ClassVar[str] = "host"
    marks: ClassVar[tuple[bytes, ...]] = ()

    def sniff(self, head: str) -> float:
        """See `parsers.contract.TextParser`."""
        lines = [text for text in head.split("\n")[:300] if text.strip()]
        devices = sum(bool(DEVICE.match(text)) for text in lines)
        inner = sum(
            bool(re.match(r"\t+\S|\s+(?:Lnk|Control:|Status:|Capabilities:|Kernel driver|ACS)", text)) for text in lines
        )
        if devices and (devices + inner) / len(lines) > 0.8:
            return 0.95
        return 0.3 if any(SYSFS.match(text) for text in lines[:20]) else 0.0

    def claims(self, text: str) -> bool:
        """See `parsers.contract.TextParser`."""
        return bool(
            DEVICE.match(text)
            or re.match(r"\s+(?:LnkCap|LnkSta|ACSCtl|ACSCap|UESta|CESta):\s", text)
            or SYSFS.match(text)
        )

    def read(self, lines: Iterable[Line], source: str) -> Iterator[Event | Trouble]:
        """`gpu_samples.link` of NVIDIA devices, `fact` pci.acs and pci.driver, AER bits as `fact` pci.aer."""
        address: str | None = None
        nvidia = bridge = False
        capable: tuple[int, float] | None = None
        sysfs: dict[str, Any] = {}
        waiting: str | None = None
        count = 0
        for line in lines:
            text = line.text.rstrip()
            for event in self._line(text, line, source, (address, nvidia, bridge, capable)):
                count += 1
                if count > MAX_EVENTS:
                    yield Trouble(source, "limit", f"more than {MAX_EVENTS} entries", line.number)
                    return
                yield event
            found = DEVICE.match(text)
            if found:
                address, capable = _pci(found["address"]), None
                nvidia, bridge = "nvidia" in found["name"].lower(), "bridge" in found["class"].lower()
                continue
            link = LINK.match(text)
            if link and link["what"] == "Cap":
                capable = (int(link["width"]), float(link["speed"]))
                continue
            asked = SYSFS.match(text)
            if asked or (waiting and VALUE.match(text)):
                if asked:
                    waiting = asked["file"]
                    if sysfs.get("gpu") != _pci(asked["address"]):
                        sysfs = {"gpu": _pci(asked["address"])}
                value = VALUE.match(asked["rest"] if asked else text)
                if value and waiting:
                    number = float(value["value"])
                    name = (
                        waiting.replace("current_link_", "")
                        .replace("max_link_width", "width_max")
                        .replace("max_link_speed", "gen_max")
                    )
                    name = name.replace("speed", "gen")
                    sysfs[name] = GENERATIONS.get(number) if name.startswith("gen") else int(number)
                    most = MAX_WIDTH.search(asked["rest"]) if asked else None
                    if most:
                        sysfs["width_max"] = int(most["value"])
                    if waiting == "current_link_width":
                        yield Event(
                            "gpu_samples.link", line.span(source), line.text, None, Actor(gpu=sysfs["gpu"]), dict(sysfs)
                        )
                    waiting = None

    def _line(
        self, text: str, line: Line, source: str, about: tuple[str | None, bool, bool, tuple[int, float] | None]
    ) -> Iterator[Event]:
        address, nvidia, bridge, capable = about
        if address is None:
            return
        actor = Actor(gpu=address)
        link = LINK.match(text)
        if link and link["what"] == "Sta" and nvidia:
            fields: dict[str, Any] = {
                "gpu": address,
                "width": int(link["width"]),
                "gen": GENERATIONS.get(float(link["speed"])),
            }
            if capable:
                fields |= {"width_max": capable[0], "gen_max": GENERATIONS.get(capable[1])}
            yield Event("gpu_samples.link", line.span(source), line.text, None, actor, fields)
            return
        acs = ACS.match(text)
        if acs and bridge:
            on = [flag[:-1] for flag in acs["flags"].split() if flag.endswith("+")]
            yield fact("pci.acs", " ".join(on) or "off", line.span(source), line.text, actor=actor)
            return
        aer = AER.match(text)
        if aer:
            on = [flag[:-1] for flag in aer["flags"].split() if flag.endswith("+")]
            if on:
                yield fact("pci.aer", f"{aer['what']} {' '.join(on)}", line.span(source), line.text, actor=actor)
            return
        driver = DRIVER.match(text)
        if driver and nvidia:
            yield fact("pci.driver", driver["driver"], line.span(source), line.text, actor=actor)

    def inspect(self, lines: Iterable[Line], source: str) -> dict[str, Any]:
        """`links` and `facts`, each with its line and device."""
        view: dict[str, Any] = {"links": [], "facts": []}
        for found in self.read(lines, source):
            if isinstance(found, Event):
                where = "facts" if found.kind == "fact" else "links"
                view[where].append({"line": found.span.first_line, "device": found.actor.gpu, **found.fields})
        return view


PARSER = Lspci()
