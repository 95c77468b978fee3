"""A scenario in words: its path, its flows, how long, how often."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from streamgauge.metrics.dimension import TIME, say_exactly
from streamgauge.report.link import queue_words, rate_words, stage_words
from streamgauge.report.model import Entry

NS = 1e9


def tie(text: str) -> str:
    """Keeps numbers, their units and their ± on one line, by no-break spaces."""
    text = re.sub(r"(?<=[\d\]]) (?=(?:[kMG]?bit/s|[kMG]?B|ms|µs|s|%|packets)(?![A-Za-z]))", "\u00a0", text)
    return text.replace(" ± ", "\u00a0±\u00a0")


def path_words(plan: Mapping[str, Any]) -> str:
    """Both directions in one sentence."""
    path = plan.get("path") or {}
    said = []
    for way, label in (("down", "Server to player"), ("up", "player to server")):
        stages = [found for stage in path.get(way) or [] if (found := stage_words(stage))]
        inner = ", then ".join(f"{what} ({setting})" for what, setting in stages)
        said.append(f"{label}: {inner or 'a plain wire, neither rate nor delay'}")
    return "; ".join(said) + "."


def base_rtt_s(plan: Mapping[str, Any]) -> float:
    """Both directions' constant delays together, without queueing and transmission, in s."""
    path = plan.get("path") or {}
    stages = [*(path.get("down") or []), *(path.get("up") or [])]
    return sum(float((stage.get("kind") or {}).get("delay", {}).get("delay", 0)) for stage in stages) / NS


def bottleneck_words(plan: Mapping[str, Any]) -> str:
    """Capacity, queue and base RTT: what every number of a scenario stands beside."""
    path = plan.get("path") or {}
    for stage in path.get("down") or []:
        kind = stage.get("kind") or {}
        if "bottleneck" in kind:
            setting = kind["bottleneck"]
            rtt = base_rtt_s(plan)
            delay = f"{say_exactly(rtt, TIME)} base RTT" if rtt else "no delay added"
            return f"{rate_words(setting)}, queue {queue_words(setting['queue'])}, {delay}"
    return "no bottleneck"


def flow_words(flow: Mapping[str, Any]) -> str:
    """What a flow is: system or traffic with what it was told."""
    # A stand-in runs in one mode only; the scenario as run says which.
    what = flow.get("system") or flow.get("traffic") or "flow"
    if isinstance(what, Mapping):
        what = what.get("name") or "command"
    said = [str(what)]
    if flow.get("congestion_control"):
        said.append(str(flow["congestion_control"]))
    for key, value in (flow.get("parameters") or {}).items():
        shown = f"{value[:-3]} packets/s" if isinstance(value, str) and value.endswith(" /s") else value
        said.append(f"{str(key).replace('_', ' ')} {shown}")
    clip = flow.get("clip")
    if clip:
        said.append(f"clip {clip.get('name', '') if isinstance(clip, Mapping) else clip}")
    return ", ".join(said)


def flows_words(entry: Entry) -> list[str]:
    """Each flow in a line: its role, what it is in each mode and whose, and when it runs."""
    said = []
    for name, flow in (entry.scenario.get("flows") or {}).items():
        infos = {
            group.mode: group.shown.flows[name].info
            for group in entry.groups
            if group.shown and name in group.shown.flows
        }
        whose = {mode: "ours" if info.ours else "third-party" for mode, info in infos.items()}
        kinds = set(whose.values())
        told = (
            kinds.pop() if len(kinds) == 1 else ", ".join(f"{who} in {mode}" for mode, who in whose.items())
        )
        enters = ", enters at the bottleneck" if flow.get("from") == "router" else ""
        stop = f" to {flow['stop']}" if flow.get("stop") else ""
        said.append(
            f"{name} ({flow.get('role', 'subject')}): {flow_words(flow)}{enters}, from "
            f"{flow.get('start', '0 s')}{stop}" + (f"; {told}" if told else "")
        )
    return said


def measure_words(entry: Entry) -> str:
    """Window, sample, layer, trials."""
    shown = next((group.shown for group in entry.groups if group.shown), None)
    trials = ", ".join(
        f"{len(group.trials)} in {group.mode}"
        + (
            f" ({len(group.trials) - len(group.valid)} invalid)"
            if len(group.valid) < len(group.trials)
            else ""
        )
        for group in entry.groups
    )
    if shown is None:
        return f"Trials: {trials}."
    grid = shown.grid
    layer = {"ip": "IP bytes", "ethernet": "Ethernet bytes (IP + 14)", "payload": "payload bytes"}[
        shown.layer
    ]
    sample = say_exactly(grid.sample_s, TIME)
    return (
        f"Measured from {grid.begin_s:g} s to {grid.end_s:g} s in samples of {sample}, in {layer}. "
        f"Trials: {trials}."
    )
