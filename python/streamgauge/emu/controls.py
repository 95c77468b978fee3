"""Congestion controls that the kernel lacks and we bring: BPF programs, registered for one trial.

``streamgauge-engine bpf-cc`` registers one under a name of the trial's own and holds it; the kernel takes it
back when that process ends, however it does. The kernel's own goes first where it is there. Registering needs
root's rights over the machine, which no user namespace gives.
"""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from streamgauge.emu import remedy
from streamgauge.emu.engine import engine
from streamgauge.emu.helper import Helper
from streamgauge.errors import CannotRunError

OWN = ("vegas",)
"""Those that we have programs for, by their Linux names."""
_PREFIX = "sg_"
_PROBE_S = 20.0


def available() -> list[str]:
    """The controls that the kernel has now, without those of running trials; empty if it does not say."""
    file = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    names = file.read_text(encoding="ascii").split() if file.exists() else []
    return [name for name in names if not name.startswith(_PREFIX)]


def kernel_name(control: str) -> str:
    """A name to register `control` under: at most 15 characters, another one each time."""
    return f"{_PREFIX}{control}_{secrets.token_hex(3)}"


def names(controls: Iterable[str]) -> dict[str, str]:
    """What must be registered for these controls: Linux name to the name of this trial's own."""
    has = available()
    return {name: kernel_name(name) for name in OWN if name in set(controls) and name not in has}


def origin(control: str, registered: Mapping[str, str]) -> str:
    """Whose the control of a trial is: "bpf" if it is our program, else "kernel"."""
    return "bpf" if control in registered else "kernel"


def why_not(control: str, way: str) -> str | None:
    """Why `control`, of `OWN` and not the kernel's, cannot be registered, with the remedy; None if it can.

    Registers it for a moment.
    """
    if way != "root":
        return (
            f"this kernel has no {control} of its own, and only root's way can bring our BPF program for it; "
            f"run as root without `--way user`, or as root `modprobe tcp_{control}` if there is that module"
        )
    command = [str(engine()), "bpf-cc", control, "--name", kernel_name(control)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=_PROBE_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"streamgauge-engine bpf-cc: {error}; {remedy.build()}"
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines()
    said = lines[-1].partition(": ")[2] if lines else f"status {done.returncode}"
    return f"this kernel has no {control} of its own, and of our BPF program it is said: {said}"


def lacking(control: str, way: str) -> str | None:
    """Why a trial that way cannot have `control`, with the remedy; None if it can or nothing says."""
    has = available()
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
    """Registers what `names` said; each is there until its process ends. Raises as `Helper` does."""
    loaders = []
    for control, name in registered.items():
        command = [engine, "bpf-cc", control, "--name", name]
        loaders.append(Helper(f"the congestion control {control}", command, logs / f"{control}-bpf.log"))
    for loader in loaders:
        loader.expect("ready")
    return loaders


def by_linux_name(name: str | None, registered: Mapping[str, str]) -> str | None:
    """The Linux name of what the kernel calls `name` in this trial."""
    return next((control for control, own in registered.items() if own == name), name)
