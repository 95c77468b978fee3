"""Short transfers that arrive at random: how they are drawn, and what a plan has of them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamgauge.errors import ScenarioError
from streamgauge.scenario import Scenario, from_text, lower
from streamgauge.scenario.arrivals import transfers
from streamgauge.scenario.flow import Arrivals
from streamgauge.scenario.words import in_words
from streamgauge.systems.machines import MACHINES
from streamgauge.systems.registry import SYSTEMS, TRAFFIC

S = 10**9
TEXT = """\
id: test/arrivals
title: Short transfers
path: {down: {rate: 10 Mbit/s, queue: droptail 100 ms, delay: 5 ms}}
flows:
  web:
    role: subject
    traffic: bulk
    arrivals: {rate: 20 /s, size: 5 kB}
until: {time: 10 s}
"""


def scenario(*settings: str) -> Scenario:
    (made,) = from_text(TEXT, settings=settings)
    return made


def planned(made: Scenario, seed: int = 1, mode: Any = "sim") -> list[dict[str, int]]:
    flow = next(flow for flow in lower(made, mode, seed)["flows"] if flow["name"] == "web")
    found: list[dict[str, int]] = flow["app"]["bulk"]["arrivals"]
    return found


def arrivals(**more: Any) -> Arrivals:
    return Arrivals.model_validate({"rate": "100 /s", "size": "5 kB", **more})


def test_gaps_are_exponential_and_sizes_as_asked() -> None:
    drawn = transfers(arrivals(sizes="exponential"), 1, "web", 0, 40 * S)
    # Four standard errors of a Poisson count, and of a mean of exponentials.
    assert len(drawn) == pytest.approx(4000, abs=4 * 4000**0.5)
    mean = sum(one["bytes"] for one in drawn) / len(drawn)
    assert mean == pytest.approx(5000, abs=4 * 5000 / len(drawn) ** 0.5)
    gaps = [after["at"] - one["at"] for one, after in itertools.pairwise(drawn)]
    # Of an exponential, 1/e lies beyond the mean, and the deviation is the mean.
    assert sum(gap > 10**7 for gap in gaps) / len(gaps) == pytest.approx(0.368, abs=0.031)
    assert all(one["bytes"] == 5000 for one in transfers(arrivals(), 1, "web", 0, S))


def test_these_are_what_every_machine_and_every_version_draws() -> None:
    drawn = transfers(arrivals(sizes="exponential"), 1, "web", 0, S)
    assert [(one["at"], one["bytes"]) for one in drawn[:2]] == FIRST


FIRST = [(1825284, 5013), (9648915, 1512)]


@settings(max_examples=40)
@given(st.integers(0, 5), st.integers(0, 10 * S), st.integers(0, 10 * S))
def test_a_later_end_and_other_sizes_change_no_other_draw(seed: int, end: int, more: int) -> None:
    few = transfers(arrivals(), seed, "web", S, S + end)
    many = transfers(arrivals(), seed, "web", S, S + end + more)
    assert many[: len(few)] == few
    assert all(S <= one["at"] < S + end for one in few)
    assert [one["at"] for one in few] == sorted(one["at"] for one in few)
    other = transfers(arrivals(sizes="exponential"), seed, "web", S, S + end)
    assert [one["at"] for one in other] == [one["at"] for one in few]


def test_another_flow_changes_no_draw_and_another_seed_does() -> None:
    alone = planned(scenario())
    beside = scenario("flows.ftp={role: rival, traffic: bulk, arrivals: {rate: 3 /s, size: 1 kB}}")
    assert planned(beside) == alone == planned(scenario(), mode="emu")
    assert planned(scenario(), seed=2) != alone


def test_they_arrive_from_the_flows_start_to_its_stop() -> None:
    drawn = planned(scenario("flows.web.start=2 s", "flows.web.stop=4 s", "start_phase=0 s"))
    assert drawn and all(2 * S <= one["at"] < 4 * S for one in drawn)
    assert planned(scenario("flows.web.arrivals.rate=0.0001 /s")) == []


def test_plans_of_other_flows_have_none() -> None:
    app = lower(scenario("flows.web={role: subject, traffic: bulk}"), "sim", 1)["flows"][0]["app"]
    assert "arrivals" not in app["bulk"]


@pytest.mark.parametrize("name", [*SYSTEMS, *TRAFFIC])
def test_who_cannot_says_so_and_names_who_can(name: str) -> None:
    entry = {**SYSTEMS, **TRAFFIC}[name]
    kind = "system" if name in SYSTEMS else "traffic"
    live = name in MACHINES and MACHINES[name].content == "live"
    more = ", clip: carphone-100k" if entry.plays and not live else ""
    needed = {parameter.name for parameter in entry.parameters.values() if parameter.required}
    more += ", parameters: {rate: 10 packets/s}" if needed else ""
    flow = f"flows.web={{role: subject, {kind}: {name}{more}, arrivals: {{rate: 2 /s, size: 5 kB}}}}"
    if entry.arrivals:
        assert scenario(flow).flows["web"].arrivals is not None
        return
    with pytest.raises(
        ScenarioError, match=rf"'{name}' has no transfers that could arrive.*write 'traffic: "
    ):
        scenario(flow)


def test_commands_have_none() -> None:
    with pytest.raises(ScenarioError, match="a system given as commands has no transfers"):
        more = "system: {server: ./a, player: ./b}, arrivals: {rate: 2 /s, size: 5 kB}"
        scenario(f"flows.web={{role: subject, {more}}}")


def test_they_are_said_in_words_and_read_again() -> None:
    made = scenario()
    assert "short transfers of 5 kB, Poisson arrivals at 20 /s" in "\n".join(in_words(made))
    assert Scenario.model_validate(made.normalised()) == made


def test_our_machines_run_them_where_iperf3_runs_the_rest() -> None:
    made = scenario("flows.ftp={role: rival, traffic: bulk}", "flows.web.events=[{at: 1 s, do: pause}]")
    assert made.unsupported("emu") is None
    with_pause = scenario("flows.web={role: rival, traffic: bulk, events: [{at: 1 s, do: pause}]}")
    assert "cannot pause in emu" in str(with_pause.unsupported("emu"))
