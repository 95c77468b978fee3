"""Unknowns: files that ship hold for their scenarios, and a bad file names line, key and remedy."""

from __future__ import annotations

import fnmatch
from pathlib import Path

import pytest
from streamgauge.campaign import with_dependencies
from streamgauge.errors import ScenarioError
from streamgauge.infer.unknowns import KEPT, Unknowns, load_unknowns, unknowns_of
from streamgauge.paper import papers, stating
from streamgauge.scenario import Scenario, find, from_text, override
from streamgauge.scenario.lower import lower
from streamgauge.scenario.overrides import has_address
from streamgauge.scenario.paper_readings import readings_of

PAPERS = ["hessler", "darwin", "ccn", "realvideo", "windows-media"]
SMALL = """
id: toy/link
title: A constant rate on a link
question: How much arrives?
path: {down: {rate: 1 Mbit/s, queue: droptail 10 packets}, up: {}}
flows:
  cross: {role: subject, traffic: cbr, parameters: {rate: 100 packets/s, size: 500 B}}
until: {time: 10 s}
"""
GOOD = """
unknowns:
  rate:
    what: the rate of the link
    at: {"toy/*": path.down.rate}
    source: 1 Mbit/s
    range: {from: 200 kbit/s, to: 800 kbit/s, steps: 3, scale: log}
    why: not stated
  queue:
    what: the queue
    kind: constant
    at: {"toy/*": path.down.queue}
    source: droptail 10 packets
    try: [droptail 5 packets, {label: deep, set: droptail 50 packets}]
    why: not stated
"""


def scenarios_of(paper: str) -> list[Scenario]:
    """The scenarios whose checks state the paper's claims, and those that they read, by public sources."""
    stated = stating([papers()[paper]], find([f"{paper}/*"], mutants=False))
    return readings_of(paper).applied("sources", with_dependencies(stated))


@pytest.fixture(scope="module")
def small() -> Scenario:
    (scenario,) = from_text(SMALL, file="small.yaml")
    return scenario


def loaded(tmp_path: Path, text: str, scenario: Scenario) -> Unknowns:
    file = tmp_path / "unknowns.yaml"
    file.write_text(text, encoding="utf-8")
    return load_unknowns(file, [scenario])


def test_a_file_becomes_values_with_the_source_first(tmp_path: Path, small: Scenario) -> None:
    found = loaded(tmp_path, GOOD, small)
    rate, queue = found.each
    assert [one.label for one in rate.values] == ["1 Mbit/s", "200 kbit/s", "400 kbit/s", "800 kbit/s"]
    assert [one.label for one in queue.values] == ["droptail 10 packets", "droptail 5 packets", "deep"]
    assert found.applied(small, (0, 0)) is small
    made = found.applied(small, (2, 2))
    assert made is not None
    wanted = override(small, {"path.down.rate": "400 kbit/s", "path.down.queue": "droptail 50 packets"})
    assert made == wanted
    assert found.price((0, 0)) == 0
    assert found.price((0, 1)) > found.price((1, 0)) > 0


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("source: 1 Mbit/s", "source: 1 Mbit", 6, "does not fit path.down.rate"),
        ("path.down.rate", "path.down.rat", 5, "did you mean 'path.down.rate'?"),
        ("toy/*", "tou/*", 5, "no scenario of the paper has such an id"),
        ("kind: constant", "kind: constan", 11, "expected one of path, traffic"),
        ("    why: not stated\n  queue", "  queue", 3, "'why' is missing"),
        ("steps: 3", "steps: 1", 7, "whole number from 2"),
        ("to: 800 kbit/s", "to: 8 ms", 7, "two quantities of one kind"),
        ("[droptail 5 packets,", "[droptail 10 packets,", 14, "stands here twice"),
        ("kind: constant", "price: -1", 11, "from 0 to 10"),
        ("    source: 1 Mbit/s\n", "", 3, "'source' is missing"),
        ("kind: constant", "sort: constant", 11, "unknown key"),
        ("unknowns:", "unknown:", 2, "expected 'unknowns:' alone"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(
    old: str, new: str, line: int, words: str, tmp_path: Path, small: Scenario
) -> None:
    assert old in GOOD
    with pytest.raises(ScenarioError) as caught:
        loaded(tmp_path, GOOD.replace(old, new, 1), small)
    assert words in str(caught.value)
    assert caught.value.line == line
    assert str(tmp_path / "unknowns.yaml") in str(caught.value)


def test_a_missing_file_is_an_error_with_its_name(tmp_path: Path, small: Scenario) -> None:
    with pytest.raises(ScenarioError, match=r"unknowns\.yaml: cannot be read"):
        load_unknowns(tmp_path / "unknowns.yaml", [small])


@pytest.mark.parametrize("paper", PAPERS)
def test_the_first_value_of_each_unknown_is_that_of_the_sources(paper: str) -> None:
    """So the point of all first values is the reading `sources` itself."""
    scenarios = scenarios_of(paper)
    for unknown in unknowns_of(paper, scenarios).each:
        first = unknown.values[0].value
        for glob, address in unknown.at:
            fitting = [
                one
                for one in scenarios
                if first is not KEPT and fnmatch.fnmatchcase(one.id, glob) and has_address(one, address)
            ]
            for scenario in fitting[:3]:
                same = override(scenario, {address: first})
                assert same.measure == scenario.measure
                assert lower(same, "sim", 1) == lower(scenario, "sim", 1), (unknown.name, scenario.id)
