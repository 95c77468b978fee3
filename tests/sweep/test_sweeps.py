"""A sweep is its points run one by one, only together: the same trials, in the same places, in one table."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamgauge.campaign import machine, run
from streamgauge.campaign.folder import writing
from streamgauge.campaign.plan import jobs_for
from streamgauge.campaign.stored import long_form
from streamgauge.errors import ScenarioError
from streamgauge.metrics.interval import interval
from streamgauge.record import Record
from streamgauge.scenario import from_text, load_file
from streamgauge.scenario.settings import set_folder
from streamgauge.sweeps import SweepResult, axes_of, points_of, run_points, sweep
from swept_scenario import SWEPT

OVER = ["path.down.queue=10kB,50kB", "path.down.rate=[500 kbit/s, 1 Mbit/s]"]

BOTH = """
import sys
from streamgauge.errors import CannotRunError
from streamgauge.sweeps import sweep
try:
    sweep("my.yaml", sys.argv[1:], mode="sim")
except CannotRunError as error:
    print(error)
print(len(sweep("my.yaml", ["path.down.rate=2Mbit/s"], mode="sim", metrics=["goodput"])))
"""


def swept(*over: str, out: str = "runs", **more: Any) -> SweepResult:
    axes = axes_of(over or OVER)
    return run_points(points_of(["my.yaml"], axes, mode="sim"), axes, Path(out), **more)


def digests(out: Path) -> Iterator[tuple[str, str]]:
    for file in sorted(out.rglob("trial.json")):
        yield str(file.parent.relative_to(out)), json.loads(file.read_text())["digest"]


def test_a_point_is_a_run_with_its_settings(folder: Path) -> None:
    swept(keep="packets")
    for queue, rate in itertools.product(("10kB", "50kB"), ("500 kbit/s", "1 Mbit/s")):
        chosen = [f"path.down.queue={queue}", f"path.down.rate={rate}"]
        (scenario,) = load_file(Path("my.yaml"), settings=chosen)
        run([scenario], {scenario.id: ["sim"]}, Path("ones") / set_folder(chosen), settings=chosen)
        again = run([scenario], {scenario.id: ["sim"]}, Path("runs") / set_folder(chosen), settings=chosen)
        assert again.outcomes and all(outcome.reused for outcome in again.outcomes)
    assert dict(digests(Path("runs"))) == dict(digests(Path("ones"))) != {}
    for file in Path("runs").rglob("trial.json"):
        Record.open(file.parent).verify()


def test_the_table_is_the_mean_of_the_trials(folder: Path) -> None:
    result = swept(metrics=["goodput", "queue_delay.bottleneck", "jain", "max_min_share.cross"], repeat=3)
    frame = result.frame()
    # 4 points: goodput of 2 flows, and one each of the others.
    assert len(frame) == 4 * 5
    assert set(frame["n"]) == {3} and set(frame["invalid"]) == {0}
    of_trials = long_form(
        [Path(one) for one in set(frame["directory"].str.replace("/scenario=.*", ""))]
    ).collect()
    canonical = {"bps": 1.0, "s": 1.0, "1": 1.0, "percent": 0.01}
    for row in frame.iter_rows(named=True):
        mine = of_trials.filter(
            pl.col("directory").str.starts_with(row["directory"] + "/"),
            pl.col("metric") == row["metric"],
            pl.col("flow").eq_missing(row["flow"]),
            pl.col("stage").eq_missing(row["stage"]),
        )["value"]
        wanted = interval(mine.to_list())
        scale = canonical[row["unit"]]
        assert row["mean"] * scale == pytest.approx(wanted.mean, rel=1e-12)
        assert wanted.high is not None and wanted.low is not None
        assert row["high"] * scale == pytest.approx(wanted.high, rel=1e-12)
        assert row["low"] * scale == pytest.approx(max(0.0, wanted.low), rel=1e-12, abs=1e-15)


def test_json_and_frame_say_the_same(folder: Path) -> None:
    result = swept()
    told, frame = result.to_json(), result.frame()
    json.dumps(told, allow_nan=False)
    assert told["schema"] == "streamgauge.sweep/1" and len(told["rows"]) == len(frame)
    for row, line in zip(told["rows"], frame.iter_rows(named=True), strict=True):
        assert row["point"] == {address: line[address] for address in row["point"]}
        assert row["numbers"] == {name: line[name] for name in row["numbers"]}
        assert row["interval"] == ([line["low"], line["high"]] if line["low"] is not None else None)
        for key in (
            "scenario",
            "mode",
            "flow",
            "stage",
            "metric",
            "unit",
            "mean",
            "n",
            "invalid",
            "directory",
        ):
            assert row[key] == line[key]
        assert Path(row["directory"]).is_dir()
    assert set(frame["path.down.rate_bps"]) == {5e5, 1e6} and set(frame["path.down.queue_bytes"]) == {
        1e4,
        5e4,
    }
    assert told["axes"][0] == {
        "address": "path.down.queue", "values": ["10kB", "50kB"], "unit": "kB", "numbers": [10, 50],
    }  # fmt: skip


def test_from_python_it_is_the_same_frame(folder: Path) -> None:
    over = {"path.down.queue": ["10 kB", "50 kB"], "path.down.rate": ["500 kbit/s", "1 Mbit/s"]}
    by_file = sweep("my.yaml", over, mode="sim", out="a")
    (scenario,) = load_file(Path("my.yaml"))
    by_object = sweep(scenario, over, mode="sim", out="b")
    same = [name for name in by_file.columns if name != "directory"]
    assert by_file.select(same).equals(by_object.select(same))
    assert sweep([scenario], OVER, mode="sim", out="b").select(same).equals(by_object.select(same))
    assert dict(digests(Path("a"))) == dict(digests(Path("b")))


def test_numbers_words_and_mappings_as_values(folder: Path) -> None:
    wave = {"square": {"first": "1 Mbit/s", "second": "2 Mbit/s", "period": "1 s"}}
    frame = sweep(
        "my.yaml", {"path.down.rate": ["1 Mbit/s", wave]}, mode="sim", repeat=1, metrics=["goodput.ftp"]
    )
    assert len(frame) == 2 and "path.down.rate_bps" not in frame.columns
    assert set(frame["path.down.rate"]) == {"1 Mbit/s", json.dumps(wave)}
    parameter = "flows.ftp.parameters.delayed_ack"
    with pytest.raises(ScenarioError, match=f"--over {parameter}=sometimes"):
        sweep("my.yaml", {parameter: ["sometimes"]}, mode="sim")


def test_what_is_there_is_not_run_again_and_more_is_added(folder: Path) -> None:
    first = swept("path.down.rate=1Mbit/s,2Mbit/s")
    again = swept("path.down.rate=1Mbit/s,2Mbit/s", metrics=["rtt"])
    assert all(one.reused for one in again.outcomes) and {row.measured.metric for row in again.rows} == {
        "rtt"
    }
    more = swept("path.down.rate=1Mbit/s,2Mbit/s,3Mbit/s", repeat=3)
    assert sum(one.reused for one in more.outcomes) == len(first.outcomes)
    assert len(more.outcomes) == more.planned == 9


def test_each_points_first_repetition_comes_first(folder: Path) -> None:
    """Whoever stops a sweep half-way has a whole picture."""
    seeds = [outcome.job.seed for outcome in swept(repeat=3).outcomes]
    assert seeds == sorted(seeds)


def test_two_do_not_write_one_point(folder: Path) -> None:
    chosen = ["path.down.queue=50kB", "path.down.rate=1 Mbit/s"]
    (scenario,) = load_file(Path("my.yaml"), settings=chosen)
    own = Path("runs") / set_folder(chosen)
    jobs = jobs_for(scenario, "sim", own, first_seed=1, repeat=1, settings=chosen)
    # Locks are a process's: another one has to ask.
    with writing(own, jobs):
        said = subprocess.run([sys.executable, "-c", BOTH, *OVER], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    told, beside = said.stdout.splitlines()
    assert told.startswith("another campaign") and str(own) in told
    assert beside == "2", "what it does not write is another's to write"


def test_a_scenario_that_extends_is_swept(folder: Path) -> None:
    Path("more.yaml").write_text("extends: my.yaml\nid: my/more\nflows: {cross: null}\n")
    frame = sweep("more.yaml", {"path.down.rate": ["1 Mbit/s", "2 Mbit/s"]}, mode="sim", metrics=["goodput"])
    assert set(frame["flow"]) == {"ftp"} and set(frame["scenario"]) == {"my/more"}


def test_a_flow_that_is_not_at_every_point(folder: Path) -> None:
    frame = sweep(
        "my.yaml", ["flows.cross=null,{role: rival, traffic: ping}"], mode="sim", metrics=["goodput", "rtt"]
    )
    with_it = [("ftp", "goodput"), ("cross", "goodput"), ("ftp", "rtt"), ("cross", "rtt")]
    found = [(row["flow"], row["metric"]) for row in frame.iter_rows(named=True)]
    assert found == [("ftp", "goodput"), ("ftp", "rtt"), *with_it]
    none = frame.filter(pl.col("flow") == "cross", pl.col("metric") == "goodput")
    assert none["n"].to_list() in ([0], [2]), "asked for, so it is told even without a value"


WRONG = [
    (["path.down.rate=1Mbit/s,2Mbps"], "--over path.down.rate=2Mbps: path.down.rate: ", "did you mean"),
    (["path.down.rat=1Mbit/s"], "--over path.down.rat=1Mbit/s: path.down.rat: ", "'path.down.rate'?"),
    (["path.down.queue=20kB,1kB", "path.down.rate=1Mbit/s"], "--over path.down.queue=1kB: ", "one packet"),
    (["until.time=1s,0 s"], "--over until.time=0 s: until.time: ", "no time at all"),
    # Beside no value of the other axis does it make sense.
    (
        ["flows.cross.start=100ms,2500ms", "until.time=1s,2s"],
        "--over flows.cross.start=2500ms: flows.cross.start: ",
        "starts at 2.5 s, but the trial ends at 1 s",
    ),
    (["path.down.queue=0.1BDP,0.2BDP"], "--over path.down.queue=0.1BDP: ", "cannot hold one packet"),
    (["flows.ftp.parameters.receive_window=1B", "path.down.rate=1Mbit/s"], "receive_window=1B: ", "1 B"),
]


@pytest.mark.parametrize(("over", "where", "why"), WRONG, ids=[" ".join(one[0]) for one in WRONG])
def test_a_point_that_makes_no_sense_is_told_before_anything_runs(
    over: list[str], where: str, why: str, folder: Path
) -> None:
    with pytest.raises(ScenarioError) as caught:
        swept(*over)
    assert where in str(caught.value) and why in str(caught.value)
    assert not Path("runs").exists()


LEFT_OUT = [
    (
        ["path.down.queue=0.5BDP,3BDP", "path.down.rate=2Mbit/s,4Mbit/s"],
        [(0, 0)],
        "a queue of 0.5 BDP, 1250 B, cannot hold one packet of 1514 B",
    ),
    (["path.down.queue=0.5BDP,3BDP"], [(0,)], "a queue of 0.5 BDP, 625 B, cannot hold one packet of 1514 B"),
    (["path.down.queue=1ms,100ms"], [(0,)], "125 B at its highest rate, cannot hold one packet"),
    (
        ["flows.cross.start=100ms,1500ms", "until.time=1s,2s"],
        [(1, 0)],
        "starts at 1.5 s, but the trial ends at 1 s",
    ),
]


@pytest.mark.parametrize(("over", "at", "why"), LEFT_OUT, ids=[" ".join(one[0]) for one in LEFT_OUT])
def test_an_impossible_combination_is_left_out_and_named(
    over: list[str], at: list[tuple[int, ...]], why: str, folder: Path
) -> None:
    result = swept(*over, repeat=1)
    assert [one.at for one in result.left_out] == at and why in result.left_out[0].why
    every = set(itertools.product(*(range(len(axis)) for axis in result.axes)))
    assert {point.at for point in result.points} == every - set(at)
    (told,) = result.to_json()["left_out"]
    assert why in told["why"] and list(told["point"]) == [axis.address for axis in result.axes]
    with pytest.warns(UserWarning, match="left out: .*"):
        frame = sweep("my.yaml", over, mode="sim", repeat=1)
    assert len(frame) == len(result.frame())


METRICS = [
    ("goodptu", "did you mean 'goodput'?"),
    ("goodput.fpt", "did you mean 'goodput.ftp'?"),
    ("jain.ftp", "of the whole trial"),
]


@pytest.mark.parametrize(("metric", "why"), METRICS)
def test_a_metric_that_there_is_not(metric: str, why: str, folder: Path) -> None:
    with pytest.raises(ScenarioError, match=f"--metric {metric}: ") as caught:
        swept(metrics=[metric])
    assert why in str(caught.value) and not Path("runs").exists()


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3))
@settings(max_examples=15)
def test_every_combination_once(tmp_path_factory: pytest.TempPathFactory, sizes: list[int]) -> None:
    addresses = ("path.down.rate", "path.up.delay", "until.time")
    units = ("Mbit/s", "ms", "s")
    axes = axes_of(
        f"{address}={','.join(f'{n + 1} {unit}' for n in range(size))}"
        for address, unit, size in zip(addresses, units, sizes, strict=False)
    )
    (scenario,) = from_text(SWEPT)
    points = points_of([scenario], axes, mode="sim")
    assert len(points) == math.prod(sizes)
    assert [point.at for point in points] == list(np.ndindex(*sizes))
    assert len({set_folder(point.settings) for point in points}) == len(points), "a place of its own each"
    for point in points:
        assert point.scenario.path.down.rate == type(point.scenario.path.down.rate)(
            axes[0].values[point.at[0]]
        )  # type: ignore[misc, call-arg]
    # The order of the options changes the order of the points and nothing else.
    turned = points_of([scenario], axes[::-1], mode="sim")
    assert {set_folder(point.settings) for point in turned} == {
        set_folder(point.settings) for point in points
    }


def test_too_many_points_are_a_slip(folder: Path) -> None:
    over = [f"path.{way}.delay=1ms..500ms step 1ms" for way in ("down", "up")]
    with pytest.raises(ScenarioError, match="250,000 points are more than 100,000"):
        swept(*over)


def test_what_is_swept_may_be_what_is_missing(folder: Path) -> None:
    Path("my.yaml").write_text(
        SWEPT.replace("rate: 1 Mbit/s, queue: droptail 20 packets, ", "queue: codel, ")
    )
    with pytest.raises(ScenarioError, match=r"^my\.yaml:"):
        load_file(Path("my.yaml"))
    assert len(swept("path.down.rate=1Mbit/s,2Mbit/s").points) == 2
    with pytest.raises(ScenarioError, match=r"^my\.yaml:4: path\.down"):
        swept("until.time=1s,2s")


def test_a_slip_in_set_is_told_as_one(folder: Path) -> None:
    axes = axes_of(["path.down.rate=1Mbit/s,2Mbit/s"])
    with pytest.raises(ScenarioError, match=r"^--set path\.down\.dely=1ms: "):
        points_of(["my.yaml"], axes, settings=["path.down.dely=1ms"], mode="sim")


def test_all_points_run_in_one_mode(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that the mode of the first does not have is refused, and does not run in another one."""
    monkeypatch.setattr(machine, "why_not", lambda mode, way=None: None)
    axes = axes_of(["modes=[[emu, sim], [sim, emu]]"])
    assert {point.mode for point in points_of(["my.yaml"], axes)} == {"emu"}
    axes = axes_of(["flows.ftp.congestion_control=reno,tfrc"])
    wanted = r"^--over flows\.ftp\.congestion_control=tfrc: .*cannot run in emu, .*--mode"
    with pytest.raises(ScenarioError, match=wanted):
        points_of(["my.yaml"], axes, settings=["modes=[emu, sim]"])
    Path("other.yaml").write_text(SWEPT.replace("test/swept", "test/other") + "modes: [sim]\n")
    rates = axes_of(["path.down.rate=1Mbit/s"])
    both = points_of(["my.yaml", "other.yaml"], rates, settings=["modes=[sim]"])
    assert {point.mode for point in both} == {"sim"}
