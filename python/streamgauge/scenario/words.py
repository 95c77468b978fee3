"""A scenario in plain words."""

from __future__ import annotations

from streamgauge.scenario.flow import Clip, Command, Flow
from streamgauge.scenario.model import MODES, Scenario
from streamgauge.scenario.path import Bernoulli, Delay, Direction, Gilbert, Link, Loss, RateSteps
from streamgauge.units import Rate, Time

__all__ = ["direction_in_words", "flow_in_words", "in_words"]


def direction_in_words(direction: Direction) -> str:
    """``loses 2 % at random, then 480 kbit/s behind a drop-tail queue of 10 kB, then 10 ms of delay``."""
    parts = []
    for stage in direction.chain():
        if isinstance(stage, Loss):
            if isinstance(stage.loss, Bernoulli):
                what = f"loses {stage.loss.bernoulli} at random"
            else:
                assert isinstance(stage.loss, Gilbert)
                runs = stage.loss.gilbert
                what = f"loses runs of {runs.bad} after runs of {runs.good} (Gilbert, means)"
            for switch in stage.loss.switch:
                what += f", {switch.to} at {switch.at}"
        elif isinstance(stage, Link):
            what = f"{_rate_in_words(stage)} behind a drop-tail queue of {stage.queue.droptail}"
        else:
            assert isinstance(stage, Delay)
            if isinstance(stage.delay, Time):
                what = f"{stage.delay} of delay"
            else:
                what = "delay of " + ", ".join(f"{step.delay} from {step.at}" for step in stage.delay.steps)
        parts.append(what)
    return ", then ".join(parts) if parts else "a plain wire"


def _rate_in_words(link: Link) -> str:
    if isinstance(link.rate, Rate):
        return str(link.rate)
    if isinstance(link.rate, RateSteps):
        return ", ".join(f"{step.rate} from {step.at}" for step in link.rate.steps)
    wave = link.rate.square
    return f"{wave.first} and {wave.second} by turns, period {wave.period},"


def flow_in_words(flow: Flow) -> str:
    """What a flow is and does."""
    if isinstance(flow.system, Command):
        what = f"{flow.system.name} (commands)"
    else:
        what = str(flow.system or flow.traffic)
    words = [f"{flow.role}: {what}"]
    if flow.clip is not None:
        clip = flow.clip
        named = f"{clip.source or clip.file} at {clip.rate}" if isinstance(clip, Clip) else clip
        words.append(f"playing {named}")
    words += [f"{key} {_value(value)}" for key, value in flow.parameters.items()]
    if flow.congestion_control is not None:
        words.append(f"congestion control {flow.congestion_control}")
    if flow.entry == "router":
        words.append("entering at the bottleneck")
    words.append(f"from {flow.start}" + (f" to {flow.stop}" if flow.stop is not None else ""))
    words += [f"{event.do} at {event.at}" for event in flow.events]
    return ", ".join(words)


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return " and ".join(f"{on} to {off}" for on, off in value)
    return str(value)


def in_words(scenario: Scenario) -> list[str]:
    """Lines that say what is done, measured, assumed and expected."""
    lines = [scenario.id, f"  {scenario.title}"]
    if scenario.question:
        lines.append(f"  question: {scenario.question}")
    if scenario.source is not None:
        where = f", section {scenario.source.section}" if scenario.source.section else ""
        lines.append(f"  source: {scenario.source.paper}{where}")
    lines.append(f"  down: {direction_in_words(scenario.path.down)}")
    lines.append(f"  up: {direction_in_words(scenario.path.up)}")
    for name, flow in scenario.flows.items():
        lines.append(f"  flow {name}: {flow_in_words(flow)}")
        for mode in ("sim", "emu"):
            if getattr(flow, mode) is not None:
                lines.append(f"    in {mode}: {flow_in_words(flow.in_mode(mode))}")
    until = scenario.until
    ends = [f"at {until.time}"] if until.time is not None else []
    ends += [f"when the media of {until.media_end} ends"] if until.media_end is not None else []
    ends += [f"after {until.idle} without a packet"] if until.idle is not None else []
    lines.append(f"  ends {' or '.join(ends)}")
    for mode in MODES:
        why = scenario.unsupported(mode)
        count = getattr(scenario.repetitions, mode)
        lines.append(f"  {mode}: {count} repetitions" if why is None else f"  {mode}: no ({why})")
    for address, assumed in scenario.assumed.items():
        tried = ", ".join(str(value) for value in assumed.values)
        lines.append(f"  assumed {address}: {tried}" + (f" ({assumed.why})" if assumed.why else ""))
    for name, check in scenario.checks.items():
        strict = ", strict" if check.strict else ""
        lines.append(f"  check {name} ({check.origin}{strict}): {check.that}")
    return lines
