"""A guest that has booted and loaded its worker, kept as files: every trial begins there."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamgauge
from streamgauge.emu.engine import engine
from streamgauge.emu.errors import TrialBrokenError
from streamgauge.emu.machine import qemu, recipe
from streamgauge.emu.machine.cpio import archive
from streamgauge.emu.machine.image import Image, machines_folder, one_at_a_time
from streamgauge.emu.machine.parcel import PARCEL_JOB, PARCEL_RESULT, head_of
from streamgauge.emu.machine.qemu import Hardware, Memory, Qemu
from streamgauge.emu.machine.words import GuestWords
from streamgauge.errors import CannotRunError

RAM_BYTES = 2 << 30
TRANSLATED_BYTES = qemu.TRANSLATED_MIB << 20
JOB_BYTES = 1 << 30
"""The largest job: media and programs that go in."""
RESULT_BYTES = 2 << 30
"""The largest record of a guest."""
BOOT_S = 900.0
"""Longest wait for a boot, of the host's time."""
EVERY_NS = 10_000_000_000
"""The limit in the guest's time."""
KEPT = 6
"""The number of snapshots that stay; the least recently used one is removed first."""

# The guest has a clock that runs this many times faster than the guest assumes.
CLOCKS: Mapping[int, str] = {
    1: "clocksource=tsc tsc=reliable tsc_early_khz=1000000",
    2: "clocksource=tsc tsc=reliable tsc_early_khz=2000000 pmtmr=0",
    4: "clocksource=tsc tsc=reliable tsc_early_khz=4000000 pmtmr=0",
}
"""The kernel's settings by speed, in 10^9 instructions a second."""

_KERNEL = (
    "console=ttyS0 quiet panic=-1 preempt=full nokaslr mitigations=off no5lvl nowatchdog audit=0 "
    "random.trust_cpu=on transparent_hugepage=never kfence.sample_interval=0 cgroup_disable=memory"
)
_PARTS = (
    "__init__.py",
    "__init__.pyi",
    "errors.py",
    "installed.py",
    "units.py",
    "emu",
    "systems",
    "calibrate",
)
"""The part of our own package that a worker imports."""

_GSTREAMER = """
import gi
for module in ("Gst", "GstPbutils", "GstRtsp", "GstRtspServer"):
    gi.require_version(module, "1.0")
from gi.repository import Gst, GstPbutils, GstRtsp, GstRtspServer
Gst.init(None)
"""
FIRST_RUNS: tuple[tuple[str, ...], ...] = (
    ("/usr/lib/x86_64-linux-gnu/glib-2.0/glib-compile-schemas", "/usr/share/glib-2.0/schemas"),
    ("/usr/lib/x86_64-linux-gnu/glib-2.0/gio-querymodules", "/usr/lib/x86_64-linux-gnu/gio/modules"),
    ("python3", "-c", _GSTREAMER),
    ("python3", "-c", "import json, subprocess, selectors, asyncio, argparse, dataclasses, pathlib, signal"),
    ("ffmpeg", "-version"),
    ("iperf3", "--version"),
)
"""Programs that make something for themselves at their first start."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Files that a guest begins from."""

    folder: Path
    #: A digest of its contents: image, our package, speed, QEMU.
    digest: str
    image: Image
    speed: int
    qemu_version: str

    @property
    def ram(self) -> Path:
        """The guest's memory."""
        return self.folder / "ram"

    @property
    def state(self) -> Path:
        """The guest's devices and processor."""
        return self.folder / "state"


def hardware(
    snapshot_ram: Memory, image: Image, job: str, result: str, serial: list[str], seed: int
) -> Hardware:
    """A guest's; the same for all but the places of its files."""
    return Hardware(
        ram=snapshot_ram,
        modules=[
            Memory(
                id="root", path=str(image.root), size=image.root.stat().st_size, shared=True, readonly=True
            ),
            Memory(id="job", path=job, size=JOB_BYTES, shared=True),
            Memory(id="result", path=result, size=RESULT_BYTES, shared=True),
        ],
        serial=serial,
        seed=seed,
    )


def prepare(image: Image, speed: int, say: Callable[[str], None]) -> Snapshot:
    """The snapshot of that image at that speed (a key of `CLOCKS`), booted now if there is none.

    Raises CannotRunError if QEMU is missing, the disk is full, or the guest does not boot.
    """
    version = qemu.version()
    package = _package()
    key = hashlib.sha256(
        json.dumps([image.digest, speed, version, CLOCKS[speed], _KERNEL, RAM_BYTES]).encode() + package
    ).hexdigest()[:16]
    home = machines_folder()
    snapshot = Snapshot(
        folder=home / f"snapshot-{key}", digest=key, image=image, speed=speed, qemu_version=version
    )
    with one_at_a_time(home, say):
        if not (snapshot.folder / "snapshot.json").is_file():
            _boot(snapshot, package, say)
        os.utime(snapshot.folder)
        _prune(home, snapshot.folder)
    return snapshot


def _prune(home: Path, used: Path) -> None:
    found = sorted(home.glob("snapshot-*"), key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in found[KEPT:]:
        if folder != used:
            shutil.rmtree(folder, ignore_errors=True)


def _package() -> bytes:
    """Our own package as a guest gets it, an archive for its kernel."""
    home = Path(streamgauge.__file__).parent
    files: dict[str, bytes | Path | None] = {}
    for part in _PARTS:
        place = home / part
        for file in [place] if place.is_file() else sorted(place.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts and file.suffix != ".pyi":
                files[f"streamgauge/streamgauge/{file.relative_to(home)}"] = file
    native = next(home.glob("_native*.so"))
    files[f"streamgauge/streamgauge/{native.name}"] = _stripped(native)
    files["streamgauge/streamgauge/_bin/streamgauge-engine"] = _stripped(engine())
    settings = {"first_runs": FIRST_RUNS, "modules": recipe.QDISCS}
    files["streamgauge/settings.json"] = json.dumps(settings).encode()
    return archive(files)


def _stripped(program: Path) -> bytes:
    """Removes a debugger's data, where there is a `strip`: it would only fill the guest's memory."""
    if (strip := shutil.which("strip")) is None:
        return program.read_bytes()
    with tempfile.NamedTemporaryFile() as target:
        done = subprocess.run([strip, "-g", "-o", target.name, program], capture_output=True, check=False)
        return Path(target.name).read_bytes() if done.returncode == 0 else program.read_bytes()


def _boot(snapshot: Snapshot, package: bytes, say: Callable[[str], None]) -> None:
    """Boots a guest up to the start of a trial, and writes its state."""
    home = snapshot.folder.parent
    for left in home.glob("booting-*"):
        shutil.rmtree(left, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix="booting-", dir=home))
    try:
        _boot_in(work, snapshot, package, say)
        shutil.rmtree(snapshot.folder, ignore_errors=True)
        work.rename(snapshot.folder)
    except OSError as error:
        raise CannotRunError(
            f"{error.filename or work}: cannot keep the virtual machine's snapshot: {error.strerror}; free "
            "some space, or set STREAMGAUGE_CACHE to another folder."
        ) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _boot_in(work: Path, snapshot: Snapshot, package: bytes, say: Callable[[str], None]) -> None:
    image, began = snapshot.image, time.monotonic()
    first = work / "first.cpio"
    first.write_bytes(_aligned(image.first_files.read_bytes()) + package)
    qemu.grow(work / "ram", RAM_BYTES)
    job, result, console, said = _empty_files()
    _make_state_file(work / "state")
    paths = [qemu.path_of(one) for one in (job, result, console, said)]
    ram = Memory(id="ram", path=str(work / "ram"), size=RAM_BYTES, shared=True)
    parts = hardware(ram, image, paths[0], paths[1], paths[2:], seed=1)
    append = f"{_KERNEL} {CLOCKS[snapshot.speed]}"
    arguments = [*parts.arguments(), *state_arguments(str(work / "state"))]
    arguments += ["-kernel", str(image.kernel), "-initrd", str(first), "-append", append]
    words = GuestWords(said, console)
    try:
        with Qemu(arguments, (job, result, console, said)) as machine:
            machine.ask("cont")
            is_ready = False
            while machine.status() != "guest-panicked":
                for word in words.new():
                    is_ready = is_ready or bool(word.get("snapshot"))
                    if "broken" in word:
                        raise CannotRunError(f"the virtual machine does not boot: {word['broken']}.")
                spent = time.monotonic() - began
                say(f"booting the virtual machine once, {spent:.0f} s so far")
                if machine.status() == "shutdown" or spent > BOOT_S:
                    raise CannotRunError(f"the virtual machine does not boot: {words.last_of_console()}")
                time.sleep(0.1)
            if not is_ready and not any(word.get("snapshot") for word in words.new()):
                raise CannotRunError(f"the virtual machine does not boot: {words.last_of_console()}")
            save(machine)
        set_clock(work / "state")
    except TrialBrokenError as error:
        raise CannotRunError(
            f"the virtual machine does not boot: {error} {words.last_of_console()}"
        ) from error
    finally:
        for one in (job, result, console, said):
            os.close(one)
    first.unlink()
    about: dict[str, Any] = {"image": image.digest, "speed": snapshot.speed, "qemu": snapshot.qemu_version}
    about["boot_s"] = round(time.monotonic() - began, 1)
    (work / "snapshot.json").write_text(json.dumps(about), encoding="utf-8")


def _empty_files() -> list[int]:
    """A guest's job and result with nothing in them but their marks, which distinguish them, and the
    receivers of its console and its messages."""
    files = [qemu.memory_file(name) for name in ("job", "result", "console", "words")]
    for one, kind, size in zip(files, (PARCEL_JOB, PARCEL_RESULT), (JOB_BYTES, RESULT_BYTES), strict=False):
        os.write(one, head_of(kind, 0))
        os.ftruncate(one, size)
    return files


def _make_state_file(file: Path) -> None:
    """An empty file of QEMU's own format, made by a QEMU that runs no guest: one that records cannot."""
    file.touch()
    with Qemu(["-machine", "none", "-nodefaults", "-display", "none"]) as maker:
        maker.ask("blockdev-add", {"driver": "file", "filename": str(file), "node-name": "file"})
        options = {"driver": "qcow2", "file": "file", "size": 1 << 20}
        maker.ask("blockdev-create", {"job-id": "create", "options": options})
        while (job := maker.ask("query-jobs")[0])["status"] != "concluded":
            time.sleep(0.005)
        if "error" in job:
            raise TrialBrokenError(
                f"QEMU cannot make a file for the virtual machine's state: {job['error']}."
            )


def state_arguments(path: str) -> list[str]:
    """QEMU's, for the file that `save` writes to and `load` reads."""
    return ["-drive", f"file={path},format=qcow2,if=none,id=state"]


def share_memory(machine: Qemu) -> None:
    """Leaves memory that is a file out of the data that `save` writes."""
    machine.ask(
        "migrate-set-capabilities", {"capabilities": [{"capability": "x-ignore-shared", "state": True}]}
    )


def save(machine: Qemu) -> None:
    """Writes devices and processor of a stopped guest; its memory is a file already."""
    share_memory(machine)
    machine.command("savevm start")


def set_clock(file: Path) -> None:
    """Sets the clock of a saved guest to the next multiple of `EVERY_NS`.

    From the moment at which its processor stops until QEMU takes note, QEMU may or may not have set the clock
    forward over idle time once more; all else that is saved is the same each time.
    """
    data = file.read_bytes()
    name = b"\x05\x0ctimer/icount"  # a subsection of that name
    if data.count(name) != 1:
        raise TrialBrokenError("the virtual machine's state has no clock where QEMU 7.2 has it.")
    at = data.index(name) + len(name) + 4
    bias, count = struct.unpack_from(">qq", data, at)
    now = -(-(bias + count) // EVERY_NS) * EVERY_NS
    with file.open("r+b") as target:
        target.seek(at)
        target.write(struct.pack(">q", now - count))


def load(machine: Qemu) -> None:
    """Gives a guest the state that `save` wrote."""
    share_memory(machine)
    machine.command("loadvm start")


def _aligned(part: bytes) -> bytes:
    return part + b"\0" * (-len(part) % 4)
