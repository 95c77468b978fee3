"""The launcher's side of a trial in a virtual machine: job in, words, record out."""

from __future__ import annotations

import io
import json
import os
import select
import shutil
import tarfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from streamgauge.emu.concurrency import Lifelines
from streamgauge.emu.errors import TrialBrokenError
from streamgauge.emu.machine import qemu
from streamgauge.emu.machine.guest_files import GuestFiles
from streamgauge.emu.machine.parcel import HEAD, PARCEL_JOB, PARCEL_RESULT, head_of, read_head
from streamgauge.emu.machine.qemu import Memory, Qemu
from streamgauge.emu.machine.snapshot import (
    JOB_BYTES,
    RAM_BYTES,
    RESULT_BYTES,
    Snapshot,
    hardware,
    load,
    state_arguments,
)
from streamgauge.emu.machine.words import GuestWords
from streamgauge.emu.sandbox import as_error
from streamgauge.errors import CannotRunError

SILENT_S = 900.0
"""A guest that says nothing for so long, of the host's time, hangs."""
_POLL_S = 0.05


def run_in_guest(
    snapshot: Snapshot,
    module: str,
    job: str,
    *,
    directory: Path,
    files: GuestFiles,
    seed: int,
    lifelines: Lifelines | None = None,
    listen: Callable[[Mapping[str, Any]], None],
) -> dict[str, Any]:
    """Runs ``python -m module`` in a sandbox of a guest, as `sandbox.run_worker` does in one of the host's.

    Args:
        snapshot: the state that the guest begins from.
        module: a module that answers by `streamgauge.emu.inside`.
        job: the one line on its stdin.
        directory: takes the worker's files from the guest's `GUEST_OUT`.
        files: files of this machine that the job names.
        seed: for all draws of the guest.
        lifelines: keeps a lifeline, so that another thread may end the guest.
        listen: takes the worker's messages.

    Returns:
        The worker's result.

    Raises:
        CannotRunError: if a file does not fit, or QEMU is missing.
        TrialBrokenError: if the guest ended or hung.
        StreamGaugeError: the worker's own error.
    """
    lifelines = lifelines or Lifelines()
    lifeline = lifelines.open()
    with ExitStack() as stack:
        stack.callback(os.close, lifeline.reading)
        stack.callback(lifelines.close, lifeline)
        names = ("job", "result", "console", "words")
        descriptors = [qemu.memory_file(name) for name in names]
        for one in descriptors:
            stack.callback(os.close, one)
        about = {"module": module, "line": job, "seed": seed}
        _write_job(descriptors[0], about, files)
        os.ftruncate(descriptors[1], RESULT_BYTES)
        state = qemu.memory_file("state")
        stack.callback(os.close, state)
        os.write(state, snapshot.state.read_bytes())  # QEMU writes to it
        paths = [qemu.path_of(one) for one in descriptors]
        ram = Memory(id="ram", path=str(snapshot.ram), size=RAM_BYTES, shared=False)
        parts = hardware(ram, snapshot.image, paths[0], paths[1], paths[2:], seed)
        arguments = [*parts.arguments(), *state_arguments(qemu.path_of(state))]
        words = GuestWords(descriptors[3], descriptors[2])
        machine = stack.enter_context(Qemu(arguments, (*descriptors, state)))
        load(machine)
        machine.ask("cont")
        _watch(machine, words, lifeline.reading, listen)
        answer = _take(descriptors[1], directory)
    if "done" in answer:
        done: dict[str, Any] = answer["done"]
        return done
    if "failed" in answer:
        raise as_error(answer["failed"])
    ended = answer["ended"]
    raise TrialBrokenError(
        f"the worker ended before the trial did (status {ended['status']}: {ended['said']}); run it again."
    )


def _write_job(descriptor: int, about: Mapping[str, Any], files: GuestFiles) -> None:
    with os.fdopen(os.dup(descriptor), "wb") as target:
        target.write(bytes(HEAD))
        with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT, dereference=True) as tar:
            text = json.dumps(about).encode()
            member = tarfile.TarInfo("job.json")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
            files.add_to(tar)
        length = target.tell()
        if length > JOB_BYTES:
            raise CannotRunError(
                f"media and programs of the trial take {length / 1e9:.1f} GB. A job of the virtual "
                f"machine has room for {JOB_BYTES / 1e9:.1f} GB. Use --machine host, or shorter media."
            )
        target.seek(0)
        target.write(head_of(PARCEL_JOB, length - HEAD))
    os.ftruncate(descriptor, JOB_BYTES)


def _watch(
    machine: Qemu, words: GuestWords, lifeline: int, listen: Callable[[Mapping[str, Any]], None]
) -> None:
    """Until the record was handed over."""
    heard = time.monotonic()
    while True:
        ended = machine.has_ended
        for word in words.new():
            heard = time.monotonic()
            if "handed" in word:
                return
            if "broken" in word:
                raise TrialBrokenError(f"the virtual machine broke: {word['broken']}.")
            listen(word)
        if ended:
            raise TrialBrokenError(
                f"the virtual machine ended before the trial did: {words.last_of_console()}."
            )
        if time.monotonic() - heard > SILENT_S:
            raise TrialBrokenError(
                f"the virtual machine has said nothing for {SILENT_S:.0f} s: {words.last_of_console()}."
            )
        # The writing end is closed by who wants the trial to end.
        if select.select([lifeline], [], [], _POLL_S)[0]:
            raise TrialBrokenError("the run was ended before the trial was over; run it again.")


def _take(descriptor: int, directory: Path) -> dict[str, Any]:
    """Writes out the guest's files, and returns its answer."""
    with os.fdopen(os.dup(descriptor), "rb") as source:
        source.seek(0)
        read_head(source.read(HEAD), PARCEL_RESULT)
        with tarfile.open(fileobj=source, mode="r|") as files:
            answer: dict[str, Any] = {}
            for member in files:
                if member.name == "answer.json":
                    found = files.extractfile(member)
                    assert found is not None
                    answer = json.load(found)
                elif member.name.startswith("files/"):
                    _put(files, member, directory)
    return answer


def _put(files: tarfile.TarFile, member: tarfile.TarInfo, directory: Path) -> None:
    """Writes a file or folder of the archive into `directory`, and nothing anywhere else, with any name."""
    parts = Path(member.name).parts[1:]
    if ".." in parts:
        raise TrialBrokenError(f"the virtual machine left a file called {member.name}.")
    place = directory.joinpath(*parts)
    if member.isdir():
        place.mkdir(parents=True, exist_ok=True)
    elif member.isfile() and (source := files.extractfile(member)) is not None:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
