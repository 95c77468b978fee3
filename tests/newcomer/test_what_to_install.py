"""What to do about missing parts, in a checkout and where a wheel was installed."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import streamgauge
from hypothesis import given
from hypothesis import strategies as st
from stranger import CHECKOUT
from streamgauge.emu import doctor, remedy
from streamgauge.emu.doctor import COMMANDS, INTERNET, TOOLS, Finding, install_line, programs
from streamgauge.emu.engine import engine
from streamgauge.errors import CannotRunError
from streamgauge.scenario import Scenario

PACKAGE = CHECKOUT / "python" / "streamgauge"
KNOWN = (*TOOLS, *programs(), *COMMANDS, INTERNET)


def words(line: str | None) -> list[str]:
    """The packages that a line installs."""
    assert line is not None and "\n" not in line
    return re.findall(r"--no-install-recommends ((?:[\w.+-]+ ?)+)", line)[0].split()


@given(st.lists(st.tuples(st.sampled_from(KNOWN), st.booleans())))
def test_one_line_has_every_package_that_is_missing_once_and_no_other(
    seen: list[tuple[object, bool]],
) -> None:
    findings = [
        Finding(id=one.name, ok=ok, what="", packages=one.packages)  # type: ignore[attr-defined]
        for one, ok in seen
    ]
    missing = {name for one in findings if not one.ok for name in one.packages.split()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remedy.shutil, "which", lambda name: f"/usr/bin/{name}")
        line = install_line(findings)
        assert words(line) == sorted(missing) if missing else line is None
        # Not a Debian: its packages have other names, and each remedy says whose they are.
        patch.setattr(remedy.shutil, "which", lambda name: None)
        assert install_line(findings) is None


def test_a_server_that_is_only_a_program_here_does_not_stay_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remedy.shutil, "which", lambda name: f"/usr/bin/{name}")
    for booted in (True, False):
        monkeypatch.setattr(remedy.Path, "is_dir", lambda self, booted=booted: booted)
        line = remedy.install_line(["nginx-light"])
        assert line is not None and line.endswith("systemctl disable --now nginx") == booted
        line = remedy.install_line(["iperf3"])
        assert line is not None and "nginx" not in line


def test_doctor_ends_with_the_line(tmp_path: Path) -> None:
    """Where nothing is on PATH but apt-get."""
    (tmp_path / "apt-get").symlink_to("/bin/true")
    environment = {**os.environ, "PATH": str(tmp_path), "COLUMNS": "80"}
    command = [sys.executable, "-m", "streamgauge", "doctor"]

    def said(*options: str) -> str:
        return subprocess.run(
            [*command, *options], env=environment, capture_output=True, text=True, check=False
        ).stdout

    told = json.loads(said("--json"))
    assert {"ffmpeg", "iperf3", "mgen", "mpv"} <= set(words(told["install"]))
    before, last = said().splitlines()[-2:]
    assert last == f"    {told['install']}" and before.endswith("as root:")


def test_an_installed_copy_is_not_told_to_build_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert remedy.build() == "run `make setup`"
    installed = tmp_path / "lib" / "python3" / "site-packages" / "streamgauge"
    monkeypatch.setattr(streamgauge, "__file__", str(installed / "__init__.py"))
    monkeypatch.delenv("STREAMGAUGE_ENGINE", raising=False)
    with pytest.raises(CannotRunError, match=r"missing; install a wheel that was built for this machine"):
        engine()
    told = [f"{one.why} {one.remedy}" for one in (doctor._engine(), doctor._sandbox("user"))]
    assert all("wheel" in one and "make setup" not in one and ".venv" not in one for one in told)


def test_nobody_else_speaks_of_set_up() -> None:
    """Whoever is told to run it is asked first whether there is a checkout."""
    speak = {
        str(file.relative_to(PACKAGE))
        for file in PACKAGE.rglob("*.py")
        if re.search(r"make setup|\.venv", file.read_text("utf-8"))
    }
    assert speak == {"emu/remedy.py"}


def test_an_engine_that_does_not_start_is_told_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "streamgauge-engine"
    lacks = "error while loading shared libraries: libelf.so.1: cannot open shared object file"
    file.write_text(f'#!/bin/sh\necho "$0: {lacks}" >&2\nexit 127\n')
    file.chmod(0o755)
    monkeypatch.setenv("STREAMGAUGE_ENGINE", str(file))
    found = doctor._engine()
    assert not found.ok and found.needed and found.packages == "libelf1"
    assert lacks in found.why and str(file) not in found.why
    file.write_text("#!/bin/sh\necho 'version GLIBC_2.99 not found' >&2\nexit 1\n")
    found = doctor._engine()
    assert not found.ok and not found.packages and found.remedy == remedy.build()


def test_the_doctor_looks_for_what_the_catalogue_calls_by_name(catalogue: tuple[Scenario, ...]) -> None:
    names = {Path(one.name).name for one in KNOWN}
    called = set()
    for scenario in catalogue:
        for flow in scenario.normalised()["flows"].values():
            system = flow.get("system")
            if isinstance(system, dict):
                lines = (system.get("server"), system.get("player"))
                called |= {shlex.split(line)[0] for line in lines if isinstance(line, str)}
    assert called and called - {"streamgauge"} <= names


def test_the_page_shows_the_line_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remedy.shutil, "which", lambda name: f"/usr/bin/{name}")
    line = remedy.install_line(["ffmpeg", "ethtool"])
    assert f"    {line} ...\n" in (CHECKOUT / "docs" / "install.md").read_text(encoding="utf-8")


def test_every_package_of_the_line_is_one_that_set_up_installs() -> None:
    lists = (CHECKOUT / "scripts" / f"packages-{name}.txt" for name in ("debian", "players"))
    lines = [line for one in lists for line in one.read_text(encoding="utf-8").splitlines()]
    listed = {line for line in lines if line and not line.startswith("#")}
    named = {package for one in KNOWN for package in one.packages.split()}
    # Part of every Debian.
    assert named - listed == {"mount"}


@pytest.mark.skipif(os.geteuid() != 0, reason="root's way is root's")
def test_a_container_whose_root_lacks_something_is_told_what() -> None:
    """As `podman run` gives it: its root opens no packet sockets, which only a trial would find out."""

    def findings(*lacking: str) -> dict[str, dict[str, object]]:
        without = ",".join(f"-{name.lower()}" for name in lacking)
        command = ["setpriv", "--bounding-set", without, "--inh-caps", without, sys.executable]
        done = subprocess.run(
            [*command, "-m", "streamgauge", "doctor", "--json"], capture_output=True, text=True, check=False
        )
        return {one["id"]: one for one in json.loads(done.stdout)["findings"]}

    told = findings("NET_RAW")["sandbox.root"]
    assert not told["ok"] and "no CAP_NET_RAW)" in str(told["why"])
    assert "--cap-add NET_RAW" in str(told["remedy"])
    seen = findings("SYS_NICE", "IPC_LOCK")
    for id, capability in {"sched_fifo": "SYS_NICE", "mlock": "IPC_LOCK"}.items():
        assert not seen[id]["ok"] and f"--cap-add {capability}" in str(seen[id]["remedy"])
