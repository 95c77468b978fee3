"""L4S over TCP: the words of `ecn`, what a mode cannot do, DCTCP at a step."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from streamgauge import _native
from streamgauge.errors import ScenarioError
from streamgauge.scenario import Scenario, from_text, lower

TCP = """
id: my/l4s
title: L4S
path: {down: {rate: 10 Mbit/s, queue: dualpi2}}
flows:
  one:
    role: subject
    traffic: bulk
    congestion_control: CONTROL
    ecn: ECN
until: {time: 5 s}
"""


def bulk(control: str, ecn: str) -> Scenario:
    (made,) = from_text(TCP.replace("CONTROL", control).replace("ECN", ecn))
    return made


@pytest.mark.parametrize(
    ("word", "kept", "planned"),
    [
        ("off", "off", (False, False)),
        ("on", "classic", (True, False)),
        ("true", "classic", (True, False)),
        ("classic", "classic", (True, False)),
        ("l4s", "l4s", (True, True)),
    ],
)
def test_the_words_of_ecn(word: str, kept: str, planned: tuple[bool, bool]) -> None:
    made = bulk("prague" if word == "l4s" else "cubic", word)
    tcp = lower(made, "sim", 1)["flows"][0]["app"]["bulk"]["tcp"]
    assert made.flows["one"].ecn == kept and (tcp["ecn"], tcp["l4s"]) == planned


def test_another_word_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"off.*classic.*l4s") as raised:
        bulk("cubic", "accurate")
    assert "flows.one.ecn" in str(raised.value)


def test_who_counts_marks_needs_them_and_who_does_not_cannot_have_them() -> None:
    for control in ("prague", "dctcp"):
        for ecn in ("off", "classic"):
            why = bulk(control, ecn).unsupported("sim")
            assert (
                why is not None
                and f"congestion control {control} counts marks in sim; write 'ecn: l4s'" in why
            )
        assert bulk(control, "l4s").unsupported("sim") is None
    why = bulk("cubic", "l4s").unsupported("sim")
    assert why is not None and "l4s needs a congestion control that counts marks, not cubic" in why


def test_emu_sends_no_ect_1() -> None:
    why = bulk("dctcp", "l4s").unsupported("emu")
    assert why is not None and "ecn: Linux's TCP here sends no ECT(1); run in sim" in why


def test_dctcp_keeps_a_step_queue_short() -> None:
    text = (
        TCP.replace("CONTROL", "dctcp")
        .replace("ECN", "l4s")
        .replace("queue: dualpi2", "delay: 10 ms, queue: {dualpi2: {l4s_step: 2 ms}}")
    )
    (made,) = from_text(text)
    _, found, _ = _native.simulate_in_memory(json.dumps(lower(made, "sim", 1)))
    columns: dict[str, Any] = dict(found)
    late = (columns["dir"] == 0) & (columns["stage"] == 0) & (columns["t_in"] > 2_000_000_000)
    late &= columns["t_out"] > 0
    waits = (columns["t_out"][late] - columns["t_in"][late]) / 1e9
    rate = columns["ip_bytes"][late].sum() * 8 / 3
    assert rate > 8e6 and math.isfinite(waits.max()) and float(np.quantile(waits, 0.95)) < 12e-3
