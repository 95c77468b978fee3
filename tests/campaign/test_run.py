"""Campaigns in sim: parallel and alike, resumed, bounded on disk, whole or not there."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from streamgauge import campaign
from streamgauge.campaign import (
    CampaignResult,
    EmuSettings,
    jobs_for,
    resume_key,
    run,
    run_alternatives,
    run_jobs,
    run_mutants,
    score,
)
from streamgauge.campaign import run as run_module  # noqa: F401
from streamgauge.campaign import trial as trial_module
from streamgauge.campaign.layout import place, remove_leftovers, scenario_of, sweep, trial_directory
from streamgauge.errors import CannotRunError, ScenarioError, StreamGaugeError
from streamgauge.record import Record
from streamgauge.report.model import load as load_all
from streamgauge.scenario import Scenario, from_text
from streamgauge.scenario.lower import Keep
from streamgauge.scenario.model import MODES
from streamgauge.scenario.settings import set_folder

Make = Callable[..., Scenario]


def simulate(scenario: Scenario, out: Path, **options: Any) -> CampaignResult:
    return run([scenario], {scenario.id: ["sim"]}, out, **options)


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_trials_lie_where_hive_readers_look(make: Make, tmp_path: Path) -> None:
    result = simulate(make(), tmp_path)
    assert [outcome.job.seed for outcome in result.outcomes] == [1, 2, 3, 4]
    assert all(outcome.valid for outcome in result.outcomes)
    first = tmp_path / "scenario=test%2Fshort" / "mode=sim" / "seed=1"
    assert result.outcomes[0].job.directory == first
    assert {"trial.json", "provenance.json", "packets.parquet", "events.parquet", "metrics.parquet"} == files(
        first
    )
    packets = pl.read_parquet(tmp_path / "**/packets.parquet", hive_partitioning=True)
    assert packets["seed"].n_unique() == 4
    assert packets["scenario"].unique().to_list() == ["test/short"]
    assert [scenario_of(directory) for directory in sweep(tmp_path)] == ["test/short"] * 4


def test_the_same_trials_whether_alone_or_in_parallel(make: Make, tmp_path: Path) -> None:
    together = simulate(make(), tmp_path / "a")
    alone = [simulate(make(), tmp_path / "b", first_seed=seed, repeat=1).outcomes[0] for seed in (1, 2, 3, 4)]
    assert [one.digest for one in together.outcomes] == [one.digest for one in alone]
    assert len({one.digest for one in alone}) == 4


def test_a_rerun_resumes(make: Make, tmp_path: Path) -> None:
    first = simulate(make(), tmp_path, repeat=2)
    stamps = [(outcome.job.directory / "trial.json").stat().st_mtime_ns for outcome in first.outcomes]
    second = simulate(make(), tmp_path, repeat=3)
    assert [outcome.reused for outcome in second.outcomes] == [True, True, False]
    again = [(outcome.job.directory / "trial.json").stat().st_mtime_ns for outcome in second.outcomes[:2]]
    assert stamps == again
    assert [one.digest for one in first.outcomes] == [one.digest for one in second.outcomes[:2]]
    for before, after in zip(first.outcomes, second.outcomes, strict=False):
        assert before.to_json() == after.to_json()


def test_emu_trials_without_messages_run_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of version 4, and sim's do not."""
    now = [resume_key(make(), mode, 1) for mode in MODES]
    monkeypatch.setattr("streamgauge.campaign.plan.EMU_VERSION", 4)
    before = [resume_key(make(), mode, 1) for mode in MODES]
    assert [one == other for one, other in zip(now, before, strict=True)] == [True, False]


def test_what_decides_the_record_decides_the_resume_key(make: Make) -> None:
    key = resume_key(make(), "sim", 1)
    assert resume_key(make(), "sim", 1) == key
    assert resume_key(make(), "sim", 2) != key
    assert resume_key(make(), "emu", 1) != key
    for setting in (
        "path.down.rate=2 Mbit/s",
        "flows.cross.start=0.5 s",
        "host_jitter=0 s",
        "until.time=4 s",
    ):
        assert resume_key(make(setting), "sim", 1) != key
    for setting in (
        "title=Another",
        "checks.fills.title=Another",
        "repetitions.sim=9",
        "measure.layer=payload",
    ):
        assert resume_key(make(setting), "sim", 1) == key


def test_a_changed_scenario_runs_again_in_the_same_place(make: Make, tmp_path: Path) -> None:
    before = simulate(make(), tmp_path, repeat=1).outcomes[0]
    after = simulate(make("path.down.rate=2 Mbit/s"), tmp_path, repeat=1).outcomes[0]
    assert not after.reused and after.job.directory == before.job.directory
    assert after.digest != before.digest
    assert json.loads((after.job.directory / "trial.json").read_text())["digest"] == after.digest
    earlier = tmp_path / "earlier" / "1" / before.job.directory.relative_to(tmp_path)
    assert Record.open(earlier).verify() == before.digest, "what was there is kept"


def test_trials_of_another_experiment_go_all_of_them(make: Make, tmp_path: Path) -> None:
    simulate(make(), tmp_path, repeat=3)
    result = simulate(make("path.down.rate=2 Mbit/s"), tmp_path, repeat=1)
    (moved,) = result.set_aside
    assert (moved.trials, moved.directory) == (3, tmp_path / "earlier" / "1")
    assert "was 1 Mbit/s, is 2 Mbit/s" in moved.why
    assert len(list(sweep(tmp_path))) == 1 and len(list(sweep(moved.directory))) == 3
    # Each has one place, however often they take turns.
    for _ in range(2):
        assert all(one.reused for one in simulate(make(), tmp_path, repeat=3).outcomes)
        assert all(one.reused for one in simulate(make("path.down.rate=2 Mbit/s"), tmp_path).outcomes[:1])
    assert [path.name for path in (tmp_path / "earlier").iterdir()] == ["1"]


def test_more_seeds_and_another_mode_set_nothing_aside(make: Make, tmp_path: Path) -> None:
    simulate(make(), tmp_path, repeat=2)
    result = simulate(make(), tmp_path, first_seed=7, repeat=1)
    assert not result.set_aside and len(list(sweep(tmp_path))) == 3


def test_a_trial_of_an_older_simulator_is_kept_apart(make: Make, tmp_path: Path) -> None:
    outcome = simulate(make(), tmp_path, repeat=2).outcomes[0]
    file = outcome.job.directory / "trial.json"
    file.write_text(file.read_text().replace(outcome.job.key, "0" * 32))
    (moved,) = simulate(make(), tmp_path, repeat=1).set_aside
    assert (moved.trials, moved.why) == (
        1,
        "made by another version of StreamGauge, of what it plays, or of a program that it runs",
    )


READS = """\
id: test/reads
title: A download beside one of the catalogue
path: {down: {rate: 1 Mbit/s, queue: droptail 20 packets}}
flows:
  ftp: {role: subject, traffic: bulk}
  solo: {role: rival, traffic: cbr, parameters: {rate: 1 packets/s}}
until: {time: 2 s}
checks:
  compares:
    title: It gets more than nothing
    that: throughput.ftp >= 0.001 * throughput.ftp of hessler/ftp-heavy
    origin: predicted
    breaks: {path.down.rate: 10 kbit/s}
"""


def test_what_a_check_reads_is_set_by_what_fits_it(tmp_path: Path) -> None:
    fits, elsewhere = "flows.ftp.congestion_control=reno", "flows.solo.start=1 s"
    settings = [elsewhere, fits]
    (own,) = from_text(READS, settings=settings)
    result = run([own], {own.id: ["sim"]}, tmp_path, repeat=1, settings=settings, keep="metrics")
    found = {
        outcome.job.scenario.id: json.loads((outcome.job.directory / "trial.json").read_text())
        for outcome in result.outcomes
    }
    assert found["test/reads"]["set"] == [fits, elsewhere] and "set_with" not in found["test/reads"]
    read = found["hessler/ftp-heavy"]
    assert read["set"] == [fits], "what was not set there is not said to have been"
    assert read["set_with"] == [fits, elsewhere]
    assert read["scenario"]["flows"]["ftp"]["congestion_control"] == "reno"
    loaded = load_all(tmp_path)
    assert {trial.settings for trial in loaded} == {(fits, elsewhere)}, "a report finds them together"


def test_a_folder_is_named_by_what_was_set() -> None:
    assert set_folder([]) == Path()
    assert set_folder(["path.down.rate=2 Mbit/s"]) == Path("path.down.rate=2Mbit_s")
    assert set_folder(["path.down.rate=2Mbit/s"]) == Path("path.down.rate=2Mbit_s")
    twice = ["until.time=5 s", "path.down.rate=1 Mbit/s", "until.time=6 s"]
    assert set_folder(twice) == Path("path.down.rate=1Mbit_s/until.time=6s")
    assert set_folder(["flows.*.parameters.preset=fitted"]) == Path("flows.%2A.parameters.preset=fitted")
    wave = "path.down.rate={square: {first: 1 Mbit/s, second: %s, period: 10 s}}"
    (one,), (other,) = (set_folder([wave % second]).parts for second in ("2 Mbit/s", "3 Mbit/s"))
    assert one != other and one.startswith("path.down.rate=square-first-1Mbit_s") and len(one) <= 80
    for nasty in ("title=../../etc/passwd", "title=..", "title=/", "title=" + "x" * 300, "title=a\n\0b"):
        (part,) = set_folder([nasty]).parts
        assert len(part) <= 80 and part.startswith("title=")
    assert set_folder(["clip=a/b"]) != set_folder(["clip=a_b"])
    assert set_folder(["title=a b"]) == set_folder(["title=ab"]), "spaces make no difference to a quantity"


def test_another_wording_is_written_into_the_record_that_is_there(make: Make, tmp_path: Path) -> None:
    before = simulate(make(), tmp_path, repeat=1).outcomes[0]
    after = simulate(make("title=Another"), tmp_path, repeat=1).outcomes[0]
    assert after.reused and after.digest != before.digest
    assert json.loads((after.job.directory / "trial.json").read_text())["scenario"]["title"] == "Another"
    Record.open(after.job.directory).verify()


def test_another_measure_is_applied_to_the_record_that_is_there(make: Make, tmp_path: Path) -> None:
    whole = simulate(make(), tmp_path, repeat=1).outcomes[0].to_json()
    other = simulate(make("measure.layer=payload"), tmp_path, repeat=1).outcomes[0]
    assert other.reused
    ip, payload = (one["flows"]["ftp"]["throughput_bps"] for one in (whole, other.to_json()))
    assert payload < ip


KEEPS: list[tuple[Keep, set[str]]] = [
    ("packets", {"packets.parquet", "events.parquet"}),
    ("events", {"events.parquet"}),
    ("metrics", set()),
]


@pytest.mark.parametrize(("keep", "kept"), KEEPS)
def test_keep_bounds_what_is_stored(make: Make, tmp_path: Path, keep: Keep, kept: set[str]) -> None:
    result = simulate(make(), tmp_path, repeat=1, keep=keep)
    found = files(result.outcomes[0].job.directory)
    assert found - {"trial.json", "provenance.json", "metrics.parquet"} == kept
    assert simulate(make(), tmp_path, repeat=1, keep=keep).outcomes[0].reused
    # What was not kept is made again when it is asked for.
    assert simulate(make(), tmp_path, repeat=1).outcomes[0].reused == (keep == "packets")


def test_metrics_survive_without_packets(make: Make, tmp_path: Path) -> None:
    whole = simulate(make(), tmp_path / "a", repeat=2)
    simulate(make(), tmp_path / "b", repeat=2, keep="metrics")
    again = simulate(make(), tmp_path / "b", repeat=2, keep="metrics")
    assert [o.to_json()["flows"] for o in again.outcomes] == [o.to_json()["flows"] for o in whole.outcomes]
    assert [c.to_json() for c in again.checks] == [c.to_json() for c in whole.checks]


def test_checks_are_judged_and_mutants_break_them(make: Make, tmp_path: Path) -> None:
    result = simulate(make(), tmp_path)
    assert [(check.id, check.verdict) for check in result.checks] == [("fills", "pass")]
    assert result.verdict == "pass"
    mutants, outcomes = run_mutants(result)
    assert [(one.check, one.killed) for one in mutants] == [("fills", True)]
    assert score(mutants) == 1.0
    assert len(outcomes) == 4 and all("variations" in str(outcome.job.directory) for outcome in outcomes)


def test_a_check_that_its_mutant_does_not_break_is_told(make: Make, tmp_path: Path) -> None:
    result = simulate(make("checks.fills.breaks={path.down.rate: 3 Mbit/s}"), tmp_path)
    mutants, _ = run_mutants(result)
    assert [one.killed for one in mutants] == [False]
    assert score(mutants) == 0.0


def test_verdicts_that_hang_on_an_assumption_are_told(make: Make, tmp_path: Path) -> None:
    assumed = "assumed={path.down.rate: {try: [300 kbit/s, 1 Mbit/s, 2 Mbit/s]}}"
    result = simulate(make(assumed), tmp_path, repeat=2)
    found = run_alternatives(result, repeat=2)
    assert [(one.value, one.verdict, one.turned) for one in found] == [
        ("300 kbit/s", "fail", True),
        ("2 Mbit/s", "pass", False),
    ], "the value assumed itself is not run again"
    assert len(list(sweep(tmp_path))) == 2, "alternatives lie apart"


def test_mutants_and_alternatives_of_an_earlier_scenario_are_kept_apart(make: Make, tmp_path: Path) -> None:
    changes = (
        "assumed={path.down.rate: {try: [300 kbit/s]}}",
        "checks.fills.breaks={path.down.rate: 300 kbit/s}",
    )
    for title, delay, repeat in (("then", "10 ms", 3), ("now", "50 ms", 2)):
        result = simulate(
            make(*changes, f"path.down.delay={delay}", f"title={title}"), tmp_path, repeat=repeat
        )
        run_mutants(result, repeat=repeat)
        run_alternatives(result, repeat=repeat)
    folders = {path.parent.parent for path in tmp_path.rglob("seed=*/trial.json")}
    counts = sorted((len(list(folder.glob("seed=*"))), "earlier" in folder.parts) for folder in folders)
    assert counts == [(2, False)] * 3 + [(3, True)] * 3


def test_an_alternative_may_replace_what_a_mutant_sets_a_part_of(make: Make, tmp_path: Path) -> None:
    result = simulate(
        make(
            "flows.video={role: rival, system: darwin, clip: {source: carphone, rate: 242 kbit/s}}",
            "assumed={flows.video.clip: {try: [bikes-242k]}}",
            "checks.fills.breaks={flows.video.clip.rate: 1 Mbit/s}",
        ),
        tmp_path,
        repeat=1,
    )
    assert [one.value for one in run_alternatives(result, repeat=1)] == ["bikes-242k"]


def test_what_checks_read_is_run_too(make: Make, tmp_path: Path) -> None:
    scenario = make("checks.fills.that=goodput.ftp <= goodput.ftp of hessler/ftp-no")
    result = simulate(scenario, tmp_path, repeat=1)
    assert {outcome.job.scenario.id for outcome in result.outcomes} == {"test/short", "hessler/ftp-no"}
    assert [check.id for check in result.checks] == ["fills"], "only what was asked for is judged"


def test_a_scenario_that_nobody_has(make: Make, tmp_path: Path) -> None:
    scenario = make("checks.fills.that=goodput.ftp <= goodput.ftp of test/none")
    with pytest.raises(ScenarioError, match="test/none"):
        simulate(scenario, tmp_path)


def test_progress_counts_to_the_end(make: Make, tmp_path: Path) -> None:
    told = []
    simulate(make(), tmp_path, progress=told.append)
    assert [one.done for one in told] == [1, 2, 3, 4]
    assert all(one.total == 4 for one in told)
    assert told[-1].left_s == 0


def broken(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_leaves_nothing_and_says_what_to_do(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial_module, "finish_trial", broken)
    with pytest.raises(CannotRunError, match=r"No space left on device.*free some space"):
        simulate(make(), tmp_path / "out")
    assert not list((tmp_path / "out").rglob("*")), "nothing half-written stays"


def test_ctrl_c_keeps_what_finished(make: Make, tmp_path: Path) -> None:
    finished: list[int] = []

    def interrupt(told: campaign.Progress) -> None:
        finished.append(told.done)
        if told.done == 2:
            raise KeyboardInterrupt

    result = simulate(make("repetitions.sim=12"), tmp_path, progress=interrupt)
    assert result.interrupted and result.verdict == "inconclusive"
    assert 2 <= len(result.outcomes) < 12
    assert len(list(sweep(tmp_path))) == len(result.outcomes)
    assert not list(tmp_path.rglob("*.partial"))
    again = simulate(make("repetitions.sim=12"), tmp_path)
    assert sum(outcome.reused for outcome in again.outcomes) == len(result.outcomes)
    assert again.verdict == "pass"


@pytest.mark.parametrize("more", [run_mutants, run_alternatives])
def test_ctrl_c_among_mutants_or_alternatives_judges_nothing(
    make: Make, tmp_path: Path, more: Callable[..., Any]
) -> None:
    def interrupt(_: campaign.Progress) -> None:
        raise KeyboardInterrupt

    result = simulate(make("assumed={path.down.rate: {try: [300 kbit/s]}}"), tmp_path)
    with pytest.raises(KeyboardInterrupt):
        more(result, progress=interrupt)
    more(result)


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "scenario=a" / "mode=sim"
    ours = folder / ".seed=1.1-00000000.partial"  # pid 1 lives
    theirs = folder / ".seed=2.4194304-00000000.partial"  # above the kernel's largest pid
    for left in (ours, theirs):
        left.mkdir(parents=True)
    assert remove_leftovers(tmp_path) == 1
    assert ours.exists() and not theirs.exists()


def test_a_place_is_taken_whole_or_not_at_all(tmp_path: Path) -> None:
    directory = trial_directory(tmp_path, "a/b", "emu", 7)
    with place(directory) as partial:
        (partial / "trial.json").write_text("1")
        assert not directory.exists()
    assert (directory / "trial.json").read_text() == "1"
    with pytest.raises(RuntimeError), place(directory) as partial:
        (partial / "trial.json").write_text("2")
        raise RuntimeError
    assert (directory / "trial.json").read_text() == "1", "a failure leaves the old trial"
    assert [path.name for path in directory.parent.iterdir()] == ["seed=7"]


def test_an_invalid_trial_runs_again_in_emu_alone(make: Make, tmp_path: Path) -> None:
    outcome = simulate(make(), tmp_path, repeat=1).outcomes[0]
    file = outcome.job.directory / "trial.json"
    trial = json.loads(file.read_text())
    trial["validity"] = {"valid": False, "why": ["late"], "bounds": {}, "measured": {}}
    file.write_text(json.dumps(trial))
    found = trial_module.reuse(outcome.job, "packets")
    assert found is not None and not found.valid, "sim would leave the same again"
    job = jobs_for(make(), "emu", tmp_path, first_seed=1, repeat=1)[0]
    job.directory.parent.mkdir()
    outcome.job.directory.rename(job.directory)
    moved = job.directory / "trial.json"
    moved.write_text(json.dumps(trial | {"resume_key": job.key}))
    assert trial_module.reuse(job, "packets") is None
    moved.write_text(
        json.dumps(trial | {"resume_key": job.key, "validity": trial["validity"] | {"valid": True}})
    )
    assert trial_module.reuse(job, "packets") is not None


class _Broken(StreamGaugeError):
    exit_status = 2


def test_emu_trials_that_broke_count_as_invalid(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    def die(*_: Any, **__: Any) -> Any:
        raise _Broken("the emulator died; run the trial again.")

    monkeypatch.setattr(sys.modules["streamgauge.campaign.run"], "run_job", die)
    scenario = make()
    outcomes, interrupted = run_jobs(
        jobs_for(scenario, "emu", tmp_path, first_seed=1, repeat=2), keep="packets", emu=EmuSettings()
    )
    assert not interrupted
    assert [(outcome.valid, outcome.why) for outcome in outcomes] == [
        (False, ("the emulator died; run the trial again.",))
    ] * 2
    result = CampaignResult((scenario,), tuple(outcomes), (), tmp_path, 1.0)
    assert result.verdict == "inconclusive"
    assert result.mostly_invalid() == [("test/short", "emu", 2, 2)]


def test_json_has_the_published_shape(make: Make, tmp_path: Path) -> None:
    data = json.loads(json.dumps(simulate(make(), tmp_path, repeat=2).to_json()))
    assert set(data) == {"schema", "trials", "checks", "set_aside", "simulated_s", "wall_s"}
    assert data["schema"] == "streamgauge.run/1"
    trial = data["trials"][0]
    about = {"scenario", "mode", "seed", "valid", "why", "replaces", "replaced_by"}
    assert set(trial) == about | {"directory", "digest", "flows"}
    wanted = {"throughput_bps", "goodput_bps", "loss_bps", "loss_percent", "mean_packet_bytes"}
    assert wanted <= set(trial["flows"]["ftp"])
    assert trial["digest"].startswith("blake3:")
    wanted = {
        "id",
        "scenario",
        "mode",
        "verdict",
        "measured",
        "published",
        "interval",
        "n",
        "origin",
        "strict",
    }
    assert wanted <= set(data["checks"][0])
    assert data["simulated_s"] == 6.0


def test_a_flow_that_never_sends_makes_a_trial_invalid(tmp_path: Path) -> None:
    text = """
id: test/silent
title: Windows that open after the flow has stopped
path: {down: {rate: 1 Mbit/s, queue: droptail 10 kB}}
flows:
  ping: {role: subject, traffic: ping}
  mute: {role: rival, traffic: cbr, parameters: {rate: 10 packets/s, windows: [[2 s, 3 s]]}, stop: 1 s}
until: {time: 3 s}
"""
    (scenario,) = from_text(text)
    outcome = simulate(scenario, tmp_path, repeat=1).outcomes[0]
    assert not outcome.valid
    assert outcome.why == ("flow mute never sent",)
