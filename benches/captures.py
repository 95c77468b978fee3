"""How fast `analyze` reads and matches captures, and in how much memory, beside tshark in the same run.

    python benches/captures.py [--packets N] [--gigabytes G] [--json FILE]

Rates are packets a second of processor time (user and system), so that others on the machine do not count.

- mixed: TCP, its acknowledgements and RTP of 200 flows, frames of 1514 B and less
- small: the same, frames of 214 B
- matching: two captures of one path, fate by fate; packets of both count
- tcptrace: with round trips (`-lr`), of the same packets in Ethernet, also small. It follows TCP
  alone. The ratio is the median of those of the turns
- tshark: `-T fields` of addresses, ports, lengths and the TCP analysis, of the mixed file
- flow: bytes of memory a followed flow takes, of TCP with 40 packets each
- stream: the most memory for G gigabytes on standard input
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from streamgauge import _native

HEAD: Final = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 101)
ETHERNET_HEAD: Final = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
"""tcptrace reads times in us, and Ethernet."""
ETHERNET: Final = bytes([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0])
START_S: Final = 1_700_000_000
FIELDS: Final = (
    *("frame.time_epoch", "ip.src", "ip.dst", "tcp.srcport", "tcp.dstport", "udp.srcport", "frame.len"),
    *("tcp.seq", "tcp.ack", "tcp.analysis.retransmission", "tcp.analysis.lost_segment"),
)
ACK_BYTES: Final = 52


class Traffic:
    """Packets of some flows in turn: each fourth flow is RTP, each third of TCP's packets travels back."""

    def __init__(self, flows: int, size: int) -> None:
        self.flows, self.size = flows, size
        self.sent = [0] * flows
        self.number = 0

    def next(self) -> bytes:
        """Returns the next packet."""
        n, flow = self.number, self.number * 7919 % self.flows
        self.number += 1
        server, player = bytes([10, 0, 0, 1]), bytes([10, 1, flow >> 8 & 255, flow & 255])
        if flow % 4 == 3:
            seq = self.sent[flow]
            self.sent[flow] += 1
            rtp = struct.pack(">BBHII", 0x80, 96, seq & 0xFFFF, seq * 3000 & 0xFFFFFFFF, flow + 1000)
            above = struct.pack(">HHHH", 5004, 5004 + flow % 10000, self.size - 20, 0) + rtp
            return self.packet(17, server, player, n, self.size, above)
        stamps = b"\1\1\10\12" + struct.pack(">II", n // 100, n // 110)
        seq = self.sent[flow] & 0xFFFFFFFF
        ports = (80, 40000 + flow % 20000)
        if n % 3 == 2:
            head = struct.pack(">HHIIBBHHH", *ports[::-1], 1, seq, 8 << 4, 16, 60_000, 0, 0)
            return self.packet(6, player, server, n, ACK_BYTES, head + stamps)
        self.sent[flow] += self.size - ACK_BYTES
        head = struct.pack(">HHIIBBHHH", *ports, seq, 1, 8 << 4, 16, 60_000, 0, 0)
        return self.packet(6, server, player, n, self.size, head + stamps)

    @staticmethod
    def packet(protocol: int, source: bytes, target: bytes, n: int, size: int, above: bytes) -> bytes:
        """IPv4 around it."""
        head = struct.pack(
            ">BBHHHBBH4s4s", 0x45, 0, size, n & 0xFFFF, 0x4000, 64, protocol, 0, source, target
        )
        return (head + above).ljust(size, b"x")


def record(at_ns: int, packet: bytes, unit_ns: int = 1) -> bytes:
    """Returns a record of pcap."""
    seconds, rest = divmod(at_ns, 1_000_000_000)
    return struct.pack("<IIII", START_S + seconds, rest // unit_ns, len(packet), len(packet)) + packet


def write(file: Path, traffic: Traffic, packets: int, below: bytes = b"") -> Path:
    """Returns a file of `packets` packets, 10 us apart; `below` is Ethernet's header, if there is one."""
    with file.open("wb") as to:
        to.write(ETHERNET_HEAD if below else HEAD)
        unit_ns = 1000 if below else 1
        to.writelines(record(n * 10_000, below + traffic.next(), unit_ns) for n in range(packets))
    return file


def write_pair(folder: Path, packets: int) -> tuple[Path, Path]:
    """Returns the same packets at two places, 20 ms apart."""
    files = (folder / "a.pcap", folder / "b.pcap")
    traffic = Traffic(200, 1500)
    places: tuple[list[tuple[int, bytes]], list[tuple[int, bytes]]] = ([], [])
    for n in range(packets):
        packet = traffic.next()[:96]
        first = 0 if packet[12:14] == b"\n\0" else 1
        places[first].append((n * 100_000, packet))
        places[1 - first].append((n * 100_000 + 20_000_000, packet))
    for file, place in zip(files, places, strict=True):
        with file.open("wb") as to:
            to.write(HEAD)
            to.writelines(record(at, packet) for at, packet in sorted(place, key=lambda one: one[0]))
    return files


def seconds(work: Callable[[], object], who: int = resource.RUSAGE_SELF) -> float:
    """Processor time that `work` takes."""
    used = lambda: sum(resource.getrusage(who)[:2])  # noqa: E731
    before = used()
    work()
    return used() - before


def analyze(arguments: list[str], source: IO[bytes] | int | None = None) -> tuple[float, int]:
    """Processor time (s) and the most memory (bytes) of `streamgauge analyze`."""
    command = [sys.executable, "-m", "streamgauge", "analyze", "--json", *arguments]
    with subprocess.Popen(command, stdin=source, stdout=subprocess.DEVNULL) as run:
        _, status, used = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
    if run.returncode:
        raise SystemExit(f"{' '.join(command)}: status {run.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def pour(to: int, gigabytes: float) -> int:
    """Writes a capture of this size into a pipe: times go on, sequence numbers come again."""
    traffic, count = Traffic(203, 1500), 60_000
    packets = [record(n * 10_000, traffic.next()) for n in range(count)]
    starts = np.cumsum([0, *map(len, packets)])[:-1]
    block = np.frombuffer(b"".join(packets), np.uint8).copy()
    places = starts[:, None] + np.arange(8)
    written, at_ns = 0, 0
    with os.fdopen(to, "wb") as pipe:
        pipe.write(HEAD)
        while written * len(block) < gigabytes * 1e9:
            stamps = at_ns + np.arange(count, dtype=np.int64) * 10_000
            words = np.stack([START_S + stamps // 1_000_000_000, stamps % 1_000_000_000], axis=1)
            block[places] = words.astype("<u4").view(np.uint8).reshape(count, 8)
            pipe.write(block.tobytes())
            written += 1
            at_ns += count * 10_000
    return written * count


def stream(gigabytes: float) -> dict[str, Any]:
    """Returns the most memory of a long capture on standard input."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        pour(writing, gigabytes)
        os._exit(0)
    os.close(writing)
    used, most = analyze(["-"], reading)
    os.close(reading)
    os.waitpid(child, 0)
    return {"stream_gigabytes": gigabytes, "stream_cpu_s": used, "stream_megabytes": most / 1e6}


def memory_of_a_flow(folder: Path, flows: int = 20_000) -> float:
    """Bytes that a flow takes: two files that differ in the number of flows alone."""
    most = [
        analyze([str(write(folder / "flows.pcap", Traffic(n, 100), flows * 40))])[1] for n in (100, flows)
    ]
    return (most[1] - most[0]) / (flows - 100)


def tshark(file: Path) -> None:
    """Its fields, as scripts ask for them."""
    command = [
        "tshark",
        "-n",
        "-r",
        str(file),
        "-T",
        "fields",
        *(word for name in FIELDS for word in ("-e", name)),
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def tcptrace(file: Path) -> None:
    """Its figures of every connection, with round trips."""
    subprocess.run(["tcptrace", "-n", "-lr", str(file)], check=True, stdout=subprocess.DEVNULL)


def beside_tcptrace(file: Path, packets: int, rounds: int, suffix: str) -> dict[str, float]:
    """The same packets for both, in turns: million packets a second, and the median of the ratios."""
    own = lambda: _native.analyse_capture(file, None, None)  # noqa: E731
    turns = [(seconds(lambda: tcptrace(file), resource.RUSAGE_CHILDREN), seconds(own)) for _ in range(rounds)]
    theirs, ours = (min(column) for column in zip(*turns, strict=True))
    return {
        f"tcptrace{suffix}": packets / theirs / 1e6,
        f"beside_tcptrace{suffix}": packets / ours / 1e6,
        f"times_tcptrace{suffix}": statistics.median(theirs / ours for theirs, ours in turns),
    }


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--packets", type=int, default=300_000)
    parser.add_argument("--gigabytes", type=float, default=1.0, help="of the stream; 0 leaves it out")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        mixed = write(folder / "mixed.pcap", Traffic(200, 1500), given.packets)
        small = write(folder / "small.pcap", Traffic(200, 200), given.packets)
        for name, file in (("mixed", mixed), ("small", small)):
            read = lambda file=file: _native.analyse_capture(file, None, None)  # noqa: E731
            found[name] = given.packets / min(seconds(read) for _ in range(given.rounds)) / 1e6
        if shutil.which("tshark"):
            took = seconds(lambda: tshark(mixed), resource.RUSAGE_CHILDREN)
            found["tshark"] = given.packets / took / 1e6
            found["times_tshark"] = found["mixed"] / found["tshark"]
        mixed.unlink()
        if shutil.which("tcptrace"):
            for suffix, size in (("", 1500), ("_small", 200)):
                framed = write(folder / "framed.pcap", Traffic(200, size), given.packets, ETHERNET)
                found |= beside_tcptrace(framed, given.packets, given.rounds, suffix)
                framed.unlink()
        a, b = ((file, None) for file in write_pair(folder, given.packets))
        took = min(seconds(lambda: _native.analyse_captures(a, b)) for _ in range(given.rounds))
        found["matching"] = 2 * given.packets / took / 1e6
        found["flow_bytes"] = memory_of_a_flow(folder)
    if given.gigabytes:
        found |= stream(given.gigabytes)
    for name, value in found.items():
        print(f"{name:20} {value:12.2f}")
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
