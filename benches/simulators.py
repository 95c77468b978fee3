"""Our simulator beside ns-3 on one scenario, in one run: CPU time per data packet, and the ratio.

    python benches/simulators.py [--rounds N] [--quick] [--flows N ...] [--json FILE]

N Reno flows over 10 Mbit/s (N x 0.5 Mbit/s above 20 flows), a queue of 1 BDP, 20 ms round trip. The figure
is user + system CPU time until files are closed, per packet with payload that leaves the bottleneck. Ours is
`crates/sim/benches/sim.rs`, with the record on and off; ns-3's is `benches/ns3/dumbbell.cc`, which records
nothing. Each round runs all of them in turn, so that a machine that grows busier does so for all alike; shown
is the median over the rounds, and the median of the rounds' ratios.

ns-3 runs twice: as a dumbbell of routers and hosts, which is how it is used, and with the flows' hosts at the
ends of the bottleneck, one link as ours has. It simulates less time than ours: the bench takes minutes.

ns-3 is Debian's libns3-dev. Without it, or without a C++ compiler, ours is measured alone.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HEADER = Path("/usr/include/ns3/core-module.h")
NO_NS3 = "ns-3 is not measured: {why}. Get it by `apt-get install libns3-dev g++ make` and run this again."
LOGGING = (
    "ns-3 is the packaged one, which has logging compiled in: every NS_LOG line costs a test at run time.\n"
    "A build of one's own without logging was not measured."
)
NS3_SECONDS = {2: 60.0, 20: 60.0, 200: 10.0, 2000: 4.0}
"""Simulated time for a number of flows, s: a CPU second for few flows, some fifteen for 2,000."""
MOST_FLOWS = 10_000


@dataclass(frozen=True)
class Round:
    """CPU us per data packet of one round; ns-3's None where it is not there."""

    off: float
    on: float
    dumbbell: float | None
    one_link: float | None


class BenchError(Exception):
    """One line with the fault and a remedy."""


def cargo() -> str:
    """Returns the cargo that set-up chose, else the first on the path."""
    chosen = ROOT / ".venv" / ".rust-bin"
    if chosen.exists():
        return str(Path(chosen.read_text(encoding="utf-8").strip()) / "cargo")
    found = shutil.which("cargo")
    if found is None:
        raise BenchError("there is no cargo; run `make setup` first")
    return found


def build_ours() -> dict[str, str]:
    """Returns the programs of the crate's benches, by name."""
    tool = cargo()
    command = [tool, "bench", "--quiet", "--no-run", "-p", "streamgauge-sim", "--message-format=json"]
    path = f"{Path(tool).parent}{os.pathsep}{os.environ['PATH']}"
    built = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env={**os.environ, "PATH": path}
    )
    if built.returncode:
        raise BenchError("the simulator's benches do not build; what cargo said is above")
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    return {
        m["target"]["name"]: m["executable"]
        for m in messages
        if m.get("reason") == "compiler-artifact" and m.get("executable") and "bench" in m["target"]["kind"]
    }


def build_ns3(folder: Path) -> tuple[Path | None, str]:
    """ns-3's program, or None and why there is none."""
    if not HEADER.exists():
        return None, "libns3-dev is not installed"
    program = folder / "dumbbell"
    try:
        command = ["make", "--silent", "-C", str(ROOT / "benches" / "ns3"), f"OUT={program}"]
        built = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except FileNotFoundError:
        return None, "there is no make"
    if built.returncode:
        return None, f"benches/ns3 does not build: {built.stdout.strip().splitlines()[-1]}"
    return program, ""


def ask(command: list[str]) -> dict[str, Any]:
    """Returns the line of JSON that a bench prints."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise BenchError(f"{' '.join(command)} ended with status {done.returncode}; what it said is above")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def ns3_seconds(flows: int, quick: bool) -> float:
    """Returns the time that ns-3 needs for a number of flows, s: that of the nearest larger number of
    flows."""
    seconds = next((s for most, s in NS3_SECONDS.items() if flows <= most), min(NS3_SECONDS.values()))
    return max(seconds / 4, 2.0) if quick else seconds


def measure(flows: int, ours: str, ns3: Path | None, quick: bool, seen: dict[str, Any]) -> Round:
    """Returns one round. `seen` receives the programs' other output."""
    parts = {}
    for half in ("off", "on"):
        (line,) = ask([ours, "--json", "--rounds=1", f"--{half}", str(flows)])["per_packet"]
        parts[half] = line[f"record_{half}_us"]
        seen["streamgauge"] = {
            **seen.get("streamgauge", {}),
            **{k: v for k, v in line.items() if v is not None},
        }
    peers: dict[str, float | None] = {"dumbbell": None, "one_link": None}
    for name, hosts in (("dumbbell", -1), ("one_link", 0)) if ns3 else ():
        seconds = ns3_seconds(flows, quick)
        told = ask([str(ns3), f"--flows={flows}", f"--seconds={seconds}", f"--hosts={hosts}"])
        peers[name] = told["us_per_packet"]
        seen[name] = told
    return Round(parts["off"], parts["on"], peers["dumbbell"], peers["one_link"])


def result(flows: int, rounds: list[Round], seen: dict[str, Any]) -> dict[str, Any]:
    """Medians over the rounds."""
    line: dict[str, Any] = {
        "flows": flows,
        "record_off_us": median(r.off for r in rounds),
        "record_on_us": median(r.on for r in rounds),
    }
    for peer in ("dumbbell", "one_link"):
        pairs = [(r, us) for r in rounds if (us := getattr(r, peer)) is not None]
        if pairs:
            line[f"ns3_{peer}_us"] = median(us for _, us in pairs)
            line[f"ns3_{peer}_to_off"] = median(us / r.off for r, us in pairs)
            line[f"ns3_{peer}_to_on"] = median(us / r.on for r, us in pairs)
    return {**line, "seen": seen}


def show(line: dict[str, Any]) -> None:
    """A row of the table."""
    row = f"{line['flows']:6}{line['record_off_us']:9.3f}{line['record_on_us']:9.3f}"
    if "ns3_dumbbell_us" in line:
        for peer in ("dumbbell", "one_link"):
            us, to_off, to_on = (line[f"ns3_{peer}_{what}"] for what in ("us", "to_off", "to_on"))
            row += f"{us:11.1f}{to_off:8.0f} x{to_on:7.0f} x"
    print(row, flush=True)


def fairness(line: dict[str, Any]) -> str:
    """Returns the two programs' work on the link, which must be the same."""
    seen = line["seen"]
    ours = seen["streamgauge"]
    text = (
        f"N = {line['flows']}: ours {ours['packets']:,} packets, {100 * ours['goodput']:.1f} % of the most "
        f"that the link carries, {100 * ours['retransmitted']:.1f} % sent again"
    )
    if "dumbbell" in seen:
        told = seen["dumbbell"]
        most = told["rate_bps"] * 1448 / 1514
        text += (
            f"; ns-3 {told['packets']:,} packets in {told['simulated_s']:g} s, "
            f"{100 * told['goodput_bps'] / most:.1f} %, "
            f"{100 * told['drops'] / told['packets']:.1f} % dropped, "
            f"{told['events'] / told['packets']:.1f} events a packet, {told['peak_memory_mb']:.0f} MB"
        )
    return text


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measures and prints."""
    programs = build_ours()
    with tempfile.TemporaryDirectory() as folder:
        ns3, why = build_ns3(Path(folder))
        print("CPU us per data packet, and how many times ours ns-3's is, record off and on")
        print(
            "            ours             ns-3, dumbbell              ns-3, one link"
            if ns3
            else "            ours"
        )
        peer = f"{'us':>11}{'to off':>10}{'to on':>9}"
        print(f"{'flows':>6}{'off':>9}{'on':>9}{peer * 2 if ns3 else ''}", flush=True)
        lines = []
        for flows in options.flows:
            seen: dict[str, Any] = {}
            rounds = [
                measure(flows, programs["sim"], ns3, options.quick, seen) for _ in range(options.rounds)
            ]
            lines.append(result(flows, rounds, seen))
            show(lines[-1])
    for line in lines:
        print(fairness(line))
    if len(lines) > 1:
        for half in ("off", "on"):
            costs = [line[f"record_{half}_us"] for line in lines]
            print(f"record {half}: the dearest is {max(costs) / min(costs):.2f} times the cheapest")
    memory = ask([programs["memory"], "--json"])
    print(f"an idle flow: {memory['idle_flow_bytes']:,.0f} B of memory")
    print(LOGGING if ns3 else NO_NS3.format(why=why))
    return {
        "schema": "streamgauge.bench.simulators/1",
        "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
        "ns3": "Debian libns3-dev, logging compiled in" if ns3 else None,
        "tcp": "TcpLinuxReno",
        "rounds": options.rounds,
        "lines": lines,
        "idle_flow_bytes": memory["idle_flow_bytes"],
    }


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Returns the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="of which medians are shown (default 3)")
    parser.add_argument("--quick", action="store_true", help="a quarter of ns-3's simulated time")
    parser.add_argument("--flows", type=int, nargs="+", default=list(NS3_SECONDS), metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds}: give 1 or more")
    for flows in options.flows:
        if not 1 <= flows <= MOST_FLOWS:
            parser.error(f"--flows {flows}: give 1 to {MOST_FLOWS}")
    return options


def main() -> int:
    options = parse()
    try:
        report = run(options)
        if options.json:
            options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    except (BenchError, OSError) as error:
        print(f"simulators: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
