"""Each element of the link: survives printing, follows the schema, is said in words, and runs in sim."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from link_elements import FORMS, SCENARIO
from ruamel.yaml import YAML
from streamgauge import _native
from streamgauge.report.stages import stage_words
from streamgauge.scenario import Scenario, from_text, json_schema, lower
from streamgauge.scenario.path import direction_in_words

IDS = [form[0] for form in FORMS]


def scenario_with(down: str) -> Scenario:
    (scenario,) = from_text(SCENARIO.replace("DOWN", down))
    return scenario


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json_schema())


@pytest.mark.parametrize(("down", "shown", "reported"), FORMS, ids=IDS)
def test_words(down: str, shown: str, reported: str) -> None:
    scenario = scenario_with(down)
    assert shown in direction_in_words(scenario.path.down)
    stages = lower(scenario, "sim", 1)["path"]["down"]
    said = [" ".join(words) for stage in stages if (words := stage_words(stage))]
    assert any(reported in one for one in said), said


@pytest.mark.parametrize("down", IDS)
def test_what_is_printed_loads_again_and_follows_the_schema(
    down: str, validator: jsonschema.Draft202012Validator
) -> None:
    scenario = scenario_with(down)
    validator.validate(json.loads(json.dumps(YAML(typ="safe").load(SCENARIO.replace("DOWN", down)))))
    validator.validate(scenario.normalised())
    assert Scenario.model_validate(scenario.normalised()) == scenario


@pytest.mark.parametrize("down", IDS)
def test_sim_runs_it_and_accounts_for_every_packet(down: str, tmp_path: Path) -> None:
    plan = lower(scenario_with(down), "sim", 1)
    summary: dict[str, Any] = json.loads(_native.simulate(json.dumps(plan), tmp_path))
    assert not summary["imbalance"]
    assert summary["duration_ns"] == 2 * 10**9
    blocked = "block" in down
    sent = [row["in_packets"] for row in summary["balance"] if row["direction"] == "down"]
    assert sum(sent) > (0 if blocked else 290)


def test_stages_go_in_the_documented_order() -> None:
    down = (
        "{delay: 1 ms, reorder: 1 % 5 ms, rate: 1 Mbit/s, queue: codel, mtu: 900 B, loss: 1 %, block: icmp,"
    )
    down += " duplicate: 1 %, corrupt: 1 %}"
    stages = lower(scenario_with(down), "sim", 1)["path"]["down"]
    assert [stage["name"] for stage in stages] == [
        "block", "loss", "corrupt", "duplicate", "mtu", "bottleneck", "delay", "reorder",
    ]  # fmt: skip


def test_the_long_form_orders_freely_and_has_several_bottlenecks(tmp_path: Path) -> None:
    down = """
    stages:
      - {name: home, rate: 2 Mbit/s, queue: fq_codel}
      - {name: radio, loss: 1 %}
      - {name: core, rate: 1 Mbit/s, queue: pie, shaper: token_bucket 3 kB}
      - {name: far, delay: 5 ms}
      - {name: radio2, loss: {gilbert: {good: 50 packets, bad: 2 packets}}}
"""
    plan = lower(scenario_with(down), "sim", 1)
    assert [stage["name"] for stage in plan["path"]["down"]] == ["home", "radio", "core", "far", "radio2"]
    assert not json.loads(_native.simulate(json.dumps(plan), tmp_path))["imbalance"]


def test_nistnet_counts_the_delay_behind_it() -> None:
    plan = lower(scenario_with("{rate: 1 Mbit/s, queue: nistnet 80 packets, delay: 45 ms}"), "sim", 1)
    assert plan["path"]["down"][0]["kind"]["bottleneck"]["queue"] == {
        "nistnet": {"packets": 80, "delay": 45_000_000}
    }


def test_per_flow_delay_goes_by_the_flows_place() -> None:
    plan = lower(scenario_with("{delay: {constant: 1 ms, flows: {b: 20 ms}}}"), "sim", 1)
    assert plan["path"]["down"][0]["kind"]["delay"]["flows"] == [[1, 20_000_000]]


MARKS = [("codel", False), ("codel ecn on", True), ("fq_codel", True), ("dualpi2", True)]


@pytest.mark.parametrize(("queue", "marks"), MARKS)
def test_packets_that_say_so_are_marked(queue: str, marks: bool, tmp_path: Path) -> None:
    import polars as pl

    for ecn, capable in (("no", False), ("ect1", True)):
        down = f"{{rate: 0.8 Mbit/s, queue: {queue}}}"
        text = SCENARIO.replace("DOWN", down).replace("size: 1000 B", f"size: 1000 B, ecn: {ecn}")
        (scenario,) = from_text(text)
        _native.simulate(json.dumps(lower(scenario, "sim", 1)), tmp_path)
        flags = pl.read_parquet(tmp_path / "packets.parquet").filter(pl.col("flow") == 0)["flags"]
        assert (flags & 2 > 0).any() == capable, "the field as the sender set it"
        assert (flags & 4 > 0).any() == (capable and marks)
