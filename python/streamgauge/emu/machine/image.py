"""The image that a virtual machine starts from: the distribution's kernel and programs, made once and kept.

Made of packages that the distribution's own archive gives, without root and without starting anything:
unpacked, trimmed (`recipe`), and written as an erofs file system that guests map and never change. The same
packages make the same bytes.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamgauge.emu.machine import recipe
from streamgauge.emu.machine.cpio import archive
from streamgauge.emu.remedy import install
from streamgauge.errors import CannotRunError
from streamgauge.media.sources import cache_folder

__all__ = ["BUILDERS", "Image", "build", "find_image", "machines_folder", "one_at_a_time"]

BUILDERS: dict[str, str] = {
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
    "tar": "tar",
    "mkfs.erofs": "erofs-utils",
    "depmod": "kmod",
}
"""Programs that building takes, and Debian's packages that have them."""
NEEDED_BYTES = 3_000_000_000
"""Free space that building takes at most."""
BLOCK = 128 << 20
"""A module of memory is a multiple of this: what the kernel maps as one section."""
_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


@dataclass(frozen=True, kw_only=True)
class Image:
    """An image that was built."""

    folder: Path
    #: A digest of all that a guest sees of it: 16 hexadecimal digits.
    digest: str
    #: The kernel's release.
    kernel_release: str
    #: By Debian's packages, their versions.
    packages: dict[str, str] = field(repr=False)
    #: Programs on a guest's PATH, by name.
    programs: frozenset[str] = field(repr=False)
    #: Congestion controls of its TCP.
    controls: tuple[str, ...]

    @property
    def kernel(self) -> Path:
        """The kernel."""
        return self.folder / "vmlinuz"

    @property
    def root(self) -> Path:
        """The root file system, a multiple of `BLOCK` long."""
        return self.folder / "root.erofs"

    @property
    def first_files(self) -> Path:
        """The initial file system, which mounts the root."""
        return self.folder / "first.cpio"


def machines_folder() -> Path:
    """Where images and snapshots are kept."""
    return cache_folder() / "machine"


def find_image() -> Image | None:
    """The image that `recipe` asks for; None if it was not built. CannotRunError if it was altered."""
    folder = machines_folder() / f"image-{_recipe_digest()}"
    if not (folder / "image.json").is_file():
        return None
    image = _read(folder)
    try:
        lengths = json.loads((folder / "image.json").read_text(encoding="utf-8"))["lengths"]
        intact = all((folder / name).stat().st_size == length for name, length in lengths.items())
    except (OSError, KeyError):
        intact = False
    if not intact:
        raise CannotRunError(
            f"{folder}: the virtual machine's image was altered; build it again by "
            "`streamgauge machine build --again`."
        )
    return image


def _read(folder: Path) -> Image:
    try:
        data = json.loads((folder / "image.json").read_text(encoding="utf-8"))
        return Image(
            folder=folder,
            digest=data["digest"],
            kernel_release=data["kernel_release"],
            packages=data["packages"],
            programs=frozenset(data["programs"]),
            controls=tuple(data["controls"]),
        )
    except (OSError, ValueError, KeyError) as error:
        raise CannotRunError(
            f"{folder}: the virtual machine's image cannot be read ({error}); build it again by "
            "`streamgauge machine build --again`."
        ) from None


def check_host() -> None:
    """CannotRunError if this machine's kind cannot run or build one."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise CannotRunError(
            f"the virtual machine is Linux on x86_64, and this is {platform.system()} on "
            f"{platform.machine()}. Use --machine host or --mode sim."
        )


def build(say: Callable[[str], None], *, again: bool = False) -> Image:
    """Builds the image, or finds it built unless `again`. `say` takes a line about each step.

    Raises CannotRunError for a missing program, packages that cannot be had, or a full disk; nothing half
    built stays.
    """
    check_host()
    if not again and (found := find_image()) is not None:
        return found
    for program, package in BUILDERS.items():
        if shutil.which(program, path=_PATH) is None:
            raise CannotRunError(f"{program} is missing; {install(package)}.")
    home = machines_folder()
    target = home / f"image-{_recipe_digest()}"
    with _work_folder(home) as work, one_at_a_time(home, say):
        # Another may have built it meanwhile, and its guests run from it.
        if not again and (found := find_image()) is not None:
            return found
        free = shutil.disk_usage(work).free
        if free < NEEDED_BYTES:
            raise CannotRunError(
                f"{home}: building takes {NEEDED_BYTES / 1e9:.0f} GB and {free / 1e9:.1f} GB are free. Free "
                "some, or set STREAMGAUGE_CACHE to a folder with more."
            )
        try:
            made = _make(work, say)
        except OSError as error:
            raise CannotRunError(
                f"{error.filename or home}: cannot write the image: {error.strerror}; free some space, or "
                "set STREAMGAUGE_CACHE to another folder."
            ) from error
        if target.exists():
            shutil.rmtree(target)
        made.rename(target)
    return _read(target)


@contextmanager
def one_at_a_time(home: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Among all processes that prepare something in that folder, which is there."""
    with (home / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another to prepare the virtual machine")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _work_folder(home: Path) -> Iterator[Path]:
    """A folder that is removed when the work is over; those of killed builders are removed first."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        for left in home.glob("building-*"):
            if not Path(f"/proc/{left.name.split('-')[1]}").exists():
                shutil.rmtree(left, ignore_errors=True)
        work = Path(tempfile.mkdtemp(prefix=f"building-{os.getpid()}-", dir=home))
    except OSError as error:
        raise CannotRunError(
            f"{home}: cannot be written: {error.strerror}; set STREAMGAUGE_CACHE to another folder."
        ) from error
    work.chmod(0o755)
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _make(work: Path, say: Callable[[str], None]) -> Path:
    say("reading the distribution's lists of packages")
    archives = _download(work, say)
    say(f"unpacking {len(archives)} packages")
    root, kernel = work / "root", work / "kernel"
    _skeleton(root)
    packages = {}
    for deb in archives:
        name, version, _ = deb.name.split("_")
        packages[name] = version.replace("%3a", ":")
        _unpack(deb, kernel if name.startswith("linux-image-") else root)
    _alternatives(root)
    release = _kernel(kernel, root)
    _trim(root)
    say("writing the file system")
    made = work / "made"
    made.mkdir()
    kernel_file = next((kernel / "boot").glob("vmlinuz-*"))
    shutil.copyfile(kernel_file, made / "vmlinuz")
    _run(
        "mkfs.erofs",
        "--quiet",
        "-T0",
        "-x-1",
        "-U00000000-0000-0000-0000-000000000000",
        "--all-root",
        str(made / "root.erofs"),
        str(root),
    )
    with (made / "root.erofs").open("r+b") as file:
        length = file.seek(0, os.SEEK_END)
        file.truncate(-(-length // BLOCK) * BLOCK)
    (made / "first.cpio").write_bytes(archive(_first_files(root, release)))
    names = ("vmlinuz", "root.erofs", "first.cpio")
    data = {
        "digest": _digest_of(made / name for name in names),
        "kernel_release": release,
        "packages": dict(sorted(packages.items())),
        "programs": _programs(root),
        "controls": _controls(root, release),
        "lengths": {name: (made / name).stat().st_size for name in names},
    }
    (made / "image.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
    return made


def _download(work: Path, say: Callable[[str], None]) -> list[Path]:
    """The packages' archives, by apt in a world of its own in which nothing is installed."""
    apt = work / "apt"
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (apt / folder).mkdir(parents=True)
    (apt / "status").touch()
    options = {
        "Dir::State": apt / "state",
        "Dir::State::status": apt / "status",
        "Dir::Cache": apt / "cache",
        "APT::Architecture": "amd64",
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "",
        "Debug::NoLocking": "true",
    }
    settings = [part for key, value in options.items() for part in ("-o", f"{key}={value}")]
    _run("apt-get", *settings, "--quiet", "--quiet", "update", remedy="see that apt reaches its archive")
    say("fetching packages")
    _run(
        "apt-get",
        *settings,
        "--quiet",
        "--quiet",
        "--yes",
        "--download-only",
        "install",
        recipe.KERNEL_PACKAGE,
        *recipe.PACKAGES,
        remedy="the image is made of Debian 12's packages; see that apt reaches its archive",
    )
    found = sorted((apt / "cache" / "archives").glob("*.deb"))
    if not any(deb.name.startswith("linux-image-") for deb in found):
        raise CannotRunError(f"apt-get fetched no {recipe.KERNEL_PACKAGE}; see that apt reaches its archive.")
    return found


def _skeleton(root: Path) -> None:
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    for name in ("dev", "proc", "sys", "run", "tmp", "root", "etc", "opt", "var/tmp", "job", "lower"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "etc" / "passwd").write_text(recipe.USERS, encoding="ascii")
    (root / "etc" / "group").write_text(recipe.GROUPS, encoding="ascii")
    (root / "etc" / "hosts").write_text("127.0.0.1 localhost\n", encoding="ascii")


def _unpack(deb: Path, into: Path) -> None:
    into.mkdir(exist_ok=True)
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as source:
        done = subprocess.run(
            ["tar", "-x", "-p", "--no-same-owner", "--keep-directory-symlink", "-C", into, "-f", "-"],
            stdin=source.stdout,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    if done.returncode != 0 or source.returncode != 0:
        raise CannotRunError(f"{deb.name}: cannot be unpacked: {done.stderr.strip()[-300:]}.")


def _alternatives(root: Path) -> None:
    """Links that a package's installation would have made."""
    libraries = root / "usr/lib/x86_64-linux-gnu"
    for name in ("blas", "lapack"):
        for library in (libraries / name).glob("lib*.so.3"):
            (libraries / library.name).symlink_to(f"{name}/{library.name}")


def _kernel(kernel: Path, root: Path) -> str:
    """Brings the modules that are kept. The kernel's release."""
    modules = next((kernel / "lib" / "modules").iterdir())
    target = root / "usr" / "lib" / "modules" / modules.name
    for kept in recipe.KERNEL_FOLDERS:
        source = modules / "kernel" / kept
        place = target / "kernel" / kept
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, place)
        elif source.is_file():
            shutil.copyfile(source, place)
    for lists in modules.glob("modules.*"):
        shutil.copyfile(lists, target / lists.name)
    _run("depmod", "-b", str(root), modules.name)
    return modules.name


def _trim(root: Path) -> None:
    for name in recipe.LEFT_OUT:
        place = root / name
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)


def _dependencies(root: Path, release: str) -> list[Path]:
    """Returns the files of `recipe.FIRST_MODULES` and of their dependencies, in the order of loading."""
    folder = root / "usr" / "lib" / "modules" / release
    needs = {}
    for line in (folder / "modules.dep").read_text(encoding="ascii").splitlines():
        file, _, rest = line.partition(":")
        needs[file] = rest.split()
    by_name = {Path(file).stem.replace("-", "_"): file for file in needs}
    order: list[str] = []
    for name in recipe.FIRST_MODULES:
        file = by_name[name]
        # modules.dep lists the dependencies, the farthest last.
        for one in [*reversed(needs[file]), file]:
            if one not in order:
                order.append(one)
    return [folder / file for file in order]


def _first_files(root: Path, release: str) -> dict[str, bytes | Path | None]:
    modules = _dependencies(root, release)
    # A module that erofs requests by its algorithm's name, and would not find before there is a root.
    crc = root / "usr/lib/modules" / release / "kernel/crypto/crc32c_generic.ko"
    if crc.is_file() and crc not in modules:
        modules.insert(0, crc)
    loads = "\n".join(f"/bin/busybox insmod /modules/{file.name}" for file in modules)
    files: dict[str, bytes | Path | None] = {
        "bin/busybox": root / "usr/bin/busybox",
        "init": _INIT.replace("LOADS", loads).encode(),
    }
    files |= {f"modules/{file.name}": file for file in modules}
    return files | dict.fromkeys(("proc", "sys", "dev", "lower", "upper", "new"))


_INIT = """#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs devtmpfs /dev
LOADS
# Modules of memory are numbered as they are found.
n=0
while [ ! -d /lower/usr ] && [ $n -lt 200 ]; do
  for d in /dev/pmem*; do $b mount -t erofs -o ro $d /lower 2>/dev/null && break; done
  n=$((n+1)); $b usleep 50000
done
$b mount -t tmpfs -o size=90% tmpfs /upper
$b mkdir /upper/files /upper/work
$b mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work overlay /new
$b cp -a /streamgauge /new/opt/
for m in proc sys dev; do $b mount --move /$m /new/$m; done
export PYTHONPATH=/opt/streamgauge PYTHONHASHSEED=0
exec $b switch_root /new /usr/bin/python3 -u -m streamgauge.emu.machine.guest
"""


def _programs(root: Path) -> list[str]:
    folders = (root / "usr" / name for name in ("bin", "sbin"))
    return sorted({file.name for folder in folders for file in folder.iterdir()})


def _controls(root: Path, release: str) -> list[str]:
    """Congestion controls that are modules, and the two that are built in."""
    folder = root / "usr/lib/modules" / release / "kernel/net/ipv4"
    # tcp_diag and tcp_probe are none, nor is tcp_diag's kin
    modules = [file.stem.removeprefix("tcp_") for file in folder.glob("tcp_*.ko") if file.stem != "tcp_diag"]
    return sorted({"reno", "cubic", *modules})


def _recipe_digest() -> str:
    """Names the image that this version asks for."""
    files = (Path(recipe.__file__), recipe.PACKAGES_FILE, Path(__file__))
    words = b"".join(file.read_bytes() for file in files)
    return hashlib.sha256(words).hexdigest()[:12]


def _digest_of(files: Iterable[Path]) -> str:
    total = hashlib.sha256()
    for file in files:
        with file.open("rb") as source:
            total.update(hashlib.file_digest(source, "sha256").digest())
    return total.hexdigest()[:16]


def _run(*command: str, remedy: str = "") -> None:
    environment: dict[str, Any] = {**os.environ, "PATH": _PATH, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace", check=False, env=environment
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        errors = [line for line in said if line.startswith("E:")] or said[-1:]
        raise CannotRunError(f"{command[0]}: {' '.join(errors)[:400]}{remedy and f'; {remedy}'}.")
