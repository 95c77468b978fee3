"""ICMP echo, by our own probe in both modes."""

from __future__ import annotations

from streamgauge.systems.node import NodeAdapter
from streamgauge.systems.system import System, of_machine

SYSTEM: System = of_machine(
    "ping", sim="our probe", emu="our probe on a raw socket", adapter=NodeAdapter(raw_sockets=True)
)
