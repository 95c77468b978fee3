"""Whether what a plan does to the path took effect, by records of sim: sound ones, and others held against a
plan that says something else."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from streamgauge import _native
from streamgauge.emu.conditions import Conditions, judge

S = 10**9
MS = 10**6
Plan = dict[str, Any]


def _plan(*stages: tuple[str, Plan], packets_per_s: float = 500.0, seconds: int = 8) -> Plan:
    """UDP, TCP and ICMP through these stages, called by their numbers."""
    down = [{"name": f"{kind}{index}", "kind": {kind: spec}} for index, (kind, spec) in enumerate(stages)]
    tcp = {"congestion_control": "reno", "receive_window": 65536, "send_buffer": 2**20, "mss": 1448}
    apps: dict[str, Plan] = {
        "cbr": {"cbr": {"packets_per_s": packets_per_s, "payload_bytes": 500, "burst": 1, "windows": []}},
        "bulk": {"bulk": {"tcp": tcp, "bytes": 400_000}},
        "ping": {"ping": {"interval": 50 * MS, "payload_bytes": 56}},
    }
    return {
        "scenario": "test/conditions",
        "seed": 1,
        "duration": seconds * S,
        "path": {"down": down, "up": [{"name": "wire", "kind": {"delay": {"delay": 5 * MS}}}]},
        "flows": [
            {"name": name, "role": "rival", "entry": "server", "start": 0, "actions": [], "app": app}
            for name, app in apps.items()
        ],
        "host_jitter": 0,
        "keep": "packets",
    }


def _judged(made: Plan, against: Plan, folder: Path) -> Conditions:
    """What is found when a trial of one plan is held against another."""
    folder.mkdir(exist_ok=True)
    summary = json.loads(_native.simulate(json.dumps(made), folder))
    events = pl.read_parquet(folder / "events.parquet").rename({"time": "t_ns"})
    path_events = events.filter(pl.col("flow").is_null()).to_dicts()
    packets = pl.read_parquet(folder / "packets.parquet")
    return judge(against, packets, path_events, int(summary["duration_ns"]))


LINK = ("bottleneck", {"rate": {"constant": 8_000_000}, "queue": {"droptail": {"packets": 40}}})
ON_OFF = [[2 * S, False], [4 * S, True], [6 * S, False]]
GE = {"good_packets": 9.0, "bad_packets": 3.0, "loss_good": 0.01, "loss_bad": 0.5}


def _jitter(distribution: Plan, *, keep_order: bool) -> Plan:
    return {"distribution": distribution, "keep_order": keep_order, "switches": ON_OFF}


SOUND: dict[str, tuple[str, Plan]] = {
    "bernoulli": ("loss", {"model": {"bernoulli": {"probability": 0.1}}, "switches": ON_OFF}),
    "gilbert": (
        "loss",
        {"model": {"gilbert": {"good_packets": 9.0, "bad_packets": 2.0}}, "switches": ON_OFF},
    ),
    "gilbert-elliott": ("loss", {"model": {"gilbert_elliott": GE}, "switches": ON_OFF}),
    "list": ("loss", {"model": {"list": {"packets": [3, 4, 100, 700, 90_000]}}, "switches": ON_OFF}),
    "delay": ("delay", {"delay": 20 * MS, "steps": [[2 * S, 40 * MS], [4 * S, 10 * MS]]}),
    "delay of flows": ("delay", {"delay": 20 * MS, "flows": [[0, 15 * MS], [2, 3 * MS]]}),
    "uniform": (
        "delay",
        {"delay": 20 * MS, "jitter": _jitter({"uniform": {"spread": 3 * MS}}, keep_order=False)},
    ),
    "normal": (
        "delay",
        {"delay": 20 * MS, "jitter": _jitter({"normal": {"deviation": 2 * MS}}, keep_order=False)},
    ),
    "pareto": (
        "delay",
        {"delay": 20 * MS, "jitter": _jitter({"pareto": {"scale": MS, "shape": 2.5}}, keep_order=False)},
    ),
    "gamma": (
        "delay",
        {"delay": 20 * MS, "jitter": _jitter({"gamma": {"scale": MS, "shape": 2.5}}, keep_order=False)},
    ),
    "table": (
        "delay",
        {"delay": 20 * MS, "jitter": _jitter({"table": {"quantiles": [0, MS, 9 * MS]}}, keep_order=False)},
    ),
    "in order": (
        "delay",
        {
            "delay": 20 * MS,
            "steps": [[3 * S, 5 * MS]],
            "flows": [[1, 7 * MS]],
            "jitter": _jitter({"gamma": {"scale": MS, "shape": 2.0}}, keep_order=True),
        },
    ),
    "reorder": ("reorder", {"probability": 0.05, "extra": 7 * MS, "switches": ON_OFF}),
    "reorder every": ("reorder", {"every": 7, "extra": 7 * MS, "switches": ON_OFF}),
    "duplicate": ("duplicate", {"probability": 0.05, "switches": ON_OFF}),
    "mtu": ("mtu", {"bytes": 400, "switches": ON_OFF}),
    "corrupt": ("corrupt", {"probability": 0.05, "switches": ON_OFF}),
    "block": ("block", {"protocol": "udp", "switches": [[0, False], [3 * S, True], [6 * S, False]]}),
    "block icmp": ("block", {"protocol": "icmp", "switches": ON_OFF}),
    "limit in bytes": (
        "bottleneck",
        {"rate": {"constant": 2_000_000}, "queue": {"droptail": {"bytes": 9_000}}},
    ),
    "rate steps": (
        "bottleneck",
        {
            "rate": {"steps": [[0, 3_000_000], [2 * S, 1_000_000], [4 * S, 0], [5 * S, 2_500_000]]},
            "queue": {"droptail": {"packets": 40}},
        },
    ),
    "square": (
        "bottleneck",
        {
            "rate": {"square": {"first": 3_000_000, "second": 1_500_000, "period": 2 * S}},
            "queue": {"droptail": {"packets": 40}},
            "layer": "ip",
        },
    ),
    "token bucket": (
        "bottleneck",
        {
            "rate": {"steps": [[0, 3_000_000], [4 * S, 1_500_000]]},
            "shaper": {"token_bucket": {"burst": 6000}},
            "queue": {"droptail": {"packets": 40}},
        },
    ),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_record_agrees_with_its_plan(name: str, tmp_path: Path) -> None:
    plan = _plan(LINK, SOUND[name])
    found = _judged(plan, plan, tmp_path)
    assert found.faults == []
    kind, spec = SOUND[name]
    where = f"path.down.{kind}1"
    assert found.judged[where] > 0, "packets enough to tell"
    assert found.judged["path.down.bottleneck0"] == 1
    assert found.changes >= len(spec.get("switches", ())) - 1


def _at(*steps: str | int, to: Any) -> Callable[[Plan], None]:
    def change(spec: Plan) -> None:
        place: Any = spec
        for step in steps[:-1]:
            place = place[step]
        place[steps[-1]] = to

    return change


DRAWN = ("jitter", "distribution")

# The settings that the plan has and the trial did not: each must show.
WRONG: dict[str, tuple[str, Callable[[Plan], None], str]] = {
    "more loss": ("bernoulli", _at("model", "bernoulli", "probability", to=0.25), "not a share of 0.25"),
    "no loss": ("bernoulli", _at("model", "bernoulli", "probability", to=0.0), "were lost"),
    "loss from elsewhen": (
        "bernoulli",
        _at("switches", to=[[3 * S, False]]),
        "that was off",
    ),
    "longer bursts": ("gilbert", _at("model", "gilbert", "bad_packets", to=6.0), "not a share of 0.4"),
    "worse bursts": (
        "gilbert-elliott",
        _at("model", "gilbert_elliott", "loss_good", to=0.5),
        "not a share of",
    ),
    "another packet": ("list", _at("model", "list", "packets", to=[3, 5, 100, 700, 90_000]), "other packets"),
    "one packet more": ("list", _at("model", "list", "packets", to=[3, 4, 5, 100, 700]), "not the 5 of"),
    "a longer delay": ("delay", _at("delay", to=20 * MS + 1), "were not delayed as the plan says"),
    "a step elsewhen": ("delay", _at("steps", 0, 0, to=2 * S + 50 * MS), "were not delayed as the plan says"),
    "another flow's delay": ("delay of flows", _at("flows", to=[[1, 15 * MS], [2, 3 * MS]]), "not delayed"),
    "wider": ("uniform", _at(*DRAWN, "uniform", "spread", to=5 * MS), "distribution"),
    "narrower": (
        "uniform",
        _at(*DRAWN, "uniform", "spread", to=2 * MS),
        "less than jitter",
    ),
    "another normal": (
        "normal",
        _at(*DRAWN, "normal", "deviation", to=3 * MS),
        "distribution",
    ),
    "another tail": ("pareto", _at(*DRAWN, "pareto", "shape", to=1.5), "distribution"),
    "another gamma": ("gamma", _at(*DRAWN, "gamma", "shape", to=1.5), "distribution"),
    "another table": (
        "table",
        _at(*DRAWN, "table", "quantiles", to=[0, 4 * MS, 9 * MS]),
        "distr",
    ),
    "order": ("normal", _at("jitter", "keep_order", to=True), "were not delayed"),
    "jitter elsewhen": ("gamma", _at("jitter", "switches", to=[[3 * S, False]]), "were not delayed|did not"),
    "fewer wait": ("reorder", _at("probability", to=0.2), "held back"),
    "another wait": ("reorder", _at("extra", to=6 * MS), "neither passed at once"),
    "every other": ("reorder every", _at("every", to=5), "not every 5th"),
    "more copies": ("duplicate", _at("probability", to=0.2), "duplicated"),
    "copies elsewhen": ("duplicate", _at("switches", to=[[3 * S, False]]), "that was off"),
    "a smaller MTU": ("mtu", _at("bytes", to=300), "longer than 300 B left"),
    "no MTU": ("mtu", _at("switches", to=[[0, False]]), "cut up"),
    "more damage": ("corrupt", _at("probability", to=0.2), "corrupted"),
    "damage elsewhen": ("corrupt", _at("switches", to=[[5 * S, False]]), "did not"),
    "another protocol": ("block", _at("protocol", to="tcp"), "blocked"),
    "blocked earlier": ("block", _at("switches", to=[[0, False], [2 * S, True]]), "of UDP passed"),
    "a shorter queue": ("rate steps", _at("queue", "droptail", "packets", to=39), "that was full"),
    "a longer queue": ("rate steps", _at("queue", "droptail", "packets", to=41), "with room"),
    "fewer bytes": ("limit in bytes", _at("queue", "droptail", "bytes", to=8_400), "that was full"),
    "more bytes": ("limit in bytes", _at("queue", "droptail", "bytes", to=9_600), "with room"),
    "another rate": ("rate steps", _at("rate", "steps", 1, 1, to=1_010_000), "were not sent at 1010000"),
    "no standstill": ("square", _at("rate", "square", "second", to=0), "at a rate of 0"),
    "a smaller bucket": ("token bucket", _at("shaper", "token_bucket", "burst", to=3000), "token bucket"),
    "a slower bucket": ("token bucket", _at("rate", "steps", 1, 1, to=1_400_000), "token bucket"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_record_of_something_else_is_told_apart(name: str, tmp_path: Path) -> None:
    base, change, said = WRONG[name]
    made = _plan(LINK, SOUND[base])
    against = copy.deepcopy(made)
    (spec,) = against["path"]["down"][1]["kind"].values()
    change(spec)
    found = _judged(made, against, tmp_path)
    lines = [line for line in found.faults if "was to change" not in line or "did not" in said]
    assert any(part in line for line in lines for part in said.split("|")), found.faults


def test_a_change_that_is_not_reported_is_missed(tmp_path: Path) -> None:
    plan = _plan(LINK, SOUND["bernoulli"])
    _native.simulate(json.dumps(plan), tmp_path)
    packets = pl.read_parquet(tmp_path / "packets.parquet")
    found = judge(plan, packets, [], 8 * S)
    assert found.changes == 3
    assert found.faults == [
        f"path.down.loss1: its loss_ratio was to change at {at} s and did not" for at in (2, 4, 6)
    ]


def test_without_packets_nothing_is_judged() -> None:
    plan = _plan(LINK, SOUND["reorder"])
    packets = pl.DataFrame(schema=dict.fromkeys(
        ("pkt", "copy", "flow", "dir", "stage", "kind", "t_in", "t_out", "fate", "cause", "wire_bytes",
         "ip_bytes", "payload_bytes", "seq", "flags", "queue_bytes", "queue_packets"), pl.Int64,
    ))  # fmt: skip
    found = judge(plan, packets, [], S)
    assert found.faults == []
    assert set(found.judged.values()) == {0}
