"""What the house knows of a system it is told by the system's adapter: programs, actions, whose it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streamgauge.emu.doctor import ENCODER, TOOLS, programs
from streamgauge.errors import CannotRunError, ScenarioError
from streamgauge.scenario import from_text
from streamgauge.systems.adapter import ACTIONS, CommandLine, FlowSetup, Side
from streamgauge.systems.adapters import ADAPTERS, check_programs, external_of
from streamgauge.systems.registry import SYSTEMS, TRAFFIC

ROOT = Path(__file__).parents[2]
REGISTERED = {**SYSTEMS, **TRAFFIC}
NEEDED: dict[str, dict[str, Any]] = {"cbr": {"rate": TRAFFIC["cbr"].parameters["rate"].parse("10 packets/s")}}


@pytest.mark.parametrize("name", [name for name, entry in REGISTERED.items() if "emu" in entry.modes])
def test_registry_and_adapter_agree(name: str) -> None:
    entry, adapter = REGISTERED[name], ADAPTERS[name]
    values = entry.values(NEEDED.get(name, {}))
    assert adapter.ours(values) == ("emu" in entry.ours)
    assert set(adapter.actions(values)) <= set(ACTIONS)
    if adapter.ours(values):
        assert adapter.actions(values) == ACTIONS
    external = external_of({"system": name})
    # The plan describes what our machines do; of others that play something the adapter says the rest.
    assert (external is not None) == (entry.plays and not entry.ours)
    for transport in ("udp", "tcp") if external is not None and "transport" in entry.parameters else ():
        assert external is not None
        parameters: dict[str, Any] = {"transport": transport}
        assert external.media_over(parameters) == transport
        assert entry.over_tcp(parameters) == (transport == "tcp")


def test_of_commands_is_known_what_the_scenario_says() -> None:
    external = external_of({"system": {"server": "serve", "player": "play"}})
    assert external is not None and not external.protocols
    assert external.media_over({"transport": "tcp"}) == "tcp"
    assert external.media_over({}) is None


PAUSED = """
id: test/paused
title: A constant bit rate, held
path: {{down: {{rate: 1 Mbit/s, queue: droptail 10 packets}}}}
flows:
  cross:
    role: subject
    traffic: cbr
    parameters: {{rate: 10 packets/s, {more}}}
    events: [{{at: 1 s, do: pause}}]
until: {{time: 5 s}}
modes: [emu]
"""


@pytest.mark.parametrize(
    ("more", "ours"),
    [
        ("size: 1000 B", False),
        ("size: 8192 B", False),
        ("size: 8193 B", True),
        ("size: 27 B", True),
        ("size: 28 B", False),
        ("burst: 2 packets", True),
    ],
)
def test_a_constant_bit_rate_holds_where_our_sender_runs(more: str, ours: bool) -> None:
    (scenario,) = from_text(PAUSED.format(more=more))
    flow = scenario.flows["cross"]
    assert flow.registered is not None
    assert flow.registered.written_by_us("emu", flow.parameters) is ours
    why = scenario.unsupported("emu")
    assert why is None if ours else "cannot pause in emu" in str(why)


def cbr(burst: int) -> FlowSetup:
    app = {"cbr": {"packets_per_s": 10.0, "payload_bytes": 1000, "burst": burst, "windows": []}}
    times: dict[str, Any] = {"plan": {"start": 0, "app": app}, "trial": {"duration": 10}}
    return FlowSetup(name="cross", index=0, system="cbr", **times)


def test_a_flow_needs_the_programs_that_run_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotRunError, match=r"flow cross: mgen is missing; .*apt-get install mgen"):
        check_programs(cbr(burst=1))
    check_programs(cbr(burst=2))  # by our own sender


def test_a_program_of_a_named_process_that_is_missing() -> None:
    times: dict[str, Any] = {"plan": {"start": 0}, "trial": {"duration": 10}}
    there, missing = (
        CommandLine(name="a", command="true"),
        CommandLine(name="origin", command="no-such-server"),
    )
    commands: dict[Side, list[CommandLine]] = {"server": [there, missing], "player": [there]}
    flow = FlowSetup(name="v", index=0, system="command", commands=commands, **times)
    with pytest.raises(
        CannotRunError, match=r"flow v: the server's origin's program no-such-server is not on"
    ):
        check_programs(flow)
    commands["server"] = [there, there]
    with pytest.raises(ScenarioError, match=r"flow v: server.a: two processes are called 'a'"):
        check_programs(flow)


def test_a_machine_set_up_for_emu_has_the_packages_that_are_named() -> None:
    lists = (ROOT / "scripts" / f"packages-{name}.txt" for name in ("debian", "players"))
    lines = [line for one in lists for line in one.read_text(encoding="utf-8").splitlines()]
    installed = {line for line in lines if line and not line.startswith("#")}
    named = {
        package
        for adapter in ADAPTERS.values()
        for one in adapter.programs
        for package in one.packages.split()
    }
    assert named <= installed and ENCODER.packages in installed


def test_the_doctor_looks_for_what_the_adapters_name() -> None:
    looked_for = {one.id or one.name: one for one in programs()}
    for adapter in ADAPTERS.values():
        for program in adapter.programs:
            assert program.purpose in looked_for[program.id or program.name].purpose
    purposes = looked_for["ffmpeg"].purpose.split("; ")
    assert purposes[:3] == ["encoding clips", "a player of system rtsp", "a player of system nginx-dash"]
    # One that shows what it has is looked at for each that wants something else of it.
    assert looked_for["gstreamer"].name == looked_for["gstreamer.http"].name
    names = [one.id or one.name for one in (*TOOLS, *programs())]
    assert len(names) == len(set(names)) and ENCODER.name in names
