"""A scenario in words: its path, its flows, how long, how often."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from streamgauge.claims.dimension import TIME, say_exactly
from streamgauge.report.model import Entry
from streamgauge.report.stages import queue_words, rate_words, stage_words

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


def drawn_words(entry: Entry) -> str:
    """What each trial draws of the scenario's population, in a sentence; empty without one."""
    population = entry.scenario.get("population") or {}
    # Records before had "length" for the duration.
    named = {
        "rate": "bit rate",
        "duration": "duration",
        "length": "length",
        "rtt": "base RTT",
        "loss": "loss",
    }
    said = [f"{words} {population[key]}" for key, words in named.items() if population.get(key)]
    if population.get("clips"):
        said.insert(0, f"one of {len(population['clips'])} clips")
    if not population:
        return ""
    of = f" of {population['size']}" if population.get("size") else ""
    what = f"Each trial has a member{of} of its own: {'; '.join(said)}."
    return f"{what} What stands here of these is one trial's."


def bottleneck_words(entry: Entry) -> str:
    """Capacity, queue and base RTT: what every number of a scenario stands beside.

    The bottleneck is the one that the subjects' media meets first; of subjects both ways, both are told.
    """
    plan, population = entry.plan, entry.scenario.get("population") or {}
    ways = _ways(plan, entry.names("subject"))
    met = {way: _bottleneck_on(plan, way) for way in ways}
    if not any(met.values()):
        return "no bottleneck"
    rtt = base_rtt_s(plan)
    delay = f"{say_exactly(rtt, TIME)} base RTT" if rtt else "no delay added"
    if population.get("rtt"):
        delay = f"base RTT {population['rtt']}"
    if ways == ["down"]:
        return f"{met['down']}, {delay}"
    return "; ".join([*(f"{way} {words or 'no bottleneck'}" for way, words in met.items()), delay])


def _ways(plan: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Which ways the media of these flows goes, down first; down if there are none."""
    flows = [flow for flow in plan.get("flows") or [] if flow.get("name") in names]
    found = {"up" if flow.get("direction") == "up" else "down" for flow in flows}
    return sorted(found) or ["down"]


def _bottleneck_on(plan: Mapping[str, Any], way: str) -> str:
    """Rate and queue of the first bottleneck one way; empty without one."""
    for stage in (plan.get("path") or {}).get(way) or []:
        setting = (stage.get("kind") or {}).get("bottleneck")
        if setting is not None:
            return f"{rate_words(setting)}, queue {queue_words(setting['queue'])}"
    return ""


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
