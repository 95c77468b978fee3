"""A rule that is a function of Python: a player of ours calls it on sockets, as in sim."""

from __future__ import annotations

from driving import Person, said

TEXT = """
id: test/function-rule
title: A rule of the user's own
path: {down: {rate: 2 Mbit/s, queue: droptail 50 packets, delay: 10 ms}, up: {delay: 10 ms}}
flows:
  video:
    role: subject
    system: dash
    clip: {source: testsrc2, ladder: [100k, 300k], segment: 2 s}
    parameters: {rule: "rule.py:NAME", buffer: 6 s}
until: {time: 8 s}
"""

RULE = """
class Alternate:
    def __init__(self):
        self.calls = 0

    def __call__(self, now):
        self.calls += 1
        assert len(now.fetched) == self.calls - 1 and now.rates_bps == [100_000, 300_000]
        return self.calls % 2, f"call {self.calls}"


def late(now):
    if now.segment == 2:
        raise RuntimeError("no more")
    return 0
"""


def test_a_player_on_sockets_asks_the_function_that_sim_asks(anyone: Person) -> None:
    (anyone.home / "rule.py").write_text(RULE)
    text = TEXT.replace("NAME", "Alternate")
    emulated, sim = anyone.trials(text)[-1], anyone.simulated(text)[0]
    assert emulated["valid"], emulated["why"]
    for trial in (emulated, sim):
        assert said(trial, "decision")[:3] == [300e3, 100e3, 300e3]


def test_a_function_that_raises_makes_the_trial_invalid_with_its_message(anyone: Person) -> None:
    (anyone.home / "rule.py").write_text(RULE)
    trial = anyone.trials(TEXT.replace("NAME", "late"))[-1]
    assert not trial["valid"]
    assert any("rule.py:late: RuntimeError: no more" in why for why in trial["why"])
