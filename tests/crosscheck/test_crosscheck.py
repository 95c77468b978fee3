"""The whole of it, sim against sim: the same controller is equivalent, another one is not."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from streamgauge.campaign import EmuSettings, Job
from streamgauge.campaign.stored import SCHEMA
from streamgauge.crosscheck import TCP, CrosscheckRequest, crosscheck
from streamgauge.crosscheck.cases import cases
from streamgauge.crosscheck.run import overall, ran_on, select, with_trials
from streamgauge.crosscheck.trials import Bench, CaseRuns
from streamgauge.errors import ScenarioError
from streamgauge.scenario import lower


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "streamgauge", "crosscheck", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=300, check=False)


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("crosscheck")
    return crosscheck(CrosscheckRequest(out=out, patterns=["reno/1m-75kb"], quick=True, reference="sim"))


def test_the_simulator_is_equivalent_to_itself(document: dict[str, Any]) -> None:
    verdicts = [row["verdict"] for row in document["rows"]]
    assert len(verdicts) > 12
    # Three runs leave a row open now and then; none may differ.
    assert verdicts.count("equivalent") >= 0.8 * len(verdicts)
    assert set(verdicts) <= {"equivalent", "inconclusive"}
    assert document["cases"][0]["valid"] == {"sim": 6, "emu": 3}


def test_reno_swapped_for_cubic_is_rejected(document: dict[str, Any]) -> None:
    (mutant,) = [one for one in document["mutants"] if one["name"] == "reno-is-cubic"]
    assert mutant["rejected"] is True
    assert {row["metric"] for row in mutant["cases"]["reno/1m-75kb"]} >= {"rtt_p50_s", "window_p50_packets"}


def test_every_mutant_is_rejected(tmp_path: Path) -> None:
    wanted = ["reno/10m-25kb", "cubic/1m-75kb"]
    found = crosscheck(CrosscheckRequest(out=tmp_path, patterns=wanted, quick=True, reference="sim"))
    assert {one["name"]: one["rejected"] for one in found["mutants"]} == {
        "reno-is-cubic": True,
        "no-delayed-ack": True,
        "no-hystart": True,
    }
    (delayed,) = [one for one in found["mutants"] if one["name"] == "no-delayed-ack"]
    assert "acks_per_packet" in {row["metric"] for row in delayed["cases"]["reno/10m-25kb"]}
    (hystart,) = [one for one in found["mutants"] if one["name"] == "no-hystart"]
    assert "start_losses" in {row["metric"] for row in hystart["cases"]["cubic/1m-75kb"]}


def test_rows_say_what_they_compare(document: dict[str, Any]) -> None:
    for row in document["rows"]:
        assert {"case", "metric", "sim", "emu", "spread", "verdict", "margin", "n_sim", "n_emu"} <= set(row)
    json.dumps(document, allow_nan=False)


def test_json_and_resuming(tmp_path: Path) -> None:
    arguments = ("tcp", "--quick", "--case", "reno-short/10m*", "--against", "sim", "--json", "--out", "here")
    first = run(*arguments, cwd=tmp_path)
    data = json.loads(first.stdout)
    assert data["schema"] == "streamgauge.crosscheck/1"
    metrics = {row["metric"] for row in data["rows"]}
    assert {f"reno_{size}.completion_s" for size in ("14kb", "100kb", "1mb")} <= metrics
    assert data["mutants"] == []
    assert json.loads((tmp_path / "here" / "crosscheck.json").read_text()) == data
    times = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("trial.json")}
    assert times
    # Its quantities are kept beside the metrics, whose schema may move on.
    kept = list(tmp_path.rglob("metrics.parquet"))
    assert kept
    for file in kept:
        file.write_bytes(file.read_bytes().replace(SCHEMA.encode(), SCHEMA[:-1].encode() + b"0"))
    again = json.loads(run(*arguments, cwd=tmp_path).stdout)
    assert again["rows"] == data["rows"]
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("trial.json")} == times
    assert not list(tmp_path.rglob("packets.parquet")), "packets go when their quantities are taken"


def test_ctrl_c_keeps_what_finished(tmp_path: Path) -> None:
    arguments = ["tcp", "--quick", "--case", "*/100m-*", "--against", "sim", "--json", "--out", "here"]
    command = [sys.executable, "-m", "streamgauge", "crosscheck", *arguments]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.rglob("crosscheck.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "interrupted" in err and "the same command resumes" in err
    document = json.loads(out)
    assert document["interrupted"] is True and document["verdict"] != "pass"
    kept = list(tmp_path.rglob("trial.json"))
    assert kept
    assert not list(tmp_path.rglob("*.partial"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("udp",), "udp"),
        (("tcp", "--case", "renno/10m-25kb"), "did you mean 'reno/10m-25kb'?"),
        (("tcp", "--with", "ns2"), "ns3"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 3
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_every_case_can_be_planned_and_has_its_own_id() -> None:
    for quick in (False, True):
        everything = cases(quick=quick)
        assert len({case.id for case in everything}) == len(everything)
        for case in everything:
            plan = None if case.scenario.unsupported("sim") else lower(case.scenario, "sim", 1)
            assert plan is None or plan["duration"] >= case.window_ns[1]
    with pytest.raises(ScenarioError, match="no case"):
        select(TCP, ["nothing*"])


def test_short_trials_never_pass_for_long_ones() -> None:
    long = {case.id: case.scenario.id for case in cases() if case.kind != "short"}
    short = {case.id: case.scenario.id for case in cases(quick=True)}
    assert not set(long.values()) & set(short.values())


def test_trials_asked_for_and_as_many_more_of_mixes() -> None:
    wanted = with_trials(select(TCP, ["reno/10m-25kb", "cubic-bbr/10m-25kb"]), 3)
    assert {case.id: (case.emu, case.sim) for case in wanted} == {
        "reno/10m-25kb": (3, 12),
        "cubic-bbr/10m-25kb": (12, 24),
    }


@pytest.mark.parametrize(("way", "at_once"), [("root", {False: 4, True: 1}), ("virtual:2", {False: 4})])
def test_trials_at_high_rates_run_alone_but_in_virtual_machines(
    way: str, at_once: dict[bool, int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: dict[bool, int] = {}

    def run_jobs(jobs: list[Job], *, emu: EmuSettings, **_: Any) -> tuple[list[Any], bool]:
        asked[all("/100m-" in job.scenario.id for job in jobs)] = emu.jobs
        return [], False

    monkeypatch.setattr("streamgauge.crosscheck.trials.run_jobs", run_jobs)
    Bench(TCP, tmp_path, EmuSettings(way=way, jobs=4)).run(select(TCP, ["reno/1m-75kb", "reno/100m-1pct"]))
    assert asked == at_once


def test_a_kernel_is_that_of_the_trials() -> None:
    guest = {"kernel": "6.1", "qemu": "7.2.22", "image": "f863", "instructions_per_s": 2_000_000_000}
    real = CaseRuns((), provenance=({"kernel": "6.18", "virtual_machine": guest},))
    host = CaseRuns((), provenance=({"kernel": "6.18"},))
    machine = {"qemu": ["7.2.22"], "image": ["f863"], "instructions_per_s": [2_000_000_000]}
    assert ran_on([(CaseRuns(()), real)], "emu") == {"kernel": "6.1", "virtual_machine": machine}
    assert ran_on([(CaseRuns(()), host)], "emu") == {"kernel": "6.18", "virtual_machine": None}
    assert ran_on([(CaseRuns(()), real), (CaseRuns(()), host)], "emu")["kernel"] == "6.1, 6.18"


def test_a_control_that_this_kernel_lacks_is_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("streamgauge.emu.controls.available", lambda: ["reno", "cubic"])
    (case,) = select(TCP, ["bic/1m-75kb"])
    assert "bic" in (TCP.lacking(case, "root") or "")
    assert TCP.lacking(case, "virtual") is None


def verdict(rows: list[str], rejected: list[bool | None] = [True], **more: Any) -> str:  # noqa: B006
    document = {
        "rows": [{"verdict": word} for word in rows],
        "mutants": [{"rejected": one} for one in rejected],
        "skipped": [],
        "interrupted": False,
    }
    return overall(document | more)


def test_the_verdict() -> None:
    assert verdict(["equivalent", "explained"]) == "pass"
    assert verdict(["equivalent", "unexplained", "unexplained"]) == "pass"
    assert verdict(["unexplained"] * 3) == "fail"
    assert verdict(["equivalent"], [True, False]) == "fail"
    assert verdict(["equivalent"], [None]) == "inconclusive"
    assert verdict(["equivalent", "inconclusive"]) == "inconclusive"
    assert verdict(["equivalent"], skipped=[{"case": "bbr/10m-25kb"}]) == "inconclusive"
    assert verdict([]) == "inconclusive"
