"""The last lines of a run: a table of at most twelve lines, and one sentence that the numbers bear out."""

from __future__ import annotations

import pytest
from streamgauge.campaign import run
from streamgauge.report import gather, load
from streamgauge.report.in_short import MOST_LINES, in_short
from streamgauge.report.model import Entry
from streamgauge.scenario import find


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> list[Entry]:
    out = tmp_path_factory.mktemp("short")
    chosen = find(["today/demo-rtsp-*"], settings=["until.time=20 s", "measure.window=[0 s, 20 s]"])
    run(chosen, {one.id: ["sim"] for one in chosen}, out, repeat=2)
    return list(gather(load(out)))


def test_subjects_of_several_scenarios_are_ranked(demo: list[Entry]) -> None:
    two = [one for one in demo if str(one.scenario["id"]).endswith("-medium")]
    short = in_short(two)
    assert [row[0] for row in short.rows] == [one.id for one in two] and len(short.rows) == 2
    assert short.heads[:3] == ("subject", "mode", "n") and {row[2] for row in short.rows} == {"2"}
    assert short.sentence.count(". ") == 0 and short.sentence.endswith(".")
    rank = short.sentence.split(" stood still least, ")
    by_mean = {one.id: one.groups[0].over("freeze_time", "video") for one in two}
    least = min(by_mean, key=lambda name: getattr(by_mean[name], "mean", 0))
    assert rank[0] == least, short.sentence


def test_one_subject_has_its_own_sentence(demo: list[Entry]) -> None:
    (one,) = (entry for entry in demo if entry.scenario["id"] == "today/demo-rtsp-udp-heavy")
    short = in_short([one])
    assert short.rows[0][0] == "video" and short.sentence.startswith("video received ")
    lost = one.groups[0].say("loss", "video")
    assert f"lost {lost}" in short.sentence and lost in short.rows[0]


def test_there_are_at_most_twelve_lines(demo: list[Entry]) -> None:
    many = [*demo, *demo]
    assert len(in_short(demo).rows) == len(demo) < MOST_LINES
    assert in_short([]).rows == () and in_short([]).sentence == ""
    assert len(many) >= MOST_LINES
    short = in_short(many)
    assert len(short.rows) == MOST_LINES - 1 and short.rows[-1][0] == f"and {len(many) - MOST_LINES + 2} more"
