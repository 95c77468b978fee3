"""The virtual machine as a machine of trials (`streamgauge.emu.host.TrialMachine`)."""

from __future__ import annotations

import json
import platform
import shlex
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge.emu.concurrency import ConcurrentTrials, TrialSlot
from streamgauge.emu.machine.guest import ENGINE, GUEST_FILES, GUEST_OUT
from streamgauge.emu.machine.guest_files import GUESTS_OWN, GuestFiles, digest_of
from streamgauge.emu.machine.image import Image, build, check_host, find_image
from streamgauge.emu.machine.qemu import version
from streamgauge.emu.machine.run import run_in_guest
from streamgauge.emu.machine.snapshot import RAM_BYTES, TRANSLATED_BYTES, Snapshot, prepare
from streamgauge.emu.trial_request import WORKER
from streamgauge.emu.trial_setup import planned_controls
from streamgauge.errors import CannotRunError
from streamgauge.processors import processors
from streamgauge.systems.adapters import check_processes_of, programs_of
from streamgauge.systems.tcp import bpf_object

if TYPE_CHECKING:
    from streamgauge.emu.options import EmuOptions
    from streamgauge.emu.trial_request import TrialRequest
    from streamgauge.systems.adapter import FlowSetup, Program
    from streamgauge.systems.relay import RelaySetup

GUEST_BYTES = RAM_BYTES + TRANSLATED_BYTES + (512 << 20)
"""The part of this machine's memory that a guest may take: its own, QEMU's, and its job's and record's."""


class VirtualMachine:
    """A guest for one trial, of a snapshot that is made at first use."""

    def __init__(self, options: EmuOptions, speed: int) -> None:
        """Raises CannotRunError if QEMU or a builder's program is missing, or the image cannot be built."""
        self._options = options
        self._snapshot = _snapshot_of(speed, options.say)

    def check(self, flows: Sequence[FlowSetup], relays: Sequence[RelaySetup]) -> None:
        image = self._snapshot.image
        for setup in flows:
            for program in programs_of(setup):
                _check_program(image, setup, program)
            _check_commands(image, setup)
            check_processes_of(setup)
        for who, control in planned_controls(flows, relays):
            if bpf_object(control) is not None:
                raise CannotRunError(
                    f"{who}: a virtual machine loads no BPF object. Use --machine host, or one of "
                    f"{', '.join(image.controls)}."
                )
            if control not in image.controls:
                raise CannotRunError(
                    f"{who}: the virtual machine's kernel has no congestion control {control} (it has "
                    f"{', '.join(image.controls)}). Choose another, or use --machine host."
                )

    def own_controls(self, wanted: Iterable[str]) -> dict[str, str]:
        return {}  # its kernel has them all

    @contextmanager
    def turn(self) -> Iterator[TrialSlot]:
        if self._options.concurrent is not None:
            with self._options.concurrent.slot() as mine:
                yield mine
        else:
            # No other process disturbs it, and it disturbs no other's time: no lock.
            with ConcurrentTrials(-1).slot() as mine:
                yield mine

    def run(
        self, request: TrialRequest, seed: int, turn: TrialSlot, listen: Callable[[Mapping[str, Any]], None]
    ) -> dict[str, Any]:
        seen, files = as_guest_sees(request, self._options.brought)
        return run_in_guest(
            self._snapshot,
            WORKER,
            seen.to_json(),
            directory=Path(request.directory),
            files=files,
            seed=seed,
            lifelines=turn.lifelines,
            listen=listen,
        )

    def provenance(self, request: TrialRequest, started_at: float) -> dict[str, Any]:
        snapshot = self._snapshot
        return {
            "host": platform.node(),
            "machine": platform.machine(),
            "system": f"Linux-{snapshot.image.kernel_release}",
            "cpus": 1,
            "sandbox": request.way,
            "certificate": None,
            "virtual_machine": {
                "qemu": snapshot.qemu_version,
                "kernel": snapshot.image.kernel_release,
                "image": snapshot.image.digest,
                "snapshot": snapshot.digest,
                "instructions_per_s": snapshot.speed * 1_000_000_000,
                "brought": {str(folder): digest_of(folder) for folder in self._options.brought},
            },
        }


def run_module(
    module: str,
    request: Mapping[str, Any],
    speed: int,
    folder: Path,
    *,
    say: Callable[[str], None],
    listen: Callable[[Mapping[str, Any]], None],
) -> dict[str, Any]:
    """Runs another worker of ours in a guest, and copies the files of its folder to `folder`.

    `request` has the worker's "engine" and "out". Raises as `run_in_guest`.
    """
    seen = {**request, "engine": str(ENGINE), "out": str(GUEST_OUT)}
    return run_in_guest(
        _snapshot_of(speed, say),
        module,
        json.dumps(seen),
        directory=folder,
        files=GuestFiles(),
        seed=1,
        listen=listen,
    )


_guard = threading.Lock()
_ready: dict[int, Snapshot] = {}


def _snapshot_of(speed: int, say: Callable[[str], None]) -> Snapshot:
    """The snapshot at that speed; image and snapshot are looked for once a process."""
    with _guard:
        if speed not in _ready or not _ready[speed].ram.is_file():
            version()
            _ready[speed] = prepare(build(say), speed, say)
        return _ready[speed]


def why_not() -> str | None:
    """Why this machine cannot run a virtual one, with the remedy; None if it can. The image may still have to
    be built. Takes some milliseconds."""
    try:
        check_host()
        version()
        find_image()
    except CannotRunError as error:
        return str(error).rstrip(".")
    return None


def most_at_once() -> int:
    """How many guests this machine has cores and memory for."""
    cores = processors()
    return max(1, min(cores, _free_bytes() // GUEST_BYTES))


def check_room(guests: int) -> None:
    """CannotRunError if so many guests do not fit in this machine's memory."""
    free = _free_bytes()
    if guests * GUEST_BYTES > free:
        raise CannotRunError(
            f"{guests} virtual machines at once may take {guests * GUEST_BYTES / 1e9:.0f} GB and "
            f"{free / 1e9:.0f} GB of memory are free. Give --jobs at most {max(1, free // GUEST_BYTES)}."
        )


def _free_bytes() -> int:
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def _check_program(image: Image, flow: FlowSetup, program: Program) -> None:
    found = program.kind == "program" and any(
        Path(name).name in image.programs and Path(name).parent.name in ("", "bin", "sbin")
        for name in (program.name, *program.also)
    )
    if not found:
        raise CannotRunError(
            f"flow {flow.name}: the virtual machine has no {program.name}, which {program.purpose} needs; "
            "take --machine host."
        )


def _check_commands(image: Image, flow: FlowSetup) -> None:
    """Commands' programs are the image's, or files that the scenario brings along."""
    for side, lines in flow.commands.items():
        for line in lines:
            called = shlex.split(line.command)[0]
            file = Path(flow.working_folder or ".").absolute() / called
            if "/" not in called or file.parts[1] in GUESTS_OWN:
                has = file.name in image.programs
            else:
                has = _is_there(file)
            # One that is named by a variable is known only inside.
            if has or "$" in called:
                continue
            raise CannotRunError(
                f"flow {flow.name}: the {side}'s program {called} is not in the virtual machine. Copy "
                "it and its libraries into the scenario's folder and give its path from there. Or copy its "
                "folder by --with and give its absolute path. Or use --machine host."
            )


def as_guest_sees(request: TrialRequest, brought: Sequence[Path] = ()) -> tuple[TrialRequest, GuestFiles]:
    """The request with its files where the guest finds them, and these files; folders that are brought along
    stay in their place.

    Nothing else of this machine's folders is in it, so that the same trial is the same wherever it is run
    from.
    """
    files: dict[Path, Path] = {}
    media_at: dict[Path, Path] = {}
    flows, folders = [], []
    for flow in request.flows:
        home = GUEST_FILES / str(flow["index"])
        told = dict(flow)
        if flow["media"] is not None:
            media = Path(flow["media"])
            # A clip of two flows is there once.
            place = media_at.setdefault(media, home / f"media{media.suffix}")
            files[place] = media
            told["media"] = str(place)
        if flow["commands"]:
            told["commands"] = {
                side: [_own_files(line, flow["working_folder"], home, files, brought) for line in lines]
                for side, lines in flow["commands"].items()
            }
            told["working_folder"] = str(home / "folder")
            folders.append(home / "folder")
        flows.append(told)
    seen = replace(request, engine=str(ENGINE), directory=str(GUEST_OUT), flows=flows)
    return seen, GuestFiles(files, brought, folders)


def _is_there(file: Path) -> bool:
    """Whether a command's word is a file; a program's whole text (``python3 -c``) is too long to name one."""
    try:
        return file.exists()
    except OSError:
        return False


def _own_files(
    line: Mapping[str, Any],
    folder: str | None,
    home: Path,
    files: dict[Path, Path],
    brought: Sequence[Path],
) -> dict[str, Any]:
    """A command line that takes along the named files of the scenario's folder, and its helpers."""
    base = Path(folder or ".").absolute()
    for word in shlex.split(line["command"]):
        file = base / word
        if word in ("", ".", "/") or "$" in word or not _is_there(file):
            continue
        if Path(word).is_absolute() and any(file.is_relative_to(one) for one in brought):
            continue  # its folder is taken along
        if file.is_relative_to(base) and ".." not in Path(word).parts:
            files[home / "folder" / file.relative_to(base)] = file
        elif file.is_file() and Path(word).is_absolute() and file.parts[1] not in GUESTS_OWN:
            files[file] = file
    helpers = []
    for nth, helper in enumerate(line["helpers"]):
        place = home / "helpers" / str(nth) / Path(helper).name
        files[place] = Path(helper)
        helpers.append(str(place))
    return {**line, "helpers": helpers}
