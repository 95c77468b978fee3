"""The routes of a flow's two ends: what its TCP uses they have from the plan, and from nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from streamgauge.emu import network
from streamgauge.emu.compartments import Compartments
from streamgauge.emu.network import routes
from streamgauge.scenario import from_text
from streamgauge.scenario.lower import lower
from streamgauge.systems.adapter import FlowSetup

TEXT = """
id: test/routes
title: Routes
path: {down: {rate: 1 Mbit/s, queue: droptail 10 kB}, up: {}}
flows:
  web: {role: subject, system: {server: ./s, player: ./p}}
  ftp: {role: rival, traffic: bulk, parameters: {mss: 536 B, initial_window: 3 packets, delayed_ack: 0 s}}
  cross: {role: rival, traffic: cbr, parameters: {rate: 10 packets/s}}
until: {time: 9 s}
"""
PAIR = "address add 10.0.0.1/32 dev eth0", "neighbour replace 10.0.0.2 lladdr 02:00 dev eth0 nud permanent"
ROUTE = "route add 10.0.0.2/32 dev eth0 src 10.0.0.1"


def planned(*settings: str) -> dict[str, dict[str, Any]]:
    (scenario,) = from_text(TEXT, settings=settings)
    return {flow["name"]: flow for flow in lower(scenario, "emu", 1)["flows"]}


def route(flow: dict[str, Any]) -> str:
    setup = FlowSetup(name=flow["name"], index=0, system="command", plan=flow)
    *pair, last = routes("10.0.0.1", "10.0.0.2", "02:00", setup, {"vegas": "sg_vegas_1"})
    assert tuple(pair) == PAIR and last.startswith(ROUTE)
    return last.removeprefix(ROUTE)


def test_each_flow_has_the_tcp_of_its_plan() -> None:
    flows = planned()
    assert flows["web"]["tcp"] == {"congestion_control": "cubic", "ecn": False}
    assert "tcp" not in flows["ftp"] and "tcp" not in flows["cross"], "their settings say it"
    assert route(flows["web"]) == " congctl lock cubic"
    assert route(flows["ftp"]) == " congctl lock cubic advmss 548 initcwnd 3 quickack 1"
    assert route(flows["cross"]) == "", "no connection, no congestion control"


@pytest.mark.parametrize("name", ["web", "ftp"])
def test_a_choice_of_the_scenario_reaches_the_route_by_the_plan(name: str) -> None:
    flow = planned(f"flows.{name}.congestion_control=vegas", f"flows.{name}.ecn=on")[name]
    assert route(flow).startswith(" congctl lock sg_vegas_1 features ecn")


def test_a_port_takes_a_sides_own_address_alone_however_loose_the_machine_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A new network has the machine's settings for all interfaces; of two filters the larger holds."""
    scripts: list[str] = []
    monkeypatch.setattr(network, "run_all", lambda commands: scripts.extend(one[-1] for one in commands))
    monkeypatch.setattr(network, "run", lambda *_, **__: '[{"address": "02:00", "qdisc": "noqueue"}]')
    flow = FlowSetup(
        name="web",
        index=0,
        system="command",
        plan=planned()["web"],
        server_ip="10.1.0.1",
        player_ip="10.2.0.1",
    )
    network.build(
        [flow], engine="engine", compartments=Compartments.plan([flow], [], way="root", player_uid=1)
    )
    ends = [script for script in scripts if "ip_forward" in script]
    assert len(ends) == 2
    for script, port in zip(ends, ("port0-server", "port0-player"), strict=True):
        set_to = dict(
            reversed(line.removeprefix("echo ").split(" > /proc/sys/net/ipv4/"))
            for line in script.splitlines()
            if line.startswith("echo ")
        )
        for name in ("rp_filter", "proxy_arp", "accept_source_route"):
            assert set_to[f"conf/all/{name}"] == "0"
        assert (set_to[f"conf/{port}/rp_filter"], set_to[f"conf/{port}/proxy_arp"]) == ("1", "0")
