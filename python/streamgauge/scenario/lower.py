"""Lowering: a scenario, a mode and a seed become the plan of one trial, in integers, with every default
filled in and every random start drawn. Sim and the emulator read it (crates/systems/src/plan.rs)."""

from __future__ import annotations

import hashlib
from decimal import Decimal
from typing import Any, Literal

from pydantic import ValidationError

from streamgauge.errors import ScenarioError
from streamgauge.scenario.flow import Clip, Flow
from streamgauge.scenario.model import Scenario
from streamgauge.scenario.overrides import override
from streamgauge.scenario.path.plan import path_plan
from streamgauge.scenario.semantics import end_ns, event_ns, media_clip, resolve_times
from streamgauge.scenario.values import Uniform
from streamgauge.systems import darwin
from streamgauge.systems.registry import Mode
from streamgauge.units import Frequency, Packets, Quantity, Size, Time

__all__ = ["Keep", "draw", "lower"]

Keep = Literal["metrics", "events", "packets"]
Json = dict[str, Any]


def draw(seed: int, owner: str, purpose: str, low: int, high: int) -> int:
    """A whole number in [low, high], the same for the same arguments on every machine and in every version.

    Streams are named, so a flow that is added changes no other draw.
    """
    name = f"{seed}\x1f{owner}\x1f{purpose}".encode()
    bits = int.from_bytes(hashlib.blake2b(name, digest_size=16, person=b"streamgauge/draw").digest())
    return low + ((bits * (high - low + 1)) >> 128)


def _drawn(uniform: Uniform, seed: int, address: str) -> Quantity:
    """A value of ``uniform``, to a millionth of its span where its unit is not whole."""
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


def lower(scenario: Scenario, mode: Mode, seed: int, *, keep: Keep = "packets") -> Json:
    """The plan of one trial as JSON data.

    Raises ScenarioError if the scenario cannot run in ``mode``, or if what ``randomize`` drew makes no sense.
    """
    why = scenario.unsupported(mode)
    if why is not None:
        raise ScenarioError(f"{scenario.id} cannot run in {mode}: {why}")
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
    plan["flows"] = [_flow(name, flow, times, end, mode) for name, flow in scenario.flows.items()]
    plan["host_jitter"] = scenario.host_jitter.ns
    plan["keep"] = keep
    if (sample := scenario.measure.tcp_sample) != "off":
        plan["tcp_sample"] = sample.ns
    return plan


def _flow(name: str, flow: Flow, times: dict[tuple[str, str], int], end: int, mode: Mode) -> Json:
    actions = [[event_ns(event.at, times), event.do] for event in flow.events]
    if (name, "stop") in times:
        actions.append([times[name, "stop"], "stop"])
    start = times[name, "start"]
    return {
        "name": name,
        "role": flow.role,
        "entry": flow.entry,
        "start": start,
        "actions": actions,
        "app": _app(flow, end - start, end, mode),
    }


def _bytes(flow: Flow, name: str) -> int:
    value = flow.parameter(name)
    assert isinstance(value, Size)
    return value.bytes


def _ns(flow: Flow, name: str) -> int:
    value = flow.parameter(name)
    assert isinstance(value, Time)
    return value.ns


def _amount(flow: Flow, name: str) -> float:
    value = flow.parameter(name)
    assert isinstance(value, Frequency | Packets)
    return float(value.amount)


def _tcp(flow: Flow) -> Json:
    window = flow.parameter("window")
    return {
        "congestion_control": flow.congestion_control or "cubic",
        "receive_window": _bytes(flow, "receive_window"),
        "send_buffer": _bytes(flow, "send_buffer"),
        "mss": _bytes(flow, "mss"),
        "initial_window": int(_amount(flow, "initial_window")),
        "delayed_ack": _ns(flow, "delayed_ack"),
        "hystart": flow.parameter("hystart"),
        "fixed_window": window.bytes if isinstance(window, Size) else None,
        "ecn": bool(flow.ecn),
        "without": list(flow.parameter("without") or ()),  # type: ignore[arg-type]
    }


def _app(flow: Flow, longest_ns: int, trial_ns: int, mode: Mode) -> Any:
    entry = flow.registered
    if entry is None or (mode not in entry.ours and entry.plays):
        return "external"
    match entry.name:
        case "bulk":
            total = flow.parameter("bytes")
            return {"bulk": {"tcp": _tcp(flow), "bytes": total.bytes if isinstance(total, Size) else None}}
        case "cbr":
            windows: Any = flow.parameter("windows") or ()
            return {
                "cbr": {
                    "packets_per_s": _amount(flow, "rate"),
                    "payload_bytes": _bytes(flow, "size"),
                    "burst": int(_amount(flow, "burst")),
                    "windows": [[on.ns, off.ns] for on, off in windows],
                    "ecn": flow.parameter("ecn"),
                }
            }
        case "ping":
            return {"ping": {"interval": _ns(flow, "interval"), "payload_bytes": _bytes(flow, "size")}}
        case "rtp":
            return {"rtp": _rtp(flow, longest_ns, trial_ns)}
        case "darwin":
            return {"darwin": _darwin(flow, longest_ns, trial_ns)}
    raise AssertionError(f"no plan for {entry.name}")


def _rtp(flow: Flow, longest_ns: int, trial_ns: int) -> Json:
    return {
        "clip": _clip(flow, longest_ns, trial_ns),
        "max_payload": _bytes(flow, "max_payload"),
        "tcp": _tcp(flow) if flow.parameter("transport") == "tcp" else None,
        "rtcp_interval": _ns(flow, "rtcp_interval"),
        "playout_delay": _ns(flow, "playout_delay"),
    }


def _darwin(flow: Flow, longest_ns: int, trial_ns: int) -> Json:
    preset, player = str(flow.parameter("preset")), str(flow.parameter("player"))
    server, client = darwin.settings(preset, player, flow.parameters)
    return {
        "clip": _clip(flow, longest_ns, trial_ns),
        "server": server,
        "player": client | {"transport": flow.parameter("transport")},
        "tcp": _tcp(flow),
    }


def _clip(flow: Flow, longest_ns: int, trial_ns: int) -> Json:
    from streamgauge.media import Clip as MediaClip
    from streamgauge.media import frame_interval_ns, frame_sizes

    assert flow.clip is not None
    # Of the trial's length, wherever the flow starts in it: one file for all flows and seeds, the one that
    # systems play that are given files.
    clip = media_clip(flow.clip, Time.of(trial_ns))
    assert isinstance(clip, MediaClip)
    given = flow.clip.duration if isinstance(flow.clip, Clip) else None
    return {
        "name": clip.label,
        "duration": given.ns if given is not None else longest_ns,
        "frame_interval": frame_interval_ns(clip),
        "frame_bytes": frame_sizes(clip),
    }
