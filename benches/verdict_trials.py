"""Trials that are odd and unharmed, which the verdict must call valid, and the faults that it must find.

`benches/validity.py` counts how often it does; `tests/emu/test_odd_trials.py` and `test_mutations.py` run one
of each.
"""

from __future__ import annotations

import json
import re
from typing import Any

Flow = dict[str, Any]

FEED = """
import os, socket, threading
def feed(to):
    try:
        while True:
            to.sendall(bytes(20000))
    except OSError:
        pass
listener = socket.create_server((os.environ["STREAMGAUGE_SERVER"], int(os.environ["STREAMGAUGE_PORT"])))
while True:
    threading.Thread(target=feed, args=listener.accept()[:1], daemon=True).start()
"""
"""Sends without end to every client."""

READ = """
import json, os, signal, socket, sys, time
most, at_once, pause_s, after_s = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
time.sleep(after_s)
total = 0
source = socket.create_connection((os.environ["STREAMGAUGE_SERVER"], int(os.environ["STREAMGAUGE_PORT"])))
try:
    while total < most:
        total += len(source.recv(min(at_once, most - total)))
        time.sleep(pause_s)
finally:
    event = {"t_monotonic_ns": time.monotonic_ns(), "name": "total_bytes_received", "value": total}
    open(os.environ["STREAMGAUGE_EVENTS"], "w").write(json.dumps(event) + chr(10))
"""
"""A player that reads `most` bytes, in blocks with a pause after each, and reports how many it read."""

IDLE = {"server": "sh -c 'touch $STREAMGAUGE_READY; exec sleep 60'", "player": "sleep 60"}


def _reads(most: int, at_once: int, pause_s: float, after_s: float = 0.0) -> Flow:
    """Returns a flow of commands over TCP, with a player that is silent for the first `after_s`."""
    words = f"{most} {at_once} {pause_s} {after_s}"
    return {
        "role": "subject",
        "system": {"server": f"python3 -c '{FEED}'", "player": f"python3 -c '{READ}' {words}"},
    }


def _cbr(packets_per_s: float, size: str, **more: Any) -> Flow:
    settings: Flow = {"rate": f"{packets_per_s:g} packets/s", "size": size}
    settings |= {key: more.pop(key) for key in ("ecn", "burst") if key in more}
    return {"role": "rival", "traffic": "cbr", "parameters": settings, **more}


def _bulk(control: str = "cubic", **more: Any) -> Flow:
    return {"role": "subject", "traffic": "bulk", "congestion_control": control, **more}


# The faults of `streamgauge-engine link`, and the tests of the verdict that must fail, at least one for each.
FAULTS: dict[str, tuple[str, ...]] = {
    "drop_row": ("conservation",),
    "overflow_ring": ("ring_drops",),
    "fail_send": ("send_errors",),
    "skew_clock": ("clock_drift_s", "stamp_age_s"),
    "half_rate": ("preflight",),
    "ignore_limit": ("preflight",),
    "swap_flows": ("witness",),
    "wrong_rate": ("preflight",),
    "wrong_delay": ("preflight",),
    # In force from the trial's start only, when the pre-flight is over.
    "late_wrong_rate": ("conditions", "replay"),
    "late_wrong_delay": ("conditions", "replay"),
    "late_ignore_limit": ("conditions", "replay"),
    "unsaid_delay": ("arrivals_p50_s",),
}

# Tests that fail where the processor was short, though all else was well. `starts` and `conditions` hold
# other faults too: only a late start and a late action count.
WANT_OF_PROCESSOR = frozenset(
    {
        "lateness_p99_s",
        "late_over_service",
        "clamped_share",
        "clamped_max_s",
        "arrivals_p99_s",
        "cpu_wait_share",
        "preflight",
    }
)
LATE = {"starts": r"off its time \(", "conditions": r" came [0-9.]+ s late$"}
FEWER = re.compile(r"^flow \S+ sent (\d+) packets, not (\d+)$")
"""A sender that waited for a processor, which `cpu_wait_share` must report beside it."""

PING: Flow = {"role": "rival", "traffic": "ping", "parameters": {"interval": "100 ms"}}

# For each: how long, the path down, the delay up, the flows.
ODD: dict[str, tuple[float, Flow, Flow, dict[str, Flow]]] = {
    # A queue that overflows all the time.
    "full": (
        1.5,
        {"rate": "2 Mbit/s", "queue": "droptail 20 packets", "delay": "50 ms"},
        {"delay": "50 ms"},
        {"cbr": _cbr(300, "1000 B", role="subject"), "ping": PING},
    ),
    # TCP that has lost something at every moment, the last one too, and continues: bytes wait above the
    # holes.
    "holes": (
        3,
        {"rate": "3 Mbit/s", "queue": "droptail 300 packets", "delay": "100 ms", "loss": "6 %"},
        {"delay": "100 ms"},
        {"bbr": _bulk("bbr"), "ping": PING},
    ),
    # A player that has enough and leaves, and one slower than the path: its kernel holds the unread bytes.
    "readers": (
        3,
        {"rate": "10 Mbit/s", "queue": "droptail 100 packets", "delay": "20 ms"},
        {"delay": "20 ms"},
        {"leaves": _reads(200_000, 20_000, 0.0), "lags": _reads(10**9, 4_000, 0.1)},
    ),
    # Programs that send nothing at all, or nothing for a long time.
    "idle": (
        3,
        {"rate": "2 Mbit/s", "queue": "droptail 50 packets", "delay": "50 ms"},
        {"delay": "50 ms"},
        {"silent": {"role": "subject", "system": IDLE}, "late": _reads(20_000, 20_000, 0.0, 1.5)},
    ),
    # Flows that end long before the trial.
    "ended": (
        2.5,
        {"rate": "2 Mbit/s", "queue": "droptail 50 packets", "delay": "50 ms"},
        {"delay": "50 ms"},
        {
            "cbr": _cbr(100, "500 B", stop="cbr.start + 700 ms"),
            "bulk": _bulk(parameters={"bytes": "30 kB"}),
        },
    ),
    # Bursts of loss both ways, up to the last packet.
    "lossy": (
        2,
        {
            "rate": "2 Mbit/s",
            "queue": "droptail 50 packets",
            "delay": "50 ms",
            "loss": {"gilbert_elliott": {"good": "20 packets", "bad": "10 packets", "loss_bad": "80 %"}},
        },
        {"delay": "50 ms", "loss": "20 %"},
        {"cbr": _cbr(150, "1000 B", role="subject"), "tiny": _cbr(50, "20 B"), "ping": PING},
    ),
    # Every way to speak of ECN, and handshakes that are lost.
    "ecn": (
        2.5,
        {"rate": "2 Mbit/s", "queue": "fq_codel 1000 packets", "delay": "50 ms", "loss": "10 %"},
        {"delay": "50 ms"},
        {
            "tcp": _bulk(ecn="on"),
            "ect0": _cbr(100, "1000 B", ecn="ect0"),
            "ect1": _cbr(100, "1000 B", ecn="ect1", burst="2 packets"),
        },
    ),
    # Datagrams in fragments, cut up again, copied, damaged, lost; TCP's segments too.
    "fragments": (
        2,
        {
            "rate": "3 Mbit/s",
            "queue": "droptail 200 packets",
            "delay": "100 ms",
            "loss": "2 %",
            "duplicate": "5 %",
            "corrupt": "2 %",
            "mtu": "1000 B",
        },
        {"delay": "100 ms"},
        {"large": _cbr(50, "4 kB", role="subject"), "tcp": _bulk("reno"), "ping": PING},
    ),
    # Packets that overtake each other.
    "reordered": (
        2.5,
        {
            "rate": "4 Mbit/s",
            "queue": "droptail 100 packets",
            "delay": {"constant": "50 ms", "jitter": {"uniform": "20 ms", "keep_order": "off"}},
            "reorder": "5 % 30 ms",
        },
        {"delay": "50 ms"},
        {"tcp": _bulk(), "cbr": _cbr(100, "500 B"), "ping": PING},
    ),
    # Many flows on one path, one that enters at the router, and video from our own machines.
    "crowd": (
        2.5,
        {"rate": "3 Mbit/s", "queue": "droptail 60 packets", "delay": "50 ms"},
        {"delay": "50 ms"},
        {
            "video": {"role": "subject", "system": "rtp", "clip": "carphone-550k"},
            "tcp": _bulk("reno"),
            "router": _cbr(100, "1000 B", **{"from": "router"}),
            "slow": _cbr(5, "200 B"),
            "tiny": _cbr(50, "20 B"),
            "late": _cbr(50, "500 B", start="1.8 s"),
            "ping": PING,
        },
    ),
}


# Every fault shows here within the second that `skew_clock` waits for.
HARMED = (1.6, *ODD["full"][1:])


def failed(validity: dict[str, Any]) -> list[str]:
    """Names of the verdict's tests that failed."""
    found = []
    for name, bound in validity["bounds"].items():
        value = validity["measured"].get(name)
        if isinstance(value, list):
            bad = bool(value)
        elif isinstance(bound, list) and isinstance(value, int | float):
            bad = not bound[0] <= value <= bound[1]
        elif isinstance(value, int | float) and not name.startswith(("preflight_", "cbr_packets")):
            bad = not value <= bound
        else:
            bad = False
        if bad:
            found.append(name)
    return found


def _is_late(name: str, fault: str, waited: bool) -> bool:
    fewer = FEWER.search(fault)
    return bool(re.search(LATE[name], fault)) or bool(waited and fewer and int(fewer[1]) < int(fewer[2]))


def wanted_processor(validity: dict[str, Any]) -> bool:
    """Returns whether a trial is invalid for nothing but lack of the processor."""
    bad, measured = failed(validity), validity["measured"]
    waited = "cpu_wait_share" in bad
    return bool(bad) and all(
        name in WANT_OF_PROCESSOR
        or (name in LATE and all(_is_late(name, fault, waited) for fault in measured[name]))
        for name in bad
    )


def scenario(kind: str) -> str:
    """Returns a scenario of an odd kind, or of the trial that faults are put into, as text."""
    seconds, down, up, flows = ODD.get(kind, HARMED)
    found = {
        "id": f"verdict/{kind.replace('_', '-')}",
        "title": f"A short trial: {kind}",
        "path": {"down": down, "up": up},
        "flows": flows,
        "until": {"time": f"{seconds:g} s"},
        "modes": ["emu"],
    }
    return json.dumps(found)
