"""A congestion control that is a class or a function of Python: its events, its answers, its faults."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from streamgauge import _native
from streamgauge.campaign.plan import resume_key
from streamgauge.errors import ScenarioError
from streamgauge.report.words import flow_words
from streamgauge.scenario import Scenario, from_text, load_file, lower
from streamgauge.scenario.words import flow_in_words
from streamgauge.systems import call_watch

DOCS = Path(__file__).parents[2] / "docs" / "own-congestion-control.md"

SCENARIO = """
id: my/control
title: A control of mine
path: {down: {rate: 4 Mbit/s, queue: droptail 50 packets, delay: 10 ms}}
flows:
  bulk:
    role: subject
    traffic: bulk
    congestion_control: "control.py:NAME"
until: {time: 10 s}
"""

HEAD = """
class Base:
    def __init__(self, start):
        assert start.mss == 1448 and start.window == 14480 and start.seed >= 0
        self.window = start.window
    def on_ack(self, ack):
        pass
    def on_loss(self, loss):
        pass
    def on_timeout(self, timeout):
        pass
"""


def scenario(folder: Path, code: str, name: str = "Mine", text: str = SCENARIO) -> Scenario:
    (folder / "control.py").write_text(HEAD + code)
    file = folder / "mine.yaml"
    file.write_text(text.replace("NAME", name))
    (made,) = load_file(file)
    return made


def received(made: Scenario) -> int:
    summary, _, _ = _native.simulate_in_memory(json.dumps(lower(made, "sim", 1)))
    flow = json.loads(summary)["flows"][0]
    return int(flow["player_received_bytes"])


def test_the_page_s_class_and_function_fill_the_link(tmp_path: Path) -> None:
    found = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    one, other = (text for text in found if "class Gentle" in text or "def halve" in text)
    for name in ("Gentle", "halve"):
        made = scenario(tmp_path, one + other, name)
        got = received(made)
        assert 0.8 * 5e6 < got < 5e6
        assert received(made) == got, "two runs differ"


def test_the_window_and_the_pacing_rate_are_obeyed(tmp_path: Path) -> None:
    fixed = "class Mine(Base):\n    def on_open(self, event):\n        self.window = WINDOW\n"
    # One window in each round trip of 10 ms, with its own transmission of 3 ms.
    small = received(scenario(tmp_path, fixed.replace("WINDOW", "2 * event.mss")))
    large = received(scenario(tmp_path, fixed.replace("WINDOW", "200 * event.mss")))
    assert small < 0.7 * large
    paced = fixed.replace("WINDOW", "200 * event.mss\n        self.pacing_bps = 1e6")
    assert received(scenario(tmp_path, paced)) == pytest.approx(1e6 / 8 * 10, rel=0.05)


def test_what_an_acknowledgement_says(tmp_path: Path) -> None:
    code = """
class Mine(Base):
    total = 0
    def on_ack(self, ack):
        assert ack.kind == "ack" and ack.mss == 1448 and ack.window == self.window
        assert ack.acked_bytes == ack.acked_segments * ack.mss and ack.marked_segments == 0
        assert 0.010 <= ack.min_rtt_s <= ack.srtt_s < 1 and 0 <= ack.now_s <= 10
        assert ack.rtt_s is None or ack.rtt_s >= ack.min_rtt_s
        assert ack.rate_bps is None or 0 < ack.rate_bps < 1e8
        assert ack.in_flight_bytes >= 0 and ack.lost_bytes >= 0
        self.total += ack.acked_bytes
        self.window += ack.acked_bytes
        if ack.now_s > 9:
            assert 3e6 < self.total < 5e6
    def on_loss(self, loss):
        assert loss.kind == "loss" and loss.acked_bytes == 0
        self.window /= 2
"""
    assert received(scenario(tmp_path, code)) > 3e6


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("    def on_ack(self, ack):\n        1 / 0\n", r"at 0\.\d+ s, ack: ZeroDivisionError"),
        (
            "    def on_ack(self, ack):\n        self.window = float('nan')\n",
            "its window is NaN B; 1 B to 1 GiB",
        ),
        ("    def on_ack(self, ack):\n        self.window = -1\n", "its window is -1 B"),
        ("    def on_ack(self, ack):\n        self.window = float('inf')\n", "its window is inf B"),
        ("    def on_ack(self, ack):\n        self.window = 10**400\n", "not a number of bytes"),
        (
            "    def on_ack(self, ack):\n        self.window = 'wide'\n",
            "its window is 'wide', not a number of bytes",
        ),
        (
            "    def on_ack(self, ack):\n        self.pacing_bps = 0\n",
            "its pacing_bps is 0; 8 bit/s to 1 Tbit/s",
        ),
        ("    def on_ack(self, ack):\n        del self.window\n", "no attribute 'window'"),
        ("    def __init__(self):\n        pass\n", "when it was made: TypeError"),
        ("    on_loss = None\n    def on_ack(self, ack):\n        self.window += 10**6\n", "loss: TypeError"),
    ],
)
def test_a_fault_ends_the_trial_with_file_class_and_time(tmp_path: Path, code: str, why: str) -> None:
    with pytest.raises(ScenarioError, match=why) as raised:
        received(scenario(tmp_path, "class Mine(Base):\n" + code))
    assert f"{tmp_path}/control.py:Mine: " in str(raised.value)


def test_a_call_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_watch, "LONGEST_S", 2)
    code = "class Mine(Base):\n    def on_ack(self, ack):\n        while True:\n            pass\n"
    with pytest.raises(ScenarioError, match="ack: CallTooLongError: the call did not return within 2 s"):
        received(scenario(tmp_path, code))


def test_a_class_without_a_method_and_a_file_that_fails_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="the class has no method on_loss") as raised:
        received(scenario(tmp_path, "class Mine:\n    def on_ack(self, ack):\n        pass\n"))
    assert "congestion_control" in str(raised.value)
    with pytest.raises(ScenarioError, match="RuntimeError: at once"):
        received(scenario(tmp_path, "class Mine(Base):\n    pass\nraise RuntimeError('at once')\n"))


def test_names_that_lead_nowhere_are_refused_at_their_key(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="no function 'Other' at its top") as raised:
        scenario(tmp_path, "class Mine(Base):\n    pass\n", "Other")
    assert "flows.bulk.congestion_control" in str(raised.value)
    with pytest.raises(ScenarioError, match=r"FILE\.py:NAME, or {bpf: FILE\.o}"):
        from_text(SCENARIO.replace("control.py:NAME", "cubicc"))


def test_results_say_whose_it_is_and_a_changed_file_is_another_trial(tmp_path: Path) -> None:
    made = scenario(tmp_path, "class Mine(Base):\n    pass\n")
    assert "control.py:Mine (a function of Python)" in flow_in_words(made.flows["bulk"])
    assert "control.py:Mine (a function of Python)" in flow_words(made.normalised()["flows"]["bulk"])
    why = made.unsupported("emu")
    assert why is not None and "Linux has no function of Python; run in sim" in why
    before = resume_key(made, "sim", 1)
    changed = scenario(tmp_path, "class Mine(Base):\n    '''Changed.'''\n")
    assert resume_key(changed, "sim", 1) != before


def test_marks_are_counted_for_it(tmp_path: Path) -> None:
    text = SCENARIO.replace("droptail 50 packets", "dualpi2").replace(
        "traffic: bulk", "traffic: bulk\n    ecn: l4s"
    )
    code = """
class Mine(Base):
    seen = 0
    def on_ack(self, ack):
        self.seen += ack.marked_segments
        self.window += ack.acked_bytes / 100 - 0.5 * ack.mss * ack.marked_segments
        self.window = max(self.window, 2 * ack.mss)
        assert ack.now_s < 9 or self.seen > 10
"""
    assert received(scenario(tmp_path, code, text=text)) > 1e6
