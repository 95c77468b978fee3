"""The networks that a control is evaluated on."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from streamgauge.evaluate.network import AXES, CENTRE, HYPERCUBE, EvaluatedNetwork, hypercube
from streamgauge.evaluate.trials import ControlBed
from streamgauge.scenario import lower


def test_hypercube_has_one_condition_in_each_slice_of_each_axis() -> None:
    networks = hypercube()
    assert len(networks) == HYPERCUBE >= 60
    for values, low, high in (
        ([one.rate_bps for one in networks], 1e6, 500e6),
        ([one.rtt_s for one in networks], 0.005, 0.6),
        ([one.buffer_bdp for one in networks], 0.5, 16.0),
    ):
        # Three digits may carry a value over the edge of its slice, by 0.5 % at most.
        slices = sorted(math.log(value / low) / math.log(high / low) * HYPERCUBE for value in values)
        assert all(n - 0.2 <= slice_ <= n + 1.2 for n, slice_ in enumerate(slices))
    assert hypercube() == networks


@given(
    st.floats(1e5, 1e9), st.floats(0.001, 1.0), st.floats(0.1, 32.0), st.sampled_from(["droptail", "codel"])
)
def test_every_network_is_a_path_that_a_trial_can_have(
    rate: float, rtt: float, buffer: float, queue: str
) -> None:
    network = EvaluatedNetwork(rate_bps=rate, rtt_s=rtt, buffer_bdp=buffer, queue=queue)
    bed = ControlBed("cubic")
    trial = bed.trial(network, bed.mine())
    assert lower(trial.scenario, "sim", 1)["flows"]
    begin, end = network.measured_s
    assert 0 < begin < end - 2


def test_axes_go_through_the_centre() -> None:
    for axis, networks in AXES.items():
        for one in networks:
            changed = [
                name
                for name in ("rate_bps", "rtt_s", "buffer_bdp", "queue")
                if getattr(one, name) != getattr(CENTRE, name)
            ]
            assert len(changed) == 1, axis
