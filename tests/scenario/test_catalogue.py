"""What ships: files that follow the published schema, and checks that could fail."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML
from streamgauge.scenario import Scenario, catalogue_ids, from_text, json_schema, load, load_file
from streamgauge.scenario.shipped import NO_SCENARIOS, catalogue_folder, shipped_file
from streamgauge.units import Frequency, Rate, Size

FILES = [file for file in sorted(catalogue_folder().rglob("*.yaml")) if file.name not in NO_SCENARIOS]


def plain(text: str) -> Any:
    return json.loads(json.dumps(YAML(typ="safe", pure=True).load(text)))


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_follow_the_published_schema(path: Path, validator: jsonschema.Draft202012Validator) -> None:
    validator.validate(plain(path.read_text()))


BAD = ["untill: {time: 1 s}", "host_jitter: 5", "host_jitter: 5 KB", "repetitions: {sim: 0}", "modes: [live]"]


@pytest.mark.parametrize("line", BAD)
def test_the_schema_refuses(base: str, line: str, validator: jsonschema.Draft202012Validator) -> None:
    assert validator.is_valid(plain(base))
    assert not validator.is_valid(plain(f"{base}{line}\n"))


def test_the_schema_takes_what_the_loader_prints(
    validator: jsonschema.Draft202012Validator, catalogue: tuple[Scenario, ...]
) -> None:
    for scenario in catalogue:
        validator.validate(scenario.normalised())


def test_issue_entries_are_there() -> None:
    ids = set(catalogue_ids())
    for load_class in ("no", "little", "medium", "heavy", "burst"):
        assert f"hessler/ftp-{load_class}" in ids
        assert f"today/http-{load_class}" in ids
        assert f"today/http-nginx-{load_class}" in ids
        for transport in ("udp", "tcp"):
            assert f"today/rtsp-{transport}-{load_class}" in ids
            assert f"today/demo-rtsp-{transport}-{load_class}" in ids


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_check_names_a_claim_and_a_mutant_that_makes_sense(path: Path) -> None:
    """Whether mutants make sense, the loader asks."""
    for scenario in load_file(path):
        for name, check in scenario.checks.items():
            assert check.breaks, f"{scenario.id}: {name}: a check that no mutant can break proves nothing"
            assert check.title, f"{scenario.id}: {name}"


def test_an_id_is_found_without_the_rest_of_the_catalogue() -> None:
    assert {name: shipped_file(name) for name in catalogue_ids()} == catalogue_ids()
    every = catalogue_ids()
    for beginning in {name[:length] for name in every for length in (1, 4, name.find("/") + 1, len(name))}:
        files = {file for name, file in every.items() if name.startswith(beginning)}
        found = catalogue_ids(beginning)
        assert {name: file for name, file in every.items() if file in files}.items() <= found.items()
        assert found.items() <= every.items()
    assert len(set(catalogue_ids("hessler/").values())) < 20 < len(set(every.values()))
    near = ("hessler/ftp-heavy-x", "hessler/ftp", "hessler", "mine/own", "")
    assert not [name for name in near if shipped_file(name) is not None]


def test_every_scenario_asks_a_question_and_has_checks(catalogue: tuple[Scenario, ...]) -> None:
    for scenario in catalogue:
        assert scenario.question and scenario.question.endswith("?"), scenario.id
        # RFC 8867 gives its cases no bound: they compare controllers.
        assert scenario.checks or scenario.id.startswith("rfc8867/"), scenario.id


def test_papers_are_named() -> None:
    for scenario in load("hessler/*"):
        assert scenario.source is not None and scenario.source.shows


def test_a_class_of_cross_traffic_tells_its_rate_in_the_title(catalogue: tuple[Scenario, ...]) -> None:
    told = 0
    for scenario in catalogue:
        cross = scenario.flows.get("cross")
        if cross is not None and scenario.title.endswith("cross traffic"):
            pytest.fail(f"{scenario.id} does not say how much: {scenario.title}")
        if cross is None or "cross traffic, " not in scenario.title:
            continue
        rate, size = cross.parameters["rate"], cross.parameters["size"]
        assert isinstance(rate, Frequency) and isinstance(size, Size)
        said = str(Rate.of(round(rate.per_s * 8 * float(size.amount))))
        assert f"cross traffic, {said}" in scenario.title, scenario.id
        told += 1
    assert told >= 28


def test_globs_and_families() -> None:
    assert [scenario.id for scenario in load("hessler/ftp")] == [f"hessler/ftp-{name}" for name in
        ("no", "little", "medium", "heavy", "burst")]  # fmt: skip
    assert len(load("today/rtsp-*-heavy")) == 2


def test_an_id_that_ends_with_a_slash_is_a_folder_of_its_variants(base: str) -> None:
    text = re.sub(r"(?m)^id: .*$", "id: mine/", base) + "variants: [{a: {}, b: {}}, {x: {}}]\n"
    assert [scenario.id for scenario in from_text(text)] == ["mine/a-x", "mine/b-x"]
    assert [scenario.id for scenario in from_text(text, only="mine/b-x")] == ["mine/b-x"]


def test_a_glob_gives_what_each_id_gives() -> None:
    """Whether a file is read once for all of it, or for each of some."""
    whole = load("hessler/ftp-*", mutants=False)
    assert whole == [load(scenario.id, mutants=False)[0] for scenario in whole]
    some = load("hessler/ftp-[hm]*", mutants=False)
    assert [scenario.id for scenario in some] == ["hessler/ftp-medium", "hessler/ftp-heavy"]
    assert all(scenario in whole for scenario in some)


def test_two_variants_of_one_name_are_refused(base: str) -> None:
    from streamgauge.errors import ScenarioError

    with pytest.raises(ScenarioError, match="duplicate key"):
        from_text(base + "variants: {a: {}, a: {}}\n")
