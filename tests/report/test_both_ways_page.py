"""The page of a run with media up, short transfers and a population: what a reader is told of them."""

from __future__ import annotations

import html
import re

import pytest
from streamgauge.campaign import run
from streamgauge.report import build
from streamgauge.scenario import from_text

TEXT = """\
id: test/both-ways
title: A camera beside pages
question: How long do pages take beside a camera?
path:
  down: {rate: 4 Mbit/s, queue: droptail 100 ms}
  up: {rate: 1 Mbit/s, queue: droptail 100 ms}
flows:
  pages:
    role: subject
    traffic: bulk
    arrivals: {rate: 4 /s, size: 20 kB, sizes: exponential}
    direction: up
  camera: {role: rival, system: rtp, clip: {source: carphone, rate: 300 kbit/s}, direction: up}
  watch: {role: rival, system: rtp, clip: bikes-1M}
population: {size: 2, flow: camera, rate: uniform 200 kbit/s to 400 kbit/s, rtt: uniform 20 ms to 60 ms}
until: {time: 6 s}
repetitions: {sim: 2}
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("both")
    (made,) = from_text(TEXT)
    run([made], {made.id: ["sim"]}, out)
    text = build(out, out / "report.html").read_text(encoding="utf-8")
    words = re.sub(r"<(script|style).*?</\1>", "", text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", words)).replace("\u00a0", " ").split())


def test_the_answer_tells_how_long_transfers_take_and_who_goes_the_other_way(page: str) -> None:
    answer = page.partition("How long do pages take beside a camera?")[2].partition("details")[0]
    assert re.search(r"Its transfers took [\d.]+ .*?s on average, 95 % of them at most [\d.]+ m?s\.", answer)
    assert re.search(r"camera sending [\d. ±]+ kbit/s (?!the other way)", answer)
    assert re.search(r"watch sending [\d. ±]+ [kM]bit/s the other way", answer)


def test_the_scenario_is_told_with_directions_and_what_is_drawn(page: str) -> None:
    said = page.partition("Scenario")[2].partition("Flows")[0]
    assert "Down, to the client's end: bottleneck (4 Mbit/s; drop-tail, 50 kB)" in said
    assert "up, to the server's end: bottleneck (1 Mbit/s; drop-tail, 12.5 kB)" in said
    pages = "bulk, short transfers of exponential sizes of mean 20 kB, 4 arriving each second (Poisson)"
    assert f"pages (subject): {pages}, media up from the client's end, from 0 s" in said
    assert "camera (cross traffic): rtp, clip carphone at a bit rate of the population, media up" in said
    assert "watch (cross traffic): rtp, clip bikes-1M, from 0 s" in said


def test_the_table_tells_ways_and_completion_times_of_transfers_alone(page: str) -> None:
    head, _, table = page.partition("n = 2 means over the window ")[2].partition(" transfer takes ")
    head = head.partition(" start-up ")[0]
    assert head == "pages subject, media up camera cross traffic, media up watch cross traffic"
    pages, others = table.partition(" sent ")[0].split(" – ", 1)
    assert re.match(r"[\d.]+ m?s", pages) and others == "–"
    assert "–" not in table.partition(" sent ")[2].partition(" received ")[0]


def test_plots_name_their_ways_and_their_lines_flows(page: str) -> None:
    for title in ("Sent down, kbit/s", "Received up, kbit/s", "Queue down, kB", "Queue up, kB"):
        assert title in page
    assert "watch" in page.partition("Sent down, kbit/s")[2].partition("Received down")[0]
