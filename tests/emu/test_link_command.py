"""``streamgauge link``: any command behind a path, as root and as an ordinary user."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from driving import MOST_TRIALS, Person, children, command_line, started_s, starved, tell_starved

# Links are interfaces of this machine.
pytestmark = pytest.mark.xdist_group("machine")

PYTHON = "/usr/bin/python3"
SERVER = f"exec {PYTHON} -m http.server 8000 --bind $STREAMGAUGE_SERVER"
FAST = ("link", "--no-preflight")


def link(
    person: Person, *arguments: str, stdin: str | None = None, timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        person._command(*FAST, *arguments),
        input="" if stdin is None else stdin,
        capture_output=True,
        text=True,
        env=person._environment(),
        cwd=person.home,
        timeout=timeout,
        check=False,
    )


def summary(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stderr.splitlines()[-1])
    return found


def inner(person: Person, *arguments: str) -> list[str]:
    """The command line of a link inside a link: whoever runs it is that person already."""
    return [str(person.checkout / ".venv/bin/python"), "-m", "streamgauge", *FAST, *arguments]


def interfaces() -> set[str]:
    said = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in said.splitlines()}


def test_curl_gets_what_the_path_gives(person: Person) -> None:
    (person.home / "file").write_bytes(os.urandom(60_000))
    done = link(
        person, "--down", "rate 1 Mbit/s, queue 20 kB, delay 20 ms", "--up", "delay 20 ms",
        "--server", SERVER, "--json", "--", "sh", "-c",
        "curl -sS -o got http://$STREAMGAUGE_SERVER:8000/file;"
        "echo $STREAMGAUGE_SERVER $STREAMGAUGE_CLIENT",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (person.home / "got").read_bytes() == (person.home / "file").read_bytes()
    server, client = done.stdout.split()
    assert server != client
    found = summary(done)
    down, up = found["down"], found["up"]
    # 60 kB at 1 Mbit/s take 0.48 s at least, headers not counted.
    assert down["active_s"] > 0.48
    assert down["throughput_bps"] <= 1e6 and down["utilisation_percent"] <= 100.01
    assert down["delivered_bytes"] > 60_000
    lost = sum(down["dropped_packets"].values())
    assert down["entered_packets"] == down["delivered_packets"] + lost, "nothing is left inside"
    # Propagation, and the shortest packet's transmission.
    assert down["delay_s"]["p50"] > 0.020 and up["delay_s"]["p50"] == pytest.approx(0.020, abs=1e-6)
    # Whatever else uses the machine may make it late, and nothing else may be wrong.
    assert all("late" in why or "departures" in why for why in found["validity"]["why"]), found["validity"]


def test_the_command_keeps_streams_status_user_and_folder(person: Person) -> None:
    script = "tr a-z A-Z; echo to stderr >&2; id -u; pwd; echo $MINE; exit 7"
    done = subprocess.run(
        person._command(*FAST, "--quiet", "--down", "delay 5 ms", "--", "sh", "-c", script),
        input="words\n", capture_output=True, text=True, cwd=person.home, check=False, timeout=60,
        env=person._environment() | {"MINE": "kept"},
    )  # fmt: skip
    assert done.returncode == 7
    assert done.stdout.splitlines() == ["WORDS", str(person.uid), str(person.home), "kept"]
    assert done.stderr == "to stderr\n"


@pytest.mark.parametrize(("script", "status"), [("kill -TERM $$", 143), ("kill -KILL $$", 137)])
def test_death_by_a_signal_is_the_status(person: Person, script: str, status: int) -> None:
    assert link(person, "--quiet", "--", "sh", "-c", script).returncode == status


LATE = """
import sys
from streamgauge.cli import main
from streamgauge.link_command.testbed import Testbed

counted = Testbed.received_packets_since
def late(self, before):
    self.emulator.popen.wait(timeout=30)
    return counted(self, before)

Testbed.received_packets_since = late
sys.exit(main())
"""


def test_what_the_ends_count_is_read_after_the_emulators_end_too(person: Person) -> None:
    command = person._command(*FAST, "--down", "rate 1 Mbit/s", "--server", SERVER, "--json", "--")
    at = command.index("-m")
    command[at : at + 2] = ["-c", LATE]
    fetch = "curl -sS -o got http://$STREAMGAUGE_SERVER:8000/"
    done = subprocess.run(
        [*command, "sh", "-c", fetch],
        capture_output=True, text=True, env=person._environment(), cwd=person.home, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not [why for why in summary(done)["validity"]["why"] if "veth" in why]


def _waiting(person: Person, *arguments: str) -> tuple[subprocess.Popen[str], int]:
    """A link whose command has begun, and the command's process id."""
    popen = person.popen(*FAST, *arguments, "--", PYTHON, "-uc", WAITS)
    assert popen.stdout is not None
    assert popen.stdout.readline() == "begun\n", popen.communicate()[1]
    command = [pid for pid in children(popen.pid) if command_line(pid).startswith(f"{PYTHON} -uc")]
    assert len(command) == 1
    return popen, command[0]


WAITS = """
import signal, sys, time
def told(number, frame):
    print("told", number, flush=True)
    sys.exit(9)
signal.signal(signal.SIGINT, told)
signal.signal(signal.SIGTERM, told)
print("begun", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_for_us_is_one_for_the_command(person: Person, number: signal.Signals) -> None:
    before = interfaces()
    popen, _ = _waiting(person)
    popen.send_signal(number)
    said, error = popen.communicate(timeout=60)
    assert said == f"told {int(number)}\n"
    assert popen.returncode == 9, error
    assert interfaces() == before


@pytest.mark.parametrize("victim", ["launcher", "sandbox", "emulator"])
def test_whatever_dies_nothing_is_left(person: Person, victim: str, tmp_path: Path) -> None:
    before = interfaces()
    person.environment["TMPDIR"] = str(person.home)
    server = () if person.way == "root" else ("--server", f"exec {PYTHON} -m http.server 8000")
    popen, command = _waiting(person, *server)
    below = children(popen.pid)
    if person.way == "root":
        assert len(interfaces()) == len(before) + 1, "the far end is our own namespace"
    spaces = {str(Path(f"/proc/{command}/ns/{kind}").readlink()) for kind in ("net", "pid", "mnt")}
    parts = {
        "launcher": lambda line: False,
        "sandbox": lambda line: " sandbox --way " in line,
        "emulator": lambda line: " link --config " in line and "streamgauge-engine" in line,
    }
    looked = time.clock_gettime(time.CLOCK_BOOTTIME)
    os.kill(next((pid for pid in below if parts[victim](command_line(pid))), popen.pid), signal.SIGKILL)
    _, error = popen.communicate(timeout=60)
    assert popen.returncode == (-signal.SIGKILL if victim == "launcher" else 2), error
    until = time.monotonic() + 15
    while True:
        left = [(pid, command_line(pid)) for pid in below if Path(f"/proc/{pid}").exists()]
        left += [(pid, "in a namespace") for pid in _inside(spaces, looked)]
        if not left and interfaces() == before and not list(person.home.glob(".streamgauge-link-*")):
            break
        assert time.monotonic() < until, (left, interfaces() - before, list(person.home.iterdir()))
        time.sleep(0.05)


def _inside(spaces: set[str], looked: float) -> list[int]:
    """Who is in one of these namespaces, and was there at `looked`, s since boot."""
    found = []
    for entry in Path("/proc").iterdir():
        # The kernel gives numbers of namespaces anew: what is younger is somebody else's.
        if entry.name.isdigit() and started_s(int(entry.name)) < looked:
            for kind in ("net", "pid", "mnt"):
                try:
                    if str((entry / "ns" / kind).readlink()) in spaces:
                        found.append(int(entry.name))
                except OSError:
                    pass
    return found


def test_links_chain(person: Person) -> None:
    """Delays add up, and the server of the outer link is what the inner command reaches."""
    connect = (
        "import os,socket,time; began=time.monotonic();"
        "socket.create_connection((os.environ['STREAMGAUGE_SERVER'],8000)); print(time.monotonic()-began)"
    )
    done = link(
        person, "--down", "delay 40 ms", "--up", "delay 10 ms", "--server", SERVER, "--json", "--",
        *inner(person, "--quiet", "--down", "delay 20 ms", "--", PYTHON, "-c", connect),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) >= 0.070
    assert summary(done)["up"]["delivered_packets"] > 0, "it went through the outer link"


def test_links_beside_each_other(person: Person) -> None:
    """Begun at the same moment, each has addresses of its own and its own delay."""
    delays = (10, 60, 110)
    # One that has ended leaves its addresses to the next, so each waits until all have some.
    begun = person.home / "begun"
    begun.mkdir()
    begun.chmod(0o777)
    script = (
        "echo $STREAMGAUGE_CLIENT; touch $0/$1; while [ $(ls $0 | wc -l) -lt 3 ]; do sleep 0.05; done; "
        "ping -c 1 $STREAMGAUGE_SERVER | grep -o 'time=[0-9.]*'"
    )
    together = [
        person.popen(*FAST, "--down", f"delay {delay} ms", "--", "sh", "-c", script, str(begun), str(delay))
        for delay in delays
    ]
    clients = set()
    for delay, popen in zip(delays, together, strict=True):
        said, error = popen.communicate(timeout=60)
        assert popen.returncode == 0, error
        client, took = said.split()
        clients.add(client)
        assert float(took.removeprefix("time=")) >= delay
    if person.way == "root":  # in one namespace, so none may be another's
        assert len(clients) == len(delays)


def test_root_reaches_this_machine_through_the_path(person: Person) -> None:
    """Without --server: as root this machine is the far end, for anybody else there is none."""
    serving = subprocess.Popen(
        [PYTHON, "-um", "http.server", "0"], stdout=subprocess.PIPE, text=True, cwd=person.home
    )
    try:
        assert serving.stdout is not None
        port = serving.stdout.readline().split("port ")[1].split()[0]
        ask = f"curl -sS -m 5 -o got-it -w '%{{time_connect}}' http://$STREAMGAUGE_SERVER:{port}/"
        done = link(person, "--down", "delay 30 ms", "--", "sh", "-c", ask)
    finally:
        serving.kill()
        serving.communicate()
    if person.way == "root":
        assert done.returncode == 0, done.stderr
        assert float(done.stdout) >= 0.030
    else:
        assert done.returncode == 7, "curl: cannot connect"
        assert "the far side is empty" in done.stderr and "--server" in done.stderr


def test_nothing_leaves_the_machine(person: Person) -> None:
    """At once, without a time-out: no route, no name."""
    script = (
        "date +%s; ip route get 192.0.2.1; curl -sS -m 20 http://example.org/; "
        "curl -sS -m 20 http://192.0.2.1/; failed=$?; date +%s; exit $failed"
    )
    done = link(person, "--down", "delay 1 ms", "--", "sh", "-c", script)
    assert done.returncode != 0
    assert "unreachable" in done.stderr.lower()
    assert "resolve" in done.stderr
    began, ended = map(int, done.stdout.split())
    assert ended - began < 15


def test_a_record_like_any_trials(person: Person) -> None:
    from streamgauge.record import Record

    log, capture = person.home / "log", person.home / "link.pcapng"
    done = link(
        person, "--down", "rate 2 Mbit/s, queue 10 packets, delay 10 ms", "--log", str(log),
        "--capture", str(capture), "--json", "--server", SERVER,
        "--", "sh", "-c", "curl -sS -o page http://$STREAMGAUGE_SERVER:8000/?token=1",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    record = Record.open(log)
    assert record.verify() == record.trial["digest"]
    assert [flow["name"] for flow in record.trial["flows"]] == ["command"]
    assert not record.trial["flows"][0]["ours"]
    assert "tcp" not in record.trial["plan"]["flows"][0], "it is the machine's"
    assert record.trial["summary"]["command"]["status"] == 0
    assert record.trial["validity"]["measured"]["conservation"] == []
    assert set(record.packets["flow"].unique()) == {"command"}
    assert "command_ended" in record.events["name"].to_list()
    assert "GET /?token=1 HTTP" in (log / "logs" / "server.log").read_text()
    # As docs/link-command.md warns.
    messages = record.events.filter(record.events["name"] == "message")
    assert "up GET /?token=1" in messages["reason"].to_list()
    frames = capture.read_bytes()
    assert frames.startswith(b"\x0a\x0d\x0d\x0a"), "a section header of pcapng"
    assert frames.count(b"GET /?token=1 HTTP/1.1") == 2, "where it came in and where it went out"
    replayed = person.run("verify", str(log), "--replay")
    assert replayed.returncode == 0, replayed.stderr
    report = person.run("report", str(log))
    assert report.returncode == 0, report.stderr
    assert "link/sh" in (log / "report.html").read_text()
    again = link(person, "--log", str(log), "--", "true")
    assert again.returncode == 3 and "not empty" in again.stderr


def test_the_pre_flight_measures_the_path(person: Person) -> None:
    for attempt in range(1, MOST_TRIALS + 1):
        log = person.home / f"log-{attempt}"
        done = person.run(
            "link", "--down", "rate 5 Mbit/s, queue 10 kB, delay 5 ms", "--log", str(log), "--", "true"
        )
        assert done.returncode == 0, done.stderr
        validity = json.loads((log / "trial.json").read_text())["validity"]
        # On a busy machine the ends are served late.
        if not validity["measured"]["preflight"]:
            break
        assert starved(validity), validity["why"]
        tell_starved({"scenario": "a link", "seed": attempt, "why": validity["why"]}, person.way)
    measured = validity["measured"]
    # The kernel's stamps at the two ends.
    assert measured["preflight_rate_bps"] == pytest.approx(5e6, rel=0.05)
    assert measured["preflight_down_delay_s"] == pytest.approx(0.005, abs=0.003)


def test_the_shortest_command_leaves_a_record(person: Person) -> None:
    log = person.home / "log"
    done = link(person, "--quiet", "--no-drain", "--log", str(log), "--", "true")
    assert done.returncode == 0, done.stderr
    assert json.loads((log / "trial.json").read_text())["duration_s"] >= 0.01


def test_what_is_in_flight_drains(person: Person) -> None:
    """A datagram that was on its way when the command ended still arrives."""
    listen = (
        "import socket; s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.bind(('',9000));"
        "print(s.recv(100).decode(), flush=True)"
    )
    send = (
        "import os,socket; s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM);"
        "s.sendto(b'late',(os.environ['STREAMGAUGE_SERVER'],9000))"
    )
    arguments = ("--up", "delay 300 ms", "--server", f'exec {PYTHON} -c "{listen}" > heard')
    done = link(person, *arguments, "--json", "--", PYTHON, "-c", send)
    assert done.returncode == 0, done.stderr
    assert summary(done)["up"]["delivered_packets"] == 1
    assert (person.home / "heard").read_text() == "late\n"
    done = link(person, *arguments, "--no-drain", "--json", "--", PYTHON, "-c", send)
    assert summary(done)["up"]["delivered_packets"] == 0


def test_a_shell_at_a_terminal(person: Person) -> None:
    """Job control and Ctrl-C are the shell's; the prompt says where one is."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "at_a_terminal.py"),
         *person._command(*FAST, "--down", "delay 7 ms", "--", "bash", "--norc", "-i")],
        capture_output=True, text=True, env=person._environment(), cwd=person.home, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 5, done.stdout + done.stderr
    assert "[down delay 7 ms]" in done.stdout
    assert "interrupted 130" in done.stdout
    assert "no job control" not in done.stdout


@pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")
def test_chromium_shows_a_page(person: Person) -> None:
    """With its own sandbox as an ordinary user; as root Chromium demands to go without."""
    (person.home / "page.html").write_text("<script>document.write('drawn ' + 6 * 7)</script>")
    alone = "--no-sandbox" if person.way == "root" else ""
    browse = f"exec chromium --headless {alone} --disable-gpu --user-data-dir=$PWD/profile --dump-dom"
    done = link(
        person, "--down", "rate 5 Mbit/s, queue 50 kB, delay 20 ms", "--up", "delay 20 ms",
        "--server", SERVER, "--json", "--",
        "sh", "-c", f"{browse} http://$STREAMGAUGE_SERVER:8000/page.html",
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "drawn 42" in done.stdout
    assert summary(done)["down"]["delivered_packets"] > 3


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--down", "rat 1 Mbit/s", "--", "true"], 3, ["--down", "did you mean 'rate"]),
        (["--up", "rate 0 bit/s", "--", "true"], 3, ["--up", "rate"]),
        (["--down", "rate 1 Mbit/s, queue 100 B", "--", "true"], 3, ["cannot hold one packet"]),
        (["--preset", "hesler", "--", "true"], 3, ["hesler", "did you mean 'hessler'"]),
        (["--trace", "nowhere.trace", "--", "true"], 3, ["--trace", "nowhere.trace"]),
        (["--trace", "/etc/hostname", "--", "true"], 3, ["--trace", "/etc/hostname", "line 1"]),
        (["--down", "rate 1 Mbit/s", "--trace", "x", "--", "true"], 3, ["exclude each other"]),
        (["--server", " ", "--", "true"], 3, ["--server", "empty"]),
        (["--server", "exit 5", "--", "true"], 2, ["--server ended with status 5"]),
        (["--log", "/proc/here", "--", "true"], None, ["/proc"]),
        (["--", "no-such-program"], 127, ["no-such-program", "no such command"]),
        (["--", "/etc/passwd"], 126, ["not executable"]),
    ],
)
def test_bad_input_is_one_clear_line(
    anyone: Person, arguments: list[str], status: int | None, words: list[str]
) -> None:
    done = link(anyone, *arguments)
    # Remarks: that there is no way out, and that another test runs a trial just now.
    remarks = ("the far side is empty", "disturb each other")
    said = [line for line in done.stderr.splitlines() if not any(part in line for part in remarks)]
    assert len(said) == 1, done.stderr
    assert status is None or done.returncode == status
    assert done.returncode != 0
    assert all(word in said[0] for word in words), said


def test_a_trace_gives_the_rate(person: Person) -> None:
    """An opportunity of 1504 bytes each 20 ms is 601.6 kbit/s, whatever the packets' size."""
    trace = person.home / "even.trace"
    trace.write_text("".join(f"{at}\n" for at in range(20, 1001, 20)))
    (person.home / "file").write_bytes(bytes(30_000))
    done = link(
        person, "--trace", str(trace), "--json", "--server", SERVER,
        "--", "sh", "-c", "curl -sS -o /dev/null http://$STREAMGAUGE_SERVER:8000/file",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    down = summary(done)["down"]
    assert down["delivered_bytes"] > 30_000
    # The span may contain one opportunity more than its length gives.
    assert down["throughput_bps"] <= 601_600 + 8 * 1504 / down["active_s"]


def test_a_preset_and_a_change_of_it(person: Person) -> None:
    done = link(person, "--preset", "hessler", "--up", "delay 55 ms", "--json", "--server", SERVER, "--",
                "sh", "-c", "curl -sS -o /dev/null http://$STREAMGAUGE_SERVER:8000/")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert summary(done)["up"]["delay_s"]["p50"] >= 0.055


def test_only_root_lets_packets_out(person: Person) -> None:
    if person.way == "user":
        done = link(person, "--internet", "--", "true")
        assert done.returncode == 4
        assert "root" in done.stderr and "--server" in done.stderr
        return
    if shutil.which("nft") is None:
        pytest.skip("nft is not installed")
    # A machine of its own, with a world behind it that knows nothing of the link's addresses.
    done = subprocess.run(
        ["unshare", "--net", "--mount", PYTHON, str(Path(__file__).parent / "with_a_world.py"),
         *inner(person, "--internet", "--down", "delay 20 ms", "--",
                "curl", "-sS", "-m", "5", "-o", "/dev/null", "-w", "%{time_connect}", "http://203.0.113.2:8000/")],
        capture_output=True, text=True, env=person._environment(), cwd=person.home, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert float(found["said"]) >= 0.020
    assert found["client"] == "203.0.113.1", "as the machine's own"
    assert found["tables_after"] == [] and found["forwarding_after"] == "0"
    assert found["killed"] == {"tables": [], "forwarding": "0", "interfaces": []}
