"""What a machine says of itself is all that scenarios know of it: names, kinds, bounds, defaults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamgauge import _native
from streamgauge.errors import ScenarioError
from streamgauge.scenario import from_text, lower
from streamgauge.systems.machines import MACHINES, facts
from streamgauge.systems.registry import SYSTEMS, TRAFFIC

TEXT = """
id: test/bounds
title: One flow
path: {down: {rate: 1 Mbit/s, queue: droptail 20 packets, delay: 5 ms}}
flows: {x: {role: subject, FLOW}}
until: {time: 1 s}
"""
#: What a flow must say.
REQUIRED = {"cbr": ", parameters: {rate: 10 packets/s}"}
FLOWS = {
    name: f"system: {name}" + (", clip: carphone-550k" if MACHINES[name].content != "live" else "")
    if name in SYSTEMS
    else f"traffic: {name}{REQUIRED.get(name, '')}"
    for name in MACHINES
}
#: The machine's own bounds: what it takes at either end, and what is one too little or too much.
BOUNDS = [
    ("bulk", "mss", ("88 B", "1448 B"), ("87 B", "1449 B")),
    ("bulk", "initial_window", ("1 packet", "1000 packets"), ("0 packets", "1001 packets")),
    ("bulk", "delayed_ack", ("0 s", "500 ms"), ("501 ms",)),
    ("bulk", "bytes", ("1 B",), ("0 B",)),
    ("cbr", "size", ("8 B", "65507 B"), ("7 B", "65508 B")),
    ("cbr", "burst", ("1 packet",), ("0 packets",)),
    ("cbr", "rate", ("0.001 packets/s",), ("0 packets/s", "2000000000 packets/s")),
    ("ping", "interval", ("1 ms",), ("900 us",)),
    ("ping", "size", ("16 B", "1472 B"), ("15 B", "1473 B")),
    ("rtp", "max_payload", ("64 B", "1460 B"), ("63 B", "1461 B")),
    ("rtp", "rtcp_interval", ("10 ms",), ("9 ms",)),
    ("darwin", "mss", ("88 B", "1448 B"), ("87 B", "1449 B")),
    ("http", "request", ("512 B",), ("511 B",)),
]


def plan(system: str, *settings: str) -> dict[str, Any]:
    (scenario,) = from_text(TEXT.replace("FLOW", FLOWS[system]), settings=settings)
    made: dict[str, Any] = lower(scenario, "sim", 1, keep="metrics")
    return made


@pytest.mark.parametrize(("system", "name", "taken", "refused"), BOUNDS)
def test_a_bound_is_the_machines_own(
    system: str, name: str, taken: tuple[str, ...], refused: tuple[str, ...], tmp_path: Any
) -> None:
    address = f"flows.x.parameters.{name}"
    for value in taken:
        summary = _native.simulate(json.dumps(plan(system, f"{address}={value}")), str(tmp_path))
        assert json.loads(summary)["flows"][0]["name"] == "x"
    for value in refused:
        with pytest.raises(ScenarioError) as caught:
            plan(system, f"{address}={value}")
        said = str(caught.value)
        assert address in said and ("less than" in said or "more than" in said), said


@pytest.mark.parametrize("name", MACHINES)
def test_a_flow_that_says_nothing_has_the_machines_usual_settings(name: str) -> None:
    machine = MACHINES[name]
    ((system, settings),) = plan(name)["flows"][0]["app"].items()
    required = {key for key, one in machine.parameters.items() if one.required}
    chosen = {place[0]: settings[place[0]] for key in required for place in machine.places[key]}
    assert system == name
    played = {key: settings[key] for key in ("clip", "ladder") if key in settings}
    assert settings == machine.usual | chosen | played
    entry = {**SYSTEMS, **TRAFFIC}[name]
    assert entry.parameters == machine.parameters and entry.title == machine.title
    assert entry.plays == (machine.content != "none") and entry.ladders == (machine.content == "ladder")


def test_defaults_are_written_as_people_write_them() -> None:
    defaults = {name: one.default for name, one in MACHINES["bulk"].parameters.items()}
    assert defaults == {
        "bytes": None, "receive_window": "3 MiB", "send_buffer": "4 MiB", "mss": "1448 B",
        "initial_window": "10 packets", "delayed_ack": "40 ms", "hystart": "linux", "window": None,
        "without": None, "control_connection": "off",
    }  # fmt: skip
    rtp = {name: one.default for name, one in MACHINES["rtp"].parameters.items()}
    assert rtp["transport"] == "udp" and rtp["mss"] == "1448 B" and rtp["max_payload"] == "1388 B"


def test_tcps_settings_of_a_flow_that_rides_on_udp_are_left_out() -> None:
    assert plan("rtp", "flows.x.parameters={mss: 500 B}")["flows"][0]["app"]["rtp"]["tcp"] is None
    over_tcp = plan("rtp", "flows.x.parameters={mss: 500 B, transport: tcp}")["flows"][0]["app"]
    assert over_tcp["rtp"]["tcp"]["mss"] == 500
    told = facts(over_tcp)
    assert told is not None and told.media_over == "tcp" and not told.is_finite


def _words() -> list[tuple[str, str, str]]:
    return [
        (system, name, word)
        for system, machine in MACHINES.items()
        for name, one in machine.parameters.items()
        if isinstance(one.kind, tuple)
        for word in one.kind
    ]


@pytest.mark.parametrize(("system", "name", "word"), _words())
def test_every_word_of_a_parameter_means_something_to_the_machine(
    system: str, name: str, word: str, tmp_path: Path
) -> None:
    library = MACHINES[system].hosted
    if library is not None and not library.is_built:
        pytest.skip(f"{system} is not built here; `make setup-hosted` builds it")
    made = plan(system, f"flows.x.parameters.{name}={word}")
    assert json.loads(_native.simulate(json.dumps(made), str(tmp_path)))["flows"][0]["name"] == "x"
