"""A report of flows whose media goes up, or both ways: which bottleneck it speaks of and draws."""

from __future__ import annotations

import dataclasses

import pytest
from streamgauge.metrics import compute
from streamgauge.report import LoadedTrial, answer, for_entry, gather
from streamgauge.report.model import Entry
from streamgauge.report.words import bottleneck_words
from synthetic import UP, SyntheticRecord, constant, record

DOWN_WORDS, UP_WORDS = "1 Mbit/s, queue drop-tail, 10 kB", "500 kbit/s, queue drop-tail, 4 kB"


def both_ways(*subjects: str) -> SyntheticRecord:
    """Two flows down across 1 Mbit/s and two up, whose bottleneck is of 500 kbit/s."""
    sent = constant(0, 20, 0, 10) + constant(1, 20, 0, 10)
    for flow in (2, 3):
        sent += [dataclasses.replace(one, direction=UP) for one in constant(flow, 10, 0, 10)]
    built = record(sent, flows=["watch", "other", "camera", "upload"], duration_s=10.0)
    plan = built.trial["plan"]
    slow = {
        "rate": {"constant": 500_000}, "queue": {"droptail": {"bytes": 4000}}, "layer": "ethernet"
    }  # fmt: skip
    plan["path"]["up"].append({"name": "bottleneck", "kind": {"bottleneck": slow}})
    built.trial["stages"].append({"id": 4, "name": "bottleneck", "direction": "up"})
    for flow, planned in zip(built.trial["flows"], plan["flows"], strict=True):
        flow["role"] = planned["role"] = "subject" if flow["name"] in subjects else "rival"
        planned |= {"direction": "up"} if flow["name"] in ("camera", "upload") else {}
    return built


def entry_of(built: SyntheticRecord) -> tuple[LoadedTrial, Entry]:
    trial = LoadedTrial(built.trial, {}, compute(built))
    (entry,) = gather([trial])
    return trial, entry


@pytest.mark.parametrize(
    ("subjects", "words"),
    [
        (["watch"], f"{DOWN_WORDS}, 20 ms base RTT"),
        (["camera"], f"up {UP_WORDS}; 20 ms base RTT"),
        (["camera", "watch"], f"down {DOWN_WORDS}; up {UP_WORDS}; 20 ms base RTT"),
    ],
)
def test_numbers_stand_beside_the_bottleneck_of_the_subjects(subjects: list[str], words: str) -> None:
    trial, entry = entry_of(both_ways(*subjects))
    assert bottleneck_words(entry) == words
    assert words in answer([trial]).replace("\u00a0", " ")


def test_of_ways_without_a_bottleneck_it_is_said() -> None:
    built = both_ways("watch", "camera")
    del built.trial["plan"]["path"]["up"][-1], built.trial["stages"][-1]
    _, entry = entry_of(built)
    assert bottleneck_words(entry) == f"down {DOWN_WORDS}; up no bottleneck; 20 ms base RTT"
    built = both_ways("camera")
    del built.trial["plan"]["path"]["up"][-1], built.trial["stages"][-1]
    assert bottleneck_words(entry_of(built)[1]) == "no bottleneck"


def test_a_flow_is_drawn_beside_the_capacity_of_its_own_direction() -> None:
    """In plots of its own, whose scale is that direction's."""
    _, entry = entry_of(both_ways("watch"))
    (figure,) = for_entry(entry)
    tops = {plot["panel"]: plot["top"] for plot in figure.spec["usermeta"]["streamgauge"]["plots"]}
    for way, flows, capacity in (("down", {"watch", "other"}, 1000), ("up", {"camera", "upload"}, 500)):
        rows = [row for row in figure.rows if row[0] == f"Received {way}, kbit/s"]
        assert {row[2] for row in rows} == {*flows, "capacity"}
        assert {row[6] for row in rows if row[2] == "capacity"} == {capacity}
        sent = [row for row in figure.rows if row[0] == f"Sent {way}, kbit/s"]
        assert {row[2] for row in sent} == flows
        most = max(row[6] for row in sent)
        assert tops[f"Received {way}, kbit/s"] == tops[f"Sent {way}, kbit/s"]
        assert tops[f"Received {way}, kbit/s"] < 1.3 * most, "neither the capacity's nor the other way's"


def test_the_queue_of_each_way_is_drawn() -> None:
    _, entry = entry_of(both_ways("watch"))
    (figure,) = for_entry(entry)
    limits = {row[0]: row[6] for row in figure.rows if row[2] == "limit"}
    assert limits == {"Queue down, kB": 10, "Queue up, kB": 4}
