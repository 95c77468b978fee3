"""The catalogue's adaptive streaming: every scenario runs, every rule is in it, and its claims can fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamgauge.campaign import run, run_mutants
from streamgauge.scenario import Scenario, find, load, override
from streamgauge.systems.machines import MACHINES

SHORT = "10 s"
RULES = ("throughput", "bola", "dashjs-dynamic", "hlsjs", "robust-mpc", "festive", "panda")


@pytest.fixture(scope="module")
def scenarios() -> list[Scenario]:
    return [*load("dash/*", mutants=False), *load("ccn/*", mutants=False)]


def short(scenario: Scenario) -> Scenario:
    """Returns the scenario's first seconds, with every flow from the first one on."""
    begin = {f"flows.{name}.start": "1 s" for name, flow in scenario.flows.items() if flow.start is not None}
    draws = {} if scenario.id.startswith("ccn/") else {"randomize": {}}
    # A wave and steps change later than that, and large segments of a high rate take longer.
    slow = scenario.id.startswith(("dash/square-", "dash/steps-", "dash/pipeline-"))
    rate = {"path.down.rate": "80 Mbit/s"} if slow else {}
    return override(scenario, {"until": {"time": SHORT}, "measure": {}, **begin, **draws, **rate})


def test_every_rule_is_there_on_each_trace(scenarios: list[Scenario]) -> None:
    rules = MACHINES["dash"].parameters["rule"].words
    ids = {scenario.id for scenario in scenarios}
    assert len(rules) >= 26
    for family in ("lte", "driving", "hsdpa", "wifi"):
        assert {f"dash/{family}-{rule}" for rule in rules} <= ids
    for family in (*(f"beside-{cc}" for cc in ("reno", "cubic", "bbr")), "share-2", "share-4"):
        assert {f"dash/{family}-{rule}" for rule in RULES} <= ids
    for family in ("steps", "square", "late"):
        assert {f"dash/{family}-{rule}" for rule in RULES} <= ids
    assert {f"ccn/tcp-loss-{n}-{cc}" for n in range(1, 6) for cc in ("reno", "vegas", "cubic")} <= ids
    transports = ("reno", "vegas", "cubic", "udp")
    assert {f"ccn/loss-{n}-{transport}" for n in range(1, 6) for transport in transports} <= ids
    assert {f"ccn/narrow-{transport}" for transport in transports} <= ids


def test_every_scenario_plays(scenarios: list[Scenario], tmp_path: Path) -> None:
    mine = [short(scenario) for scenario in scenarios]
    ran = run(mine, {one.id: ["sim"] for one in mine}, tmp_path, repeat=1, keep="metrics")
    assert len(ran.outcomes) == len(mine) > 250
    for outcome in ran.outcomes:
        told = outcome.to_json()
        assert told["valid"], told
        players = [flow for flow in told["flows"].values() if flow.get("level_mean_bps") is not None]
        assert players, f"{outcome.job.scenario.id} shows no level"
        assert all(flow["startup_delay_s"] is not None for flow in players)


def test_claims_fail_without_what_they_are_about(tmp_path: Path) -> None:
    mine = find(["dash/trickle-capped", "dash/spiral-5"], mutants=False)
    result = run(mine, {one.id: ["sim"] for one in mine}, tmp_path, repeat=3, keep="metrics")
    verdicts = {(one.scenario, one.id): one.verdict for one in result.checks}
    for claim in ("TR-1", "TR-2", "TR-3"):
        assert verdicts["dash/trickle-capped", claim] == "pass"
    for claim in ("IMC-1", "IMC-1.timid"):
        assert verdicts["dash/spiral-5", claim] == "pass"
    mutants, _ = run_mutants(result, repeat=3, keep="metrics")
    assert len(mutants) == len(result.checks) >= 6
    assert all(one.killed for one in mutants), [one for one in mutants if not one.killed]


def test_papers_are_named_and_many_claims_stand(scenarios: list[Scenario]) -> None:
    claims = {
        name for one in scenarios for name, check in one.checks.items() if name.partition("-")[0].isupper()
    }
    assert len(claims) >= 25
    of_ccn = ("ccn/loss-", "ccn/narrow-", "ccn/tcp-")
    theirs = (*of_ccn, *(f"dash/{name}-" for name in ("spiral", "festive", "trickle", "onoff", "bloat")))
    for one in scenarios:
        assert one.source is not None or not one.id.startswith(theirs), one.id
