"""The state of TCP as the sending end reports it: congestion window and smoothed round-trip time."""

from __future__ import annotations

from streamgauge.metrics.frame import Trial
from streamgauge.metrics.passage import Samples
from streamgauge.systems.adapters import external_of


def sampled(trial: Trial, name: str) -> Samples:
    """Returns the events called `name` of all flows, in their unit, at their times.

    Each counts once: samples come at regular times, so that their mean is the mean over time as long as the
    connection is open.
    """
    instants, values = trial.said.instants(trial.grid, name)
    return instants.observe(values)


def carries_media(trial: Trial, flow: int) -> bool:
    """Returns whether the flow's media or data runs over its TCP connection.

    Media over UDP has a connection too, for RTSP, with a window that nothing fills. The plan's machine
    decides; for a third-party system its description; programs of the user's own are judged by their samples.
    """
    if (told := trial.facts[flow]) is not None:
        return told.media_over == "tcp"
    asked = trial.asked[flow]
    external = external_of(asked)
    return external is None or external.media_over(asked.get("parameters") or {}) != "udp"
