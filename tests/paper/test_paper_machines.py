"""Emu in a virtual machine and on this one: columns of their own, never averaged together."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamgauge.campaign import CampaignResult, run
from streamgauge.campaign.layout import sweep
from streamgauge.campaign.stored import load_metrics, save_metrics
from streamgauge.campaign.trial import Outcome
from streamgauge.cli import main, reproducing
from streamgauge.cli.running import Ran, RunRequest
from streamgauge.paper import claims_of, claims_text, compare, comparison_text, draw, papers, read
from streamgauge.paper.machines import folders_of, in_order, mode_json, words_of
from streamgauge.paper.reading import Reading
from streamgauge.paper.tables import lines_of, table_json, tables_text
from streamgauge.scenario import Scenario, find

ONE = "darwin/1qt1tcp-const"
DARWIN = papers()["darwin"]
SETTINGS = ["until.time=20 s"]


def only(_: Any, *, settings: Any, mutants: bool = True) -> list[Scenario]:
    """The paper cut down to one experiment of 20 s."""
    return find([ONE], settings=[*settings, *SETTINGS], mutants=mutants)


def simulated(out: Path, seed: int = 1) -> CampaignResult:
    scenarios = find([ONE], settings=SETTINGS)
    return run(scenarios, {ONE: ["sim"]}, out, first_seed=seed, repeat=2, keep="metrics")


def as_emulated(made: Path, out: Path) -> None:
    """Puts simulated trials where a run in emu would have left them."""
    for folder in sweep(made):
        there = out / folder.parent.parent.name / "mode=emu" / folder.name
        shutil.copytree(folder, there)
        trial = json.loads((there / "trial.json").read_text(encoding="utf-8"))
        (there / "trial.json").write_text(json.dumps(trial | {"mode": "emu"}), encoding="utf-8")
        measure = trial["scenario"].get("measure") or {}
        metrics = load_metrics(there, measure)
        assert metrics is not None
        save_metrics(there, replace(metrics, mode="emu"), measure)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sim of seeds 1 and 2; what stands for emu here has seeds 3 and 4, and in a virtual machine 5 and 6."""
    out = tmp_path_factory.mktemp("runs")
    for seed, place in ((3, out), (5, out / "machine-virtual")):
        made = tmp_path_factory.mktemp("made")
        simulated(made, seed)
        as_emulated(made, place)
    return out


@pytest.fixture(scope="module")
def reading(out: Path) -> Reading:
    return read([simulated(out)], "paper", "as tested", wall_s=0.0, folders=folders_of(out))


def test_machines_are_modes_of_their_own(reading: Reading) -> None:
    assert reading.modes == ["sim", "virtual", "emu"]
    (entry,) = [one for one in reading.entries if one.id == ONE]
    seeds = {group.mode: [trial.seed for trial in group.valid] for group in entry.groups}
    assert seeds == {"sim": [1, 2], "virtual": [5, 6], "emu": [3, 4]}
    modes = [check.mode for check in entry.checks if check.id == "DC-12.order"]
    assert modes == ["sim", "virtual", "emu"], "each is judged of its own trials"
    n = {check.mode: check.n for check in entry.checks if check.id == "DC-12.order"}
    assert n == {"sim": 2, "virtual": 2, "emu": 2}
    means = {
        mode: next(line for line in lines_of(DARWIN.means[1], reading, mode) if line.scenario == ONE)
        .ours["throughput"]
        for mode in reading.modes
    }  # fmt: skip
    assert len({one.mean for one in means.values() if one is not None}) == 3


def test_tables_have_a_column_for_each(reading: Reading) -> None:
    _, text = tables_text(DARWIN, reading).split("\n\n")
    assert text.startswith(
        "Table II beside ours (reading paper; sim n = 0 to 2, virtual n = 0 to 2, emu n = "
    )
    columns = text.splitlines()[2].split()
    assert columns == ["paper", "sim", "virtual", "emu"] * 4
    line = next(
        one for one in table_json(DARWIN.tables[1], DARWIN, [reading])["lines"] if one["scenario"] == ONE
    )
    assert [(one["mode"], one["machine"]) for one in line["measured"]] == [
        ("sim", None), ("emu", "virtual"), ("emu", "host"),
    ]  # fmt: skip


def test_claims_say_where_each_was_judged(reading: Reading) -> None:
    told = claims_text(reading)
    head = told.splitlines()[1]
    assert "emu (virtual machine)" in head and "emu (this machine)" in head
    one = claims_of(reading)[0]
    assert set(one.by_mode) == {"sim", "virtual", "emu"}
    assert one.verdict(reading.modes) == one.check.verdict or "virtual " in one.verdict(reading.modes)


def test_readings_are_compared_mode_by_mode(reading: Reading, tmp_path: Path) -> None:
    other = read([simulated(tmp_path)], "source", "as tested", wall_s=0.0)
    compared = compare([reading, other])
    assert {one.check.mode for one in compared} == {"sim"}
    text = comparison_text(compared, [reading, other])
    assert "explains the paper better in sim: " in text
    head = next(line for line in text.splitlines() if line.lstrip().startswith("check "))
    assert "paper, emu (virtual machine)" in head and "source, sim" in head
    both = compare([reading, replace(reading, name="source")])
    assert {one.check.mode for one in both} == {"sim", "virtual", "emu"}
    assert {one.to_json()["machine"] for one in both} == {None, "virtual", "host"}


def test_figures_draw_each_with_a_mark_of_its_own(reading: Reading) -> None:
    wanted = next(one for one in DARWIN.figures if {panel.scenario for panel in one.panels} == {ONE})
    figure = draw(DARWIN, wanted, reading)
    assert figure is not None
    whose = {row[1] for row in figure.rows if row[3] == "mean"}
    assert whose == {"paper", "sim", "virtual", "emu"}
    assert "● sim, ■ emu (virtual machine) and ▲ emu (this machine)" in figure.caption
    spec = json.dumps(figure.spec)
    assert '["diamond", "circle", "square", "triangle-up"]' in spec


def test_a_page_of_one_mode_has_what_ran_elsewhere_beside_it(
    out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reproducing, "find", only)
    options = ["--mode", "sim", "--reading", "paper", "--repeat", "2", "--out", str(out), "--json"]
    assert main(["reproduce", "darwin", *options]) in (1, 2)
    (ran,) = json.loads(capsys.readouterr().out)["readings"]
    assert ran["modes"] == ["sim", "virtual", "emu"] and ran["trials"] == 2
    assert {(one["mode"], one["machine"]) for one in ran["checks"]} == {
        ("sim", None), ("emu", "virtual"), ("emu", "host"),
    }  # fmt: skip
    page = (out / "darwin.html").read_text(encoding="utf-8")
    assert "emu (virtual machine)" in page and not (out / "machine-virtual/darwin.html").exists()


def test_both_modes_are_one_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What would run in a virtual machine is simulated here, and then put where that leaves it."""
    real = reproducing.carry_out
    asked = []

    def carry_out(request: RunRequest, scenarios: Any, modes: Any, out: Path, **more: Any) -> Ran:
        asked.append((request.mode, modes, out))
        if request.mode == "sim":
            return real(request, scenarios, modes, out, **more)
        made = real(replace(request, mode="sim"), scenarios, {ONE: ["sim"]}, tmp_path / "made", **more)
        as_emulated(tmp_path / "made", out)

        def moved(one: Outcome) -> Outcome:
            folder = out / one.job.directory.parent.parent.name / "mode=emu" / one.job.directory.name
            return replace(one, job=replace(one.job, mode="emu", directory=folder))

        checks = tuple(replace(check, mode="emu") for check in made.result.checks)
        outcomes = tuple(map(moved, made.result.outcomes))
        return replace(made, result=replace(made.result, out=out, outcomes=outcomes, checks=checks))

    monkeypatch.setattr(reproducing, "carry_out", carry_out)
    monkeypatch.setattr(reproducing, "find", only)
    monkeypatch.setattr(
        reproducing,
        "chosen_modes",
        lambda request, scenarios, *, quiet: {one.id: [request.mode] for one in scenarios},
    )
    out = tmp_path / "runs"
    request = RunRequest(
        names=["darwin"], mode=None, seed=None, repeat=2, settings=[], out=out, keep="metrics",
        way="virtual", jobs=1, as_json=True, machine="machine-virtual",
    )  # fmt: skip
    assert reproducing.reproduce_paper(DARWIN, request, None, both=True) in (1, 2)
    there = [out, out / "machine-virtual"]
    there = [place / f"reading={name}" for name in ("sources", "described") for place in there]
    assert asked == [
        (mode, {ONE: [mode]}, place) for mode, place in zip(["sim", "emu"] * 2, there, strict=True)
    ]
    told = json.loads(capsys.readouterr().out)
    for ran in told["readings"]:
        assert ran["modes"] == ["sim", "virtual"] and ran["trials"] == 4
    assert {(one["mode"], one["machine"]) for one in told["comparison"]} == {
        ("sim", None),
        ("emu", "virtual"),
    }
    assert (out / "darwin.html").exists()


def test_words_and_order() -> None:
    assert in_order(["emu", "virtual-2", "sim", "virtual"]) == ["sim", "virtual", "virtual-2", "emu"]
    assert words_of("emu") == "emu" and words_of("emu", ["sim", "virtual"]) == "emu (this machine)"
    assert words_of("virtual-2") == "emu (virtual machine at 2)"
    assert mode_json("virtual-2") == {"mode": "emu", "machine": "virtual:2"}


def test_both_modes_are_of_one_paper(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "darwin", "ccn", "--mode", "both"]) == 3
    assert "--mode both is for one paper" in capsys.readouterr().err
    assert main(["reproduce", ONE, "--mode", "both"]) == 3
    assert "--mode sim and again with --mode emu" in capsys.readouterr().err
