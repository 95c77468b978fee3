"""The path that the options of ``streamgauge link`` describe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streamgauge.around.paths import label_of, path_of
from streamgauge.errors import ScenarioError
from streamgauge.scenario.path import preset, preset_names


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
