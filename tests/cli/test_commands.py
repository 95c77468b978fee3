"""What the commands print and exit with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from streamgauge.campaign import machine
from streamgauge.cli.app import command as app_command
from streamgauge.cli.commands.register import HelpPanel

Cli = Callable[..., Any]


def test_run_prints_flows_verdicts_and_where(cli: Cli, scenario: Path) -> None:
    ran = cli("run", str(scenario))
    assert ran.status == 0, ran.err
    assert "2 of 2 trials valid" in ran.out
    assert "pass test/cli sim fills (predicted)" in ran.out
    assert "records in runs" in ran.out
    assert (Path("runs") / "scenario=test%2Fcli" / "mode=sim" / "seed=2" / "trial.json").exists()


def test_json_alone_on_stdout(cli: Cli, scenario: Path) -> None:
    ran = cli("run", str(scenario), "--json", "--seed", "7", "--out", "here")
    data = json.loads(ran.out)
    assert data["schema"] == "streamgauge.run/1"
    assert [trial["seed"] for trial in data["trials"]] == [7], "a seed alone is one trial"
    assert data["trials"][0]["directory"] == "here/scenario=test%2Fcli/mode=sim/seed=7"
    assert data["checks"][0]["verdict"] == "pass"


def test_verify_recomputes_and_replays(cli: Cli, scenario: Path) -> None:
    assert cli("run", str(scenario), "--seed", "7").status == 0
    plain = cli("verify", "runs")
    assert plain.status == 0
    assert "seed=7: blake3:" in plain.out
    assert "replay" not in plain.out
    replayed = cli("verify", "runs", "--replay", "--json")
    (found,) = json.loads(replayed.out)["records"]
    assert replayed.status == 0
    assert found["replay"]["different"] == 0
    assert found["replay"]["rows"] > 0
    nothing = cli("verify", str(Path(found["directory"]) / "logs"), "--replay")
    assert nothing.status == 3
    assert "no record is here" in nothing.err


def test_the_same_digest_twice(cli: Cli, scenario: Path) -> None:
    digests = [
        json.loads(cli("run", str(scenario), "--json", "--seed", "3", "--out", out).out)["trials"][0][
            "digest"
        ]
        for out in ("a", "b")
    ]
    assert digests[0] == digests[1]


def test_a_failed_check_exits_1(cli: Cli, scenario: Path) -> None:
    ran = cli("run", str(scenario), "--set", "path.down.rate=300kbit/s")
    assert ran.status == 1
    assert "fail test/cli sim fills" in ran.out


def test_a_changed_scenario_goes_to_a_folder_of_its_own(cli: Cli, scenario: Path) -> None:
    cli("run", str(scenario))
    cli("run", str(scenario), "--set", "path.down.rate=2Mbit/s")
    assert {path.name for path in Path("runs").iterdir() if path.is_dir()} == {
        "scenario=test%2Fcli",
        "path.down.rate=2Mbit_s",
    }


def test_mutants_are_run_and_scored(cli: Cli, scenario: Path) -> None:
    ran = cli("reproduce", str(scenario), "--mutants")
    assert ran.status == 0
    assert "of 1 mutants of predicted checks 1 are noticed" in ran.out
    assert "noticed by test/cli sim fills with path.down.rate = 300 kbit/s" in ran.out
    assert "(mutation score 100 %; by kind: mechanism 0 of 0, stimulus 1 of 1)" in ran.out
    data = json.loads(cli("reproduce", str(scenario), "--mutants", "--json").out)
    assert data["mutation_score"] == 1.0
    assert data["mutants"][0]["killed"] and data["mutants"][0]["breaks"] == {"path.down.rate": "300 kbit/s"}


def test_a_mutant_that_survives_exits_1(cli: Cli, scenario: Path) -> None:
    ran = cli(
        "reproduce", str(scenario), "--mutants", "--set", "checks.fills.breaks={path.down.rate: 2 Mbit/s}"
    )
    assert ran.status == 1
    assert "not noticed (pass)" in ran.out


def test_ctrl_c_among_the_mutants_keeps_what_the_run_has(
    cli: Cli, scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import streamgauge.cli.running

    def interrupt(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(streamgauge.cli.running, "run_mutants", interrupt)
    ran = cli("reproduce", str(scenario), "--mutants")
    assert ran.status == 130
    assert "pass test/cli sim fills" in ran.out and "mutation score" not in ran.out
    assert "interrupted" in ran.err and "the same command resumes" in ran.err


def test_robustness_is_told(cli: Cli, scenario: Path) -> None:
    assumed = "assumed={path.down.rate: {try: [300 kbit/s, 2 Mbit/s]}}"
    ran = cli("reproduce", str(scenario), "--robust", "--set", assumed)
    assert ran.status == 0, "what else might be assumed does not fail the run"
    assert "path.down.rate = 300 kbit/s: 0 of 1 verdicts stand" in ran.out
    assert "path.down.rate = 2 Mbit/s: 1 of 1 verdicts stand" in ran.out
    data = json.loads(cli("reproduce", str(scenario), "--robust", "--set", assumed, "--json").out)
    assert [one["turned"] for one in data["alternatives"]] == [True, False]


def test_inconclusive_exits_2(cli: Cli, scenario: Path) -> None:
    parameters = "{rate: 10 packets/s, windows: [[1 s, 2 s]]}"
    silent = f"flows.mute={{role: rival, traffic: cbr, parameters: {parameters}, stop: 0.5 s}}"
    ran = cli("run", str(scenario), "--set", silent)
    assert ran.status == 2
    assert "flow mute never sent" in ran.out


BAD = [
    (["run"], "Missing argument"),
    (["run", "none.yaml"], "none.yaml: there is no such file"),
    (["run", "hessler/ftp-hevy"], "did you mean 'hessler/ftp-heavy'?"),
    (["run", "my.yaml", "--mode", "live"], "--mode"),
    (["run", "my.yaml", "--seed", "-1"], "--seed"),
    (["run", "my.yaml", "--repeat", "0"], "--repeat"),
    (["run", "my.yaml", "--keep", "nothing"], "--keep"),
    (
        ["run", "my.yaml", "--set", "path.down.rate=5"],
        "--set path.down.rate=5: path.down.rate: 5 has no unit",
    ),
    (["run", "my.yaml", "--set", "path.dwn.rate=5kbit/s"], "did you mean 'path.down'?"),
    (["run", "my.yaml", "--set", "flows.ftp.congestion_control=yeah", "--mode", "sim"], "not yeah"),
    (["run", "my.yaml", "--set", "flows.ftp.direction=both", "--mode", "sim"], "are two flows"),
    (["run", "broken.yaml"], "broken.yaml:2: titel: unknown key 'titel'"),
    (["show", "hessler/none"], "no scenario 'hessler/none'"),
    (["show", "hessler/*", "--plan", "sim"], "5 scenarios"),
    (["report", "nowhere"], "nowhere: there is no such folder"),
    (
        ["reproduce", "my.yaml", "--reading", "paper"],
        "has no reading 'paper'; it has sources",
    ),
    (
        ["reproduce", "darwin", "--reading", "sauce"],
        "the paper 'darwin' has no reading 'sauce'; it has sources, paper",
    ),
    (["fly"], "No such command 'fly'"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD, ids=[" ".join(b[0]) for b in BAD])
def test_bad_input_exits_3_with_a_line_and_leaves_nothing(
    cli: Cli, scenario: Path, arguments: list[str], words: str
) -> None:
    Path("broken.yaml").write_text("id: a\ntitel: b\n")
    ran = cli(*arguments)
    assert ran.status == 3
    assert ran.out == ""
    assert words in ran.err
    assert all(line.startswith("streamgauge: ") for line in ran.err.splitlines())
    assert "Traceback" not in ran.err
    assert not Path("runs").exists()


def test_every_error_of_a_file_has_its_line(cli: Cli, scenario: Path) -> None:
    scenario.write_text(
        scenario.read_text().replace("1 Mbit/s", "1 Mbps").replace("role: subject", "role: star")
    )
    ran = cli("run", str(scenario))
    assert ran.status == 3
    first, second = ran.err.splitlines()
    assert f"{scenario}:4: path.down.rate: " in first and f"{scenario}:6: flows.ftp.role: " in second


def test_a_machine_that_cannot_exits_4(cli: Cli, scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        machine, "why_not", lambda mode, way=None: "user namespaces are refused; ask for root"
    )
    ran = cli("run", str(scenario))
    assert ran.status == 4
    assert "user namespaces are refused; ask for root" in ran.err
    assert not Path("runs").exists()


def test_the_default_mode_is_the_first_that_the_machine_can_and_that_is_told_first(
    cli: Cli, scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "why_not", lambda mode, way=None: "no root" if mode == "emu" else None)
    ran = cli("run", str(scenario), "--set", "modes=[emu, sim]", "--json", "--repeat", "1")
    assert json.loads(ran.out)["trials"][0]["mode"] == "sim"
    assert ran.err.splitlines()[0] == (
        "streamgauge: mode sim for test/cli: this machine cannot run emu: no root"
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["my.yaml"], "mode sim for test/cli: this machine can; supported are sim and emu, in this order"),
        (["my.yaml", "--mode", "sim"], "mode sim for test/cli: as asked for"),
        (["my.yaml", "--set", "modes=[sim]"], "mode sim for test/cli: the only one that is supported"),
        (
            ["hessler/ftp-*", "--mode", "sim", "--set", "path.down.rate=10Mbit/s"],
            "mode sim for hessler/ftp-no, hessler/ftp-little, hessler/ftp-medium and 2 more: as asked for",
        ),
    ],
)
def test_the_mode_and_why_is_said_first(
    cli: Cli, scenario: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str
) -> None:
    monkeypatch.setattr(machine, "why_not", lambda mode, way=None: None)
    ran = cli("run", *arguments, "--seed", "1")
    assert ran.err.splitlines()[0] == f"streamgauge: {told}"
    assert "mode sim for" not in ran.out


def test_a_folder_that_cannot_be_written_exits_4(cli: Cli, scenario: Path) -> None:
    Path("file").write_text("")
    ran = cli("run", str(scenario), "--out", "file")
    assert ran.status == 4, ran.err
    assert "cannot write" in ran.err and "--out" in ran.err


def test_a_folder_that_nobody_can_make_exits_4(cli: Cli, scenario: Path) -> None:
    ran = cli("run", str(scenario), "--out", "/proc/runs")
    assert (ran.status, len(ran.err.splitlines())) == (4, 2), "the mode, and what is wrong"
    assert "choose another folder with --out" in ran.err


@pytest.mark.parametrize("file", ["packets.parquet", "events.parquet", "trial.json"])
def test_a_damaged_record_is_named_left_out_and_run_again(cli: Cli, scenario: Path, file: str) -> None:
    cli("run", str(scenario))
    damaged = Path("runs/scenario=test%2Fcli/mode=sim/seed=1") / file
    bytes_ = bytearray(damaged.read_bytes())
    bytes_[len(bytes_) // 3] ^= 0xFF
    damaged.write_bytes(bytes_)
    told = cli("report", "runs", "--verify")
    assert told.status == 3
    assert str(damaged) in told.err and "run the trial again" in told.err
    assert len(told.err.splitlines()) == 1
    assert "2 trials (1 there already)" in cli("run", str(scenario), "--verify").out
    assert cli("report", "runs", "--verify").status == 0


def test_a_report_averages_no_changed_scenarios(cli: Cli, scenario: Path) -> None:
    cli("run", str(scenario))
    cli("run", str(scenario), "--set", "path.down.rate=2Mbit/s")
    assert cli("report", "runs").status == 0
    assert "2 scenarios, 4 trials" in Path("runs/report.html").read_text()
    scenario.write_text(scenario.read_text().replace("1 Mbit/s", "3 Mbit/s"))
    cli("run", str(scenario), "--out", "runs/fast")
    told = cli("report", "runs")
    assert told.status == 3
    assert "differ in path" in told.err and len(told.err.splitlines()) == 1


def test_bugs_are_told_without_a_traceback(cli: Cli, scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import streamgauge.cli.running

    def bug(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr(streamgauge.cli.running, "find", bug)
    ran = cli("run", str(scenario))
    assert ran.status == 70
    assert ran.err.count("\n") == 1 and "ZeroDivisionError: division by zero" in ran.err


def test_list(cli: Cli) -> None:
    ran = cli("list", "hessler/*", "--json")
    listed = json.loads(ran.out)["scenarios"]
    assert listed[0]["id"] == "hessler/ftp-no"
    assert listed[0]["modes"] == ["sim", "emu"] and "HW-3" in listed[0]["checks"]
    assert "hessler/ftp-heavy" in cli("list").out


def test_show_in_words_as_json_and_as_a_plan(cli: Cli) -> None:
    words = cli("show", "hessler/ftp-heavy").out
    assert "1 Mbit/s by CBQ on a device of 100 Mbit/s behind a drop-tail queue of 100 packets" in words
    assert "check HW-3 (input): loss.ftp <= 2 %" in words
    assert "flow ftp, subject: bulk" in words
    assert "flow cross, cross traffic: cbr, rate 150 packets/s, size 1 kB" in words
    assert "heavy cross traffic, 1.2 Mbit/s" in words
    (data,) = json.loads(cli("show", "hessler/ftp-heavy", "--json").out)
    assert data["flows"]["cross"]["from"] == "router"
    plan = json.loads(cli("show", "hessler/ftp-heavy", "--plan", "sim", "--seed", "4").out)
    assert plan["seed"] == 4 and plan["duration"] == 120_000_000_000


def test_schema_is_a_schema(cli: Cli) -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(cli("schema").out))


@pytest.mark.parametrize("command", app_command().commands)
def test_every_help_has_examples(cli: Cli, command: str) -> None:
    ran = cli(command, "--help")
    assert ran.status == 0
    assert "Example" in ran.out and f"streamgauge {command}" in ran.out


def test_the_help_is_grouped_by_task(cli: Cli) -> None:
    panels: dict[str, list[str]] = {}
    for name, one in app_command().commands.items():
        panels.setdefault(one.rich_help_panel, []).append(name)
    assert list(panels) == list(get_args(HelpPanel)), "each is used, in their order"
    assert "report" in panels["Compare and report"] and "run" in panels["Run experiments"]
    assert {"doctor", "calibrate", "crosscheck", "machine", "verify"} == set(panels["Instrument"])
    said = cli("--help").out
    places = [said.index(f"─ {panel} ─") for panel in panels]
    assert places == sorted(places)


def test_version(cli: Cli) -> None:
    ran = cli("--version")
    assert ran.status == 0 and ran.out.startswith("streamgauge 0.")


def hear_signals() -> None:
    """A person's terminal ignores none of these, whatever runs the tests does."""
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, signal.SIG_DFL)


def spawn(scenario: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "streamgauge", "run", str(scenario), "--out", "out", *arguments],
        cwd=scenario.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        preexec_fn=hear_signals,
    )


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_keeps_what_finished_and_leaves_nothing_else(scenario: Path, ending: signal.Signals) -> None:
    count = 3000
    scenario.write_text(scenario.read_text().replace("{sim: 2}", f"{{sim: {count}}}"))
    process = spawn(scenario)
    out = scenario.parent / "out"
    deadline = time.monotonic() + 60
    while len(list(out.glob("scenario=*/mode=sim/seed=*"))) < 5:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(ending)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "interrupted" in err and "Traceback" not in err
    whole = list(out.glob("scenario=*/mode=sim/seed=*"))
    assert 5 <= len(whole) < count
    assert all((trial / "trial.json").exists() for trial in whole)
    assert not list(out.rglob("*.partial"))


def test_a_killed_run_leaves_no_half_trial_that_counts(scenario: Path) -> None:
    scenario.write_text(scenario.read_text().replace("{sim: 2}", "{sim: 3000}"))
    process = spawn(scenario)
    out = scenario.parent / "out"
    while len(list(out.glob("scenario=*/mode=sim/seed=*"))) < 5:
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.communicate(timeout=60)
    for trial in out.glob("scenario=*/mode=sim/seed=*"):
        assert (trial / "trial.json").exists()
    done = spawn(scenario, "--repeat", "3")
    _, err = done.communicate(timeout=60)
    assert done.returncode == 0, err
    assert not list(out.rglob("*.partial")), "the next run sweeps up"


def test_a_report_tells_answers_before_its_path(cli: Cli, scenario: Path) -> None:
    cli("run", str(scenario))
    cli("run", "hessler/ftp-no", "--mode", "sim", "--repeat", "1")
    lines = cli("report", "runs", "--answer", "test/*").out.splitlines()
    assert "(test/cli; " in lines[1] and lines[-1] == "runs/report.html"
    assert not any("hessler" in line for line in lines)
    assert cli("report", "runs").out == "runs/report.html\n"
    told = cli("report", "runs", "--answer", "test/none")
    assert told.status == 3 and "here are test/cli, hessler/ftp-no" in told.err


def test_sim_runs_where_nothing_locks_files(tmp_path: Path) -> None:
    without = "import sys; sys.modules['fcntl'] = None; from streamgauge.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", without, "run", "hessler/ftp-no", "--mode", "sim", "--repeat", "1"]
    done = subprocess.run([*command, "--out", str(tmp_path)], capture_output=True, text=True, check=False)
    assert "digest blake3:" in done.stdout and "internal error" not in done.stderr, done.stderr
