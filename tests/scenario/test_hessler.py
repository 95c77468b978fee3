"""Hessler and Welzl's twenty experiments: one bed, four systems, five classes of cross traffic."""

from __future__ import annotations

import itertools

import pytest
from streamgauge.scenario import Scenario, find

CLASSES = {
    "no": None, "little": (60, 60.0), "medium": (90, 60.0), "heavy": (150, 60.0), "burst": (200, 0.72),
}  # fmt: skip
SYSTEMS = {
    "ftp": None,
    "real": ("realvideo", {"preset": "helix9", "player": "realplayer10", "transport": "udp"}),
    "wmp": ("windows_media", {"preset": "wms9", "player": "wmp9-helix"}),
    "qt": ("darwin", {"preset": "source", "player": "quicktime"}),
}


@pytest.fixture(scope="module")
def all_() -> dict[str, Scenario]:
    return {scenario.id: scenario for scenario in find(["hessler/*"])}


def test_every_system_meets_every_class_behind_the_same_router(all_: dict[str, Scenario]) -> None:
    twenty = [f"hessler/{system}-{name}" for system, name in itertools.product(SYSTEMS, CLASSES)]
    assert set(twenty) <= set(all_)
    paths = {str(all_[name].path.model_dump(mode="json")) for name in twenty}
    assert len(paths) == 1
    (path,) = paths
    assert "cbq" in path and "100 packets" in path
    for name in twenty:
        data = all_[name].normalised()
        assert (data["until"]["time"], data["measure"]["layer"]) == ("120 s", "payload")


@pytest.mark.parametrize("system", SYSTEMS)
def test_cross_traffic_is_the_papers(all_: dict[str, Scenario], system: str) -> None:
    for name, told in CLASSES.items():
        scenario = all_[f"hessler/{system}-{name}"]
        if told is None:
            assert "cross" not in scenario.flows
            continue
        rate, length_s = told
        plan = scenario.normalised()["flows"]["cross"]
        assert plan["parameters"] == {"rate": f"{rate} /s", "size": "1 kB"}
        assert plan["from"] == "router"
        assert plan["stop"] == f"cross.start + {'60 s' if length_s == 60 else '720 ms'}"


@pytest.mark.parametrize("system", [name for name, told in SYSTEMS.items() if told])
def test_systems_are_those_of_table_1(all_: dict[str, Scenario], system: str) -> None:
    told = SYSTEMS[system]
    assert told is not None
    for name in CLASSES:
        flow = all_[f"hessler/{system}-{name}"].normalised()["flows"][system]
        assert flow["system"] == told[0]
        assert told[1].items() <= flow["parameters"].items()
        assert flow["clip"]["duration"] in ("120 s", "2 min")
        assert "ping" in all_[f"hessler/{system}-{name}"].flows


def test_the_same_server_stands_behind_both_papers_queues(all_: dict[str, Scenario]) -> None:
    hessler = all_["hessler/qt-medium"].normalised()["flows"]["qt"]["parameters"]
    for name in ("10-kb", "100-packets", "router"):
        flows = all_[f"hessler/queue-darwin-{name}"].normalised()["flows"]
        players = [flow for flow in flows.values() if flow.get("system") == "darwin"]
        assert len(players) == 4
        assert all(one["parameters"]["preset"] == hessler["preset"] == "source" for one in players)
    assert "10 kB" in str(all_["hessler/queue-hessler-medium"].normalised()["path"]["down"])
