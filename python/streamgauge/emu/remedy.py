"""Remedies for a missing part, in a checkout and in an installed wheel."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterable
from pathlib import Path

import streamgauge

_NGINX = "nginx-light"


def in_checkout() -> bool:
    """Returns whether the package is in a checkout of its sources, where ``make setup`` builds its parts."""
    return (Path(streamgauge.__file__).resolve().parents[2] / "scripts" / "setup.sh").is_file()


def build() -> str:
    """Returns the remedy for a part that is built with the package: native module or streamgauge-engine."""
    if in_checkout():
        return "run `make setup`"
    return (
        f"install a wheel that was built for this machine ({platform.system()}, {platform.machine()}); "
        "`make wheel` in a checkout builds one"
    )


def install(packages: str, *, alone: bool = True) -> str:
    """Returns the remedy for a missing program of the system. packages: Debian's, with spaces between. alone:
    whether no other part is reported; otherwise the text refers to `streamgauge doctor`."""
    rest = "" if alone else "; `streamgauge doctor` ends with one line for all that is missing"
    return f"install it (Debian, Ubuntu: `apt-get install {packages}`{rest})"


def install_line(packages: Iterable[str]) -> str | None:
    """Returns the one line that installs these packages of Debian's; None for none, and where there is no
    apt-get.

    A package that installs a service and is only a program here, nginx, is kept from running.
    """
    names = sorted({name for some in packages for name in some.split()})
    if not names or shutil.which("apt-get") is None:
        return None
    line = "apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "
    line += " ".join(names)
    if _NGINX in names and Path("/run/systemd/system").is_dir():
        line += " && systemctl disable --now nginx"
    return line
