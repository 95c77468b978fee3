"""Relays: what a scenario may say of them, and what its plan has."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest
from streamgauge import _native
from streamgauge.errors import ScenarioError
from streamgauge.scenario import Scenario, load, lower

SCENARIO = """\
id: test/relay
title: two viewings behind one cache
path:
  down: {rate: 1 Mbit/s, delay: 20 ms, queue: droptail 50 packets}
  up: {delay: 20 ms}
flows:
  first: {role: subject, system: http, clip: carphone-235k, via: home}
  second: {role: subject, system: http, clip: carphone-235k, via: home, start: 30 s}
relays:
  home: {system: http-cache, at: client, parameters: {capacity: 10 MB}}
until: {time: 60 s}
modes: [sim]
"""


def made(tmp_path: Path, *changes: tuple[str, str]) -> Scenario:
    text = SCENARIO
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file = tmp_path / "relay.yaml"
    file.write_text(text)
    (scenario,) = load(file)
    return scenario


def test_a_plan_has_its_relays_and_who_goes_through_them(tmp_path: Path) -> None:
    plan = lower(made(tmp_path), "sim", 1)
    (relay,) = plan["relays"]
    assert (relay["name"], relay["at"]) == ("home", "client")
    assert relay["app"]["http-cache"]["capacity_bytes"] == 10_000_000
    assert relay["app"]["http-cache"]["tcp"]["congestion_control"] == "cubic"
    assert [flow["via"] for flow in plan["flows"]] == ["home", "home"]


def test_a_scenario_without_relays_says_nothing_of_them(tmp_path: Path) -> None:
    scenario = made(
        tmp_path,
        (", via: home", ""),
        ("relays:\n  home: {system: http-cache, at: client, parameters: {capacity: 10 MB}}\n", ""),
    )
    plan = lower(scenario, "sim", 1)
    assert "relays" not in plan
    assert all("via" not in flow for flow in plan["flows"])
    assert "relays" not in scenario.normalised()
    assert "via" not in scenario.essence("sim")


def test_a_relay_loads_again_as_it_was(tmp_path: Path) -> None:
    scenario = made(tmp_path)
    assert Scenario.model_validate(scenario.normalised()) == scenario


def test_a_relay_is_the_same_in_both_modes(tmp_path: Path) -> None:
    scenario = made(tmp_path, ("modes: [sim]", "modes: [sim, emu]"))
    assert scenario.supported_modes() == ["sim", "emu"]
    plans = [lower(scenario, mode, 1) for mode in ("sim", "emu")]
    assert plans[0] == plans[1]


WITH = "system: http-cache, at: client, "
ONE_MODE = {
    "window that Linux lacks": (
        "congestion_control: fixed, parameters: {window: 20 kB}",
        "emu",
        "congestion_control: Linux has no fixed; run in sim, or choose another",
    ),
    "Linux's alone": ("congestion_control: yeah", "sim", "congestion_control: sim has reno, "),
    "its HyStart": (
        "parameters: {hystart: off}",
        "emu",
        "parameters.hystart: Linux sets HyStart for the whole machine, not for a flow; run in sim, or write "
        "'hystart: linux'",
    ),
    "a mechanism": ("parameters: {without: [tlp]}", "emu", "parameters.without: no mechanism of Linux's TCP"),
    "an acknowledgement's wait": (
        "parameters: {delayed_ack: 100 ms}",
        "emu",
        "parameters.delayed_ack: Linux lets an acknowledgement wait for 40 ms or not at all; run in sim, or "
        "write 'delayed_ack: 40 ms'",
    ),
}


@pytest.mark.parametrize("name", ONE_MODE)
def test_what_one_mode_cannot_do_to_a_relays_tcp(tmp_path: Path, name: str) -> None:
    asked, mode, why = ONE_MODE[name]
    both = ("modes: [sim]", "modes: [sim, emu]")
    scenario = made(tmp_path, (f"{WITH}parameters: {{capacity: 10 MB}}", WITH + asked), both)
    assert scenario.supported_modes() == [{"emu": "sim", "sim": "emu"}[mode]]
    with pytest.raises(ScenarioError, match=f"cannot run in {mode}: relays.home.") as caught:
        lower(scenario, mode, 1)  # type: ignore[arg-type]
    assert f"relays.home.{why}" in str(caught.value)
    # A relay has no stand-ins, so none is a remedy.
    assert "emu: {" not in str(caught.value) and "sim: {" not in str(caught.value)


def test_emu_has_what_linux_does_for_a_relays_connections(tmp_path: Path) -> None:
    asked = "congestion_control: reno, parameters: {delayed_ack: 0 s, initial_window: 3 packets, without: []}"
    both = ("modes: [sim]", "modes: [sim, emu]")
    scenario = made(tmp_path, (f"{WITH}parameters: {{capacity: 10 MB}}", WITH + asked), both)
    assert scenario.supported_modes() == ["sim", "emu"]


UNFIT = {
    "somebody else's": (
        "system: nginx-http",
        "flows.second.via: in emu our own servers and players alone go through a relay, and 'nginx-http' is "
        "somebody else's; leave 'via' out, or name one of ours for emu",
    ),
    "of another protocol": (
        "system: rtp, parameters: {transport: tcp}",
        "flows.second.via: 'home' is a relay of http, and 'rtp', which plays in emu, does not speak it; "
        "leave 'via' out, or choose a system that does",
    ),
}


@pytest.mark.parametrize("name", UNFIT)
def test_emu_refuses_a_stand_in_that_cannot_go_through_the_relay(tmp_path: Path, name: str) -> None:
    asked, why = UNFIT[name]
    stand_in = f"start: 30 s, emu: {{{asked}}}}}"
    scenario = made(tmp_path, ("start: 30 s}", stand_in), ("modes: [sim]", "modes: [sim, emu]"))
    assert scenario.supported_modes() == ["sim"]
    assert scenario.unsupported("emu") == why


LADDERS = """\
id: test/relay
title: two viewings behind one {relay}
path: {{down: {{rate: 1 Mbit/s, queue: droptail 50 packets}}}}
flows:
  first: {{role: subject, {system}, via: home, clip: {{source: carphone, ladder: [90k, 300k]}}}}
  second: {{role: subject, {system}, via: home, clip: {{source: carphone, ladder: [90k, {top}]}}}}
relays:
  home: {{system: {relay}, at: client}}
until: {{time: 60 s}}
"""
NAMED = {
    "http-cache": "system: dash",
    "ccn-forwarder": "system: ccn, parameters: {transport: tcp}",
}


@pytest.mark.parametrize("relay", NAMED)
def test_ladders_that_share_a_relay_are_one(tmp_path: Path, relay: str) -> None:
    file = tmp_path / "relay.yaml"
    file.write_text(LADDERS.format(relay=relay, system=NAMED[relay], top="300k"))
    (scenario,) = load(file)
    assert scenario.supported_modes() == ["sim", "emu"]
    file.write_text(LADDERS.format(relay=relay, system=NAMED[relay], top="600k"))
    with pytest.raises(
        ScenarioError, match=r"flows\.second\.clip.*'second' and 'first' have different ladders"
    ):
        load(file)


FACES = {
    ("udp", "udp"): None,
    ("tcp", "tcp"): None,
    ("udp", "tcp"): (
        "'home' is a relay of ndn over TCP, and 'ccn' speaks it over UDP",
        "give the flow 'parameters: {transport: tcp}' or 'home' 'parameters: {transport: udp}'",
    ),
    ("tcp", "udp"): (
        "'home' is a relay of ndn over UDP, and 'ccn' speaks it over TCP",
        "give the flow 'parameters: {transport: udp}' or 'home' 'parameters: {transport: tcp}'",
    ),
}


@pytest.mark.parametrize(("flow", "relay"), FACES)
def test_faces_of_a_relay_are_over_what_its_flows_are(tmp_path: Path, flow: str, relay: str) -> None:
    file = tmp_path / "relay.yaml"
    system = f"system: ccn, parameters: {{transport: {flow}}}"
    text = LADDERS.format(relay="ccn-forwarder", system=system, top="300k")
    file.write_text(text.replace("at: client", f"at: client, parameters: {{transport: {relay}}}"))
    if (refused := FACES[flow, relay]) is None:
        (scenario,) = load(file)
        assert scenario.supported_modes() == ["sim", "emu"]
        (planned,) = lower(scenario, "sim", 1)["relays"]
        settings = planned["app"]["ccn-forwarder"]
        assert (settings["tcp"] is not None) == (relay == "tcp")
        return
    with pytest.raises(ScenarioError) as caught:
        load(file)
    said = str(caught.value).replace("\n", " ")
    assert "relay.yaml" in said and "flows.first.via" in said and "flows.second.via" in said
    assert all(part in said for part in refused), said


def test_a_stand_in_whose_faces_are_over_another_transport_is_refused_in_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "relay.yaml"
    system = "system: ccn, parameters: {transport: tcp}, emu: {parameters: {transport: udp}}"
    file.write_text(LADDERS.format(relay="ccn-forwarder", system=system, top="300k"))
    (scenario,) = load(file)
    assert scenario.supported_modes() == ["sim"]
    assert scenario.unsupported("emu") == (
        "flows.first.via: 'home' is a relay of ndn over TCP, and 'ccn', which plays in emu, speaks it over "
        "UDP; give the flow 'parameters: {transport: tcp}' or 'home' 'parameters: {transport: udp}'"
    )


@pytest.mark.parametrize("key", ["congestion_control: reno", "ecn: on"])
def test_a_relay_over_udp_has_no_tcp_to_choose(tmp_path: Path, key: str) -> None:
    file = tmp_path / "relay.yaml"
    text = LADDERS.format(relay="ccn-forwarder", system="system: ccn", top="300k")
    over = "parameters: {transport: udp}"
    file.write_text(text.replace("at: client", f"at: client, {over}"))
    assert load(file)
    file.write_text(text.replace("at: client", f"at: client, {over}, {key}"))
    name = key.partition(":")[0]
    with pytest.raises(
        ScenarioError, match=rf"relays\.home\.{name}.*'ccn-forwarder' does not run over TCP here"
    ):
        load(file)


VIEWED = """\
id: test/relay
title: two viewings behind one forwarder, over UDP
path:
  down: {{rate: 1 Mbit/s, delay: 20 ms, queue: droptail 100 packets, loss: {loss}}}
  up: {{delay: 20 ms}}
flows:
  first: &viewer
    role: subject
    system: ccn
    parameters: {{rule: fixed, retransmission: {again}, interest_tries: 20}}
    clip: {{source: carphone, ladder: [100k, 200k], segment: 2 s, duration: 10 s}}
    via: home
  second: {{<<: *viewer, start: {start}}}
relays:
  home: {{system: ccn-forwarder, at: client, parameters: {{transport: udp}}}}
until: {{time: 40 s}}
"""


def viewed(tmp_path: Path, **given: str) -> tuple[list[int], dict[str, int], dict[str, pl.DataFrame]]:
    """How many frames each of two viewers saw in sim, the payload bytes that came down the path by name, and
    the record's events by name."""
    folder = tmp_path / "-".join(given.values()).replace(" ", "")
    folder.mkdir()
    file = folder / "relay.yaml"
    file.write_text(VIEWED.format(**given))
    (scenario,) = load(file)
    summary = json.loads(_native.simulate(json.dumps(lower(scenario, "sim", 1)), str(folder)))
    assert not summary["imbalance"]
    events = pl.read_parquet(folder / "events.parquet")
    by_name = {str(name): rows for (name,), rows in events.group_by("name")}
    frames = [by_name["frame_shown"].filter(pl.col("flow") == flow).height for flow in ("first", "second")]
    rows = pl.read_parquet(folder / "packets.parquet").filter((pl.col("dir") == 0) & (pl.col("fate") == 0))
    last = rows.filter(pl.col("stage") == rows["stage"].max())
    sums = dict(last.group_by("flow").agg(pl.col("payload_bytes").sum()).iter_rows())
    crossed = {name: int(sums.get(code, 0)) for code, name in enumerate(("first", "second", "home"))}
    return frames, crossed, by_name


def test_over_udp_the_second_viewing_comes_out_of_the_store(tmp_path: Path) -> None:
    frames, crossed, said = viewed(tmp_path, loss="0 %", start="15 s", again="lifetime")
    assert frames == [250, 250]
    assert 125_000 < crossed["home"] < 160_000 and crossed["first"] == crossed["second"] == 0
    assert not {"stall", "face_down", "interest_timeout", "object_failed"} & said.keys()


def test_over_udp_what_is_lost_is_asked_for_again_by_whoever_waits(tmp_path: Path) -> None:
    frames, crossed, said = viewed(tmp_path, loss="2 %", start="1 s", again="rto")
    assert frames == [250, 250]
    assert crossed["home"] < 250_000, "most crosses once"
    assert said["interest_timeout"].height and not {"face_down", "object_failed"} & said.keys()


def test_a_forwarder_is_where_its_flows_look_for_it(tmp_path: Path) -> None:
    file = tmp_path / "relay.yaml"
    system = "system: ccn, parameters: {transport: tcp, preset: ccnx-paper}"
    file.write_text(LADDERS.format(relay="ccn-forwarder", system=system, top="300k"))
    with pytest.raises(ScenarioError) as caught:
        load(file)
    assert "has its faces at port 6363, and 'first' looks for them at 9695" in str(caught.value)
    text = file.read_text().replace("at: client", "at: client, parameters: {face_port: 9695}")
    file.write_text(text)
    assert load(file)


BAD = {
    "unused": ((", via: home", ""), r"relays\.home.*no flow passes 'home'.*via: home"),
    "unknown relay": (("via: home, start", "via: hom, start"), r"flows\.second\.via.*no relay 'hom'.*'home'"),
    "no relay's system": (("http-cache", "http-cash"), r"relays\.home\.system.*'http-cash'.*http-cache"),
    "a system of flows": (("http-cache", "http"), r"relays\.home\.system.*unknown relay 'http'"),
    "a flow's name": (("  home: {", "  second: {"), r"relays\.second.*a flow is called 'second' too"),
    "another protocol": (
        ("system: http, clip: carphone-235k, via: home, start: 30 s", "traffic: bulk, via: home"),
        r"flows\.second\.via.*a relay of http, which 'bulk' does not speak",
    ),
    "a source at the router": (
        ("via: home, start: 30 s", "via: home, from: router"),
        r"flows\.second\.via.*enters at the router",
    ),
    "media that goes up": (
        ("via: home, start: 30 s", "via: home, direction: up"),
        r"flows\.second\.via.*upstream media.*direction: up",
    ),
    "no side": (("at: client, ", ""), r"relays\.home\.at"),
    "the wrong side": (("at: client", "at: middle"), r"relays\.home\.at.*client.*server"),
    "no parameter": (("capacity", "capasity"), r"relays\.home\.parameters\.capasity.*'capacity'"),
    "below its bound": (("capacity: 10 MB", "timeout: 0 s"), r"relays\.home\.parameters\.timeout"),
    "a fixed window that is not given": (
        ("at: client, ", "at: client, congestion_control: fixed, "),
        r"relays\.home\.parameters.*'fixed' needs the parameter 'window'.*window: 16 KiB",
    ),
    "a window that nothing keeps": (
        ("capacity: 10 MB", "window: 20 kB"),
        r"relays\.home\.parameters\.window.*only congestion control 'fixed'.*congestion_control: fixed",
    ),
    "a name of the record's": (
        ("  home: {", "  other: {"),
        r"relays\.other.*'other' is what the record calls packets of no flow",
    ),
    "a bad name": (("home: {", "'1home': {"), r"relays\.1home.*not a relay's name"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_relays_are_refused_by_file_and_key(tmp_path: Path, name: str) -> None:
    change, expected = BAD[name]
    with pytest.raises(ScenarioError) as caught:
        made(tmp_path, change)
    said = str(caught.value).replace("\n", " ")
    assert "relay.yaml" in said
    assert re.search(expected, said), said
