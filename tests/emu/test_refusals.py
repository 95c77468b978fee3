"""A trial that cannot be done says so, with the remedy; a full disk leaves nothing half done."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from driving import Person
from scenarios import FTP, rtsp, scenario


def _run(
    person: Person, text: str, *arguments: str, name: str = "scenario"
) -> subprocess.CompletedProcess[str]:
    file = person.scenario(text, name)
    return person.run("run", file, "--mode", "emu", "--seed", "1", "--out", str(person.out), *arguments)


def test_a_missing_program(person: Person) -> None:
    tools = person.home / "bin"
    tools.mkdir()
    for program in ("ip", "ethtool", "mount", "setpriv", "ss"):
        found = shutil.which(program)
        assert found
        (tools / program).symlink_to(found)
    person.environment["PATH"] = str(tools)
    done = _run(person, scenario(FTP))
    assert done.returncode == 4, done.stderr
    words = " ".join(done.stderr.split())
    assert "flow ftp: iperf3 is missing" in words and "apt-get install iperf3" in words


def test_a_missing_clip(person: Person) -> None:
    text = scenario(
        rtsp("gstreamer", "udp").replace("carphone-200k", "{file: /no/such.mp4, rate: 500 kbit/s}")
    )
    done = _run(person, text)
    assert done.returncode == 3, done.stderr
    assert "/no/such.mp4" in done.stderr


def test_a_congestion_control_that_the_kernel_lacks(person: Person) -> None:
    if "yeah" in Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text():
        pytest.skip("this kernel has it")
    done = _run(person, scenario(FTP.replace("reno", "yeah")))
    assert done.returncode == 4, done.stderr
    assert "modprobe tcp_yeah" in " ".join(done.stderr.split())


def test_no_user_namespaces(person: Person) -> None:
    if person.way == "root":
        pytest.skip("root's way needs none")
    file = person.scenario(scenario(FTP))
    python = person.checkout / ".venv/bin/python"
    script = f"""
        echo 0 > /proc/sys/user/max_user_namespaces
        exec {python} -m streamgauge run {file} --mode emu --way user --out {person.out}
    """
    command = ["unshare", "--user", "--map-root-user", "sh", "-ec", script]
    if os.geteuid() == 0:
        command = [
            "setpriv",
            "--reuid",
            str(person.uid),
            "--regid",
            str(person.uid),
            "--clear-groups",
            *command,
        ]
    environment = {**os.environ, "PYTHONPATH": str(person.checkout / "python"), "HOME": str(person.home)}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=person.home, timeout=60, check=False
    )
    assert done.returncode == 4, done.stderr
    assert "max_user_namespaces" in done.stderr


def test_the_way_of_root_without_root(person: Person) -> None:
    if person.way == "root":
        pytest.skip("root may")
    done = _run(person, scenario(FTP), "--way", "root")
    assert done.returncode == 4, done.stderr
    assert "needs root" in " ".join(done.stderr.split())


def test_a_full_disk(anyone: Person) -> None:
    """As anyone: what an ordinary user's trial leaves when it breaks, `test_kills` tells."""
    if os.geteuid() != 0:
        pytest.skip("making a small disk needs root")
    anyone.out.mkdir()
    options = f"size=256k,mode=755,uid={anyone.uid},gid={anyone.uid}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(anyone.out)], check=True)
    try:
        (anyone.out / "ballast").write_bytes(bytes(236 * 1024))
        done = _run(anyone, scenario(FTP, until="5 s"))
        assert done.returncode == 4, done.stderr
        words = " ".join(done.stderr.split())
        assert "No space left" in words and "free some space" in words
        left = [file.name for file in anyone.out.rglob("*") if file.is_file()]
        assert left == ["ballast"], left
    finally:
        subprocess.run(["umount", str(anyone.out)], check=True)


def test_two_at_once_take_turns(person: Person) -> None:
    began = time.monotonic()
    texts = [
        person.scenario(scenario(FTP, until="3 s").replace("test/short", f"test/{n}"), f"two-{n}")
        for n in "ab"
    ]
    runs = [
        person.popen("run", text, "--mode", "emu", "--seed", "1", "--out", str(person.out), "--json")
        for text in texts
    ]
    said = [run.communicate(timeout=400) for run in runs]
    assert time.monotonic() - began > 6
    for answer, _ in said:
        (trial,) = json.loads(answer)["trials"]
        assert trial["digest"], trial
    assert any("waiting for another emu trial" in " ".join(errors.split()) for _, errors in said), said
