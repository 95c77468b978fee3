"""A difference is explained only by a switch that takes it away."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest
from streamgauge.campaign import EmuSettings
from streamgauge.crosscheck.cases import CONTROL, Case
from streamgauge.crosscheck.explain import explain
from streamgauge.crosscheck.rows import ComparisonRow, rows_of
from streamgauge.crosscheck.run import select
from streamgauge.crosscheck.tcp import SWITCHES, TCP, varied
from streamgauge.crosscheck.trials import Bench
from streamgauge.errors import ScenarioError


@pytest.fixture
def case() -> Case:
    (found,) = select(TCP, ["reno/10m-25kb"], quick=True)
    return found


def against(case: Case, reference: Case, out: Path) -> list[ComparisonRow]:
    """Rows of `case` in sim against `reference` in sim, judged further."""
    bench = Bench(TCP, out, EmuSettings(), reference="sim")
    (sim,) = bench.simulate("sim", [case]).values()
    (real,) = bench.simulate("reference", [reference]).values()
    rows = rows_of(TCP, case, sim, real)
    assert [row for row in rows if row.verdict == "different"], "a reference that differs"
    return explain(bench, [case], {case.id: (sim, real)}, rows)


def test_the_mechanism_that_the_reference_lacks_is_named(case: Case, tmp_path: Path) -> None:
    rows = against(case, varied(case, {"parameters.delayed_ack": "0 ms"}), tmp_path)
    (row,) = [row for row in rows if row.metric == "acks_per_packet"]
    assert row.verdict == "explained"
    assert row.explained is not None
    assert row.explained["switch"] == "delayed_ack 0 ms"
    assert row.explained["before"] == row.comparison.sim
    assert row.explained["after"] == pytest.approx(1.0, abs=0.05)


def test_the_jitter_of_hosts_is_the_scenarios_own(case: Case) -> None:
    changed = varied(case, {"host_jitter": "600 us"})
    assert changed.scenario.host_jitter.ns == 600_000
    assert changed.scenario.flows == case.scenario.flows


def test_what_no_switch_takes_away_is_unexplained(case: Case, tmp_path: Path) -> None:
    other = varied(case, {"congestion_control": "cubic"})
    rows = against(case, other, tmp_path)
    (row,) = [row for row in rows if row.metric == "window_drop_percent"]
    assert row.verdict == "unexplained" and row.explained is None


def test_what_describes_losses_has_a_row_where_there_are_any(case: Case, tmp_path: Path) -> None:
    bench = Bench(TCP, tmp_path, EmuSettings(), reference="sim")
    limited = varied(case, {"parameters.receive_window": "16 KiB"})
    (sim,) = bench.simulate("sim", [case]).values()
    (lossless,) = bench.simulate("lossless", [limited]).values()
    rows = {row.metric: row for row in rows_of(TCP, case, sim, lossless)}
    assert rows["loss_percent"].verdict == "different"
    assert not {"losses_per_event", "loss_interval_mean_s", "repeats_per_loss"} & set(rows)
    assert "losses_per_event" in {row.metric for row in rows_of(TCP, case, sim, sim)}


def test_every_switch_is_known_to_the_simulator(case: Case) -> None:
    (cubic,) = select(TCP, ["cubic/10m-25kb"], quick=True)
    for switch, variant in SWITCHES.items():
        changed = varied(cubic, variant)
        assert changed.scenario != cubic.scenario, switch
    with pytest.raises(ScenarioError, match="no_such"):
        varied(case, {"parameters.no_such": "1 s"})


def test_with_the_window_of_linux_6_1_cubics_slow_start_goes_on_to_the_first_loss(tmp_path: Path) -> None:
    """Nothing but the first 16 segments is acknowledged singly at first, and HyStart meets no train."""
    (case,) = select(TCP, ["cubic/10m-25kb"], quick=True)
    assert isinstance(case, Case)
    bench = Bench(TCP, tmp_path, EmuSettings(), reference="sim")
    peaks = {}
    for switch in ("without early_growth", "as Linux 6.1", "without frto"):
        (runs,) = bench.simulate(switch, [replace(varied(case, SWITCHES[switch]), sim=1)]).values()
        peaks[switch] = runs.values("start_peak_packets")
    # A virtual machine's flow has 49, sim's else 34.
    assert peaks["without early_growth"] == peaks["as Linux 6.1"] == [pytest.approx(49, abs=2)]
    assert peaks["without frto"] == [pytest.approx(34, abs=2)]


def test_what_linux_6_1_offers_of_a_small_buffer_and_sends_together_is_on_the_wire(tmp_path: Path) -> None:
    """Against figures of virtual machines' trials."""
    wanted = ["reno-17520/1m-100p", "cubic/480k-tbf", "bic/1m-75kb"]
    small, cubic, bic = sorted(select(TCP, wanted), key=lambda case: wanted.index(case.id))
    bench = Bench(TCP, tmp_path, EmuSettings(), reference="sim")

    def figure(case: Case, switch: str, metric: str) -> float:
        changed = varied(case, SWITCHES[switch]) if switch else case
        (runs,) = bench.simulate(switch or "sim", [replace(changed, sim=1)]).values()
        (value,) = runs.values(metric)
        assert value is not None
        return value

    # 12 segments are under way, or 11 and what the window has left besides; the guest's has 123 ms.
    assert figure(small, "", "rtt_p5_s") == pytest.approx(0.145, abs=0.002)
    assert figure(small, "as Linux 6.1", "rtt_p5_s") == pytest.approx(0.123, abs=0.013)
    # A loss 0.67 s after the last one on average, unevenly (the guest has 0.526), or each after 0.96 s.
    assert figure(cubic, "", "loss_interval_cov") == pytest.approx(0.526, abs=0.1)
    assert figure(cubic, "without tso_by_rtt", "loss_interval_cov") < 0.01
    # Five or six losses in a row at each maximum: 19 of them in the guest's 50 s, in 7 events.
    assert figure(bic, "without bic_per_round", "losses_per_event") == pytest.approx(19 / 7, abs=0.01)
    assert figure(bic, "without bic_per_round", "loss_interval_mean_s") == pytest.approx(6.409, abs=0.1)


def test_with_a_virtual_machines_hosts_and_control_connection_bbr_starts_as_there(tmp_path: Path) -> None:
    """Its first rate is ten segments in the handshake's round trip, and the window of its start three times
    what that rate brings in a millisecond."""
    wanted = ["bbr/1m-100p", "bbr/150k-tbf"]
    cases = sorted(select(TCP, wanted, quick=True), key=lambda case: wanted.index(case.id))
    bench = Bench(TCP, tmp_path, EmuSettings(), reference="sim")

    def figures(switch: str, metric: str) -> list[float]:
        changed = [replace(varied(case, SWITCHES[switch]) if switch else case, sim=4) for case in cases]
        found = bench.simulate(switch or "sim", changed)
        values = [found[case.id].values(metric) for case in cases]
        return [mean(value for value in some if value is not None) for some in values]

    # Guests have 130 packets and 30 losses, 16 and 25.5.
    there = "as Linux 6.1 in a virtual machine"
    assert figures(there, "start_peak_packets") == [130, 16]
    assert figures(there, "start_losses")[1] == pytest.approx(25.5, abs=2)
    assert figures("answer_after 49 us", "start_losses")[0] == 30
    # By default hosts answer later, and find the bucket full.
    assert figures("", "start_peak_packets")[0] < 122
    assert figures("", "start_losses")[1] > 32


def test_a_switch_may_change_tcp_and_add_a_control_connection(case: Case) -> None:
    both = varied(case, SWITCHES["as Linux 6.1, control connection"]).scenario
    assert set(both.flows) == {*case.scenario.flows, CONTROL}
    (flow,) = (flow for name, flow in both.flows.items() if name != CONTROL)
    assert set(flow.parameters["without"]) == set(SWITCHES["as Linux 6.1"]["parameters.without"])
    assert "without" not in both.flows[CONTROL].parameters
