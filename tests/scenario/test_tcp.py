"""What a scenario says of TCP: both faces, what is lowered, what a mode cannot do, slips."""

from __future__ import annotations

from typing import Any

import pytest
from streamgauge import _native
from streamgauge.errors import ScenarioError
from streamgauge.scenario import Flow, Measure, Scenario, StandIn, from_text, lower
from streamgauge.scenario.schema import json_schema
from streamgauge.systems.tcp import (
    CONGESTION_CONTROLS,
    HYSTARTS,
    LINUX_CONGESTION_CONTROLS,
    MARKS,
    MECHANISMS,
    SIM_CONGESTION_CONTROLS,
)

PARAMETERS = "parameters: {receive_window: 16 KiB}"


def bent(base: str, *settings: str) -> Scenario:
    (scenario,) = from_text(base, settings=settings)
    return scenario


def tcp(base: str, *settings: str, mode: str = "sim") -> dict[str, Any]:
    plan = lower(bent(base, *settings), mode, 1)  # type: ignore[arg-type]
    found: dict[str, Any] = plan["flows"][0]["app"]["bulk"]["tcp"]
    return found


def parameters(text: str) -> str:
    return f"flows.ftp.parameters={text}"


def test_every_parameter_reaches_the_plan(base: str) -> None:
    made = tcp(
        base,
        "flows.ftp.congestion_control=fixed",
        parameters(
            "{receive_window: 1 MiB, initial_window: 3 packets, delayed_ack: 200 ms, hystart: plus_plus,"
            " window: 16 KiB, without: [frto, tlp]}"
        ),
    )
    assert made == {
        "congestion_control": "fixed",
        "receive_window": 2**20,
        "send_buffer": 2**22,
        "mss": 1448,
        "initial_window": 3,
        "delayed_ack": 200_000_000,
        "hystart": "plus_plus",
        "fixed_window": 16_384,
        "ecn": False,
        "l4s": False,
        "without": ["tlp", "frto"],
    }


@pytest.mark.parametrize("name", SIM_CONGESTION_CONTROLS)
def test_sim_takes_every_controller_that_the_transport_names(base: str, name: str, tmp_path: Any) -> None:
    import json

    settings = [f"flows.ftp.congestion_control={name}", "until.time=3 s", "flows.probe.stop=null"]
    if name == "fixed":
        settings.append(parameters("{window: 16 KiB}"))
    if MARKS[name] == "counts":
        settings.append("flows.ftp.ecn=l4s")
    plan = lower(bent(base, *settings), "sim", 1, keep="metrics")
    assert plan["flows"][0]["app"]["bulk"]["tcp"]["congestion_control"] == name
    summary = json.loads(_native.simulate(json.dumps(plan), str(tmp_path)))
    assert summary["flows"][0]["player_received_bytes"] > 100_000


def test_the_lists_of_names_are_the_transports() -> None:
    assert SIM_CONGESTION_CONTROLS == _native.CONGESTION_CONTROLS
    assert {"reno", "bic", "cubic", "vegas", "bbr", "fixed"} <= set(SIM_CONGESTION_CONTROLS)
    assert HYSTARTS[0] == "linux" and set(MECHANISMS) >= {"tlp", "frto", "undo", "prr", "pacing"}
    assert set(CONGESTION_CONTROLS) == {*SIM_CONGESTION_CONTROLS, *LINUX_CONGESTION_CONTROLS}
    assert len(CONGESTION_CONTROLS) == len(set(CONGESTION_CONTROLS))


def test_the_two_faces_are_one(base: str) -> None:
    written = bent(
        base,
        parameters(
            "{receive_window: 16 KiB, initial_window: 3 packets, delayed_ack: 0 s, hystart: off,"
            " without: tlp}"
        ),
        "measure={tcp_sample: 50 ms}",
    )
    data = written.normalised()
    built = Scenario.model_validate(
        {
            **data,
            "flows": {
                "ftp": Flow(
                    role="subject",
                    traffic="bulk",
                    congestion_control="reno",
                    parameters={
                        "receive_window": "16 KiB",
                        "initial_window": "3 packets",
                        "delayed_ack": "0 s",
                        "hystart": "off",
                        "without": ["tlp"],
                    },
                ),
                "probe": data["flows"]["probe"],
            },
            "measure": Measure(tcp_sample="50 ms"),
        }
    )
    assert built == written
    assert Scenario.model_validate(data) == written
    assert data["flows"]["ftp"]["parameters"]["without"] == ["tlp"]


def test_order_and_form_of_without_do_not_matter(base: str) -> None:
    texts = ["{without: [tlp, frto]}", "{without: [frto, tlp]}"]
    one, other = (bent(base, parameters(text)) for text in texts)
    assert one == other and one.essence("sim") == other.essence("sim")


SAMPLES = [("100 ms", 100_000_000), ("1 s", 10**9), ("off", None)]


@pytest.mark.parametrize(("text", "ns"), SAMPLES)
def test_how_often_tcp_is_sampled(base: str, text: str, ns: int | None) -> None:
    scenario = bent(base, f"measure.tcp_sample={text}")
    assert lower(scenario, "sim", 1).get("tcp_sample") == ns
    again = Scenario.model_validate(scenario.normalised())
    assert again == scenario and again.measure.tcp_sample == scenario.measure.tcp_sample


def test_samples_belong_to_what_a_trial_leaves(base: str) -> None:
    plain, often, wider = (
        bent(base, *settings) for settings in ([], ["measure.tcp_sample=50 ms"], ["measure.sample=1 s"])
    )
    assert plain.essence("sim") != often.essence("sim")
    assert plain.essence("sim") == wider.essence("sim"), "what is computed later voids no trial"


ONE_MODE = [
    # (settings, the mode that cannot, words of the reason and the remedy)
    (
        ["flows.ftp.congestion_control=fixed", parameters("{window: 16 KiB}")],
        "emu",
        ["congestion_control: Linux has no fixed; run in sim", "emu: {congestion_control: ...}"],
    ),
    (["flows.ftp.congestion_control=yeah"], "sim", ["congestion_control: sim has reno, ", "not yeah"]),
    ([parameters("{hystart: off}")], "emu", ["parameters.hystart: Linux sets HyStart for", "hystart: linux"]),
    ([parameters("{without: [tlp]}")], "emu", ["parameters.without: no mechanism", "without: []"]),
    (
        [parameters("{delayed_ack: 100 ms}")],
        "emu",
        ["parameters.delayed_ack: Linux lets an acknowledgement wait for 40 ms or not", "delayed_ack: 40 ms"],
    ),
]


@pytest.mark.parametrize(("settings", "mode", "words"), ONE_MODE, ids=[" ".join(m[0]) for m in ONE_MODE])
def test_what_one_mode_cannot_do(base: str, settings: list[str], mode: str, words: list[str]) -> None:
    scenario = bent(base, *settings)
    other = "sim" if mode == "emu" else "emu"
    assert scenario.supported_modes() == [other]
    with pytest.raises(ScenarioError, match=f"cannot run in {mode}: flows.ftp.") as caught:
        lower(scenario, mode, 1)  # type: ignore[arg-type]
    for word in words:
        assert word in str(caught.value)
    assert lower(scenario, other, 1)  # type: ignore[arg-type]


def test_emu_can_do_the_rest(base: str) -> None:
    made = tcp(base, parameters("{initial_window: 3 packets, delayed_ack: 0 s}"), mode="emu")
    assert (made["initial_window"], made["delayed_ack"]) == (3, 0)
    # What makes no difference to emu is no reason to refuse.
    assert tcp(base, parameters("{hystart: linux, without: [], delayed_ack: 40 ms}"), mode="emu")


def test_a_remedy_that_is_named_works(base: str) -> None:
    scenario = bent(
        base,
        parameters("{hystart: off, without: [tlp], delayed_ack: 100 ms}"),
        "flows.ftp.emu={parameters: {hystart: linux, without: [], delayed_ack: 40 ms}}",
    )
    assert scenario.supported_modes() == ["sim", "emu"]
    assert lower(scenario, "sim", 1)["flows"][0]["app"]["bulk"]["tcp"]["without"] == ["tlp"]


def test_a_fixed_window_has_a_stand_in_without_one(base: str) -> None:
    scenario = bent(
        base,
        "flows.ftp.congestion_control=fixed",
        parameters("{window: 16 KiB, receive_window: 16 KiB}"),
        "flows.ftp.emu={congestion_control: reno}",
    )
    assert scenario.supported_modes() == ["sim", "emu"]
    assert lower(scenario, "emu", 1)["flows"][0]["app"]["bulk"]["tcp"]["fixed_window"] is None
    assert scenario.flows["ftp"].emu == StandIn(congestion_control="reno")


SLIPS = [
    ("flows.ftp.congestion_control=bbr2", "flows.ftp.congestion_control", "did you mean 'bbr"),
    ("flows.ftp.congestion_control=new-reno", "flows.ftp.congestion_control", "did you mean 'reno'"),
    (parameters("{hystart: plus}"), "flows.ftp.parameters.hystart", "did you mean 'plus_plus'"),
    (parameters("{without: [tpl]}"), "flows.ftp.parameters.without", "did you mean 'tlp'"),
    (parameters("{without: [tlp, f-rto]}"), "flows.ftp.parameters.without", "did you mean 'frto'"),
    (parameters("{without: [tlp, tlp]}"), "flows.ftp.parameters.without", "'tlp' is listed twice"),
    (parameters("{without: {tlp: 1}}"), "flows.ftp.parameters.without", "is not a list of tlp, "),
    (parameters("{initial_window: 10}"), "flows.ftp.parameters.initial_window", "has no unit"),
    (parameters("{initial_window: 2.5 packets}"), "flows.ftp.parameters.initial_window", "whole number"),
    (parameters("{initial_window: 0 packets}"), "flows.ftp.parameters.initial_window", "less than 1 packet"),
    (parameters("{initial_window: 2000 packets}"), "flows.ftp.parameters.initial_window", "more than 1000"),
    (parameters("{initial_windw: 2 packets}"), "flows.ftp.parameters.initial_windw", "'initial_window'"),
    (parameters("{delayed_ack: 600 ms}"), "flows.ftp.parameters.delayed_ack", "more than 500 ms"),
    (parameters("{window: 16 KiB}"), "flows.ftp.parameters.window", "congestion_control: fixed"),
    ("flows.ftp.congestion_control=fixed", "flows.ftp.parameters", "add such as 'window: 16 KiB'"),
    ("measure.tcp_sample=5", "measure.tcp_sample", "or 'off'"),
    ("measure.tcp_sample=10 us", "measure.tcp_sample", "more than 1,000 a second"),
    ("measure.tcp_smple=10 ms", "measure.tcp_smple", "did you mean 'measure.tcp_sample'"),
]


@pytest.mark.parametrize(("setting", "key", "word"), SLIPS)
def test_slips(base: str, setting: str, key: str, word: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        from_text(base, settings=(setting,))
    assert caught.value.key == key
    assert word in str(caught.value)


def test_a_window_smaller_than_a_segment(base: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        bent(base, "flows.ftp.congestion_control=fixed", parameters("{window: 1 kB}"))
    assert caught.value.key == "flows.ftp.parameters.window"
    assert "less than mss, which is 1448 B (give 1448 B or more" in str(caught.value)


def test_the_schema_knows_the_controllers_and_the_samples() -> None:
    schema = json_schema()
    control = schema["$defs"]["Flow"]["properties"]["congestion_control"]
    assert control["anyOf"][0]["anyOf"][0]["enum"] == list(CONGESTION_CONTROLS)
    sample = schema["$defs"]["Measure"]["properties"]["tcp_sample"]
    assert {"const": "off"} in sample["anyOf"] and sample["default"] == "100 ms"
