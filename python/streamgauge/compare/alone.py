"""A scenario's neighbours alone: the reference of harm."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from streamgauge.compare.conditions import path_without
from streamgauge.scenario import Scenario
from streamgauge.scenario.semantics import TimesError, end_ns, resolve_times

__all__ = ["alone"]

_OF_THE_FLOW = ("checks", "assumed", "figures", "question", "source")


def alone(scenario: Scenario) -> Scenario | None:
    """Returns the scenario without its subject flows, which ends when it does at the latest, with its
    neighbours at the same times; None if there are no neighbours, or they cannot run alone: a population
    draws the path anew with the subject flow, and neighbours through its relay depend on its fetches."""
    mine = [name for name, flow in scenario.flows.items() if flow.role == "subject"]
    rest = {name: flow for name, flow in scenario.flows.items() if name not in mine}
    if not rest or not mine or scenario.population is not None or scenario.relays:
        return None
    try:
        times = resolve_times(scenario, {})
    except TimesError:
        return None
    data: dict[str, Any] = scenario.model_dump(mode="json", by_alias=True, exclude_unset=True)
    for key in _OF_THE_FLOW:
        data.pop(key, None)
    data["id"] = f"{scenario.id}-alone"
    data["title"] = f"{scenario.title}: the neighbours alone"
    if data.get("path"):
        data["path"] = path_without(data["path"], mine)
    data["until"] = {"time": f"{end_ns(scenario)} ns"}
    data["flows"] = {name: flow for name, flow in data["flows"].items() if name in rest}
    for name, flow in rest.items():
        for edge, instant in (("start", flow.start), ("stop", flow.stop)):
            if instant is not None and instant.flow in mine:
                data["flows"][name][edge] = f"{times[name, edge]} ns"
        if any(event.at.flow in mine for event in flow.events):
            return None
    data["randomize"] = {
        address: drawn
        for address, drawn in (data.get("randomize") or {}).items()
        if address.split(".")[0] not in mine
        and not any(address.startswith(f"flows.{name}.") for name in mine)
    }
    try:
        return Scenario.model_validate(data)
    except ValidationError:
        return None
