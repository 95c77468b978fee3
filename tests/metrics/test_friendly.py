"""Rates that a TCP would have."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.metrics.friendly import tcp_rate, tfrc_rate
from streamgauge.metrics.runs import loss_event_rate

SIZE = 8 * 1460


@given(st.floats(1e-6, 0.999), st.floats(0.001, 2.0))
def test_timeouts_only_take(loss: float, rtt_s: float) -> None:
    simple, whole = tcp_rate(SIZE, rtt_s, loss), tfrc_rate(SIZE, rtt_s, loss)
    assert 0 < whole < simple
    assert tcp_rate(SIZE, 2 * rtt_s, loss) == pytest.approx(simple / 2)
    assert tcp_rate(SIZE, rtt_s, min(1.0, 2 * loss)) < simple
    assert tfrc_rate(SIZE, rtt_s, min(1.0, 2 * loss)) < whole


def test_few_losses_make_the_two_the_same() -> None:
    assert tfrc_rate(SIZE, 0.1, 1e-8) == pytest.approx(tcp_rate(SIZE, 0.1, 1e-8), rel=1e-3)
    # sqrt(3/2) packets in a round trip over the root of the loss.
    assert tcp_rate(SIZE, 0.1, 0.01) == pytest.approx(SIZE * math.sqrt(1.5) * 10 / 0.1)
    # By RFC 5348's equation of 1000 bytes, 100 ms and 1 %.
    assert tfrc_rate(8000, 0.1, 0.01) == pytest.approx(8000 * 11.23 / 0.1, rel=0.001)
    assert tcp_rate(SIZE, 0.1, 0) == tfrc_rate(SIZE, 0.1, 0) == math.inf


@pytest.mark.parametrize("wrong", [(0, 0.1, 0.1), (SIZE, 0, 0.1), (SIZE, 0.1, 1.1), (SIZE, 0.1, -0.1)])
def test_what_is_no_path_is_refused(wrong: tuple[float, float, float]) -> None:
    for function in (tcp_rate, tfrc_rate):
        with pytest.raises(ValueError, match="needs a size and a round trip"):
            function(*wrong)


@given(st.lists(st.floats(0, 100), max_size=50), st.floats(0.001, 10))
def test_loss_events_are_losses_or_fewer(at: list[float], rtt_s: float) -> None:
    lost = np.array(sorted(at))
    events = round((loss_event_rate(100, lost, rtt_s) or 0) * 100)
    assert min(1, len(lost)) <= events <= len(lost)
    assert events <= round((loss_event_rate(100, lost, rtt_s / 2) or 0) * 100)


def test_losses_of_one_round_trip_are_one_event() -> None:
    assert loss_event_rate(10, np.array([1.0, 1.05, 1.1, 1.2, 3.0]), 0.1) == 0.3
    assert loss_event_rate(10, np.array([]), 0.1) == 0
    assert loss_event_rate(0, np.array([]), 0.1) is None
