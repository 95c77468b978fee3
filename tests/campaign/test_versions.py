"""A system's version is its own: when it is raised, its trials run again and no others."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from streamgauge.campaign import resume_key, run
from streamgauge.campaign.plan import versions_used
from streamgauge.scenario import Scenario, from_text
from streamgauge.systems import adapters, machines
from streamgauge.systems.node import NodeAdapter
from streamgauge.systems.registry import SYSTEMS, TRAFFIC

Make = Callable[..., Scenario]
BOTH = ("down: {rate: 1 Mbit/s, queue: droptail 20 packets, delay: 5 ms}", "until: {time: 2 s}")
OTHERS = {
    "probe": "probe: {role: subject, traffic: ping, parameters: {interval: 100 ms}}",
    "video": "video: {role: subject, system: rtsp, clip: carphone-550k, sim: {system: rtp}}",
    "own": "own: {role: subject, system: {server: cat, player: cat}, sim: {traffic: bulk}}",
}


def other(name: str) -> Scenario:
    path, until = BOTH
    flow = OTHERS[name]
    text = f"id: test/{name}\ntitle: Another\npath: {{{path}}}\nflows: {{{flow}}}\n{until}\n"
    return from_text(text)[0]


def raise_version(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    machine = machines.MACHINES[name]
    monkeypatch.setitem(machines.MACHINES, name, replace(machine, version=machine.version + 1))


def test_only_the_trials_of_the_system_that_changed_run_again(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenarios = [make(), other("probe")]

    def reused() -> dict[str, list[bool]]:
        result = run(scenarios, {one.id: ["sim"] for one in scenarios}, tmp_path, repeat=2)
        assert all(outcome.valid for outcome in result.outcomes)
        found: dict[str, list[bool]] = {}
        for outcome in result.outcomes:
            found.setdefault(outcome.job.scenario.id, []).append(outcome.reused)
        why.extend(moved.why for moved in result.set_aside)
        return found

    why: list[str] = []
    again, stay = [False, False], [True, True]
    assert reused() == {"test/short": again, "test/probe": again}
    assert reused() == {"test/short": stay, "test/probe": stay} and not why
    raise_version(monkeypatch, "ping")
    assert reused() == {"test/short": stay, "test/probe": again}
    assert why == ["versions.ping.machine was 1, is 2"]
    raise_version(monkeypatch, "cbr")  # a rival counts as well
    assert reused() == {"test/short": again, "test/probe": stay}


def test_the_key_has_the_versions_of_the_systems_used_in_that_mode(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keys() -> dict[tuple[str, str], str]:
        made = {"short": make(), **{name: other(name) for name in OTHERS}}
        return {(name, mode): resume_key(made[name], mode, 1) for name in made for mode in ("sim", "emu")}

    def changed() -> set[tuple[str, str]]:
        nonlocal before
        now = keys()
        found = {key for key in now if now[key] != before[key]}
        before = now
        return found

    before = keys()
    raise_version(monkeypatch, "rtp")
    assert changed() == {("video", "sim")}, "a stand-in for sim is what sim uses"
    monkeypatch.setattr(SYSTEMS["rtsp"].adapter, "version", 2)
    assert changed() == {("video", "emu")}
    monkeypatch.setattr(adapters.ADAPTERS["command"], "version", 2)
    assert changed() == {("own", "emu")}
    raise_version(monkeypatch, "bulk")
    assert changed() == {("short", "sim"), ("short", "emu"), ("own", "sim")}
    monkeypatch.setattr(TRAFFIC["cbr"].adapter, "version", 2)
    assert changed() == {("short", "emu")}


BY_US = {
    "web": "web: {role: subject, traffic: bulk, arrivals: {rate: 4 /s, size: 30 kB}}",
    "bursts": "bursts: {role: subject, traffic: cbr, parameters: {rate: 40 packets/s, burst: 4 packets}}",
    "both": "web: {role: subject, traffic: bulk, arrivals: {rate: 4 /s, size: 30 kB}}, "
    "ftp: {role: rival, traffic: bulk}",
    "packets": "packets: {role: subject, traffic: cbr, parameters: {rate: 40 packets/s}}",
}


def test_the_key_has_the_version_of_the_adapter_that_runs_the_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of the one whose place it takes."""
    for name, flow in BY_US.items():
        monkeypatch.setitem(OTHERS, name, flow)

    def keys() -> dict[tuple[str, str], str]:
        return {(name, mode): resume_key(other(name), mode, 1) for name in BY_US for mode in ("sim", "emu")}

    def changed_by(owner: object) -> set[tuple[str, str]]:
        before = keys()
        with monkeypatch.context() as patch:
            patch.setattr(owner, "version", 2)
            return {key for key, now in keys().items() if now != before[key]}

    assert changed_by(NodeAdapter) == {("web", "emu"), ("bursts", "emu"), ("both", "emu")}
    assert changed_by(TRAFFIC["bulk"].adapter) == {("both", "emu")}
    assert changed_by(TRAFFIC["cbr"].adapter) == {("packets", "emu")}
    machine, node, adapter = (
        machines.MACHINES["bulk"].version,
        NodeAdapter.version,
        TRAFFIC["bulk"].adapter.version,
    )
    told = versions_used(other("both"), "emu")
    assert told == {"bulk": {"machine": machine, "node": node, "adapter": adapter}}
    assert versions_used(other("web"), "emu") == {"bulk": {"machine": machine, "node": node}}


def test_a_first_version_adds_nothing_to_the_key(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that were made before systems had versions are those of their first."""
    told = versions_used(make(), "sim")
    key = resume_key(make(), "sim", 1)
    monkeypatch.setattr("streamgauge.campaign.plan.versions_used", lambda *_: {})
    unversioned = resume_key(make(), "sim", 1)
    first = all(number == 1 for parts in told.values() for number in parts.values())
    assert (key == unversioned) == first


def test_a_trial_says_the_versions_that_it_was_made_by(make: Make, tmp_path: Path) -> None:
    outcome = run([make()], {"test/short": ["sim"]}, tmp_path, repeat=1).outcomes[0]
    trial = json.loads((outcome.job.directory / "trial.json").read_text(encoding="utf-8"))
    bulk, cbr = (machines.MACHINES[name].version for name in ("bulk", "cbr"))
    assert trial["systems"] == {"bulk": {"machine": bulk}, "cbr": {"machine": cbr}}
