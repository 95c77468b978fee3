"""A queue's limit may be the greatest or the least of several, whose sizes hang on rate and delay."""

from __future__ import annotations

import pytest
from streamgauge.errors import ScenarioError
from streamgauge.scenario import from_text, lower
from streamgauge.scenario.overrides import override
from streamgauge.scenario.path.plan import direction_plan
from streamgauge.scenario.path.text import direction_of_text, text_of_direction

TEXT = """\
id: my/choice
title: A queue of a choice
path:
  down: {{rate: {rate}, queue: {queue}, delay: 10 ms}}
  up: {{}}
flows:
  ftp: {{role: subject, traffic: bulk, congestion_control: cubic}}
until: {{time: 5 s}}
"""
MS10 = 10_000_000


def limit(queue: str, rate: str = "2 Mbit/s") -> object:
    (scenario,) = from_text(TEXT.format(queue=f'"{queue}"', rate=rate))
    plan = lower(scenario, "sim", 1)
    ((_, held),) = plan["path"]["down"][0]["kind"]["bottleneck"]["queue"].items()
    return held.get("limit", held)


@pytest.mark.parametrize(
    ("queue", "rate", "held"),
    [
        ("droptail max(0.5 BDP, 4 packets)", "2 Mbit/s", {"bytes": 6056}),
        ("droptail max(0.5 BDP, 4 packets)", "20 Mbit/s", {"bytes": 12500}),
        ("droptail min(0.5 BDP, 4 packets)", "20 Mbit/s", {"bytes": 6056}),
        ("droptail min(100 ms, 10 kB, 40 packets)", "2 Mbit/s", {"bytes": 10_000}),
        ("codel min(1 BDP, 100 packets) target 5 ms", "20 Mbit/s", {"bytes": 25_000}),
        ("red max(20 packets, 4 packets) min 5 packets max 10 packets", "2 Mbit/s", {"packets": 20}),
    ],
)
def test_it_is_what_it_comes_to(queue: str, rate: str, held: object) -> None:
    assert limit(queue, rate) == held


@pytest.mark.parametrize(
    ("queue", "rate", "why"),
    [
        ("droptail min(0.5 BDP, 4 packets)", "2 Mbit/s", "cannot hold one packet of 1514 B"),
        ("droptail max(0.5 BDP)", "2 Mbit/s", "chooses among one limit"),
        ("droptail max(0.5 BDP, 4)", "2 Mbit/s", "4 has no unit"),
        ("droptail max(0.5 BDP, 4.5 packets)", "2 Mbit/s", "a whole number of packets"),
        ("droptail max(0.5 BDP, 4 packets", "2 Mbit/s", "no closing bracket"),
        ("max(0.5 BDP, 4 packets)", "2 Mbit/s", "expected such as 'droptail max(0.5 BDP, 4 packets)'"),
        (
            "droptail max(1 BDP, 4 packets)",
            "{steps: [{at: 0 s, rate: 1 Mbit/s}, {at: 1 s, rate: 2 Mbit/s}]}",
            "of a rate that changes is not one size",
        ),
    ],
)
def test_what_it_cannot_come_to_is_refused(queue: str, rate: str, why: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        limit(queue, rate)
    assert why in str(caught.value)


def test_without_quotes_in_braces_the_error_has_the_remedy() -> None:
    with pytest.raises(ScenarioError, match="a value with a comma in it needs quotes"):
        from_text(TEXT.format(queue="droptail max(0.5 BDP, 4 packets)", rate="2 Mbit/s"))


@pytest.mark.parametrize("queue", ["max(0.5 BDP, 4 packets)", "codel min(1 BDP, 100 packets, 1 MB)"])
def test_a_line_says_it_and_reads_it_back(queue: str) -> None:
    found = direction_of_text(f"rate 2 Mbit/s, queue {queue}, delay 10 ms")
    assert direction_of_text(text_of_direction(found)) == found
    assert direction_plan(found, MS10)


def test_it_is_set_by_its_limit_alone() -> None:
    (scenario,) = from_text(TEXT.format(queue="droptail 20 kB", rate="2 Mbit/s"))
    changed = override(scenario, {"path.down.queue": "max(0.5 BDP, 4 packets)"})
    assert str(changed.path.down.queue) != str(scenario.path.down.queue)
    again = changed.normalised()["path"]["down"]["queue"]
    assert again == {"droptail": "max(0.5 BDP, 4 packets)"}
