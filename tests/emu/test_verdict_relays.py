"""The verdict on trials with a relay: what crosses is its own, what does not is no fault, and its death."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from streamgauge.emu.path_pairs import codes, counted, crosses, path_pairs
from streamgauge.emu.validity import verdict
from test_verdict import PLAN, delivered, sound

Trial = dict[str, Any]
RENO = {"congestion_control": "reno", "ecn": False}


def with_relay(at: str) -> Trial:
    """The plan with its video behind a relay, beside its cross traffic."""
    plan = copy.deepcopy(PLAN)
    plan["flows"][0]["via"] = "home"
    return plan | {"relays": [{"name": "home", "at": at, "app": {"http-cache": {"tcp": RENO}}}]}


def behind() -> Trial:
    """What a faultless trial measures of a relay at the client, where the video's packets are the relay's."""
    trial = sound()
    link = trial["link"]
    for row in link["balance"]:
        row["flow"] = row["flow"].replace("video", "home")
    for row in [*link["entered"], *link["left"]]:
        row["flow"] = {0: 2, 1: 1}[row["flow"]]
    for seen in trial["witnesses"].values():
        for row in seen["flows"]:
            row["name"] = row["name"].replace("video", "home")
    for key in ("media_delivered", "unread_bytes", "congestion_controls"):
        trial[key]["home"] = trial[key].pop("video")
    trial["media_delivered"]["video"] = delivered(0, 0)
    trial["unread_bytes"]["video"] = 0
    # Our own player, who counts what it read of the relay.
    trial["collected"]["home"] = trial["collected"]["video"] | {
        "received_packets": None,
        "received_bytes": 470_000,
    }
    trial["collected"]["video"] |= {"received_packets": 0, "received_bytes": 900_000}
    trial["over_tcp"] = {"video": True, "home": True, "cross": False}
    trial["first_packets_s"] |= {"video": None, "home": 0.3}
    return trial


def test_who_crosses_the_path() -> None:
    client, server = with_relay("client"), with_relay("server")
    assert [one["name"] for one in counted(client)] == ["video", "cross", "home"]
    assert [crosses(client, one) for one in counted(client)] == [False, True, True]
    assert [crosses(server, one) for one in counted(server)] == [True, True, False]
    assert (codes(client), codes(server)) == ([2, 1], [0, 1])


@pytest.mark.parametrize("at", ["client", "server"])
def test_addresses_are_of_those_who_cross(at: str) -> None:
    plan = with_relay(at) | {"scenario": "x", "seed": 1, "path": {"down": [], "up": []}}
    plan["flows"] = [flow | {"app": "external"} for flow in plan["flows"]]
    found = path_pairs(plan)
    assert [one.name for one in found] == [counted(plan)[code]["name"] for code in codes(plan)]
    video = {"client": ("10.1.0.1", "10.2.2.1"), "server": ("10.1.2.1", "10.2.0.1")}[at]
    assert (found[0].server_ip, found[0].player_ip) == video
    assert (found[1].server_ip, found[1].player_ip) == ("10.3.1.1", "10.2.1.1")


def test_a_sound_trial_behind_a_relay_is_valid() -> None:
    found = verdict(with_relay("client"), behind())
    assert found["valid"], found["why"]
    assert "player_bytes_off.home" in found["measured"]
    assert "player_bytes_off.video" not in found["measured"]


DEATH = {
    "flow": "home",
    "side": "relay",
    "name": "",
    "is_main": True,
    "essential": True,
    "how": "was killed by SIGKILL",
    "status": -9,
    "at_s": 4.0,
    "may_end": True,
}
FAULTS = {
    "dead": (
        lambda trial: trial["endings"].append(DEATH),
        "the relay home was killed by SIGKILL, 4.0 s into the trial; see logs/home-relay-*",
    ),
    "unread": (
        lambda trial: trial["collected"]["home"].update(received_bytes=300_000),
        "relay home: packets that the player reports are 170000 B off the 470000 B that the path delivered "
        "in order (bound 70236 B)",
    ),
    "no last word": (
        lambda trial: trial["collected"]["home"].update(faults=["it ended without saying what it had done"]),
        "relay home: it ended without saying what it had done",
    ),
    "another control": (
        lambda trial: trial["congestion_controls"].update(home=["bbr"]),
        "relay home used congestion control bbr, not cubic",
    ),
    "a packet never left": (
        lambda trial: trial["link"]["left"][0].update(packets=475),
        "flow home, down: 1 packets entered the emulator and neither left it nor were dropped or held by a "
        "stage",
    ),
    "starved": (
        lambda trial: trial["processes"].append(
            {"flow": "home", "side": "relay", "name": "", "is_main": True, "early": True}
            | {"started_s": -1.0, "ended_s": None, "waited_s": 2.0}
        ),
        "the processor was short: the relay home waited for it 20 % of the trial (bound 10 %)",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_of_a_relay_is_named(name: str) -> None:
    change, said = FAULTS[name]
    trial = behind()
    change(trial)
    found = verdict(with_relay("client"), trial)
    assert not found["valid"]
    assert said in found["why"], found["why"]


def test_of_a_relay_whose_player_has_gone_less_is_expected() -> None:
    trial = behind()
    trial["collected"]["home"]["received_bytes"] = 300_000
    trial["processes"][0]["ended_s"] = 5.0
    assert verdict(with_relay("client"), trial)["valid"]
