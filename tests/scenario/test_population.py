"""``population:`` of clips and paths: drawn by number and name, the same for both modes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.campaign import run
from streamgauge.campaign.plan import resume_key
from streamgauge.errors import ScenarioError
from streamgauge.scenario import Population, Scenario, from_text, lower
from streamgauge.scenario.clips import media_clip
from streamgauge.scenario.draws import Distribution
from streamgauge.scenario.flow import Clip
from streamgauge.scenario.lower import as_drawn
from streamgauge.scenario.population import drawn, member, members
from streamgauge.scenario.recorded import recorded_clip, recorded_flows
from streamgauge.scenario.words import in_words
from streamgauge.units import Rate, Time

S = 10**9
TEXT = """\
id: test/population
title: Clips of a playlist
path:
  down: {rate: 2 Mbit/s, queue: droptail 100 ms}
flows:
  video: {role: subject, system: rtp, clip: carphone-100k}
population:
  size: 7
  rate: one of 56 kbit/s, 150 kbit/s, 150 kbit/s, 300 kbit/s
  duration: quantiles 2 s, 3 s, 8 s
  rtt: uniform 20 ms to 200 ms
  loss: uniform 0 to 2 %
until: {time: 3 s}
repetitions: {sim: 7}
"""


def scenario(*settings: str, text: str = TEXT) -> Scenario:
    (made,) = from_text(text, settings=settings)
    return made


def population(*settings: str, text: str = TEXT) -> Population:
    found = scenario(*settings, text=text).population
    assert found is not None
    return found


def refused(*settings: str, text: str = TEXT) -> str:
    with pytest.raises(ScenarioError) as caught:
        from_text(text, settings=settings)
    return str(caught.value)


def test_a_member_is_what_its_number_draws() -> None:
    whole = list(members(population()))
    assert [one.number for one in whole] == [1, 2, 3, 4, 5, 6, 7]
    assert len({str(one.rtt) for one in whole}) == 7
    for one in whole:
        assert one.rate in (Rate("56 kbit/s"), Rate("150 kbit/s"), Rate("300 kbit/s"))
        assert isinstance(one.duration, Time) and 2 * S <= one.duration.ns <= 8 * S
    # These are what every machine and every version draws.
    assert [str(value) for value in (whole[0].rate, whole[0].duration, whole[0].rtt)] == FIRST


FIRST = ["150 kbit/s", "2.988018 s", "43.99418 ms"]


@given(st.integers(1, 400), st.integers(1, 400), st.integers(0, 9))
def test_another_member_changes_no_draw(some: int, more: int, seed: int) -> None:
    few = population(f"population.size={some}", f"population.seed={seed}")
    many = population(f"population.size={some + more}", f"population.seed={seed}")
    assert member(few, some) == member(many, some)


def test_what_is_drawn_besides_changes_no_draw() -> None:
    with_loss, without = population(), population("population={size: 7, rtt: uniform 20 ms to 200 ms}")
    assert [one.rtt for one in members(with_loss)] == [one.rtt for one in members(without)]
    assert all(one.loss is None and one.rate is None for one in members(without))
    other = population("population.seed=2")
    assert [one.rtt for one in members(with_loss)] != [one.rtt for one in members(other)]


def test_quantiles_are_those_of_what_is_drawn() -> None:
    distribution = Distribution.parse("quantiles 20 s, 3 min, 30 min")
    drawn_s = [float(distribution.draw(1, str(number), "duration").amount) / S for number in range(4000)]
    for quantile_s, share in ((100, 0.25), (180, 0.5), (990, 0.75)):
        # Four standard errors of a share of 4000.
        assert sum(one < quantile_s for one in drawn_s) / 4000 == pytest.approx(share, abs=0.032)
    assert min(drawn_s) >= 20 and max(drawn_s) <= 1800


@given(st.sampled_from(["uniform", "one of", "quantiles"]), st.lists(st.integers(0, 10**6), min_size=2))
def test_a_distribution_is_read_as_it_is_written(form: Any, amounts: list[int]) -> None:
    amounts = sorted(amounts)[:2] if form == "uniform" else sorted(amounts)
    made = Distribution(form, tuple(Time.of(amount) for amount in amounts))
    assert Distribution.parse(str(made)) == made
    value = made.draw(3, "any", "thing")
    assert made.least <= value <= made.most


@pytest.mark.parametrize("seed", range(1, 15))
def test_the_plan_has_the_members_values(seed: int) -> None:
    made = scenario()
    one = member(population(), (seed - 1) % 7 + 1)
    plan = lower(made, "sim", seed)
    clip = plan["flows"][0]["app"]["rtp"]["clip"]
    assert isinstance(one.rate, Rate) and isinstance(one.duration, Time) and isinstance(one.rtt, Time)
    assert clip["duration"] == one.duration.ns
    mean_bps = 8e9 * sum(clip["frame_bytes"]) / len(clip["frame_bytes"]) / clip["frame_interval"]
    assert mean_bps == pytest.approx(one.rate.bps, rel=1e-3)
    assert clip["name"] == f"carphone-{one.rate.bps / 1000:g}k"
    delays = [
        stage["kind"]["delay"]["delay"]
        for direction in ("down", "up")
        for stage in plan["path"][direction]
        if "delay" in stage["kind"]
    ]
    assert sum(delays) == one.rtt.ns
    assert plan["path"]["down"][0]["kind"]["loss"]["model"]["bernoulli"]["probability"] == pytest.approx(
        float(one.loss.amount) / 100  # type: ignore[union-attr]
    )


def test_a_path_in_stages_gets_them_at_the_servers_end() -> None:
    """Beyond all that the scenario writes: first on the way down, last on the way up."""
    stages = "stages: [{name: dsl, rate: 700 kbit/s, queue: droptail 30 kB}, {name: near, delay: 1 ms}]"
    made = scenario(f"path.down={{{stages}}}", f"path.up={{{stages}}}")
    assert made.population is not None
    one = member(made.population, 1)
    assert isinstance(one.rtt, Time)
    plan = drawn(made, 1, "sim").path
    assert [stage.name for stage in plan.down.chain()] == ["loss", "delay", "dsl", "near"]
    assert [stage.name for stage in plan.up.chain()] == ["dsl", "near", "delay"]
    far = [stage.delay.ns for way in (plan.down, plan.up) for stage in way.chain() if stage.name == "delay"]
    assert sum(far) == one.rtt.ns


def test_a_playlist_is_played_in_its_order() -> None:
    clips = "[bikes-100k, {source: carphone, rate: 200 kbit/s, duration: 1 s}, testsrc2-300k]"
    made = scenario(f"population={{clips: {clips}}}")
    names = [lower(made, "sim", seed)["flows"][0]["app"]["rtp"]["clip"]["name"] for seed in (1, 2, 3, 4)]
    assert names == ["bikes-100k", "carphone-200k", "testsrc2-300k", "bikes-100k"]
    longer = scenario(f"population={{clips: {clips}, duration: uniform 1 s to 2 s}}")
    assert S <= lower(longer, "sim", 2)["flows"][0]["app"]["rtp"]["clip"]["duration"] <= 2 * S


def test_a_stand_ins_clip_is_the_one_that_is_drawn() -> None:
    video = (
        "system: {server: ./serve, player: ./play}, clip: carphone-550k, sim: {system: rtp, clip: bikes-1M}"
    )
    made = scenario(
        f"flows.video={{role: subject, {video}}}", "population={size: 2, duration: uniform 1 s to 2 s}"
    )
    clip = lower(made, "sim", 1)["flows"][0]["app"]["rtp"]["clip"]
    assert clip["name"] == "bikes-1000k" and S <= clip["duration"] <= 2 * S


def test_it_runs_and_its_record_knows_what_was_played(tmp_path: Path) -> None:
    made = scenario()
    result = run([made], {made.id: ["sim"]}, tmp_path)
    assert len({outcome.digest for outcome in result.outcomes}) == 7
    for outcome in result.outcomes:
        assert outcome.valid and outcome.metrics is not None
    again = run([made], {made.id: ["sim"]}, tmp_path)
    assert all(outcome.reused for outcome in again.outcomes)
    from streamgauge.record import Record

    for outcome in result.outcomes:
        trial = Record.open(outcome.job.directory).trial
        clip = drawn(made, outcome.job.seed, "sim").flows["video"].clip
        assert clip is not None
        assert recorded_clip(trial, "video") == media_clip(clip, Time("3 s"))


def test_it_decides_the_resume_key() -> None:
    key = resume_key(scenario(), "sim", 1)
    assert resume_key(scenario("population.seed=2"), "sim", 1) != key
    assert resume_key(scenario("population.rtt=uniform 20 ms to 201 ms"), "sim", 1) != key


def test_it_is_said_in_words_and_reads_again() -> None:
    made = scenario()
    assert "  population: 7 members, one a trial; rate one of 56 kbit/s," in "\n".join(in_words(made))
    assert Scenario.model_validate(made.normalised()) == made


BAD = [
    ("population={rtt: uniform 1 ms to 2 ms}", "population", "either a 'size', 'clips' or 'members'"),
    ("population={size: 3, clips: [bikes-1M]}", "population.size", "either a 'size', 'clips' or 'members'"),
    ("population.size=0", "population.size", "greater than or equal to 1"),
    ("population.duration=uniform 0 s to 3 s", "population.duration", "draws 0 s, which has nothing to play"),
    ("population.duration=uniform 1 kB to 3 kB", "population.duration", "is of a size, and a time is drawn"),
    ("population.duration=uniform 1 to 3", "population.duration", "has no unit"),
    ("population.duration=normal 3 s", "population.duration", "Expected such as `uniform 20 s to 3 min`"),
    ("population.duration=one of 3 s", "population.duration", "has one value; a distribution has two"),
    ("population.duration=quantiles 3 s, 2 s", "population.duration", "quantiles rise"),
    ("population.duration='one of 3 s, 2 kB'", "population.duration", "not of one kind"),
    ("population.rate=uniform 1 kbit/s to 2 Mbit/s", "population.rate", "draws less than 10 kbit/s"),
    ("population.loss=uniform 50 % to 150 %", "population.loss", "draws more than 100 %"),
    ("population.encodings=[7, 1]", "population.encodings", "the fewest, 7, are more than the most, 1"),
    ("population.durtaion=uniform 1 s to 2 s", "population.durtaion", "did you mean 'population.duration'?"),
    ("population.flow=vidoe", "population.flow", "did you mean 'video'?"),
    ("population={clips: [nosuch-1M]}", "population.clips.0", "no such content"),
    ("population={clips: []}", "population.clips", "a member at least"),
    (
        "population.encodings=[1, 2]",
        "population.encodings",
        "'rate' says what rates a clip has",
    ),
    (
        "population={size: 2, encodings: [1, 2]}",
        "population.encodings",
        "drawn from a ladder, and the flow's clip is none",
    ),
    ("path.down.loss=50 %", "path.down.loss", "'population.loss' draws it"),
    ("path.up.delay=5 ms", "path.up.delay", "'population.rtt' draws it"),
    (
        "randomize={path.down.delay: uniform 1 ms to 2 ms}",
        "randomize.path.down.delay",
        "'population.rtt' draws",
    ),
    ("assumed={path.down.loss: {try: [1 %, 2 %]}}", "assumed.path.down.loss", "'population.loss' draws it"),
    (
        "population={clips: [{source: carphone, ladder: [1M, 2M]}]}",
        "population.clips.0.ladder",
        "one encoding",
    ),
    (
        "path.down={stages: [{name: delay, delay: 1 ms}]}",
        "path.down.stages.0.name",
        "the stage that 'population' adds for 'rtt' is called 'delay'",
    ),
    ("flows.video={role: subject, traffic: bulk}", "population", "no flow plays a clip"),
    ("flows.more={role: rival, system: rtp, clip: bikes-1M}", "population", "write such as 'flow: video'"),
]


@pytest.mark.parametrize(("setting", "key", "says"), BAD)
def test_what_makes_no_sense_is_refused_at_its_key(setting: str, key: str, says: str) -> None:
    said = refused(setting)
    assert says in said and f" {key}" in said.replace("--set", " ")


def test_a_playlist_with_a_file_that_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    before, _, rest = TEXT.partition("population:\n")
    clips = "population:\n  clips:\n    - bikes-1M\n    - {file: none.mp4, rate: 1 Mbit/s}\n"
    file.write_text(before + clips + "until:" + rest.partition("until:")[2])
    with pytest.raises(ScenarioError, match=r"none\.mp4") as caught:
        from_text(file.read_text(), file=str(file), folder=tmp_path)
    assert (caught.value.line, caught.value.key) == (10, "population.clips.1.file")


LADDER = """\
id: test/ladders
title: Clips of several encodings
path: {down: {rate: 2 Mbit/s, queue: droptail 100 ms}}
flows:
  video:
    role: subject
    system: {server: ./serve, player: ./play}
    clip: {source: carphone, ladder: [56k, 100k, 150k, 300k], segment: 2 s}
    sim: {system: rtp, clip: carphone-100k}
population:
  size: 40
  encodings: [1, 4]
until: {time: 3 s}
"""


def test_a_member_has_some_encodings_of_the_ladder() -> None:
    made = scenario(text=LADDER)
    ladder = [Rate(text) for text in ("56 kbit/s", "100 kbit/s", "150 kbit/s", "300 kbit/s")]
    counts, alone = set(), set()
    for seed in range(1, 41):
        clip = as_drawn(made, "emu", seed).flows["video"].clip
        assert isinstance(clip, Clip)
        rates = [clip.rate] if clip.ladder is None else list(clip.ladder)
        assert rates == sorted(set(rates), key=ladder.index)
        assert len(rates) == member(made.population, seed).encodings  # type: ignore[arg-type]
        counts.add(len(rates))
        if clip.ladder is None:
            alone.add(clip.rate)
            assert clip.segment is None
    assert counts == {1, 2, 3, 4} and len(alone) > 1
    assert made.unsupported("emu") is None


def test_one_encoding_has_none_to_draw_from() -> None:
    said = scenario(text=LADDER).unsupported("sim")
    assert said is not None and "what plays 'video' in sim has one encoding and none to draw from" in said


def test_a_ladder_has_no_one_rate_to_draw() -> None:
    made = scenario("population={size: 4, rate: uniform 100 kbit/s to 200 kbit/s}", text=LADDER)
    said = made.unsupported("emu")
    assert said is not None and "what plays 'video' in emu has a ladder, whose rates are its own" in said
    assert made.unsupported("sim") is None, "which plays one encoding"


def test_members_are_drawn_for_emu_as_for_sim() -> None:
    made = scenario()
    assert made.unsupported("emu") is None
    for seed in range(1, 9):
        (sim,), (emu,) = (lower(made, mode, seed)["flows"] for mode in ("sim", "emu"))  # type: ignore[arg-type]
        assert sim == emu


@pytest.mark.parametrize(("was", "now"), [("length", "duration"), ("levels", "encodings")])
def test_the_words_of_before_are_told_their_successors(was: str, now: str) -> None:
    text = TEXT.replace("  rtt:", f"  {was}: uniform 1 s to 2 s\n  rtt:")
    said = refused(text=text)
    assert f"population.{was}: '{was}' is called '{now}', as of a clip (write '{now}')" in said


def test_a_record_of_before_is_read() -> None:
    made = scenario()
    as_run = made.normalised()
    as_run["population"]["length"] = as_run["population"].pop("duration")
    trial = {"scenario": as_run, "seed": 3, "mode": "sim", "plan": {"duration": 3 * S}}
    today = {**trial, "scenario": made.normalised()}
    assert recorded_clip(trial, "video") == recorded_clip(today, "video")
    assert recorded_flows(trial)["video"]["clip"] == recorded_flows(today)["video"]["clip"]
    assert recorded_flows(trial)["video"]["clip"]["duration"] == str(member(population(), 3).duration)


PLAYLIST = (
    TEXT.partition("population:")[0]
    + """\
population:
  clips: [bikes-100k, carphone-200k]
until: {media_end: video}
"""
)


def test_a_record_of_members_whose_media_never_ended_is_read() -> None:
    """Refused today, when a scenario is read; how long the trial was is in its plan."""
    assert "so its media never ends" in refused(text=PLAYLIST)
    as_run = scenario("until.time=3 s", text=PLAYLIST).normalised()
    del as_run["until"]["time"]
    trial = {"scenario": as_run, "seed": 2, "mode": "sim", "plan": {"duration": 86_400 * S}}
    assert recorded_flows(trial)["video"]["clip"]["source"] == "carphone"
    as_run["population"]["clips"][1] = "nosuch-200k"
    with pytest.raises(
        ScenarioError, match=r"population\.clips\.1: .* makes no sense to this version: clip nosuch"
    ):
        recorded_flows(trial)


@pytest.mark.parametrize("mode", ["sim", "emu"])
def test_a_record_with_a_stand_in_of_no_length_or_no_clip_is_read(mode: Any) -> None:
    """Which a mode's record has in the place of the flow's own."""
    video = "system: {server: ./serve, player: ./play}, clip: {source: bikes, rate: 1 Mbit/s, duration: 9 s}"
    for stand_in, played in (("system: rtp, clip: carphone-1M", "carphone-1M"), ("traffic: bulk", None)):
        made = scenario(
            f"flows.video={{role: subject, {video}, sim: {{{stand_in}}}}}",
            "population={size: 2, rtt: uniform 2 ms to 4 ms}",
            "until={media_end: video}",
        )
        plan = {"duration": lower(made, mode, 1)["duration"]}
        trial = {"scenario": made.in_mode(mode).normalised(), "seed": 1, "mode": mode, "plan": plan}
        clip = recorded_flows(trial)["video"].get("clip")
        assert clip == played if mode == "sim" else clip["source"] == "bikes"


def test_trials_of_the_words_of_before_need_not_run_again() -> None:
    """The base of their resume keys is the same."""
    made = scenario()
    population = json.loads(made.essence("sim"))["population"]
    assert population["length"] == "quantiles 2 s, 3 s, 8 s" and "duration" not in population
    ladder = json.loads(scenario(text=LADDER).essence("emu"))["population"]
    assert ladder["levels"] == [1, 4] and "encodings" not in ladder
    assert made.normalised()["population"]["duration"], "records have today's words"


def test_what_changed_since_a_trial_of_before_is_told_in_todays_words(tmp_path: Path) -> None:
    (before,) = run([scenario()], {"test/population": ["sim"]}, tmp_path, repeat=1).outcomes
    file = before.job.directory / "trial.json"
    trial = json.loads(file.read_text(encoding="utf-8"))
    population = trial["scenario"]["population"]
    population["length"] = population.pop("duration")
    file.write_text(json.dumps(trial), encoding="utf-8")
    changed = scenario("population.rtt=uniform 20 ms to 300 ms")
    (moved,) = run([changed], {"test/population": ["sim"]}, tmp_path, repeat=1).set_aside
    assert moved.why == "population.rtt was uniform 20 ms to 200 ms, is uniform 20 ms to 300 ms"


def test_a_trial_may_end_with_the_media_whose_length_is_drawn() -> None:
    made = scenario("until={media_end: video}")
    for seed in (1, 2):
        plan = lower(made, "sim", seed)
        length_ns = plan["flows"][0]["app"]["rtp"]["clip"]["duration"]
        assert plan["until_media_end"] == "video" and plan["duration"] == 2 * length_ns + 30 * S
    without = TEXT.replace("  duration: quantiles 2 s, 3 s, 8 s\n", "")
    assert "has no duration of its own" in refused("until={media_end: video}", text=without)


@pytest.mark.parametrize(
    "flow",
    [
        "system: rtp, clip: carphone-100k, emu: {system: rtsp, clip: carphone-300k}",
        "system: {server: ./serve, player: ./play}, sim: {system: http, clip: carphone-300k}, "
        "clip: {source: carphone, rate: 300 kbit/s, duration: 30 s}",
        "system: rtp, clip: carphone-100k, emu: {traffic: cbr, parameters: {rate: 20 /s}}",
    ],
)
def test_a_trial_with_a_stand_in_ends_with_the_length_that_is_drawn(flow: str) -> None:
    """The same for a member in both modes, whichever of them plays another clip."""
    text = (
        "id: test/stand-in\ntitle: A member in both modes\n"
        "path: {down: {rate: 2 Mbit/s, queue: droptail 100 ms}}\n"
        f"flows: {{video: {{role: subject, {flow}}}}}\n"
        "population: {size: 5, duration: uniform 2 s to 4 s}\n"
        "until: {media_end: video}\n"
    )
    made = scenario(text=text)
    for seed in (1, 2):
        duration = member(population(text=text), seed).duration
        assert isinstance(duration, Time)
        for mode in ("sim", "emu"):
            assert lower(made, mode, seed)["duration"] == 2 * duration.ns + 30 * S  # type: ignore[arg-type]
