"""The validity verdict: whether a trial measured the scenario's question. It precedes any metric.

Every test has a name, the measured value and its bound; all are kept, passed or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamgauge.claims.dimension import plain
from streamgauge.emu import endings, expectation
from streamgauge.emu.agreement import FEWEST
from streamgauge.emu.path_pairs import counted, crosses, relay_of, senders
from streamgauge.systems.adapter import whose
from streamgauge.systems.machines import begins_ns
from streamgauge.systems.tcp import planned_tcp

SMALLEST_LATENESS_S, LATENESS_OF_RTT = 0.0005, 0.05
LATE_OVER_SERVICE = 0.001
CLAMP_HARMLESS_S = 50e-6
"""The error that departures themselves may have: no arrival read later than that, and none counts."""
START_S = 0.2
CLOCK_DRIFT_S = 0.001
STAMP_AGE_S = 0.001
CPU_WAIT = 0.10
"""Share of the trial that a flow's process may spend waiting for a processor."""
PLAYER_COUNT, PLAYER_COUNT_SLACK_PACKETS = 0.01, 5
PLAYER_BYTES, PLAYER_BYTES_SLACK = 0.01, 65_536
"""The data that may be in socket buffers, or on its way through them, when the trial ends."""
CBR_SENT, CBR_SLACK_PACKETS = 0.02, 2
ACTION_S = 0.2
STAMP_OFF_S = 0.0005
"""As the pre-flight's bound on a delay."""
ARRIVAL_S = 0.0001
"""From the emulator's send to the stamp at the end: tens of us."""


@dataclass
class ValidityVerdict:
    """Collects tests."""

    why: list[str] = field(default_factory=list)
    bounds: dict[str, Any] = field(default_factory=dict)
    measured: dict[str, Any] = field(default_factory=dict)

    def at_most(self, name: str, value: float, bound: float, what: str) -> None:
        """Holds `value` <= `bound`; `what` is a sentence with the places {value} and {bound}."""
        self.measured[name], self.bounds[name] = value, bound
        if not value <= bound:
            self.why.append(what.format(value=_plain(value), bound=_plain(bound)))

    def none_of(self, name: str, faults: Sequence[str]) -> None:
        """Holds that there are no `faults`, each a sentence."""
        self.measured[name], self.bounds[name] = list(faults), []
        self.why += faults


def _plain(value: float) -> str:
    return plain(value, 6)


def _ms(seconds: float) -> str:
    return f"{plain(seconds * 1e3, 3)} ms"


def _percent(share: float) -> str:
    return f"{plain(share * 100, 3)} %"


def verdict(plan: Mapping[str, Any], measured: Mapping[str, Any]) -> dict[str, Any]:
    """Returns ``{"valid", "why", "bounds", "measured"}`` from a plan and the measurements of `worker` and
    `taps`."""
    found = ValidityVerdict()
    link = measured["link"]
    _conservation(found, plan, link)
    found.none_of("strangers", expectation.strangers(plan, link))
    _own_losses(found, link)
    _lateness(found, plan, link)
    _clocks(found, link)
    _preflight(found, measured["preflight"])
    _replay(found, measured["replay"])
    _witnesses(found, plan, measured)
    _agreement(found, plan, measured["agreement"])
    _processes(found, plan, measured)
    _starts(found, plan, measured)
    _conditions(found, plan, measured)
    _players(found, plan, measured)
    found.measured |= {
        "cpu_pressure_s": measured["pressure_s"].get("some"),
        "tcp_sampling_cpu_s": sum(
            (seen.get("tcp") or {}).get("cpu_s", 0.0) for seen in measured["witnesses"].values()
        ),
        **_cost(link),
    }
    return {
        "valid": not found.why,
        "why": found.why,
        "bounds": found.bounds,
        "measured": found.measured,
    }


def link_verdict(plan: Mapping[str, Any], measured: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the `verdict` for a link around a user's own command: only the link is judged, not the command.

    ``measured`` has "link" (the emulator's statistics), "preflight" (None if it was not done),
    "received_packets" (by end, its interface's count from the start on) and "conditions".
    """
    found = ValidityVerdict()
    link = measured["link"]
    _conservation(found, plan, link)
    _own_losses(found, link)
    _lateness(found, plan, link)
    _clocks(found, link)
    if measured["preflight"] is not None:
        _preflight(found, measured["preflight"])
    ends = {end: {"link.rx_packets": count} for end, count in measured["received_packets"].items()}
    # Packets that crossed before the start were counted at the ends and not in the record; in an idle
    # namespace, none.
    early = link["before_start"]["packets"]
    found.none_of("veths", [] if early else expectation.veths({"link": link, "counters": ends}))
    found.none_of("conditions", _path_conditions(found, measured))
    found.measured |= {
        "packets_before_start": early,
        **_cost(link),
    }
    return {"valid": not found.why, "why": found.why, "bounds": found.bounds, "measured": found.measured}


def _cost(link: Mapping[str, Any]) -> dict[str, Any]:
    """Records the emulator's resources and their use. They have no bound, but they explain lateness."""
    cost = {
        "cpu_stolen_s": link.get("stolen_s"),
        "emulator_class": link.get("class"),
        "emulator_cpu_s": link.get("cpu_s"),
        "emulator_cpu_us_per_packet": link.get("cpu", {}).get("us_per_packet"),
        "emulator_preemptions": link.get("preemptions"),
    }
    if stalls := link.get("stalls"):
        watched = stalls["watched_ns"]
        cost["emulator_stall_max_s"] = stalls["max_ns"] / 1e9
        cost["emulator_stalled_share"] = stalls["total_ns"] / watched if watched else None
    for name, port in link.get("ports", {}).items():
        cost[f"late_packets.{name}"] = port.get("late")
    return cost


def _conservation(found: ValidityVerdict, plan: Mapping[str, Any], link: Mapping[str, Any]) -> None:
    """Tests in + made = out + dropped + held per stage and flow. Entries and exits are by the rings' own
    counts.

    The link compares the rows it wrote, stage by stage, with its own account of the packets that it gave to
    the path and took from it: a row that was never written shows there alone.
    """
    faults = [str(line) for line in link["conservation"]]
    for row in link["balance"]:
        stage, flow = row["stage"], row["flow"]
        for unit in ("packets", "bytes"):
            dropped = sum(row[f"dropped_{unit}"].values())
            came = row[f"in_{unit}"] + row[f"made_{unit}"]
            missing = came - row[f"out_{unit}"] - dropped - row[f"held_{unit}"]
            if missing:
                faults.append(f"stage {stage}, flow {flow}: {missing} {unit} unaccounted for")
    faults += expectation.ring_counts(plan, link)
    found.none_of("conservation", faults)


def _replay(found: ValidityVerdict, replay: Mapping[str, Any]) -> None:
    """Tests that the path is deterministic: the emulator's record must equal the result of a fresh path of
    the plan."""
    what = f"{{value}} of {replay['rows']} rows are not what the path does with these arrivals"
    found.at_most("replay", replay["different"], 0, f"{what} ({replay['first']})")


def _own_losses(found: ValidityVerdict, link: Mapping[str, Any]) -> None:
    for name, what in (
        ("ring_drops", "the emulator's rings lost {value} packets"),
        ("send_errors", "the emulator could not send {value} packets"),
        ("slab_drops", "the emulator had no room for {value} packets"),
        ("slab_left", "the emulator still had the bytes of {value} packets when all had gone"),
        ("truncated", "{value} packets were larger than a frame: offloads are on"),
        ("checksum_missing", "{value} packets had no checksum: offloads are on"),
    ):
        found.at_most(name, link[name], 0, what)


def _lateness(found: ValidityVerdict, plan: Mapping[str, Any], link: Mapping[str, Any]) -> None:
    late = link["lateness_ns"]
    bound = _lateness_bound(plan)
    for name in ("p50", "p999", "max"):
        found.measured[f"lateness_{name}_s"] = late[name] / 1e9
    found.at_most(
        "lateness_p99_s",
        late["p99"] / 1e9,
        bound,
        f"1 % of departures left {_ms(late['p99'] / 1e9)} late or more (bound {_ms(bound)})",
    )
    share = link["late_over_service"] / max(late["count"], 1)
    found.at_most(
        "late_over_service",
        share,
        LATE_OVER_SERVICE,
        f"{_percent(share)} of departures were late by more than the packet's own transmission time "
        f"(bound {_percent(LATE_OVER_SERVICE)})",
    )
    clamped = link["clamped"]
    found.measured["clamped_count"] = clamped["count"]
    # In a short trial one packet is more than the share, and a few us do no harm.
    longest_s = clamped["max_ns"] / 1e9
    clamped_share = clamped["count"] / max(late["count"], 1) if longest_s > CLAMP_HARMLESS_S else 0.0
    found.at_most(
        "clamped_share",
        clamped_share,
        LATE_OVER_SERVICE,
        f"{_percent(clamped_share)} of arrivals were read too late to leave on time "
        f"(bound {_percent(LATE_OVER_SERVICE)})",
    )
    found.at_most(
        "clamped_max_s",
        longest_s,
        bound,
        f"an arrival was read {_ms(longest_s)} too late to leave on time (bound {_ms(bound)})",
    )


def _lateness_bound(plan: Mapping[str, Any]) -> float:
    return max(SMALLEST_LATENESS_S, LATENESS_OF_RTT * expectation.base_rtt_s(plan))


def _clocks(found: ValidityVerdict, link: Mapping[str, Any]) -> None:
    clock = link["clock"]
    found.at_most(
        "clock_drift_s",
        abs(clock["drift_ns"]) / 1e9,
        CLOCK_DRIFT_S,
        "the clocks drifted by {value} s (bound {bound} s)",
    )
    found.at_most("clock_steps", clock["steps"], 0, "the machine's clock was set {value} times")
    age = clock.get("min_age_ns")
    if age is not None:
        found.measured["stamp_age_s"], found.bounds["stamp_age_s"] = age / 1e9, [0, STAMP_AGE_S]
        if not 0 <= age / 1e9 <= STAMP_AGE_S:
            found.why.append(
                f"kernel stamps and clock disagree: the freshest packet was {plain(age / 1e9, 6)} s old"
            )


def _preflight(found: ValidityVerdict, preflight: Mapping[str, Any]) -> None:
    found.none_of("preflight", [f"pre-flight test of the path: {error}" for error in preflight["errors"]])
    expected = preflight["expected"]
    for key, value in preflight.items():
        if key in expected and value is not None:
            found.measured[f"preflight_{key}"] = value
            found.bounds[f"preflight_{key}"] = expected[key]


def _witnesses(found: ValidityVerdict, plan: Mapping[str, Any], measured: Mapping[str, Any]) -> None:
    """Compares the kernel's own counts at the ends with the emulator's deliveries."""
    found.none_of("witness", expectation.witnesses(plan, measured))
    found.none_of("veths", [*expectation.veths(measured), *expectation.sides(plan, measured)])
    faults = []
    for end, values in measured["counters"].items():
        for name in ("Udp.RcvbufErrors", "Udp.SndbufErrors"):
            if values.get(name, 0):
                faults.append(f"{end}.{name}: {values[name]} packets lost in a host, not on the path")
        caused = measured["harmed"].get(end, {})
        for what, names in expectation.HARM.items():
            seen, by_path = sum(values.get(name, 0) for name in names), caused.get(what, 0)
            found.measured[f"{what}.{end}"], found.bounds[f"{what}.{end}"] = seen, by_path
            if seen > by_path:
                faults.append(
                    f"{end}: {seen} {what.replace('_', ' ')} ({', '.join(names)}), of which the path caused "
                    f"at most {by_path}: packets lost in a host"
                )
    found.none_of("host_losses", faults)


def _agreement(found: ValidityVerdict, plan: Mapping[str, Any], agreement: Mapping[str, Any]) -> None:
    """The record against the stamps at the ends."""
    for name, what in (
        ("arrivals", "packets reached the ends {value} (median) after they left by the record"),
        ("entries", "packets left the ends {value} (median) after they entered by the record"),
    ):
        late = agreement[name]
        if not late["packets"]:
            continue
        found.measured[f"{name}_p99_s"] = late["p99_s"]
        key = f"{name}_p50_s"
        found.measured[key], found.bounds[key] = late["p50_s"], [-STAMP_OFF_S, STAMP_OFF_S]
        if not abs(late["p50_s"]) <= STAMP_OFF_S:
            found.why.append(f"{what.format(value=_ms(late['p50_s']))} (bound {_ms(STAMP_OFF_S)})")
    if agreement["arrivals"]["packets"] >= FEWEST:
        p99_s, bound = agreement["arrivals"]["p99_s"], _lateness_bound(plan) + ARRIVAL_S
        found.at_most(
            "arrivals_p99_s",
            p99_s,
            bound,
            f"1 % of packets reached the ends {_ms(p99_s)} or more after they left by the record "
            f"(bound {_ms(bound)})",
        )


def _processes(found: ValidityVerdict, plan: Mapping[str, Any], measured: Mapping[str, Any]) -> None:
    found.none_of("deaths", endings.deaths(measured))
    relays = {relay["name"] for relay in plan.get("relays") or ()}
    faults = [
        f"{'relay' if name in relays else 'flow'} {name}: {fault}"
        for name, collected in measured["collected"].items()
        for fault in collected["faults"]
    ]
    found.none_of("adapters", faults)
    duration_s = measured["link"]["duration_s"]
    waits = [
        (one["waited_s"] / max(duration_s, 1e-9), whose(one["side"], one["name"], one["flow"]))
        for one in measured["processes"]
    ]
    share, who = max(waits, default=(0.0, "nobody"))
    found.at_most(
        "cpu_wait_share",
        share,
        CPU_WAIT,
        f"the processor was short: the {who} waited for it {_percent(share)} of the trial "
        f"(bound {_percent(CPU_WAIT)})",
    )


def _starts(found: ValidityVerdict, plan: Mapping[str, Any], measured: Mapping[str, Any]) -> None:
    """Tests the times at which flows began.

    A third-party player counts from its start: the time until its first packet is its own. A user's commands
    may send nothing at all, as may a flow that was not due before the trial's end. A flow with all packets
    ending at a relay has none on the path.
    """
    started = {one["flow"]: one["started_s"] for one in measured["processes"] if not one["early"]}
    duration_s = measured["link"]["duration_s"]
    faults, offsets = [], {}
    for flow in (flow for flow in plan["flows"] if crosses(plan, flow)):
        name, planned_s = flow["name"], flow["start"] / 1e9
        first = measured["first_packets_s"][name]
        third_party = isinstance(flow["app"], str)
        if is_paced := expectation.is_paced(flow):
            planned_s = expectation.first_paced_s(flow)
        planned_s = max(planned_s, begins_ns(flow) / 1e9)
        begun = started.get(name, first) if third_party else first
        if first is None:
            nothing_due = is_paced and expectation.paced_packets(flow, duration_s) < 1
            if planned_s < duration_s and not nothing_due and name not in measured["commands"]:
                faults.append(f"flow {name} never sent a packet")
        if begun is None or planned_s >= duration_s:
            continue
        offsets[name] = begun - planned_s
        if not abs(offsets[name]) <= START_S:
            faults.append(f"flow {name} started {offsets[name]:+.3f} s off its time (bound {START_S} s)")
    found.none_of("starts", faults)
    found.measured["start_offset_s"], found.bounds["start_offset_s"] = offsets, START_S
    found.measured["first_packet_s"] = measured["first_packets_s"]


def _conditions(found: ValidityVerdict, plan: Mapping[str, Any], measured: Mapping[str, Any]) -> None:
    """Tests that the scenario's actions took effect."""
    faults: list[str] = []
    for one in counted(plan):
        faults += _tcp_faults(plan, one, measured)
    late = [action for action in measured["actions"] if action["late_s"] > ACTION_S]
    faults += [f"flow {one['flow']}: {one['action']} came {one['late_s']:.3f} s late" for one in late]
    faults += _path_conditions(found, measured)
    for flow in plan["flows"]:
        if expectation.is_paced(flow):
            wanted = expectation.paced_packets(flow, measured["link"]["duration_s"])
            sent = expectation.entered(
                plan, measured["link"], flow["name"], expectation.media_direction(flow)
            )
            found.measured[f"cbr_packets.{flow['name']}"] = sent
            found.bounds[f"cbr_packets.{flow['name']}"] = wanted
            slack = CBR_SENT * wanted + CBR_SLACK_PACKETS
            # `starts` judges a late begin; the packets that it did not send until then are not missed twice.
            not_begun = expectation.paced_packets_late(flow, measured["first_packets_s"][flow["name"]])
            if not wanted - not_begun - slack <= sent <= wanted + slack:
                faults.append(f"flow {flow['name']} sent {sent} packets, not {wanted:.0f}")
    found.none_of("conditions", faults)


def _tcp_faults(
    plan: Mapping[str, Any], one: Mapping[str, Any], measured: Mapping[str, Any]
) -> Iterator[str]:
    """Yields the features of TCP that a flow's or a relay's connections used without the plan, and the plan's
    that they did not use."""
    name, tcp = one["name"], planned_tcp(one)
    who = f"relay {name}" if "at" in one else f"flow {name}"
    relay = relay_of(plan, one)
    # A server beside its relay has connections that are not of the path. No route sets their control: it is
    # the plan's where an ordinary program may choose it, else the kernel's.
    beside = relay is not None and relay["at"] == "server"
    said = None if beside else measured["collected"][name]["congestion_control"]
    open_now = set(measured["congestion_controls"].get(name, ()))
    used = open_now - {"ecn"} | ({said} if said else set())
    if tcp is None:
        if used:
            yield f"{who} used TCP ({', '.join(sorted(used))}), which its plan has none of"
        return
    if "ecn" in open_now and not tcp["ecn"]:
        yield f"{who} used ECN unasked"
    # Linux asks without it when it has to ask again (RFC 3168 section 6.1.1.1).
    excused = not tcp["ecn"] or name in measured["handshakes_repeated"]
    if open_now and "ecn" not in open_now and not excused:
        yield f"{who} asked for ECN, and did not get it"
    wanted = {planned["congestion_control"] for end in senders(plan, one) if (planned := planned_tcp(end))}
    if used - wanted:
        yield f"{who} used congestion control {', '.join(sorted(used))}, not {', '.join(sorted(wanted))}"


def _path_conditions(found: ValidityVerdict, measured: Mapping[str, Any]) -> list[str]:
    """Tests the path's own actions by the record: see `conditions`."""
    conditions = measured["conditions"]
    found.measured["path_changes"] = conditions["changes"]
    found.measured["conditions_judged"] = conditions["judged"]
    return list(conditions["faults"])


def _players(found: ValidityVerdict, plan: Mapping[str, Any], measured: Mapping[str, Any]) -> None:
    """Compares a player's own counter with the taps: packets where it counts packets, or all datagrams, if it
    counts those; bytes over TCP.

    Over TCP those that arrived in order, as where a player that may use either has read no datagram. It may
    or may not have counted the bytes that its kernel still held for it at the end. A player that ended
    earlier may have left any number behind. After its flow was stopped, or it left, it may or may not have
    received more. A relay at the client is the player of its own fetches. Where its kernel dropped segments
    to have them again, it received at least the acknowledged bytes.
    """
    ended, stopped = expectation.players_ended_s(measured), expectation.stopped_s(measured)
    until = expectation.listened_until_s(plan, measured)
    gone = {name for name, at in ended.items() if at < measured["link"]["duration_s"]} | stopped.keys()
    for user in plan["flows"]:
        if user["name"] in gone and (relay := user.get("via")) is not None:
            # A relay drops packets on their way to a client that has left.
            ended = ended | {relay: 0.0}
    for flow in (one for one in counted(plan) if crosses(plan, one)):
        name, host = flow["name"], measured["counters"][expectation.player_end(flow)]
        refused = any(host.get(counter, 0) for counter in expectation.REFUSED)
        collected, delivered = measured["collected"][name], measured["media_delivered"][name]
        heard = measured["media_listened_to"][name] if name in until else delivered
        packets, octets = collected["received_packets"], collected["received_bytes"]
        over_tcp = expectation.over_tcp(flow, measured) or (packets == 0 and delivered["packets"] > 0)
        who = f"relay {name}" if "at" in flow else f"flow {name}"
        if packets is not None and not over_tcp:
            # A player may count a packet that arrives twice once or twice.
            of = ("datagrams", "datagram_copies") if collected["counts_datagrams"] else ("packets", "copies")
            most, copies = (delivered[key] for key in of)
            bound = PLAYER_COUNT * most + PLAYER_COUNT_SLACK_PACKETS + copies
            found.at_most(
                f"player_packets_off.{name}",
                _outside(packets, min(heard[of[0]], most), most),
                bound,
                f"{who}: {collected['received_what']} are {{value}} off the {most} "
                f"{of[0]} that the path delivered (bound {{bound}})",
            )
        elif octets is not None:
            # Interleaved RTP: 12 bytes of RTP and 4 of framing are no RTP payload (RFC 2326 section 10.12).
            whole = octets + 16 * (packets or 0)
            most = delivered["bytes"]
            handed = min(most, expectation.acknowledged_bytes(measured, name)) if refused else most
            unread = collected["left_unread_bytes"] if name in until else measured["unread_bytes"][name]
            # If a program ended, or a flow was stopped, its unread bytes at that time are unknown.
            least = 0 if name in ended or name in stopped else min(handed, heard["bytes"]) - unread
            found.at_most(
                f"player_bytes_off.{name}",
                _outside(whole, least, most),
                PLAYER_BYTES * most + PLAYER_BYTES_SLACK,
                f"{who}: {collected['received_what']} are {{value}} B off the {most} B "
                f"that the path delivered{' in order' * over_tcp} (bound {{bound}} B)",
            )


def _outside(value: int, least: int, most: int) -> int:
    """How far `value` is outside `least` to `most`."""
    return max(least - value, value - most, 0)
