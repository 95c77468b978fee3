"""Congestion controls that the kernel lacks: BPF programs of ours or of the user's, registered for one trial.

``streamgauge-engine bpf-cc`` registers one under a name of the trial's own and holds it. The kernel removes
it when that process ends, in any way. The kernel's own control has precedence if it exists. Registration
needs root's rights over the machine, which no user namespace gives.
"""

from __future__ import annotations

import re
import secrets
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from streamgauge.emu import remedy
from streamgauge.emu.engine import engine
from streamgauge.emu.helper import Helper
from streamgauge.errors import CannotRunError
from streamgauge.systems.tcp import bpf_object, kernel_congestion_controls

OWN = ("vegas",)
"""Those that we have programs for, by their Linux names."""
_PREFIX = "sg_"
_STEM_MOST = 5
"""Characters of a control's own name in the kernel's, of which there are 15 at most."""
_LOG_LINES = 6
"""Last lines of the verifier's log that an error shows."""
_FRAMES = ("libbpf: ", "-- ", "processed ")
"""Begins lines around the verifier's own findings."""
_PROBE_S = 20.0


def available() -> list[str]:
    """Returns the controls that the kernel has now, without those of running trials; empty without a list."""
    return [name for name in kernel_congestion_controls() if not name.startswith(_PREFIX)]


def kernel_name(control: str) -> str:
    """A name to register `control`, a name or an object, under: 15 characters at most, always new."""
    stem = re.sub(r"[^a-z0-9_]+", "_", Path(control).name.partition(".")[0].lower())
    return f"{_PREFIX}{stem[:_STEM_MOST]}_{secrets.token_hex(3)}"


def names(controls: Iterable[str]) -> dict[str, str]:
    """Returns the controls to register: Linux name, or object, to the name of this trial's own."""
    has = available()
    wanted = sorted(set(controls))
    ours = [name for name in wanted if (name in OWN and name not in has) or bpf_object(name) is not None]
    return {name: kernel_name(name) for name in ours}


def origin(control: str, registered: Mapping[str, str]) -> str:
    """Returns the origin of a trial's control: "bpf" if it is our program, else "kernel"."""
    return "bpf" if control in registered else "kernel"


def why_not(control: str, way: str) -> str | None:
    """Why `control`, an object or one of `OWN` that the kernel lacks, cannot be registered, with the remedy.

    Registers it for a moment. None if that works.
    """
    theirs = bpf_object(control) is not None
    if way != "root":
        if theirs:
            return (
                f"only root's way can give the kernel the BPF object {control}: it serves the whole machine "
                "while it is there; run as root without `--way user`"
            )
        return (
            f"this kernel has no {control} of its own, and only root's way can bring our BPF program for it; "
            f"run as root without `--way user`, or as root `modprobe tcp_{control}` if there is that module"
        )
    try:
        done = subprocess.run(
            _command(str(engine()), control, kernel_name(control)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=_PROBE_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"streamgauge-engine bpf-cc: {error}; {remedy.build()}"
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines()
    said = lines[-1].partition(": ")[2] if lines else f"status {done.returncode}"
    if theirs:
        log = [text for line in lines[:-1] if (text := line.strip()) and not text.startswith(_FRAMES)][
            -_LOG_LINES:
        ]
        return f"the kernel refused the BPF object {control}: {said}" + "".join(f"\n  {one}" for one in log)
    return f"this kernel has no {control} of its own, and of our BPF program it is said: {said}"


def _command(engine: str, control: str, name: str) -> list[str]:
    what = [control] if bpf_object(control) is None else ["--object", control]
    return [engine, "bpf-cc", *what, "--name", name]


def lacking(control: str, way: str) -> str | None:
    """Returns the reason for which a trial of that way cannot have `control`, with the remedy. None if it
    can, or if nothing is known."""
    has = available()
    if bpf_object(control) is not None:
        return why_not(control, way)
    if not has or control in has:
        return None
    if control in OWN:
        return why_not(control, way)
    return (
        f"this kernel has no congestion control {control} (it has {', '.join(has)}); "
        f"try `modprobe tcp_{control}` as root, or choose another"
    )


def check(who: str, control: str, way: str) -> None:
    """Raises CannotRunError if a trial that way cannot give `control` to `who`, a flow or relay in words."""
    why = lacking(control, way)
    if why is not None:
        raise CannotRunError(f"{who}: {why}.")


def register(registered: Mapping[str, str], *, engine: str, logs: Path) -> list[Helper]:
    """Registers the controls that `names` returned; each exists until its process ends. Raises as `Helper`
    does."""
    loaders = []
    for control, name in registered.items():
        command = _command(engine, control, name)
        log = logs / f"{Path(control).name}-bpf.log"
        loaders.append(Helper(f"the congestion control {control}", command, log))
    for loader in loaders:
        loader.expect("ready")
    return loaders


def by_linux_name(name: str | None, registered: Mapping[str, str]) -> str | None:
    """Returns the Linux name in this trial of the kernel's control `name`."""
    return next((control for control, own in registered.items() if own == name), name)
