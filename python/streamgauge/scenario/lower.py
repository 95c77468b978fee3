"""Lowering: a scenario, a mode and a seed become the plan of one trial, in integers, with every default
filled in and every random start drawn. Sim and the emulator read it (crates/plan/src/trial.rs)."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from streamgauge.errors import ScenarioError
from streamgauge.scenario.arrivals import transfers
from streamgauge.scenario.clips import media_clip
from streamgauge.scenario.draws import draw
from streamgauge.scenario.flow import Clip, Flow
from streamgauge.scenario.ladders import ladder_content
from streamgauge.scenario.media_files import own_ladder_of
from streamgauge.scenario.model import Scenario
from streamgauge.scenario.overrides import override
from streamgauge.scenario.path.plan import path_plan
from streamgauge.scenario.population import drawn
from streamgauge.scenario.semantics import end_ns, event_ns, resolve_times
from streamgauge.scenario.values import Uniform
from streamgauge.systems.adapters import ADAPTERS
from streamgauge.systems.machines import MACHINES
from streamgauge.systems.registry import Mode
from streamgauge.systems.tcp import DEFAULT_CONGESTION_CONTROL, planned_ecn
from streamgauge.units import Quantity, Time

if TYPE_CHECKING:
    from streamgauge.media import Content, ContentStore, Encoding

__all__ = ["Keep", "as_drawn", "draw", "lower"]

Keep = Literal["metrics", "events", "packets"]
Json = dict[str, Any]


def _drawn(uniform: Uniform, seed: int, address: str) -> Quantity:
    """Returns a value of ``uniform``, to a millionth of its span where its unit is not whole."""
    kind = type(uniform.low)
    if kind.whole:
        return kind.of(draw(seed, address, "randomize", int(uniform.low.amount), int(uniform.high.amount)))
    steps = 10**6
    part = Decimal(draw(seed, address, "randomize", 0, steps)) / steps
    return kind.of(uniform.low.amount + (uniform.high.amount - uniform.low.amount) * part)


def _start_delays(scenario: Scenario, seed: int) -> dict[str, int]:
    delays = {}
    for name in scenario.flows:
        named = scenario.randomize.get(f"{name}.start")
        if named is not None:
            delays[name] = draw(seed, name, "start", int(named.low.amount), int(named.high.amount))
        else:
            delays[name] = draw(seed, name, "start", 0, scenario.start_phase.ns)
    return delays


def _fill_buckets(path: Json, seed: int) -> None:
    """Draws how full each token bucket is at the start.

    Full buckets alone would lock phases: which of several lasting states a TCP falls into may hang on some
    100 B of tokens, and all seeds would show the same.
    """
    for direction in ("down", "up"):
        for stage in path[direction]:
            bucket = stage["kind"].get("bottleneck", {}).get("shaper", {})
            if isinstance(bucket, dict) and (bucket := bucket.get("token_bucket")):
                owner = f"{direction}.{stage['name']}"
                bucket["initial"] = draw(seed, owner, "bucket", 0, bucket["burst"])


def as_drawn(scenario: Scenario, mode: Mode, seed: int) -> Scenario:
    """Returns the scenario of one trial, with the draws of its population and of `randomize` in their places.

    Raises ScenarioError if the drawn values are invalid.
    """
    scenario = drawn(scenario, seed, mode)
    values = {
        address: str(_drawn(uniform, seed, address))
        for address, uniform in scenario.randomize.items()
        if not address.endswith(".start") or address.count(".") != 1
    }
    if values:
        try:
            scenario = override(scenario, values, drop_checks=True)
        except ValidationError as error:
            said = "; ".join(str(detail["msg"]) for detail in error.errors(include_url=False))
            raise ScenarioError(
                f"{scenario.id}: seed {seed} draws {values}, which makes no sense: {said}"
            ) from None
    return scenario


def lower(
    scenario: Scenario,
    mode: Mode,
    seed: int,
    *,
    keep: Keep = "packets",
    contents: ContentStore | None = None,
) -> Json:
    """Returns the plan of one trial as JSON data.

    Clips have their frames written in; with ``contents`` they are stored there, and the plan names them.

    Raises ScenarioError if the scenario cannot run in ``mode``, or if the values that ``randomize`` or its
    population drew are invalid.
    """
    why = scenario.unsupported(mode)
    if why is not None:
        raise ScenarioError(f"{scenario.id} cannot run in {mode}: {why}")
    scenario = as_drawn(scenario, mode, seed)
    end = end_ns(scenario)
    # Ends come from the scenario as written: a stand-in plays for as long.
    scenario = scenario.in_mode(mode)
    times = resolve_times(scenario, _start_delays(scenario, seed))
    plan: Json = {"scenario": scenario.id, "seed": seed, "duration": end}
    if scenario.until.media_end is not None:
        plan["until_media_end"] = scenario.until.media_end
    if scenario.until.idle is not None:
        plan["until_idle"] = scenario.until.idle.ns
    plan["path"] = path_plan(scenario.path, list(scenario.flows), end)
    if marks := [[one.at.ns, one.mark] for one in scenario.path.changes or () if one.mark is not None]:
        plan["marks"] = marks
    if mode == "sim" and scenario.start_phase.ns > 0:
        _fill_buckets(plan["path"], seed)
    plan["flows"] = [
        _flow(name, flow, times, end, mode, seed, contents) for name, flow in scenario.flows.items()
    ]
    if scenario.relays:
        plan["relays"] = [
            {"name": name, "at": relay.at, "app": {relay.system: relay.settings()}}
            for name, relay in scenario.relays.items()
        ]
    plan["host_jitter"] = scenario.host_jitter.ns
    plan["keep"] = keep
    plan["limits"] = {"events": scenario.limits.events, "memory_bytes": scenario.limits.memory.bytes}
    if (sample := scenario.measure.tcp_sample) != "off":
        plan["tcp_sample"] = sample.ns
    return plan


def _flow(
    name: str,
    flow: Flow,
    times: dict[tuple[str, str], int],
    end: int,
    mode: Mode,
    seed: int,
    contents: ContentStore | None,
) -> Json:
    actions = [[event_ns(event.at, times), event.do] for event in flow.events]
    if (name, "stop") in times:
        actions.append([times[name, "stop"], "stop"])
    start = times[name, "start"]
    plan: Json = {
        "name": name,
        "role": flow.role,
        "entry": flow.entry,
        "start": start,
        "actions": actions,
        "app": _app(flow, end - start, end, mode, contents),
    }
    if flow.direction == "up":
        plan["direction"] = "up"
    if flow.arrivals is not None:
        (settings,) = plan["app"].values()
        stop = times.get((name, "stop"), end)
        settings["arrivals"] = transfers(flow.arrivals, seed, name, start, min(stop, end))
    if plan["app"] == "external":
        # Keys that no machine's settings have.
        plan["tcp"] = {
            "congestion_control": flow.congestion_control or DEFAULT_CONGESTION_CONTROL,
            "ecn": flow.ecn in ("classic", "l4s"),
        }
    if flow.via is not None:
        plan["via"] = flow.via
    if plan["app"] == "external" and isinstance(flow.clip, Clip) and flow.clip.files is not None:
        content = own_ladder_of(flow.clip)
        plan["content"] = content.digest if contents is None else contents.put(content)
    external = ADAPTERS[flow.registered.name].external if flow.registered is not None else None
    if external is not None and external.protocols:
        plan["protocols"] = {carrier: list(named) for carrier, named in external.protocols.items()}
    return plan


def _app(flow: Flow, longest_ns: int, trial_ns: int, mode: Mode, contents: ContentStore | None) -> Any:
    entry = flow.registered
    if entry is None or entry.name not in MACHINES or (mode not in entry.ours and entry.plays):
        return "external"
    machine = MACHINES[entry.name]
    settings = machine.settings(flow.parameters)
    if machine.content == "clip":
        settings["clip"] = _clip(flow, longest_ns, trial_ns, contents)
    elif machine.content == "ladder":
        settings["ladder"] = _ladder(flow, longest_ns, trial_ns, contents)
    if settings.get("tcp") is not None:
        # A scenario has this key on the flow and not among its parameters.
        settings["tcp"] |= {
            "congestion_control": flow.congestion_control or settings["tcp"]["congestion_control"],
            **planned_ecn(flow.ecn),
        }
    return {entry.name: settings}


def _clip(flow: Flow, longest_ns: int, trial_ns: int, contents: ContentStore | None) -> Json:
    from streamgauge.media import ClipEncoding, content_of_clip

    assert flow.clip is not None
    # The clip is as long as the trial, wherever the flow starts in it: one file for all flows and seeds, the
    # same that systems with files play.
    clip = media_clip(flow.clip, Time.of(trial_ns))
    assert isinstance(clip, ClipEncoding)
    given = flow.clip.duration if isinstance(flow.clip, Clip) else None
    content = content_of_clip(clip)
    plays = {"name": content.name, "duration": given.ns if given is not None else longest_ns}
    return plays | _frames(content, content.video.encodings[0], contents)


def _frames(content: Content, encoding: Encoding, contents: ContentStore | None) -> Json:
    """Returns the frames of an encoding as a plan has them, or where it finds them."""
    if contents is not None:
        number = content.encodings.index(encoding)
        return {"content": {"digest": contents.put(content), "encoding": number}}
    return encoding.frames.to_plan()


def _ladder(flow: Flow, longest_ns: int, trial_ns: int, contents: ContentStore | None) -> Json:
    content = ladder_content(flow.clip, Time.of(trial_ns))
    given = flow.clip.duration if isinstance(flow.clip, Clip) else None
    own = isinstance(flow.clip, Clip) and flow.clip.files is not None
    plays = content.duration_ns if own else given.ns if given is not None else longest_ns
    assert content.segment_ns is not None, "ladder_content sees to it"

    def level(encoding: Encoding) -> Json:
        clip = {"name": encoding.name, "duration": plays, **_frames(content, encoding, contents)}
        return {"bit_rate_bps": encoding.bit_rate_bps, "size": list(encoding.size or (0, 0)), "clip": clip}

    audio = [track.encodings[0] for track in content.tracks if track.kind == "audio"]
    return {
        "name": content.name,
        "segment": content.segment_ns,
        "video": [level(encoding) for encoding in content.video.encodings],
        "audio": level(audio[0]) if audio else None,
    }
