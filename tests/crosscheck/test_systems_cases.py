"""What the crosscheck of systems runs: drawn by a seed, each condition by its own name."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from streamgauge.crosscheck.run import select
from streamgauge.crosscheck.systems import patterns_of, systems_matter
from streamgauge.crosscheck.systems.cases import CONDITIONS, FLOW, RIVAL, cases
from streamgauge.crosscheck.systems.matter import MUTANTS, SWITCHES, varied
from streamgauge.errors import ScenarioError
from streamgauge.scenario import lower
from streamgauge.systems.compared import COMPARED
from streamgauge.systems.registry import CONSTANT_RATE, GREEDY_TCP, SYSTEMS


def test_every_system_with_ours_at_both_ends_in_both_modes_is_there() -> None:
    ours = {name for name, system in SYSTEMS.items() if system.ours >= {"sim", "emu"}}
    # A call has a live encoder in the place of a clip; no condition of the crosscheck gives it one yet.
    # str0m's call is built by `make setup-hosted` alone.
    # SRT's and RIST's cases are not measured yet: the page has a row for each case.
    assert {played.system for played in COMPARED.values()} == ours - {"call", "rist", "srt", "webrtc"}


def test_each_system_has_each_condition_and_both_modes_can_run_it() -> None:
    found = cases()
    assert [case.id for case in found] == patterns_of(None, CONDITIONS)
    for case in found:
        assert case.scenario.unsupported("sim") is None and case.scenario.unsupported("emu") is None
        plan = lower(case.scenario, "sim", 1)
        assert plan["duration"] == case.scenario.measure.window[1].ns
        assert lower(case.scenario, "emu", 1)["flows"][0]["app"] == plan["flows"][0]["app"]


def test_conditions_are_drawn_alike_every_time_and_lie_where_they_should() -> None:
    assert [case.scenario for case in cases()] == [case.scenario for case in cases()]
    for case in cases():
        played = COMPARED[case.subject]
        kbps = int(case.conditions["rate"].split()[0])
        low, high = played.rates
        assert low * 0.99 <= 1000 * kbps / played.asks_bps <= high * 1.01
        assert 4 <= int(case.conditions["rtt"].split()[0]) <= 200
        queue_s = float(case.conditions["queue"].split()[0]) * 8 / kbps
        assert queue_s <= 0.81 or case.conditions["queue"] == "6.0 kB"
        rival = case.scenario.flows.get(RIVAL)
        traffic = {"none": None, "paced": CONSTANT_RATE, "greedy": GREEDY_TCP}[case.kind]
        assert (rival.traffic if rival is not None else None) == traffic
    drawn = [tuple(case.conditions.values()) for case in cases()]
    assert len(set(drawn)) == len(drawn)
    # These are what docs/fidelity-systems.md measured; another draw needs other trials.
    assert cases()[0].conditions["rate"] == "446 kbit/s"
    assert dict(cases()[59].conditions) == {
        "rate": "422 kbit/s",
        "rtt": "34 ms",
        "queue": "36.9 kB",
        "loss": "none",
        "beside": "nothing",
    }


@pytest.mark.parametrize("subject", sorted(COMPARED))
def test_conditions_of_a_system_differ_in_kind_already_among_the_first(subject: str) -> None:
    mine = [case for case in cases() if case.subject == subject]
    assert {case.kind for case in mine[:3]} == {"none", "paced", "greedy"}
    assert ["none" in case.conditions["loss"] for case in mine[:4]] in (
        [True, False, True, False],
        [False, True, False, True],
    )


def test_more_conditions_change_none_and_short_sessions_never_pass_for_long_ones() -> None:
    more = {case.id: case for case in cases(conditions=CONDITIONS + 2)}
    assert all(more[case.id] == case for case in cases()) and len(more) == len(COMPARED) * (CONDITIONS + 2)
    assert not {case.scenario.id for case in cases()} & {case.scenario.id for case in cases(quick=True)}
    assert len(select(systems_matter(12), patterns_of("rtp", 12))) == 12


@pytest.mark.parametrize("subject", sorted(COMPARED))
def test_every_mutant_is_known_to_its_machine_and_changes_it_alone(subject: str) -> None:
    case = next(case for case in cases() if case.subject == subject)
    mine = [mutant for mutant in MUTANTS if fnmatchcase(case.id, mutant.cases)]
    assert len(mine) >= 3
    before = lower(case.scenario, "sim", 1)["flows"]
    for mutant in mine:
        after = lower(varied(case, mutant.variant).scenario, "sim", 1)["flows"]
        assert after[0]["app"] != before[0]["app"] and after[1:] == before[1:], mutant.name


def test_switches_of_tcp_reach_every_tcp_and_nothing_else() -> None:
    by_kind = {case.kind: case for case in cases() if case.subject == "rtp"}
    switch = SWITCHES["delayed_ack 200 ms"]
    changed = varied(by_kind["greedy"], switch).scenario
    assert "delayed_ack" in changed.flows[RIVAL].parameters
    assert "delayed_ack" not in changed.flows[FLOW].parameters
    with pytest.raises(ScenarioError, match="nothing runs over TCP"):
        varied(by_kind["paced"], switch)
    (fetched, *_) = [case for case in cases() if case.subject == "http" and case.kind == "greedy"]
    both = varied(fetched, switch).scenario.flows
    assert "delayed_ack" in both[FLOW].parameters and "delayed_ack" in both[RIVAL].parameters
    with pytest.raises(ScenarioError, match="no_such"):
        varied(fetched, {"no_such": "1 s"})


def test_iperf3s_exchange_is_of_a_download_beside_it_alone() -> None:
    by_kind = {case.kind: case for case in cases() if case.subject == "dash"}
    switch = SWITCHES["iperf3's exchange"]
    changed = varied(by_kind["greedy"], switch).scenario
    assert changed.flows[RIVAL].parameters["control_connection"] == "on"
    assert changed.flows[FLOW].parameters == by_kind["greedy"].scenario.flows[FLOW].parameters
    for kind in ("paced", "none"):
        with pytest.raises(ScenarioError, match="no TCP is beside it"):
            varied(by_kind[kind], switch)


def test_a_name_that_is_no_systems_is_told() -> None:
    with pytest.raises(ScenarioError, match="did you mean 'realvideo-udp'"):
        patterns_of("rtp,realvidio-udp", 3)
    with pytest.raises(ScenarioError, match=r"they are rtp, darwin|did you mean"):
        patterns_of("", 3)
