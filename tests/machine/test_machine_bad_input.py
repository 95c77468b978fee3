"""Whatever stands in a virtual machine's way is one clear error, before anything starts."""

from __future__ import annotations

import json
import platform
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from streamgauge.cli import main
from streamgauge.emu.machine import image as image_module
from streamgauge.emu.machine import qemu, virtual
from streamgauge.emu.machine.image import BUILDERS, Image, build, find_image, machines_folder
from streamgauge.emu.machine.kept import kept
from streamgauge.emu.machine.virtual import VirtualMachine, check_room, why_not
from streamgauge.emu.options import EmuOptions, Virtual
from streamgauge.errors import CannotRunError
from streamgauge.scenario import find
from streamgauge.scenario.lower import lower


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test sees what is kept, or leaves something there."""
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def program(folder: Path, name: str, says: str = "") -> None:
    """A program that says something."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\necho '{says}'\n", encoding="ascii")
    (folder / name).chmod(0o755)


def an_image(folder: Path, **more: Any) -> Image:
    """One that knows what is in it and nothing else."""
    made = Image(
        folder=folder,
        digest="0",
        kernel_release="6.1",
        packages={},
        programs=frozenset({"iperf3", "mgen", "python3"}),
        controls=("reno", "cubic"),
    )
    return replace(made, **more)


def test_no_qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    why = why_not()
    assert why is not None
    assert "apt-get install qemu-system-x86" in why


@pytest.mark.parametrize("says", ["QEMU emulator version 5.2.0 (Debian)", "something else"])
def test_another_qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str) -> None:
    program(tmp_path / "bin", qemu.PROGRAM, says)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    with pytest.raises(CannotRunError, match=r"7\.2 or later|prints no version that can be read"):
        qemu.version()


def test_another_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(CannotRunError, match=r"aarch64.*--machine host or --mode sim"):
        build(lambda line: None)
    assert "aarch64" in str(why_not())


@pytest.mark.parametrize("missing", BUILDERS)
def test_a_builders_program_is_missing(monkeypatch: pytest.MonkeyPatch, cache: Path, missing: str) -> None:
    real = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, **more: None if name == missing else real(name, **more))
    monkeypatch.setattr(
        image_module, "BUILDERS", {missing: BUILDERS[missing]}
    )  # whatever else this machine lacks
    with pytest.raises(CannotRunError, match=f"{missing} is missing; .*{BUILDERS[missing]}"):
        build(lambda line: None)
    assert not cache.exists()


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    class Usage(NamedTuple):
        free: int

    monkeypatch.setattr(image_module, "BUILDERS", {})
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Usage(10**9))
    with pytest.raises(CannotRunError, match=r"takes 3 GB and 1\.0 GB are free.*STREAMGAUGE_CACHE"):
        build(lambda line: None)
    assert [one.name for one in (cache / "machine").iterdir()] == ["lock"]


def test_a_disk_that_fills_while_it_is_built(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    def filling(work: Path, say: Any) -> Path:
        (work / "half").write_text("half", encoding="ascii")
        raise OSError(28, "No space left on device", str(work / "half"))

    monkeypatch.setattr(image_module, "BUILDERS", {})
    monkeypatch.setattr(image_module, "_make", filling)
    with pytest.raises(CannotRunError, match="No space left on device; free some space"):
        build(lambda line: None)
    assert [one.name for one in (cache / "machine").iterdir()] == ["lock"]


def test_what_a_killed_builder_left_goes(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    left = cache / "machine" / "building-999999999-x"
    left.mkdir(parents=True)
    monkeypatch.setattr(image_module, "BUILDERS", {})
    monkeypatch.setattr(image_module, "_make", lambda work, say: (_ for _ in ()).throw(CannotRunError("no.")))
    with pytest.raises(CannotRunError):
        build(lambda line: None)
    assert not left.exists()


def written(cache: Path) -> Path:
    """An image's folder, as far as it is looked at."""
    return written_at(cache / "machine" / f"image-{image_module._recipe_digest()}")


def written_at(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "root.erofs").write_bytes(bytes(100))
    data = {
        "digest": "d",
        "kernel_release": "6.1",
        "packages": {},
        "programs": [],
        "controls": [],
        "lengths": {"root.erofs": 100},
    }
    (folder / "image.json").write_text(json.dumps(data), encoding="utf-8")
    return folder


def test_of_two_builders_one_builds(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """The second finds what the first has made, whose guests may run from it already."""
    both_there, made = threading.Barrier(2, timeout=30), []

    def make(work: Path, say: Any) -> Path:
        made.append(work)
        return written_at(work / "made")

    class Usage(NamedTuple):
        free: int

    def ready(home: Path) -> Any:
        both_there.wait()
        return begun(home)

    begun = image_module._work_folder
    monkeypatch.setattr(image_module, "BUILDERS", {})
    monkeypatch.setattr(image_module, "_make", make)
    monkeypatch.setattr(image_module, "_work_folder", ready)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Usage(10**10))
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda _: build(lambda line: None), range(2))
    assert one == other == find_image()
    assert len(made) == 1


def test_an_image_half_built_is_none(cache: Path) -> None:
    folder = written(cache)
    (folder / "image.json").unlink()
    assert find_image() is None
    assert [one.what for one in kept()] == ["an image that cannot be read"]


def test_an_altered_image(cache: Path) -> None:
    folder = written(cache)
    assert find_image() is not None
    (folder / "root.erofs").write_bytes(bytes(99))
    with pytest.raises(CannotRunError, match=r"was altered; .*machine build --again"):
        find_image()
    (folder / "image.json").write_text("{", encoding="ascii")
    with pytest.raises(CannotRunError, match=r"cannot be read.*--again"):
        find_image()


@pytest.mark.parametrize("asked", ["virtual:3", "virtual:fast"])
def test_no_such_speed(asked: str) -> None:
    with pytest.raises(CannotRunError, match="it is 1, 2, 4"):
        Virtual.of(asked)


def rated(rate: Any) -> dict[str, Any]:
    return {"path": {"down": [{"name": "bottleneck", "kind": {"bottleneck": {"rate": rate}}}], "up": []}}


@pytest.mark.parametrize(
    ("rate", "speed"),
    [
        ({"constant": 1_000_000}, 1),
        ({"constant": 20_000_000}, 1),
        ({"steps": [[0, 1_000_000], [10**9, 100_000_000]]}, 2),
        ({"square": {"first": 100_000, "second": 1_600_000, "period": 4 * 10**10}}, 1),
        ({"trace": {}}, 2),
        ({"constant": 1_000_000_000}, 4),
    ],
)
def test_the_speed_follows_the_paths_rate(rate: Any, speed: int) -> None:
    assert Virtual().speed_for(rated(rate)) == speed
    assert Virtual(4).speed_for(rated(rate)) == 4


def test_a_lossy_wire_has_the_least_speed() -> None:
    assert Virtual().speed_for({"path": {"down": [{"name": "wire", "kind": {"delay": {}}}], "up": []}}) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--machine", "moon"], "there is host, and virtual"),
        (["--machine", "virtual", "--way", "root"], "remove --way"),
        (["--machine", "virtual", "--mode", "sim"], "--mode is sim"),
        (["--machine", "virtual:3"], "it is 1, 2, 4"),
        (["--machine", "virtual", "--jobs", "10000"], "--jobs at most"),
    ],
)
def test_options_that_do_not_go_together(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status = main(["run", "hessler/ftp-no", "--out", str(tmp_path / "runs"), *options])
    assert status in (3, 4)
    error = capsys.readouterr().err
    assert said in " ".join(error.split())
    assert "Traceback" not in error
    assert not (tmp_path / "runs").exists()


def test_guests_that_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual, "_free_bytes", lambda: 24 << 30)
    check_room(7)
    with pytest.raises(CannotRunError, match=r"20 virtual machines .* --jobs at most \d"):
        check_room(20)


def checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, *settings: str, **image: Any) -> None:
    """Whether a guest with that image can run a scenario: CannotRunError if not."""
    from streamgauge.emu.trial_setup import flow_setups

    class Snapshot(NamedTuple):
        image: Image

    made = an_image(tmp_path, **image)
    monkeypatch.setattr(virtual, "_snapshot_of", lambda speed, say: Snapshot(made))
    scenario = find([name], settings=settings)[0]
    plan = lower(scenario, "emu", 1)
    monkeypatch.setattr("streamgauge.emu.trial_setup._handed", lambda *_: None)
    VirtualMachine(EmuOptions(way="virtual"), 1).check(flow_setups(scenario, plan), [])


def test_what_it_has_it_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    checked(monkeypatch, tmp_path, "hessler/ftp-medium")


def test_a_program_that_it_lacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(CannotRunError, match=r"the virtual machine has no iperf3.*--machine host"):
        checked(monkeypatch, tmp_path, "hessler/ftp-no", programs=frozenset())


def test_a_congestion_control_that_it_lacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(CannotRunError, match=r"no congestion control vegas .*it has reno, cubic"):
        checked(monkeypatch, tmp_path, "hessler/ftp-no", "flows.ftp.congestion_control=vegas")


def test_list_and_remove(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(cache)
    assert main(["machine", "list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "streamgauge.emu.machine/1"
    assert [one["bytes"] > 0 for one in told["kept"]] == [True]
    assert main(["machine", "remove"]) == 0
    assert not machines_folder().exists()
    assert "nothing" in capsys.readouterr().out
