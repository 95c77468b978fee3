"""Lowering to a trial's plan: integers, defaults filled in, draws that are named and stable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge import _native
from streamgauge.errors import ScenarioError
from streamgauge.media import ClipEncoding, frame_sizes, key_frames
from streamgauge.scenario import Scenario, from_text, load, lower
from streamgauge.scenario.lower import draw
from streamgauge.systems.adapters import ADAPTERS

S = 10**9


def plan(text: str, *settings: str, seed: int = 1, mode: Any = "sim") -> dict[str, Any]:
    (scenario,) = from_text(text, settings=settings)
    return lower(scenario, mode, seed)


def test_the_whole_plan_of_a_small_scenario(base: str) -> None:
    made = plan(base)
    start = made["flows"][0]["start"]
    assert 0 <= start <= 20_000_000
    probe = made["flows"][1]["start"]
    assert start + S <= probe <= start + S + 20_000_000
    assert made == {
        "scenario": "test/base",
        "seed": 1,
        "duration": 10 * S,
        "limits": {"events": 10**9, "memory_bytes": 8 * 10**9},
        "path": {
            "down": [
                {
                    "name": "bottleneck",
                    "kind": {
                        "bottleneck": {
                            "rate": {"constant": 1_000_000},
                            "queue": {"droptail": {"packets": 100}},
                            "layer": "ethernet",
                        }
                    },
                },
                {"name": "delay", "kind": {"delay": {"delay": 10_000_000, "steps": []}}},
            ],
            "up": [{"name": "delay", "kind": {"delay": {"delay": 10_000_000, "steps": []}}}],
        },
        "flows": [
            {
                "name": "ftp",
                "role": "subject",
                "entry": "server",
                "start": start,
                "actions": [],
                "app": {
                    "bulk": {
                        "tcp": {
                            "congestion_control": "reno",
                            "receive_window": 16_384,
                            "send_buffer": 4 * 2**20,
                            "mss": 1448,
                            "initial_window": 10,
                            "delayed_ack": 40_000_000,
                            "hystart": "linux",
                            "fixed_window": None,
                            "ecn": False,
                            "l4s": False,
                            "without": [],
                        },
                        "bytes": None,
                        "control_connection": False,
                    }
                },
            },
            {
                "name": "probe",
                "role": "rival",
                "entry": "server",
                "start": probe,
                "actions": [[8 * S, "stop"]],
                "app": {"ping": {"interval": S, "payload_bytes": 56}},
            },
        ],
        "host_jitter": 100_000,
        "keep": "packets",
        "tcp_sample": 100_000_000,
    }


LIMITS = [
    ("droptail 10 kB", {"bytes": 10_000}),
    ("droptail 7 packets", {"packets": 7}),
    ("droptail 300 ms", {"bytes": 37_500}),
    # 1 Mbit/s times 20 ms is 2500 B.
    ("droptail 2 BDP", {"bytes": 5_000}),
    ("droptail 1.5 BDP", {"bytes": 3_750}),
]


@pytest.mark.parametrize(("queue", "limit"), LIMITS)
def test_queue_limits(base: str, queue: str, limit: dict[str, int]) -> None:
    made = plan(base, f"path.down.queue={queue}")
    assert made["path"]["down"][0]["kind"]["bottleneck"]["queue"] == {"droptail": limit}


def test_a_limit_in_time_follows_a_rate_that_changes(base: str) -> None:
    steps = "path.down.rate={steps: [{at: 0 s, rate: 1 Mbit/s}, {at: 2 s, rate: 500 kbit/s}]}"
    made = plan(base, steps, "path.down.queue=droptail 300 ms")
    kind = made["path"]["down"][0]["kind"]["bottleneck"]
    assert kind["queue"] == {"droptail": {"time": 300_000_000}}
    assert kind["rate"] == {"steps": [[0, 1_000_000], [2 * S, 500_000]]}


def test_a_plain_wire(base: str) -> None:
    made = plan(base.replace("up: {delay: 10 ms}", "up: {}"))
    assert made["path"]["up"] == [{"name": "wire", "kind": {"delay": {"delay": 0, "steps": []}}}]


def test_loss_comes_before_the_bottleneck(base: str) -> None:
    made = plan(
        base,
        "path.down.loss={gilbert: {good: 11.63 packets, bad: 1.78 packets}, switch: [{at: 3 s, to: off}]}",
    )
    assert [stage["name"] for stage in made["path"]["down"]] == ["loss", "bottleneck", "delay"]
    assert made["path"]["down"][0]["kind"]["loss"] == {
        "model": {"gilbert": {"good_packets": 11.63, "bad_packets": 1.78}},
        "switches": [[3 * S, False]],
    }


@pytest.mark.parametrize("system", ["rtp", "darwin"])
@pytest.mark.parametrize("more", [{}, {"rate_control": "variable", "codec": "mpeg4"}])
def test_a_clip_has_its_key_frames(base: str, system: str, more: dict[str, Any]) -> None:
    said = ", ".join(f"{key}: {value}" for key, value in more.items())
    clip = f"{{source: carphone, rate: 242 kbit/s, {said}}}"
    made = plan(base, f"flows.probe={{role: subject, system: {system}, clip: {clip}}}")
    played = made["flows"][1]["app"][system]["clip"]
    asked = ClipEncoding(source="carphone", bit_rate_bps=242_000, duration_s=10, **more)
    assert played["key_frames"] == key_frames(asked)
    assert played["frame_bytes"] == frame_sizes(asked)
    assert len(played["key_frames"]) >= 5


def test_relative_times_move_with_the_drawn_start(base: str) -> None:
    made = [plan(base.replace("stop: 8 s", "stop: probe.start + 2 s"), seed=seed) for seed in range(5)]
    for one in made:
        probe = one["flows"][1]
        assert probe["actions"] == [[probe["start"] + 2 * S, "stop"]]
    assert len({one["flows"][1]["start"] for one in made}) == 5


def test_randomize_replaces_the_start_phase_and_draws_values(base: str) -> None:
    text = base + "randomize: {ftp.start: uniform 1 s to 2 s, path.down.delay: uniform 5 to 50 ms}\n"
    made = [plan(text, seed=seed) for seed in range(8)]
    starts = [one["flows"][0]["start"] for one in made]
    delays = [one["path"]["down"][1]["kind"]["delay"]["delay"] for one in made]
    assert all(S <= start <= 2 * S for start in starts) and len(set(starts)) == 8
    assert all(5_000_000 <= delay <= 50_000_000 for delay in delays) and len(set(delays)) == 8


def test_sim_draws_how_full_a_token_bucket_is(base: str) -> None:
    def buckets(*settings: str, mode: Any = "sim") -> list[dict[str, Any]]:
        said = ("path.down.shaper=token_bucket 1600 B", *settings)
        plans = [plan(base, *said, seed=seed, mode=mode) for seed in range(20)]
        return [one["path"]["down"][0]["kind"]["bottleneck"]["shaper"]["token_bucket"] for one in plans]

    drawn = {bucket["initial"] for bucket in buckets()}
    assert len(drawn) > 10 and min(drawn) < 400 and 1200 < max(drawn) <= 1600
    full = [{"burst": 1600}] * 20
    assert buckets("start_phase=0 s") == full
    assert buckets(mode="emu") == full


def test_a_new_flow_changes_no_other_draw(base: str) -> None:
    more = "flows.extra={role: rival, traffic: ping}"
    before, after = plan(base, seed=7), plan(base, more, seed=7)
    assert before["flows"] == after["flows"][:2]


@given(st.integers(0, 2**64 - 1), st.text(max_size=8), st.integers(0, 10**12), st.integers(0, 10**12))
def test_draws_stay_in_bounds(seed: int, owner: str, low: int, span: int) -> None:
    assert low <= draw(seed, owner, "start", low, low + span) <= low + span


def test_draws_are_the_same_for_ever() -> None:
    # Changing these changes every record: raise the model version with them.
    assert [draw(seed, "ftp", "start", 0, 20_000_000) for seed in (1, 2, 3)] == [10145387, 9871113, 14228572]


def test_draws_are_spread_evenly() -> None:
    drawn = [draw(seed, "ftp", "start", 0, 9) for seed in range(2000)]
    for value in range(10):
        # Five standard deviations of a binomial.
        assert 133 <= drawn.count(value) <= 267


def test_sim_plays_the_stand_in_and_emu_the_system() -> None:
    (scenario,) = load("today/rtsp-udp-medium")
    assert lower(scenario, "emu", 1)["flows"][0]["app"] == "external"
    rtp = lower(scenario, "sim", 1)["flows"][0]["app"]["rtp"]
    assert rtp["tcp"] is None
    sizes = rtp["clip"]["frame_bytes"]
    rate = 8 * sum(sizes) / (len(sizes) * rtp["clip"]["frame_interval"] / 1e9)
    assert rate == pytest.approx(550_000, rel=0.01)
    (over_tcp,) = load("today/rtsp-tcp-medium")
    assert lower(over_tcp, "sim", 1)["flows"][0]["app"]["rtp"]["tcp"]["congestion_control"] == "cubic"


def test_a_plan_says_what_third_party_programs_speak(base: str, tmp_path: Path) -> None:
    """Where the record's classifier would guess otherwise; what it cannot read is refused by its name."""
    (scenario,) = load("today/rtsp-udp-medium")
    made = lower(scenario, "emu", 1)
    assert made["flows"][0]["protocols"] == {"tcp": ["rtsp"], "udp": ["rtp"]}
    assert made["flows"][0]["tcp"] == {"congestion_control": "cubic", "ecn": False}
    assert all("protocols" not in flow for flow in plan(base, mode="emu")["flows"]), "ours say it themselves"
    told = [adapter.external.protocols for adapter in ADAPTERS.values() if adapter.external is not None]
    assert any(told)
    for protocols in told:
        made["flows"][0]["protocols"] = {carrier: list(named) for carrier, named in protocols.items()}
        with pytest.raises(ScenarioError, match="third-party system"):
            _native.simulate(json.dumps(made), tmp_path)
    made["flows"][0]["protocols"] = {"udp": ["rtsp"]}
    with pytest.raises(ScenarioError, match="unknown variant `rtsp`, expected one of `opaque`, `ndn`"):
        _native.simulate(json.dumps(made), tmp_path)


def test_a_clip_with_a_duration_of_its_own(base: str) -> None:
    clip = "flows.probe={role: subject, system: rtp, clip: {source: bikes, rate: 200 kbit/s, duration: 3 s}}"
    made = plan(base, clip, "until={media_end: probe, time: 9 s}")
    assert made["flows"][1]["app"]["rtp"]["clip"]["duration"] == 3 * S
    assert made["until_media_end"] == "probe" and made["duration"] == 9 * S


def test_commands_do_not_run_in_sim(base: str) -> None:
    setting = "flows.probe={role: subject, system: {server: ./s, player: ./p}}"
    (scenario,) = from_text(base, settings=(setting,))
    assert lower(scenario, "emu", 1)["flows"][1]["app"] == "external"
    with pytest.raises(ScenarioError, match="sim cannot run commands"):
        lower(scenario, "sim", 1)


def test_every_catalogue_scenario_lowers_in_every_mode_that_it_claims(
    catalogue: tuple[Scenario, ...],
) -> None:
    for scenario in catalogue:
        for mode in scenario.supported_modes():
            made = lower(scenario, mode, 3)
            assert made["duration"] > 0 and made["flows"]


def test_results_say_whose_programs_ran() -> None:
    (medium,) = load("today/rtsp-udp-medium")
    whose = {}
    for mode in ("sim", "emu"):
        for name, flow in medium.in_mode(mode).flows.items():  # type: ignore[arg-type]
            assert flow.registered is not None
            whose[mode, name] = flow.registered.written_by_us(mode, flow.parameters)  # type: ignore[arg-type]
    assert whose == {
        ("sim", "video"): True,
        ("sim", "cross"): True,
        ("emu", "video"): False,
        ("emu", "cross"): False,
    }
