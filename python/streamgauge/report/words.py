"""A scenario in words: its path, its flows, how long, how often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from streamgauge.claims.dimension import TIME, plain, say_exactly
from streamgauge.report.model import Entry
from streamgauge.report.observed import CAPTURED, measured_words
from streamgauge.report.stages import queue_words, rate_words, stage_words
from streamgauge.systems.machines import origin
from streamgauge.systems.parameter import function_of
from streamgauge.terminal import tie as tie

NS = 1e9
ROLES = {"subject": "subject", "rival": "cross traffic"}
"""Names of the roles of flows on a page."""


def goes_up(flow: Mapping[str, Any]) -> bool:
    """Returns whether the media of a flow, of a plan or a scenario, travels to the server's end of the
    path."""
    return flow.get("direction") == "up"


def path_words(plan: Mapping[str, Any]) -> str:
    """Returns both directions in one sentence."""
    path = plan.get("path") or {}
    said = []
    labels = {"down": "Server to player", "up": "player to server"}
    if any(goes_up(flow) for flow in plan.get("flows") or []):
        # The server of such a flow is at the client's end.
        labels = {"down": "Down, to the client's end", "up": "up, to the server's end"}
    for way, label in labels.items():
        stages = [found for stage in path.get(way) or [] if (found := stage_words(stage))]
        inner = ", then ".join(f"{what} ({setting})" for what, setting in stages)
        said.append(f"{label}: {inner or 'a plain wire, neither rate nor delay'}")
    return "; ".join(said) + "."


def base_rtt_s(plan: Mapping[str, Any]) -> float:
    """Returns both directions' constant delays together, without queueing and transmission, in s."""
    path = plan.get("path") or {}
    stages = [*(path.get("down") or []), *(path.get("up") or [])]
    return sum(float((stage.get("kind") or {}).get("delay", {}).get("delay", 0)) for stage in stages) / NS


def drawn_words(entry: Entry) -> str:
    """Returns each trial's draw of the scenario's population, in a sentence; empty without one."""
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
    if encodings := _encodings(population):
        fewest, most = encodings
        count = str(most) if fewest == most else f"{fewest} to {most}"
        said.append(f"{count} encoding{'' if most == 1 else 's'} of the ladder")
    for key, words in (("clips", "clips"), ("members", "clips, across a path of its own")):
        if population.get(key):
            said.insert(0, f"one of {len(population[key])} {words}")
    if not population:
        return ""
    of = f" of {population['size']}" if population.get("size") else ""
    what = f"Each trial has a member{of} of its own: {'; '.join(said)}."
    return f"{what} These numbers are from one trial."


def _encodings(population: Mapping[str, Any]) -> Sequence[int]:
    """Fewest and most that are drawn; empty if none are."""
    # Records before had "levels".
    return population.get("encodings") or population.get("levels") or ()


def bottleneck_words(entry: Entry) -> str:
    """Returns capacity, queue and base RTT: the conditions of every number of a scenario.

    The bottleneck is the one that the subjects' media meets first; for subjects in both directions, both are
    named.
    """
    plan, population = entry.plan, entry.scenario.get("population") or {}
    ways = _ways(plan, entry.names("subject"))
    met = {way: _bottleneck_on(plan, way) for way in ways}
    if not any(met.values()):
        return measured_words(entry) or "no bottleneck"
    rtt = base_rtt_s(plan)
    delay = f"{say_exactly(rtt, TIME)} base RTT" if rtt else "no delay added"
    if population.get("rtt"):
        delay = f"base RTT {population['rtt']}"
    if ways == ["down"]:
        return f"{met['down']}, {delay}"
    return "; ".join([*(f"{way} {words or 'no bottleneck'}" for way, words in met.items()), delay])


def _ways(plan: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Returns the directions of the media of these flows, down first; down if there are none."""
    flows = [flow for flow in plan.get("flows") or [] if flow.get("name") in names]
    found = {"up" if goes_up(flow) else "down" for flow in flows}
    return sorted(found) or ["down"]


def _bottleneck_on(plan: Mapping[str, Any], way: str) -> str:
    """Rate and queue of the bottleneck one way (`streamgauge.metrics.frame.bottleneck_of`); empty without."""
    stages = [stage for stage in (plan.get("path") or {}).get(way) or [] if "bottleneck" in stage["kind"]]
    stages.sort(key=lambda stage: stage["name"] != "bottleneck")
    if not stages:
        return ""
    setting = stages[0]["kind"]["bottleneck"]
    return f"{rate_words(setting)}, queue {queue_words(setting['queue'])}"


def flow_words(flow: Mapping[str, Any]) -> str:
    """Returns a flow in words: system or traffic with its settings."""
    # A stand-in runs in one mode only; the scenario as run shows the mode.
    what = flow.get("system") or flow.get("traffic") or "flow"
    if isinstance(what, Mapping):
        what = what.get("name") or "command"
    said = [str(what)]
    if flow.get("congestion_control"):
        control = str(flow["congestion_control"])
        own = function_of(control)
        said.append(control if own is None else f"{PurePath(own[0]).name}:{own[1]} (a function of Python)")
    for key, value in (flow.get("parameters") or {}).items():
        shown = f"{value[:-3]} packets/s" if isinstance(value, str) and value.endswith(" /s") else value
        said.append(f"{str(key).replace('_', ' ')} {shown}")
    clip = flow.get("clip")
    if clip:
        said.append(f"clip {_clip_words(clip) if isinstance(clip, Mapping) else clip}")
    if arrivals := flow.get("arrivals"):
        exponential = arrivals.get("sizes") == "exponential"
        size = f"exponential sizes of mean {arrivals['size']}" if exponential else str(arrivals["size"])
        rate = str(arrivals["rate"]).removesuffix(" /s")
        said.append(f"short transfers of {size}, {rate} arriving each second (Poisson)")
    return ", ".join(said)


def _clip_words(clip: Mapping[str, Any]) -> str:
    """Returns a clip with all its keys in words: pictures, rates, length."""
    if clip.get("files"):
        return f"of the files {', '.join(PurePath(file).name for file in clip['files'])}"
    source = clip.get("source") or PurePath(str(clip.get("file", ""))).name
    said = [f"{source} at {' or '.join(map(str, clip.get('ladder') or [clip.get('rate', '')]))}"]
    said += [f"for {clip['duration']}"] if clip.get("duration") else []
    return " ".join(said)


def relay_words(entry: Entry, name: str) -> str:
    """Returns the relay on a flow's route, ``http-cache home at the client``; empty without one."""
    via = ((entry.scenario.get("flows") or {}).get(name) or {}).get("via")
    relay = (entry.scenario.get("relays") or {}).get(via)
    return "" if relay is None else f"{relay['system']} {via} at the {relay['at']}"


def flows_words(entry: Entry) -> list[str]:
    """Returns each flow in a line: its role, its system in each mode with the origin, and its times; then
    each relay."""
    said = []
    for name, asked in (entry.scenario.get("flows") or {}).items():
        flow = _as_drawn(entry, name, asked)
        infos = {
            group.mode: group.numbers.infos[name] for group in entry.groups if name in group.numbers.infos
        }
        whose = {mode: origin(info.system, ours=info.ours) for mode, info in infos.items()}
        kinds = set(whose.values())
        told = (
            kinds.pop() if len(kinds) == 1 else ", ".join(f"{who} in {mode}" for mode, who in whose.items())
        )
        enters = ", enters at the bottleneck" if flow.get("from") == "router" else ""
        enters += ", media up from the client's end" if goes_up(flow) else ""
        through = relay_words(entry, name)
        enters += f", through {through}" if through else ""
        stop = f" to {flow['stop']}" if flow.get("stop") else ""
        said.append(
            f"{name}: {flow_words(flow)}, as captured"
            if CAPTURED in infos
            else f"{name} ({ROLES[flow.get('role', 'subject')]}): {flow_words(flow)}{enters}, from "
            f"{flow.get('start', '0 s')}{stop}" + (f"; {told}" if told else "")
        )
    for name, relay in (entry.scenario.get("relays") or {}).items():
        said.append(f"{name} (relay): {flow_words(relay)}, at the {relay['at']}; ours")
    return said


def _as_drawn(entry: Entry, name: str, flow: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the flow without the parts that each member of a population has of its own."""
    population, clip = entry.scenario.get("population") or {}, flow.get("clip")
    players = population.get("flow") or name
    if not clip or name not in ([players] if isinstance(players, str) else players):
        return flow
    if population.get("clips") or population.get("members"):
        return {**flow, "clip": "of the population"}
    rates = "a bit rate of the population" if population.get("rate") else ""
    rates = "encodings of the population" if _encodings(population) else rates
    lasts = "a duration of the population" if population.get("duration") or population.get("length") else ""
    if isinstance(clip, Mapping):
        drawn = {"ladder": [rates] if rates else None, "duration": lasts}
        return {**flow, "clip": {**clip, **{key: value for key, value in drawn.items() if value}}}
    said = f"{str(clip).rpartition('-')[0]} at {rates}" if rates else str(clip)
    return {**flow, "clip": f"{said} for {lasts}" if lasts else said}


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
        f"Measured from {plain(grid.begin_s)} s to {plain(grid.end_s)} s in samples of {sample}, in {layer}. "
        f"Trials: {trials}."
    )
