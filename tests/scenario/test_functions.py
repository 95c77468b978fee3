"""A function of the user's own in place of a word: read where the scenario lies, called by our players."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from streamgauge import _native
from streamgauge.campaign.plan import resume_key
from streamgauge.cli import main
from streamgauge.errors import ScenarioError
from streamgauge.scenario import from_text, load, load_file, lower
from streamgauge.systems import call_watch
from streamgauge.systems.parameter import function_of

RULE = '''
class Alternate:
    """The lowest and the highest level in turn; what it keeps is of one session."""

    def __init__(self):
        self.calls = 0

    def __call__(self, now):
        self.calls += 1
        assert len(now.fetched) == self.calls - 1 and now.segment == self.calls - 1
        assert now.rates_bps == [200_000, 600_000] and len(now.sizes_bytes) == 2
        return self.calls % 2, f"call {self.calls}"


def wrong(now):
    return 5


def raises(now):
    raise RuntimeError("no more")


def loops(now):
    while True:
        pass
'''

SCENARIO = """
id: my/rule
title: A rule of mine
path: {down: {rate: 2 Mbit/s, queue: droptail 50 packets}}
flows:
  video:
    role: subject
    system: dash
    clip: {source: testsrc2, ladder: [200k, 600k], segment: 2 s}
    parameters: {rule: "rule.py:NAME"}
until: {time: 20 s}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rule.py").write_text(RULE)
    return tmp_path


def scenario(folder: Path, name: str = "Alternate"):  # type: ignore[no-untyped-def]
    file = folder / "mine.yaml"
    file.write_text(SCENARIO.replace("NAME", name))
    (made,) = load_file(file)
    return made


def simulate(made, folder: Path) -> pl.DataFrame:  # type: ignore[no-untyped-def]
    out = folder / "out"
    out.mkdir()
    _native.simulate(json.dumps(lower(made, "sim", 1, keep="events")), str(out))
    return pl.read_parquet(out / "events.parquet")


def test_a_value_that_names_a_function() -> None:
    assert function_of("a/b.py:choose") == ("a/b.py", "choose")
    for other in ("bola", "a.py", "a.py:", ".py:x", "a.py:1x", 3, None):
        assert function_of(other) is None


def test_a_class_decides_a_session_anew_each_time(folder: Path) -> None:
    made = scenario(folder)
    assert made.flows["video"].parameters["rule"] == f"{folder}/rule.py:Alternate"
    events = simulate(made, folder)
    chosen = events.filter(pl.col("name") == "decision")
    assert chosen["value"].to_list()[:4] == [600e3, 200e3, 600e3, 200e3]
    assert "call 1" in chosen["reason"][0]
    (folder / "out").rename(folder / "first")
    assert simulate(made, folder).equals(events)


@pytest.mark.parametrize(
    ("name", "why"), [("wrong", "chose level 5, and there are 0 to 1"), ("raises", "no more")]
)
def test_what_it_raises_ends_the_trial(folder: Path, name: str, why: str) -> None:
    with pytest.raises(ScenarioError, match=why) as raised:
        simulate(scenario(folder, name), folder)
    assert f"rule.py:{name}" in str(raised.value)


def test_a_call_without_end_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once: the trial calls the function no more."""
    monkeypatch.setattr(call_watch, "LONGEST_S", 1)
    with pytest.raises(ScenarioError, match="loops: CallTooLongError: the call did not return within 1 s"):
        simulate(scenario(folder, "loops"), folder)


def test_what_is_not_there_is_told_before_anything_starts(folder: Path) -> None:
    with pytest.raises(ScenarioError, match="no function 'nothing' at its top") as raised:
        scenario(folder, "nothing")
    assert "flows.video.parameters.rule" in str(raised.value) and "Alternate, wrong, raises, loops" in str(
        raised.value
    )
    (folder / "rule.py").write_text("def broken(:")
    with pytest.raises(ScenarioError, match="is no Python"):
        scenario(folder, "broken")
    (folder / "rule.py").unlink()
    with pytest.raises(ScenarioError, match="No such file"):
        scenario(folder)


def test_a_player_of_ours_calls_it_in_emu_too(folder: Path) -> None:
    assert scenario(folder).unsupported("emu") is None


def test_another_function_is_another_trial(folder: Path) -> None:
    made = scenario(folder)
    before = resume_key(made, "sim", 1)
    assert resume_key(made, "sim", 1) == before
    (folder / "rule.py").write_text(RULE + "\n# more\n")
    assert resume_key(made, "sim", 1) != before


def test_a_word_that_is_no_rule_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"nor FILE\.py:NAME") as raised:
        from_text(SCENARIO.replace("rule.py:NAME", "bolla"))
    assert "did you mean 'bola'" in str(raised.value)


PRINTS = """
import os, subprocess, sys
print("at the top")

def prints(now):
    print("of a decision")
    sys.stdout.write("written\\n")
    os.write(1, b"to the descriptor\\n")
    subprocess.run(["echo", "of a program"])
    return 0
"""


PRINTED = {"at the top", "of a decision", "written", "to the descriptor", "of a program"}


def test_what_a_function_prints_goes_to_standard_error(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "rule.py").write_text(PRINTS)
    file = folder / "mine.yaml"
    file.write_text(SCENARIO.replace("NAME", "prints"))
    out = sys.stdout
    status = main(["run", str(file), "--mode", "sim", "--seed", "1", "--json", "--out", str(folder / "out")])
    assert status == 0 and sys.stdout is out
    answer, aside = capfd.readouterr()
    assert json.loads(answer)["trials"]
    assert set(aside.splitlines()) >= PRINTED


def test_a_command_prints_its_answer_alone_on_standard_output(folder: Path) -> None:
    (folder / "rule.py").write_text(PRINTS)
    file = folder / "mine.yaml"
    file.write_text(SCENARIO.replace("NAME", "prints"))
    for name, more in (("one", ["--seed", "1"]), ("some", ["--repeat", "2"]), ("many", ["--repeat", "12"])):
        command = ["run", file, "--mode", "sim", "--json", "--out", folder / name, *more]
        done = subprocess.run(
            [sys.executable, "-m", "streamgauge", *map(str, command)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(done.stdout)["trials"], name
        assert set(done.stderr.splitlines()) >= PRINTED, name


def test_a_function_that_is_set_lies_where_the_user_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / "mine.yaml"
    file.write_text(SCENARIO.replace("NAME", "wrong"))
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "own.py").write_text(RULE)
    monkeypatch.chdir(elsewhere)
    rule = "flows.video.parameters.rule"
    (made,) = load_file(file, settings=[f"{rule}=own.py:Alternate"])
    assert made.flows["video"].parameters["rule"] == f"{elsewhere}/own.py:Alternate"
    # What the file itself names stays beside the file.
    (made,) = load_file(file, settings=["flows.video.parameters.buffer=20 s"])
    assert made.flows["video"].parameters["rule"] == f"{folder}/rule.py:wrong"
    (shipped,) = load("dash/lte-bola", settings=[f"{rule}=own.py:Alternate"])
    assert shipped.flows["video"].parameters["rule"] == f"{elsewhere}/own.py:Alternate"
    with pytest.raises(ScenarioError, match="one in --set to the working directory"):
        load("dash/lte-bola", settings=[f"{rule}=none.py:Alternate"])
