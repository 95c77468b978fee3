"""Addresses below the path reach into words, stages and presets."""

from __future__ import annotations

from typing import Any

import pytest
from link_elements import SCENARIO
from streamgauge.errors import ScenarioError
from streamgauge.scenario import Direction, from_text, override

Q = "rate: 1 Mbit/s, queue: codel 100 packets"
CODEL = {"queue": "codel 100 packets"}

REACHED: list[tuple[str, str, dict[str, Any]]] = [
    (f"{{{Q}}}", "queue.codel.target=10ms", {"queue": "codel 100 packets target 10 ms"}),
    (f"{{{Q}}}", "queue=pie", {"queue": "pie"}),
    (f"{{{Q}}}", "bottleneck.queue.codel.limit=50 packets", {"queue": "codel 50 packets"}),
    (
        f"{{{Q}}}",
        "shaper.token_bucket.burst=3 kB",
        {**CODEL, "shaper": "token_bucket 3 kB"},
    ),
    (f"{{{Q}, shaper: cbq}}", "shaper=serial", CODEL),
    (
        f"{{{Q}, shaper: cbq}}",
        "shaper.cbq.ewma_log=6",
        {**CODEL, "shaper": "cbq ewma_log 6"},
    ),
]


@pytest.mark.parametrize(
    ("down", "setting", "wanted"), REACHED, ids=[f"{one[0]} {one[1]}" for one in REACHED]
)
def test_settings_of_a_bottleneck(down: str, setting: str, wanted: dict[str, Any]) -> None:
    (scenario,) = from_text(SCENARIO.replace("DOWN", down), settings=(f"path.down.{setting}",))
    assert scenario.path.down == Direction(rate="1 Mbit/s", **wanted)  # type: ignore[arg-type]
    # From Python, and from a scenario as it prints itself, the same.
    (plain,) = from_text(SCENARIO.replace("DOWN", down))
    address, _, value = f"path.down.{setting}".partition("=")
    assert override(plain, {address: value}).path == scenario.path


ELEMENTS = [
    ("{loss: 1 %}", "loss.switch=[{at: 1 s, to: off}]", "loses 1 % at random, off at 1 s"),
    ("{delay: 10 ms}", "delay.jitter=5ms", "10 ms of delay with jitter of up to 5 ms either way"),
    ("{reorder: 1 % 5 ms}", "reorder.extra=9ms", "holds 1 % back by 9 ms"),
    ("{block: udp}", "block.protocol=tcp", "lets no TCP through"),
    ("{block: udp}", "block.ports=53 123", "lets no UDP from or to ports 53 and 123 through"),
    ("{mtu: 900 B}", "mtu.size=600 B", "an MTU of 600 B"),
    ("{stages: [{name: air, loss: 1 %}]}", "air.loss=2 %", "loses 2 % at random"),
    ("{stages: [{name: net, rate: 1 Mbit/s, queue: codel}]}", "net.queue.codel.ecn=true", "ECN"),
]


@pytest.mark.parametrize(("down", "setting", "words"), ELEMENTS, ids=[one[1] for one in ELEMENTS])
def test_settings_of_other_elements(down: str, setting: str, words: str) -> None:
    from streamgauge.scenario.path import direction_in_words

    (scenario,) = from_text(SCENARIO.replace("DOWN", down), settings=(f"path.down.{setting}",))
    assert words in direction_in_words(scenario.path.down)


def test_a_setting_of_another_discipline_is_refused() -> None:
    with pytest.raises(ScenarioError, match="'codel' and 'pie' exclude each other"):
        from_text(SCENARIO.replace("DOWN", f"{{{Q}}}"), settings=("path.down.queue.pie.target=5ms",))


LIMITS = [
    ("{rate: 1 Mbit/s, queue: droptail 5 kB}", "queue=10kB", "drop-tail queue of 10 kB"),
    ("{rate: 1 Mbit/s, queue: {droptail: 5 kB}}", "queue=2.5 BDP", "drop-tail queue of 2.5 BDP"),
    ("{rate: 1 Mbit/s, queue: pie}", "queue=pie 50kB", "PIE queue of 50 kB"),
    ("{stages: [{name: net, rate: 1 Mbit/s, queue: droptail 5 kB}]}", "net.queue=10kB", "of 10 kB"),
]


@pytest.mark.parametrize(("down", "setting", "words"), LIMITS, ids=[one[1] for one in LIMITS])
def test_a_limit_alone_is_a_drop_tail_queue(down: str, setting: str, words: str) -> None:
    from streamgauge.scenario.path import direction_in_words

    (scenario,) = from_text(SCENARIO.replace("DOWN", down), settings=(f"path.down.{setting}",))
    assert words in direction_in_words(scenario.path.down)


@pytest.mark.parametrize("queue", ["codel 100 packets", "{codel: {limit: 100 packets}}", "codel"])
def test_a_limit_alone_does_not_say_which_discipline_is_meant(queue: str) -> None:
    text = SCENARIO.replace("DOWN", f"{{rate: 1 Mbit/s, queue: {queue}}}")
    with pytest.raises(ScenarioError, match="is a limit alone, and the queue is codel") as caught:
        from_text(text, settings=("path.down.queue=10kB",))
    assert "write 'codel 10kB' or 'droptail 10kB'" in str(caught.value)
