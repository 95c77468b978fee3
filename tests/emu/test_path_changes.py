"""Everything that a path can do, switched on and off in real trials, and found again in their records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from driving import MOST_TRIALS, tell_starved
from scenarios import PING, scenario
from streamgauge.emu import EmuOptions, run_trial
from streamgauge.emu.conditions import judge
from streamgauge.scenario import from_text, lower

S, MS = 10**9, 10**6
CBR = "  cbr: {role: rival, traffic: cbr, parameters: {rate: 150 packets/s, size: 500 B}}\n"
ON_OFF = [[0, False], [1 * S, True], [3 * S, False]]

STAGES: dict[str, tuple[dict[str, Any], ...]] = {
    "losses": (
        {"loss": {"model": {"bernoulli": {"probability": 0.2}}, "switches": ON_OFF}},
        {"loss": {"model": {"list": {"packets": [5, 6, 40]}}, "switches": ON_OFF}},
        {"block": {"protocol": "icmp", "switches": ON_OFF}},
    ),
    "order": (
        {"reorder": {"probability": 0.1, "extra": 15 * MS, "switches": ON_OFF}},
        {
            "delay": {
                "delay": 30 * MS,
                "steps": [[2 * S, 20 * MS]],
                "flows": [[1, 10 * MS]],
                "jitter": {
                    "distribution": {"gamma": {"shape": 2.0, "scale": 2 * MS}},
                    "keep_order": False,
                    "switches": ON_OFF,
                },
            }
        },
    ),
    "bytes": (
        {"duplicate": {"probability": 0.2, "switches": ON_OFF}},
        {"corrupt": {"probability": 0.1, "switches": ON_OFF}},
        {"mtu": {"bytes": 400, "switches": ON_OFF}},
    ),
}


@pytest.mark.parametrize("name", STAGES)
def test_what_is_switched_takes_effect(name: str, tmp_path: Path) -> None:
    (made,) = from_text(scenario(CBR + PING, until="4 s", rate="3 Mbit/s"))
    plan = lower(made, "emu", 1)
    more = [{"name": f"s{index}", "kind": kind} for index, kind in enumerate(STAGES[name])]
    plan["path"]["down"] += more
    for seed in range(1, MOST_TRIALS + 1):
        folder = tmp_path / f"trial-{seed}"
        validity = run_trial(made, plan, seed, folder, EmuOptions())["validity"]
        print(*validity["why"], sep="\n")
        # Late a trial may be, all the same: only the pre-flight is asked of the machine here.
        if not validity["measured"]["preflight"]:
            break
        tell_starved({"scenario": name, "seed": seed, "why": validity["measured"]["preflight"]}, "us")
    # A busy machine may make it late, and so invalid, but not lose, change or miscount anything.
    for test in ("conditions", "conservation", "witness", "veths", "host_losses", "preflight"):
        assert validity["measured"][test] == [], test
    assert all(count > 0 for count in validity["measured"]["conditions_judged"].values())
    packets = pl.read_parquet(folder / "packets.parquet")
    if name == "bytes":
        # Our own datagrams may be cut up on the way, as in sim.
        assert packets.filter(pl.col("fragment_offset") > 0).height > 0
    # The same record does not agree with a plan that says something else.
    events = pl.read_parquet(folder / "events.parquet").rename({"time": "t_ns"})
    other = json.loads(json.dumps(plan).replace(json.dumps(ON_OFF), json.dumps([[0, False]])))
    found = judge(other, packets, events.filter(pl.col("flow").is_null()).to_dicts(), 4 * S)
    for stage in more:
        assert any(f"path.down.{stage['name']}:" in fault for fault in found.faults), stage["name"]
