"""The kernel's own queueing disciplines in the emulator's place, for comparisons.

A bridge joins the router's two interfaces, or, where the kernel has none, a redirection of all that either
receives; the discipline is at the one towards the client. A shaper on the sender's own interface would be no
bottleneck: the sender's small queues would push back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from streamgauge.emu import network as net
from streamgauge.emu.errors import TrialBrokenError

BRIDGE = "kernel0"
ENDS = ("server", "client")


def htb(rate_bps: int, limit_bytes: int) -> list[str]:
    """Lines of ``tc -batch``: a single class, and a first-in-first-out queue in bytes behind it."""
    # The bucket holds one full frame: a larger one lets bursts past at more than the rate.
    return [
        "qdisc add dev client root handle 1: htb default 1",
        f"class add dev client parent 1: classid 1:1 htb rate {rate_bps}bit burst 1600 cburst 1600",
        f"qdisc add dev client parent 1:1 handle 10: bfifo limit {limit_bytes}",
    ]


def tbf(rate_bps: int, limit_bytes: int) -> list[str]:
    """Lines of ``tc -batch``: a token bucket of one full frame, its queue in bytes."""
    return [f"qdisc add dev client root tbf rate {rate_bps}bit burst 1600 limit {limit_bytes}"]


PEERS = {"htb+bfifo": htb, "tbf": tbf}


@contextmanager
def forwarding(lines: list[str], engine: str) -> Iterator[None]:
    """The router forwards by itself, through the discipline that `lines` set up."""
    try:
        net.run(["ip", "-n", net.ROUTER, "link", "add", BRIDGE, "type", "bridge", "forward_delay", "0"])
    except TrialBrokenError:
        joined = _redirected(engine)
    else:
        joined = _bridged()
    with joined:
        try:
            _tc(lines, engine)
            yield
        finally:
            # It is missing if the kernel has no such discipline; the error of adding it was raised already.
            with suppress(TrialBrokenError):
                _tc(["qdisc del dev client root"], engine)


@contextmanager
def _bridged() -> Iterator[None]:
    try:
        for interface in ENDS:
            net.run(["ip", "-n", net.ROUTER, "link", "set", "dev", interface, "master", BRIDGE])
        net.run(["ip", "-n", net.ROUTER, "link", "set", "dev", BRIDGE, "up"])
        yield
    finally:
        net.run(["ip", "-n", net.ROUTER, "link", "del", BRIDGE])


@contextmanager
def _redirected(engine: str) -> Iterator[None]:
    try:
        for interface, other in (ENDS, ENDS[::-1]):
            to = f"matchall action mirred egress redirect dev {other}"
            _tc([f"qdisc add dev {interface} ingress"], engine)
            _tc([f"filter add dev {interface} parent ffff: protocol all {to}"], engine)
        yield
    finally:
        for interface in ENDS:
            # The second is missing if the first could not be set up; that error was raised already.
            with suppress(TrialBrokenError):
                _tc([f"qdisc del dev {interface} ingress"], engine)


def _tc(lines: list[str], engine: str) -> None:
    net.run([*net.inside(net.ROUTER, engine), "tc", "-batch", "-"], stdin="\n".join(lines) + "\n")
