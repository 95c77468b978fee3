"""What a scenario says of Darwin: presets, constants, what is lowered, slips; and patterns for flows."""

from __future__ import annotations

from typing import Any

import pytest
from streamgauge.errors import ScenarioError
from streamgauge.scenario import Scenario, from_text, lower
from streamgauge.systems.machines import MACHINES
from streamgauge.systems.parameter import Maybe, Number
from streamgauge.systems.registry import SYSTEMS

DARWIN = MACHINES["darwin"]
PRESETS, PLAYERS = (presets.sets for presets in DARWIN.presets)
CONSTANTS = [parameter for parameter in DARWIN.parameters.values() if parameter.group]

TEXT = """
id: test/darwin
title: Reliable UDP beside a download
path:
  down: {rate: 480 kbit/s, queue: droptail 10 kB, delay: 10 ms}
flows:
  qt: {role: subject, system: darwin, clip: carphone-242k}
  vlc: {role: subject, system: darwin, parameters: {player: vlc}, clip: carphone-242k}
  video: {role: subject, system: rtp, clip: carphone-242k}
  tcp: {role: rival, traffic: bulk, start: qt.start + 10 s}
until: {time: 60 s}
"""


def bent(*settings: str, text: str = TEXT) -> Scenario:
    (scenario,) = from_text(text, settings=settings)
    return scenario


def app(*settings: str, flow: int = 0) -> dict[str, Any]:
    made: dict[str, Any] = lower(bent(*settings), "sim", 1)["flows"][flow]["app"]["darwin"]
    return made


def refusal(*settings: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        bent(*settings)
    return str(caught.value)


def test_a_flow_without_parameters_has_the_papers_server_and_quicktime() -> None:
    made = app()
    assert made["server"] == PRESETS["paper"]
    assert made["player"] == PLAYERS["quicktime"] | {"transport": "udp"}
    assert made["tcp"]["congestion_control"] == "cubic"
    assert made["clip"]["name"] == "carphone-242k" and made["clip"]["frame_bytes"]
    assert bent().supported_modes() == ["sim", "emu"]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("player", PLAYERS)
def test_presets_are_the_machines_own(preset: str, player: str) -> None:
    made = app(f"flows.qt.parameters={{preset: {preset}, player: {player}, transport: tcp}}")
    assert made["server"] == PRESETS[preset]
    assert made["player"] == PLAYERS[player] | {"transport": "tcp"}


def example(name: str) -> tuple[str, Any]:
    """A value of a constant as a scenario writes it, and as the plan has it."""
    parameter = SYSTEMS["darwin"].parameters[name]
    kind = parameter.kind.kind if isinstance(parameter.kind, Maybe) else parameter.kind
    if isinstance(kind, Number):
        return ("7", 7) if kind.whole else ("0.5", 0.5)
    if isinstance(kind, tuple):
        return kind[-1], {"off": False, "on": True}.get(kind[-1], kind[-1])
    # Within its own bounds, and within those that others set it.
    usual = (PLAYERS["quicktime"] | PRESETS["paper"])[name] or 0
    value = int(usual) + (-1 if parameter.not_above else 1)
    return f"{value} {next(iter(kind.units))}", value


@pytest.mark.parametrize("parameter", CONSTANTS, ids=lambda parameter: parameter.name)
def test_every_constant_reaches_the_plan_under_its_name(parameter: Any) -> None:
    usual, name = app(), parameter.name
    values = [example(name), *([("none", None)] if isinstance(parameter.kind, Maybe) else [])]
    for text, value in values:
        made = app(f"flows.qt.parameters.{name}={text}")
        for end in ("server", "player"):
            expected = dict(usual[end])
            if name in expected:
                expected[name] = value
            assert made[end] == expected
    assert parameter.help and parameter.usual


def test_constants_are_no_other_parameters() -> None:
    names = [parameter.name for parameter in CONSTANTS]
    assert len(set(names)) == len(names)
    others = {"preset", "player", "transport", *SYSTEMS["rtp"].parameters} - {"max_payload"}
    assert not others & set(names)


def test_a_constant_takes_the_place_of_the_presets() -> None:
    made = app("flows.qt.parameters={preset: source, reliable_udp: off}")
    assert made["server"] == PRESETS["source"] | {"reliable_udp": False}
    assert made["player"]["reliable_udp"] is False
    assert bent("flows.qt.parameters={reliable_udp: off}").flows["qt"].parameters == {"reliable_udp": "off"}
    # As written and read again.
    whole = bent("flows.qt.parameters={preset: source, max_payload: 1 kB}")
    assert Scenario.model_validate(whole.normalised()) == whole


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("flows.qt.parameters.preset=papre", ["not one of paper, source, fitted", "did you mean 'paper'?"]),
        ("flows.qt.parameters.player=quictime", ["did you mean 'quicktime'?"]),
        ("flows.qt.parameters.max_paylod=1 kB", ["did you mean", "max_payload"]),
        ("flows.qt.parameters.max_payload=1400", ["has no unit"]),
        ("flows.qt.parameters.reliable_udp=maybe", ["not one of on, off"]),
        ("flows.qt.parameters.prebuffer=2 kB", ["not a unit of a time"]),
        ("flows.qt.congestion_control=reno", ["does not run over TCP here"]),
        (
            "flows.*.parameters.prest=source",
            ["no system has a parameter 'prest'", "flows.*.parameters.preset"],
        ),
        ("flows.*.clipp=carphone-1M", ["there is no 'clipp'", "did you mean"]),
        ("flows.quick*.parameters.preset=source", ["no flow's name is like 'quick*'", "qt, vlc, video, tcp"]),
    ],
)
def test_slips(setting: str, words: list[str]) -> None:
    said = refusal(setting)
    assert all(word in said for word in words), said


def test_a_congestion_control_for_media_on_tcp() -> None:
    made = app(
        "flows.qt.parameters={transport: tcp, receive_window: 64 KiB}", "flows.qt.congestion_control=reno"
    )
    assert (made["tcp"]["congestion_control"], made["tcp"]["receive_window"]) == ("reno", 65_536)


def test_a_pattern_sets_each_flow_that_has_it() -> None:
    scenario = bent("flows.*.parameters.preset=source")
    assert {name: flow.parameters.get("preset") for name, flow in scenario.flows.items()} == {
        "qt": "source", "vlc": "source", "video": None, "tcp": None,
    }  # fmt: skip
    scenario = bent("flows.*.clip=carphone-550k", "flows.v*.parameters.transport=tcp")
    assert {name: flow.clip for name, flow in scenario.flows.items() if flow.clip} == {
        "qt": "carphone-550k", "vlc": "carphone-550k", "video": "carphone-550k",
    }  # fmt: skip
    assert {n for n, flow in scenario.flows.items() if flow.parameters.get("transport") == "tcp"} == {
        "vlc", "video",
    }  # fmt: skip
    # A scenario without such a flow stays as it is.
    alone = TEXT.replace("start: qt.start + 10 s", "start: 0 s")
    lines = [line for line in alone.splitlines() if "role: subject" not in line]
    assert bent("flows.*.parameters.preset=source", text="\n".join(lines)).flows["tcp"].parameters == {}


def test_a_mutant_may_be_a_pattern() -> None:
    text = TEXT + (
        "checks:\n  one: {that: goodput.qt > 0, origin: predicted, "
        "breaks: {flows.*.parameters.reliable_udp: off}}\n"
    )
    assert bent(text=text).checks["one"].breaks == {"flows.*.parameters.reliable_udp": "off"}


def test_a_stand_in_takes_what_it_knows() -> None:
    text = TEXT.replace(
        "qt: {role: subject, system: darwin, clip: carphone-242k}",
        "qt: {role: subject, system: rtsp, clip: carphone-242k, parameters: {transport: udp}, "
        "sim: {system: darwin, parameters: {preset: source}}}",
    )
    made = lower(bent(text=text), "sim", 1)["flows"][0]["app"]["darwin"]
    assert made["server"] == PRESETS["source"]
