"""Libraries of others as systems: an error with the remedy where they are not built, else one digest."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from streamgauge.campaign.machine import choose_mode
from streamgauge.cli.running import RunRequest, here
from streamgauge.errors import CannotRunError
from streamgauge.scenario import find, load
from streamgauge.systems import machines
from streamgauge.systems.machines import MACHINES, Hosted, lacking_library, origin

WEBRTC = MACHINES["webrtc"]
assert WEBRTC.hosted is not None
needs_str0m = pytest.mark.skipif(
    not WEBRTC.hosted.is_built, reason="str0m is not built; `make setup-hosted` builds it"
)


def test_a_build_without_the_library_names_the_command_that_builds_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert isinstance(WEBRTC.hosted, Hosted)
    monkeypatch.setitem(
        machines.MACHINES, "webrtc", replace(WEBRTC, hosted=replace(WEBRTC.hosted, is_built=False))
    )
    (scenario,) = load("today/webrtc-no", mutants=False)
    for mode in ("sim", "emu"):
        with pytest.raises(
            CannotRunError, match=r"flows\.video: system webrtc is str0m .*`make setup-hosted`"
        ):
            choose_mode(scenario, mode, elsewhere=lambda _: None)  # type: ignore[arg-type]
    (ours,) = load("today/call-no", mutants=False)
    assert choose_mode(ours, "sim").mode == "sim"
    assert lacking_library("call") is None


def test_a_group_leaves_out_what_needs_the_library_and_names_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert isinstance(WEBRTC.hosted, Hosted)
    monkeypatch.setitem(
        machines.MACHINES, "webrtc", replace(WEBRTC, hosted=replace(WEBRTC.hosted, is_built=False))
    )

    def kept(*names: str) -> set[str]:
        request = RunRequest(
            names=names, mode="sim", seed=None, repeat=None, settings=(), out=Path(), keep="metrics",
            way=None, jobs=1, as_json=False,
        )  # fmt: skip
        return {one.id for one in here(request, find(names))}

    assert kept("today/w*", "today/call-no") == {"today/call-no"}
    assert capsys.readouterr().err == (
        "streamgauge: left out: today/webrtc-no, today/webrtc-step, today/webrtc-cubic: system webrtc is "
        "str0m 0.25.0, which this build lacks; run `make setup-hosted`\n"
    )
    # Named ones, and a group of nothing else, stay for the choice of a mode, which refuses them.
    assert kept("today/webrtc-no", "today/call-no") == {"today/webrtc-no", "today/call-no"}
    assert len(kept("today/webrtc-*")) == 3
    assert capsys.readouterr().err == ""
    # The stand-in of two browsers needs it too; the browsers themselves do not.
    assert kept("today/call-chromium-*", "today/call-no") == {"today/call-no"}


@pytest.mark.skipif(WEBRTC.hosted.is_built, reason="str0m is built here")
def test_the_machine_itself_refuses_where_the_library_is_not_built(tmp_path: Path) -> None:
    done = _run(tmp_path, "1")
    assert done.returncode != 0
    assert "`make setup-hosted`" in done.stderr


def test_results_say_whose_code_ran() -> None:
    assert [origin("webrtc", ours=True), origin("call", ours=True), origin("webrtc", ours=False)] == [
        "hosted", "ours", "third-party",
    ]  # fmt: skip


def _run(out: Path, seed: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "streamgauge", "run", "today/webrtc-no", "--mode", "sim", "--json"]
    command += ["--seed", seed, "--out", str(out), "--set", "until.time=20 s", "--set", "checks=null"]
    command += ["--set", "measure.window=[0 s, 20 s]", "--set", "path.down.rate=300 kbit/s"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _digest(out: Path, seed: str) -> str:
    done = _run(out, seed)
    assert done.returncode == 0, done.stderr
    (trial,) = json.loads(done.stdout)["trials"]
    assert trial["valid"], trial
    return str(trial["digest"])


@needs_str0m
def test_two_processes_give_one_digest_and_two_seeds_give_two(tmp_path: Path) -> None:
    found = [_digest(tmp_path / name, seed) for name, seed in (("a", "1"), ("b", "1"), ("c", "2"))]
    assert found[0] == found[1] != found[2]


@needs_str0m
def test_the_metrics_of_a_call_work(tmp_path: Path) -> None:
    done = _run(tmp_path, "1")
    assert done.returncode == 0, done.stderr
    from streamgauge.report import load as load_trials

    (trial,) = load_trials(tmp_path)
    assert trial.metrics is not None
    flow, whole = trial.metrics.flows["video"], trial.metrics.grid.slice()
    for name in ("receiver_rate", "live_latency", "loss_after_repair", "discarded"):
        assert flow.series[name].value(whole) >= 0, name
    assert flow.series["receiver_rate"].value(whole) > 100e3
