"""A side of a flow has its own files, processes, IPC and network: it harms neither the machine nor another
flow, nor can it reach the emulator."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from driving import Person
from scenarios import scenario
from streamgauge.record import Record

PROGRAMS = Path(__file__).parent / "programs"
SERVER = (
    "server: python3 -u -m http.server --bind $STREAMGAUGE_SERVER --directory /usr/share/common-licenses "
    "$STREAMGAUGE_PORT"
)
FETCH = "curl -s -o $STREAMGAUGE_OUT/page http://$STREAMGAUGE_SERVER:$STREAMGAUGE_PORT/BSD"
LEFT = b"sleep\000987653"
"""The command of a process that outlives its player."""
MARK = "streamgauge-was-here"


def flow(name: str, player: str) -> str:
    return f'  {name}: {{role: subject, system: {{name: {name}, player: "{player}", {SERVER}}}}}'


def logs_of(person: Person, text: str, name: str) -> tuple[Path, dict[str, Any]]:
    """Runs a scenario once; where its logs are, and the trial. What is tested holds in a starved one too."""
    out = person.home / name
    done = person.run(
        "run", person.scenario(text), "--mode", "emu", "--seed", "1", "--out", str(out), "--json"
    )
    assert done.stdout, done.stderr
    (trial,) = json.loads(done.stdout)["trials"]
    return Path(trial["directory"]) / "logs", trial


@contextmanager
def services(folder: Path) -> Iterator[Path]:
    """Sockets and a pipe that everybody may use, and a file that is locked."""
    pipe, held = folder / "pipe", folder / "locked"
    os.mkfifo(pipe)
    held.touch()
    with ExitStack() as open_ones:
        for name, kind in (("stream", socket.SOCK_STREAM), ("datagrams", socket.SOCK_DGRAM)):
            one = open_ones.enter_context(socket.socket(socket.AF_UNIX, kind))
            one.bind(str(folder / name))
            if kind == socket.SOCK_STREAM:
                one.listen()
        for file in (pipe, held, folder / "stream", folder / "datagrams"):
            file.chmod(0o666)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        open_ones.callback(os.close, reader)
        lock = open_ones.enter_context(held.open("r+"))
        fcntl.flock(lock, fcntl.LOCK_EX)
        fcntl.lockf(lock, fcntl.LOCK_EX)
        yield folder


@contextmanager
def services_of_the_machine() -> Iterator[Path]:
    """The same where sides see the machine's own folders."""
    with tempfile.TemporaryDirectory(dir="/srv" if os.access("/srv", os.W_OK) else Path.home()) as folder:
        Path(folder).chmod(0o755)
        with services(Path(folder)):
            yield Path(folder)


@contextmanager
def real_time_for_all() -> Iterator[None]:
    """Lets every user have a real-time class, as some do for the emulator, if this one may give it."""
    before = resource.getrlimit(resource.RLIMIT_RTPRIO)
    # Root of a container may not.
    with suppress(ValueError):
        resource.setrlimit(resource.RLIMIT_RTPRIO, (5, 5))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_RTPRIO, before)


@pytest.fixture(scope="module")
def intrusion(resident: Person) -> tuple[Person, dict[str, Any], dict[str, Any]]:
    """A trial with a player that tries everything: what it found."""
    shutil.copy(PROGRAMS / "intruder.py", resident.home)
    (resident.home / ".bashrc").touch()
    # Who runs it may write there.
    for path in (resident.home / ".bashrc", resident.home):
        path.chmod(0o777 if path.is_dir() else 0o666)
    with services_of_the_machine() as folder, services(resident.home):
        intrude = f"sh -c 'sleep 1; {FETCH}; python3 intruder.py {MARK} {resident.home} {folder}'"
        text = scenario(
            flow("mine", intrude) + "\n" + flow("rival", f"sh -c '{FETCH}; sleep 60'"), until="5 s"
        )
        with real_time_for_all():
            logs, trial = logs_of(resident, text, "intrusion")
    said = (logs / "mine-player-stdout.log").read_text(encoding="utf-8")
    return resident, json.loads(said), trial


Intrusion = tuple[Person, dict[str, Any], dict[str, Any]]


def test_the_machine_is_as_it_was(intrusion: Intrusion) -> None:
    person, found, _ = intrusion
    assert all(answer.startswith("refused") for answer in found["writes"].values()), found["writes"]
    assert (person.home / ".bashrc").read_text() == ""
    assert all(answer.startswith("done") for answer in found["own"].values()), found["own"]
    assert not [folder for folder in ("/tmp", "/var/tmp", "/dev/shm") if (Path(folder) / MARK).exists()]


def test_services_and_locks_of_the_machine_are_out_of_reach(intrusion: Intrusion) -> None:
    _, found, _ = intrusion
    assert all(answer.startswith("refused") for answer in found["services"].values()), found["services"]
    for folder, answers in found["locks"].items():
        assert set(answers.values()) == {"done: None"}, (folder, answers)


def test_the_machines_devices_and_classes_are_out_of_reach(intrusion: Intrusion) -> None:
    _, found, _ = intrusion
    assert set(found["devices"]) == {
        "fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty",
        "urandom", "zero",
    } | ({"dri"} if Path("/dev/dri").exists() else set())  # fmt: skip
    assert found["a device of its own"].startswith("refused")
    assert found["class"] == "refused: Operation not permitted"


def test_no_ipc_is_left(intrusion: Intrusion) -> None:
    _, found, _ = intrusion
    assert all(answer.startswith("done") for answer in found["ipc"].values()), found["ipc"]
    for kind in ("shm", "msg"):
        rows = Path(f"/proc/sysvipc/{kind}").read_text(encoding="ascii").splitlines()[1:]
        assert not [row for row in rows if int(row.split()[0]) == 0x5347]
    assert not (Path("/dev/mqueue") / MARK).exists()


def test_what_a_player_leaves_behind_ends_with_its_trial(intrusion: Intrusion) -> None:
    _, found, _ = intrusion
    assert found["left"] > 1
    lines = [one / "cmdline" for one in Path("/proc").iterdir() if one.name.isdigit()]
    assert not [line for line in lines if line.exists() and LEFT in line.read_bytes()]


def test_no_process_of_another_is_in_reach(intrusion: Intrusion) -> None:
    _, found, _ = intrusion
    (first,) = found["processes"]
    assert first == "1" and " sides " in found["processes"]["1"], found["processes"]
    assert found["reach"].pop("kill_others") == ["refused: No such process"]
    assert all(answer.startswith("refused") for answer in found["reach"].values()), found["reach"]


def test_another_flows_folders_are_not_there(intrusion: Intrusion) -> None:
    _, found, trial = intrusion
    assert found["flows"] == ["0"]
    assert not (Path(trial["directory"]) / "logs" / "rival-player-events.jsonl").exists()


def test_nothing_is_sent_as_another_flow_or_to_one(intrusion: Intrusion) -> None:
    _, found, trial = intrusion
    assert all(answer.startswith("refused") for answer in found["network"].values()), found["network"]
    # The kernel takes them, and finds nobody at that address.
    assert found["past its routes"].pop("with the rival's address").startswith("refused")
    assert all(answer.startswith(("refused", "done")) for answer in found["past its routes"].values())
    packets = Record.open(Path(trial["directory"])).packets
    assert set(packets["flow"].unique()) <= {"mine", "rival"}
    # A page over TCP each, and not one datagram.
    assert packets.filter(flow="rival")["connection"].null_count() == 0


def test_privileges_are_none_and_calls_that_no_player_needs_refused(intrusion: Intrusion) -> None:
    person, found, _ = intrusion
    assert found["status"] == {"CapEff": "0" * 16, "CapBnd": "0" * 16, "NoNewPrivs": "1", "Seccomp": "2"}
    assert found["uid"] > 0 and (person.way == "user") == (found["uid"] == 1000)
    assert set(found["calls"].values()) == {"refused: Operation not permitted"}, found["calls"]
    assert found["as 32 bits"] == -signal.SIGSYS


def test_a_process_does_not_lead_the_next_to_a_folder_of_the_machine(person: Person) -> None:
    """Logs are made with the rights of whoever runs StreamGauge."""
    victim = person.home / "victim"
    victim.mkdir()
    (victim / "stdout.log").write_text("precious")
    subprocess.run(["chown", "-R", f"{person.uid}:{person.uid}", victim], check=True)
    prepare = f"sh -c 'cd $STREAMGAUGE_OUT/..; mv main old; ln -s {victim} main; exit 0'"
    player = f'prepare: {{command: "{prepare}", ready: end}}'
    system = f"{{name: mine, player: {{{player}, main: sh -c 'echo x; sleep 60'}}, {SERVER}}}"
    logs, trial = logs_of(
        person, scenario(f"  mine: {{role: subject, system: {system}}}", until="4 s"), "led"
    )
    assert [file.name for file in victim.iterdir()] == ["stdout.log"]
    assert (victim / "stdout.log").read_text() == "precious"
    assert [why for why in trial["why"] if "its player replaced a file of its process main" in why]
    assert not [file for file in logs.iterdir() if "precious" in file.read_text(errors="replace")]


def test_what_a_scenario_sets_is_its_programs_alone(person: Person) -> None:
    """The loader of any program with these variables writes a file, with the rights of the program."""
    loader = person.home / "loader"
    text = flow("mine", f"sh -c '{FETCH}; echo $MARK'").replace(
        "system: {", f"system: {{env: {{LD_DEBUG: libs, LD_DEBUG_OUTPUT: {loader}, MARK: set}}, "
    )
    logs, _ = logs_of(person, scenario(text, until="4 s"), "set")
    # The loader's lines are there too: the player cannot write that file.
    assert (logs / "mine-player-stdout.log").read_text().splitlines()[-1] == "set"
    assert not list(person.home.glob("loader*"))


def test_what_a_command_names_in_tmp_it_finds_there(anyone: Person) -> None:
    """The scenario lies in /tmp here, and so does what it runs."""
    tool = anyone.home / "tools" / "tool.sh"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\ncat beside.txt $(dirname $0)/table\n", encoding="ascii")
    tool.chmod(0o755)
    (tool.parent / "table").write_text("table\n")
    (anyone.home / "beside.txt").write_text("beside\n")
    assert str(anyone.home).startswith("/tmp/")
    text = scenario(flow("web", f"sh -c '{FETCH}; {tool}'"), until="3 s")
    logs, _ = logs_of(anyone, text, "named")
    assert (logs / "web-player-stdout.log").read_text() == "beside\ntable\n"


BOMB = "import os, time\nwhile True:\n try: os.fork()\n except OSError: time.sleep(60)\n"
HOG = """
import os
asked = int(0.6 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
print(len(bytearray(asked)))
"""
FILLER = """
import os
with open(os.environ["STREAMGAUGE_OUT"] + "/big", "wb") as file:
    os.posix_fallocate(file.fileno(), 0, 5 << 30)
"""


SOCKETS = """
import resource, socket, time
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
kept = [socket.socketpair() for _ in range(9000)]
time.sleep(60)
"""


def test_who_takes_too_much_ends_its_trial_and_nothing_else(anyone: Person) -> None:
    for name, text in (("bomb", BOMB), ("hog", HOG), ("filler", FILLER), ("sockets", SOCKETS)):
        (anyone.home / f"{name}.py").write_text(text, encoding="ascii")
    players = {
        name: f"sh -c '{FETCH}; exec python3 {name}.py'" for name in ("bomb", "hog", "filler", "sockets")
    }
    text = scenario("\n".join(flow(name, player) for name, player in players.items()), until="6 s")
    _, trial = logs_of(anyone, text, "bounds")
    said = " ".join(trial["why"])
    assert not trial["valid"]
    assert "flow bomb: its player ran" in said and "processes and threads at once" in said, said
    assert "flow sockets: its player had 18" in said and "sockets at once (bound 16384)" in said, said
    assert "player of flow hog ended with status 1 (MemoryError)" in said, said
    assert "player of flow filler ended with status 1 (OSError: [Errno 27] File too large)" in said, said
