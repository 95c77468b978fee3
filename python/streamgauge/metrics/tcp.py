"""The state of TCP as the sending end reports it: congestion window and smoothed round-trip time."""

from __future__ import annotations

from streamgauge.claims.declaration import Metric
from streamgauge.claims.dimension import DATA, TIME
from streamgauge.metrics.course import averaged
from streamgauge.metrics.frame import Trial
from streamgauge.metrics.passage import Samples
from streamgauge.metrics.result import Series
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


def of_tcp(trial: Trial, flow: int) -> dict[str, Series]:
    """Returns the state of a flow's TCP; nothing where its media runs over something else."""
    if not carries_media(trial, flow):
        return {}
    window, smoothed = trial.once(sampled, "tcp_cwnd"), trial.once(sampled, "tcp_srtt")
    return {"cwnd": averaged(window.of(flow), 8.0), "srtt": averaged(smoothed.of(flow))}


def of_player(trial: Trial, flow: int, event: str) -> Series | None:
    """Returns the mean of a value that a flow's player reports at regular times; None if it never does."""
    return averaged(trial.once(sampled, event).of(flow)) if trial.said.has(event, flow) else None


METRICS = (
    Metric(
        "cwnd",
        DATA,
        "flow",
        "Congestion window",
        formula=(
            "mean of the sampled congestion windows of the sending end ([tcp.md](tcp.md)); only for "
            "media over TCP"
        ),
        flow=of_tcp,
        reads=("tcp_cwnd",),
        json={"cwnd_mean_bytes": "mean", "cwnd_min_bytes": "min", "cwnd_max_bytes": "max"},
        whole=False,
    ),
    Metric(
        "srtt",
        TIME,
        "flow",
        "Smoothed round-trip time of TCP",
        formula="mean of the sampled smoothed round-trip times of its TCP (RFC 6298)",
        flow=of_tcp,
        number="M10",
        better="less",
        reads=("tcp_srtt",),
        json="srtt_mean_s",
    ),
)
