"""Inside the virtual machine: its first process.

It boots, starts a worker as the host's launcher does (`streamgauge.emu.sandbox`), has it load all its
modules, and stops there: a snapshot is taken once. Each trial begins at this point: it reads its job from one
module of memory, runs it, writes its result to another, and ends.
"""

from __future__ import annotations

import ctypes
import fcntl
import io
import json
import mmap
import os
import subprocess
import sys
import tarfile
import time
import tty
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from streamgauge.emu.inside import FIRST_RUNS
from streamgauge.emu.machine.parcel import HEAD, PARCEL_JOB, PARCEL_RESULT, head_of, read_head
from streamgauge.emu.trial_request import WORKER

WORDS = Path("/dev/ttyS1")
PACKAGE = Path("/opt/streamgauge")
ENGINE = PACKAGE / "streamgauge" / "_bin" / "streamgauge-engine"
GUEST_FILES, GUEST_OUT = Path("/job/files"), Path("/job/out")
"""Where a job's files lie, and what it leaves."""
REST_S = 20.0
"""The worker has loaded everything long before; idle time costs nothing."""
LATER_S = 1.1
"""How much work lies between one moment at which the host may take a snapshot and the next."""
ROUND_NS = 60_000_000_000
"""Trials begin at a multiple of this, of the guest's time."""
_RNDRESEEDCRNG = 0x5207
_PVPANIC = ("0x1b36", "0x0011")


class Words:
    """Lines of JSON to the host."""

    def __init__(self) -> None:
        self._line = WORDS.open("wb", buffering=0)
        tty.setraw(self._line.fileno())

    def say(self, **words: Any) -> None:
        """One line."""
        self._line.write(json.dumps(words).encode() + b"\n")


def main() -> None:
    """The whole life of a guest."""
    words = Words()
    try:
        prepare()
        job, result = module_of(PARCEL_JOB), module_of(PARCEL_RESULT)
        worker = start(WORKER)
        time.sleep(REST_S)
        words.say(snapshot=True)
        stop_here(job)
        trial(words, worker, job, result)
    except Exception as error:
        words.say(broken=f"{type(error).__name__}: {error}")
    power_off()


def prepare() -> None:
    """Does the work of a distribution's init, as far as a trial needs it."""
    mount("tmpfs", "/run", "tmpfs")
    mount("tmpfs", "/dev/shm", "tmpfs", make=True)
    mount("devpts", "/dev/pts", "devpts", make=True)
    mount("cgroup2", "/sys/fs/cgroup", "cgroup2")
    mount("bpf", "/sys/fs/bpf", "bpf")
    os.environ.update(
        {
            "PATH": "/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin",
            "PYTHONPATH": str(PACKAGE),
            "PYTHONHASHSEED": "0",
            "HOME": "/root",
            "LANG": "C.UTF-8",
        }
    )
    settings = json.loads((PACKAGE / "settings.json").read_text(encoding="utf-8"))
    call("ldconfig")
    call("ip", "link", "set", "lo", "up")
    for module in settings["modules"]:
        call("modprobe", module)
    FIRST_RUNS.mkdir(parents=True, exist_ok=True)
    for command in settings["first_runs"]:
        call(*command, XDG_FIRST_RUNS_HOME=str(FIRST_RUNS))


def start(module: str) -> subprocess.Popen[bytes]:
    """A worker of ours in a sandbox; it waits for its job on stdin."""
    reading, _writing = os.pipe()  # held open for as long as we live
    command = [str(ENGINE), "sandbox", "--way", "root", "--parent", str(os.getpid())]
    command += ["--lifeline", str(reading), "--", "/usr/bin/python3", "-m", module]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(reading,),
        start_new_session=True,
    )


def stop_here(job_at: Path) -> None:
    """Returns when a trial begins: writes to the device that has the host stop this machine.

    If it continues without a job, the host needs a later moment.
    """
    while True:
        for device in Path("/sys/bus/pci/devices").iterdir():
            if ((device / "vendor").read_text().strip(), (device / "device").read_text().strip()) == _PVPANIC:
                (device / "enable").write_text("1", encoding="ascii")
                write_register(device, 1)
                break
        with job_at.open("rb") as source:
            if read_head(source.read(HEAD), PARCEL_JOB):
                break
        until = time.monotonic() + LATER_S
        while time.monotonic() < until:
            pass
    # The time until the machine stopped, and since, does not count: every trial begins at the same time.
    time.sleep((ROUND_NS - time.monotonic_ns() % ROUND_NS) / 1e9)


def write_register(device: Path, value: int) -> None:
    """Writes to the first register of a PCI device. Its memory may be smaller than a page."""
    at = int((device / "resource").read_text().split()[0], 16) % mmap.PAGESIZE
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    with (device / "resource0").open("r+b") as file:
        page = libc.mmap(
            None, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, file.fileno(), 0
        )
    if page in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "cannot map the register")
    ctypes.c_uint8.from_address(page + at).value = value


def module_of(kind: bytes) -> Path:
    """The module of memory that the host has marked so."""
    for device in sorted(Path("/dev").glob("pmem*")):
        with device.open("rb") as source, suppress(ValueError):
            read_head(source.read(HEAD), kind)
            return device
    raise RuntimeError(f"no module of memory is marked {kind.decode()}")


def trial(words: Words, worker: subprocess.Popen[bytes], job_at: Path, result_at: Path) -> None:
    """Runs the job that lies in memory."""
    with job_at.open("rb") as source:
        length = read_head(source.read(HEAD), PARCEL_JOB)
        archive = io.BytesIO(source.read(length))
    with tarfile.open(fileobj=archive) as files:
        job = json.loads(member(files, "job.json").read())
        seed(job["seed"])
        for one in files:
            if one.name.startswith("files/"):
                one.name = one.name.removeprefix("files/")
                files.extract(one, "/")
    GUEST_OUT.mkdir(parents=True)
    if job["module"] != WORKER:
        worker.kill()
        worker = start(job["module"])
    answer = converse(words, worker, job["line"])
    words.say(say="handing the record over")
    hand_over(answer, GUEST_OUT, result_at)
    words.say(handed=True)


def member(files: tarfile.TarFile, name: str) -> Any:
    found = files.extractfile(name)
    assert found is not None
    return found


def seed(value: int) -> None:
    """Makes this trial's chance another than every other seed's, and the same each time."""
    with Path("/dev/urandom").open("wb", buffering=0) as source:
        source.write(b"streamgauge %d" % value)
        fcntl.ioctl(source, _RNDRESEEDCRNG)


def converse(words: Words, worker: subprocess.Popen[bytes], line: str) -> dict[str, Any]:
    """Gives the worker its job, passes on its messages, and returns the last one."""
    assert worker.stdin is not None and worker.stdout is not None and worker.stderr is not None
    with suppress(BrokenPipeError):
        worker.stdin.write(line.encode() + b"\n")
        worker.stdin.flush()
    for said in worker.stdout:
        told: dict[str, Any] = json.loads(said)
        if "done" in told or "failed" in told:
            return told
        words.say(**told)
    rest = worker.stderr.read().decode(errors="replace").strip().splitlines()
    return {"ended": {"status": worker.wait(), "said": rest[-1] if rest else ""}}


def hand_over(answer: dict[str, Any], directory: Path, result_at: Path) -> None:
    """Writes the answer and the folder as one archive."""
    with result_at.open("r+b", buffering=1 << 20) as target:
        target.write(bytes(HEAD))
        counted = _Counted(target)
        with tarfile.open(fileobj=counted, mode="w|", bufsize=1 << 20) as files:  # type: ignore[call-overload]
            text = json.dumps(answer).encode()
            about = tarfile.TarInfo("answer.json")
            about.size = len(text)
            files.addfile(about, io.BytesIO(text))
            files.add(directory, "files")
        target.seek(0)
        target.write(head_of(PARCEL_RESULT, counted.length))
        target.flush()
        os.fsync(target.fileno())


class _Counted:
    """A file that is written to, and how much."""

    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self.length = 0

    def write(self, part: bytes) -> int:
        self.length += len(part)
        return self._target.write(part)


def call(*command: str, **environment: str) -> None:
    """Runs it, and ignores a failure: a trial reports a missing part itself."""
    subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=sys.stderr,
        env={**os.environ, **environment},
        check=False,
    )


def mount(source: str, place: str, kind: str, *, make: bool = False) -> None:
    if make:
        Path(place).mkdir(parents=True, exist_ok=True)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mount(source.encode(), place.encode(), kind.encode(), 0, None)


def power_off() -> None:
    """Ends the machine."""
    os.sync()
    ctypes.CDLL(None).reboot(0x4321FEDC)
    time.sleep(3600)


if __name__ == "__main__":
    main()
