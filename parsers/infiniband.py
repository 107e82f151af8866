"""InfiniBand and RoCE ports: `ibstat`, `ibstatus`, `ibv_devinfo`, `rdma link`.

Layouts: infiniband-diags (`CA 'mlx5_0'`, `Port 1:`, `State: Down`), its script ibstatus (`Infiniband device 'mlx5_0'
port 1 status:`), rdma-core's ibv_devinfo (`hca_id:`, `state: PORT_DOWN (1)`), iproute2 (`link mlx5_0/1 state ACTIVE`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from parsers.contract import Line, Trouble
from parsers.event import NOBODY, Event
from parsers.pattern import lazy

MAX_EVENTS = 2_000

DEVICE = lazy(
    r"CA '(?P<ca>[\w.-]{1,40})'|hca_id:\s+(?P<hca>[\w.-]{1,40})"
    r"|Infiniband device '(?P<device>[\w.-]{1,40})' port (?P<port>\d+)"
)
PORT = lazy(r"\s+[Pp]ort (?P<port>\d{1,3}):\s*$|\s+port:\s+(?P<number>\d{1,3})\s*$")
STATE = lazy(r"\s+[Ss]tate:\s+(?:\d: )?(?:PORT_)?(?P<state>[A-Za-z]{2,20})")
PHYSICAL = lazy(r"\s+(?:Physical|phys) state:\s+(?:\d: )?(?P<state>[A-Za-z]{2,20})")
RATE = lazy(r"\s+[Rr]ate:\s+(?P<rate>\d+(?:\.\d+)?)(?: Gb/sec.{0,40})?\s*$")
LINK = lazy(r"(?:\d+: )?link (?P<device>[\w.-]{1,40})/(?P<port>\d{1,3}) .{0,120}?state (?P<state>[A-Z_]{2,20})")
FIRMWARE = lazy(r"\s+(?:Firmware version|fw_ver):\s+(?P<version>[\d.]{3,40})")
REST = lazy(
    r"\s+(?:CA type|Number of ports|Hardware version|Node GUID|System image GUID|Base lid|LMC|SM lid"
    r"|Capability mask|Port GUID|Link"
    r" layer|transport|node_guid|sys_image_guid|vendor_id|vendor_part_id|hw_ver|board_id|phys_port_cnt|max_mtu"
    r"|active_mtu|sm_lid"
    r"|port_lid|port_lmc|link_layer|default gid|base lid|sm lid|link_layer)\s*:"
)


class InfiniBand:
    """A TextParser of port states."""

    name: ClassVar[str] = "infiniband"
    kind: ClassVar[str] = "host"
    marks: ClassVar[tuple[bytes, ...]] = ()

    def sniff(self, head: str) -> float:
        """0.95 for a text of devices and their ports."""
        lines = [line for line in head.split("\n")[:200] if line.strip()]
        opened = sum(bool(DEVICE.match(line) or LINK.match(line)) for line in lines)
        known = sum(any(one.match(line) for one in (DEVICE, PORT, STATE, PHYSICAL, RATE, LINK, FIRMWARE, REST))
                    for line in lines)  # fmt: skip
        return 0.95 if opened and known * 10 >= 7 * len(lines) else 0.0

    def claims(self, text: str) -> bool:
        """A line that opens a device."""
        return bool(DEVICE.match(text) or LINK.match(text))

    def read(self, lines: Iterable[Line], source: str) -> Iterator[Event | Trouble]:
        """`kernel_log.network` for each port with its state."""
        device: str | None = None
        port: str | None = None
        count = 0
        for line in lines:
            text = line.text.rstrip()
            found = DEVICE.match(text)
            if found:
                device, port = found["ca"] or found["hca"] or found["device"], found["port"] or port
                continue
            found = PORT.match(text)
            if found:
                port = found["port"] or found["number"]
                continue
            linked = LINK.match(text)
            found = linked or STATE.match(text)
            if found is None or (linked is None and device is None):
                continue
            count += 1
            if count > MAX_EVENTS:
                yield Trouble(source, "limit", f"more than {MAX_EVENTS} ports: the rest is not read", line.number)
                return
            fields = {
                "device": linked["device"] if linked else device,
                "port": linked["port"] if linked else port,
                "state": "up" if found["state"].lower() == "active" else found["state"].lower(),
            }
            yield Event("kernel_log.network", line.span(source), line.text, line.outer, NOBODY, fields)

    def inspect(self, lines: Iterable[Line], source: str) -> dict[str, Any]:
        """`ports`: line, device, port, state."""
        found = [item for item in self.read(lines, source) if isinstance(item, Event)]
        return {"ports": [{"line": event.span.first_line, **event.fields} for event in found]}


PARSER = InfiniBand()
