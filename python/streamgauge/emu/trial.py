"""The launcher's side of a trial: checks, its machine, verdict."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamgauge
from streamgauge import _native
from streamgauge.emu import controls, expectation, tcp_samples
from streamgauge.emu.agreement import agreement
from streamgauge.emu.concurrency import TrialSlot
from streamgauge.emu.conditions import judge_record
from streamgauge.emu.engine import engine
from streamgauge.emu.host import machine_for
from streamgauge.emu.options import EmuOptions
from streamgauge.emu.path_pairs import counted
from streamgauge.emu.taps import first_packets, handshakes_repeated, harmed, media_delivered
from streamgauge.emu.trial_request import TrialRequest
from streamgauge.emu.trial_setup import flow_setups, planned_controls, relay_setups, to_request
from streamgauge.emu.validity import verdict
from streamgauge.record import write_events
from streamgauge.systems.adapters import rides_on_tcp
from streamgauge.systems.tcp import planned_tcp

if TYPE_CHECKING:
    from streamgauge.scenario import Scenario


def run_trial(
    scenario: Scenario,
    plan: Mapping[str, Any],
    seed: int,
    directory: Path,
    options: EmuOptions | None = None,
) -> dict[str, Any]:
    """Runs one trial for real and leaves packets, events, logs and, if requested, a capture in `directory`.

    Returns ``{"validity", "summary", "provenance"}`` for `streamgauge.record.finish_trial`. Raises
    CannotRunError before anything starts if this machine cannot, MediaError if a clip cannot be had,
    TrialBrokenError if a process of the trial died so that there is no record. No process and no namespace
    remains in any case.
    """
    options = options or EmuOptions()
    machine = machine_for(options, plan)
    executable = engine()
    options.say("preparing media")
    setups = flow_setups(scenario, plan)
    relays = relay_setups(plan)
    machine.check(setups, relays)
    directory.mkdir(parents=True, exist_ok=True)
    own_controls = machine.own_controls(control for _, control in planned_controls(setups, relays))
    request = to_request(setups, relays, plan, directory, executable, options, own_controls)
    with machine.turn() as turn:
        began, started_at = time.monotonic(), time.time()
        measured = machine.run(request, seed, turn, _listener(plan, options))
        wall_s = time.monotonic() - began
    if options.steered is not None:
        link = measured["link"]
        plan = options.steered(link["steered"], round(link["duration_s"] * 1e9))
    collected = measured.pop("collected")
    measured["tcp_connections"] = tcp_samples.connections(directory, request.own_controls)
    measured["congestion_controls"] = tcp_samples.used(measured["tcp_connections"])
    events = _events(plan, measured, collected, directory)
    events_digest = write_events(directory, events, plan=plan)
    (directory / "link-events.json").unlink(missing_ok=True)
    for name in collected:
        collected[name].pop("events")
    measured["collected"] = collected
    # A third-party system has no machine in the plan: its description has the data.
    measured["over_tcp"] = {setup.name: rides_on_tcp(setup) for setup in setups}
    measured["over_tcp"] |= {relay.name: planned_tcp(relay.plan) is not None for relay in relays}
    duration_ns = round(measured["link"]["duration_s"] * 1e9)
    measured["conditions"] = judge_record(directory, plan, events, duration_ns)
    measured["media_delivered"] = media_delivered(directory, plan, expectation.players_ended_s(measured))
    until_s = expectation.listened_until_s(plan, measured)
    measured["media_listened_to"] = media_delivered(directory, plan, until_s) if until_s else {}
    measured["harmed"] = harmed(directory, plan)
    measured["replay"] = json.loads(_native.replay(json.dumps(plan), str(directory)))
    measured["commands"] = [setup.name for setup in setups if setup.system == "command"]
    measured["handshakes_repeated"] = handshakes_repeated(directory, plan)
    measured["first_packets_s"] = first_packets(directory, plan)
    measured["agreement"] = agreement(directory, plan, measured["t0_realtime_ns"])
    for file in directory.glob("witness-*.stamps"):
        file.unlink()
    link = measured["link"]
    return {
        "validity": verdict(plan, measured),
        "summary": {
            "duration_s": link["duration_s"],
            "duration_ns": round(link["duration_s"] * 1e9),
            "rows": link["rows"],
            "packets_digest": link["packets_digest"],
            "events_digest": events_digest,
            "balance": link["balance"],
            "host": expectation.host(measured["counters"]),
        },
        "provenance": machine.provenance(request, started_at)
        | _provenance(request, measured, seed, wall_s, started_at, turn),
    }


def _listener(plan: Mapping[str, Any], options: EmuOptions) -> Callable[[Mapping[str, Any]], None]:
    """Passes on the worker's messages."""

    def listen(words: Mapping[str, Any]) -> None:
        if "say" in words:
            options.say(words["say"])
        elif "player" in words and options.player_said is not None:
            options.player_said(*words["player"])
        elif "at_s" in words:
            options.say(f"{words['at_s']:.0f} of {plan['duration'] / 1e9:.0f} s")

    return listen


def _events(
    plan: Mapping[str, Any], measured: Mapping[str, Any], collected: Mapping[str, Any], directory: Path
) -> list[dict[str, Any]]:
    """Returns the events of the trial, in trial time: the link's changes, the processes' reports, and the
    state of their TCP."""
    t0, duration_ns = measured["t0_monotonic_ns"], round(measured["link"]["duration_s"] * 1e9)
    events: list[dict[str, Any]] = []
    changes = directory / "link-events.json"
    if changes.is_file():
        events += json.loads(changes.read_text(encoding="utf-8"))
    for name, found in collected.items():
        for event in found["events"]:
            # Reports before the start, or while processes were being ended, move to the nearest edge.
            at = min(max(event["t_monotonic_ns"] - t0, 0), duration_ns)
            events.append(
                {"t_ns": at, "flow": name, **{key: event[key] for key in ("name", "value", "unit", "reason")}}
            )
    return events + tcp_samples.events(measured["tcp_connections"], plan, t0, duration_ns)


def _provenance(
    request: TrialRequest,
    measured: Mapping[str, Any],
    seed: int,
    wall_s: float,
    started_at: float,
    turn: TrialSlot,
) -> dict[str, Any]:
    return {
        "streamgauge": streamgauge.__version__,
        "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started_at)),
        "wall_s": wall_s,
        "seed": seed,
        # Emu trials of this run that were at work at once, this one among them.
        "concurrent_trials": {"allowed": turn.allowed, "most": turn.most},
        "emulator": measured["link_class"],
        "network": measured["network"],
        "processes": measured["processes"],
        "log_remarks": measured["log_remarks"],
        "counters": measured["counters"],
        "t0_realtime_ns": measured["t0_realtime_ns"],
        "systems": {
            flow["name"]: _system(request, flow, measured) for flow in [*request.flows, *request.relays]
        },
    }


def _system(request: TrialRequest, flow: Mapping[str, Any], measured: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the software that ran a flow or relay of the request, and its TCP: `None` for a flow that has
    none."""
    tcp = planned_tcp(counted(request.plan)[flow["index"]])
    collected = measured["collected"][flow["name"]]
    asked = None if tcp is None else tcp["congestion_control"]
    return {
        "system": flow["system"],
        "congestion_control_asked": asked,
        "congestion_control_used": measured["congestion_controls"].get(flow["name"])
        or collected["congestion_control"],
        "congestion_control_origin": None if asked is None else controls.origin(asked, request.own_controls),
        "player_counter": collected["received_what"] or None,
    }
