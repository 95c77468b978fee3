"""Scenarios that would cost more than a machine has: refused before they start, or ended at a limit."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamgauge.campaign import check_trials, jobs_for, run
from streamgauge.cli import main
from streamgauge.errors import ScenarioError
from streamgauge.scenario import Scenario, from_text, lower
from streamgauge.scenario.limits import MOST_REPETITIONS, MOST_SAMPLES, MOST_TRIALS

TEXT = """\
id: test/cost
title: Cost
path:
  down: {rate: 1 Mbit/s, queue: droptail 20 packets}
  up: {}
flows:
  ftp: {role: subject, traffic: bulk}
until: {time: 2 s}
"""


def made(more: str = "", until: str = "{time: 2 s}") -> Scenario:
    text = TEXT.replace("{time: 2 s}", until) + more
    (scenario,) = from_text(text, file="my.yaml")
    return scenario


@pytest.mark.parametrize(
    ("until", "more", "key", "said"),
    [
        ("{time: 1000000000 s}", "", "8: until.time", "2,000,000,000 samples of 500 ms (measure.sample)"),
        ("{time: 50000 s}", "measure: {sample: 1 ms}\n", "8: until.time", "end after 10000 s at the latest"),
        (
            "{time: 50000 s}",
            "measure: {tcp_sample: 1 ms}\n",
            "8: until.time",
            "50,000,000 samples of 1 ms (measure.tcp_sample)",
        ),
    ],
)
def test_more_samples_than_memory_holds_are_refused_before_the_start(
    until: str, more: str, key: str, said: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        made(more, until)
    assert str(caught.value).startswith(f"my.yaml:{key}: ")
    assert said in str(caught.value) and "measure: {" in str(caught.value)


def test_as_many_samples_as_the_bound_are_a_scenario() -> None:
    seconds = MOST_SAMPLES // 10
    made("measure: {sample: 100 ms}\n", f"{{time: {seconds} s}}")
    with pytest.raises(ScenarioError):
        made("measure: {sample: 100 ms}\n", f"{{time: {seconds + 1} s}}")


def test_a_day_that_nobody_wrote_down_is_no_reason_to_refuse() -> None:
    made("measure: {sample: 1 ms}\n", "{idle: 1 s}")


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("limits: {events: 1000}\n", "limits.events: more than 1000 events at "),
        ("limits: {memory: 1 kB}\nhost_jitter: 0 s\n", "limits.memory: "),
    ],
)
def test_a_trial_beyond_a_limit_ends_with_its_key_and_leaves_no_record(
    limit: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "my.yaml"
    file.write_text(TEXT.replace("2 s", "2000 s").replace("1 Mbit/s", "50 Mbit/s") + limit)
    out = tmp_path / "out"
    assert main(["run", str(file), "--mode", "sim", "--seed", "1", "--out", str(out)]) == 3
    told = " ".join(capsys.readouterr().err.split())
    assert said in told and "raise this key" in told
    assert not list(out.rglob("trial.json"))


def test_limits_of_the_usual_size_change_nothing_that_a_record_has() -> None:
    usual, set_ = made(), made("limits: {events: 5000, memory: 2 GB}\n")
    assert "limits" not in usual.normalised()
    assert set_.normalised()["limits"] == {"events": 5000, "memory": "2 GB"}
    assert usual.essence("sim") == set_.essence("sim")
    assert lower(set_, "sim", 1)["limits"] == {"events": 5000, "memory_bytes": 2_000_000_000}


@pytest.mark.parametrize("mode", ["sim", "emu"])
def test_repetitions_beyond_the_bound_are_refused(mode: str) -> None:
    made(f"repetitions: {{{mode}: {MOST_REPETITIONS}}}\n")
    with pytest.raises(ScenarioError) as caught:
        made(f"repetitions: {{{mode}: 1000000000}}\n")
    assert str(caught.value).startswith(f"my.yaml:9: repetitions.{mode}: ")
    assert str(MOST_REPETITIONS) in str(caught.value)


def test_repetitions_asked_for_have_the_same_bound(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="1,000,000,000 repetitions of test/cost are more than 100,000"):
        jobs_for(made(), "sim", tmp_path, first_seed=1, repeat=10**9)
    with pytest.raises(ScenarioError, match="in parts"):
        many = [made().model_copy(update={"id": f"test/cost-{n}"}) for n in range(11)]
        run(many, {one.id: ["sim"] for one in many}, tmp_path, repeat=MOST_REPETITIONS)
    check_trials([MOST_TRIALS - 1, 1])
    assert not list(tmp_path.iterdir())


def test_the_command_line_refuses_them_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "my.yaml"
    file.write_text(TEXT)
    for words in (["run"], ["sweep", "--over", "path.down.rate=1Mbit/s,2Mbit/s"]):
        ran = [words[0], str(file), *words[1:], "--mode", "sim", "--repeat", "1000000000"]
        assert main([*ran, "--out", str(tmp_path / "out")]) == 3
        assert "more than" in capsys.readouterr().err
