"""Addresses with `*` in a flow's name change every flow that it fits, and no other."""

from __future__ import annotations

import pytest
from small_scenario import BASE
from streamgauge.errors import ScenarioError
from streamgauge.scenario import from_text, override
from streamgauge.scenario.overrides import OverrideError

TWO = BASE.replace(
    "  probe:",
    "  ftp2:\n    role: rival\n    traffic: bulk\n    congestion_control: reno\n  probe:",
)


def test_every_flow_that_fits_is_set() -> None:
    (scenario,) = from_text(TWO, settings=("flows.ftp*.congestion_control=cubic",))
    assert {name: flow.congestion_control for name, flow in scenario.flows.items()} == {
        "ftp": "cubic",
        "ftp2": "cubic",
        "probe": None,
    }
    (plain,) = from_text(TWO)
    assert override(plain, {"flows.ftp*.congestion_control": "cubic"}) == scenario
    (one,) = from_text(TWO, settings=("flows.*2.congestion_control=cubic",))
    assert one.flows["ftp"].congestion_control == "reno"


def test_a_glob_that_fits_nothing_is_refused() -> None:
    with pytest.raises(ScenarioError, match="no flow's name is like 'tcp\\*'; the flows are ftp, "):
        from_text(TWO, settings=("flows.tcp*.congestion_control=cubic",))
    (plain,) = from_text(TWO)
    with pytest.raises(OverrideError, match=r"did you mean 'flows\.\*\.parameters\.receive_window'"):
        override(plain, {"flows.*.parameters.recieve_window": "8 KiB"})
    with pytest.raises(OverrideError, match="none of the flows probe has 'congestion_control'"):
        override(plain, {"flows.pro*.congestion_control": "cubic"})


def test_flows_whose_system_has_it_are_meant() -> None:
    (scenario,) = from_text(TWO, settings=("flows.*.parameters.receive_window=8 KiB",))
    assert {name: str(flow.parameters.get("receive_window")) for name, flow in scenario.flows.items()} == {
        "ftp": "8 KiB",
        "ftp2": "8 KiB",
        "probe": "None",
    }
    # One setting for many scenarios: in this one no flow has such a parameter.
    assert from_text(TWO, settings=("flows.*.parameters.preset=source",)) == from_text(TWO)


def test_assumptions_and_mutants_may_use_it() -> None:
    text = TWO + (
        "assumed: {flows.ftp*.parameters.receive_window: [8 KiB]}\n"
        "checks:\n"
        "  a: {that: loss.ftp <= 1 %, origin: predicted, breaks: {flows.ftp*.congestion_control: cubic}}\n"
    )
    (scenario,) = from_text(text)
    changed = override(scenario, {"flows.ftp*.parameters.receive_window": "8 KiB"})
    assert str(changed.flows["ftp2"].parameters["receive_window"]) == "8 KiB"
    with pytest.raises(ScenarioError, match="no flow's name is like"):
        from_text(text.replace("flows.ftp*.congestion_control: cubic", "flows.x*.congestion_control: cubic"))
