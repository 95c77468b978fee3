"""Short transfers and media up, whole trials of sim: what is conserved, measured and said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from streamgauge.campaign import run
from streamgauge.record import Record
from streamgauge.scenario import from_text, lower
from streamgauge.systems.machines import begins_ns

SHORT = """\
id: test/short
title: Short transfers
path:
  down: {rate: 10 Mbit/s, queue: droptail 100 ms, delay: 5 ms}
  up: {delay: 5 ms}
flows:
  web:
    role: subject
    traffic: bulk
    arrivals: {rate: 20 /s, size: 5 kB, sizes: exponential}
    stop: 9 s
until: {time: 10 s}
measure: {window: [0 s, 10 s]}
repetitions: {sim: 1}
"""


def trial(text: str, folder: Path, *settings: str) -> tuple[Record, dict[str, Any], Any]:
    (made,) = from_text(text, settings=settings)
    (outcome,) = run([made], {made.id: ["sim"]}, folder).outcomes
    assert outcome.valid, outcome.why
    record = Record.open(outcome.job.directory)
    return record, {flow["name"]: flow for flow in record.trial["plan"]["flows"]}, outcome.metrics


def test_every_transfer_that_arrives_is_moved_whole(tmp_path: Path) -> None:
    record, flows, metrics = trial(SHORT, tmp_path, "flows.web.stop=8 s", "flows.web.arrivals.rate=40 /s")
    asked = flows["web"]["app"]["bulk"]["arrivals"]
    done = record.events.filter(pl.col("name") == "transfer_complete")
    assert done.height == pytest.approx(len(asked), abs=3)  # which the stop cuts off
    assert record.events.filter(pl.col("name") == "transfer_failed").height == 0
    said = sorted(done["reason"], key=lambda reason: int(reason.split()[1].strip(":")))
    numbers = [int(reason.split()[1].strip(":")) for reason in said]
    assert len(set(numbers)) == len(numbers)
    for number, reason in zip(numbers, said, strict=True):
        assert reason.startswith(f"transfer {number}: {asked[number]['bytes']} B on 5201:")
    # As many connections in the record as transfers were opened, each by its number.
    packets = record.packets.filter(pl.col("connection").is_not_null())
    assert done.height <= packets["connection"].n_unique() <= len(asked)
    took = done["value"]
    assert metrics.value("transfers", "web") == done.height
    assert metrics.value("completion_time", "web") == pytest.approx(took.mean())
    assert metrics.value("completion_time_p95", "web") == pytest.approx(took.quantile(0.95, "linear"))
    # SYN and request cost a round trip each of 10 ms.
    assert took.min() >= 0.02
    assert metrics.flow_json("web")["completion_time_mean_s"] == pytest.approx(took.mean())


def test_the_same_seed_gives_the_same_trial(tmp_path: Path) -> None:
    first, _, _ = trial(SHORT, tmp_path / "a")
    again, _, _ = trial(SHORT, tmp_path / "b")
    assert first.trial["digest"] == again.trial["digest"]


def test_ten_thousand_connections_one_after_another(tmp_path: Path) -> None:
    _, flows, metrics = trial(
        SHORT,
        tmp_path,
        "flows.web.arrivals={rate: 500 /s, size: 1 kB}",
        "flows.web.stop=20 s",
        "until.time=21 s",
        "measure.window=[0 s, 21 s]",
        "measure.tcp_sample=off",
        "path.down.rate=100 Mbit/s",
    )
    asked = len(flows["web"]["app"]["bulk"]["arrivals"])
    assert asked > 9_500
    assert metrics.value("transfers", "web") >= asked - 20
    assert metrics.value("transfers_failed", "web") == 0


def test_a_flow_of_no_arrivals_is_silent_and_valid(tmp_path: Path) -> None:
    _, flows, metrics = trial(SHORT, tmp_path, "flows.web.arrivals.rate=0.0001 /s")
    assert flows["web"]["app"]["bulk"]["arrivals"] == []
    assert metrics.value("transfers", "web") == 0


@pytest.mark.parametrize(
    "events",
    [
        "[{at: 0.01 s, do: pause}]",
        "[{at: 0.01 s, do: pause}, {at: 8.999 s, do: resume}]",
        "[{at: 0.01 s, do: stop}]",
    ],
)
def test_a_flow_whose_arrivals_are_all_left_out_is_silent_and_valid(events: str, tmp_path: Path) -> None:
    record, flows, _ = trial(SHORT, tmp_path, f"flows.web.events={events}")
    assert flows["web"]["app"]["bulk"]["arrivals"], "the plan has them"
    assert record.packets.height == 0


def test_a_flow_begins_with_the_first_arrival_that_is_not_left_out() -> None:
    arrivals = [{"at": at, "bytes": 1000} for at in (10, 20, 30, 40)]
    (made,) = from_text(SHORT)
    (plan,) = lower(made, "sim", 1)["flows"]
    plan["app"]["bulk"]["arrivals"] = arrivals

    def begins(*actions: tuple[int, str]) -> int:
        return begins_ns(plan | {"actions": [list(action) for action in actions]})

    assert begins() == begins((11, "pause")) == begins((1, "pause"), (10, "resume")) == 10
    assert begins((10, "pause"), (20, "resume"), (21, "pause")) == 20
    assert begins((5, "pause"), (15, "pause"), (31, "resume")) == 40
    never = begins((5, "pause"))
    assert never == begins((10, "stop")) == begins((5, "pause"), (25, "resume"), (30, "stop"))
    assert never > lower(made, "sim", 1)["duration"]


UP = """\
id: test/up
title: Media both ways
path:
  down: {rate: 2 Mbit/s, queue: droptail 100 ms, delay: 10 ms}
  up: {rate: 500 kbit/s, queue: droptail 50 ms, delay: 30 ms}
flows:
  watch: {role: subject, system: rtp, clip: carphone-300k}
  camera: {role: rival, system: rtp, clip: carphone-300k, direction: up}
  upload: {role: rival, traffic: bulk, direction: up, start: 5 s}
  probe: {role: rival, traffic: ping, direction: up}
until: {time: 15 s}
measure: {window: [0 s, 15 s]}
repetitions: {sim: 1}
"""


def test_media_goes_up_from_a_server_at_the_clients_end(tmp_path: Path) -> None:
    record, flows, metrics = trial(UP, tmp_path)
    assert [flow.get("direction") for flow in flows.values()] == [None, "up", "up", "up"]
    camera = record.packets.filter((pl.col("flow") == "camera") & (pl.col("payload_bytes") > 1000))
    assert camera.height and set(camera["dir"]) == {"up"}
    for name in ("watch", "camera"):
        assert metrics.value("throughput", name) == pytest.approx(320e3, rel=0.1)
    # Down nothing is in the way of the one, up the upload is in that of the other.
    assert metrics.value("loss", "watch") == 0
    assert metrics.value("loss", "camera") > 0.01
    assert metrics.value("queue_delay", "camera") > 3 * metrics.value("queue_delay", "watch")
    assert metrics.value("throughput", "upload") > 100e3
    assert metrics.value("throughput", "upload") > 10 * metrics.value("up_throughput", "upload")
    # A share is of the bottleneck that the media crosses.
    assert metrics.value("max_min_share", "watch") == pytest.approx(1, rel=0.05)
    assert metrics.value("max_min_share", "camera") < 1.2
    assert metrics.value("rtt", "probe") >= 0.04
    assert metrics.flows["probe"].rtt_source == "probe"
    assert metrics.value("frames_shown", "camera") > 100


def test_down_and_up_are_the_same_on_a_path_that_is(tmp_path: Path) -> None:
    same = "path={down: {rate: 1 Mbit/s, queue: droptail 100 ms, delay: 10 ms}, up: same}"
    mirror = same.replace("up: same", "up: {rate: 1 Mbit/s, queue: droptail 100 ms, delay: 10 ms}")
    more = ("start_phase=0 s", "host_jitter=0 s", mirror)
    found = {}
    for way in ("down", "up"):
        flow = f"flows={{x: {{role: subject, traffic: bulk, direction: {way}}}}}"
        _, _, metrics = trial(UP, tmp_path / way, flow, *more)
        found[way] = [metrics.value(name, "x") for name in ("throughput", "loss", "queue_delay", "cwnd")]
    assert found["up"] == pytest.approx(found["down"], rel=1e-9)
