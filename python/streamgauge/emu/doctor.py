"""The parts of emu that work on this machine, and for each other part the reason and the remedy."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import streamgauge
from streamgauge.emu import controls
from streamgauge.emu import remedy as remedies
from streamgauge.emu.engine import engine, search_path
from streamgauge.emu.options import EmuOptions, Way
from streamgauge.errors import CannotRunError
from streamgauge.media.sources import cache_folder
from streamgauge.processors import processors
from streamgauge.systems.adapter import Program
from streamgauge.systems.adapters import ADAPTERS
from streamgauge.systems.tcp import CONGESTION_CONTROLS

CAPABILITIES = {"NET_ADMIN": 12, "NET_RAW": 13, "IPC_LOCK": 14, "SYS_ADMIN": 21, "SYS_NICE": 23}
"""Linux capabilities that root's way uses beside those that any container's root has, by their numbers
(capabilities(7)): those of `NEEDED` or no trial, the others keep the emulator punctual."""
NEEDED = ("SYS_ADMIN", "NET_ADMIN", "NET_RAW")
FREE_BYTES = 2_000_000_000
CORES = 2
_PROBE_S = 20.0
_LIBRARIES = {"libelf.so": "libelf1", "libz.so": "zlib1g"}
"""The libraries of streamgauge-engine beside the C library, and Debian's packages that have them."""

TOOLS = (
    Program(name="ip", packages="iproute2", purpose="links, addresses and routes", version=["-V"]),
    Program(name="ethtool", packages="ethtool", purpose="turning offloads off", version=["--version"]),
    Program(name="mount", packages="mount", purpose="showing media to players", version=["--version"]),
)
"""Programs that every trial needs."""
COMMANDS = (
    Program(
        name="gst-launch-1.0",
        packages="gstreamer1.0-tools",
        purpose="the player of today/darwin-gstreamer",
        version=["--version"],
    ),
    Program(name="mpv", packages="mpv", purpose="the player of today/darwin-mpv", version=["--version"]),
)
"""Programs that the catalogue's scenarios call by name."""
INTERNET = Program(
    name="nft", packages="nftables", purpose="streamgauge link --internet", version=["--version"]
)
ENCODER = Program(name="ffmpeg", packages="ffmpeg", purpose="encoding clips", version=["-version"])


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    id: str
    ok: bool
    #: Its description, with the version that was found.
    what: str
    #: The reason for which it is missing, and the consequence; empty if it is there.
    why: str = ""
    #: The remedy; empty if it is there.
    remedy: str = ""
    #: Whether emu cannot run at all without it.
    needed: bool = False
    #: Debian's packages with the missing parts, with spaces between; empty if there are none.
    packages: str = ""


def examine() -> list[Finding]:
    """Looks at everything that emu depends on. Takes a second or two; leaves nothing changed."""
    return list(_all())


def install_line(findings: Iterable[Finding]) -> str | None:
    """The one line, for root, that installs every package that is missing; None if none is, and where there
    is no apt-get."""
    return remedies.install_line(finding.packages for finding in findings if not finding.ok)


def why_not(way: str | None = None) -> str | None:
    """Why emu cannot run here at all, with the remedy; None if it can. Takes some milliseconds."""
    try:
        options = EmuOptions(way=way)
        chosen, is_virtual = options.chosen_way, options.virtual is not None
    except CannotRunError as error:
        return str(error)
    if is_virtual:
        from streamgauge.emu.machine.virtual import why_not as virtual_why_not

        return virtual_why_not()
    for finding in (_platform(), _engine(), *(_program(tool, needed=True) for tool in TOOLS)):
        if not finding.ok:
            told = remedies.install(finding.packages, alone=False) if finding.packages else finding.remedy
            return f"{finding.why}; {told}"
    sandbox = _sandbox(chosen)
    return None if sandbox.ok else f"{sandbox.why}; {sandbox.remedy}"


def cannot_run(way: str | None = None) -> CannotRunError | None:
    """`why_not` as the error to raise."""
    why = why_not(way)
    return None if why is None else CannotRunError(f"emu cannot run on this machine: {why}.")


def _all() -> Iterator[Finding]:
    yield _platform()
    if not sys.platform.startswith("linux"):
        return
    yield _engine()
    ways: list[Way] = ["root", "user"] if os.geteuid() == 0 else ["user"]
    for way in ways:
        yield _sandbox(way)
    yield _fifo()
    yield _mlock()
    for tool in TOOLS:
        yield _program(tool, needed=True)
    for program in (*programs(), *COMMANDS, INTERNET):
        yield _program(program)
    yield _congestion_controls()
    yield _vegas()
    yield _btf()
    yield _pressure()
    yield _virtual_machine()
    yield _cores()
    yield _disk()
    yield _reachable()


def _platform() -> Finding:
    ok = sys.platform.startswith("linux")
    why = "" if ok else f"emu needs Linux's network namespaces, and this is {sys.platform}"
    return Finding(
        id="linux",
        ok=ok,
        what=f"Linux ({os.uname().release})" if ok else "Linux",
        why=why,
        remedy="" if ok else "run the scenario in mode sim, or on a Linux machine",
        needed=True,
    )


def _engine() -> Finding:
    try:
        file = engine()
    except CannotRunError as error:
        what, _, remedy = str(error).rstrip(".").partition("; ")
        return Finding(id="engine", ok=False, what="streamgauge-engine", why=what, remedy=remedy, needed=True)
    done = _probe([str(file), "--version"])
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        said = lines[-1] if lines else f"status {done.returncode}"
        packages = next((package for library, package in _LIBRARIES.items() if library in said), "")
        return Finding(
            id="engine",
            ok=False,
            what=f"streamgauge-engine ({file})",
            why=f"streamgauge-engine does not start ({said.removeprefix(f'{file}: ')})",
            remedy=remedies.install(packages) if packages else remedies.build(),
            needed=True,
            packages=packages,
        )
    return Finding(id="engine", ok=True, what=f"streamgauge-engine ({file})", needed=True)


def _probe(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=_PROBE_S,
            **options,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))


def _sandbox(way: Way) -> Finding:
    """Makes a sandbox and runs a command in it."""
    named = f"sandbox, way '{way}'"
    what = f"{named}: namespaces " + ("made as root" if way == "root" else "made by an ordinary user")
    try:
        executable = engine()
    except CannotRunError as error:
        return Finding(id=f"sandbox.{way}", ok=False, what=what, why=str(error), remedy=remedies.build())
    if shutil.which("ip", path=search_path()) is None:
        return Finding(
            id=f"sandbox.{way}",
            ok=False,
            what=what,
            why="it is tried with ip, which is not on PATH",
            remedy=remedies.install("iproute2"),
        )
    lacking = [f"CAP_{name}" for name in NEEDED if way == "root" and not _capable(name)]
    if lacking:
        return Finding(
            id=f"sandbox.{way}",
            ok=False,
            what=what,
            why=f"no {named} (this root has no {' and no '.join(lacking)})",
            remedy=_sandbox_remedy(way),
        )
    lifeline, ours = os.pipe()
    try:
        command = [str(executable), "sandbox", "--way", way, "--parent", str(os.getpid())]
        command += ["--lifeline", str(lifeline), "--", "ip", "netns", "add", "probe"]
        done = _probe(command, pass_fds=(lifeline,))
    finally:
        os.close(lifeline)
        os.close(ours)
    if done.returncode == 0:
        return Finding(id=f"sandbox.{way}", ok=True, what=what)
    lines = done.stderr.strip().splitlines()
    said = lines[-1] if lines else f"status {done.returncode}"
    return Finding(
        id=f"sandbox.{way}", ok=False, what=what, why=f"no {named} ({said})", remedy=_sandbox_remedy(way)
    )


def _capable(name: str) -> bool:
    """Whether this process has a capability of `CAPABILITIES`."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    effective = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective, 16) >> CAPABILITIES[name] & 1)


def _cap_add(*names: str) -> str:
    return " ".join(f"--cap-add {name}" for name in names)


def _sandbox_remedy(way: Way) -> str:
    apparmor = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
    debian = Path("/proc/sys/kernel/unprivileged_userns_clone")
    most = Path("/proc/sys/user/max_user_namespaces")
    if way == "root":
        return f"run as real root; in a container give it {_cap_add(*NEEDED)}, or --privileged"
    if apparmor.exists() and apparmor.read_text().strip() == "1":
        return (
            "AppArmor keeps user namespaces from ordinary programs (Ubuntu 23.10 and later): as root "
            "`sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or run as root"
        )
    if debian.exists() and debian.read_text().strip() == "0":
        return "as root `sysctl kernel.unprivileged_userns_clone=1`, or run as root"
    if most.exists() and most.read_text().strip() == "0":
        return "as root `sysctl user.max_user_namespaces=10000`, or run as root"
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return (
            "the container refuses user namespaces or mounts in them (seccomp, a masked /proc): start it "
            "with --privileged, or run as root in it"
        )
    return "run as root"


def _fifo() -> Finding:
    what = "real-time scheduling class (SCHED_FIFO) for the emulator"
    allowed = _can_fifo()
    return Finding(
        id="sched_fifo",
        ok=allowed,
        what=what,
        why=""
        if allowed
        else "this user may not use it: the emulator runs in the normal class, and the verdict calls "
        "trials invalid in which it was late",
        remedy="" if allowed else f"{_as_root('SYS_NICE')}, or keep the machine quiet while trials run",
    )


def _can_fifo() -> bool:
    child = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))"
    # Inside the user's way it is refused even where RLIMIT_RTPRIO would allow it outside.
    return os.geteuid() == 0 and _probe([sys.executable, "-c", child]).returncode == 0


def _mlock() -> Finding:
    soft, _hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    ok = (os.geteuid() == 0 and _capable("IPC_LOCK")) or soft == resource.RLIM_INFINITY
    limit = "unlimited" if soft == resource.RLIM_INFINITY else f"{soft / 1024:.0f} KiB"
    return Finding(
        id="mlock",
        ok=ok,
        what=f"locked memory for the emulator (limit {limit})",
        why="" if ok else "the emulator's memory cannot be locked, and a page fault would delay packets",
        remedy="" if ok else f"{_as_root('IPC_LOCK')}, or raise memlock in /etc/security/limits.conf",
    )


def _as_root(capability: str) -> str:
    """Returns the remedy for rights that root has outside containers."""
    if os.geteuid() != 0:
        return "run as root"
    return f"in a container give it {_cap_add(capability)}, or --privileged"


def programs() -> list[Program]:
    """Returns the programs that clips and our systems need, each once, with all their uses. A program with
    different parts for different systems (GStreamer's elements) is there once for each `Program.id`."""
    found: dict[str, Program] = {}
    for one in (ENCODER, *(program for adapter in ADAPTERS.values() for program in adapter.programs)):
        first = found.get(one.id or one.name)
        found[one.id or one.name] = (
            one if first is None else replace(first, purpose=f"{first.purpose}; {one.purpose}")
        )
    return list(found.values())


def _program(program: Program, *, needed: bool = False) -> Finding:
    name, what = program.name, f"{program.name} ({program.purpose}"
    finding = program.id or f"program.{name}"
    remedy = program.remedy or remedies.install(program.packages)
    found = program.find(search_path())
    if found is None:
        where = "missing" if "/" in name or program.kind != "program" else "not on PATH"
        return Finding(
            id=finding,
            ok=False,
            what=f"{what})",
            why=f"{name} is {where}",
            remedy=remedy,
            needed=needed,
            packages=program.packages,
        )
    arguments = (program.probe or program.version) if program.kind == "program" else ()
    done = _probe([found, *arguments]) if arguments else None
    if done is not None and program.probe and done.returncode != 0:
        said = done.stderr.strip().splitlines()
        why = said[-1] if said else f"status {done.returncode}"
        return Finding(
            id=finding,
            ok=False,
            what=f"{what})",
            why=why,
            remedy=remedy,
            needed=needed,
            packages=program.packages,
        )
    lines = done.stdout.strip().splitlines() if done is not None else []
    return Finding(id=finding, ok=True, what=f"{what}{', ' + lines[0] if lines else ''})", needed=needed)


def _congestion_controls() -> Finding:
    folder = Path("/proc/sys/net/ipv4")
    try:
        available = (folder / "tcp_available_congestion_control").read_text().split()
    except OSError as error:
        return Finding(id="congestion_control", ok=False, what="congestion controls", why=str(error))
    known = [name for name in available if name in CONGESTION_CONTROLS]
    lacking = [name for name in ("reno", "cubic", "bbr") if name not in available]
    return Finding(
        id="congestion_control",
        ok=not lacking,
        what=f"TCP congestion controls: {', '.join(known)} (chosen per flow; the default does not matter)",
        why=f"the kernel has not loaded {', '.join(lacking)}" if lacking else "",
        remedy=" and ".join(f"`modprobe tcp_{name}`" for name in lacking) + " as root" if lacking else "",
    )


def _vegas() -> Finding:
    """Registers our program for a moment, if the kernel has no Vegas and we may."""
    what = "congestion control vegas"
    if "vegas" in controls.available():
        return Finding(id="vegas", ok=True, what=f"{what}: the kernel's own, both ways")
    why = controls.why_not("vegas", "root" if os.geteuid() == 0 else "user")
    if why is None:
        return Finding(id="vegas", ok=True, what=f"{what}: our BPF program, way 'root' alone")
    reason, _, remedy = why.rpartition("; ")
    return Finding(id="vegas", ok=False, what=what, why=reason or remedy, remedy=remedy if reason else "")


def _btf() -> Finding:
    ok = Path("/sys/kernel/btf/vmlinux").exists()
    return Finding(
        id="btf",
        ok=ok,
        what="kernel type information (BTF) for congestion controls as BPF programs",
        why="" if ok else "this kernel was built without it: vegas needs it unless the kernel has its own",
        remedy="" if ok else "a kernel with CONFIG_DEBUG_INFO_BTF",
    )


def _pressure() -> Finding:
    file = Path("/proc/pressure/cpu")
    try:
        ok = bool(file.read_text())
    except OSError:
        ok = False
    return Finding(
        id="psi",
        ok=ok,
        what="the kernel's account of processor shortage (PSI)",
        why="" if ok else "the kernel keeps none; a short processor still shows as late departures",
        remedy="" if ok else "boot with psi=1",
    )


def _virtual_machine() -> Finding:
    """Whether `--machine virtual` can run, and its image be built."""
    from streamgauge.emu.machine import qemu
    from streamgauge.emu.machine.image import BUILDERS, find_image
    from streamgauge.emu.machine.virtual import most_at_once, why_not

    why = why_not()
    lacking = [
        package for program, package in BUILDERS.items() if shutil.which(program, path=search_path()) is None
    ]
    packages = " ".join(["qemu-system-x86", *lacking])
    if why is not None:
        what, _, remedy = why.partition("; ")
        found = shutil.which(qemu.PROGRAM) is not None
        return Finding(
            id="virtual_machine",
            ok=False,
            what="virtual machine for emu",
            why=f"{what}; --machine virtual cannot run",
            remedy=remedy,
            packages="" if found else packages,
        )
    version = qemu.version().partition(" ")[0]
    is_built = find_image() is not None
    if not is_built and lacking:
        return Finding(
            id="virtual_machine",
            ok=False,
            what=f"virtual machine for emu (QEMU {version})",
            why=f"its image is not built, and {', '.join(lacking)} is missing to build it",
            remedy=remedies.install(" ".join(lacking)),
            packages=" ".join(lacking),
        )
    built = "image built" if is_built else "image is built at first use"
    return Finding(
        id="virtual_machine",
        ok=True,
        what=f"virtual machine for emu (QEMU {version}, {built}, {most_at_once()} at once)",
    )


def _cores() -> Finding:
    cores = processors()
    ok = cores >= CORES
    return Finding(
        id="cores",
        ok=ok,
        what=f"{cores} processors to run on",
        why="" if ok else "emulator, server and player share one, and trials may be invalid for lateness",
        remedy="" if ok else f"a machine with {CORES} or more",
    )


def _disk() -> Finding:
    folder = Path.cwd()
    free = shutil.disk_usage(folder).free
    ok = free >= FREE_BYTES
    return Finding(
        id="disk",
        ok=ok,
        what=f"{free / 1e9:.1f} GB free at {folder}",
        why="" if ok else "long campaigns with --keep packets need more",
        remedy="" if ok else "free some space, choose another folder with --out, or use --keep metrics",
    )


def _reachable() -> Finding:
    """Checks whether players, which run as another user in root's way, and other users can read the files
    that they need."""
    python, package = Path(sys.executable).resolve(), Path(streamgauge.__file__).parent
    ours = "the checkout and its venv" if remedies.in_checkout() else "the venv"
    closed = [str(path) for path in (python, package) if not _open_to_all(path)]
    return Finding(
        id="reachable",
        ok=not closed,
        what=f"Python and package can be read by ordinary users; clips are kept in {cache_folder()}",
        why="" if not closed else f"{' and '.join(closed)} lie under a folder that others may not enter",
        remedy=""
        if not closed
        else f"only root can run StreamGauge from there; for others put {ours} elsewhere, such as under /opt",
    )


def _open_to_all(path: Path) -> bool:
    return path.stat().st_mode & 0o004 != 0 and all(parent.stat().st_mode & 0o001 for parent in path.parents)
