"""The wheel: what is inside, and that an empty Debian runs it. Building takes minutes, so these are long."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
import streamgauge
from stranger import CHECKOUT

pytestmark = pytest.mark.long
BUILT = {"_native.abi3.so", "_bin/streamgauge-engine", "_bin/commit"}


@pytest.fixture(scope="module")
def wheel() -> Path:
    before = set((CHECKOUT / "dist").glob("*.whl"))
    done = subprocess.run(["make", "wheel"], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = re.search(r"^wheel: (dist/\S+\.whl) ", done.stdout, re.M)
    assert said is not None, done.stdout
    file = CHECKOUT / said[1]
    assert set((CHECKOUT / "dist").glob("*.whl")) - before <= {file}
    return file


@pytest.fixture(scope="module")
def inside(wheel: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(wheel)


def info(inside: zipfile.ZipFile, name: str) -> bytes:
    return inside.read(f"streamgauge-{streamgauge.__version__}.dist-info/{name}")


def tracked(folder: str) -> set[str]:
    """What git would commit of a folder, by paths from there."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", folder]
    listed = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    return {name.removeprefix(f"{folder}/") for name in listed.splitlines() if (CHECKOUT / name).exists()}


def test_the_package_is_inside_and_nothing_else(inside: zipfile.ZipFile) -> None:
    package = tracked("python/streamgauge") - {"catalogue"} | BUILT
    package |= {f"catalogue/{name}" for name in tracked("catalogue")}
    found = {name for name in inside.namelist() if ".dist-info/" not in name}
    assert found == {f"streamgauge/{name}" for name in package}
    engine = inside.getinfo("streamgauge/_bin/streamgauge-engine")
    assert engine.external_attr >> 16 & 0o777 == 0o755


def test_its_name_says_what_it_is_for(wheel: Path, inside: zipfile.ZipFile) -> None:
    version, machine = re.escape(streamgauge.__version__), os.uname().machine
    assert re.fullmatch(rf"streamgauge-{version}-cp311-abi3-manylinux_2_\d+_{machine}\.whl", wheel.name)
    metadata = info(inside, "METADATA").decode()
    assert f"\nVersion: {streamgauge.__version__}\n" in metadata
    assert "\nLicense-Expression: Apache-2.0\n" in metadata
    assert info(inside, "entry_points.txt").decode().split() == [
        "[console_scripts]",
        "streamgauge=streamgauge.cli:main",
    ]


def test_it_owes_nobody_a_notice(inside: zipfile.ZipFile) -> None:
    for name in ("LICENSE", "NOTICE"):
        assert info(inside, f"licenses/{name}") == (CHECKOUT / name).read_bytes()
    told = set(
        re.findall(r"^    (\S+) (\d\S*)$", info(inside, "licenses/NOTICE-third-party.txt").decode(), re.M)
    )
    rust = (CHECKOUT / ".venv" / ".rust-bin").read_text().strip()
    command = ["cargo", "tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "none"]
    command += ["--package", "streamgauge-engine", "--package", "streamgauge-python"]
    command += ["--features", "streamgauge-engine/bpf", "--format", "{p}"]
    environment = {**os.environ, "PATH": f"{rust}{os.pathsep}{os.environ['PATH']}"}
    tree = subprocess.run(
        command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=True
    ).stdout
    linked = {(name, version) for name, version in re.findall(r"^(\S+) v(\S+)", tree, re.M)}
    linked = {one for one in linked if not one[0].startswith("streamgauge-")}
    assert len(linked) > 50 and linked <= told


def test_no_folder_of_the_building_machine_is_named(inside: zipfile.ZipFile) -> None:
    for name in inside.namelist():
        held = inside.read(name)
        for folder in (CHECKOUT, Path.home() / ".cargo", Path.home() / ".rustup"):
            assert os.fsencode(folder) not in held, f"{name} names {folder}"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="built for aarch64 from x86-64")
def test_a_wheel_for_another_processor_gives_the_same_trials() -> None:
    made = subprocess.run(
        ["make", "wheel", "MACHINE=aarch64"], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    (name,) = re.findall(r"^wheel: (dist/streamgauge-\S+-manylinux_2_34_aarch64\.whl) ", made.stdout, re.M)
    engine = zipfile.ZipFile(CHECKOUT / name).read("streamgauge/_bin/streamgauge-engine")
    assert engine[:4] == b"\x7fELF" and engine[18] == 0xB7  # EM_AARCH64
    done = subprocess.run(
        ["scripts/try-foreign-wheel.sh", "aarch64", name],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "aarch64: that trial has the digest" in done.stdout and "all steps worked" in done.stdout


@pytest.mark.parametrize("suite", ["bookworm", "trixie"])
def test_an_empty_debian_runs_sim_at_once_and_emu_after_one_line(wheel: Path, suite: str) -> None:
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("needs root and debootstrap")
    done = subprocess.run(
        ["scripts/try-wheel.sh", suite, str(wheel)], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert f"try-wheel: {suite}: all steps worked" in done.stdout
    assert done.stdout.count("of video came through") == 3
    with Path("/proc/mounts").open(encoding="utf-8") as mounts:
        assert "streamgauge-try-" not in mounts.read()
