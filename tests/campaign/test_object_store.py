"""Records in an object store that speaks S3: a server of this machine, and workers that put trials there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dask_cluster import DaskCluster
from short_scenario import SHORT
from streamgauge.campaign import CampaignResult, Progress, run
from streamgauge.campaign import remote as remote_module
from streamgauge.campaign.cluster import connected
from streamgauge.campaign.remote import Remote
from streamgauge.cli import main
from streamgauge.errors import CannotRunError, ScenarioError
from streamgauge.record import Record
from streamgauge.scenario import Scenario

TRIALS = 12
Make = Callable[..., Scenario]
Tell = Callable[[Progress], None]
KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    """A server, as what must be in the environment of whoever uses it."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "anyone",
        "AWS_SECRET_ACCESS_KEY": "anything",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    server.stop()


@pytest.fixture
def store(s3: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Its files, as fsspec has them."""
    import fsspec

    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    files = fsspec.filesystem("s3", skip_instance_cache=True, use_listings_cache=False)
    if not files.exists("bucket"):
        files.mkdir("bucket")
    return files


@pytest.fixture(scope="module")
def dask(s3: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    with DaskCluster(tmp_path_factory.mktemp("dask")) as cluster:
        for name in ("a", "b"):
            cluster.worker(name, env=s3)
        cluster.wait_for(2)
        yield cluster


def to(
    url: str, dask: DaskCluster, scenario: Scenario, local: Path, tell: Tell | None = None
) -> CampaignResult:
    remote = Remote(url)
    with remote.writing(), connected(dask.address) as cluster:
        cluster.expect(scenario, "sim", 0.3)
        cluster.prepare([scenario], {scenario.id: ["sim"]}, local, seed=1, remote=remote)
        return run(
            [scenario], {scenario.id: ["sim"]}, local, repeat=TRIALS, cluster=cluster, progress=tell
        )  # fmt: skip


def test_the_same_trials_as_in_a_folder_though_a_worker_dies(
    dask: DaskCluster, store: Any, s3: dict[str, str], make: Make, tmp_path: Path
) -> None:
    scenario = make()
    here = run([scenario], {scenario.id: ["sim"]}, tmp_path / "here", repeat=TRIALS)

    def kill_one(progress: Progress) -> None:
        if progress.done == TRIALS // 3:
            dask.workers["a"].kill()

    there = to("s3://bucket/killed", dask, scenario, tmp_path / "there", kill_one)
    assert dask.workers["a"].wait() == -signal.SIGKILL
    dask.worker("a", env=s3)
    assert [one.digest for one in there.outcomes] == [one.digest for one in here.outcomes]
    assert [one.readings for one in there.outcomes] == [one.readings for one in here.outcomes]
    # What is there is what the rows say, whole, and nothing else counts.
    assert Remote("s3://bucket/killed").fetch(tmp_path / "copy", large=True) == TRIALS
    for one in here.outcomes:
        copy = tmp_path / "copy" / one.job.directory.relative_to(tmp_path / "here")
        assert Record.open(copy).verify() == one.digest
    # A trial counts with its trial.json: without, it is run again.
    gone = store.glob("bucket/killed/*/*/seed=5/trial.json")
    store.rm_file(gone[0])
    again = to("s3://bucket/killed", dask, scenario, tmp_path / "again")
    assert [one.reused for one in again.outcomes] == [one.job.seed != 5 for one in again.outcomes]
    assert [one.readings for one in again.outcomes] == [one.readings for one in here.outcomes]
    assert store.exists(gone[0])


def test_the_last_object_of_a_trial_is_the_one_that_makes_it_count(
    store: Any, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever dies before has left nothing that counts."""
    from streamgauge.campaign.plan import jobs_for
    from streamgauge.campaign.work import tasks_of

    remote = Remote("s3://bucket/last")
    (job,) = jobs_for(make(), "sim", tmp_path, first_seed=1, repeat=1)
    place = job.directory.relative_to(tmp_path)

    def dies(*arguments: Any, **more: Any) -> None:
        raise OSError("the worker died")

    with remote.under_way():
        remote.perform(tasks_of("packets", {})(job), place, None)
        with monkeypatch.context() as patched, pytest.raises(CannotRunError, match="the worker died"):
            patched.setattr(remote._fs, "put_file", dies)
            remote.upload(place)
        assert store.exists(f"bucket/last/{place.as_posix()}/packets.parquet")
        assert remote.there([place]) == {}
        assert remote.fetch(tmp_path / "copy") == 0
        remote.upload(place)
        assert list(remote.there([place])) == [place]


def test_workers_leave_nothing_on_their_machine_however_they_end(
    store: Any, s3: dict[str, str], make: Make, tmp_path: Path
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    # As one leaves it that was killed while trials were under way.
    dead = temporary / "streamgauge-trials-dead"
    dead.mkdir()
    (dead / ".held").touch()
    os.utime(dead, (0, 0))
    with DaskCluster(tmp_path / "own") as own:
        worker = own.worker("a", env=s3 | {"TMPDIR": str(temporary)})
        own.wait_for(1)
        there = to("s3://bucket/nothing-left", own, make(), tmp_path / "there")
        assert len(there.outcomes) == TRIALS and all(one.valid for one in there.outcomes)
        worker.kill()
        worker.wait()
    assert not list(temporary.glob("streamgauge-*"))


def test_the_folder_of_a_process_at_work_is_not_anothers_to_remove(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    one, other = remote_module._Growing(), remote_module._Growing()
    with one.open():
        mine = one.folder
        os.utime(mine, (0, 0))
        with other.open():
            assert other.folder != mine and mine.is_dir()
        assert [path.name for path in tmp_path.iterdir()] == [mine.name]
        with one.open():
            assert one.folder == mine
        assert mine.is_dir()
    assert not list(tmp_path.iterdir())
    with one.open():
        assert one.folder == mine, "contents are known by their files"


def test_reports_and_verify_read_it(
    dask: DaskCluster, store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text(SHORT)
    url = "s3://bucket/read"
    command = ["run", "my.yaml", "--mode", "sim", "--repeat", "3", "--on", dask.address, "--out", url]
    assert main([*command, "--json"]) == 0
    trials = json.loads(capsys.readouterr().out)["trials"]
    assert trials[2]["directory"] == f"{url}/scenario=test%2Fshort/mode=sim/seed=3"
    assert trials[2]["flows"]["ftp"]["throughput_bps"] > 0
    assert main(command) == 0
    told = capsys.readouterr().out
    assert "3 trials (3 there already), 9 s of traffic in" in told and f"records in {url};" in told
    assert main(["report", url]) == 0
    assert "A download for three seconds" in Path("report.html").read_text(encoding="utf-8")
    capsys.readouterr()
    assert main(["verify", url]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{one['directory']}: {one['digest']}" for one in trials]
    damaged = "bucket/read/scenario=test%2Fshort/mode=sim/seed=2/packets.parquet"
    store.pipe_file(damaged, store.cat_file(damaged)[:-100])
    assert main(["verify", url]) == 3
    assert main(["report", "s3://bucket/nothing-here"]) == 3
    assert "s3://bucket/nothing-here: no records are there" in capsys.readouterr().err


def test_a_scenario_that_plays_a_clip_takes_its_content_along(
    dask: DaskCluster, store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    url = "s3://bucket/clip"
    command = ["reproduce", "darwin/lossy-2qt", "--mode", "sim", "--repeat", "2", "--keep", "metrics"]
    status = main([*command, "--on", dask.address, "--out", url])
    assert main([*command, "--out", "here"]) == status, capsys.readouterr().err
    mine = {path.name for path in Path("here/content").iterdir()}
    assert {path.rpartition("/")[2] for path in store.ls("bucket/clip/content")} == mine and mine


def test_another_experiments_trial_is_not_written_over(
    dask: DaskCluster, store: Any, make: Make, tmp_path: Path
) -> None:
    to("s3://bucket/mine", dask, make(), tmp_path / "one")
    before = {path: info["ETag"] for path, info in store.find("bucket/mine", detail=True).items()}
    other = make("path.down.rate=900 kbit/s")
    with pytest.raises(ScenarioError, match="a trial of another experiment") as said:
        to("s3://bucket/mine", dask, other, tmp_path / "two")
    assert "s3://bucket/mine/scenario=test%2Fshort/mode=sim/seed=" in str(said.value)
    assert {path: info["ETag"] for path, info in store.find("bucket/mine", detail=True).items()} == before


def test_a_url_that_another_campaign_writes(store: Any) -> None:
    url = "s3://bucket/busy"
    with (
        Remote(url).writing(),
        pytest.raises(CannotRunError, match="another campaign writes there: ") as said,
    ):
        Remote(url).writing().__enter__()
    assert f"process {os.getpid()}" in str(said.value) and f"delete {url}/.campaign.json" in str(said.value)
    with Remote(url).writing():
        pass
    # Of another machine's nobody here can tell whether it is at work; of one of ours that is gone, we can.
    held = {"host": "node-17", "pid": 1, "user": "eve", "since": "2026-01-01T00:00:00Z", "token": "x"}
    store.pipe_file("bucket/busy/.campaign.json", json.dumps(held).encode())
    with pytest.raises(CannotRunError, match="eve on node-17"):
        Remote(url).writing().__enter__()
    import platform

    held |= {"host": platform.node(), "pid": 4_194_304}
    store.pipe_file("bucket/busy/.campaign.json", json.dumps(held).encode())
    with Remote(url).writing():
        pass
    assert not store.exists("bucket/busy/.campaign.json")


def test_credentials_that_are_missing_here_or_on_a_worker(
    dask: DaskCluster,
    store: Any,
    s3: dict[str, str],
    make: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text(SHORT)
    bare = {name: value for name, value in s3.items() if name not in KEYS} | {"HOME": str(tmp_path)}
    command = ["run", "my.yaml", "--mode", "sim", "--on", dask.address, "--out", "s3://bucket/bare"]
    env = {name: value for name, value in os.environ.items() if name not in KEYS} | bare
    done = subprocess.run(
        [sys.executable, "-m", "streamgauge", *command], env=env, capture_output=True, text=True
    )
    assert done.returncode == 4
    assert done.stderr.startswith(
        "streamgauge: s3://bucket/bare: Unable to locate credentials; set AWS_ACCESS"
    )
    with DaskCluster(tmp_path / "own") as own:
        own.worker("poor", env=bare | dict.fromkeys(KEYS, ""))
        own.wait_for(1)
        assert main([*command[:5], own.address, "--out", "s3://bucket/bare"]) == 4
    told = capsys.readouterr().err
    assert "worker tcp://" in told and "s3://bucket/bare: Unable to locate credentials" in told
    assert not store.exists("bucket/bare")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s3://no-such-bucket/run-1", "The specified bucket does not exist; make the bucket first"),
        ("memory://run-1", "the memory of one process is seen by no other"),
        ("carrier-pigeon://run-1", "fsspec knows no 'carrier-pigeon://'"),
        ("gs://bucket/run-1", "the package that reaches it is not installed on this machine"),
    ],
)
def test_urls_that_cannot_be(
    url: str, said: str, store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Before the scheduler is even asked."""
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text(SHORT)
    assert main(["run", "my.yaml", "--mode", "sim", "--on", "tcp://127.0.0.1:1", "--out", url]) in (3, 4)
    told = capsys.readouterr().err
    assert f"{url}: " in told and said in told
    assert len(told.splitlines()) == 1


def test_a_store_that_is_not_there(s3: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text(SHORT)
    env = os.environ | s3 | {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"}
    command = ["run", "my.yaml", "--mode", "sim", "--on", "tcp://127.0.0.1:1", "--out", "s3://bucket/run-1"]
    done = subprocess.run(
        [sys.executable, "-m", "streamgauge", *command],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 4
    assert "see that the store is up, and that its address (AWS_ENDPOINT_URL) is right" in done.stderr


def test_a_url_wants_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text(SHORT)
    assert main(["run", "my.yaml", "--mode", "sim", "--out", "s3://bucket/run-1"]) == 3
    assert "Add --on" in capsys.readouterr().err
    # A folder's URL is that folder.
    assert main(["run", "my.yaml", "--mode", "sim", "--repeat", "1", "--out", f"file://{tmp_path}/runs"]) == 0
    assert (tmp_path / "runs" / "scenario=test%2Fshort" / "mode=sim" / "seed=1" / "trial.json").exists()
