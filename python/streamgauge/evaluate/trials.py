"""Trials on one bottleneck: senders, flows beside them, and readings."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from ruamel.yaml import YAML

from streamgauge.evaluate.network import EvaluatedNetwork
from streamgauge.evaluate.question import SuiteTrial
from streamgauge.scenario import Scenario
from streamgauge.systems.registry import Mode
from streamgauge.systems.tcp import MARKS

__all__ = ["MINE", "READ", "ControlBed", "flow_of", "long_flows"]

MINE = "mine"
READ = ("goodput", "throughput", "loss", "path_delay_p95", "queue_delay", "max_min_share", "retransmitted")
"""Metrics that are read of each long flow."""
_CONTROL = "congestion_control"
_MEMORY = "700 MB"
"""Memory of one trial; a control that sends without end reaches it."""


def flow_of(kind: str, **more: Any) -> dict[str, Any]:
    """Returns a flow of flows.yaml, with additions."""
    return {**copy.deepcopy(_flows()[kind]), **more}


@cache
def _flows() -> dict[str, Any]:
    text = (resources.files("streamgauge.evaluate") / "flows.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = YAML(typ="safe").load(text)
    return found


def long_flows(group: str, control: str, count: int = 1, **more: Any) -> dict[str, dict[str, Any]]:
    """Long transfers ``GROUP1`` to ``GROUPn`` with one congestion control."""
    return {f"{group}{n}": flow_of("long", congestion_control=control, **more) for n in range(1, count + 1)}


@dataclass(frozen=True)
class ControlBed:
    """Test bed of a control: it makes scenarios of flows and networks."""

    control: str
    """The control under evaluation, as a scenario names it."""
    mode: Mode = "sim"
    reference: str = "cubic"
    """The control in its place in comparisons."""

    def mine(self, count: int = 1, **more: Any) -> dict[str, dict[str, Any]]:
        """Long flows of the control under evaluation."""
        return long_flows(MINE, self.control, count, **more)

    def place(self, control: str, count: int = 1, **more: Any) -> dict[str, dict[str, Any]]:
        """Long flows of another control in its place, with the same names and so the same draws."""
        return long_flows(MINE, control, count, **more)

    def trial(
        self,
        network: EvaluatedNetwork,
        flows: Mapping[str, Mapping[str, Any]],
        *,
        read: Iterable[str] = (),
        metrics: Sequence[str] = READ,
        sample: str = "500 ms",
    ) -> SuiteTrial:
        """Returns a trial of these flows; `metrics` are read of each long flow, and ``read`` besides."""
        begin, end = network.measured_s
        text: dict[str, Any] = {
            "title": "A trial of an evaluation",
            "path": network.path(),
            "flows": {name: self._flow(network, name, flow) for name, flow in flows.items()},
            "until": {"time": f"{end:g} s"},
            "measure": {"window": [f"{begin:g} s", f"{end:g} s"], "sample": sample},
            "limits": {"memory": _MEMORY},
        }
        digest = hashlib.blake2b(json.dumps(text, sort_keys=True).encode(), digest_size=8).hexdigest()
        scenario = Scenario.model_validate({"id": f"evaluate/{digest}", **text})
        long = [name for name, flow in flows.items() if _CONTROL in flow and "arrivals" not in flow]
        readings = [f"{metric}.{name}" for metric in metrics for name in long]
        own = any(flow.get(_CONTROL) == self.control for flow in flows.values())
        return SuiteTrial(scenario, tuple(dict.fromkeys([*readings, *read])), own, network.rows)

    def _flow(self, network: EvaluatedNetwork, name: str, flow: Mapping[str, Any]) -> dict[str, Any]:
        made = {"role": "subject" if name.startswith(MINE) else "rival", **flow}
        if _CONTROL not in flow:
            return made
        if self.mode == "sim":
            window = f"{network.window_bytes} B"
            given = dict(flow.get("parameters", {}))
            made["parameters"] = {"receive_window": window, "send_buffer": window} | given
        if MARKS.get(str(flow.get(_CONTROL))) == "counts":
            made.setdefault("ecn", "l4s")
        return made
