"""Tries all that a player may not do, and prints what came of each try: a line of JSON."""

from __future__ import annotations

import ctypes
import fcntl
import json
import mmap
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
PTRACE_ATTACH, PTRACE_DETACH = 16, 17
CLONE_NEWUSER = 0x1000_0000
IP_FREEBIND, IP_TRANSPARENT = 15, 19
CALLS = {
    "mount": 165,
    "bpf": 321,
    "perf_event_open": 298,
    "userfaultfd": 323,
    "keyctl": 250,
    "kexec_load": 246,
    "io_uring_setup": 425,
    "fanotify_init": 300,
    "syslog": 103,
}
"""Numbers on x86-64."""


def tried(attempt: Callable[[], object]) -> str:
    try:
        return f"done: {attempt()}"
    except OSError as error:
        return f"refused: {error.strerror}"
    except ValueError as error:  # of a limit
        return f"refused: {error}"


def called(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def written(path: Path) -> str:
    def write() -> str:
        with path.open("a", encoding="ascii") as file:
            file.write("x\n")
        return str(path)

    return tried(write)


def attached(pid: int) -> str:
    LIBC.ptrace.restype = ctypes.c_long
    answer = tried(lambda: called(LIBC.ptrace(PTRACE_ATTACH, pid, None, None)))
    if answer.startswith("done"):
        LIBC.ptrace(PTRACE_DETACH, pid, None, None)
    return answer


def sent(source: str, target: str, *options: int, device: bool = False) -> str:
    """Datagrams from an address to another; by a `device` even if no route leads there."""

    def send() -> int:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mine:
            if device:
                mine.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0")
            for option in options:
                mine.setsockopt(socket.IPPROTO_IP, option, 1)
            mine.bind((source, 0))
            return sum(mine.sendto(b"x" * 500, (target, 40001)) for _ in range(50))

    return tried(send)


def connected(target: str, port: int) -> str:
    def connect() -> str:
        with socket.create_connection((target, port), timeout=2):
            return target

    return tried(connect)


def moved() -> str:
    """A file goes from one folder to another."""
    folder = Path(os.environ["STREAMGAUGE_OUT"])
    (folder / "below").mkdir()
    (folder / "moved").write_text("x", encoding="ascii")
    return str((folder / "moved").rename(folder / "below" / "moved"))


def spoken(service: Path, kind: int) -> str:
    """To a service of the machine, by the name of its Unix socket."""

    def speak() -> str:
        with socket.socket(socket.AF_UNIX, kind) as mine:
            mine.connect(str(service))
            mine.send(b"x")
        return str(service)

    return tried(speak)


def locked(file: Path) -> dict[str, str]:
    """Locks of both kinds on a file that somebody else has locked for himself alone."""
    descriptor = os.open(file, os.O_RDONLY)
    no_wait = fcntl.LOCK_NB
    return {
        "flock": tried(lambda: fcntl.flock(descriptor, fcntl.LOCK_EX | no_wait)),
        "fcntl": tried(lambda: fcntl.lockf(descriptor, fcntl.LOCK_SH | no_wait)),
    }


def made(family: int) -> str:
    return tried(lambda: socket.socket(family, socket.SOCK_STREAM).close())


def called_as_32_bits() -> int:
    """socketcall(2) by int 0x80, for a vsock socket: how the process that tries it ends."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    LIBC.mmap.restype = ctypes.c_void_p
    LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    below_4_gib, everything = 0x40, 7
    at = LIBC.mmap(None, 4096, everything, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | below_4_gib, -1, 0)
    ctypes.memmove(at + 512, (ctypes.c_uint32 * 3)(socket.AF_VSOCK, socket.SOCK_STREAM, 0), 12)
    # push rbx; mov eax, 102; mov ebx, 1; mov ecx, the arguments; int 0x80; pop rbx; ret
    code = b"\x53\xb8\x66\0\0\0\xbb\1\0\0\0\xb9" + (at + 512).to_bytes(4, "little") + b"\xcd\x80\x5b\xc3"
    ctypes.memmove(at, code, len(code))
    os._exit(ctypes.CFUNCTYPE(ctypes.c_int)(at)() >= 0)


def main() -> None:
    # Pid 1 is the sandbox's own. An ordinary user's has his own number, and the kernel keeps signals from it.
    tried(lambda: os.kill(1, signal.SIGKILL))
    mark, home, services = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    own, server = os.environ["STREAMGAUGE_PLAYER"], os.environ["STREAMGAUGE_SERVER"]
    rival, rivals_server = own.replace(".0.1", ".1.1"), server.replace(".0.1", ".1.1")
    flows = Path("/run/streamgauge/flows")
    others = [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()]
    others = [pid for pid in others if pid not in (os.getpid(), os.getppid())]
    answers: dict[str, object] = {
        "uid": os.getuid(),
        "class": tried(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))),
        "devices": sorted(one.name for one in Path("/dev").iterdir()),
        "a device of its own": tried(lambda: Path("/dev", mark).touch()),
        "flows": sorted(one.name for one in flows.iterdir()),
        "processes": {
            pid: Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            for pid in others
        },
        "status": {
            name: value.strip()
            for name, _, value in (
                line.partition(":") for line in Path("/proc/self/status").read_text().splitlines()
            )
            if name in ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp")
        },
        "writes": {
            "home": written(home / ".bashrc"),
            "scenario": written(home / "scenario.yaml"),
            "etc": written(Path("/etc") / mark),
            "rival": written(flows / "1" / "player" / "events.jsonl"),
            "server": written(flows / "0" / "server" / "events.jsonl"),
            "engine": written(Path("/run/streamgauge/bin/streamgauge-engine")),
            "pipe": tried(lambda: os.open(services / "pipe", os.O_WRONLY | os.O_NONBLOCK)),
            "pipe, both ways": tried(lambda: os.open(services / "pipe", os.O_RDWR)),
            "memory that is no file": tried(lambda: os.memfd_create("x")),
            "the order of ends": written(Path("/proc/self/oom_score_adj")),
            "the limit of cores": tried(lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0))),
            "a lease": tried(
                lambda: fcntl.fcntl(os.open(__file__, os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK)
            ),
            "more shared memory than files": tried(lambda: called(LIBC.shmget(0x5348, 8 << 30, 0o1666))),
        },
        "own": {
            "out": written(Path(os.environ["STREAMGAUGE_OUT"]) / "kept"),
            "shared": written(Path(os.environ["STREAMGAUGE_SHARED"]) / "handed"),
            "home": written(Path(os.environ["HOME"]) / "settings"),
            "tmp": written(Path("/tmp") / mark),
            "var_tmp": written(Path("/var/tmp") / mark),
            "shm": written(Path("/dev/shm") / mark),
            "null": written(Path("/dev/null")),
            "stderr": written(Path("/dev/stderr")),
            "terminal": tried(lambda: os.openpty()),
            "move": tried(moved),
        },
        "ipc": {
            "shm": tried(lambda: called(LIBC.shmget(0x5347, 1_000_000, 0o1666))),
            "queue": tried(lambda: called(LIBC.msgget(0x5347, 0o1666))),
            "mqueue": tried(lambda: called(LIBC.mq_open(f"/{mark}".encode(), 0o102, 0o666, None))),
        },
        "reach": {
            "kill_others": sorted(
                {
                    tried(lambda pid=pid: os.kill(pid, 0))
                    for pid in range(2, 3000)
                    if pid not in (os.getpid(), os.getppid(), *others)
                }
            ),
            "ptrace": attached(1),
            "memory": tried(lambda: os.open("/proc/1/mem", os.O_RDONLY)),
            "environment": tried(lambda: Path("/proc/1/environ").read_bytes()),
            "root": tried(lambda: sorted(Path("/proc/1/root").iterdir())),
            "priority": tried(lambda: os.setpriority(os.PRIO_PROCESS, 1, 5)),
        },
        "calls": {
            name: tried(lambda number=number: called(LIBC.syscall(number, 0, 0, 0, 0, 0)))
            for name, number in CALLS.items()
        }
        | {"user namespace": tried(lambda: called(LIBC.unshare(CLONE_NEWUSER)))},
        "network": {
            "rival's address": sent(rival, rivals_server),
            "rival's address, unbound to it": sent(rival, server, IP_FREEBIND),
            "rival's address, transparent": sent(rival, rivals_server, IP_TRANSPARENT),
            "own address to the rival's server": sent(own, rivals_server),
            "to the rival's player": sent(own, rival),
            "to the end": sent(own, "10.1.255.1"),
            "loopback's address": sent("127.0.0.1", server),
            "a connection to the rival's server": connected(rivals_server, 6020),
            "a raw socket": tried(
                lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW).close()
            ),
            "a packet socket": tried(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()),
            "a socket to the machine's host": made(socket.AF_VSOCK),
            "a socket of the kernel's ciphers": tried(
                lambda: socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET).close()
            ),
        },
    }
    answers["past its routes"] = {
        "to the rival's player": sent(own, rival, device=True),
        "to the rival's server": sent(own, rivals_server, device=True),
        "with the rival's address": sent(rival, server, IP_FREEBIND, device=True),
    }
    answers["services"] = {
        f"{folder}, {name}": spoken(folder / name, kind)
        for folder in (services, home)
        for name, kind in (("stream", socket.SOCK_STREAM), ("datagrams", socket.SOCK_DGRAM))
    } | {"a pipe beside the scenario": tried(lambda: os.open(home / "pipe", os.O_WRONLY | os.O_NONBLOCK))}
    answers["locks"] = {str(folder): locked(folder / "locked") for folder in (services, home)}
    answers["as 32 bits"] = called_as_32_bits()
    # Of a session of its own, and its parent gone.
    answers["left"] = subprocess.Popen(["sleep", "987653"], start_new_session=True).pid
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
