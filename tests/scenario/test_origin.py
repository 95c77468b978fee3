"""Published numbers are those of the scenario as it ships."""

from __future__ import annotations

import pytest
from streamgauge.scenario import Scenario, find, load, override
from streamgauge.scenario.origin import changed
from streamgauge.systems.registry import Mode

FTP = "hessler/ftp-medium"


def as_run(scenario: Scenario, mode: Mode = "sim") -> dict[str, object]:
    return scenario.in_mode(mode).normalised()


@pytest.mark.parametrize("mode", ["sim", "emu"])
def test_the_catalogues_own(mode: Mode) -> None:
    for scenario in find(["hessler/*", "darwin/1qt1tcp-const", "today/demo-*-medium"]):
        assert changed(as_run(scenario, mode), mode) == ""
        assert changed(scenario.normalised(), mode) == ""


@pytest.mark.parametrize(
    "setting",
    ["path.down.rate=2 Mbit/s", "measure.layer=ip", "flows.cross.from=null", "host_jitter=0 s"],
)
def test_another_experiment(setting: str) -> None:
    (scenario,) = load(FTP, settings=[setting])
    # With --set, or by an edited file of the same id.
    for settings in ((setting,), ()):
        assert changed(as_run(scenario), "sim", settings) == "changed from the catalogue"


@pytest.mark.parametrize("setting", ["repetitions.sim=3", "title=Another", "path.down.rate=1000 kbit/s"])
def test_what_was_set_and_changes_nothing(setting: str) -> None:
    (scenario,) = load(FTP, settings=[setting])
    assert changed(as_run(scenario), "sim", (setting,)) == ""


def test_what_a_source_leaves_open_may_be_read_otherwise_but_not_set_by_hand() -> None:
    shipped = load("darwin/1qt1tcp-const")
    for preset in ("source", "fitted"):
        other = override(shipped[0], {"flows.qt1.parameters.preset": preset})
        assert changed(as_run(other), "sim") == ""
    by_hand = "flows.*.parameters.preset=source"
    (scenario,) = load("darwin/1qt1tcp-const", settings=[by_hand])
    assert changed(as_run(scenario), "sim", (by_hand,)) == "changed from the catalogue"


def test_a_scenario_of_ones_own() -> None:
    (shipped,) = load(FTP)
    mine = override(shipped, {"path.down.rate": "2 Mbit/s"}, id="my/ftp")
    assert changed(as_run(mine), "sim") == "", "its numbers are its author's"
    assert changed(as_run(mine), "sim", ("until.time=9 s",)) == "changed by --set"


def test_a_scenario_of_another_version() -> None:
    (scenario,) = load(FTP)
    assert changed(as_run(scenario) | {"no_longer": 1}, "sim") == "changed from the catalogue"
