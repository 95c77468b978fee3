"""The kernel's state of TCP in the record: from the witnesses' files, and of a real trial."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from driving import Person
from streamgauge.emu import tcp_samples

# Controls are registered with this machine's kernel.
pytestmark = pytest.mark.xdist_group("machine")

MS = 10**6
T0 = 5_000 * MS


def sample(at_ms: float, **changes: Any) -> list[Any]:
    values = {
        "control": "cubic",
        "cwnd": 14_480,
        "ssthresh": None,
        "srtt_us": 40_000,
        "retransmits": 0,
        "pacing": None,
        "in_flight": 2_896,
    }
    return [round(T0 + at_ms * MS), *(values | changes).values()]


def connection(flow: str, acked: int, *samples: list[Any], ecn: bool = False) -> dict[str, Any]:
    return {
        "flow": flow,
        "server_port": 6000,
        "player_port": 40_000,
        "congestion_controls": sorted({one[1] for one in samples}),
        "ecn": ecn,
        "acked_bytes": acked,
        "samples": list(samples),
    }


def events(
    *found: dict[str, Any], step_ms: int | None = 100, app: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    plan: dict[str, Any] = {} if step_ms is None else {"tcp_sample": step_ms * MS}
    plan["flows"] = [{"name": name, "app": app or {"http": {}}} for name in ("ftp", "http")]
    return tcp_samples.events(found, plan, T0, 1_000 * MS)


def named(made: list[dict[str, Any]], name: str) -> list[tuple[float, Any]]:
    return [(event["t_ns"] / MS, event["value"]) for event in made if event["name"] == name]


def test_values_become_si_units_and_what_is_not_there_is_left_out() -> None:
    made = events(connection("ftp", 9, sample(100.4, ssthresh=7_240, pacing=125_000, control="bbr")))
    assert {event["name"]: (event["value"], event["unit"]) for event in made} == {
        "tcp_cwnd": (14_480, "B"),
        "tcp_ssthresh": (7_240, "B"),
        "tcp_srtt": (0.04, "s"),
        "tcp_retransmits": (0, "1"),
        "tcp_pacing_rate": (1_000_000, "bit/s"),
        "tcp_in_flight": (2_896, "B"),
    }
    assert {(event["t_ns"], event["flow"], event["reason"]) for event in made} == {
        (100_400_000, "ftp", "bbr")
    }
    assert {event["name"] for event in events(connection("ftp", 9, sample(100)))} == {
        "tcp_cwnd", "tcp_srtt", "tcp_retransmits", "tcp_in_flight"
    }  # fmt: skip


def test_of_several_connections_the_one_that_carries_most_counts() -> None:
    control = connection("ftp", 300, *(sample(at, cwnd=1) for at in (100, 200, 300)))
    data = connection("ftp", 10**6, *(sample(at + 0.3, cwnd=2) for at in (200, 300)))
    other = connection("http", 300, sample(200.1, cwnd=3))
    made = events(control, data, other)
    of_ftp = [event for event in made if event["flow"] == "ftp"]
    assert named(of_ftp, "tcp_cwnd") == [(100, 1), (200.3, 2), (300.3, 2)]
    assert named([event for event in made if event["flow"] == "http"], "tcp_cwnd") == [(200.1, 3)]


def test_connections_after_the_first_are_named_by_their_ports() -> None:
    control = connection("ftp", 300, sample(100), sample(200))
    data = connection("ftp", 10**6, sample(200.3)) | {"player_port": 40_001}
    reasons = {(event["t_ns"] / MS, event["reason"]) for event in events(control, data)}
    assert reasons == {(100, "cubic"), (200.3, "cubic 6000:40001")}


def test_a_flow_of_commands_has_no_connection_of_iperf3() -> None:
    """Its app is a word in the plan."""
    plan = {"tcp_sample": 100 * MS, "flows": [{"name": "ftp", "app": "external"}]}
    assert tcp_samples.events([connection("ftp", 100, sample(100, cwnd=1))], plan, T0, 10**10)


def test_the_connection_on_which_iperf3_agrees_has_no_samples() -> None:
    """While it is alone, or has carried more, there are none or the other's."""
    control = connection("ftp", 300, *(sample(at, cwnd=1, srtt_us=9) for at in (100, 200, 300)))
    data = connection("ftp", 200, *(sample(at, cwnd=2) for at in (200, 300))) | {"player_port": 40_001}
    made = events(control, data, app={"bulk": {"arrivals": None}})
    assert named(made, "tcp_cwnd") == [(200, 2), (300, 2)]
    assert {event["reason"] for event in made} == {"cubic 6000:40001"}
    many = {"bulk": {"arrivals": [[0, 1_000], [1, 1_000]]}}
    assert named(events(control, data, app=many), "tcp_cwnd") == [(100, 1), (200, 1), (300, 1)]


def test_only_the_trial_is_sampled() -> None:
    made = events(connection("ftp", 9, sample(-1), sample(100), sample(999.9), sample(1000.1)))
    assert [at for at, _ in named(made, "tcp_cwnd")] == [100, 999.9]
    assert events(connection("ftp", 9, sample(100)), step_ms=None) == []


def test_what_was_used_is_read_back(tmp_path: Path) -> None:
    found = [
        connection("ftp", 9, sample(100), ecn=True),
        connection("ftp", 1, sample(1, control="sg_vegas_1")),
    ]
    (tmp_path / "tcp-server.json").write_text(json.dumps({"connections": found}))
    (tmp_path / "tcp-cross.json").write_text(
        json.dumps({"connections": [connection("http", 1, sample(1, control="reno"))]})
    )
    read = tcp_samples.connections(tmp_path, {"vegas": "sg_vegas_1"})
    assert tcp_samples.used(read) == {"ftp": ["cubic", "ecn", "vegas"], "http": ["reno"]}
    assert not list(tmp_path.iterdir())
    plan = {"tcp_sample": 100 * MS, "flows": []}
    assert {event["reason"] for event in tcp_samples.events(read, plan, T0, 10**10)} == {
        "cubic", "vegas", "reno"
    }  # fmt: skip


def test_without_samples_connections_are_read_back_all_the_same(tmp_path: Path) -> None:
    flows = [{"name": "ftp"}]
    assert tcp_samples.settings({"flows": flows}, tmp_path, "client") is None
    assert tcp_samples.settings({"flows": [{"direction": "up"}]}, tmp_path, "client") is not None
    for plan, every_ns in (({"flows": flows}, 10**9), ({"flows": flows, "tcp_sample": 5 * MS}, 5 * MS)):
        found = tcp_samples.settings(plan, tmp_path, "server")
        assert found == {"every_ns": every_ns, "out": str(tmp_path / "tcp-server.json")}


SHORT = """
id: test/tcp
title: Two downloads
path:
  down: {rate: 2 Mbit/s, queue: droptail 40 packets, delay: 50 ms}
  up: {delay: 50 ms}
flows:
  ftp: {role: subject, traffic: bulk, congestion_control: reno, parameters: {initial_window: 3 packets}}
  stream:
    role: rival
    system: rtp
    parameters: {transport: tcp, delayed_ack: 0 s}
    clip: carphone-200k
    ecn: on
until: {time: 5 s}
measure: {tcp_sample: 50 ms}
modes: [emu]
"""


@pytest.mark.emu
def test_the_state_of_the_kernels_tcp_is_in_the_record(person: Person) -> None:
    file = person.scenario(SHORT, "tcp")
    done = person.run("run", file, "--mode", "emu", "--seed", "1", "--out", str(person.out))
    folders = [file.parent for file in person.out.rglob("trial.json")]
    assert len(folders) == 1, done.stderr
    folder = folders[0]
    measured = json.loads((folder / "trial.json").read_text())["validity"]["measured"]
    assert measured["conditions"] == [], "congestion control, ECN: as asked"
    assert 0 < measured["tcp_sampling_cpu_s"] < 0.05, "1 % of a processor"
    all_events = pl.read_parquet(folder / "events.parquet", hive_partitioning=False)
    assert all_events["time"].is_sorted()
    samples = all_events.filter(pl.col("name").str.starts_with("tcp_"))
    for flow, control in (("ftp", "reno"), ("stream", "cubic")):
        table = samples.filter(flow=flow).pivot("name", index="time", values="value").sort("time")
        assert 70 <= len(table) <= 100, flow
        # iperf3's data goes over its second connection, which its ports name.
        controls = {reason.split(" ")[0] for reason in samples.filter(flow=flow)["reason"]}
        assert controls == {control}
        # A loss probe goes beyond the window (RFC 8985 section 7.3), and for a moment the window is below
        # what is in flight when a recovery ends with few acknowledgements.
        assert (table["tcp_cwnd"] + 1448 < table["tcp_in_flight"]).mean() < 0.05, flow
        assert (table["tcp_retransmits"].diff().drop_nulls() >= 0).all(), flow
        assert table["tcp_srtt"].min() >= 0.100, flow
    ftp = samples.filter(flow="ftp")
    assert ftp.filter(name="tcp_retransmits")["value"].max() > 0
    # 3 segments, 100 ms after it began: nothing is acknowledged until then.
    first = ftp.filter(name="tcp_cwnd").sort("time")["value"][0]
    assert 3 * 1448 <= first <= 6 * 1448
