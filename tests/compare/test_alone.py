"""The neighbours alone: of every scenario that ships, the same flows at the same times on the same path."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from streamgauge.compare.alone import alone
from streamgauge.compare.conditions import key_of, neighbours_of
from streamgauge.scenario import Scenario, from_text
from streamgauge.scenario.lower import lower


def test_neighbours_come_as_they_came(catalogue: tuple[Scenario, ...]) -> None:
    judged = 0
    for whole in catalogue:
        id_ = whole.id
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
        assert _common(there) == _common(here) and there["duration"] == here["duration"], id_
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


def _common(plan: Mapping[str, Any]) -> list[Any]:
    """The way down, delays of single flows by what is beside, as flows under test have none when they are not
    there."""
    rivals = {place: flow["name"] for place, flow in enumerate(plan["flows"]) if flow["role"] == "rival"}
    found = []
    for stage in copy.deepcopy(plan["path"]["down"]):
        told = stage["kind"].get("delay")
        if told is not None:
            told["flows"] = [[rivals[flow], more] for flow, more in told.pop("flows", []) if flow in rivals]
        found.append(stage)
    return found


def test_a_delay_of_a_flow_that_is_not_there_is_left_out() -> None:
    text = """
id: test/far
title: Two paths
path: {down: {rate: 1 Mbit/s, queue: droptail 20 packets, delay: {constant: 10 ms, flows: {one: 80 ms}}}}
flows:
  one: {role: subject, traffic: bulk, congestion_control: reno}
  two: {role: rival, traffic: bulk, congestion_control: reno}
until: {time: 2 s}
"""
    whole = from_text(text)[0]
    rest = alone(whole)
    assert rest is not None and list(rest.flows) == ["two"]
    assert key_of(neighbours_of(rest.normalised())) == key_of(neighbours_of(whole.normalised()))
    near = from_text(text.replace("10 ms", "20 ms"))[0]
    assert key_of(neighbours_of(near.normalised())) != key_of(neighbours_of(whole.normalised()))


def test_nobody_beside_it_nothing_alone() -> None:
    text = """
id: test/solo
title: Nobody beside it
path: {down: {rate: 1 Mbit/s, queue: droptail 20 packets}}
flows: {ftp: {role: subject, traffic: bulk, congestion_control: reno}}
until: {time: 2 s}
"""
    assert alone(from_text(text)[0]) is None
