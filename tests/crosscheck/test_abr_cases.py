"""What the crosscheck of adaptive bit rate runs: drawn by a seed, each condition by its own name."""

from __future__ import annotations

import fnmatch

import pytest
from streamgauge.crosscheck.abr import ABR
from streamgauge.crosscheck.abr.cases import (
    KINDS,
    LADDERS,
    POSITIONS_S,
    SEGMENTS_S,
    SUBJECTS,
    _by_second,
    cases,
)
from streamgauge.crosscheck.abr.matter import MUTANTS, SWITCHES, varied
from streamgauge.crosscheck.run import select
from streamgauge.errors import ScenarioError
from streamgauge.scenario import lower
from streamgauge.scenario.path import shipped_traces


def test_every_player_meets_every_length_of_segments_and_every_kind_of_link() -> None:
    found = cases()
    assert SEGMENTS_S == (2, 4, 6)
    assert set(SUBJECTS) == {"dashjs", "dashjs-throughput", "dashjs-bola", "hlsjs", "shaka"}
    crossed = {(case.subject, case.segment_s) for case in found}
    assert crossed == {(subject, length) for subject in SUBJECTS for length in SEGMENTS_S}
    for subject in SUBJECTS:
        assert {case.kind for case in found if case.subject == subject} == set(KINDS)
    for case in found:
        assert case.id == f"{case.subject}/{case.segment_s}s-{case.kind}"
        flow = case.scenario.flows["video"]
        assert case.scenario.unsupported("emu") is None
        stand_in = case.scenario.in_mode("sim").flows["video"]
        # The same player, buffer, position and ladder on the same path.
        for key in ("player", "buffer", "begin_at"):
            assert flow.parameters[key] == stand_in.parameters[key]
        assert flow.clip == stand_in.clip
        plan = lower(case.scenario, "sim", 1)
        assert case.begin_s + plan["duration"] / 1e9 + case.buffer_s < flow.clip.duration.s
        assert flow.clip.duration.s % case.segment_s == 0
        app = plan["flows"][0]["app"]["dash"]
        assert app["ladder"]["segment"] == case.segment_s * 10**9
        assert app["player"]["begin_at"] == case.begin_s * 10**9
        assert app["player"]["fast_switch"] == (case.subject == "dashjs")


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_player_meets_every_ladder_buffer_and_position(subject: str) -> None:
    mine = [case for case in cases() if case.subject == subject]
    assert {case.conditions["ladder"].split()[0] for case in mine} == {name for name, _ in LADDERS}
    assert {case.buffer_s for case in mine} == set(SUBJECTS[subject].buffers_s)
    assert {case.begin_s for case in mine} == set(POSITIONS_S)


def test_a_case_has_eight_real_trials() -> None:
    assert {case.emu for case in cases()} == {8}


def test_conditions_are_drawn_alike_every_time_and_lie_where_they_should() -> None:
    assert [case.scenario for case in cases()] == [case.scenario for case in cases()]
    for case in cases():
        assert 20 <= int(case.conditions["rtt"].split()[0]) <= 200
        assert case.buffer_s in SUBJECTS[case.subject].buffers_s
    drawn = [tuple(case.conditions.values()) for case in cases()]
    assert len(set(drawn)) == len(drawn)
    # These are what docs/fidelity-abr.md measured; another draw needs other trials.
    assert cases()[0].conditions["rate"] == "3490 kbit/s"
    assert cases()[1].conditions["rate"] == "3134 and 562 kbit/s, 19 s a period"


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
    (case,) = select(ABR, ["hlsjs/4s-square"])
    with pytest.raises(ScenarioError, match="no_such"):
        varied(case, {"no_such": "1 s"})
    with pytest.raises(ScenarioError, match=r"such as 'dashjs/\*' or|did you mean"):
        select(ABR, ["reno/*"])


def test_only_the_simulated_side_is_changed() -> None:
    (case,) = select(ABR, ["dashjs/4s-steps"])
    changed = varied(case, {"fits_whole": "off", "abandonment": "off"})
    assert lower(changed.scenario, "emu", 1) == lower(case.scenario, "emu", 1)
    player = lower(changed.scenario, "sim", 1)["flows"][0]["app"]["dash"]["player"]
    assert not player["fits_whole"] and not player["abandonment"]
    before = lower(case.scenario, "sim", 1)["flows"][0]["app"]["dash"]["player"]
    assert before["fits_whole"] and before["abandonment"]
