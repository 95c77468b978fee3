"""What to do about a part that is missing, in a checkout and where a wheel was installed."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterable
from pathlib import Path

import streamgauge

_NGINX = "nginx-light"


def in_checkout() -> bool:
    """Whether the package lies in a checkout of its sources, where ``make setup`` builds what it needs."""
    return (Path(streamgauge.__file__).resolve().parents[2] / "scripts" / "setup.sh").is_file()


def build() -> str:
    """How to come by what is built with the package: the native module and streamgauge-engine."""
    if in_checkout():
        return "run `make setup`"
    return (
        f"install a wheel that was built for this machine ({platform.system()}, {platform.machine()}); "
        "`make wheel` in a checkout builds one"
    )


def install(packages: str, *, alone: bool = True) -> str:
    """How to come by a program of the system. packages: Debian's, with spaces between. alone: whether it is
    told beside all else that is missing; otherwise it says who tells that."""
    rest = "" if alone else "; `streamgauge doctor` ends with one line for all that is missing"
    return f"install it (Debian, Ubuntu: `apt-get install {packages}`{rest})"


def install_line(packages: Iterable[str]) -> str | None:
    """The one line that installs these packages of Debian's; None for none, and where there is no apt-get.

    What is installed as a service and is only a program here, nginx, is kept from running.
    """
    names = sorted({name for some in packages for name in some.split()})
    if not names or shutil.which("apt-get") is None:
        return None
    line = "apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "
    line += " ".join(names)
    if _NGINX in names and Path("/run/systemd/system").is_dir():
        line += " && systemctl disable --now nginx"
    return line
