"""Readings of a paper: values where the paper leaves a condition open, read from one file and applied."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamgauge.errors import ScenarioError
from streamgauge.scenario import Scenario, catalogue_ids, find
from streamgauge.scenario.origin import changed
from streamgauge.scenario.paper_readings import SOURCES, PaperReadings, load_readings, readings_of

PAPERS = ("ccn", "darwin", "hessler", "realvideo", "windows-media")
VALUE = "{value: serial, origin: fitted, from: [HW-2], why: tried}"


@pytest.fixture(scope="module")
def hessler() -> list[Scenario]:
    return find(["hessler/*"], mutants=False)


def written(tmp_path: Path, text: str) -> PaperReadings:
    path = tmp_path / "readings.yaml"
    path.write_text(text)
    return load_readings(path, "hessler")


def described(lines: str) -> str:
    return f"described:\n  meaning: tried\n  {lines}\ndefault: described\n"


@pytest.mark.parametrize("paper", PAPERS)
def test_shipped_readings_fit_their_scenarios(paper: str) -> None:
    scenarios = find([f"{paper}/*"], mutants=False)
    readings = readings_of(paper)
    readings.check(scenarios)
    for name in readings.by_name:
        made = readings.applied(name, scenarios)
        assert [one.id for one in made] == [one.id for one in scenarios]


@pytest.mark.parametrize("paper", PAPERS)
def test_a_value_that_was_fitted_leaves_no_check_predicted_that_it_was_fitted_to(paper: str) -> None:
    for name, rule in readings_of(paper).by_name.items():
        values = [value for of in rule.values.values() for value in of.values()]
        for value in values:
            for check in value.evidence:
                assert rule.origin(check, "predicted") != "predicted", f"{name}: {check}"


@pytest.mark.parametrize("paper", PAPERS)
def test_a_file_loads_under_a_reading_as_its_scenarios_are_changed(paper: str) -> None:
    plain = find([f"{paper}/*"], mutants=False)
    readings = readings_of(paper)
    for name in readings.by_name:
        loaded = find([f"{paper}/*"], settings=[f"reading={name}"], mutants=False)
        made = readings.applied(name, plain)
        assert [one.normalised() for one in loaded] == [one.normalised() for one in made]


def test_what_is_set_by_hand_wins_over_a_reading() -> None:
    settings = ["path.down.shaper=cbq", "reading=described"]
    for given in (settings, settings[::-1]):
        (made,) = find(["hessler/real-no"], settings=given, mutants=False)
        assert "cbq" in str(made.normalised()["path"]["down"])
        assert str(made.flows["real"].parameters["preference"]) == "768 kbit/s"


def test_published_numbers_are_compared_under_a_reading_and_not_when_more_is_set() -> None:
    (made,) = find(["hessler/real-heavy"], settings=["reading=described"], mutants=False)
    assert changed(made.in_mode("sim").normalised(), "sim", ["reading=described"]) == ""
    settings = ["reading=described", "path.down.rate=2 Mbit/s"]
    (other,) = find(["hessler/real-heavy"], settings=settings, mutants=False)
    assert changed(other.in_mode("sim").normalised(), "sim", settings) != ""


def test_readings_are_no_scenarios() -> None:
    assert not any("readings" in name for name in catalogue_ids())


def test_a_paper_without_a_file_has_its_scenarios_as_they_are(
    tmp_path: Path, hessler: list[Scenario]
) -> None:
    readings = written(tmp_path, "default: sources\n")
    assert readings.compared == (SOURCES,)
    assert all(a is b for a, b in zip(readings.applied(SOURCES, hessler), hessler, strict=True))


def test_values_reach_what_a_pattern_means_and_nothing_else(tmp_path: Path, hessler: list[Scenario]) -> None:
    readings = written(tmp_path, described(f"values: {{hessler/real: {{path.down.shaper: {VALUE}}}}}"))
    before = {one.id: one for one in hessler}
    for made in readings.applied("described", hessler):
        same = made == before[made.id]
        assert same == (not made.id.startswith("hessler/real-")), made.id


def test_the_later_of_two_values_wins(tmp_path: Path, hessler: list[Scenario]) -> None:
    rate = "{value: %s Mbit/s, origin: input, why: tried}"
    first, second = rate % 2, rate % 3
    readings = written(
        tmp_path,
        described(
            f"values: {{hessler/ftp: {{path.down.rate: {first}}}, "
            f"hessler/ftp-no: {{path.down.rate: {second}}}}}"
        ),
    )
    made = {one.id: one for one in readings.applied("described", hessler)}
    assert str(made["hessler/ftp-no"].normalised()["path"]).count("3 Mbit/s")
    assert str(made["hessler/ftp-heavy"].normalised()["path"]).count("2 Mbit/s")


def test_an_address_that_some_scenarios_lack_is_left_out_there(
    tmp_path: Path, hessler: list[Scenario]
) -> None:
    # Without cross traffic there is no flow 'cross'.
    value = "{value: 20 s, origin: input, why: tried}"
    readings = written(tmp_path, described(f"values: {{hessler/ftp: {{flows.cross.start: {value}}}}}"))
    readings.check(hessler)
    made = {one.id: one for one in readings.applied("described", hessler)}
    assert str(made["hessler/ftp-heavy"].flows["cross"].start) == "20 s"
    assert "cross" not in made["hessler/ftp-no"].flows


def test_origins_follow_the_fit(tmp_path: Path, hessler: list[Scenario]) -> None:
    readings = written(tmp_path, described("fitted: [HW-2, HW-10-size, HW-9-zero]\n  inputs: [HW-14]"))
    origins = {}
    for made in readings.applied("described", hessler):
        origins |= {(made.id, name): check.origin for name, check in made.checks.items()}
    assert origins["hessler/real-heavy", "HW-2"] == "fitted"
    assert origins["hessler/real-medium", "HW-9-zero"] == "fitted"
    assert origins["hessler/real-medium", "HW-9-first"] == "predicted"
    assert origins["hessler/real-medium", "HW-14"] == "input"
    # A statement that is an input anyway is never the weaker 'fitted'.
    assert origins["hessler/real-no", "HW-10-size"] == "input"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (described(f"values: {{hessler/real: {{path.down.shapr: {VALUE}}}}}"), 3, "no scenario of 'hess"),
        (described(f"values: {{hessler/reel: {{path.down.shaper: {VALUE}}}}}"), 3, "is called so"),
        (described("fitted: [HW-99]"), 3, "no scenario of the paper has a check of 'HW-99'"),
        (described("held_out: {HW-99: pass}"), 3, "no scenario of the paper has a check of 'HW-99'"),
        (described("held_out: {HW-2: maybe}"), 3, "'maybe' is not known; expected one of pass, differs"),
        (described("value: {}"), 3, "unknown key 'value'"),
        (described("fitted: []").replace("default: described", "default: descibed"), 4, "'descibed'"),
        ("described:\n  values: {}\n", 1, "the key 'meaning' is missing"),
        (
            described("values:\n    hessler:\n      path.down.rate: {value: 1 ell, origin: input, why: x}"),
            5,
            "cannot run so",
        ),
        (
            described("values:\n    hessler:\n      path.down.rate: {value: 1, origin: fitted, why: x}"),
            5,
            "has been fitted to something",
        ),
        (
            f"sources:\n  meaning: x\n  values:\n    hessler/real:\n      path.down.shaper: {VALUE}\n",
            5,
            "no value that is fitted",
        ),
    ],
)  # fmt: skip
def test_a_file_that_is_wrong_is_refused_at_its_line(
    text: str, line: int, said: str, tmp_path: Path, hessler: list[Scenario]
) -> None:
    with pytest.raises(ScenarioError) as error:
        readings = written(tmp_path, text)
        readings.check(hessler)
    assert said in str(error.value)
    assert error.value.file == str(tmp_path / "readings.yaml")
    assert error.value.line == line


def test_a_reading_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(
        ScenarioError, match=r"no reading 'describd'; it has sources, described.*did you mean"
    ):
        readings_of("hessler").named("describd")
