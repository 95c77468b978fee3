"""The contents of the virtual machine's image. A change here makes another image."""

from __future__ import annotations

from pathlib import Path

KERNEL_PACKAGE = "linux-image-cloud-amd64"
"""The distribution's kernel for guests; its package depends on the newest build."""

PACKAGES_FILE = Path(__file__).with_name("packages.txt")
PACKAGES: tuple[str, ...] = tuple(
    line
    for line in PACKAGES_FILE.read_text(encoding="ascii").splitlines()
    if line and not line.startswith("#")
)
"""Debian's packages, with all that they depend on, without what they recommend."""

LEFT_OUT: tuple[str, ...] = (
    "boot",
    "usr/share/doc",
    "usr/share/fonts",
    "usr/share/gir-1.0",
    "usr/share/icons",
    "usr/share/info",
    "usr/share/lintian",
    "usr/share/locale",
    "usr/share/man",
    "usr/share/sounds",
    "usr/share/X11",
    "var/cache",
    # drivers of displays, and the compiler that only they need
    "usr/lib/x86_64-linux-gnu/dri",
    "usr/lib/x86_64-linux-gnu/mfx",
    "usr/lib/x86_64-linux-gnu/libLLVM-15.so.1",
    "usr/lib/x86_64-linux-gnu/libmfxhw64.so.1.35",
    "usr/lib/x86_64-linux-gnu/libz3.so.4",
)
"""Folders and files of packages that no trial opens."""

KERNEL_FOLDERS: tuple[str, ...] = (
    "crypto",
    "drivers/acpi/nfit",
    "drivers/net/dummy.ko",
    "drivers/net/ifb.ko",
    "drivers/net/tun.ko",
    "drivers/net/veth.ko",
    "drivers/nvdimm",
    "drivers/dax",
    "fs/erofs",
    "fs/overlayfs",
    "lib",
    "net/core",
    "net/ipv4",
    "net/ipv6",
    "net/netfilter",
    "net/sched",
)
"""Modules of the kernel that are kept."""

FIRST_MODULES: tuple[str, ...] = ("nfit", "nd_pmem", "erofs", "overlay")
"""Loaded, with their dependencies, before there is a root."""

QDISCS: tuple[str, ...] = ("sch_netem", "sch_tbf", "sch_fq", "sch_htb", "sch_codel", "sch_pie", "sch_red")
"""Modules that are loaded before a trial begins, beside every congestion control of TCP."""

USERS = """root:x:0:0:root:/root:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
"""
GROUPS = """root:x:0:
daemon:x:1:
adm:x:4:
www-data:x:33:
nogroup:x:65534:
"""
