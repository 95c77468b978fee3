"""Plain ARQ: its formula held against a draw of packets."""

from __future__ import annotations

import numpy as np
import pytest
from streamgauge.latency_table import arq_latency_s, arq_rounds, arq_share


def test_without_loss_no_round_is_needed() -> None:
    assert arq_rounds(0.0, {20: 1.0}, 0.999) == 0
    assert arq_latency_s(0.0, 0.1, {20: 1.0}, 1.0) == 0


def test_rounds_by_hand() -> None:
    # Of 20 packets at 2 %: 0.02, then 0.02 x 0.0396 = 0.00079, then 0.0000314; needed is below 0.00005.
    assert [round(arq_share(0.02, {20: 1.0}, k), 4) for k in range(3)] == [0.6676, 0.9843, 0.9994]
    assert arq_rounds(0.02, {20: 1.0}, 0.999) == 2
    assert arq_latency_s(0.02, 0.1, {20: 1.0}, 0.999) == pytest.approx(0.2)
    assert arq_rounds(0.02, {20: 0.5, 200: 0.5}, 0.999) == 3
    assert arq_rounds(0.999_999, {20: 1.0}, 0.999) is None


def test_the_share_is_that_of_packets_drawn() -> None:
    rng = np.random.default_rng(7)
    loss, packets, rounds = 0.2, 20, 3
    missing = rng.random((20_000, packets)) < loss
    for _ in range(rounds):
        fails = (rng.random(missing.shape) < loss) | (rng.random(missing.shape) < loss)
        missing &= fails
    drawn = float(np.mean(~missing.any(axis=1)))
    assert arq_share(loss, {packets: 1.0}, rounds) == pytest.approx(drawn, abs=0.01)
