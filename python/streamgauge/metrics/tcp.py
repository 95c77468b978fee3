"""The state of TCP as the sending end reports it: congestion window and smoothed round-trip time."""

from __future__ import annotations

from collections.abc import Mapping

from streamgauge.metrics.frame import Trial
from streamgauge.metrics.passage import Samples


def sampled(trial: Trial, name: str) -> Samples:
    """The events called `name` of all flows, in their unit, at their times.

    Each counts once: samples come at regular times, so that their mean is the mean over time as long as the
    connection is open.
    """
    instants, values = trial.said.instants(trial.grid, name)
    return instants.observe(values)


def carries_media(trial: Trial, flow: int) -> bool:
    """Whether what a flow plays or sends runs over its TCP connection.

    Media over UDP has a connection too, for RTSP, whose window nothing fills. The plan's machine tells; for
    somebody else's system the scenario's `transport`; programs of the user's own are taken at their samples.
    """
    app = trial.plans[flow].get("app", "external")
    if isinstance(app, Mapping):
        (machine, settings), *_ = app.items()
        if machine == "darwin":
            return bool(settings["player"].get("transport") == "tcp")
        return settings.get("tcp") is not None
    # Late: scenarios know metrics by name.
    from streamgauge.systems.registry import SYSTEMS, TRAFFIC

    asked = trial.asked[flow]
    name = asked.get("system") or asked.get("traffic")
    entry = {**SYSTEMS, **TRAFFIC}.get(name) if isinstance(name, str) else None
    return entry is None or entry.over_tcp(asked.get("parameters") or {})
