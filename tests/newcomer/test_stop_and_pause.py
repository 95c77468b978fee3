"""`stop`, `pause` and `resume` of every system: the same in both modes, and refused where a system cannot."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from driving import Person, the_valid_one
from streamgauge.metrics.frame import RETRANSMIT
from streamgauge.record import Record
from streamgauge.scenario import from_text

DELAY_S = 0.05
"""One way."""
QUEUE_S = 25 * 1500 * 8 / 2e6
"""What the bottleneck's queue holds when it is full."""
BOUND_S = 2 * DELAY_S + QUEUE_S
"""A round trip and the queue: what the path itself lets anything outlast its stop by."""
HOST_S = 0.5
"""And a player and a server, on a machine with other work."""
FAREWELL_S = 1.2
"""How long the goodbyes of a session may be waited for."""
END_S = 10.0
PLAYING_S, PAUSE_S, RESUME_S, STOP_S = 1.5, 2.5, 4.0, 5.5

PATH = """
path:
  down: {rate: 2 Mbit/s, queue: droptail 25 packets, delay: 50 ms}
  up: {delay: 50 ms}
"""
ENDS = f"until: {{time: {END_S} s}}\nstart_phase: 0 s\n"
HELD = f"events: [{{at: {PAUSE_S} s, do: pause}}, {{at: {RESUME_S} s, do: resume}}], stop: {STOP_S} s"
STOPPED = f"stop: {STOP_S} s"

# Each system of ours; those whose programs cannot hold are only stopped. What waits in a stream's buffer goes
# on during a pause, so over TCP a pause is not silent.
OURS = f"""
id: test/ours
title: Our systems, held and stopped
{PATH}
flows:
  bulk: {{role: subject, traffic: bulk, {STOPPED}}}
  cbr: {{role: rival, traffic: cbr, parameters: {{rate: 25 packets/s, size: 500 B}}, {STOPPED}}}
  bursts:
    {{role: rival, traffic: cbr, parameters: {{rate: 20 packets/s, size: 500 B, burst: 2 packets}}, {HELD}}}
  ping: {{role: rival, traffic: ping, parameters: {{interval: 100 ms}}, {HELD}}}
  udp: {{role: rival, system: rtp, clip: carphone-200k, {HELD}}}
  tcp: {{role: rival, system: rtp, parameters: {{transport: tcp}}, clip: carphone-200k, {HELD}}}
  rudp: {{role: rival, system: darwin, clip: carphone-200k, {HELD}}}
  interleaved: {{role: rival, system: darwin, parameters: {{transport: tcp}}, clip: carphone-200k, {HELD}}}
{ENDS}"""
SILENT = ["bursts", "ping", "udp", "rudp"]

SERVE = """
import os, socket, sys, time
server = socket.create_server((os.environ["STREAMGAUGE_SERVER"], int(os.environ["STREAMGAUGE_PORT"])))
kind = sys.argv[1]
if kind == "gone":
    time.sleep(3)
    sys.exit(0)
player, _ = server.accept()
if kind == "endless":
    while True:
        player.sendall(bytes(10_000))
player.sendall(bytes(60_000))
if kind == "crash":
    os.kill(os.getpid(), 11)
if kind == "waits":
    player.recv(1)
print("served all", file=sys.stderr)
player.close()
sys.exit(3 if kind == "complains" else 0)
"""
PLAY = """
import os, socket, sys, time
there = (os.environ["STREAMGAUGE_SERVER"], int(os.environ["STREAMGAUGE_PORT"]))
try:
    server = socket.create_connection(there, timeout=1)
    server.settimeout(None)
    while server.recv(65536):
        pass
except OSError:
    pass
time.sleep(float(sys.argv[1]))
"""


def command(kind: str, plays_on_s: float, more: str = "") -> str:
    system = f"{{server: python3 serve.py {kind}, player: python3 play.py {plays_on_s}, name: {kind}}}"
    return f"{{role: rival, system: {system}{more}}}"


# Other people's programs: a stop of each, and servers that end by themselves when they have sent all. What
# fills the queue comes when the RTSP sessions play, whose answers it would drop.
THEIRS = f"""
id: test/theirs
title: Other people's systems, held and stopped, or done
{PATH}
flows:
  gstreamer: {{role: subject, system: rtsp, clip: carphone-200k, {HELD}}}
  interleaved: {{role: subject, system: rtsp, parameters: {{transport: tcp}}, clip: carphone-200k, {HELD}}}
  ffmpeg: {{role: subject, system: rtsp, parameters: {{player: ffmpeg}}, clip: carphone-200k, {STOPPED}}}
  endless: {command("endless", 0.0, f", start: {PLAYING_S} s, {STOPPED}")}
  done: {command("done", 1.0, f", start: {PLAYING_S} s")}
  waits: {command("waits", 0.0, f", start: {PLAYING_S} s")}
{ENDS}"""

HELD_BY_OTHERS = ["gstreamer", "interleaved"]

ENDED = f"""
id: test/ended
title: Servers that end otherwise
{PATH}
flows:
  gone: {command("gone", 0.1, ", start: 5 s")}
  left: {command("done", 60.0)}
  complains: {command("complains", 0.5)}
  crash: {command("crash", 0.5)}
until: {{time: 6 s}}
modes: [emu]
"""


@pytest.fixture(scope="module")
def someone(anybody: Person) -> Person:
    """With the programs of `COMMANDS` at hand."""
    for name, text in (("serve.py", SERVE), ("play.py", PLAY)):
        (anybody.home / name).write_text(text, encoding="utf-8")
    return anybody


def simulated(text: str, someone: Person) -> dict[str, Any]:
    done = someone.run(
        "run",
        someone.scenario(text, "sim"),
        "--mode",
        "sim",
        "--seed",
        "1",
        "--out",
        str(someone.out),
        "--json",
    )
    (trial,) = json.loads(done.stdout)["trials"]
    return dict(trial)


def entries(trial: dict[str, Any]) -> pl.DataFrame:
    """When packets of each flow entered the path at the server's end: "flow", "t_s", "payload_bytes", and
    whether TCP repeated them."""
    packets = Record.open(Path(trial["directory"])).packets
    first = packets.filter(pl.col("dir") == "down")
    first = first.filter(pl.col("stage") == first["stage"][0])
    return first.select(
        pl.col("flow").cast(pl.String),
        (pl.col("t_in") / 1e9).alias("t_s"),
        "payload_bytes",
        (pl.col("flags") & RETRANSMIT > 0).alias("repeated"),
    )


def last_data(packets: pl.DataFrame, flow: str) -> float:
    """When its last packet with payload to speak of entered, s: more than a goodbye's."""
    data = packets.filter((pl.col("flow") == flow) & ((pl.col("payload_bytes") > 200) | (flow == "ping")))
    return float(data["t_s"].max())  # type: ignore[arg-type]


def assert_held(packets: pl.DataFrame, flow: str, host_s: float, since_s: float = PAUSE_S) -> None:
    # What the queue dropped before the pause TCP repeats by itself, whatever its application does.
    mine = packets.filter((pl.col("flow") == flow) & ~pl.col("repeated"))
    data = mine.filter((pl.col("payload_bytes") > 200) | (flow == "ping"))["t_s"]
    assert data.is_between(1.0, PAUSE_S).any(), flow
    late = data.filter(data.is_between(since_s + BOUND_S + host_s, RESUME_S))
    assert late.is_empty(), (flow, since_s, late.to_list())
    assert data.is_between(RESUME_S, STOP_S).any(), flow


def asked_to_pause(trial: dict[str, Any], flow: str) -> float | None:
    """When its player's first PAUSE passed, s; None if it never did."""
    events = Record.open(Path(trial["directory"])).events.filter(
        (pl.col("flow").cast(pl.String) == flow)
        & (pl.col("name") == "message")
        & pl.col("reason").str.starts_with("up PAUSE")
    )
    at_ns = events["time"].min()
    return None if at_ns is None else float(at_ns) / 1e9  # type: ignore[arg-type]


def slow_to_pause(trial: dict[str, Any]) -> list[str]:
    """Players that asked for the pause so late that no silence is to be seen: GStreamer's asks nothing new
    before it has the answer to what it asked last, which a full queue may have dropped."""
    found = {flow: asked_to_pause(trial, flow) for flow in HELD_BY_OTHERS}
    latest_s = PAUSE_S + HOST_S
    return [
        f"the player of {flow} asked for its pause late, at {at_s:.2f} s (bound {latest_s:.2f} s)"
        for flow, at_s in found.items()
        if at_s is not None and at_s > latest_s
    ]


def assert_stopped(packets: pl.DataFrame, flow: str, host_s: float) -> None:
    at_s = last_data(packets, flow)
    assert STOP_S - 0.8 < at_s <= STOP_S + BOUND_S + host_s, (flow, at_s)
    ever = packets.filter(pl.col("flow") == flow)["t_s"].max()
    assert ever <= STOP_S + 2 * BOUND_S + FAREWELL_S + host_s, (flow, ever)  # type: ignore[operator]


def flows_of(text: str) -> list[str]:
    return [flow for scenario in from_text(text) for flow in scenario.flows]


def test_in_sim_nothing_outlasts_its_stop(someone: Person) -> None:
    trial = simulated(OURS, someone)
    assert trial["valid"], trial["why"]
    packets = entries(trial)
    for flow in flows_of(OURS):
        assert_stopped(packets, flow, 0.002)
    for flow in SILENT:
        assert_held(packets, flow, 0.002)


@pytest.mark.emu
def test_our_systems_in_emu_as_in_sim(someone: Person) -> None:
    trial = the_valid_one(someone.trials(OURS))
    packets, sim = entries(trial), entries(simulated(OURS, someone))
    for flow in flows_of(OURS):
        assert_stopped(packets, flow, HOST_S)
        assert abs(last_data(packets, flow) - last_data(sim, flow)) <= BOUND_S + HOST_S, flow
    for flow in SILENT:
        assert_held(packets, flow, HOST_S)


@pytest.mark.emu
def test_other_peoples_systems_in_emu(someone: Person) -> None:
    trial = the_valid_one(someone.trials(THEIRS, slow=slow_to_pause))
    packets = entries(trial)
    for flow in (*HELD_BY_OTHERS, "ffmpeg", "endless"):
        assert_stopped(packets, flow, HOST_S)
    for flow in HELD_BY_OTHERS:
        since_s = asked_to_pause(trial, flow)
        assert since_s is not None, f"{flow} never asked for a pause"
        assert_held(packets, flow, HOST_S, since_s)
    for flow in ("done", "waits"):
        assert trial["flows"][flow]["received_bytes"] > 60_000


@pytest.mark.emu
def test_servers_that_leave_their_players_make_it_invalid(someone: Person) -> None:
    why = someone.trials(ENDED)[-1]["why"]
    for flow, words in {
        "gone": "before its player had come",
        "left": "its player did not end with status 0",
        "complains": "ended with status 3 (served all)",
        "crash": "was killed by SIGSEGV",
    }.items():
        assert any(f"the server of flow {flow} " in line and words in line for line in why), (flow, why)
    assert not any("player of flow" in line for line in why), why


@pytest.mark.emu
def test_a_server_that_dies_early_leaves_its_log(someone: Person) -> None:
    words = 'sh -c "echo starting; echo no such clip >&2; exit 5"'
    text = ENDED.replace("test/ended", "test/dies").partition("flows:")[0]
    text += f"flows:\n  web: {{role: subject, system: {{server: '{words}', player: 'true'}}}}\n"
    text += "until: {time: 5 s}\nmodes: [emu]\n"
    out = someone.home / "early"
    done = someone.run(
        "run", someone.scenario(text, "dies"), "--mode", "emu", "--seed", "1", "--out", str(out)
    )
    said = " ".join(done.stderr.split()) + " ".join(done.stdout.split())
    assert done.returncode == 2, said
    assert "the server of flow web ended with status 5 (no such clip) before the trial began" in said
    logs = out / "scenario=test%2Fdies/mode=emu/seed=1.broken"
    assert "seed=1.broken" in said
    assert (logs / "web-server-stderr.log").read_text() == "no such clip\n"
    assert (logs / "web-server-stdout.log").read_text() == "starting\n"
    # Nothing else: no half trial.
    assert [path.name for path in logs.parent.iterdir()] == ["seed=1.broken"]
    assert {path.suffix for path in logs.iterdir()} == {".log"}


CANNOT = {
    "bulk": ("ftp: {role: subject, traffic: bulk, %s}", "'bulk' as iperf3 cannot pause in emu"),
    "cbr": (
        "mgen: {role: subject, traffic: cbr, parameters: {rate: 10 packets/s}, %s}",
        "cannot pause in emu, only stop",
    ),
    "ffmpeg": (
        "v: {role: subject, system: rtsp, parameters: {player: ffmpeg}, clip: carphone-200k, %s}",
        "cannot pause in emu",
    ),
    "commands": (
        "web: {role: subject, system: {server: 'true', player: 'true'}, %s}",
        "a command cannot pause in emu, only stop",
    ),
}


@pytest.mark.parametrize(("flow", "words"), CANNOT.values(), ids=CANNOT)
def test_what_a_system_cannot_is_refused_before_anything_starts(
    flow: str, words: str, tmp_path: Path
) -> None:
    text = f"id: test/cannot\ntitle: Refused\n{PATH}\nflows:\n  {flow % HELD}\n{ENDS}"
    (tmp_path / "cannot.yaml").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "streamgauge", "run", "cannot.yaml", "--mode", "emu", "--out", "runs"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    said = " ".join(done.stderr.split())
    assert done.returncode == 3, said
    assert words in said and ".events.0.do" in said
    assert not (tmp_path / "runs").exists()


def test_where_it_can_the_scenario_runs() -> None:
    """Bulk holds in sim alone; GStreamer's player holds in emu, and a stand-in for it in sim."""
    flow = CANNOT["bulk"][0] % HELD
    (alone,) = from_text(f"id: a/b\ntitle: T\n{PATH}flows:\n  {flow}\n{ENDS}")
    assert alone.supported_modes() == ["sim"]
    text = f"system: rtsp, sim: {{system: rtp}}, clip: carphone-200k, {HELD}"
    (both,) = from_text(f"id: a/b\ntitle: T\n{PATH}flows:\n  v: {{role: subject, {text}}}\n{ENDS}")
    assert both.supported_modes() == ["sim", "emu"]
