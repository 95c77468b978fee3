"""--junit and --summary of run, reproduce and compare: red exactly where the exit status is not 0."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "documents"))

from junit_schema import checked, outcomes
from streamgauge.campaign.trial import Outcome, run_job

Cli = Callable[..., Any]
FILES = ("--junit", "junit.xml", "--summary", "summary.md")
CHECKS = {
    "passes": ("throughput.ftp >= 500 kbit/s", 0, ["passed", "passed"], "✅"),
    "fails": ("throughput.ftp >= 5 Mbit/s", 1, ["passed", "failure"], "❌"),
    "cannot be judged": ("completion_time.ftp <= 1 s", 2, ["passed", "error"], "❔"),
}


def said(scenario: Path, that: str) -> None:
    scenario.write_text(scenario.read_text().replace("throughput.ftp >= 500 kbit/s", that))


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_in_all_three(name: str, cli: Cli, scenario: Path) -> None:
    that, status, seen, mark = CHECKS[name]
    said(scenario, that)
    ran = cli("run", str(scenario), *FILES)
    assert ran.status == status, ran.err
    root = checked(Path("junit.xml").read_text())
    assert outcomes(root) == seen
    case = root.findall(".//testcase")[1]
    assert case.attrib["name"] == "fills: The link is full" and that in (case.findtext("system-out") or "")
    summary = Path("summary.md").read_text()
    assert summary.startswith(f"### {mark} test/cli (sim)\n")
    assert "fills: The link is full" in summary and "ftp sent" in summary


def test_json_leaves_the_files_the_same(cli: Cli, scenario: Path) -> None:
    cli("run", str(scenario), *FILES)
    summary = Path("summary.md").read_text()
    ran = cli("run", str(scenario), "--json", *FILES)
    assert ran.out.startswith("{") and Path("summary.md").read_text() == summary


def test_a_scenario_without_checks_says_that_it_gates_nothing(cli: Cli, scenario: Path) -> None:
    scenario.write_text(scenario.read_text().partition("checks:")[0])
    ran = cli("run", str(scenario), *FILES)
    words = "no checks: this run gates nothing; add checks: to the scenario, or use compare"
    assert ran.status == 0 and words in ran.out.splitlines()
    root = checked(Path("junit.xml").read_text())
    assert outcomes(root) == ["passed", "skipped"]
    assert "it gates nothing" in root.findall(".//skipped")[0].attrib["message"]
    summary = Path("summary.md").read_text()
    assert words in summary and summary.startswith("### ⚪ ")


def test_one_without_among_others_is_named(cli: Cli, scenario: Path) -> None:
    bare = scenario.with_name("bare.yaml")
    bare.write_text(scenario.read_text().partition("checks:")[0].replace("test/cli", "test/bare"))
    ran = cli("run", str(scenario), str(bare), *FILES)
    assert "no checks in test/bare: it gates nothing; add checks: to the scenario, or use compare" in ran.out
    assert outcomes(checked(Path("junit.xml").read_text())) == ["passed", "passed", "passed", "skipped"]
    assert cli("run", str(scenario)).out.count("gates nothing") == 0


def test_a_mutant_that_a_check_survives_fails(cli: Cli, scenario: Path) -> None:
    scenario.write_text(
        scenario.read_text().replace("path.down.rate: 300 kbit/s", "path.down.rate: 900 kbit/s")
    )
    ran = cli("reproduce", str(scenario), "--mutants", *FILES)
    assert ran.status == 1
    assert outcomes(checked(Path("junit.xml").read_text())) == ["passed", "passed", "failure"]
    summary = Path("summary.md").read_text()
    assert summary.startswith("### ❌ ") and "Not noticed by fills: path.down.rate = 900 kbit/s" in summary


def test_invalid_trials_are_told(cli: Cli, scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(job: Any, **more: Any) -> Outcome:
        outcome = run_job(job, **more)
        return replace(outcome, valid=False, why=("no time",)) if job.seed == 2 else outcome

    monkeypatch.setattr(sys.modules["streamgauge.campaign.run"], "run_job", half)
    ran = cli("run", str(scenario), *FILES)
    assert ran.status == 2
    root = checked(Path("junit.xml").read_text())
    assert outcomes(root)[0] == "error"
    told = "1 of 2 repetitions is without a valid trial (seed 2), because no time"
    assert told in (root.findtext("testsuite/system-out") or "")
    assert told in Path("summary.md").read_text()


@pytest.mark.parametrize("command", ["run", "reproduce", "compare"])
@pytest.mark.parametrize("option", ["--junit", "--summary"])
def test_a_place_that_cannot_be_is_refused_before_anything_starts(
    command: str, option: str, cli: Cli, scenario: Path
) -> None:
    more = ["--over", "path.down.rate=1Mbit/s,2Mbit/s"] if command == "compare" else []
    for place, words in ((".", "'.' is a folder"), (f"{scenario}/x", f"{scenario} is a file")):
        ran = cli(command, str(scenario), *more, option, place)
        assert ran.status == 3 and f"{option}: " in ran.err and words in ran.err
    assert not Path("runs").exists()


def test_what_an_earlier_run_said_is_gone_when_one_breaks_off(cli: Cli, scenario: Path) -> None:
    Path("junit.xml").write_text("<testsuites/>")
    assert cli("run", str(scenario.with_name("none.yaml")), *FILES).status == 3
    assert not Path("junit.xml").exists()


def test_the_jobs_own_summary_is_continued(
    cli: Cli, scenario: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "step"))
    for _ in range(2):
        cli("run", str(scenario), "--summary", str(tmp_path / "step"))
    assert (tmp_path / "step").read_text().count("### ✅ test/cli (sim)") == 2


RATES = ("--over", "path.down.rate=1Mbit/s,300kbit/s", "--repeat", "3", "--mode", "sim")


def test_two_settings_compared(cli: Cli, scenario: Path) -> None:
    ran = cli("compare", str(scenario), *RATES, *FILES)
    assert ran.status == 1, ran.err
    assert ran.out.splitlines()[-1].startswith("fail: ") and "goodput" in ran.out.splitlines()[-1]
    root = checked(Path("junit.xml").read_text())
    assert "failure" in outcomes(root)
    assert Path("summary.md").read_text().startswith("### ❌ ")


def test_a_saved_baseline_lets_the_same_pass_and_another_not(cli: Cli, scenario: Path) -> None:
    """A build as a setting of the flow under test, in sim."""
    scenario.write_text(scenario.read_text().replace("rate: 1 Mbit/s,", "rate: 1 Mbit/s, delay: 50 ms,"))
    window = "flows.ftp.parameters.receive_window"
    common = ["compare", str(scenario), "--mode", "sim", "--repeat", "3"]
    ran = cli(*common, "--save-baseline", "base.json", *FILES)
    assert ran.status == 0, ran.err
    assert outcomes(checked(Path("junit.xml").read_text())) == ["skipped"]
    same = cli(*common, "--against", "base.json", "--out", "same", *FILES)
    assert same.status == 0 and same.out.splitlines()[-1].startswith("pass: "), same.out
    assert set(outcomes(checked(Path("junit.xml").read_text()))) == {"passed"}
    worse = cli(*common, "--set", f"{window}=2 KiB", "--against", "base.json", *FILES)
    assert worse.status == 1 and worse.out.splitlines()[-1].startswith("fail: "), worse.out
    other = cli(*common, "--set", "path.down.rate=2 Mbit/s", "--against", "base.json", *FILES)
    assert other.status == 2 and "path.down.rate is 2 Mbit/s in the one" in other.out
    assert outcomes(checked(Path("junit.xml").read_text())) == ["error"]


def test_a_baseline_that_cannot_be_read_is_refused_before_anything_starts(cli: Cli, scenario: Path) -> None:
    Path("base.json").write_text("{")
    ran = cli("compare", str(scenario), "--mode", "sim", "--against", "base.json")
    assert ran.status == 3 and "base.json: not JSON" in ran.err
    assert not Path("runs").exists()
