"""Bounds of parameters, those that hang on others included: shown, and checked before anything starts."""

from __future__ import annotations

import json

import pytest
from streamgauge.cli import main
from streamgauge.errors import ScenarioError
from streamgauge.scenario import Scenario, from_text
from streamgauge.systems.machines import MACHINES, RELAYS, Machine
from streamgauge.systems.parameter import Maybe

TEXT = """\
id: test/bounds
title: Bounds
path:
  down: {rate: 1 Mbit/s, queue: droptail 20 packets}
  up: {}
flows:
  video:
    role: subject
    system: darwin
    clip: carphone-242k
    parameters:
      preset: fitted
      max_timeout: 800 ms
      duplicate_acks: 3
  web:
    role: rival
    system: http
    clip: carphone-242k
    parameters:
      read_ahead: 10 s
      prebuffer: 4 s
      tries: 5
  ftp:
    role: rival
    traffic: bulk
    parameters: {mss: 1200 B, receive_window: 64 KiB}
until: {time: 5 s}
"""


def made(old: str = "", new: str = "") -> Scenario:
    assert old in TEXT
    (scenario,) = from_text(TEXT.replace(old, new, 1), file="my.yaml")
    return scenario


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        # Of the preset: its least is 600 ms.
        (
            "max_timeout: 800 ms",
            "max_timeout: 500 ms",
            "13: video.max_timeout: 500 ms is less than min_timeout, which is 600 ms "
            "(give 600 ms or more, or change min_timeout)",
        ),
        (
            "max_timeout: 800 ms",
            "min_timeout: 2 s",
            "13: video.min_timeout: 2 s is more than max_timeout, which is 1 s "
            "(give 1 s or less, or change max_timeout)",
        ),
        (
            "duplicate_acks: 3",
            "segment_bytes: 30 kB",
            "14: video.segment_bytes: 30 kB is more than small_window_bytes, which is",
        ),
        (
            "duplicate_acks: 3",
            "duplicate_acks: 0",
            "14: video.duplicate_acks: 0 is less than 1, the least that makes sense",
        ),
        (
            "duplicate_acks: 3",
            "window_decrease: 0",
            "14: video.window_decrease: 0.0 is not more than 0, as it must be here",
        ),
        (
            "prebuffer: 4 s",
            "prebuffer: 11 s",
            "20: web.read_ahead: 10 s is less than prebuffer, which is 11 s",
        ),
        (
            "prebuffer: 4 s",
            "read_again: 11 s",
            "21: web.read_again: 11 s is more than read_ahead, which is 10 s",
        ),
        ("tries: 5", "tries: 0", "22: web.tries: 0 is less than 1, the least"),
        (
            "receive_window: 64 KiB",
            "receive_window: 1100 B",
            "26: ftp.receive_window: 1100 B is less than mss, which is 1200 B",
        ),
        (
            "receive_window: 64 KiB",
            "send_buffer: 2 GB",
            "26: ftp.send_buffer: 2 GB is",
        ),
    ],
)
def test_what_is_beyond_its_bound_is_refused_with_file_line_and_key(old: str, new: str, said: str) -> None:
    made()
    with pytest.raises(ScenarioError) as caught:
        made(old, new)
    line, key, why = said.split(": ", 2)
    flow, _, parameter = key.partition(".")
    where = f"my.yaml:{line}: flows.{flow}.parameters.{parameter}: "
    assert where + why in str(caught.value)


@pytest.mark.parametrize(
    ("own", "emu", "said"),
    [
        # Of the preset, of the flow, and of the flow as the one that is bounded by the stand-in's.
        (
            "max_timeout: 800 ms",
            "parameters: {max_timeout: 100 ms}",
            "parameters.max_timeout: 100 ms is less",
        ),
        ("max_timeout: 800 ms", "parameters: {min_timeout: 2 s}", "parameters.min_timeout: 2 s is more than"),
        (
            "min_timeout: 700 ms",
            "parameters: {max_timeout: 650 ms}",
            "parameters.max_timeout: 650 ms is less",
        ),
        ("max_timeout: 800 ms", "parameters: {max_timeuot: 1 s}", "parameters.max_timeuot: 'darwin' has no"),
        ("max_timeout: 800 ms", "parameters: {max_timeout: 1}", "parameters.max_timeout: 1 has no unit"),
        ("max_timeout: 800 ms", "clip: {source: bikes, ladder: [1M, 2M]}", "clip.ladder: 'darwin' plays one"),
    ],
)
def test_what_a_stand_in_says_wrongly_is_told_at_its_own_key(own: str, emu: str, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        made("max_timeout: 800 ms\n", f"{own}\n    emu:\n      {emu}\n    events: []\n    #")
    assert f"my.yaml:15: flows.video.emu.{said}" in str(caught.value)


def test_what_a_stand_in_cannot_have_is_told_where_the_flow_has_it() -> None:
    arrivals = "arrivals: {rate: 2 /s, size: 20 kB}\n    emu: {system: {server: ./serve, player: ./play}}"
    with pytest.raises(ScenarioError) as caught:
        made("parameters: {mss: 1200 B, receive_window: 64 KiB}", arrivals)
    assert "my.yaml:26: flows.ftp.arrivals: a system given as commands has no transfers" in str(caught.value)


@pytest.mark.parametrize("machine", [*MACHINES.values(), *RELAYS.values()], ids=lambda one: one.name)
def test_what_a_machine_has_by_itself_is_within_its_bounds(machine: Machine) -> None:
    chosen: list[dict[str, str]] = [{}]
    for presets in machine.presets:
        chosen = [{**one, presets.name: name} for one in chosen for name in presets.sets]
    for given in chosen:
        assert machine.excess(given) is None
        for parameter in machine.parameters.values():
            if parameter.default is not None and not isinstance(parameter.kind, Maybe):
                parameter.parse(parameter.default)


def test_systems_shows_the_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["systems", "darwin"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "at most max_timeout" in shown and "at least segment_bytes" in shown and "at least 1 ms" in shown
    assert main(["systems", "darwin", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["systems"]
    assert told["parameters"]["min_timeout"]["not_above"] == ["max_timeout"]
    assert told["parameters"]["small_window_bytes"]["not_below"] == ["segment_bytes"]
    assert told["parameters"]["window_decrease"]["above"] == "0"
