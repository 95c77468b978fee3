"""Observations of both phases in records, beside the inputs of the model."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from streamgauge.campaign.loaded import LoadedTrial, load
from streamgauge.errors import RecordError
from streamgauge.metrics.result import FlowMetrics, TrialMetrics
from streamgauge.two_phases.model import StreamInputs, TwoPhases

__all__ = ["QUANTITIES", "ObservedStream", "observe", "predicted"]

QUANTITIES = {
    "filling.time_s": "length, filling",
    "filling.offered_bps": "offered, filling",
    "filling.received_bps": "received, filling",
    "filling.loss": "loss, filling",
    "filling.burst_packets": "packets in a burst, filling",
    "filling.burst_spacing_s": "burst spacing, filling",
    "filling.tcp_bps": "TCP, filling",
    "playing.time_s": "length, playing",
    "playing.offered_bps": "offered, playing",
    "playing.received_bps": "received, playing",
    "playing.loss": "loss, playing",
    "playing.burst_packets": "packets in a burst, playing",
    "playing.burst_spacing_s": "burst spacing, playing",
    "playing.tcp_bps": "TCP, playing",
    "chosen_bps": "rate taken at first",
}
"""Measured and predicted quantities, and their names in tables."""


_THINNED = 0.8
"""Less was taken later where bursts have at most this share of the packets at first: the next lower rate of a
ladder has less."""


@dataclass(frozen=True)
class ObservedStream:
    """One scenario: the means over its valid trials."""

    scenario: str
    inputs: StreamInputs
    values: Mapping[str, float]
    """Values of `QUANTITIES`; those of no trial are left out."""
    thinned: float
    """The share of the trials in which less was taken later."""
    trials: int


def predicted(phases: TwoPhases, quantity: str) -> float:
    """Returns one of `QUANTITIES` as the model has it."""
    found: Any = phases
    for part in quantity.split("."):
        found = getattr(found, part)
    return float(found)


def observe(directory: Path, patterns: Sequence[str], flow: str | None = None) -> list[ObservedStream]:
    """Returns the streams of scenarios with ids that match one of `patterns`, in the order of their ids.

    Raises:
        RecordError: if none matches, or one has no flow of two phases, or a path that the model does not
        have.
    """
    groups: dict[str, list[LoadedTrial]] = {}
    for trial in load(directory):
        if trial.valid and any(fnmatch.fnmatchcase(trial.scenario, pattern) for pattern in patterns):
            groups.setdefault(trial.scenario, []).append(trial)
    if not groups:
        raise RecordError(f"{directory} holds no valid trial of {', '.join(patterns)}; run it first")
    return [_observed(name, groups[name], flow) for name in sorted(groups)]


def _observed(name: str, trials: Sequence[LoadedTrial], flow: str | None) -> ObservedStream:
    inputs = inputs_of(name, trials[0].plan, flow)
    rows: list[dict[str, float]] = []
    thinned: list[bool] = []
    for trial in trials:
        metrics = trial.metrics
        if metrics is None:
            continue
        stream, tcp = _flows(name, trial.plan, flow)
        measured = _measured(metrics, stream, tcp)
        if measured is None:
            continue
        values, is_thinned = measured
        rows.append(values)
        thinned.append(is_thinned)
    if not rows:
        raise RecordError(f"{name}: in no trial a player says when its buffer was full")
    means = {}
    for quantity in QUANTITIES:
        known = [row[quantity] for row in rows if np.isfinite(row.get(quantity, np.nan))]
        if known:
            means[quantity] = float(np.mean(known))
    return ObservedStream(name, inputs, means, float(np.mean(thinned)), len(rows))


def inputs_of(name: str, plan: Mapping[str, Any], flow: str | None = None) -> StreamInputs:
    """Returns the inputs of a stream and its path in a plan.

    Raises:
        RecordError: naming the feature that the model lacks.
    """
    stream, tcp = _flows(name, plan, flow)
    flows = {one["name"]: one for one in plan["flows"]}
    ladder = _ladder(flows[stream])
    capacity = queue = None
    loss, delay_ns, losses = 0.0, 0, 0
    for stage in (*plan["path"]["down"], *plan["path"].get("up", ())):
        ((kind, what),) = stage["kind"].items()
        if kind == "bottleneck":
            if capacity is not None or "constant" not in what["rate"]:
                raise RecordError(f"{name}: the model has one bottleneck of a constant rate")
            capacity = float(what["rate"]["constant"])
            ((discipline, limits),) = what["queue"].items()
            queue = limits.get("packets") if discipline in ("droptail", "nistnet") else None
            if queue is None:
                raise RecordError(
                    f"{name}: the model has a drop-tail queue of so many packets, and no {discipline} as here"
                )
        elif kind == "delay" and not what.get("steps"):
            delay_ns += what["delay"]
        elif kind == "loss" and (stage not in plan["path"]["down"] or losses):
            raise RecordError(f"{name}: the model has one loss, on the way down; take `{stage['name']}` away")
        elif kind == "loss" and "bernoulli" in what["model"] and not what.get("switches"):
            losses += 1
            loss = float(what["model"]["bernoulli"]["probability"])
        else:
            raise RecordError(f"{name}: the model has no {kind} as stage `{stage['name']}` has it")
    if capacity is None or queue is None:
        raise RecordError(f"{name}: the model has one bottleneck with a queue of so many packets")
    window = None if tcp is None else float(_app(flows[tcp])["tcp"]["receive_window"])
    sound = ladder.get("audio")
    return StreamInputs(
        pictures_bps=tuple(sorted(float(one["bit_rate_bps"]) for one in ladder["video"])),
        sound_bps=float(sound["bit_rate_bps"]) if sound else 0.0,
        capacity_bps=capacity,
        duration_s=ladder["video"][0]["clip"]["duration"] / 1e9,
        loss=loss,
        tcp_window_bytes=window,
        queue_packets=float(queue),
        round_trip_s=delay_ns / 1e9,
    )


def _flows(name: str, plan: Mapping[str, Any], flow: str | None) -> tuple[str, str | None]:
    """Returns the stream and the TCP beside it."""
    streams = [one["name"] for one in plan["flows"] if _ladder(one)]
    if flow is not None:
        if flow not in streams:
            raise RecordError(
                f"{name}: no flow {flow} plays a clip; those that do: {', '.join(streams) or 'none'}"
            )
        streams = [flow]
    if len(streams) != 1:
        found = ", ".join(streams) or "none"
        raise RecordError(f"{name}: the model has one stream, here are {found}; name one with --flow")
    others = [one for one in plan["flows"] if one["name"] != streams[0]]
    if len(others) > 1 or any(not _sends_on(one) for one in others):
        raise RecordError(
            f"{name}: beside the stream the model has one TCP with something to send, or nothing"
        )
    return streams[0], others[0]["name"] if others else None


def _app(flow: Mapping[str, Any]) -> Mapping[str, Any]:
    (found,) = flow["app"].values()
    return found if isinstance(found, Mapping) else {}


def _ladder(flow: Mapping[str, Any]) -> Mapping[str, Any]:
    found = _app(flow).get("ladder")
    return found if isinstance(found, Mapping) else {}


def _sends_on(flow: Mapping[str, Any]) -> bool:
    """It is a TCP that has as much to send as there is time."""
    return "tcp" in _app(flow) and _app(flow).get("bytes", 0) is None


def _measured(metrics: TrialMetrics, stream: str, tcp: str | None) -> tuple[dict[str, float], bool] | None:
    of = metrics.flows[stream]
    scalars = of.scalars
    begin, full, length = (scalars.get(key) for key in ("buffering_start", "buffering_end", "filling_time"))
    if begin is None or full is None or length is None:
        return None
    level = of.series["level"].samples()
    level = level[np.isfinite(level)]
    values = {"chosen_bps": float(level[0]) if len(level) else np.nan}
    playing = scalars.get("playing_time")
    for phase, first, last in (("filling", begin, full), ("playing", full, full + (playing or 0.0))):
        if last <= first:
            continue
        for short, long in (("time", "time_s"), ("rate", "received_bps"), ("loss", "loss")):
            found = scalars.get(f"{phase}_{short}")
            values[f"{phase}.{long}"] = np.nan if found is None else float(found)
        for series, long in (
            ("throughput", "offered_bps"), ("burst_size", "burst_packets"), ("burst_spacing",
            "burst_spacing_s"),
        ):  # fmt: skip
            values[f"{phase}.{long}"] = _between(metrics, of, series, first, last)
        if tcp is not None:
            values[f"{phase}.tcp_bps"] = _between(metrics, metrics.flows[tcp], "receiver_rate", first, last)
    bursts = (values.get("filling.burst_packets", np.nan), values.get("playing.burst_packets", np.nan))
    return values, bool(bursts[1] < _THINNED * bursts[0])


def _between(metrics: TrialMetrics, of: FlowMetrics, series: str, first: float, last: float) -> float:
    """NaN where no sample is in it."""
    try:
        return of.series[series].value(metrics.grid.slice(first, last))
    except (KeyError, ValueError):
        return float("nan")
