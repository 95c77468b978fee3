"""Somebody's programs crash, hang on, litter and talk nonsense: each is told in one clear sentence, or harms
nothing, and nothing stays."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from driving import Person, command_line, the_valid_one
from scenarios import scenario

# Links are interfaces of this machine.
pytestmark = [pytest.mark.emu, pytest.mark.xdist_group("machine")]

READY = "open(os.environ['STREAMGAUGE_READY'], 'w').close()"
LEFT_BEHIND = "987654"
"""Seconds that a child sleeps: nobody else does so for as long."""


def _flow(name: str, *, server: str = f"{READY}; time.sleep(60)", player: str = "time.sleep(60)") -> str:
    """A flow of two Python programs, which send nothing."""
    words = "import os, signal, subprocess, sys, time"
    lines = [f"  {name}:", "    role: subject", "    system:"]
    lines += [f"      {side}: |-\n        python3 -c \"{words}; {program}\"" for side, program in
              (("server", server), ("player", player))]  # fmt: skip
    return "\n".join(lines)


DYING = {
    "crashed": _flow("crashed", server=f"{READY}; time.sleep(1.5); os.kill(os.getpid(), signal.SIGSEGV)"),
    "gave_up": _flow("gave_up", server=f"{READY}; time.sleep(1.5); sys.exit('no more frames')"),
    "killed": _flow("killed", player="time.sleep(0.5); os.kill(os.getpid(), signal.SIGKILL)"),
    "nonsense": _flow(
        "nonsense",
        player="e = open(os.environ['STREAMGAUGE_EVENTS'], 'w'); "
        "e.write('{broken' + chr(10) + '{}' + chr(10)); e.flush(); time.sleep(60)",
    ),
}
SAID = {
    "crashed": "the server of flow crashed was killed by SIGSEGV, ",
    "gave_up": "the server of flow gave_up ended with status 1 (no more frames), ",
    "killed": "the player of flow killed was killed by SIGKILL, ",
    "nonsense": "flow nonsense: nonsense-player-events.jsonl:1: not JSON",
}
UNTIDY = {
    "stubborn": _flow("stubborn", player="signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)"),
    "litters": _flow(
        "litters",
        player=f"subprocess.Popen(['sleep', '{LEFT_BEHIND}'], start_new_session=True); "
        f"subprocess.Popen(['sleep', '{LEFT_BEHIND}']); time.sleep(60)",
    ),
    "chatty": _flow(
        "chatty",
        player="line = 'x' * 999 + chr(10); [sys.stdout.write(line * 1000) for _ in range(100)]; "
        "sys.stderr.write(line * 1000); time.sleep(60)",
    ),
}


def _run(person: Person, text: str, name: str) -> subprocess.CompletedProcess[str]:
    file = person.scenario(text, name)
    return person.run("run", file, "--mode", "emu", "--seed", "1", "--out", str(person.home / name), "--json")


def _assert_nothing_left() -> None:
    sleeping = [
        pid
        for pid in Path("/proc").iterdir()
        if pid.name.isdigit() and LEFT_BEHIND in command_line(int(pid.name))
    ]
    assert not sleeping
    links = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=True).stdout
    assert "eth0@server" not in links


def test_each_program_that_dies_is_named_once(anybody: Person) -> None:
    done = _run(anybody, scenario("\n".join(DYING.values()), until="3 s"), "dying")
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    (trial,) = json.loads(done.stdout)["trials"]
    for name, said in SAID.items():
        assert sum(why.startswith(said) for why in trial["why"]) == 1, trial["why"]
        of_it = [why for why in trial["why"] if f"flow {name}" in why and "processor" not in why]
        assert len(of_it) == (2 if name == "nonsense" else 1), "nothing else follows from it"
    logs = Path(trial["directory"]) / "logs"
    assert (logs / "gave_up-server-stderr.log").read_text() == "no more frames\n"
    assert (logs / "nonsense-player-events.jsonl").is_file()
    _assert_nothing_left()


HOSTILE = """
import os, signal, subprocess
os.chdir(os.environ["STREAMGAUGE_OUT"])
open("n" * 245, "w").write("long name")
open("two" + chr(10) + "lines", "w").write("odd name")
open(bytes([255, 254]), "w").write("no characters")
os.mkfifo("pipe")
open("holes", "w").truncate(60 << 20)
with open(os.environ["STREAMGAUGE_EVENTS"], "wb") as events:
    for line in LINES:
        events.write(line + bytes([10]))
os.remove("stderr.log")
os.symlink(SECRET, "stderr.log")
os.kill(os.getpid(), 40)
"""
LINES = [
    b'{"t_s": -1e300, "name": "stall"}',
    b'{"t_s": 0.5, "name": "frame_shown", "value": 1e300}',
    b'{"t_s": 0.5, "name": "level_changed", "value": -1e308}',
    b'{"t_s": 0.5, "name": "x", "value": NaN}',
    b"[" * 5000,
    b"x" * 10_000_000,
    b"\x00\xff",
]


def test_a_record_outlives_what_its_programs_leave(anybody: Person) -> None:
    """Names, links, pipes, lines, an end by a signal without a name: each once lost the record."""
    secret = anybody.home / "secret"
    secret.write_text("read-through-a-link")
    program = anybody.home / "hostile.py"
    lines = ", ".join(f"{line[:1]!r} * {len(line)}" if len(set(line)) == 1 else repr(line) for line in LINES)
    text = HOSTILE.replace("LINES", f"[{lines}]").replace("SECRET", repr(str(secret)))
    program.write_text(text)
    program.chmod(0o644)
    flow = f"""
  web:
    role: subject
    system:
      server: sh -c 'touch $STREAMGAUGE_READY; sleep 60'
      player: [{{name: hostile, command: python3 $STREAMGAUGE_HELPERS/hostile.py, helpers: [{program}]}}]"""
    done = _run(anybody, scenario(flow, until="2 s"), "hostile")
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    assert "read-through-a-link" not in done.stdout + done.stderr
    (trial,) = json.loads(done.stdout)["trials"]
    why = "; ".join(trial["why"])
    assert "was killed by signal 40 (stderr.log is a symbolic link, which is not followed)" in why
    assert "web-player-hostile-events.jsonl:1: its time is -1" in why
    assert "web-player-hostile-events.jsonl:3: value -1e+308" in why and "is too large" in why
    record = Path(trial["directory"])
    told = (record / "logs" / "left-out.txt").read_text()
    assert told.splitlines() == json.loads((record / "provenance.json").read_text())["log_remarks"]
    assert told.count(" is kept as ") == 3 and told.count("; it is left out") == 3
    kept = {file.read_text(errors="replace") for file in (record / "logs").iterdir()}
    assert {"long name", "odd name", "no characters"} <= kept
    assert not any("read-through-a-link" in text for text in kept)


def test_untidy_programs_harm_nothing(anybody: Person) -> None:
    trial = the_valid_one(anybody.trials(scenario("\n".join(UNTIDY.values()), until="3 s")))
    logs = Path(trial["directory"]) / "logs"
    assert (logs / "chatty-player-stdout.log").stat().st_size == 20_000_000
    _assert_nothing_left()


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "was killed by SIGSEGV before the trial began"),
        (
            "print('no such codec', file=sys.stderr); sys.exit(3)",
            "ended with status 3 (no such codec) before",
        ),
    ],
)
def test_a_server_that_dies_at_once_is_told_before_it(anybody: Person, program: str, said: str) -> None:
    done = _run(anybody, scenario(_flow("media", server=program), until="3 s"), f"at-once-{len(program)}")
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    (trial,) = json.loads(done.stdout)["trials"]
    (why,) = trial["why"]
    assert f"the server of flow media {said}" in why
    _assert_nothing_left()
