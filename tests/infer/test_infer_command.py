"""What `infer` prints and writes: sentences with evidence, a page, a reading, and one clear error."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from streamgauge.cli import main
from streamgauge.infer.inferring import Inferred
from streamgauge.infer.page import render, write_page
from streamgauge.infer.telling import sentences
from streamgauge.infer.writing import described_reading, write_reading


def test_ten_sentences_at_most_and_each_has_its_evidence(found: Inferred) -> None:
    told = sentences(found)
    assert 4 <= len(told) <= 10
    text = " ".join(one.text for one in told)
    assert "The rate of the link: 500 kbit/s explains more than 2 Mbit/s." in text
    assert "The delay of the link: 40 ms explains more than none." in text
    assert all(one.basis and one.evidence for one in told)
    rate = next(one for one in told if "rate of the link" in one.text)
    assert "T-4" in rate.basis


def test_the_page_has_the_counts_the_claims_and_a_place_for_each_link(
    found: Inferred, tmp_path: Path
) -> None:
    page = render(found)
    for claim in found.question.checks.claims:
        assert f'<th scope="row">{claim}</th>' in page
    ids = set(re.findall(r'id="([\w-]+)"', page))
    links = set(re.findall(r'href="#([\w-]+)"', page))
    assert links <= ids
    counts = found.counts()
    assert f'<td class="n">{counts["described"]}</td>' in page
    assert "moves no claim" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert write_page(found, tmp_path / "toy.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_the_reading_has_values_by_scenario_with_their_evidence(found: Inferred, tmp_path: Path) -> None:
    reading = described_reading(found)
    rate = reading["values"]["toy/*"]["path.down.rate"]
    assert rate["value"] == "500 kbit/s"
    assert rate["origin"] == "fitted"
    assert "T-4" in rate["from"]
    assert set(reading["held_out"].values()) <= {"pass", "differs"}
    file = tmp_path / "readings.yaml"
    file.write_text(
        "# of the toy\nsources: {meaning: stated alone}\nother: {meaning: kept as it is}\n"
        "described: {meaning: earlier}\ndefault: sources\n",
        encoding="utf-8",
    )
    write_reading(found, file)
    text = file.read_text(encoding="utf-8")
    assert text.startswith("# of the toy\n")
    data = YAML(typ="safe").load(text)
    assert data["other"] == {"meaning": "kept as it is"}
    assert data["default"] == "described"
    assert data["described"]["values"]["toy/*"]["path.down.delay"]["value"] == "40 ms"
    assert "earlier" not in text


def test_an_unknown_paper_is_an_error_with_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["infer", "hesler"]) == 3
    said = capsys.readouterr().err
    assert "there is no paper 'hesler' with unknowns" in said
    assert "did you mean 'hessler'?" in said
