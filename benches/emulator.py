"""How exactly and how cheaply the link emulator forwards, measured from outside by `gauge`.

    python benches/emulator.py [--quick] [--engine FILE ...] [--part timing,rate,probe,packets] [--load N]

Needs root (SCHED_FIFO, namespaces) and two processors. A packet socket in the namespace `server` offers the
load, the kernel stamps it in `client`, and the stamps are joined with the logical departures in the
emulator's own record.

- departure error: the receiver's kernel stamp less the logical departure, less the median time from a
  sender's system call to that stamp on a veth without the emulator (the unshaped pass).
- rate error: from the receiver's stamps of a saturated link alone.
- probe delay: from the kernel's stamp at the router's interface to that at the receiver's, on an empty link.
- packets: the cost of each rate, by thread, and the places of losses. The loop's system time includes
  the kernel's work on the other side of the veth, because that is on the sender's account. The split of
  user from system time is by ticks, and rough.

Several engines are measured in turn, round by round, so that they can be compared on a machine that is not
quiet.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from streamgauge.emu.lock import machine_lock

ROOT = Path(__file__).resolve().parent.parent
ENGINE = ROOT / "python/streamgauge/_bin/streamgauge-engine"
PARTS = ("timing", "rate", "probe", "packets")
WIRE = [{"name": "wire", "kind": {"delay": {"delay": 0}}}]
ENDS = {
    "sender": {"netns": "server", "interface": "eth0", "ip": "10.1.0.1"},
    "receiver": {"netns": "client", "interface": "eth0", "ip": "10.2.0.1"},
}
BARE = {
    "sender": {"netns": "server", "interface": "bare0", "ip": "10.1.0.1"},
    "receiver": {"netns": "client", "interface": "bare0", "ip": "10.2.0.1"},
}
HEADERS = "seq,sent_monotonic_ns,received_monotonic_ns"


def shell(script: str) -> None:
    """Runs a script to its end."""
    subprocess.run(["sh", "-ec", script], check=True, stdout=subprocess.DEVNULL)


def watched(shown: socket.socket) -> None:
    """Reads all that an emulator shows."""
    while shown.recv(1 << 16):
        pass


def network() -> None:
    """Two ends and the router (the sandbox's own namespace), and a veth past the emulator."""
    shell("""
        for n in server client; do ip netns add $n; ip -n $n link set lo up; done
        ip link add to-server type veth peer name eth0 netns server
        ip link add to-client type veth peer name eth0 netns client
        ip -n server link add bare0 type veth peer name bare0 netns client
        up() {
            $1 sh -c "echo 1 > /proc/sys/net/ipv6/conf/$2/disable_ipv6"
            $1 ethtool -K $2 tso off gso off gro off tx off
            $1 ip link set $2 up
        }
        for n in server client; do
            up "" to-$n
            up "ip netns exec $n" eth0
            up "ip netns exec $n" bare0
        done
        ip -n server addr add 10.1.0.1/32 dev eth0
        ip -n client addr add 10.2.0.1/32 dev eth0
    """)


class Link:
    """A running emulator."""

    def __init__(
        self, engine: str, out: Path, down: list[Any], seconds: float, options: argparse.Namespace
    ) -> None:
        flow = {"name": "f0", "role": "subject", "start": 0, "app": "external"}
        plan = {
            "scenario": "bench/emulator",
            "seed": 1,
            "duration": int(seconds * 1e9),
            "path": {"down": down, "up": WIRE},
            "flows": [flow],
        }
        config = {
            "plan": plan,
            "out": str(out),
            "fifo_priority": None if options.normal else 50,
            "interfaces": {"server": "to-server", "client": "to-client"},
            "flows": [{"name": "f0", "server_ip": "10.1.0.1", "player_ip": "10.2.0.1"}],
            **json.loads(options.link),
        }
        passed_on: tuple[int, ...] = ()
        if options.live:
            ours, theirs = socket.socketpair()
            passed_on = (theirs.fileno(),)
            config["live_fd"] = theirs.fileno()
            threading.Thread(target=watched, args=(ours,), daemon=True).start()
        file = out / "link.json"
        file.write_text(json.dumps(config))
        self.process = subprocess.Popen(
            [engine, "link", "--config", str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=passed_on,
        )
        if options.live:
            theirs.close()
        self.answer()

    def answer(self) -> dict[str, Any]:
        """Returns its next line."""
        assert self.process.stdout is not None
        line = json.loads(self.process.stdout.readline())
        if line["event"] == "error":
            raise SystemExit(f"the emulator failed: {line}")
        return dict(line)

    def tell(self, **command: Any) -> None:
        """Sends a command."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def start(self) -> int:
        """Starts the trial; its time zero."""
        self.tell(cmd="reset")
        self.answer()
        zero = time.monotonic_ns() + 100_000_000
        self.tell(cmd="start", t0_monotonic_ns=zero)
        self.answer()
        return zero

    def stop(self) -> dict[str, Any]:
        """Ends it; its statistics."""
        self.tell(cmd="stop")
        stats: dict[str, Any] = self.answer()["stats"]
        self.process.wait()
        return stats


def gauge(
    engine: str, ends: dict[str, Any], out: Path, load: dict[str, Any], start: int | None = None
) -> Any:
    """Runs `gauge`; returns its output, and its packets."""
    file, packets = out / "gauge.json", out / "gauge.csv"
    config = {**ends, "load": load, "start_monotonic_ns": start, "out": str(packets)}
    file.write_text(json.dumps(config))
    done = subprocess.run(
        [engine, "gauge", "--config", str(file)], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"gauge failed: {done.stdout}")
    schema = dict.fromkeys(HEADERS.split(","), pl.Int64)
    return json.loads(done.stdout), pl.read_csv(packets, schema=schema)


def quantiles(values: np.ndarray[Any, Any]) -> dict[str, float]:
    """In us."""
    at = {"p50": 0.5, "p99": 0.99, "p999": 0.999, "max": 1.0}
    found = {name: float(np.quantile(values, q, method="higher")) / 1e3 for name, q in at.items()}
    return {"min": float(values.min()) / 1e3, **found, "count": len(values)}


def steal() -> float:
    """CPU time that the hypervisor kept so far, s."""
    return int(Path("/proc/stat").read_text().splitlines()[0].split()[8]) / os.sysconf("SC_CLK_TCK")


def bottleneck(rate: float, limit: int, delay_ms: float) -> list[Any]:
    """Returns a drop-tail bottleneck and a delay."""
    queue = {"droptail": {"bytes": limit}}
    return [
        {"name": "bottleneck", "kind": {"bottleneck": {"rate": {"constant": int(rate)}, "queue": queue}}},
        {"name": "delay", "kind": {"delay": {"delay": int(delay_ms * 1e6)}}},
    ]


def shaped(
    engine: str, down: list[Any], load: dict[str, Any], options: argparse.Namespace
) -> tuple[dict[str, Any], dict[str, Any], pl.DataFrame]:
    """Returns one load through one link: gauge's word, the link's, and a row a packet with its departure,
    `due`."""
    with tempfile.TemporaryDirectory(dir="/run") as folder:
        out = Path(folder)
        link = Link(engine, out, down, load["packets"] / load["packets_per_s"] + 3600, options)
        zero = link.start()
        said, packets = gauge(engine, ENDS, out, load, zero + 50_000_000)
        stats = link.stop()
        last = max(stage for stage, _ in enumerate(down))
        rows = pl.read_parquet(out / "packets.parquet").filter(pl.col("flow") == 0)
        # Packets on the link are numbered in order of arrival, which on one veth is the order of sending.
        rows = rows.filter(pl.col("stage") <= last).sort("pkt", "stage")
        first = rows.filter(pl.col("stage") == 0).select("pkt", "t_in").with_row_index("seq")
        due = rows.filter((pl.col("stage") == last) & pl.col("t_out").is_not_null()).select("pkt", "t_out")
        table = first.join(due, on="pkt", how="left").with_columns(
            pl.col("seq").cast(pl.Int64), arrived=pl.col("t_in") + zero, due=pl.col("t_out") + zero
        )
        sent = packets.filter(pl.col("sent_monotonic_ns").is_not_null())
        lost_before = sent.height - table.height
        if lost_before == 0:
            table = packets.join(table, on="seq", how="left")
            delivered = table.filter(pl.col("due").is_not_null())
            assert (
                delivered["received_monotonic_ns"].null_count() == stats["send_errors"] + said["ring_drops"]
            )
        else:
            table = packets.with_columns(
                due=pl.lit(None, dtype=pl.Int64), arrived=pl.lit(None, dtype=pl.Int64)
            )
        return said, {**stats, "lost_before": lost_before}, table


def unshaped(engine: str, frame: int) -> float:
    """Median time from the system call to the receiver's stamp on a bare veth, ns."""
    with tempfile.TemporaryDirectory(dir="/run") as folder:
        load = {"packets_per_s": 1000, "frame_bytes": frame, "packets": 1500}
        ends = {**BARE, "sender": {**BARE["sender"], "fifo_priority": 50}}
        _, packets = gauge(engine, ends, Path(folder), load)
        took = packets["received_monotonic_ns"] - packets["sent_monotonic_ns"]
        return float(took.drop_nulls().median())  # type: ignore[arg-type]


def timing(engine: str, options: argparse.Namespace) -> dict[str, Any]:
    """Departure error at 10 Mbit/s and 20 ms, 1,000 packets/s offered."""
    base = unshaped(engine, 1042)
    seconds = options.seconds or (3 if options.quick else 10)
    load = {"packets_per_s": 1000, "frame_bytes": 1042, "packets": int(1000 * seconds)}
    stolen = steal()
    _, stats, table = shaped(engine, bottleneck(10e6, 60_000, 20), load, options)
    table = table.drop_nulls(["due", "received_monotonic_ns"])
    error = (table["received_monotonic_ns"] - table["due"]).to_numpy() - base
    return {
        "error_us": quantiles(error),
        "unshaped_us": base / 1e3,
        "link_lateness_us": {k: v / 1e3 for k, v in stats["lateness_ns"].items() if k != "count"},
        "cpu_share": stats["cpu_s"] / stats["duration_s"],
        "clamped": stats["clamped"]["count"],
        "stalls": stats.get("stalls"),
        "preemptions": stats.get("preemptions"),
        "late_over_service": stats["late_over_service"],
        "stolen_s": steal() - stolen,
    }


def rate(engine: str, options: argparse.Namespace) -> dict[str, Any]:
    """Returns a saturated link of 10 Mbit/s; the rate between the first and the last stamp."""
    seconds = options.seconds or (5 if options.quick else 60)
    load = {"packets_per_s": 1000, "frame_bytes": 1514, "packets": int(1000 * seconds)}
    _, _, table = shaped(engine, bottleneck(10e6, 60_000, 20), load, options)
    at = table["received_monotonic_ns"].drop_nulls().sort().to_numpy()[10:]
    measured = (len(at) - 1) * 1514 * 8 / ((at[-1] - at[0]) / 1e9)
    return {"bps": measured, "error_percent": (measured / 10e6 - 1) * 100, "s": (at[-1] - at[0]) / 1e9}


def probe(engine: str, options: argparse.Namespace) -> dict[str, Any]:
    """One-way delay of 200 B probes through an empty link, less its ideal of 20.16 ms."""
    seconds = options.seconds or (3 if options.quick else 10)
    load = {"packets_per_s": 97, "frame_bytes": 200, "packets": int(97 * seconds)}
    _, _, table = shaped(engine, bottleneck(10e6, 60_000, 20), load, options)
    took = (table["received_monotonic_ns"] - table["arrived"]).drop_nulls().to_numpy()
    return {"over_ideal_us": quantiles(took - 20_160_000.0)}


def packets(engine: str, options: argparse.Namespace) -> dict[str, Any]:
    """Returns the cost and the losses of each packet rate, 1514 B, 20 ms."""
    found = {}
    for wanted in options.rates:
        seconds = options.seconds or (2 if options.quick else 5)
        load = {
            "packets_per_s": wanted,
            "frame_bytes": 1514,
            "burst": options.burst,
            "packets": int(wanted * seconds),
        }
        stolen = steal()
        said, stats, table = shaped(engine, bottleneck(4e9, 20_000_000, 20), load, options)
        carried = max(1, stats["ports"]["client"]["tx_packets"])
        span = (said["last_sent_monotonic_ns"] - said["first_sent_monotonic_ns"]) / 1e9
        late = table.drop_nulls(["due", "received_monotonic_ns"])
        error = (late["received_monotonic_ns"] - late["due"]).to_numpy()
        threads = stats.get("cpu", {})
        found[str(wanted)] = {
            "offered_per_s": said["sent"] / span,
            "cpu_us": stats["cpu_s"] / carried * 1e6,
            "loop_us": {k.removesuffix("_s"): v / carried * 1e6 for k, v in threads.get("loop", {}).items()},
            "record_us": threads.get("others_s", float("nan")) / carried * 1e6,
            "sender_us": said["cpu_s"]["sender"] / max(1, said["sent"]) * 1e6,
            "receiver_us": said["cpu_s"]["receiver"] / max(1, said["received"]) * 1e6,
            "lost": {
                "sender": said["offered"] - said["sent"],
                "ring": stats["ring_drops"],
                "slab": stats["slab_drops"],
                "send": stats["send_errors"],
                "gauge": said["ring_drops"],
                "before": stats["lost_before"],
            },
            "error_us": quantiles(error) if len(error) else None,
            "conservation": stats["conservation"],
            "stolen_s": steal() - stolen,
        }
    return found


def lines(part: str, name: str, found: dict[str, Any]) -> list[str]:
    """Returns a result as text."""

    def spread(q: dict[str, float]) -> str:
        return " ".join(f"{key} {q[key]:.1f}" for key in ("min", "p50", "p99", "p999", "max"))

    if part == "timing":
        cpu, stolen = found["cpu_share"] * 100, found["stolen_s"]
        base = found["unshaped_us"]
        said = f"{name} departure error, us: {spread(found['error_us'])} (unshaped {base:.1f}; "
        if stalls := found["stalls"]:
            stalled, watched = stalls["total_ns"] / 1e6, stalls["watched_ns"] / 1e6
            said += f"{stalls['count']} stalls, {stalled:.2f} of {watched:.0f} ms; "
            said += f"{found['preemptions']} preemptions; "
        return [f"{said}CPU {cpu:.1f} %, stolen {stolen:.2f} s)"]
    if part == "rate":
        error = f"{found['error_percent']:+.4f} %"
        return [f"{name} rate: {found['bps'] / 1e6:.5f} Mbit/s over {found['s']:.1f} s, {error}"]
    if part == "probe":
        return [f"{name} probe delay over ideal, us: {spread(found['over_ideal_us'])}"]
    out = []
    for wanted, row in found.items():
        loop = " + ".join(f"{v:.2f} {k}" for k, v in row["loop_us"].items())
        lost = ", ".join(f"{v} {k}" for k, v in row["lost"].items() if v) or "nothing"
        error = row["error_us"] or {"p50": float("nan"), "p99": float("nan")}
        out.append(
            f"{name} {int(wanted):6d}/s asked, {row['offered_per_s']:8.0f} offered: "
            f"{row['cpu_us']:.2f} us CPU (loop {loop}; others {row['record_us']:.2f}; "
            f"sender {row['sender_us']:.2f}, receiver {row['receiver_us']:.2f}); lost {lost}; "
            f"error p50 {error['p50']:.0f} p99 {error['p99']:.0f} us; stolen {row['stolen_s']:.2f} s"
        )
    return out


def inside(options: argparse.Namespace) -> dict[str, Any]:
    """Everything, in the sandbox."""
    network()
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(options.load)]
    names = {engine: Path(engine).name if len(options.engine) > 1 else "" for engine in options.engine}
    measure = {"timing": timing, "rate": rate, "probe": probe, "packets": packets}
    results: dict[str, Any] = {}
    try:
        for part in options.part:
            for _ in range(options.rounds):
                for engine in options.engine:
                    found = measure[part](engine, options)
                    results.setdefault(names[engine] or "engine", {}).setdefault(part, []).append(found)
                    print(*lines(part, names[engine], found), sep="\n", flush=True)
    finally:
        for process in busy:
            process.kill()
    if options.rounds > 1 and "packets" in options.part:
        for name, parts in results.items():
            for wanted in options.rates:
                of = [round_[str(wanted)] for round_ in parts["packets"]]
                cpu = statistics.median(o["cpu_us"] for o in of)
                error = statistics.median(o["error_us"]["p99"] for o in of if o["error_us"])
                lost = [sum(o["lost"].values()) for o in of]
                words = f"{cpu:.2f} us CPU, error p99 {error:.0f} us, lost {lost}"
                print(f"median of {len(of)}: {name} {wanted:6d}/s {words}")
    return results


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Returns the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", nargs="+", default=[str(ENGINE)], help="executables to compare")
    parser.add_argument("--part", type=lambda text: text.split(","), default=list(PARTS))
    parser.add_argument(
        "--rates", type=lambda text: [int(r) for r in text.split(",")], default=[5000, 20000, 40000, 83000]
    )
    parser.add_argument("--burst", type=int, default=8, help="packets offered at once in part packets")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, help="length of each measurement")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--load", type=int, default=0, help="busy loops beside it")
    parser.add_argument("--normal", action="store_true", help="the normal scheduling class, not SCHED_FIFO")
    parser.add_argument("--live", action="store_true", help="show each trial while it runs, and read that")
    parser.add_argument("--link", default="{}", help="more of the link's configuration, as JSON")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def main() -> int:
    """Runs itself inside a sandbox."""
    options = arguments(sys.argv[1:])
    if options.inside:
        results = inside(options)
        if options.json:
            options.json.write_text(json.dumps(results, indent=1))
        return 0
    if os.geteuid() != 0:
        print("benches/emulator.py needs root: the targets are those of SCHED_FIFO", file=sys.stderr)
        return 1
    read, write = os.pipe()
    os.set_inheritable(write, False)
    sandbox = [
        options.engine[0],
        "sandbox",
        "--way",
        "root",
        "--parent",
        str(os.getpid()),
        "--lifeline",
        str(read),
    ]
    command = [*sandbox, "--", sys.executable, __file__, *sys.argv[1:], "--inside"]
    # Two trials at once would measure each other.
    with machine_lock(lambda words: print(words, file=sys.stderr)):
        return subprocess.run(command, pass_fds=[read], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
