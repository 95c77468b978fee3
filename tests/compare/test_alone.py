"""The neighbours alone: of every scenario that ships, the same flows at the same times on the same path."""

from __future__ import annotations

import pytest
from streamgauge.compare.alone import alone
from streamgauge.compare.conditions import key_of, neighbours_of
from streamgauge.scenario import Scenario, catalogue_ids, from_text, load
from streamgauge.scenario.lower import lower

IDS = sorted(catalogue_ids())


@pytest.fixture(scope="module")
def scenarios() -> dict[str, Scenario]:
    return {id_: load(id_)[0] for id_ in IDS}


def test_neighbours_come_as_they_came(scenarios: dict[str, Scenario]) -> None:
    judged = 0
    for id_, whole in scenarios.items():
        rest = alone(whole)
        rivals = [name for name, flow in whole.flows.items() if flow.role == "rival"]
        if rest is None:
            assert (
                not rivals or whole.relays or whole.population is not None or len(rivals) == len(whole.flows)
            ), id_
            continue
        assert list(rest.flows) == rivals
        if rest.unsupported("sim") or whole.unsupported("sim"):
            continue
        judged += 1
        there, here = lower(whole, "sim", 3), lower(rest, "sim", 3)
        assert there["path"]["down"] == here["path"]["down"] and there["duration"] == here["duration"], id_
        ours = {flow["name"]: flow for flow in here["flows"]}
        for flow in there["flows"]:
            if flow["name"] in ours:
                # What begins relative to a flow under test has its nominal time, and not that flow's draw.
                draws = len(whole.flows) * whole.start_phase.ns
                assert abs(flow["start"] - ours[flow["name"]]["start"]) <= draws, id_
                assert flow["app"] == ours[flow["name"]]["app"]
        key = key_of(neighbours_of(rest.normalised()))
        assert key == key_of(neighbours_of(whole.in_mode("sim").normalised())), id_
    assert judged >= 20


def test_nobody_beside_it_nothing_alone() -> None:
    text = """
id: test/solo
title: Nobody beside it
path: {down: {rate: 1 Mbit/s, queue: droptail 20 packets}}
flows: {ftp: {role: subject, traffic: bulk, congestion_control: reno}}
until: {time: 2 s}
"""
    assert alone(from_text(text)[0]) is None
