"""What may be wrong with a cluster: one error before anything starts, with the worker and the remedy."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dask_cluster import DaskCluster
from short_scenario import SHORT
from streamgauge.campaign import run, sweep
from streamgauge.campaign.cluster import connected
from streamgauge.cli import main
from streamgauge.errors import CannotRunError
from streamgauge.scenario import Scenario, from_text

Make = Callable[..., Scenario]

OTHER_VERSION = "import streamgauge\nstreamgauge.__version__ = '0.0.7'\n"
OTHER_MODEL = "from streamgauge import _native\n_native.MODEL_VERSION = 3\n"
LATE = """\
import time, types
from streamgauge.campaign.cluster import on_worker
on_worker.time = types.SimpleNamespace(time=lambda: time.time() + 90, monotonic=time.monotonic)
"""
UNABLE = """\
from streamgauge.campaign.cluster import on_worker
on_worker.why_not = lambda mode, way=None: "no namespaces here; ask your administrator"
"""


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[DaskCluster]:
    with DaskCluster(tmp_path / "dask") as cluster:
        yield cluster


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text(SHORT)
    return "my.yaml"


def preload(tmp_path: Path, text: str) -> list[str]:
    """Options of a worker that begins with that."""
    (tmp_path / "preload.py").write_text(text)
    return ["--preload", str(tmp_path / "preload.py")]


def refused(capsys: Any, *arguments: str, status: int = 4) -> str:
    """What is said instead of running."""
    capsys.readouterr()
    assert main(["run", *arguments, "--mode", "sim"]) == status
    told: str = capsys.readouterr().err
    assert not list(sweep(Path("runs")))
    return told


def test_a_scheduler_that_is_not_there(file: str, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from streamgauge.campaign.cluster import connect

    monkeypatch.setattr(connect, "_ANSWER_S", 0.5)
    told = refused(capsys, file, "--on", "tcp://127.0.0.1:9")
    assert told.startswith(
        "streamgauge: --on tcp://127.0.0.1:9: no Dask scheduler answers at tcp://127.0.0.1:9 ("
    )
    assert told.endswith("Start one there with 'dask scheduler', and open its port in the firewall "
                         "(docs/cluster.md).\n")  # fmt: skip
    assert len(told.splitlines()) == 1


def test_dask_that_is_not_installed(file: str, tmp_path: Path) -> None:
    (tmp_path / "distributed.py").write_text("raise ImportError('not here')\n")
    done = subprocess.run(
        [sys.executable, "-m", "streamgauge", "run", file, "--on", "tcp://127.0.0.1:9"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 4
    said = "streamgauge: --on tcp://127.0.0.1:9: Dask is not installed; pip install 'streamgauge[cluster]'.\n"
    assert done.stderr == said


@pytest.mark.parametrize(
    ("on", "text", "said"),
    [
        ("nowhere", None, "--on nowhere: neither an address such as tcp://scheduler:8786, nor a file"),
        ("none.yaml", None, "none.yaml: there is no such file"),
        ("list.yaml", "[1, 2]", "list.yaml: names no scheduler (it wants 'scheduler-address: tcp://"),
        ("torn.json", '{"address": ', "torn.json: is neither YAML nor JSON"),
        ("dask", None, "--on dask: Dask's configuration names no scheduler; set scheduler-address in"),
    ],
)
def test_what_names_no_scheduler(on: str, text: str | None, said: str, file: str, capsys: Any) -> None:
    if text is not None:
        Path(on).write_text(text)
    assert said in refused(capsys, file, "--on", on, status=3)


def test_a_scheduler_without_workers(
    scheduler: DaskCluster, file: str, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from streamgauge.campaign.cluster import workers

    monkeypatch.setattr(workers, "_WORKERS_S", 0.5)
    told = refused(capsys, file, "--on", scheduler.address)
    assert f"the Dask scheduler at {scheduler.address} has no worker. Start some with" in told


@pytest.mark.parametrize(("text", "has"), [(OTHER_VERSION, "StreamGauge 0.0.7"), (OTHER_MODEL, "(model 3,")])
def test_another_version_on_a_worker(
    text: str, has: str, scheduler: DaskCluster, file: str, tmp_path: Path, capsys: Any
) -> None:
    scheduler.worker("same")
    scheduler.worker("other", *preload(tmp_path, text))
    scheduler.wait_for(2)
    told = refused(capsys, file, "--on", scheduler.address)
    assert told.count("worker tcp://") == 1
    assert has in told and "install the same" in told


def test_a_worker_without_streamgauge(scheduler: DaskCluster, file: str, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "streamgauge.py").write_text("")
    scheduler.worker("bare", env={"PYTHONPATH": str(tmp_path / "path")})
    scheduler.wait_for(1)
    told = refused(capsys, file, "--on", scheduler.address)
    assert "worker tcp://" in told and "has no StreamGauge, or another version" in told


def test_workers_of_another_version_that_come_later_get_nothing(
    scheduler: DaskCluster, make: Make, tmp_path: Path
) -> None:
    """Neither one that can say so nor one that has no StreamGauge at all keeps the others from their work."""
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "streamgauge.py").write_text("")
    scheduler.worker("good")
    scheduler.wait_for(1)
    scenario, out = make(), tmp_path / "out"
    with connected(scheduler.address) as cluster:
        cluster.prepare([scenario], {scenario.id: ["sim"]}, out, seed=1)
        scheduler.worker("old", *preload(tmp_path, OTHER_VERSION))
        scheduler.worker("bare", env={"PYTHONPATH": str(tmp_path / "path")})
        scheduler.wait_for(3)
        result = run([scenario], {scenario.id: ["sim"]}, out, repeat=30, keep="metrics", cluster=cluster)
        assert len(result.outcomes) == 30 and all(outcome.valid for outcome in result.outcomes)
        told = sorted(
            said.partition(", which has come since, gets no trial: it ")[2] for said in cluster.warnings
        )
        assert len(told) == 2, cluster.warnings
        assert told[0].startswith("has StreamGauge 0.0.7") and told[1].startswith("has no StreamGauge"), told


def test_a_clock_that_is_apart_is_told_and_no_error(
    scheduler: DaskCluster, file: str, tmp_path: Path, capsys: Any
) -> None:
    scheduler.worker("late", *preload(tmp_path, LATE))
    scheduler.wait_for(1)
    assert main(["run", file, "--mode", "sim", "--repeat", "2", "--on", scheduler.address]) == 0
    told = capsys.readouterr().err
    assert "warning: the clock of " in told
    (line,) = (line for line in told.splitlines() if "the clock of " in line)
    (apart,) = (word for word in line.split() if word.isdigit())
    assert 80 <= int(apart) <= 90, "at least what is certain, and never more than it is"


@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="needs Linux's /proc")
def test_a_worker_that_does_not_see_the_folder(scheduler: DaskCluster, file: str, capsys: Any) -> None:
    """A path that is another place for each process, as one that is not shared is for each machine."""
    scheduler.worker("elsewhere")
    scheduler.wait_for(1)
    Path("runs").mkdir()
    out = "/proc/self/cwd/runs"
    told = refused(capsys, file, "--on", scheduler.address, "--out", out)
    assert f"does not see the campaign's folder {out} (No such file or directory); share {out}" in told
    (scheduler.folder / "runs").mkdir()
    told = refused(capsys, file, "--on", scheduler.address, "--out", out)
    assert f"does not see the campaign's folder {out}" in told
    assert not list(Path("runs").iterdir()), "the question goes away again"


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")
def test_a_worker_without_the_clip(scheduler: DaskCluster, tmp_path: Path, capsys: Any) -> None:
    scheduler.worker("elsewhere")
    scheduler.wait_for(1)
    clip = ["-f", "lavfi", "-i", "testsrc2=size=160x120:rate=10:duration=2", "-pix_fmt", "yuv420p"]
    subprocess.run(
        ["ffmpeg", "-nostdin", "-loglevel", "error", *clip, str(tmp_path / "mine.mp4")], check=True
    )
    text = SHORT.replace("traffic: bulk, congestion_control: reno, parameters: {receive_window: 16 KiB}",
                         "system: rtp, clip: {file: /proc/self/cwd/mine.mp4, rate: 100 kbit/s}")  # fmt: skip
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        scenario = from_text(text)[0]
        modes: Any = {scenario.id: ["sim"]}
        with connected(scheduler.address) as cluster:
            with pytest.raises(CannotRunError, match=r"mine\.mp4") as said:
                cluster.prepare([scenario], modes, tmp_path / "out", seed=1)
            assert "worker tcp://" in str(said.value)
            assert "the same files at the same paths on every worker" in str(said.value)
            # Another film under the same name is another plan.
            clip[3] = clip[3].replace("testsrc2", "testsrc")
            other = str(scheduler.folder / "mine.mp4")
            subprocess.run(["ffmpeg", "-nostdin", "-loglevel", "error", *clip, other], check=True)
            with pytest.raises(CannotRunError, match="makes another plan of test/short than here"):
                cluster.prepare([scenario], modes, tmp_path / "out", seed=1)
            shutil.copy(tmp_path / "mine.mp4", other)
            cluster.prepare([scenario], modes, tmp_path / "out", seed=1)
    finally:
        os.chdir(here)


def test_emu_wants_a_worker_that_is_offered_for_it(
    scheduler: DaskCluster, tmp_path: Path, make: Make, capsys: Any
) -> None:
    scheduler.worker("plain")
    scheduler.wait_for(1)
    scenario = make()
    with connected(scheduler.address) as cluster:
        assert cluster.why_not("sim") is None
        assert "no worker of the cluster" in str(cluster.why_not("emu"))
        with pytest.raises(CannotRunError, match=f"start one with 'streamgauge worker {scheduler.address}'"):
            cluster.prepare([scenario], {scenario.id: ["emu"]}, tmp_path / "out", seed=1)
    scheduler.worker("proud", "--resources", "emu=1", *preload(tmp_path, UNABLE))
    scheduler.wait_for(2)
    with connected(scheduler.address) as cluster:
        assert cluster.why_not("emu") is None
        with pytest.raises(CannotRunError, match="cannot run emu, though it has the resource 'emu'") as said:
            cluster.prepare([scenario], {scenario.id: ["emu"]}, tmp_path / "out", seed=1)
        assert "no namespaces here; ask your administrator" in str(said.value)
        assert str(said.value).count("worker tcp://") == 1
        # Who runs sim alone need not care.
        cluster.prepare([scenario], {scenario.id: ["sim"]}, tmp_path / "out", seed=1)
    capsys.readouterr()
    assert main(["run", "hessler/ftp-no", "--on", scheduler.address, "--jobs", "2"]) == 3
    assert "--jobs is for this machine" in capsys.readouterr().err


def test_streamgauge_worker_brings_as_many_processes_as_are_asked_for(
    scheduler: DaskCluster, tmp_path: Path
) -> None:
    command = [
        sys.executable,
        "-m",
        "streamgauge",
        "worker",
        str(scheduler.file),
        "--processes",
        "2",
        "--no-emu",
    ]
    process = subprocess.Popen(command, stderr=(tmp_path / "log").open("wb"), cwd=tmp_path)
    try:
        scheduler.wait_for(2)
        with connected(scheduler.address) as cluster:
            assert "no worker of the cluster" in str(cluster.why_not("emu"))
            assert cluster.threads("sim") == 2
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 130
    assert f"2 workers for {scheduler.address}; sim no emu" in (tmp_path / "log").read_text()
    assert scheduler.workers_there() == 0, "none stays"


@pytest.mark.emu
def test_emu_trials_take_turns_on_the_worker_that_offers_them(
    scheduler: DaskCluster, make: Make, tmp_path: Path
) -> None:
    """Though it has threads for more, and there is another worker."""
    recorded = preload(
        tmp_path,
        "import os, pathlib\nfrom streamgauge.campaign.cluster import on_worker\n"
        "def perform(task, really=on_worker.perform, **more):\n"
        "    with open(os.environ['LOG'], 'a') as log:\n"
        "        log.write('begun\\n')\n        log.flush()\n"
        "        try:\n            return really(task, **more)\n"
        "        finally:\n            log.write('ended\\n')\n"
        "if on_worker.perform.__module__ != __name__:\n    on_worker.perform = perform\n",
    )
    scheduler.worker("plain", *recorded, env={"LOG": str(tmp_path / "plain.log")})
    scheduler.worker(
        "able", "--nthreads", "2", "--resources", "emu=1", *recorded, env={"LOG": str(tmp_path / "able.log")}
    )
    scheduler.wait_for(2)
    scenario = make()
    with connected(scheduler.address) as cluster:
        cluster.prepare([scenario], {scenario.id: ["emu"]}, tmp_path / "out", seed=1)
        result = run([scenario], {scenario.id: ["emu"]}, tmp_path / "out", repeat=2, cluster=cluster)
    assert [outcome.job.mode for outcome in result.outcomes] == ["emu", "emu"]
    assert all(outcome.digest for outcome in result.outcomes)
    assert len(list(sweep(tmp_path / "out"))) == 2
    assert not (tmp_path / "plain.log").exists()
    lines = (tmp_path / "able.log").read_text().split()
    assert lines == ["begun", "ended"] * (len(lines) // 2) and len(lines) >= 4
