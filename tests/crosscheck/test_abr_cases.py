"""What the crosscheck of adaptive bit rate runs: drawn by a seed, each condition by its own name."""

from __future__ import annotations

import fnmatch

import pytest
from streamgauge.crosscheck.abr import ABR
from streamgauge.crosscheck.abr.cases import KINDS, SUBJECTS, _by_second, cases
from streamgauge.crosscheck.abr.matter import MUTANTS, SWITCHES, varied
from streamgauge.crosscheck.run import select
from streamgauge.errors import ScenarioError
from streamgauge.scenario import lower
from streamgauge.scenario.path import shipped_traces


def test_each_player_has_each_kind_of_link() -> None:
    found = cases()
    assert len(found) == 20
    assert {case.id for case in found} == {f"{subject}/{kind}" for subject in SUBJECTS for kind in KINDS}
    for case in found:
        flow = case.scenario.flows["video"]
        assert case.scenario.unsupported("emu") is None
        stand_in = case.scenario.in_mode("sim").flows["video"]
        # The same player, buffer and ladder on the same path.
        assert flow.parameters["player"] == stand_in.parameters["player"]
        assert flow.parameters["buffer"] == stand_in.parameters["buffer"]
        assert flow.clip == stand_in.clip
        plan = lower(case.scenario, "sim", 1)
        assert plan["duration"] / 1e9 + case.buffer_s < flow.clip.duration.s
        app = plan["flows"][0]["app"]["dash"]
        assert app["ladder"]["segment"] == case.segment_s * 10**9
        assert app["player"]["fast_switch"] == (case.subject == "dashjs")


def test_conditions_are_drawn_alike_every_time_and_lie_where_they_should() -> None:
    assert [case.scenario for case in cases()] == [case.scenario for case in cases()]
    for case in cases():
        assert 20 <= int(case.conditions["rtt"].split()[0]) <= 200
        assert case.conditions["segment"] in ("2 s", "4 s")
        assert case.buffer_s in SUBJECTS[case.subject].buffers_s
    drawn = [tuple(case.conditions.values()) for case in cases()]
    assert len(set(drawn)) == len(drawn)
    # These are what docs/fidelity-abr.md measured; another draw needs other trials.
    assert cases()[0].conditions["rate"] == "665 kbit/s"
    assert cases()[18].conditions["rate"] == "3360 and 324 kbit/s, 22 s a period"


def test_short_sessions_never_pass_for_long_ones() -> None:
    assert not {case.scenario.id for case in cases()} & {case.scenario.id for case in cases(quick=True)}
    assert all(short.emu < long.emu for short, long in zip(cases(quick=True), cases(), strict=True))


@pytest.mark.parametrize("name", sorted(shipped_traces()))
def test_a_trace_by_the_second_keeps_its_mean(name: str) -> None:
    from streamgauge.scenario.path import TraceFile

    seconds = _by_second(name)
    trace = TraceFile.model_validate(name)
    assert len(seconds) == trace.duration_ns() // 10**9
    assert 1000 * sum(seconds) / len(seconds) == pytest.approx(trace.mean_bps(), rel=0.02)


def test_every_mutant_and_switch_is_known_to_the_simulated_player() -> None:
    assert {mutant.name for mutant in MUTANTS} >= {
        "bola-is-throughput",
        "no-safety-factor",
        "no-abandonment",
        "no-fast-switch",
    }
    for mutant in MUTANTS:
        mine = select(ABR, [mutant.cases])
        assert mine and all(varied(case, mutant.variant).scenario != case.scenario for case in mine)
    theirs = {case.id: case for case in cases()}
    for switch, variant in SWITCHES.items():
        mine = fnmatch.filter(theirs, str(variant.get("only", "*")))
        for case in (theirs[name] for name in mine):
            assert varied(case, variant).scenario != case.scenario, switch
        assert mine, switch
    (case,) = select(ABR, ["hlsjs/square"])
    with pytest.raises(ScenarioError, match="no_such"):
        varied(case, {"no_such": "1 s"})
    with pytest.raises(ScenarioError, match=r"such as 'dashjs/\*' or|did you mean"):
        select(ABR, ["reno/*"])


def test_only_the_simulated_side_is_changed() -> None:
    (case,) = select(ABR, ["dashjs/steps"])
    changed = varied(case, {"fits_whole": "off", "abandonment": "off"})
    assert lower(changed.scenario, "emu", 1) == lower(case.scenario, "emu", 1)
    player = lower(changed.scenario, "sim", 1)["flows"][0]["app"]["dash"]["player"]
    assert not player["fits_whole"] and not player["abandonment"]
    before = lower(case.scenario, "sim", 1)["flows"][0]["app"]["dash"]["player"]
    assert before["fits_whole"] and before["abandonment"]
