"""`streamgauge.run` and what goes with it: the command line's `run` from Python."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import polars as pl
import pytest
import streamgauge as sg
from streamgauge.campaign import Progress
from streamgauge.cli import options
from streamgauge.notebook import running
from streamgauge.notebook.bar import ProgressBar, words_of
from streamgauge.notebook.finding import settings_of
from streamgauge.units import Rate
from two_scenarios import short


def written(folder: Path) -> dict[Path, int]:
    return {file: file.stat().st_mtime_ns for file in folder.rglob("trial.json")}


def test_a_scenario_an_id_a_glob_and_a_file_run(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    from short_scenario import SHORT

    file.write_text(SHORT, encoding="utf-8")
    runs = sg.run(
        [short().model_copy(update={"id": "test/made"}), file, "hessler/ftp-n*"],
        mode="sim", seed=3, out=tmp_path / "runs", keep="metrics", progress=False,
    )  # fmt: skip
    assert [trial.scenario for trial in runs] == ["test/made", "test/short", "hessler/ftp-no"], "as asked"
    assert {trial.seed for trial in runs} == {3}
    assert runs.where == tmp_path / "runs"


def test_what_checks_read_runs_as_well_and_is_not_spoken_of(tmp_path: Path) -> None:
    runs = sg.run("hessler/ftp-medium", mode="sim", repeat=2, out=tmp_path, progress=False)
    assert {trial.scenario for trial in runs} == {"hessler/ftp-medium", "hessler/ftp-no"}
    assert {check.scenario for check in runs.checks()} == {"hessler/ftp-medium"}
    assert "ftp-medium" in runs.answer() and "ftp-no sent" not in runs.answer()
    assert runs.checks().verdict == "pass"


def test_the_same_call_runs_nothing_again(tmp_path: Path) -> None:
    first = sg.run(short(), mode="sim", out=tmp_path, progress=False)
    before = written(tmp_path)
    again = sg.run(short(), mode="sim", out=tmp_path, repeat=6, progress=False)
    assert len(first) == 4 and len(again) == 6
    assert written(tmp_path).items() >= before.items()


def test_an_interruption_keeps_what_has_ended(tmp_path: Path) -> None:
    def interrupt(told: Progress) -> None:
        if told.done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(
        KeyboardInterrupt, match=r"of 12 trials are kept in .*; the same call goes on from there"
    ):
        sg.run(short(), mode="sim", repeat=12, out=tmp_path, progress=interrupt)
    before = written(tmp_path)
    assert 2 <= len(before) < 12
    runs = sg.run(short(), mode="sim", repeat=12, out=tmp_path, progress=False)
    assert len(runs) == 12
    assert written(tmp_path).items() >= before.items(), "none of them ran again"


def test_what_is_set_is_as_on_the_command_line(tmp_path: Path) -> None:
    changes = {
        "path.down.rate": Rate("2 Mbit/s"),
        "flows.ftp.ecn": True,
        "until.time": "2 s",
        "flows.cross.stop": None,
    }
    assert settings_of(changes) == [
        "path.down.rate=2 Mbit/s",
        "flows.ftp.ecn=true",
        "until.time=2 s",
        "flows.cross.stop=null",
    ]
    runs = sg.run(
        short(), mode="sim", seed=1, set={"path.down.rate": Rate("2 Mbit/s")}, out=tmp_path, progress=False
    )
    assert runs.where == tmp_path / "path.down.rate=2Mbit_s"
    assert runs[0].settings == ("path.down.rate=2 Mbit/s",)
    assert sg.load_scenario("hessler/ftp-no", set={"path.down.rate": "2 Mbit/s"}).path.down.rate == Rate(
        "2 Mbit/s"
    )


@pytest.mark.parametrize(
    ("what", "arguments", "says"),
    [
        ("hessler/ftp-medum", {}, r"no scenario 'hessler/ftp-medum'.*did you mean 'hessler/ftp-medium'"),
        ("missing.yaml", {}, r"missing\.yaml: there is no such file"),
        ([], {}, "nothing to run"),
        (3, {}, "3 is no scenario"),
        (["hessler/ftp-no", 3], {}, "3 is no scenario"),
        ("hessler/ftp-no", {"set": {"path.down.rat": 1}}, r"path\.down\.rat: there is no 'rat'.*did"),
        ("hessler/ftp-no", {"set": {"path.down.rate": "2 Mbps"}}, r"'Mbps' is not a unit of a bit rate"),
        ("short", {"set": {"path.down.rat": 1}}, r"path\.down\.rat: there is no 'rat'.*did you mean"),
        ("short", {"set": {"path.down.rate": "2 Mbps"}}, r"'Mbps' is not a unit of a bit rate"),
        ("short", {"set": "path.down.rate=1 Mbit/s"}, "it is a mapping from addresses to values"),
        ("short", {"set": {"path.down.rate": "["}}, "is not a value"),
        ("short", {"mode": "simulated"}, "mode is 'simulated'; it is one of 'sim', 'emu'"),
        ("short", {"keep": "everything"}, "keep is 'everything'; it is one of 'metrics'"),
        ("short", {"keep": None}, "keep is None"),
        ("short", {"way": "sudo"}, "way is 'sudo'"),
        ("short", {"repeat": 0}, "repeat is 0; it is a whole number of at least 1"),
        ("short", {"repeat": 2.5}, "repeat is 2.5"),
        ("short", {"seed": -1}, "seed is -1"),
        ("short", {"jobs": None}, "jobs is None"),
        ("short", {"replace": -1}, "replace is -1"),
    ],
)  # fmt: skip
def test_bad_input_is_told_in_a_line_before_anything_starts(
    what: Any, arguments: dict[str, Any], says: str, tmp_path: Path
) -> None:
    out = tmp_path / "runs"
    with pytest.raises(sg.StreamGaugeError, match=says) as error:
        sg.run(short() if what == "short" else what, **{"mode": "sim", **arguments}, out=out, progress=False)
    assert "\n" not in str(error.value)
    assert not out.exists()


def test_two_scenarios_of_one_id_are_refused(tmp_path: Path) -> None:
    other = short("path.down.rate=2 Mbit/s")
    with pytest.raises(sg.ScenarioError, match="two scenarios are called 'test/short'"):
        sg.run([short(), other], mode="sim", out=tmp_path)


def test_a_name_of_several_scenarios_is_no_scenario() -> None:
    with pytest.raises(sg.ScenarioError, match=r"is 5 scenarios: hessler/ftp-no, .*name one"):
        sg.load_scenario("hessler/ftp-*")


def test_a_folder_that_is_not_there_or_holds_nothing_is_told(tmp_path: Path) -> None:
    with pytest.raises(sg.RecordError, match=r"nowhere: there is no such folder"):
        sg.load(tmp_path / "nowhere")
    with pytest.raises(sg.RecordError, match="holds no trial"):
        sg.load(tmp_path)


def test_defaults_are_the_command_lines() -> None:
    assert running.REPLACE == options.REPLACE
    defaults = {name: one.default for name, one in inspect.signature(sg.run).parameters.items()}
    assert (defaults["out"], defaults["keep"], defaults["jobs"]) == ("runs", "packets", 1)


def test_a_sweep_is_a_table_and_its_trials_lie_where_runs_would(tmp_path: Path) -> None:
    rates = ["1 Mbit/s", "2 Mbit/s"]
    table = sg.sweep(
        short(),
        {"path.down.rate": rates},
        mode="sim",
        repeat=2,
        metrics=["goodput.ftp"],
        out=tmp_path,
        progress=False,
    )
    assert table["path.down.rate"].to_list() == rates and table["n"].to_list() == [2, 2]
    runs = sg.load(tmp_path)
    means = (
        runs.metrics("goodput", flow="ftp")
        .group_by("path.down.rate", maintain_order=True)
        .agg(pl.mean("value"))
    )
    assert table["mean"].to_list() == pytest.approx(means["value"].to_list())
    before = written(tmp_path)
    sg.run(
        short(),
        mode="sim",
        repeat=2,
        set={"path.down.rate": "2 Mbit/s"},
        keep="metrics",
        out=tmp_path,
        progress=False,
    )
    assert written(tmp_path) == before
    with pytest.raises(sg.ScenarioError, match=r"over is .* it is a mapping from addresses"):
        sg.sweep(short(), "path.down.rate=1,2", mode="sim", out=tmp_path)  # type: ignore[arg-type]
    with pytest.raises(sg.ScenarioError, match="nothing to run"):
        sg.sweep([], {"path.down.rate": rates}, out=tmp_path)


def test_a_mode_that_nobody_chose_is_told_with_why(tmp_path: Path) -> None:
    alone = short().model_copy(update={"modes": ("sim",)})
    assert "sim: the only one that is supported" in repr(sg.run(alone, seed=1, out=tmp_path, progress=False))
    assert "supported" not in repr(sg.run(alone, mode="sim", seed=1, out=tmp_path, progress=False))


def test_progress_is_told_to_a_function(tmp_path: Path) -> None:
    told: list[Progress] = []
    sg.run(short(), mode="sim", out=tmp_path, progress=told.append)
    assert (told[-1].done, told[-1].total) == (4, 4)


def test_progress_in_words() -> None:
    assert words_of(Progress(3, 40, 65.2, "", invalid=1)) == "3 of 40 trials, 1 invalid, 1:05 left"
    assert words_of(Progress(0, 1, None, "")) == "0 of 1 trial"


class _Shell:
    """What IPython gives a cell to show things by."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []

    def display(self, data: dict[str, str], *, raw: bool, display_id: bool) -> _Shell:
        assert raw and display_id
        self.shown.append(data)
        return self

    def update(self, data: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.shown.append(data)


def test_a_notebook_shows_a_bar_and_takes_it_away(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = _Shell()
    ipython = ModuleType("IPython")
    monkeypatch.setattr(ipython, "get_ipython", lambda: SimpleNamespace(kernel=object()), raising=False)
    shows = ModuleType("IPython.display")
    monkeypatch.setattr(shows, "display", shell.display, raising=False)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", shows)
    with ProgressBar(True) as bar:
        bar.update(Progress(1, 4, 0.5, "soon done"))
        assert not shell.shown, "what takes less than a second shows nothing"
        bar.update(Progress(4, 4, 60.0, "<b>test/short</b> sim seed 1"))
    shown, gone = shell.shown
    assert "<progress value=" in shown["text/html"] and "&lt;b&gt;test/short" in shown["text/html"]
    assert shown["text/plain"].startswith("4 of 4 trials")
    assert gone == {"text/html": "", "text/plain": ""}
    with ProgressBar(False) as bar:
        bar.update(Progress(4, 4, 60.0, ""))
    assert len(shell.shown) == 2
