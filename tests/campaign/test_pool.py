"""Trials in processes: the same as in threads, and nothing lost or half there whatever is killed."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pickle
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from short_scenario import SHORT
from streamgauge.campaign import CampaignResult, run
from streamgauge.campaign.index import FILE
from streamgauge.campaign.layout import LOCK, sweep
from streamgauge.campaign.pool import Pool, WorkerDied, started_ahead
from streamgauge.campaign.work import as_sent, tasks_of
from streamgauge.errors import CannotRunError, ScenarioError
from streamgauge.record import Record
from streamgauge.scenario import Scenario

Make = Callable[..., Scenario]
run_module = importlib.import_module("streamgauge.campaign.run")
pool_module = importlib.import_module("streamgauge.campaign.pool")
index_module = importlib.import_module("streamgauge.campaign.index")

# Runs a campaign in processes, and says with a line each that it has begun, how far it is, and how it ended.
CAMPAIGN = """\
import importlib, sys
from pathlib import Path
from streamgauge.campaign import run
from streamgauge.scenario import load_file
importlib.import_module("streamgauge.campaign.run")._POOL_FROM = 1
scenario = load_file(Path(sys.argv[1]))[0]
print("begun", flush=True)
told = lambda progress: print(progress.done, flush=True)
out, repeat = Path(sys.argv[2]), int(sys.argv[3])
result = run([scenario], {scenario.id: ["sim"]}, out, repeat=repeat, keep="events", progress=told)
print("interrupted" if result.interrupted else "done", len(result.outcomes), flush=True)
"""


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few trials there are."""
    monkeypatch.setattr(run_module, "_POOL_FROM", 1)


def simulate(scenario: Scenario, out: Path, **options: Any) -> CampaignResult:
    return run([scenario], {scenario.id: ["sim"]}, out, **options)


def digests(result: CampaignResult) -> list[str | None]:
    return [outcome.digest for outcome in result.outcomes]


def whole(out: Path) -> list[Path]:
    """The trials that count, each verified to be what was written."""
    found = list(sweep(out))
    for directory in found:
        Record.open(directory).verify()
    return found


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    return False


def test_processes_and_threads_leave_the_same(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = simulate(make(), tmp_path / "threads")
    monkeypatch.setattr(run_module, "_POOL_FROM", 1)
    apart = simulate(make(), tmp_path / "processes")
    assert digests(apart) == digests(threads) and None not in digests(apart)
    assert [one.readings for one in apart.outcomes] == [one.readings for one in threads.outcomes]
    assert apart.outcomes[0].readings.keys() == {"throughput.ftp"}
    assert [check.to_json() for check in apart.checks] == [check.to_json() for check in threads.checks]
    assert all(one.reused for one in simulate(make(), tmp_path / "processes").outcomes)


def test_processes_that_were_started_ahead_are_the_pools(make: Make, tmp_path: Path, processes: None) -> None:
    with started_ahead(2):
        ahead = {one._process.pid for one in pool_module._ahead}
        assert len(ahead) == 2 and all(map(alive, ahead))
        with Pool() as pool:
            assert {one._process.pid for one in pool._all} == ahead and not pool_module._ahead
        assert not any(map(alive, ahead))
    with started_ahead(1):
        assert len(simulate(make(), tmp_path).outcomes) == 4 and not pool_module._ahead


def test_processes_that_nobody_wants_end() -> None:
    with pytest.raises(ScenarioError), started_ahead(2):
        ahead = [one._process.pid for one in pool_module._ahead]
        raise ScenarioError("there is no such thing")
    assert not any(map(alive, ahead)) and not pool_module._ahead


def test_an_error_in_a_process_is_the_campaigns(make: Make, tmp_path: Path) -> None:
    """A disk that is full while a process writes."""
    job = simulate(make(), tmp_path / "out", repeat=1).outcomes[0].job
    (tmp_path / "file").touch()
    task = tasks_of("packets", {})(replace(job, directory=tmp_path / "file/b/c/seed=1"))
    with Pool() as pool:
        with pytest.raises(CannotRunError, match=r"cannot write .*/file/b/c/seed=1: Not a directory"):
            pool.perform(task)
        # The process lives on.
        row = pool.perform(tasks_of("packets", {})(replace(job, directory=tmp_path / "a/b/c/seed=1")))
    assert row.digest is not None and Record.open(tmp_path / "a/b/c/seed=1").verify() == row.digest
    error = ScenarioError("is no good", file="my.yaml", line=3, key="flows", hint="see above")
    sent = pickle.loads(pickle.dumps(as_sent(error)))
    assert str(sent) == str(error) and type(sent) is ScenarioError


def test_a_trial_that_kills_every_process_ends_the_campaign_in_a_sentence(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = simulate(make(), tmp_path, repeat=1).outcomes[0].job

    def die(self: Any, task: Any) -> Any:
        os.kill(self._process.pid, signal.SIGKILL)
        raise EOFError

    monkeypatch.setattr(pool_module._Process, "ask", die)
    with (
        Pool() as pool,
        pytest.raises(WorkerDied, match="3 processes in turn were killed by SIGKILL") as raised,
    ):
        pool.perform(tasks_of("packets", {})(job))
    assert raised.value.exit_status == 4


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize(("kills", "repeat"), [(15, 60), pytest.param(85, 120, marks=pytest.mark.long)])
def test_processes_that_are_killed_lose_no_trial(
    kills: int, repeat: int, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many kills at random moments, in the course of one campaign."""
    monkeypatch.setattr(pool_module, "_TRIES", 1000)
    draw, killed, over = random.Random(12), [], threading.Event()
    started: list[Any] = []
    begin = pool_module._Process.__init__

    def noted(self: Any) -> None:
        begin(self)
        started.append(self._process)

    monkeypatch.setattr(pool_module._Process, "__init__", noted)

    def kill() -> None:
        # While a process starts there is little to lose: most die within trials.
        while not over.wait(draw.choice((0.02, 0.3, 0.6))):
            running = [one for one in started if one.poll() is None]
            if running and len(killed) < kills:
                victim = draw.choice(running)
                os.kill(victim.pid, signal.SIGKILL)
                killed.append(victim.pid)

    killer = threading.Thread(target=kill)
    killer.start()
    found: list[CampaignResult] = []
    try:
        # Until so many have died; what lies there is run again, for it is what the kills are about.
        while len(killed) < kills:
            found.append(simulate(make(), tmp_path / str(len(found)), repeat=repeat, keep="events"))
    finally:
        over.set()
        killer.join()
    once = simulate(make(), tmp_path / "once", repeat=repeat, keep="events")
    for place, result in enumerate(found):
        assert digests(result) == digests(once)
        assert len(whole(tmp_path / str(place))) == repeat
        assert not list((tmp_path / str(place)).rglob("*.partial")) or result is not None


@pytest.mark.parametrize("least", [5, pytest.param(15, marks=pytest.mark.long)])
def test_a_campaign_that_is_killed_goes_on_from_there(least: int, make: Make, tmp_path: Path) -> None:
    """So many kills of the campaign itself at random moments, and more where it did not come far."""
    draw, repeat, out = random.Random(13), 400, tmp_path / "out"
    file = tmp_path / "short.yaml"
    from short_scenario import SHORT  # type: ignore[import-not-found]

    file.write_text(SHORT)
    command = [sys.executable, "-c", CAMPAIGN, str(file), str(out), str(repeat)]
    kept, kills = 0, 0
    while kills < least or (kept <= 15 and kills < 15):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as campaign:
            assert campaign.stdout is not None and campaign.stdout.readline() == "begun\n"
            time.sleep(draw.uniform(0.0, 2.0))
            children = _children(campaign.pid)
            campaign.kill()
            kills += 1
        for pid in children:
            _gone(pid)
        now = len(list(sweep(out)))
        assert now >= kept, "what was there stays"
        kept = now
        if kept >= repeat - 60:
            repeat += 400
            command[-1] = str(repeat)
    last = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    assert last.stdout.splitlines()[-1] == f"done {repeat}"
    assert len(whole(out)) == repeat and not list(out.rglob("*.partial")) and not (out / LOCK).exists()
    assert kept > 15, "some trials were done between the kills"
    # The same as without: some of them suffice.
    (scenario,) = [make()]
    once = simulate(scenario, tmp_path / "once", repeat=20, keep="events")
    again = simulate(scenario, out, repeat=20, keep="events")
    assert digests(again) == digests(once) and all(outcome.reused for outcome in again.outcomes)


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in found for child in file.read_text().split()]


def _gone(pid: int) -> None:
    for _ in range(300):
        if not alive(pid):
            return
        time.sleep(0.1)
    raise AssertionError(f"process {pid} outlives its campaign")


def test_ctrl_c_keeps_what_is_done(make: Make, tmp_path: Path) -> None:

    file, out = tmp_path / "short.yaml", tmp_path / "out"
    file.write_text(SHORT)
    command = [sys.executable, "-c", CAMPAIGN, str(file), str(out), "3000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, process_group=0) as campaign:
        assert campaign.stdout is not None
        for line in campaign.stdout:
            if line.strip().isdigit() and int(line) >= 10:
                break
        os.killpg(campaign.pid, signal.SIGINT)
        rest = campaign.stdout.read().splitlines()
    done = len(whole(out))
    assert rest[-1] == f"interrupted {done}" and campaign.returncode == 0
    assert 10 <= done < 3000 and not list(out.rglob("*.partial")) and not (out / LOCK).exists()
    again = simulate(make(), out, repeat=done, keep="events")
    assert sum(outcome.reused for outcome in again.outcomes) >= done - 2, "in order, but for those under way"


def test_one_campaign_at_a_time_writes_a_scenario(make: Make, tmp_path: Path) -> None:

    file, out = tmp_path / "short.yaml", tmp_path / "out"
    file.write_text(SHORT)
    command = [sys.executable, "-c", CAMPAIGN, str(file), str(out), "3000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as campaign:
        assert campaign.stdout is not None and campaign.stdout.readline() == "begun\n"
        campaign.stdout.readline()
        said = rf"another campaign \(process {campaign.pid}\) writes {out}/scenario=test%2Fshort/mode=sim; "
        with pytest.raises(CannotRunError, match=said):
            simulate(make(), out, repeat=1)
        other = make().model_copy(update={"id": "test/other"})
        assert all(outcome.valid for outcome in simulate(other, out, repeat=1).outcomes), "beside it"
        assert (out / LOCK).exists(), "it is another's still"
        campaign.kill()
    assert all(outcome.valid for outcome in simulate(make(), out, repeat=1).outcomes), "the kernel freed it"


def test_an_index_that_is_damaged_or_gone_is_made_anew(make: Make, tmp_path: Path) -> None:
    first = simulate(make(), tmp_path)
    for damage in (b"", b"no database at all" * 500):
        (tmp_path / FILE).write_bytes(damage)
        again = simulate(make(), tmp_path)
        assert digests(again) == digests(first) and all(one.reused for one in again.outcomes)
        assert again.outcomes[0].readings == first.outcomes[0].readings
    (tmp_path / FILE).unlink()
    assert all(one.reused for one in simulate(make(), tmp_path).outcomes)


def test_trials_are_trusted_unless_they_are_to_be_verified(make: Make, tmp_path: Path) -> None:
    first = simulate(make(), tmp_path, repeat=2)
    packets = first.outcomes[1].job.directory / "packets.parquet"
    whole_file = packets.read_bytes()
    packets.write_bytes(whole_file[:2000])
    assert [one.reused for one in simulate(make(), tmp_path, repeat=2).outcomes] == [True, True]
    verified = simulate(make(), tmp_path, repeat=2, verify=True)
    assert [one.reused for one in verified.outcomes] == [True, False]
    assert packets.read_bytes() == whole_file and digests(verified) == digests(first)


def test_a_trial_that_another_has_replaced_is_not_taken_from_the_index(make: Make, tmp_path: Path) -> None:
    first = simulate(make(), tmp_path, repeat=1).outcomes[0]
    file = first.job.directory / "trial.json"
    trial = json.loads(file.read_text())
    file.write_text(json.dumps(trial | {"resume_key": "another"}))
    again = simulate(make(), tmp_path, repeat=1)
    assert not again.outcomes[0].reused and len(again.set_aside) == 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(disk)]
    if not hasattr(os, "geteuid") or os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root may mount a small disk")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.usefixtures("processes")
def test_a_full_disk_ends_the_campaign_and_loses_nothing(make: Make, small_disk: Path) -> None:
    out = small_disk / "out"
    with pytest.raises(CannotRunError, match=r"cannot write .*: No space left on device; free some space"):
        simulate(make(), out, repeat=200, keep="packets")
    done = len(whole(out))
    assert done and not list(out.rglob("*.partial")) and not (out / LOCK).exists()
    subprocess.run(["mount", "-o", "remount,size=50m", str(small_disk)], check=True)
    again = simulate(make(), out, repeat=done + 5, keep="packets")
    assert sum(outcome.reused for outcome in again.outcomes) >= done - 2
    assert all(outcome.valid for outcome in again.outcomes)


def test_a_row_of_the_index_is_worth_what_it_stands_for(make: Make, tmp_path: Path) -> None:
    first = simulate(make(), tmp_path, repeat=3, keep="metrics")
    (first.outcomes[0].job.directory / "metrics.parquet").unlink()
    with sqlite3.connect(tmp_path / FILE) as index:
        index.execute("update trials set trial = '{' where place like '%seed=2'")
    again = simulate(make(), tmp_path, repeat=3, keep="metrics")
    assert [outcome.reused for outcome in again.outcomes] == [False, True, True]
    assert digests(again) == digests(first) and None not in [outcome.metrics for outcome in again.outcomes]


def test_an_edited_row_of_the_index_is_read_anew(make: Make, tmp_path: Path) -> None:
    """`verify` does not see it, and a run takes its verdict from it."""
    first = simulate(make(), tmp_path, repeat=2)
    with sqlite3.connect(tmp_path / FILE) as index:
        index.execute("update trials set trial = replace(trial, 'throughput.ftp\":', 'throughput.ftp\":9')")
    again = simulate(make(), tmp_path, repeat=2)
    assert [one.readings for one in again.outcomes] == [one.readings for one in first.outcomes]
    assert all(one.reused for one in again.outcomes)


def test_readings_of_another_version_are_taken_anew(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = simulate(make(), tmp_path, repeat=2)
    with sqlite3.connect(tmp_path / FILE) as index:
        for place, mtime_ns, size, trial in list(index.execute("select * from trials")):
            text = trial.rpartition(" ")[0].replace('throughput.ftp":', 'throughput.ftp":9')
            assert 'throughput.ftp":9' in text
            row = f"{text} {index_module._digest(place, (mtime_ns, size), text)}"
            index.execute("update trials set trial = ? where place = ?", (row, place))
    wrong = simulate(make(), tmp_path, repeat=2).outcomes
    assert wrong[0].readings != first.outcomes[0].readings, "the index is trusted"
    another = index_module._version() + 1
    monkeypatch.setattr(index_module, "_version", lambda: another)
    again = simulate(make(), tmp_path, repeat=2).outcomes
    assert [one.readings for one in again] == [one.readings for one in first.outcomes]
    assert all(one.reused for one in again)


def test_nothing_that_has_ended_is_forgotten_by_ctrl_c(tmp_path: Path) -> None:
    """However often and whenever it comes."""
    draw, counted = random.Random(14), 0
    file = tmp_path / "short.yaml"
    file.write_text(SHORT)
    for turn in range(3):
        out = tmp_path / str(turn)
        command = [sys.executable, "-c", CAMPAIGN, str(file), str(out), "4000"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as campaign:
            assert campaign.stdout is not None
            while campaign.stdout.readline() != "3\n":
                pass
            for _ in range(draw.randint(1, 3)):
                time.sleep(draw.uniform(0.0, 0.25))
                campaign.send_signal(signal.SIGINT)
            rest = campaign.stdout.read().splitlines()
        # One that comes before or after the trials is Python's own.
        if rest and rest[-1].startswith("interrupted"):
            counted += 1
            assert rest[-1] == f"interrupted {len(whole(out))}"
            assert not list(out.rglob("*.partial"))
    assert counted
