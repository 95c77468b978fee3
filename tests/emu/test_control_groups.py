"""Control groups bound all processes of a side together, and what the kernel keeps for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from driving import Person
from scenarios import scenario
from test_sides import FETCH, flow, logs_of

IN_A_SANDBOX = """
import os, subprocess, sys
from pathlib import Path
from streamgauge.emu.control_groups import ControlGroups
at = Path(sys.argv[1])
groups = ControlGroups.make(["one", "other"], {"pids": 40, "memory": 64 << 20}, at)
if not groups.of:
    sys.exit(77)
assert len(groups.of["one"]) in (1, 2)
for what in sys.argv[2:]:
    command = [*groups.entering("one"), sys.executable, "-c", what]
    done = subprocess.run(command)
    print(done.returncode, groups.has_killed("one"), groups.has_killed("other"))
    for pid in (groups.of["one"][0] / "cgroup.procs").read_text().split():
        os.kill(int(pid), 9)
groups.end()
print([one for folders in groups.of.values() for one in folders if one.is_dir()])
"""
PIPES = """
import os, resource, time
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
for _ in range(30):
    if os.fork() == 0:
        for _ in range(min(most, 4000) // 2 - 10):
            os.write(os.pipe()[1], bytes(4096))
        time.sleep(60)
        os._exit(0)
os.wait()
os.kill(os.getpid(), 9)
"""
"""200 MB and more that are in no process and in no file."""
FORKS = """
import os, time
made = 0
try:
    for made in range(100):
        if os.fork() == 0:
            time.sleep(1)
            os._exit(0)
except OSError:
    for _ in range(made):
        os.wait()
    os._exit(made)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make control groups")
def test_a_group_bounds_pipes_and_processes(tmp_path: Path) -> None:
    command = ["unshare", "--mount", sys.executable, "-c", IN_A_SANDBOX, str(tmp_path), FORKS, PIPES]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode == 77:
        pytest.skip("this machine has no control groups of processes and memory")
    forks, pipes, left = done.stdout.splitlines()
    assert forks == "39 False False", done
    status, *killed = pipes.split()
    assert killed == ["True", "False"] and int(status) == -9, done
    assert left == "[]"


def test_a_player_is_in_the_group_of_its_side(anyone: Person) -> None:
    text = scenario(flow("web", f"sh -c '{FETCH}; cat /proc/self/cgroup; sleep 60'"), until="3 s")
    logs, _ = logs_of(anyone, text, "grouped")
    said = (logs / "web-player-stdout.log").read_text(encoding="utf-8").splitlines()
    with_groups = any(line.split(":")[1] == "pids" for line in said)
    if anyone.way == "root" and with_groups:
        for controller in ("pids", "memory"):
            (line,) = [line for line in said if controller in line.split(":")[1].split(",")]
            assert "/streamgauge-" in line and line.endswith("-0-player"), said
    left = [one for one in Path("/sys/fs/cgroup").glob("*/**/streamgauge-*") if one.name.endswith("-player")]
    mine = {line.rpartition("/")[2] for line in said}
    assert not [one for one in left if one.name in mine]
