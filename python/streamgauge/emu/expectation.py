"""Expectations from a trial's plan, and disagreements between the counts of a trial."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from streamgauge.emu.path_pairs import counted
from streamgauge.systems.actions import pauses, stopped_at
from streamgauge.systems.machines import Pace, facts


def base_rtt_s(plan: Mapping[str, Any]) -> float:
    """Propagation there and back at t = 0, s; transmission not counted."""
    total = 0
    for direction in ("down", "up"):
        for stage in plan["path"][direction]:
            delay = stage["kind"].get("delay")
            if delay is not None:
                total += delay["delay"]
    return total / 1e9


def entered(plan: Mapping[str, Any], link: Mapping[str, Any], flow: str, direction: str) -> int:
    """Packets of a flow that the emulator's rings took in."""
    return _ring(plan, link["entered"], flow, direction)


def media_direction(flow: Mapping[str, Any]) -> str:
    """``down`` or ``up``: which way the flow of a plan sends its media."""
    return str(flow.get("direction", "down"))


def player_end(flow: Mapping[str, Any]) -> str:
    """The end at which its player is."""
    return "server" if media_direction(flow) == "up" else "client"


def _ring(plan: Mapping[str, Any], rows: Any, flow: str | int, direction: str) -> int:
    names = [entry["name"] for entry in counted(plan)]
    code = names.index(flow) if isinstance(flow, str) else flow
    return sum(row["packets"] for row in rows if row["flow"] == code and row["dir"] == direction)


OTHER = 65535

HARM = {
    "checksum_errors": ("Udp.InCsumErrors", "Tcp.InCsumErrors", "Icmp.InCsumErrors"),
    "reassembly_failed": ("Ip.ReasmFails",),
}
"""A host's counters of packets that the path harmed: (counters of /proc/net/snmp). Not Tcp.InErrs: that
counts a second SYN-ACK too, which arrives where the first was lost and both ends repeated."""


REFUSED = (
    "TcpExt.PAWSEstab",
    "TcpExt.RcvPruned",
    "TcpExt.OfoPruned",
    "TcpExt.TCPRcvQDrop",
    "TcpExt.TCPOFODrop",
)
"""Sound segments of TCP that a host threw away, to have them sent again: too old by their timestamps
(RFC 7323 section 5.3), after reordering, or without room."""


def host(counters: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Returns the counts of the hosts at each end beside delivery, from the kernel's counters; as sim has
    them."""
    found = {}
    for name, ends in (("server", ("server", "cross")), ("player", ("client",))):
        values = [counters[end] for end in ends if end in counters]
        found[name] = {
            "reassembled": sum(one.get("Ip.ReasmOKs", 0) for one in values),
            **{what: sum(one.get(key, 0) for one in values for key in keys) for what, keys in HARM.items()},
        }
    return found


def ring_counts(plan: Mapping[str, Any], link: Mapping[str, Any]) -> list[str]:
    """Lists disagreements between the rings' counts and the account of the stages, a sentence each.

    The packets that entered the rings are those that entered the first stages. These and the ones that stages
    made were sent, unless they were dropped or are held.
    """
    faults = []
    names = [(one["name"], code) for code, one in enumerate(counted(plan))] + [("other", OTHER)]
    # Per flow and direction, the packets that stayed in some stage, dropped there or held at the end, less
    # the ones that it made.
    gone: dict[tuple[str, str], int] = {}
    for row in link["balance"]:
        key = (row["flow"], row["direction"])
        stayed = sum(row["dropped_packets"].values()) + row["held_packets"] - row["made_packets"]
        gone[key] = gone.get(key, 0) + stayed
    errors = link["send_errors"]
    for name, code in names:
        for direction in ("down", "up"):
            came = _ring(plan, link["entered"], code, direction)
            went = _ring(plan, link["left"], code, direction)
            missing = came - gone.get((name, direction), 0) - went
            if missing and not 0 <= missing <= errors:
                faults.append(
                    f"flow {name}, {direction}: {missing} packets entered the emulator and neither left it "
                    "nor were dropped or held by a stage"
                )
    return faults


def strangers(plan: Mapping[str, Any], link: Mapping[str, Any]) -> list[str]:
    """Lists packets of the path that have the addresses of no flow and no relay, a sentence for each
    direction.

    They take part of the link, and count for no flow: such as ICMP errors of an end to packets with a time to
    live that a program has set too low.
    """
    found = ((direction, _ring(plan, link["entered"], OTHER, direction)) for direction in ("down", "up"))
    return [
        f"{packets} packets with addresses of no flow entered the path, {direction}"
        for direction, packets in found
        if packets
    ]


def witnesses(plan: Mapping[str, Any], measured: Mapping[str, Any]) -> list[str]:
    """Disagreements between the taps at the ends and the emulator's own counts, a sentence each."""
    faults = []
    link, seen = measured["link"], measured["witnesses"]
    for end, witness in seen.items():
        if witness["ring_drops"]:
            faults.append(f"the witness at the {end} itself lost {witness['ring_drops']} packets")
    for flow in counted(plan):
        name = flow["name"]
        sender = "cross" if flow.get("entry") == "router" else "server"
        for end, direction in (("client", "down"), (sender, "up")):
            sent = _ring(plan, link["left"], name, direction)
            came = _seen(seen[end], name, "rx_packets")
            if came != sent:
                faults.append(
                    f"flow {name}: the {end}'s interface received {came} packets, the emulator says that it "
                    f"sent {sent}"
                )
        for end, direction in ((sender, "down"), ("client", "up")):
            took = _ring(plan, link["entered"], name, direction)
            went = _seen(seen[end], name, "tx_packets")
            # More left than was taken in: packets that are sent past the trial's end count for no flow.
            if went < took:
                faults.append(
                    f"flow {name}: the {end}'s interface sent {went} packets, the emulator says that "
                    f"{took} came"
                )
    return faults


def sides(plan: Mapping[str, Any], measured: Mapping[str, Any]) -> list[str]:
    """Lists disagreements between the received packets of the sides' own interfaces and the emulator's sent
    ones."""
    faults = []
    for name, side in measured.get("sides", {}).items():
        direction = "down" if side["end"] == "client" else "up"
        sent = _ring(plan, measured["link"]["left"], side["flow"], direction)
        if (came := side["received_packets"]) != sent:
            faults.append(
                f"flow {side['flow']}: the interface of {name} received {came} packets, the emulator says "
                f"that it sent {sent}"
            )
    for end, values in measured["counters"].items():
        if lost := values.get("sides.tx_dropped", 0):
            faults.append(f"{lost} packets were lost between the {end}'s interface and its sides")
    return faults


def veths(measured: Mapping[str, Any]) -> list[str]:
    """Lists disagreements between the ends' received packets and the emulator's sent ones."""
    faults = []
    left = measured["link"]["left"]
    for end, direction in (("client", "down"), ("server", "up")):
        sent = sum(row["packets"] for row in left if row["dir"] == direction)
        if end == "server" and "cross" in measured["counters"]:
            sent -= measured["counters"]["cross"].get("link.rx_packets", 0)
        came = measured["counters"][end].get("link.rx_packets", 0)
        if came != sent:
            faults.append(
                f"the {end}'s veth counts {came} packets received, the emulator says that it sent {sent}"
            )
    return faults


def _seen(witness: Mapping[str, Any], flow: str, key: str) -> int:
    return sum(int(row[key]) for row in witness["flows"] if row["name"] == flow)


def is_paced(flow: Mapping[str, Any]) -> bool:
    """Returns whether a flow sends at a constant rate, in any conditions."""
    return _paced(flow) is not None


def _paced(flow: Mapping[str, Any]) -> tuple[Pace, tuple[tuple[int, int], ...]] | None:
    """A flow's constant rate and its windows."""
    told = facts(flow["app"])
    return None if told is None or told.pace is None else (told.pace, told.windows)


def first_paced_s(flow: Mapping[str, Any]) -> float:
    """When the first packet of a flow is due, s: of one that is paced, in its first window."""
    paced = _paced(flow)
    first = paced[1][0][0] if paced is not None and paced[1] else 0
    return float(max(first, flow["start"])) / 1e9


def paced_packets_late(flow: Mapping[str, Any], first_s: float | None) -> float:
    """How many packets of a paced flow were due before its first one was sent."""
    paced = _paced(flow)
    if first_s is None or paced is None:
        return 0.0
    late_s = max(0.0, first_s - first_paced_s(flow))
    return late_s * paced[0].packets_per_s * paced[0].fragments


def paced_packets(flow: Mapping[str, Any], duration_s: float) -> float:
    """How many packets a paced flow sends within the trial: those of its ticks, but in pauses."""
    paced = _paced(flow)
    if paced is None:
        return 0.0
    pace, windows = paced
    end = stopped_at(flow, round(duration_s * 1e9))
    tick_ns = pace.burst * 1e9 / pace.packets_per_s
    ticks = 0
    for on, off in windows or ((flow["start"], end),):
        on, off = max(on, flow["start"]), min(off, end)
        edges = [on, *(min(max(at, on), off) for pause in pauses(flow, end) for at in pause), off]
        before = [math.ceil((at - on) / tick_ns - 1e-9) for at in edges]
        if on < off:
            ticks += sum(before[1::2]) - sum(before[0::2])
    return float(ticks * pace.burst * pace.fragments)


def acknowledged_bytes(measured: Mapping[str, Any], flow: str) -> int:
    """Returns all bytes that the flow's player has acknowledged, by the sender's kernel at the end."""
    return sum(int(one["acked_bytes"]) for one in measured["tcp_connections"] if one["flow"] == flow)


def players_ended_s(measured: Mapping[str, Any]) -> dict[str, float]:
    """When players ended that did so before the trial, s by flow: they heard no more."""
    return {
        one["flow"]: float(one["ended_s"])
        for one in measured["processes"]
        if one["side"] == "player" and one["is_main"] and one["ended_s"] is not None
    }


def stopped_s(measured: Mapping[str, Any]) -> dict[str, float]:
    """When the scenario stopped flows, s by flow: from then on a player may listen or not."""
    return {one["flow"]: float(one["at_s"]) for one in measured["actions"] if one["action"] == "stop"}


def listened_until_s(plan: Mapping[str, Any], measured: Mapping[str, Any]) -> dict[str, float]:
    """Until when players listened that need not have to the trial's end, s by flow: the scenario stopped
    them, or they left by themselves. A relay hears for each of its players, and so until the first left."""
    until = {
        name: float(one["left_s"]) for name, one in measured["collected"].items() if one["left_s"] is not None
    }
    for flow in plan["flows"]:
        if flow["name"] in until and (relay := flow.get("via")) is not None:
            until[relay] = min(until[flow["name"]], until.get(relay, math.inf))
    for name, at in stopped_s(measured).items():
        until[name] = min(at, until.get(name, math.inf))
    return until


def over_tcp(flow: Mapping[str, Any], measured: Mapping[str, Any]) -> bool:
    """Whether a flow's media runs over TCP, where the path's packets are not the application's."""
    if (told := facts(flow["app"])) is not None:
        return told.media_over == "tcp"
    return bool(measured["over_tcp"].get(flow["name"]))
