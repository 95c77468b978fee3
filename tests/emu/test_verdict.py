"""The verdict by itself: a sound trial passes, and each fault, put in one at a time, is named."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from streamgauge.emu import expectation
from streamgauge.emu.validity import verdict
from streamgauge.systems.machines import MACHINES

Trial = dict[str, Any]

TCP = MACHINES["bulk"].usual["tcp"]
PLAN: Trial = {
    "duration": 10_000_000_000,
    "path": {
        "down": [
            {
                "name": "bottleneck",
                "kind": {
                    "bottleneck": {"rate": {"steps": [[0, 10**6], [5 * 10**9, 5 * 10**5]]}, "queue": {}}
                },
            },
            {"name": "delay", "kind": {"delay": {"delay": 10_000_000}}},
        ],
        "up": [{"name": "delay", "kind": {"delay": {"delay": 10_000_000}}}],
    },
    "flows": [
        {
            "name": "video",
            "role": "subject",
            "start": 0,
            "actions": [],
            "app": "external",
            "tcp": {"congestion_control": "cubic", "ecn": False},
        },
        {
            "name": "cross",
            "role": "rival",
            "entry": "router",
            "start": 2_000_000_000,
            "actions": [],
            "app": {"cbr": {"packets_per_s": 10.0, "payload_bytes": 1000, "burst": 1, "windows": []}},
        },
    ],
}


KILLED = {
    "flow": "video",
    "side": "player",
    "name": "",
    "is_main": True,
    "essential": True,
    "how": "was killed by SIGKILL",
    "status": -9,
    "at_s": 4.0,
    "may_end": True,
}


def _row(stage: str, direction: str, flow: str, came: int, dropped: int = 0, held: int = 0) -> Trial:
    went = came - dropped - held
    causes = {"queue_full": dropped} if dropped else {}
    return {
        "stage": stage,
        "direction": direction,
        "flow": flow,
        "in_packets": came,
        "in_bytes": came * 1000,
        "made_packets": 0,
        "made_bytes": 0,
        "out_packets": went,
        "out_bytes": went * 1000,
        "dropped_packets": causes,
        "dropped_bytes": {cause: count * 1000 for cause, count in causes.items()},
        "held_packets": held,
        "held_bytes": held * 1000,
    }


def sound() -> Trial:
    """What a faultless trial measures: 500 packets of video of which 20 are dropped, 80 of cross traffic."""
    ports = {"ring_drops": 0, "flows": []}
    return {
        "link": {
            "duration_s": 10.0,
            "conservation": [],
            "balance": [
                _row("bottleneck", "down", "video", 500, dropped=20, held=3),
                _row("delay", "down", "video", 477, held=1),
                _row("delay", "up", "video", 40),
                _row("bottleneck", "down", "cross", 80),
                _row("delay", "down", "cross", 80),
            ],
            "entered": [
                {"flow": 0, "dir": "down", "packets": 500},
                {"flow": 0, "dir": "up", "packets": 40},
                {"flow": 1, "dir": "down", "packets": 80},
            ],
            "left": [
                {"flow": 0, "dir": "down", "packets": 476},
                {"flow": 0, "dir": "up", "packets": 40},
                {"flow": 1, "dir": "down", "packets": 80},
            ],
            **dict.fromkeys(
                ("ring_drops", "send_errors", "slab_drops", "slab_left", "truncated", "checksum_missing"), 0
            ),
            "lateness_ns": {"p50": 1000, "p99": 100_000, "p999": 900_000, "max": 2_000_000, "count": 600},
            "late_over_service": 0,
            "clamped": {"count": 0, "max_ns": 0},
            "clock": {"drift_ns": 100, "steps": 0, "min_age_ns": 2000},
        },
        "preflight": {"errors": [], "expected": {"rate_bps": 10**6}, "rate_bps": 1_000_010.0},
        "witnesses": {
            "server": {**ports, "flows": [{"name": "video", "rx_packets": 40, "tx_packets": 502}]},
            "client": {
                **ports,
                "flows": [
                    {"name": "video", "rx_packets": 476, "tx_packets": 40},
                    {"name": "cross", "rx_packets": 80, "tx_packets": 0},
                ],
            },
            "cross": {**ports, "flows": [{"name": "cross", "rx_packets": 0, "tx_packets": 80}]},
        },
        "harmed": {"client": {"checksum_errors": 5, "reassembly_failed": 2}},
        "counters": {
            "server": {"link.rx_packets": 40},
            "client": {"link.rx_packets": 556, "Udp.InCsumErrors": 5, "Ip.ReasmFails": 2},
            "cross": {},
        },
        "pressure_s": {"some": 0.1},
        "endings": [],
        "actions": [],
        "processes": [
            _process("video", "player", started_s=0.01, waited_s=0.1),
            _process("cross", "server", started_s=2.01, waited_s=0.0),
        ],
        "collected": {
            "video": _collected(packets=475, octets=470_000),
            "cross": _collected(packets=80, octets=80_000),
        },
        "congestion_controls": {"video": ["cubic"]},
        "over_tcp": {"video": False, "cross": False},
        "media_delivered": {
            "video": delivered(476, 470_000),
            "cross": delivered(80, 80_000),
        },
        "commands": [],
        "handshakes_repeated": [],
        "media_listened_to": {},
        "tcp_connections": [],
        "unread_bytes": {"video": 0, "cross": 0},
        "replay": {"packets": 620, "rows": 1174, "different": 0, "first": None},
        "first_packets_s": {"video": 0.3, "cross": 2.02},
        "conditions": {"faults": [], "changes": 1, "judged": {"path.down.bottleneck": 2}},
        "agreement": {
            "arrivals": {"p50_s": 9e-6, "p99_s": 1e-4, "packets": 596},
            "entries": {"p50_s": -2e-6, "p99_s": -1e-6, "packets": 620},
        },
    }


def delivered(packets: int, octets: int) -> Trial:
    """What the path handed a player, all of it media and once."""
    return {"packets": packets, "bytes": octets, "copies": 0, "datagrams": packets, "datagram_copies": 0}


def _process(flow: str, side: str, *, started_s: float, waited_s: float) -> Trial:
    times = {"started_s": started_s, "ended_s": None, "waited_s": waited_s}
    return {"flow": flow, "side": side, "name": "", "is_main": True, "early": False, **times}


def _collected(*, packets: int, octets: int) -> Trial:
    return {
        "congestion_control": None,
        "received_packets": packets,
        "received_bytes": octets,
        "received_what": "packets that the player reports",
        "counts_datagrams": False,
        "left_s": None,
        "left_unread_bytes": 0,
        "faults": [],
    }


def test_a_sound_trial_is_valid() -> None:
    found = verdict(PLAN, sound())
    assert found["valid"], found["why"]
    # A player's own start-up, 0.3 s to its first packet, is not held against it.
    assert found["measured"]["start_offset_s"]["video"] == pytest.approx(0.01)
    assert set(found["bounds"]) <= set(found["measured"])


def test_a_pause_of_a_constant_bit_rate_holds_its_ticks() -> None:
    """5 ticks a second of 4 packets from 2 s on, held from 4.05 to 6.01 s, stopped at 8.1 s."""
    second = 10**9
    cbr = {"packets_per_s": 20.0, "payload_bytes": 1000, "burst": 4, "windows": []}
    actions = [[4.05 * second, "pause"], [6.01 * second, "resume"], [8.1 * second, "stop"]]
    flow = {"start": 2 * second, "actions": actions, "app": {"cbr": cbr}}
    assert expectation.paced_packets(flow, 10.0) == 4 * (11 + 10)
    # Held for good; and within windows of its own.
    assert expectation.paced_packets(flow | {"actions": actions[:1]}, 10.0) == 4 * 11
    cbr["windows"] = [[0, 3 * second], [5 * second, 7 * second], [9 * second, 10 * second]]
    assert expectation.paced_packets(flow, 10.0) == 4 * (5 + 4)


def test_what_the_emulator_used_is_shown_without_a_bound() -> None:
    trial = sound()
    trial["link"] |= {
        "cpu": {"us_per_packet": 4.5},
        "stalls": {"count": 2, "total_ns": 1_000_000, "max_ns": 800_000, "watched_ns": 500_000_000},
        "preemptions": 3,
        "ports": {"server": {"late": 0}, "client": {"late": 7}},
    }
    found = verdict(PLAN, trial)
    assert found["valid"], found["why"]
    measured = found["measured"]
    assert measured["emulator_cpu_us_per_packet"] == 4.5
    assert measured["emulator_stalled_share"] == pytest.approx(0.002)
    assert measured["emulator_stall_max_s"] == pytest.approx(0.0008)
    assert (measured["emulator_preemptions"], measured["late_packets.client"]) == (3, 7)
    # Where nothing was spun away there is nothing to say of stalls.
    trial["link"]["stalls"]["watched_ns"] = 0
    assert verdict(PLAN, trial)["measured"]["emulator_stalled_share"] is None


def _set(*path: str | int, to: Any) -> Callable[[Trial], None]:
    def change(trial: Trial) -> None:
        place: Any = trial
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to

    return change


FAULTS: dict[str, tuple[Callable[[Trial], None], str]] = {
    "a row is missing": (_set("link", "balance", 0, "out_packets", to=476), "1 packets unaccounted for"),
    "a row was never written": (_set("link", "conservation", to=["one row short"]), "one row short"),
    "a packet never left": (_set("link", "left", 0, "packets", to=475), "neither left it"),
    "a ring overflowed": (_set("link", "ring_drops", to=1), "rings lost 1 packets"),
    "a send failed": (_set("link", "send_errors", to=2), "could not send 2 packets"),
    "offloads": (_set("link", "truncated", to=1), "offloads are on"),
    "late": (
        _set("link", "lateness_ns", "p99", to=1_100_000),
        "1 % of departures left 1.1 ms late or more (bound 1 ms)",
    ),
    "late over service": (_set("link", "late_over_service", to=1), "own transmission time"),
    "clamped": (_set("link", "clamped", to={"count": 5, "max_ns": 60_000}), "read too late"),
    "clock skewed": (_set("link", "clock", "min_age_ns", to=-5_000_000), "clock disagree"),
    "clock set": (_set("link", "clock", "steps", to=1), "set 1 times"),
    "clock drift": (_set("link", "clock", "drift_ns", to=2_000_000), "drifted"),
    "pre-flight": (
        _set("preflight", "errors", to=["rate is half"]),
        "pre-flight test of the path: rate is half",
    ),
    "witness at the player": (
        _set("witnesses", "client", "flows", 0, "rx_packets", to=475),
        "client's interface",
    ),
    "witness at the server": (
        _set("witnesses", "server", "flows", 0, "tx_packets", to=499),
        "server's interface",
    ),
    "witness lost": (_set("witnesses", "client", "ring_drops", to=1), "itself lost 1"),
    "veth": (_set("counters", "client", "link.rx_packets", to=555), "veth counts 555"),
    "socket buffer": (_set("counters", "client", "Udp.RcvbufErrors", to=3), "lost in a host"),
    "checksums beyond the path's": (
        _set("counters", "client", "Udp.InCsumErrors", to=6),
        "client: 6 checksum errors (Udp.InCsumErrors, Tcp.InCsumErrors, Icmp.InCsumErrors), of which the "
        "path caused at most 5",
    ),
    "reassembly without fragments": (_set("counters", "server", "Ip.ReasmFails", to=1), "caused at most 0"),
    "player killed": (
        _set("endings", to=[KILLED]),
        "player of flow video was killed by SIGKILL, 4.0 s",
    ),
    "adapter": (_set("collected", "video", "faults", to=["no log"]), "flow video: no log"),
    "starved": (_set("processes", 0, "waited_s", to=1.5), "processor was short: the player of flow video"),
    "never sent": (_set("first_packets_s", "cross", to=None), "cross never sent"),
    "late start": (_set("first_packets_s", "cross", to=2.3), "started +0.300 s off"),
    "late player": (_set("processes", 0, "started_s", to=0.25), "flow video started +0.250 s off"),
    "other control": (
        _set("congestion_controls", "video", to=["bbr"]),
        "used congestion control bbr, not cubic",
    ),
    "no change": (_set("conditions", "faults", to=["path.down.loss: off"]), "path.down.loss: off"),
    "late action": (
        _set("actions", to=[{"flow": "video", "action": "pause", "at_s": 5.5, "late_s": 0.5}]),
        "pause came 0.500 s late",
    ),
    "sent later than said": (_set("agreement", "arrivals", "p50_s", to=1e-3), "reached the ends 1 ms"),
    "some sent later": (
        _set("agreement", "arrivals", "p99_s", to=2e-3),
        "reached the ends 2 ms or more after they left",
    ),
    "stamped too late": (_set("agreement", "entries", "p50_s", to=-1e-3), "left the ends -1 ms"),
    "other queue": (
        _set("replay", to={"rows": 1174, "different": 7, "first": "packet 3 at path.down.bottleneck"}),
        "7 of 1174 rows are not what the path does with these arrivals (packet 3 at path.down.bottleneck)",
    ),
    "counter off": (_set("collected", "video", "received_packets", to=440), "36 off the 476"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_named(fault: str) -> None:
    change, words = FAULTS[fault]
    trial = copy.deepcopy(sound())
    change(trial)
    found = verdict(PLAN, trial)
    assert not found["valid"]
    assert any(words in why for why in found["why"]), found["why"]


def test_arrivals_read_microseconds_late_are_counted_and_kept() -> None:
    trial = sound()
    trial["link"]["clamped"] = {"count": 5, "max_ns": 20_000}
    found = verdict(PLAN, trial)
    assert found["valid"] and found["measured"]["clamped_count"] == 5


def test_cross_traffic_that_is_not_as_asked() -> None:
    plan = copy.deepcopy(PLAN)
    plan["flows"][1]["app"]["cbr"]["packets_per_s"] = 20.0
    found = verdict(plan, sound())
    assert found["why"] == ["flow cross sent 80 packets, not 160"]


def test_what_a_late_start_costs_is_not_missed_twice() -> None:
    plan, trial = copy.deepcopy(PLAN), sound()
    plan["flows"][1]["app"]["cbr"] |= {"packets_per_s": 100.0, "windows": [[2 * 10**9, 2_800_000_000]]}
    # 80 packets were due, 7 of them before it had begun.
    trial["first_packets_s"]["cross"] = 2.07
    assert verdict(plan, _sent(trial, 73))["valid"]
    assert verdict(plan, _sent(trial, 68))["why"] == ["flow cross sent 68 packets, not 80"]
    assert verdict(plan, _sent(trial, 85))["why"] == ["flow cross sent 85 packets, not 80"]
    trial["first_packets_s"]["cross"] = 2.0
    assert verdict(plan, _sent(trial, 73))["why"] == ["flow cross sent 73 packets, not 80"]


def _sent(trial: Trial, packets: int) -> Trial:
    """With so many packets of cross traffic, by every count."""
    trial = copy.deepcopy(trial)
    link, seen = trial["link"], trial["witnesses"]
    link["balance"][3:] = [_row(stage, "down", "cross", packets) for stage in ("bottleneck", "delay")]
    link["entered"][2]["packets"] = link["left"][2]["packets"] = packets
    seen["client"]["flows"][1]["rx_packets"] = seen["cross"]["flows"][0]["tx_packets"] = packets
    trial["counters"]["client"]["link.rx_packets"] = 476 + packets
    trial["collected"]["cross"] |= {"received_packets": packets, "received_bytes": packets * 1000}
    trial["media_delivered"]["cross"] |= {"packets": packets, "bytes": packets * 1000}
    return trial


def test_packets_with_addresses_of_no_flow() -> None:
    trial = sound()
    for rows in (trial["link"]["entered"], trial["link"]["left"]):
        rows += [{"flow": 65535, "dir": "down", "packets": 7}]
    trial["counters"]["client"]["link.rx_packets"] += 7
    assert verdict(PLAN, trial)["why"] == ["7 packets with addresses of no flow entered the path, down"]


def test_who_may_be_silent() -> None:
    """Somebody's commands, and who was not due; everybody else is missed."""
    trial = sound()
    trial["first_packets_s"]["video"] = None
    assert "flow video never sent a packet" in verdict(PLAN, trial)["why"]
    trial["commands"] = ["video"]
    assert verdict(PLAN, trial)["valid"]
    # Its process is held to its time all the same.
    trial["processes"][0]["started_s"] = 0.3
    assert "flow video started +0.300 s off" in verdict(PLAN, trial)["why"][0]

    late = copy.deepcopy(PLAN)
    late["flows"][1]["start"] = 10_000_000_000
    trial = sound()
    trial["first_packets_s"]["cross"] = None
    trial["link"]["entered"][2]["packets"] = 0
    assert "flow cross never sent a packet" not in verdict(late, trial)["why"]
    never = copy.deepcopy(PLAN)
    never["flows"][1]["app"]["cbr"]["windows"] = [[20_000_000_000, 30_000_000_000]]
    assert "flow cross never sent a packet" not in verdict(never, trial)["why"]


def test_a_flow_whose_arrivals_are_left_out_may_be_silent() -> None:
    arrivals = [{"at": 3_000_000_000, "bytes": 5000}, {"at": 4_000_000_000, "bytes": 5000}]
    plan = copy.deepcopy(PLAN)
    plan["flows"][1] |= {"app": {"bulk": {"tcp": TCP, "bytes": None, "arrivals": arrivals}}}
    trial = sound()
    trial["first_packets_s"]["cross"] = None
    assert "flow cross never sent a packet" in verdict(plan, trial)["why"]
    plan["flows"][1]["actions"] = [[2_500_000_000, "pause"]]
    assert "flow cross never sent a packet" not in verdict(plan, trial)["why"]
    plan["flows"][1]["actions"].append([3_500_000_000, "resume"])
    assert "flow cross never sent a packet" in verdict(plan, trial)["why"]
    trial["first_packets_s"]["cross"] = 4.001
    assert verdict(plan, trial)["measured"]["start_offset_s"]["cross"] == pytest.approx(0.001)


def test_ecn_that_was_asked_for() -> None:
    plan, trial = copy.deepcopy(PLAN), sound()
    plan["flows"][0]["tcp"]["ecn"] = True
    assert verdict(plan, trial)["why"] == ["flow video asked for ECN, and did not get it"]
    # Who has to ask again asks without.
    trial["handshakes_repeated"] = ["video"]
    assert verdict(plan, trial)["valid"]
    trial["congestion_controls"]["video"] = ["cubic", "ecn"]
    assert verdict(plan, trial)["valid"]
    assert verdict(PLAN, trial)["why"] == ["flow video used ECN unasked"]


def test_tcp_of_a_flow_that_has_none() -> None:
    trial = sound()
    trial["congestion_controls"]["cross"] = ["cubic"]
    assert verdict(PLAN, trial)["why"] == ["flow cross used TCP (cubic), which its plan has none of"]


def test_over_tcp_bytes_are_compared() -> None:
    trial = sound()
    trial["over_tcp"]["video"] = True
    # 16 bytes of RTP and framing belong to each packet and are no RTP payload.
    trial["collected"]["video"] |= {"received_packets": 400, "received_bytes": 470_000 - 400 * 16}
    assert verdict(PLAN, trial)["valid"]
    trial["collected"]["video"]["received_bytes"] -= 80_000
    assert "B off the 470000 B that the path delivered in order" in verdict(PLAN, trial)["why"][0]


def _over_tcp(read: int) -> Trial:
    """A trial in which the video's player read so many bytes of the 470,000 that arrived in order."""
    trial = sound()
    trial["over_tcp"]["video"] = True
    trial["collected"]["video"] |= {"received_packets": None, "received_bytes": read}
    return trial


def test_what_a_player_has_not_read_yet_is_the_kernels_to_tell() -> None:
    trial = _over_tcp(270_000)
    assert not verdict(PLAN, trial)["valid"]
    trial["unread_bytes"]["video"] = 200_000
    assert verdict(PLAN, trial)["valid"]
    # Read between the last look and the end.
    trial["collected"]["video"]["received_bytes"] = 470_000
    assert verdict(PLAN, trial)["valid"]
    trial["collected"]["video"]["received_bytes"] = 550_000
    assert not verdict(PLAN, trial)["valid"]


def test_what_the_players_kernel_threw_away_it_was_not_handed() -> None:
    trial = _over_tcp(270_000)
    trial["counters"]["client"]["TcpExt.PAWSEstab"] = 1
    trial["tcp_connections"] = [
        {"flow": "video", "acked_bytes": 270_000},
        {"flow": "cross", "acked_bytes": 9},
    ]
    assert verdict(PLAN, trial)["valid"]
    trial["tcp_connections"][0]["acked_bytes"] = 400_000
    assert not verdict(PLAN, trial)["valid"], "what it acknowledged it was handed"


STOP = {"flow": "video", "action": "stop", "at_s": 4.0, "late_s": 0.0}


def test_a_player_that_stops_early_may_leave_bytes_behind() -> None:
    trial = _over_tcp(100_000)
    trial["processes"][0]["ended_s"] = 4.0
    assert verdict(PLAN, trial)["valid"]
    # But it cannot have had more than came.
    trial["collected"]["video"]["received_bytes"] = 550_000
    assert not verdict(PLAN, trial)["valid"]
    stopped = _over_tcp(100_000)
    assert not verdict(PLAN, stopped)["valid"], "a stop that never came excuses nothing"
    stopped["actions"] = [STOP]
    stopped["media_listened_to"] = stopped["media_delivered"]
    assert verdict(PLAN, stopped)["valid"]


def test_what_comes_after_a_stop_may_be_heard_or_not() -> None:
    trial = sound()
    trial["actions"] = [STOP]
    trial["media_listened_to"]["video"] = delivered(400, 0)
    for counted, valid in ((476, True), (440, True), (396, True), (380, False), (490, False)):
        trial["collected"]["video"]["received_packets"] = counted
        assert verdict(PLAN, trial)["valid"] == valid, counted


def test_who_counts_all_datagrams_is_held_against_all() -> None:
    trial = sound()
    # 20 that are no media: an end of stream ten times over, say.
    trial["media_delivered"]["video"] |= {"datagrams": 496}
    for all_of_them, counted, valid in ((False, 496, False), (True, 496, True), (True, 476, False)):
        trial["collected"]["video"] |= {"counts_datagrams": all_of_them, "received_packets": counted}
        assert verdict(PLAN, trial)["valid"] == valid, (all_of_them, counted)
    trial["media_delivered"]["video"] |= {"datagram_copies": 20}
    assert verdict(PLAN, trial)["valid"], "of what came twice it may count one"


def test_what_comes_after_our_player_left_may_be_heard_or_not() -> None:
    trial = sound()
    trial["media_listened_to"]["video"] = delivered(400, 0)
    trial["collected"]["video"]["received_packets"] = 400
    assert not verdict(PLAN, trial)["valid"], "it stayed"
    trial["collected"]["video"]["left_s"] = 4.0
    # Of what came before it left it has lost at most the bound's 9; it cannot have had more than came.
    for counted, valid in ((476, True), (440, True), (396, True), (380, False), (490, False)):
        trial["collected"]["video"]["received_packets"] = counted
        assert verdict(PLAN, trial)["valid"] == valid, counted


def test_over_tcp_what_came_before_our_player_left_it_read_or_its_kernel_held() -> None:
    trial = _over_tcp(100_000)
    trial["media_listened_to"]["video"] = delivered(0, 300_000)
    assert not verdict(PLAN, trial)["valid"], "it stayed"
    trial["collected"]["video"]["left_s"] = 4.0
    found = verdict(PLAN, trial)
    assert found["measured"]["player_bytes_off.video"] == 200_000 and not found["valid"]
    trial["collected"]["video"]["left_unread_bytes"] = 200_000
    assert verdict(PLAN, trial)["valid"]
    trial["collected"]["video"] |= {"received_bytes": 300_000, "left_unread_bytes": 0}
    assert verdict(PLAN, trial)["valid"]
    trial["collected"]["video"]["received_bytes"] = 550_000
    assert not verdict(PLAN, trial)["valid"], "more than came"


def test_a_relay_listens_until_the_first_of_its_players_leaves() -> None:
    left = {"a": 4.0, "b": 3.0, "c": None, "cache": None, "other": None}
    measured = {
        "collected": {name: {"left_s": at} for name, at in left.items()},
        "actions": [{"flow": "a", "action": "stop", "at_s": 2.0}],
    }
    flows = [{"name": "a"}, {"name": "b", "via": "cache"}, {"name": "c", "via": "other"}]
    until = expectation.listened_until_s({"flows": flows}, measured)
    assert until == {"a": 2.0, "b": 3.0, "cache": 3.0}
