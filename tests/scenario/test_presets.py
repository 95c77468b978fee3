"""Paths that ship: each with its sources, merged with a scenario's own keys."""

from __future__ import annotations

import json
from typing import Any

import pytest
from small_scenario import BASE
from streamgauge.cli import main
from streamgauge.errors import ScenarioError
from streamgauge.scenario import Path, Scenario, from_text, lower
from streamgauge.scenario.path import direction_in_words, find_preset, preset, preset_names
from streamgauge.scenario.words import in_words

PATH = """\
path:
  down: {rate: 1 Mbit/s, queue: droptail 100 packets, delay: 10 ms}
  up: {delay: 10 ms}
"""


def with_path(text: str, *settings: str) -> Scenario:
    assert PATH in BASE
    (scenario,) = from_text(BASE.replace(PATH, f"path: {text}\n"), file="f.yaml", settings=settings)
    return scenario


@pytest.mark.parametrize("name", preset_names())
def test_each_names_its_sources_and_what_it_assumes(name: str) -> None:
    found = find_preset(name)
    assert found.title and found.description
    assert found.sources and all(source.what and source.cite for source in found.sources)
    assert found.assumed, "no public measurement gives every figure of a path"
    plan = lower(with_path(f"{{preset: {name}}}"), "sim", 1)
    assert any("bottleneck" in stage["kind"] for stage in plan["path"]["down"])


def test_the_papers_and_the_access_links_are_there() -> None:
    wanted = {"dsl", "cable", "lte", "3g", "satellite-geo", "wifi-lossy"}
    assert wanted | {"darwin", "hessler", "realvideo", "windows-media", "ccn"} <= set(preset_names())


def test_a_preset_is_its_path() -> None:
    assert with_path("{preset: lte}").path.down == preset("lte").down
    assert preset("satellite-geo").base_rtt_ns() == 558_000_000  # RFC 2488, section 2
    wave = preset("wifi-lossy").down.loss
    assert wave is not None and pytest.approx(0.1327, abs=5e-5) == 1.78 / (11.63 + 1.78)


MERGED: list[tuple[str, dict[str, Any]]] = [
    ("{preset: darwin, down: {queue: codel}}", {"rate": "480 kbit/s", "queue": "codel", "delay": "10 ms"}),
    ("{preset: darwin, down: {delay: null}}", {"rate": "480 kbit/s", "queue": "droptail 10 kB"}),
    ("{preset: darwin, down: {rate: null}}", {"delay": "10 ms"}),
    (
        "{preset: darwin, down: {stages: [{name: far, delay: 5 ms}]}}",
        {"stages": [{"name": "far", "delay": "5 ms"}]},
    ),
    (
        "{preset: darwin, up: {delay: 1 ms}}",
        {"rate": "480 kbit/s", "queue": "droptail 10 kB", "delay": "10 ms"},
    ),
]


@pytest.mark.parametrize(("text", "down"), MERGED)
def test_own_keys_go_before_the_presets(text: str, down: dict[str, Any]) -> None:
    assert with_path(text).path.down == Path(down=down).down  # type: ignore[arg-type]


def test_what_is_printed_loads_again_and_tells_the_preset() -> None:
    scenario = with_path("{preset: lte, down: {delay: null}}")
    printed = scenario.normalised()
    assert printed["path"]["based_on"] == "lte"
    assert "delay" not in printed["path"]["down"]
    assert "  path: from the preset lte" in in_words(scenario)
    assert Scenario.model_validate(printed) == scenario


def test_settings_reach_into_a_preset() -> None:
    scenario = with_path("{preset: darwin}", "path.down.rate=300kbit/s")
    assert direction_in_words(scenario.path.down) == (
        "300 kbit/s behind a drop-tail queue of 10 kB, then 10 ms of delay"
    )
    (other,) = from_text(BASE, settings=("path.preset=dsl",))
    assert (other.path.down, other.path.up) == (preset("dsl").down, preset("dsl").up)


def test_an_unknown_preset_is_answered_with_the_nearest() -> None:
    with pytest.raises(ScenarioError) as caught:
        with_path("{preset: darwim}")
    assert (caught.value.file, caught.value.line, caught.value.key) == ("f.yaml", 3, "path.preset")
    assert "did you mean 'darwin'?" in str(caught.value)
    with pytest.raises(ScenarioError, match="did you mean 'lte'"):
        preset("lt")


def test_the_command_lists_and_shows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["presets", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in listed["presets"]] == preset_names()
    assert main(["presets"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in preset_names())
    assert main(["presets", "satellite-geo"]) == 0
    shown = capsys.readouterr().out
    assert "RFC 2488" in shown and "279 ms of delay" in shown and "assumed: " in shown
    assert main(["presets", "dls"]) == 3
    assert "did you mean 'dsl'?" in capsys.readouterr().err
