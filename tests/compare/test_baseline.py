"""A baseline comes out of its file as it went in, or is refused with what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from comparisons import case, cases, line
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from streamgauge.compare import SubjectTrials, answered, compare
from streamgauge.compare.baseline import load_baseline, save_baseline
from streamgauge.compare.metrics import NEIGHBOUR_GOODPUT
from streamgauge.compare.origin import TrialsOrigin
from streamgauge.errors import RecordError, ScenarioError

FIVE = {seed: {"goodput": 1e6 + seed, "rebuffer_ratio": 0.01 * seed} for seed in range(1, 6)}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some=st.lists(cases("mine"), min_size=1, max_size=4))
def test_it_comes_out_as_it_went_in(some: list[SubjectTrials], tmp_path: Path) -> None:
    file = tmp_path / "base.json"
    kept = [one for one in some if one.trials]
    if not kept:
        with pytest.raises(ScenarioError, match="no valid trial to save"):
            save_baseline(some, file)
        return
    save_baseline(some, file)
    assert load_baseline(file, label="mine") == kept


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mine=cases("mine").filter(lambda one: bool(one.trials)))
def test_it_is_compared_as_what_was_saved(mine: SubjectTrials, tmp_path: Path) -> None:
    """By conditions and seeds, as if both had been there at once."""
    save_baseline([mine], tmp_path / "base.json")
    now = replace(mine, subject="now", origin=None, note="")
    at_once = answered(compare([replace(mine, subject="baseline"), now]))
    assert answered(compare([*load_baseline(tmp_path / "base.json"), now])) == at_once
    assert {row.verdict for row in at_once.rows} <= {None, "equal", "undecided"}


def test_harm_is_that_of_its_own_neighbours(tmp_path: Path) -> None:
    """What was saved keeps its harm, whatever the neighbours get alone today."""
    alone = {"id": "x", "path": line()["path"], "flows": {"cross": line()["flows"]["cross"]}}
    goodput = f"{NEIGHBOUR_GOODPUT}cross"

    def beside(subject: str, taken: float, had: float) -> list[SubjectTrials]:
        seeds = range(1, 4)
        return [
            case(subject, {seed: {"goodput": 1e6, goodput: had - taken} for seed in seeds}),
            case("", {seed: {goodput: had} for seed in seeds}, scenario=alone),
        ]

    save_baseline(beside("mine", 2e5, 1e6), tmp_path / "base.json")
    found = compare([*load_baseline(tmp_path / "base.json"), *beside("now", 1e5, 5e5)])
    harms = {row.subject: row.value for row in found.rows if row.metric == "harm"}
    assert harms == {"baseline": pytest.approx(0.2), "now": pytest.approx(0.2)}


def broken(change: Callable[[dict[str, Any]], Any]) -> Callable[[str], str]:
    def apply(text: str) -> str:
        data = json.loads(text)
        found = change(data)
        return json.dumps(data if found is None else found)

    return apply


WRONG: dict[str, tuple[Callable[[str], str], str]] = {
    "half of it": (lambda text: text[: len(text) // 2], "not JSON"),
    "empty": (lambda text: "", "not JSON"),
    "a list": (broken(lambda data: [data]), "no baseline, expected streamgauge.baseline/1"),
    "a comparison": (
        broken(lambda data: data | {"schema": "streamgauge.compare/1"}),
        "no baseline but streamgauge.compare/1",
    ),
    "of the future": (
        broken(lambda data: data | {"schema": "streamgauge.baseline/2"}),
        "a baseline of another version, streamgauge.baseline/2",
    ),
    "a number changed": (
        broken(lambda data: data["cases"][0]["trials"]["1"].update(goodput=2e6)),
        "it was changed since it was written",
    ),
    "a key gone": (broken(lambda data: data["cases"][0].__delitem__("mode")), "cases.0.mode: damaged"),
    "a key more": (broken(lambda data: data.update(more=1)), "more: damaged"),
    "a text for a number": (
        broken(lambda data: data["cases"][0]["trials"]["1"].update(goodput="fast")),
        "cases.0.trials.1.goodput: damaged",
    ),
    "no seed": (broken(lambda data: data["cases"][0]["trials"].update(x={})), "'x' is no seed"),
    "not finite": (
        lambda text: text.replace("1000001.0", "NaN"),
        "a value of seed 1 is not finite",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_it_is_said_in_one_sentence(name: str, tmp_path: Path) -> None:
    file = tmp_path / "base.json"
    save_baseline([case("mine", FIVE)], file)
    change, said = WRONG[name]
    text = file.read_text()
    file.write_text(change(text))
    assert file.read_text() != text
    with pytest.raises(RecordError) as error:
        load_baseline(file)
    words = str(error.value)
    assert words.startswith(f"{file}: ") and said in words and "--save-baseline" in words
    assert "\n" not in words


def test_what_is_not_there_or_no_text_is_said(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="No such file"):
        load_baseline(tmp_path / "none.json")
    (tmp_path / "b.json").write_bytes(b"\xff\xfe")
    with pytest.raises(RecordError, match="not text"):
        load_baseline(tmp_path / "b.json")


def test_one_without_trials_is_refused(tmp_path: Path) -> None:
    """Nobody writes one, and by hand it is as easy as this."""
    file = tmp_path / "base.json"
    save_baseline([case("mine", FIVE)], file)
    empty = json.loads(file.read_text()) | {"cases": []}
    empty["digest"] = "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"  # of []
    file.write_text(json.dumps(empty))
    with pytest.raises(RecordError, match="it holds no trial"):
        load_baseline(file)


def test_one_that_cannot_be_written_leaves_the_one_before(tmp_path: Path) -> None:
    file = tmp_path / "base.json"
    save_baseline([case("mine", FIVE)], file)
    before = file.read_text()
    with pytest.raises(ScenarioError):
        save_baseline([case("mine", {}, invalid=3)], file)
    with pytest.raises(ValueError, match="one subject"):
        save_baseline([case("mine", FIVE), case("other", FIVE)], file)
    assert file.read_text() == before


def test_conditions_that_changed_since_are_not_compared(tmp_path: Path) -> None:
    save_baseline([case("mine", FIVE)], tmp_path / "base.json")
    now = case("now", FIVE, scenario=line("2 Mbit/s"))
    found = answered(compare([*load_baseline(tmp_path / "base.json"), now]))
    assert not found.rows
    (said,) = found.answer
    assert "not comparable, because path.down.rate is 2 Mbit/s in the one and 1 Mbit/s in the other" in said


HERE = TrialsOrigin(
    simulators=(9,), systems={"rtp": ("machine 1",)}, releases=("0.1.0",), machines=("a (2 x X, Linux 6)",)
)


@pytest.mark.parametrize(
    ("mode", "now", "said"),
    [
        ("sim", HERE, []),
        ("sim", replace(HERE, machines=("b",), releases=("2",)), []),
        ("sim", replace(HERE, simulators=(10,)), ["version 9 of the simulator and now by 10"]),
        ("emu", replace(HERE, simulators=(10,)), []),
        ("emu", replace(HERE, machines=("b",)), ["ran on a (2 x X, Linux 6) and now on b"]),
        (
            "emu",
            replace(HERE, systems={"rtp": ("machine 2",)}),
            ["its version machine 1 and now in machine 2"],
        ),
        ("emu", replace(HERE, systems={"darwin": ("machine 2",)}), []),
        ("emu", replace(HERE, releases=("0.2.0",)), ["ran in StreamGauge 0.1.0 and now in 0.2.0"]),
        ("emu", None, []),
    ],
)
def test_what_made_it_otherwise_is_told_and_no_refusal(
    mode: str, now: TrialsOrigin | None, said: list[str], tmp_path: Path
) -> None:
    save_baseline([case("mine", FIVE, mode=mode, origin=HERE)], tmp_path / "base.json")
    mine = case("now", FIVE, mode=mode, origin=now)
    found = compare([*load_baseline(tmp_path / "base.json"), mine])
    assert len(found.notes) == len(said) and all(a in b for a, b in zip(said, found.notes, strict=True))
    assert {row.verdict for row in found.rows} == {None, "equal"}
    assert found.to_json()["notes"] == list(found.notes)
