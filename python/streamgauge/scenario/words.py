"""A scenario in plain words."""

from __future__ import annotations

from streamgauge.scenario.expect import Population
from streamgauge.scenario.flow import Arrivals, Clip, Command, Flow
from streamgauge.scenario.path.words import direction_in_words
from streamgauge.scenario.semantics import unsupported
from streamgauge.scenario.shape import Shape
from streamgauge.systems.parameter import function_of
from streamgauge.systems.registry import Mode
from streamgauge.systems.tcp import bpf_object

__all__ = ["ROLES", "as_written", "flow_in_words", "in_words"]


ROLES = {"subject": "subject", "rival": "cross traffic"}
"""Role of a flow in an experiment, in words."""

_MODES: tuple[Mode, ...] = ("sim", "emu")


def flow_in_words(flow: Flow) -> str:
    """Returns the kind and the actions of a flow."""
    if isinstance(flow.system, Command):
        what = f"{flow.system.name} (commands)"
    else:
        what = str(flow.system or flow.traffic)
    words = [what]
    if flow.clip is not None:
        clip = flow.clip
        words.append(f"playing {_content(clip)}")
    if flow.arrivals is not None:
        words.append(_arrivals(flow.arrivals))
    words += [f"{key} {_value(value)}" for key, value in flow.parameters.items()]
    if flow.congestion_control is not None:
        own = " (a function of Python)" if function_of(flow.congestion_control) is not None else ""
        own = " (a BPF object)" if bpf_object(flow.congestion_control) is not None else own
        words.append(f"congestion control {flow.congestion_control}{own}")
    if flow.ecn is not None:
        words.append({"off": "without ECN", "classic": "with ECN", "l4s": "with L4S"}[flow.ecn])
    if flow.entry == "router":
        words.append("entering at the bottleneck")
    if flow.direction == "up":
        words.append("media up, from a server at the client's end")
    words.append(f"from {flow.start}" + (f" to {flow.stop}" if flow.stop is not None else ""))
    words += [f"{event.do} at {event.at}" for event in flow.events]
    return ", ".join(words)


def _arrivals(arrivals: Arrivals) -> str:
    sizes = (
        str(arrivals.size) if arrivals.sizes == "constant" else f"exponential sizes of mean {arrivals.size}"
    )
    return f"short transfers of {sizes}, Poisson arrivals at {arrivals.rate}"


def _content(clip: str | Clip) -> str:
    if isinstance(clip, str):
        return clip
    if clip.files is not None:
        return f"{', '.join(clip.files)} as they are"
    rates = " or ".join(map(str, clip.ladder or [clip.rate]))
    return f"{clip.source or clip.file} at {rates}"


def _value(value: object) -> str:
    if isinstance(value, tuple):
        parts = (part if isinstance(part, str) else f"{part[0]} to {part[1]}" for part in value)
        return " and ".join(parts)
    # A frequency is of packets, where it is a system's parameter.
    return str(value).replace(" /s", " packets/s")


def _population_in_words(population: Population) -> str:
    words = [f"{population.count} members, one a trial"]
    if population.members is not None:
        words.append("each with its clip and its path")
    for name in ("rate", "duration", "rtt", "loss"):
        if (distribution := getattr(population, name)) is not None:
            words.append(f"{name} {distribution}")
    if population.encodings is not None:
        words.append(f"{population.encodings[0]} to {population.encodings[1]} encodings of the ladder")
    return "; ".join(words)


def in_words(scenario: Shape) -> list[str]:
    """Returns lines on the actions, measurements, assumptions and expectations of a scenario."""
    lines = [scenario.id, f"  {scenario.title}"]
    if scenario.question:
        lines.append(f"  question: {scenario.question}")
    if scenario.based_on is not None:
        changed = ", ".join(scenario.based_on.changes)
        lines.append(f"  extends {scenario.based_on.scenario}, changed: {changed or 'nothing'}")
    if scenario.source is not None:
        where = f", section {scenario.source.section}" if scenario.source.section else ""
        lines.append(f"  source: {scenario.source.paper}{where}")
    if scenario.path.based_on is not None:
        lines.append(f"  path: from the preset {scenario.path.based_on}")
    lines.append(f"  down: {direction_in_words(scenario.path.down)}")
    lines.append(f"  up: {direction_in_words(scenario.path.up)}")
    for name, flow in scenario.flows.items():
        lines.append(f"  flow {name}, {ROLES[flow.role]}: {flow_in_words(flow)}")
        for mode in _MODES:
            if getattr(flow, mode) is not None:
                lines.append(f"    in {mode}: {flow_in_words(flow.in_mode(mode))}")
    if (population := scenario.population) is not None:
        lines.append(f"  population: {_population_in_words(population)}")
    until = scenario.until
    ends = [f"at {until.time}"] if until.time is not None else []
    ends += [f"when the media of {until.media_end} ends"] if until.media_end is not None else []
    ends += [f"after {until.idle} without a packet"] if until.idle is not None else []
    lines.append(f"  ends {' or '.join(ends)}")
    for mode in _MODES:
        why = unsupported(scenario, mode)
        count = getattr(scenario.repetitions, mode)
        lines.append(
            f"  {mode}: {count} repetition{'' if count == 1 else 's'}"
            if why is None
            else f"  {mode}: no ({why})"
        )
    for address, assumed in scenario.assumed.items():
        tried = ", ".join(as_written(value) for value in assumed.values)
        lines.append(f"  assumed {address}: {tried}" + (f" ({assumed.why})" if assumed.why else ""))
    for name, check in scenario.checks.items():
        strict = ", strict" if check.strict else ""
        lines.append(f"  check {name} ({check.origin}{strict}): {check.that}")
    return lines


def as_written(value: object) -> str:
    """Returns a value as a person would write it in YAML."""
    match value:
        case dict():
            return "{" + ", ".join(f"{key}: {as_written(part)}" for key, part in value.items()) + "}"
        case list() | tuple():
            return f"[{', '.join(map(as_written, value))}]"
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
    return str(value)
