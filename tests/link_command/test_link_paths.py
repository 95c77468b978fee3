"""The path that the options of ``streamgauge link`` describe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streamgauge.errors import ScenarioError
from streamgauge.link_command.options import LinkRequest
from streamgauge.link_command.paths import label_of, path_of
from streamgauge.link_command.record import LONGEST_S, MOST_STEPS, longest_s, plan_of
from streamgauge.scenario import Path as NetworkPath
from streamgauge.scenario.path import DelaySettings, Direction, preset, preset_names, shipped_traces
from streamgauge.systems.tcp import planned_tcp


def test_nothing_said_is_a_plain_wire() -> None:
    path = path_of(down=None, up=None, preset_name=None, trace=None)
    assert path.down.chain() == path.up.chain() == ()


def test_a_text_over_a_preset_changes_what_it_says_and_no_more() -> None:
    changed = 0
    for name in preset_names():
        base = preset(name)
        if base.down.stages is not None or base.down.rate is None:
            continue
        path = path_of(down="rate 3 Mbit/s, delay 77 ms", up=None, preset_name=name, trace=None)
        assert path.up == base.up
        assert (str(path.down.rate), str(path.down.delay)) == ("3 Mbit/s", "77 ms")
        assert path.down.queue == base.down.queue, "a rate alone leaves the preset's queue"
        changed += 1
    assert changed


def test_the_preset_itself() -> None:
    for name in preset_names():
        path = path_of(down=None, up=None, preset_name=name, trace=None)
        assert path == preset(name)


@pytest.mark.parametrize(
    ("down", "trace", "words"),
    [
        ("rate 1 Mbit/s", Path("x"), "exclude each other"),
        ("trace y", Path("x"), "exclude each other"),
        (None, Path("a,b"), "a comma"),
        ("rates 1 Mbit/s", None, "--down.*did you mean 'rate"),
    ],
)
def test_mistakes(down: str | None, trace: Path | None, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        path_of(down=down, up=None, preset_name=None, trace=trace)


@pytest.mark.parametrize(
    ("said", "label"),
    [
        ({}, "plain wire"),
        ({"down": "rate 1 Mbit/s,  mtu 1 kB", "up": "loss 1 %"}, "down rate 1 Mbit/s, mtu 1 kB; up loss 1 %"),
        ({"down": "delay 20 ms", "up": "delay 20 ms"}, "delay 20 ms"),
        ({"preset_name": "lte", "up": "loss 1 %"}, "lte; up loss 1 %"),
        ({"trace": Path("/some/where/walk.pps")}, "down trace walk.pps"),
        ({"trace": Path("walk.pps"), "down": "delay 5 ms"}, "down delay 5 ms, trace walk.pps"),
    ],
)  # fmt: skip
def test_a_label_is_in_the_callers_own_words(said: dict[str, Any], label: str) -> None:
    assert label_of(**{"down": None, "up": None, "preset_name": None, "trace": None} | said) == label


def test_a_preset_may_be_changed_in_parts() -> None:
    base = preset("lte")

    def down(text: str) -> Direction:
        return path_of(down=text, up=None, preset_name="lte", trace=None).down

    assert down("queue codel") == base.down.changed(queue="codel")
    assert down("shaper token_bucket 3 kB") == base.down.changed(shaper="token_bucket 3 kB")
    varied = down("jitter normal 1 ms")
    assert isinstance(varied.delay, DelaySettings)
    assert isinstance(base.down.delay, DelaySettings)
    assert varied.delay.constant == base.down.delay.constant
    assert varied.delay.jitter != base.down.delay.jitter
    assert varied.changed(delay=base.down.delay) == base.down


def request(path: NetworkPath) -> LinkRequest:
    return LinkRequest(command=("true",), path=path)


@pytest.mark.parametrize("name", list(shipped_traces()))
def test_a_link_runs_behind_every_trace_that_ships(name: str) -> None:
    path = path_of(down=None, up=None, preset_name=None, trace=Path(name))
    plan = plan_of(request(path), "empty")
    [stage] = plan["path"]["down"]
    steps = stage["kind"]["bottleneck"]["rate"].get("steps", [])
    assert len(steps) <= MOST_STEPS
    # Steps repeat until the link's end, which is hours away at least; opportunities repeat by themselves.
    assert plan["duration"] / 1e9 == longest_s(path) >= (3600 if steps else LONGEST_S)


@pytest.mark.parametrize("duration_s", [None, 2.5])
def test_a_links_plan_says_nothing_of_tcp(duration_s: float | None) -> None:
    made = request(path_of(down="delay 5 ms", up=None, preset_name=None, trace=None))
    plan = plan_of(made, "empty", duration_s)
    (flow,) = plan["flows"]
    assert flow["app"] == "external" and planned_tcp(flow) is None
    assert plan["duration"] == (duration_s or LONGEST_S) * 1e9


def test_what_only_a_whole_path_shows_to_be_wrong() -> None:
    path = path_of(down=None, up="rate 1 Mbit/s, queue 1 BDP", preset_name=None, trace=None)
    with pytest.raises(ScenarioError, match="--up: queue: 1 BDP of a path without delay"):
        plan_of(request(path), "empty")
