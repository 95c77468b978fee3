"""`analyze` beside tshark and capinfos on captures of other projects.

    python benches/captures_files.py FOLDER [--all]

FOLDER has checkouts, or parts of them, of github.com/ntop/nDPI, github.com/ebu/pi-list,
github.com/seladb/PcapPlusPlus and github.com/hadrielk/pcapng-test-generator; none of their files ships here.
`--all` also compares the number of frames of every capture with capinfos'.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from pathlib import Path
from typing import Any, Final

from streamgauge.captures.analysis import AnalysisRequest, analyse
from streamgauge.errors import CaptureFileError

CAPTURES: Final = {".pcap", ".pcapng", ".cap", ".zst", ".gz"}


def tshark(file: Path, *arguments: str) -> str:
    """Returns its output."""
    command = ["tshark", "-n", "-r", str(file), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def counted(file: Path, wanted: str) -> int:
    """Returns how many frames its filter shows."""
    return len(tshark(file, "-Y", wanted, "-T", "fields", "-e", "frame.number").split())


def rtp_of_tshark(file: Path, *decode: str) -> str:
    """Packets and losses of each stream."""
    lines = tshark(file, "-q", *decode, "-z", "rtp,streams").splitlines()
    found = [re.search(r"(0x[0-9A-Fa-f]{8}).*?(\d+)\s+(-?\d+) \(([-\d.]+)%\)", line) for line in lines]
    shown = [f"{one[1][2:].lower()}: {one[3]} of {one[2]} lost" for one in found if one]
    return "; ".join(shown) or "no stream"


def rtsp_of_tshark(file: Path) -> str:
    """Requests by method."""
    lines = tshark(file, "-q", "-z", "rtsp,stat").splitlines()
    found = [re.search(r"(DESCRIBE|SETUP|PLAY)\s+(\d+)", line) for line in lines]
    return ", ".join(f"{one[1]} {one[2]}" for one in found if one)


def tcp_of_tshark(file: Path) -> str:
    """Returns its analysis of sequence numbers."""
    names = ("retransmission", "out_of_order", "lost_segment", "ack_lost_segment")
    resent, late, lost, unseen = (counted(file, f"tcp.analysis.{name}") for name in names)
    return f"{resent} retransmissions, {late} out of order, {lost} lost, {unseen} unseen ones acknowledged"


def sums(found: dict[str, Any], *names: str) -> str:
    """Returns the sums over all flows."""
    flows = found["flows"]
    return ", ".join(f"{name} {sum(flow[name] or 0 for flow in flows)}" for name in names)


def rtp(found: dict[str, Any]) -> str:
    """Losses by source."""
    sources = [source for flow in found["flows"] for source in flow["sources"]]
    return "; ".join(
        f"{one['ssrc']}: {one['missing']} missing, {one['resent']} sent again, {one['lost']} lost"
        + (f", by both legs {one['merged'][0]}" if one["merged"] else "")
        for one in sources
    )


def requests(found: dict[str, Any]) -> str:
    """By method."""
    methods = [one["method"] for flow in found["flows"] for one in flow["requests"]]
    return ", ".join(f"{name} {methods.count(name)}" for name in ("DESCRIBE", "SETUP", "PLAY"))


HEURISTIC: Final = ("--enable-heuristic", "rtp_udp")
TABLE: Final = (
    ("rtsp.pcap", rtsp_of_tshark, requests, "each packet is there four times, of `-i any`"),
    (
        "rist_stream.pcap",
        lambda file: rtp_of_tshark(file, "-d", "udp.port==5000,rtp"),
        rtp,
        "the odd SSRC sends again what is missing of the even one (VSF TR-06-1)",
    ),
    *(
        (
            f"srt_stream{loss}.pcap",
            lambda file: f"{counted(file, 'udt')} packets of udt, no loss",
            lambda found: sums(found, "lost_before_capture", "retransmitted", "lost"),
            "numbers of originals, and the bit that marks what is sent again",
        )
        for loss in ("", "_loss_of_5", "_loss_of_10", "_loss_of_15")
    ),
    (
        "ST2022-7-Audio_dropped_in_both.pcap",
        lambda file: rtp_of_tshark(file, "-d", "udp.port==6000,rtp"),
        rtp,
        "both legs carry one stream: a loss counts if neither has the packet",
    ),
    ("rtp.pcapng", lambda file: rtp_of_tshark(file, *HEURISTIC), rtp, "several captures in one file"),
    ("stun_dtls_rtp.pcapng", lambda file: rtp_of_tshark(file, *HEURISTIC), rtp, "RTP in TURN's channels"),
    ("sip.pcap", rtp_of_tshark, rtp, "both are right"),
    (
        "netflix.pcap",
        tcp_of_tshark,
        lambda found: sums(found, "retransmitted", "lost", "missed", "missing"),
        "the bytes were acknowledged: the capture missed them, the network did not",
    ),
    (
        "example.pcap",
        tcp_of_tshark,
        lambda found: sums(found, "retransmitted", "lost", "missed"),
        "as many were sent again",
    ),
)


def frames(file: Path) -> tuple[int | None, int | None]:
    """Returns the frames of `analyze` and of capinfos; none for refused files."""
    try:
        own = sum(capture["frames"] for capture in analyse(AnalysisRequest((file,)))["captures"])
    except CaptureFileError as error:
        print(f"refused: {error}")
        own = None
    shown = subprocess.run(
        ["capinfos", "-Tmrc", str(file)], capture_output=True, text=True, check=False
    ).stdout
    numbers = re.findall(r",(\d+)\s*$", shown.strip())
    return own, int(numbers[0]) if numbers else None


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--all", action="store_true")
    given = parser.parse_args()
    files = [file for file in sorted(given.folder.rglob("*")) if file.suffix in CAPTURES]
    print("| file | tshark | analyze | why |\n|---|---|---|---|")
    for name, theirs, ours, why in TABLE:
        for file in [one for one in files if one.name == name][:1]:
            print(
                f"| `{name}` | {theirs(file)} | {ours(analyse(AnalysisRequest((file,))))} | {why} |",
                flush=True,
            )
    if given.all:
        both = [(file, *frames(file)) for file in files]
        other = [(file.name, own, theirs) for file, own, theirs in both if own is not None and own != theirs]
        print(f"{len(both)} files, capinfos counts other frames in {len(other)}: {other}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
