"""Drives StreamGauge as a person does, by its command line, and sees that nothing is left afterwards."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from streamgauge.calibrate.run import stolen_s
from streamgauge.record import Record

CHECKOUT = Path(__file__).parent.parent.parent


THIEF = """
import os, time
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(90))
while True:
    while time.monotonic() % 0.06 < 0.03: pass
    time.sleep(0.06 - time.monotonic() % 0.06)
"""


@contextmanager
def a_thief_on_every_processor() -> Iterator[None]:
    """Takes it from the emulator, whose priority is lower, half of the time: what a busy hypervisor does.

    All at once, by the clock that they share: in turns they would leave it one to go to, unharmed.
    """
    thieves = [
        subprocess.Popen(["taskset", "-c", str(core), sys.executable, "-c", THIEF])
        for core in os.sched_getaffinity(0)
    ]
    try:
        yield
    finally:
        for one in thieves:
            one.kill()
            one.wait()


@dataclass
class Person:
    """Somebody who runs StreamGauge: root, or an ordinary user with a home of his own."""

    way: str
    home: Path
    uid: int
    checkout: Path = CHECKOUT
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def out(self) -> Path:
        return self.home / "runs"

    def _command(self, *arguments: str) -> list[str]:
        command = [str(self.checkout / ".venv/bin/python"), "-m", "streamgauge", *arguments]
        if self.uid != os.geteuid():
            become = ["setpriv", "--reuid", str(self.uid), "--regid", str(self.uid), "--clear-groups", "--"]
            return [*become, *command]
        return command

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "HOME": str(self.home),
            "STREAMGAUGE_CACHE": str(self.home / "cache"),
            "PYTHONPATH": str(self.checkout / "python"),
            **self.environment,
        }

    def popen(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self._command(*arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._environment(),
            cwd=self.home,
            # A person's terminal does not ignore Ctrl-C, whatever runs the tests does.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def run(self, *arguments: str, timeout: float = 400) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._command(*arguments),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=self._environment(),
            cwd=self.home,
            timeout=timeout,
            check=False,
        )

    def scenario(self, text: str, name: str = "scenario") -> str:
        file = self.home / f"{name}.yaml"
        file.write_text(text, encoding="utf-8")
        file.chmod(0o644)
        return str(file)

    def trials(
        self, text: str, *arguments: str, slow: Callable[[dict[str, Any]], list[str]] = lambda _: []
    ) -> list[dict[str, Any]]:
        """Runs a scenario, seed after seed, until a trial was not starved; the end tells which were.

        ``slow`` says of a valid trial what somebody else's programs, by the record, did too late to judge.
        """
        file, found = self.scenario(text), []
        for seed in range(1, MOST_TRIALS + 1):
            stolen = Stolen()
            done = self.run(
                "run",
                file,
                "--mode",
                "emu",
                "--seed",
                str(seed),
                "--out",
                str(self.out),
                "--json",
                *arguments,
            )
            assert done.stdout, f"status {done.returncode}: {done.stderr}"
            (trial,) = json.loads(done.stdout)["trials"]
            trial["stolen_share"] = stolen.share()
            if trial["valid"] and (late := slow(trial)):
                trial |= {"valid": False, "why": late}
            found.append(trial)
            if not starved(trial):
                break
            tell_starved(trial, self.way)
        return found

    def simulated(self, text: str, repeat: int = 1) -> list[dict[str, Any]]:
        """The same scenario's trials in virtual time, all of them valid."""
        out = self.out.parent / "simulated"
        words = ["run", self.scenario(text), "--mode", "sim", "--repeat", str(repeat), "--out", str(out)]
        done = self.run(*words, "--json")
        assert done.stdout, f"status {done.returncode}: {done.stderr}"
        trials = json.loads(done.stdout)["trials"]
        assert len(trials) == repeat and all(trial["valid"] for trial in trials)
        return list(trials)

    def trials_together(self, texts: Mapping[str, str], *arguments: str) -> dict[str, list[dict[str, Any]]]:
        """Runs scenarios side by side, by name, and those again that were starved, fewer at once each time.

        The trials of each, as from `trials`.
        """
        files = {name: self.scenario(_named(text, name), name) for name, text in texts.items()}
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in files}
        left = dict(files)
        for seed in range(1, MOST_TRIALS + 1):
            jobs = max(AT_ONCE + 1 - seed, 1)
            words = ["run", *left.values(), "--mode", "emu", "--seed", str(seed), "--jobs", str(jobs)]
            stolen = Stolen()
            done = self.run(*words, "--out", str(self.out), "--json", *arguments)
            assert done.stdout, f"status {done.returncode}: {done.stderr}"
            for trial in json.loads(done.stdout)["trials"]:
                trial["stolen_share"] = stolen.share()
                name = trial["scenario"].removeprefix("test/")
                found[name].append(trial)
                if starved(trial):
                    tell_starved(trial, self.way)
                else:
                    del left[name]
            if not left:
                break
        return found


def _named(text: str, name: str) -> str:
    named, count = re.subn(r"^id: test/.*$", f"id: test/{name}", text, flags=re.MULTILINE)
    assert count == 1
    return named


_SIDE_BY_SIDE: dict[str, str] = {}

Beside = Callable[[str], dict[str, Any]]
"""The fixture `beside`."""


def side_by_side(text: str) -> str:
    """Has the fixture `beside` run the scenario together with all others that were given here: our own
    machines alone, on slow paths. Returns its name there: its id without ``test/``."""
    (name,) = re.findall(r"^id: test/(.*)$", text, flags=re.MULTILINE)
    _SIDE_BY_SIDE[name] = text
    return str(name)


def all_side_by_side() -> Mapping[str, str]:
    """What was given to `side_by_side`, by name."""
    return dict(_SIDE_BY_SIDE)


AT_ONCE = 3
"""Trials that tests run side by side. Their paths are slow, and the bounds of the verdict wide."""

MOST_TRIALS = 8
"""Seeds that a test may try on a machine that is short of processor time."""

STARVED: list[str] = []
"""Trials of this session that were invalid for want of the processor, in words; told at its end."""

UNUSUAL: list[str] = []
"""Valid trials that a comparison of chances found unlike others, in words, and another was asked; told at the
end too."""

_WORDS_OF_WANT = (
    "departures",
    "late",
    "processor was short",
    "reached the ends",
    "pre-flight",
    "off its time",
)


def events(trial: dict[str, Any], *names: str) -> list[dict[str, Any]]:
    """The rows of those events in a trial's record, in order; of all, where no name is given."""
    rows = Record.open(Path(trial["directory"])).events.iter_rows(named=True)
    return [row for row in rows if not names or row["name"] in names]


def said(trial: dict[str, Any], name: str) -> list[float]:
    """The values of that event, in order."""
    return [row["value"] for row in events(trial, name)]


def starved(trial: dict[str, Any]) -> bool:
    """It is invalid, and for nothing but what a busy machine does to it."""
    return not trial["valid"] and all(any(word in why for word in _WORDS_OF_WANT) for why in trial["why"])


def tell_starved(trial: dict[str, Any], who: str) -> None:
    """Keeps it for the end of the session. ``trial`` has "scenario", "seed", "why"."""
    STARVED.append(f"{trial['scenario']} as {who}, seed {trial['seed']}: {'; '.join(trial['why'])}")


def tell_unusual(words: str) -> None:
    """Keeps it for the end of the session."""
    UNUSUAL.append(words)


def the_valid_one(trials: list[dict[str, Any]]) -> dict[str, Any]:
    """The last trial, which is valid; fails, with all verdicts, if it is not, and skips the test, loudly, if
    there was nothing to see."""
    skip_without_processor(trials)
    assert trials[-1]["valid"], [trial["why"] for trial in trials]
    return trials[-1]


def skip_without_processor(trials: list[dict[str, Any]]) -> None:
    """Skips the test if every trial was starved while by the kernel's own account tasks waited for a
    processor for most of it (PSI), or the hypervisor kept the processors for longer than departures may be
    late: on such a machine there is nothing to see."""
    if all(starved(trial) and _pressed(trial) for trial in trials):
        pytest.skip(f"no processor for {len(trials)} trials: {trials[-1]['why']}")


PRESSED = 0.6
"""Share of a trial in which tasks waited for a processor, from which on the machine is not fit to judge."""

STOLEN = 0.001
"""Share of a run's time that the hypervisor kept, likewise: as much as a verdict allows to be late."""


class Stolen:
    """What the hypervisor keeps of a processor's time from now on, the mean of all."""

    def __init__(self) -> None:
        self._began, self._before = time.monotonic(), stolen_s()

    def share(self) -> float:
        """Of the time since then."""
        return (stolen_s() - self._before) / (time.monotonic() - self._began) / (os.cpu_count() or 1)


def _pressed(trial: dict[str, Any]) -> bool:
    if trial.get("stolen_share", 0.0) > STOLEN:
        return True
    file = Path(trial["directory"]) / "trial.json"
    if not file.is_file():
        return False
    found = json.loads(file.read_text(encoding="utf-8"))
    waited = found["validity"]["measured"].get("cpu_pressure_s")
    return waited is not None and waited > PRESSED * found["duration_s"]


# --- what runs, and that it is gone ---


def children(pid: int) -> list[int]:
    """All descendants of a process."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                # The command's name may hold spaces: what follows its closing bracket does not.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, todo = [], [pid]
    while todo:
        below = parents.get(todo.pop(), [])
        found += below
        todo += below
    return found


def command_line(pid: int) -> str:
    with suppress(OSError):
        return (
            (Path("/proc") / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
    return ""


def inner_pid(pid: int) -> int:
    """The process's number in the innermost pid namespace."""
    with suppress(OSError):
        for line in (Path("/proc") / str(pid) / "status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    return 0


def started_s(pid: int) -> float:
    """When a process was started, s since boot."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return float("inf")


def namespaces(pid: int) -> set[str]:
    found = set()
    for kind in ("pid", "net"):
        with suppress(OSError):
            found.add(str(Path(f"/proc/{pid}/ns/{kind}").readlink()))
    return found


@dataclass
class Watched:
    """A command line at work, and everything it has started."""

    popen: subprocess.Popen[str]
    seen: dict[int, str] = field(default_factory=dict)
    spaces: set[str] = field(default_factory=set)
    looked: float = 0.0

    def look(self) -> None:
        self.looked = time.clock_gettime(time.CLOCK_BOOTTIME)
        ours = namespaces(os.getpid())
        for pid in children(self.popen.pid):
            self.seen[pid] = command_line(pid) or self.seen.get(pid, "")
            self.spaces |= namespaces(pid) - ours

    def find(self, which: str) -> int:
        """Waits until the process is there and returns its number."""
        # Long enough to wait for somebody else's trial to end.
        until = time.monotonic() + 300
        while time.monotonic() < until:
            self.look()
            for pid, line in self.seen.items():
                if PARTS[which](pid, line) and Path(f"/proc/{pid}").exists():
                    return pid
            if self.popen.poll() is not None:
                said = self.popen.communicate()
                pytest.fail(f"the run ended ({self.popen.returncode}) before there was a {which}: {said}")
            time.sleep(0.02)
        pytest.fail(f"no {which} among {self.seen}")

    def assert_gone(self, within_s: float = 15.0) -> None:
        """No process of it, and none in its namespaces, is left."""
        until = time.monotonic() + within_s
        while True:
            left = {
                int(entry.name): command_line(int(entry.name))
                for entry in Path("/proc").iterdir()
                if entry.name.isdigit()
                # The kernel gives numbers of namespaces anew: what is younger is somebody else's.
                and namespaces(int(entry.name)) & self.spaces
                and started_s(int(entry.name)) < self.looked
            }
            if not left:
                break
            assert time.monotonic() < until, f"still running: {left}"
            time.sleep(0.05)
        links = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=True).stdout
        assert "eth0@server" not in links and "cross@" not in links
        assert self.spaces, "never saw a sandbox"


PARTS: dict[str, Callable[[int, str], bool]] = {
    "worker": lambda pid, line: "-m streamgauge.emu.worker" in line and " sandbox --way " not in line,
    "emulator": lambda pid, line: " link --config " in line and " run-as " not in line,
    "loader": lambda pid, line: " bpf-cc vegas " in line and " sandbox " not in line,
    "sandbox": lambda pid, line: " sandbox --way " in line and inner_pid(pid) == pid,
    "init": lambda pid, line: inner_pid(pid) == 1,
    "player": lambda pid, line: line.startswith("iperf3 --client"),
    "server": lambda pid, line: line.startswith("iperf3 --server"),
    "packager": lambda pid, line: line.startswith("sleep 987651"),
    "origin": lambda pid, line: line.startswith("python3 -u -m http.server"),
    "relay": lambda pid, line: " node --config " in line and "/relay/" in line and " run-as " not in line,
}


def end(popen: subprocess.Popen[str]) -> None:
    """Leaves nothing of a test behind."""
    if popen.poll() is None:
        popen.send_signal(signal.SIGKILL)
    popen.communicate()
