"""A Dask cluster of this machine's processes: the same digests as without it, whatever dies on the way."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dask_cluster import DaskCluster
from short_scenario import SHORT
from streamgauge.campaign import CampaignResult, Progress, run, sweep
from streamgauge.campaign.cluster import Cluster, connected
from streamgauge.cli import main
from streamgauge.errors import CannotRunError
from streamgauge.record import Record
from streamgauge.scenario import Scenario, find

TRIALS = 200
ROOT = Path(__file__).parent.parent.parent
Make = Callable[..., Scenario]


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    with DaskCluster(tmp_path_factory.mktemp("dask")) as cluster:
        yield cluster


@pytest.fixture
def two(dask: DaskCluster) -> DaskCluster:
    """With two workers, whatever the test before did to them."""
    for name in ("a", "b"):
        if name not in dask.workers or dask.workers[name].poll() is not None:
            dask.worker(name)
    dask.wait_for(2)
    return dask


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """Digests of a campaign on this machine alone, by seed."""
    from streamgauge.scenario import from_text

    scenario = from_text(SHORT)[0]
    out = tmp_path_factory.mktemp("alone")
    result = run([scenario], {scenario.id: ["sim"]}, out, repeat=TRIALS, keep="metrics")
    return digests(result)


def digests(result: CampaignResult) -> dict[int, str]:
    return {outcome.job.seed: str(outcome.digest) for outcome in result.outcomes}


def on_cluster(
    cluster: Cluster,
    scenario: Scenario,
    out: Path,
    count: int,
    progress: Callable[[Progress], None] | None = None,
) -> CampaignResult:
    cluster.prepare([scenario], {scenario.id: ["sim"]}, out, seed=1)
    return run(
        [scenario],
        {scenario.id: ["sim"]},
        out,
        repeat=count,
        keep="metrics",
        cluster=cluster,
        progress=progress,
    )


def test_a_worker_that_is_killed_in_the_middle_costs_nothing(
    two: DaskCluster, alone: dict[int, str], make: Make, tmp_path: Path
) -> None:
    told: list[int] = []

    def kill_one(progress: Progress) -> None:
        told.append(progress.done)
        if progress.done == TRIALS // 4:
            two.workers["a"].kill()

    with connected(two.address) as cluster:
        result = on_cluster(cluster, make(), tmp_path, TRIALS, kill_one)
        assert two.workers["a"].wait() == -signal.SIGKILL
        assert digests(result) == alone, "nothing is lost, and nothing differs"
        assert [outcome.job.seed for outcome in result.outcomes] == list(range(1, TRIALS + 1))
        assert told == list(range(1, TRIALS + 1)), "each is told once"
        assert [check.verdict for check in result.checks] == ["pass"]
        assert not any(outcome.reused for outcome in result.outcomes)
        # The folder has them all and no other, each as the row says.
        found = {json.loads((place / "trial.json").read_text())["digest"] for place in sweep(tmp_path)}
        assert found == set(alone.values())
        # And all of it is there already for whoever comes next.
        again = on_cluster(cluster, make(), tmp_path, TRIALS)
        assert all(outcome.reused for outcome in again.outcomes)
        assert digests(again) == alone


def test_workers_leave_the_very_record_that_this_machine_leaves(
    two: DaskCluster, make: Make, tmp_path: Path
) -> None:
    scenario = make()
    modes = {scenario.id: ["sim"]}
    here = run([scenario], modes, tmp_path / "here", repeat=3)  # type: ignore[arg-type]
    with connected(str(two.file)) as cluster:
        cluster.prepare([scenario], modes, tmp_path / "there", seed=1)  # type: ignore[arg-type]
        there = run([scenario], modes, tmp_path / "there", repeat=3, cluster=cluster)  # type: ignore[arg-type]
    for one, other in zip(here.outcomes, there.outcomes, strict=True):
        assert Record.open(one.job.directory).verify() == Record.open(other.job.directory).verify()
        assert one.readings == other.readings
        assert one.metrics is not None and other.metrics is not None
        assert one.metrics.value("throughput", "ftp") == other.metrics.value("throughput", "ftp")


def test_a_trial_that_kills_its_workers_is_named_and_takes_no_other_along(
    dask: DaskCluster, make: Make, tmp_path: Path
) -> None:
    """Beside it in the batch lie others, which are not to blame."""
    deadly = tmp_path / "deadly.py"
    deadly.write_text(
        "import os\nfrom streamgauge.campaign.cluster import on_worker as w\n"
        "def perform(task, really=w.perform, **more):\n"
        "    return os._exit(1) if task.seed == 7 else really(task, **more)\n"
        "w.perform = perform\n"
    )
    # One death is too many for a batch, so that the test needs few workers.
    env = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    with DaskCluster(tmp_path / "own", env=env) as own:
        for name in ("a", "b", "c"):
            own.worker(name, "--preload", str(deadly))
        own.wait_for(3)
        with connected(own.address) as cluster:
            cluster.expect(make(), "sim", 0.01)  # so that it goes with others
            with pytest.raises(CannotRunError, match="seed=7: 1 worker died while this trial") as said:
                on_cluster(cluster, make(), tmp_path / "out", 12)
    assert said.value.exit_status == 4
    seeds = {place.name for place in sweep(tmp_path / "out")}
    assert seeds == {f"seed={seed}" for seed in range(1, 13) if seed != 7}


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(
    two: DaskCluster, alone: dict[int, str], tmp_path: Path
) -> None:
    (tmp_path / "my.yaml").write_text(SHORT)
    command = [sys.executable, "-m", "streamgauge", "run", "my.yaml", "--mode", "sim", "--keep", "metrics"]
    command += ["--repeat", str(TRIALS), "--on", two.address, "--out", "runs"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while len(list(sweep(tmp_path / "runs"))) < 10:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert f"of {TRIALS} trials are kept in runs; the same command resumes" in err
    done = subprocess.run([*command, "--json"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    trials = json.loads(done.stdout)["trials"]
    assert {trial["seed"]: trial["digest"] for trial in trials} == alone


def test_a_scheduler_that_dies_is_one_error_and_what_is_done_stays(make: Make, tmp_path: Path) -> None:
    with DaskCluster(tmp_path / "own") as own:
        own.worker("a")
        own.wait_for(1)

        def kill_it(progress: Progress) -> None:
            if progress.done == 5:
                own.processes[0].kill()

        with connected(own.address) as cluster, pytest.raises(CannotRunError, match="is gone") as said:
            on_cluster(cluster, make(), tmp_path / "out", TRIALS, kill_it)
    assert "run the same command, which resumes" in str(said.value)
    assert 5 <= len(list(sweep(tmp_path / "out"))) < TRIALS


def test_where_the_scheduler_is_may_stand_in_dasks_own_configuration(
    two: DaskCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my.yaml").write_text(SHORT)
    (tmp_path / "dask.yaml").write_text(f"scheduler-address: {two.address}\n")
    monkeypatch.chdir(tmp_path)
    assert main(["run", "my.yaml", "--mode", "sim", "--repeat", "2", "--on", "dask.yaml"]) == 0
    env = os.environ | {"DASK_SCHEDULER_ADDRESS": two.address}
    command = ["run", "my.yaml", "--mode", "sim", "--repeat", "3", "--on", "dask"]
    done = subprocess.run(
        [sys.executable, "-m", "streamgauge", *command], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "3 trials (2 there already)" in done.stdout


def test_the_pages_two_commands_as_printed(dask: DaskCluster, tmp_path: Path) -> None:
    """docs/cluster.md, with our scheduler and our folder for the reader's."""
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    with DaskCluster(tmp_path / "own") as own:
        worker, ran = (
            [
                part.replace("tcp://scheduler:8786", own.address).replace("/shared", str(tmp_path / "shared"))
                for part in shlex.split(line)[1:]
            ]
            for line in re.findall(
                r"^streamgauge (?:worker|run) .*tcp://scheduler:8786.*$", page, re.MULTILINE
            )
        )
        command = [sys.executable, "-m", "streamgauge"]
        offered = subprocess.Popen([*command, *worker], stderr=subprocess.DEVNULL, cwd=tmp_path)
        try:
            done = subprocess.run([*command, *ran], cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        finally:
            offered.send_signal(signal.SIGINT)
            assert offered.wait(60) == 130
    assert len(list(sweep(tmp_path / "shared" / "run-1"))) == 25 * len(find(["hessler/ftp-*"]))


def test_nothing_of_dask_is_imported_without_on(tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text(SHORT)
    program = (
        "import sys\nfrom streamgauge.cli import main\n"
        "status = main(['run', 'my.yaml', '--mode', 'sim', '--repeat', '2'])\n"
        "found = {name.partition('.')[0] for name in sys.modules} & {'dask', 'distributed', 'fsspec'}\n"
        "print('imported', sorted(found))\nsys.exit(status)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "imported []" in done.stdout


def test_mutants_run_there_too(two: DaskCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = [
        "reproduce",
        "hessler/ftp-no",
        "--mode",
        "sim",
        "--repeat",
        "2",
        "--mutants",
        "--keep",
        "metrics",
    ]
    assert main([*command, "--out", "here"]) == 0
    assert main([*command, "--out", "there", "--on", two.address]) == 0
    places = [{str(place.relative_to(out)) for place in sweep(out / "variations" / "mutants")} for out in
              (Path("here"), Path("there"))]  # fmt: skip
    assert places[0] and places[0] == places[1]
    shutil.rmtree("here")
