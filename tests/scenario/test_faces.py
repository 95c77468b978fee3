"""The YAML face and the Python face make equal objects, and what is printed loads again."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from streamgauge.scenario import (
    Bernoulli,
    Bottleneck,
    Check,
    Clip,
    Command,
    Delay,
    Direction,
    DropTail,
    Flow,
    FlowEvent,
    Gilbert,
    GilbertRuns,
    Instant,
    Loss,
    Measure,
    Path,
    RateStep,
    RateSteps,
    Repetitions,
    Scenario,
    Square,
    SquareWave,
    StandIn,
    Switch,
    Uniform,
    Until,
    from_text,
    override,
)
from streamgauge.units import Bdp, Packets, Percent, Rate, Size, Time

LONG = """
id: test/everything
title: Every form there is
path:
  down:
    stages:
      - name: wifi
        loss: {gilbert: {good: 11.63 packets, bad: 1.78 packets}, switch: [{at: 15 s, to: off}]}
      - name: dsl
        rate: {steps: [{at: 0 s, rate: 1 Mbit/s}, {at: 10 s, rate: 300 kbit/s}]}
        queue: droptail 300 ms
        layer: ip
      - {name: far, delay: 20 ms}
  up:
    loss: 2 %
    rate: {square: {first: 100 kbit/s, second: 1600 kbit/s, period: 40 s}}
    queue: {droptail: 10 kB}
flows:
  qt:
    role: subject
    system: rtsp
    parameters: {transport: udp}
    clip: {source: carphone, rate: 242 kbit/s, duration: 1 min}
    start: 5 s
    events: [{at: 20 s, do: pause}, {at: qt.start + 20 s, do: resume}]
    sim: {system: rtp}
  own:
    role: subject
    system: {server: ./serve --port 1, player: ./play, env: {A: b}}
    sim: {traffic: bulk, congestion_control: cubic}
  cross:
    role: rival
    traffic: cbr
    from: router
    parameters: {rate: 60 packets/s, windows: [[30 s, 40 s], [50 s, 60 s]]}
    start: qt.start + 10 s
    stop: 110 s
until: {time: 2 min}
measure: {window: [10 s, 120 s], sample: 1 s, layer: payload}
repetitions: {sim: 4, emu: 2}
randomize: {cross.start: uniform 0 to 100 ms}
checks:
  X-1: {that: "loss.qt <= 1 %", origin: predicted, published: {loss: 0.5 %, jain: 0.9}}
"""

BUILT = Scenario(
    id="test/everything",
    title="Every form there is",
    path=Path(
        down=Direction(
            stages=(
                Loss(
                    name="wifi",
                    loss=Gilbert(
                        gilbert=GilbertRuns(good=Packets("11.63 packets"), bad=Packets("1.78 packets")),
                        switch=(Switch(at=Time("15 s"), to="off"),),
                    ),
                ),
                Bottleneck(
                    name="dsl",
                    rate=RateSteps(
                        steps=(
                            RateStep(at=Time("0 s"), rate=Rate("1 Mbit/s")),
                            RateStep(at=Time("10 s"), rate=Rate("300 kbit/s")),
                        )
                    ),
                    queue=DropTail(droptail=Time("300 ms")),
                    layer="ip",
                ),
                Delay(name="far", delay=Time("20 ms")),
            )
        ),
        up=Direction(
            loss=Bernoulli(bernoulli=Percent("2 %")),
            rate=Square(
                square=SquareWave(first=Rate("100 kbit/s"), second=Rate("1.6 Mbit/s"), period=Time("40 s"))
            ),
            queue=DropTail(droptail=Size("10 kB")),
        ),
    ),
    flows={
        "qt": Flow(
            role="subject",
            system="rtsp",
            parameters={"transport": "udp"},
            clip=Clip(source="carphone", rate=Rate("242 kbit/s"), duration=Time("60 s")),
            start=Instant("5 s"),
            events=(
                FlowEvent(at=Instant("20 s"), do="pause"),
                FlowEvent(at=Instant("20 s", flow="qt"), do="resume"),
            ),
            sim=StandIn(system="rtp"),
        ),
        "own": Flow(
            role="subject",
            system=Command(server="./serve --port 1", player="./play", env={"A": "b"}),
            sim=StandIn(traffic="bulk", congestion_control="cubic"),
        ),
        "cross": Flow(
            role="rival",
            traffic="cbr",
            entry="router",
            parameters={
                "rate": "60 packets/s",
                "windows": ((Time("30 s"), Time("40 s")), (Time("50 s"), Time("60 s"))),
            },
            start=Instant("10 s", flow="qt"),
            stop=Instant("110 s"),
        ),
    },
    until=Until(time=Time("120 s")),
    measure=Measure(window=(Time("10 s"), Time("120 s")), sample=Time("1 s"), layer="payload"),
    repetitions=Repetitions(sim=4, emu=2),
    randomize={"cross.start": Uniform("0 ms", "100 ms")},
    checks={
        "X-1": Check(
            that="loss.qt <= 1 %", origin="predicted", published={"loss": Percent("0.5 %"), "jain": 0.9}
        )
    },
)


def test_yaml_and_python_make_equal_objects() -> None:
    (loaded,) = from_text(LONG)
    assert loaded == BUILT


def test_what_is_printed_loads_again(catalogue: tuple[Scenario, ...]) -> None:
    assert Scenario.model_validate(BUILT.normalised()) == BUILT
    for scenario in catalogue:
        assert Scenario.model_validate(scenario.normalised()) == scenario


def test_python_is_answered_as_well_as_yaml() -> None:
    with pytest.raises(ValidationError, match="did you mean 'queue'"):
        Direction(queu="droptail 10 kB")  # type: ignore[call-arg]
    with pytest.raises(ValidationError, match="has no unit"):
        Direction(delay=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Direction("1 Mbit/s")  # type: ignore[call-arg]


def test_scenarios_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        BUILT.title = "another"  # type: ignore[misc]


def test_a_check_takes_the_structured_form() -> None:
    from streamgauge.checks import parse

    text = "mean(throughput.qt) >= 1.2 * mean(throughput.cross)"
    structured = parse(text).root
    assert Check(that=structured, origin="predicted") == Check(that=text, origin="predicted")  # type: ignore[arg-type]


def test_addresses_reach_shorthand_stages_flows_and_checks() -> None:
    changed = override(
        BUILT,
        {
            "path.down.dsl.rate": "500 kbit/s",
            "path.up.rate": "2 Mbit/s",
            "path.up.bottleneck.queue": "droptail 2 BDP",
            "flows.cross.parameters.rate": "90 packets/s",
            "flows.own": None,
            "checks.X-1.strict": True,
        },
    )
    down = changed.path.down.chain()[1]
    assert isinstance(down, Bottleneck) and down.rate == Rate("500 kbit/s")
    assert changed.path.up.rate == Rate("2 Mbit/s")
    assert changed.path.up.queue == DropTail(droptail=Bdp("2 BDP"))
    assert changed.flows["cross"].parameters["rate"].per_s == 90
    assert list(changed.flows) == ["qt", "cross"]
    assert changed.checks["X-1"].strict
    assert BUILT.path.down.chain()[1].rate != down.rate, "the original is untouched"


def test_a_stand_in_keeps_the_parameters_that_it_knows() -> None:
    sim = BUILT.in_mode("sim")
    assert sim.flows["qt"].system == "rtp"
    # It shows what GStreamer's decoder would.
    assert sim.flows["qt"].parameters == {"transport": "udp", "decoder": "libavcodec"}
    assert sim.flows["qt"].clip == BUILT.flows["qt"].clip
    assert sim.flows["own"].traffic == "bulk"
    assert sim.flows["own"].congestion_control == "cubic"
    assert BUILT.in_mode("emu").flows["qt"].system == "rtsp"


def test_a_stand_in_does_as_the_programs_do_unless_it_says_otherwise() -> None:
    def decoder(changes: dict[str, object]) -> object:
        return Flow.model_validate(changes).in_mode("sim").parameter("decoder")

    flow = {"role": "subject", "system": "rtsp", "clip": "carphone-550k", "sim": {"system": "rtp"}}
    assert decoder(flow) == "libavcodec"
    assert decoder(flow | {"sim": {"system": "rtp", "parameters": {"decoder": "ideal"}}}) == "ideal"
    assert decoder(flow | {"parameters": {"player": "ffmpeg"}}) == "ideal", "whose decoder is another's"
    assert decoder(flow | {"system": "rtp", "sim": None}) == "ideal", "which stands in for nobody"


def test_variants_multiply() -> None:
    text = (
        LONG
        + "variants:\n  - {a: {path.up.loss: 3 %}, b: }\n  - {x: {label: with x}, y: {until.time: 3 min}}\n"
    )
    made = from_text(text)
    assert [scenario.id.rpartition("everything")[2] for scenario in made] == ["-a-x", "-a-y", "-b-x", "-b-y"]
    assert made[0].path.up.loss == Bernoulli(bernoulli=Percent("3 %"))
    assert made[3].until.time == Time("180 s")
    assert made[0].title == "Every form there is: with x"


times = st.integers(min_value=0, max_value=10**12).map(Time.of)
rates = st.integers(min_value=1, max_value=10**10).map(Rate.of)
limits = st.one_of(
    st.integers(min_value=1514, max_value=10**8).map(Size.of),
    st.integers(min_value=1, max_value=10**6).map(Packets.of),
)


@st.composite
def directions(draw: st.DrawFn) -> Direction:
    fields: dict[str, object] = {}
    if draw(st.booleans()):
        fields["loss"] = draw(
            st.one_of(
                st.integers(0, 100).map(lambda n: Bernoulli(bernoulli=Percent.of(n))),
                st.tuples(st.integers(1, 99), st.integers(1, 99)).map(
                    lambda runs: Gilbert(
                        gilbert=GilbertRuns(good=Packets.of(runs[0]), bad=Packets.of(runs[1]))
                    )
                ),
            )
        )
    if draw(st.booleans()):
        fields |= {"rate": draw(rates), "queue": DropTail(droptail=draw(limits))}
    if draw(st.booleans()):
        fields["delay"] = draw(times)
    return Direction(**fields)  # type: ignore[arg-type]


@given(directions(), directions(), times.filter(lambda t: t.ns > 0))
@settings(max_examples=60)
def test_any_path_survives_printing(down: Direction, up: Direction, end: Time) -> None:
    flow = Flow(role="subject", traffic="ping")
    made = Scenario(
        id="test/any",
        title="Any",
        path=Path(down=down, up=up),
        flows={"p": flow},
        until=Until(time=Time.of(end.ns + 10**9)),
    )
    assert Scenario.model_validate(made.normalised()) == made


@given(st.text(max_size=30))
def test_instants_parse_or_refuse(text: str) -> None:
    from streamgauge.units import UnitError

    try:
        instant = Instant.parse(text)
    except UnitError:
        return
    assert Instant.parse(str(instant)) == instant
