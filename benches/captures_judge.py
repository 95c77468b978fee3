"""`analyze` compared with records: captures of trials with a known fate of every packet.

python benches/captures_judge.py [ID ...] [--mode MODE] [--docs] [--json FILE] [--mutant NAME]

Each trial of the catalogue runs with `--capture`. Its file is made as hard as real ones: names are stripped,
both places become files of their own, the second clock is 37 s ahead and 40 ppm fast, packets are cut to 96
B, and 0.1 % of the frames of each file are missing. Both are analysed and compared with the record. `--docs`
writes the table into docs/captures.md.

- fates: the share of TCP's packets with the right fate
- gaps: of TCP's missing frames, those that count as not captured
- offset: error with the least delay given, or where propagation is equal; else whether the stated interval
  has the truth
- skew: error, and the stated one (95 %)
- fed: of media packets with feedback on each, those with the right fate; an open one is not right
- UDP settled: of UDP's packets without a match, those with a fate by reports or feedback
- rate and queue: error against the plan, of constant rates and drop-tail queues that overflow
"""

from __future__ import annotations

import argparse
import json
import random
import struct
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from streamgauge import _native

TRIALS: Final = (
    "ccn/narrow-cubic",
    "ccn/tcp-narrow-reno",
    "ccn/wireless-reno",
    "darwin/1qt1tcp-const",
    "darwin/1qt1tcp-square",
    "darwin/2qt2tcp-const",
    "darwin/4qt-const",
    "darwin/lossy-1qt1tcp",
    "darwin/lossy-2qt2tcp",
    "dash/bba-two",
    "dash/bloat-deep-bbr",
    "dash/bloat-deep-cubic",
    "dash/bloat-shallow-bbr",
    "dash/bloat-shallow-cubic",
    "dash/buffer-30-bola",
    "dash/festive-panda",
    "dash/late-hlsjs",
    "dash/onoff-greedy",
    "dash/pipeline-ahead",
    "dash/spiral-5",
    "dash/square-shaka",
    "dash/steps-bola",
    "hessler/ftp-no",
    "hessler/real-no",
    "hessler/wmp-no",
    "matrix/three-1000",
    "realvideo/eight-300",
    "realvideo/foul-example",
    "realvideo/head2head-300",
    "realvideo/tcp-in-place-150",
    "today/call-claims-gcc-cubic",
    "today/call-claims-scream-cubic",
    "today/filling-rivals-bbr-fq_codel",
    "today/filling-rivals-cubic-droptail",
    "today/filling-rivals-reno-codel",
    "today/tcp-bbr",
    "today/tcp-cubic",
    "today/tcp-reno",
    "today/tcp-vegas",
    "windows-media/latency-sbr-150",
    "windows-media/loss-mbr-5",
    "windows-media/loss-sbr-3",
)
EMULATED: Final = (
    "ccn/tcp-narrow-reno",
    "darwin/1qt1tcp-const",
    "today/filling-rivals-cubic-droptail",
    "today/tcp-cubic",
    "today/tcp-reno",
    "windows-media/loss-sbr-3",
)
"""Those of the trials that run in emu: real programs, the kernel's TCP, the clock of the machine."""
SHIFT_NS: Final = 37_000_000_000
SKEW: Final = 40e-6
CUT: Final = 96
MISSING: Final = 1e-3
LARGEST_FRAME: Final = 1514
LEAST_LONG_S: Final = 60.0
DELIVERED, LOST, NOT_CAPTURED, OPEN, NOT_CAPTURED_BEFORE, DUPLICATED = range(6)
DROPPED: Final = 1
SIGNALLING: Final = 3
SYN_BYTES: Final = 60
MEDIA: Final = (0, 5)
"""Kinds of packets with payload: media, and cross traffic."""
SYSTEMS_WITH_FEEDBACK: Final = ("call",)
ETHERNET: Final = 14
INBOUND: Final = 1
EDGE_NS: Final = 2_000_000_000
"""Time before the end of a trial in which acknowledgements may be missing: loss and gap then look the
same."""


@dataclass
class Judged:
    """One trial."""

    trial: str
    mode: str
    #: Why an emu trial does not count: its machine was too slow.
    invalid: str | None = None
    seconds: float = 0.0
    packets: int = 0
    tcp: int = 0
    wrong: int = 0
    other: int = 0
    guessed: int = 0
    #: Without a match and of no TCP: those that reports settled, and all.
    settled: int = 0
    unmatched: int = 0
    #: Media packets of flows with feedback on each packet, and those with a wrong or an open fate.
    fed: int = 0
    fed_wrong: int = 0
    gaps: int = 0
    gaps_told: int = 0
    losses: int = 0
    offset_us: float = 0.0
    #: Without the least delay, where propagation is equal both ways.
    free_offset_us: float | None = None
    interval_holds: bool = False
    empties: bool = False
    skew_ppm: float | None = None
    skew_error_ppm: float | None = None
    rate: float | None = None
    queue: float | None = None
    queue_is_bounded: bool = False
    failed: list[str] = field(default_factory=list)

    def judge(self) -> None:
        """Notes missed aims. A trial in emu has too few packets for one wrong fate to count."""
        if self.invalid is not None:
            return
        if self.wrong > self.tcp * 1e-4 + (self.mode == "emu"):
            self.failed.append(f"fates: {self.wrong} of {self.tcp} wrong")
        if self.fed_wrong > self.fed * 1e-4 + 1:
            self.failed.append(f"feedback: {self.fed_wrong} of {self.fed} wrong or open")
        if self.guessed:
            self.failed.append(f"guessed: {self.guessed} of {self.other}")
        if self.gaps_told < 0.99 * self.gaps - 1:
            self.failed.append(f"gaps: {self.gaps_told} of {self.gaps} told")
        if abs(self.offset_us) > 50:
            self.failed.append(f"offset: {self.offset_us:.0f} us")
        if self.free_offset_us is not None and abs(self.free_offset_us) > 50:
            self.failed.append(f"offset without the least delay: {self.free_offset_us:.0f} us")
        if not self.interval_holds:
            self.failed.append("offset: not within the stated interval")
        if self.skew_ppm is not None and self.skew_error_ppm is not None:
            error = abs(self.skew_ppm - SKEW * 1e6)
            if self.seconds >= LEAST_LONG_S and self.empties and error > 0.2:
                self.failed.append(f"skew: {error:.2f} ppm off")
            elif error > max(self.skew_error_ppm, 0.2):
                self.failed.append(f"skew: {error:.2f} ppm off, {self.skew_error_ppm:.2f} stated")
        elif self.seconds >= LEAST_LONG_S:
            self.failed.append("skew: not estimated")
        for what, value in (("rate", self.rate), ("queue", self.queue)):
            if value is not None and abs(value) > 0.02 and not (what == "queue" and self.queue_is_bounded):
                self.failed.append(f"{what}: {100 * value:+.1f} %")


@dataclass
class Frames:
    """The frames of a capture, in order."""

    interface: np.ndarray
    at_ns: np.ndarray
    inbound: np.ndarray
    data: list[bytes]
    length: np.ndarray


def read_pcapng(file: Path) -> tuple[Frames, list[str]]:
    """Returns the frames of a file of the link emulator or the simulator: one section, little-endian."""
    view = file.read_bytes()
    at, names = 0, []
    interface, stamps, inbound, data, lengths = [], [], [], [], []
    while at < len(view):
        kind, size = struct.unpack_from("<II", view, at)
        if kind == 6:
            index, high, low, captured, length = struct.unpack_from("<IIIII", view, at + 8)
            begin = at + 28
            option = begin + (captured + 3) // 4 * 4
            interface.append(index)
            stamps.append(high << 32 | low)
            inbound.append(struct.unpack_from("<I", view, option + 4)[0] & 3 == INBOUND)
            data.append(view[begin : begin + min(captured, CUT)])
            lengths.append(length)
        elif kind == 1:
            name_length = struct.unpack_from("<H", view, at + 18)[0]
            names.append(view[at + 20 : at + 20 + name_length].decode())
        at += size
    arrays = (np.array(column) for column in (interface, stamps, inbound, lengths))
    one, two, three, four = arrays
    return Frames(one, two, three, data, four), names


def write_pcap(file: Path, at_ns: np.ndarray, data: list[bytes], length: np.ndarray) -> None:
    """Ethernet frames in ns, cut."""
    parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, CUT, 1)]
    for at, frame, whole in zip(at_ns.tolist(), data, length.tolist(), strict=True):
        seconds, rest = divmod(at, 1_000_000_000)
        parts.append(struct.pack("<IIII", seconds, rest, len(frame), whole))
        parts.append(frame)
    file.write_bytes(b"".join(parts))


def journeys(folder: Path, plan: dict[str, Any]) -> pl.DataFrame:
    """Returns each packet that entered at an end: `dir`, `t_in`, `t_out` (null: never left), if it was
    dropped."""
    rows = pl.read_parquet(folder / "packets.parquet", hive_partitioning=False)
    down = len(plan["path"]["down"])
    first = pl.when(pl.col("dir") == 0).then(0).otherwise(down)
    last = pl.when(pl.col("dir") == 0).then(down - 1).otherwise(down + len(plan["path"]["up"]) - 1)
    keys = ["pkt", "dir", "copy", "fragment_offset"]
    if rows["copy"].max() or rows["fragment_offset"].max():
        raise SystemExit(f"{folder}: its path makes copies or fragments, which this judge does not follow")
    entered = rows.filter(pl.col("stage") == first).select(
        *keys, "t_in", "ip_bytes", "payload_bytes", "protocol", "kind", "flow"
    )
    left = rows.filter((pl.col("stage") == last) & (pl.col("fate") == 0)).select(*keys, "t_out")
    gone = rows.filter(pl.col("fate") == DROPPED).select(*keys, dropped=True)
    table = entered.join(left, on=keys, how="left").join(gone, on=keys, how="left")
    return table.sort("pkt").with_columns(pl.col("dropped").fill_null(value=False))


def mode_of(trial: str) -> str:
    """Returns how the trial runs in the table."""
    return "emu" if trial in EMULATED else "sim"


def run(trial: str, mode: str, out: Path) -> Path:
    """Returns the trial's folder."""
    command = [sys.executable, "-m", "streamgauge", "run", trial, "--mode", mode, "--seed", "1"]
    found = subprocess.run(
        [*command, "--capture", "--out", str(out), "--json"], capture_output=True, text=True, check=False
    )
    for one in out.rglob("capture.pcapng"):
        if one.parent.parent.parent.name == f"scenario={trial.replace('/', '%2F')}":
            return one.parent
    raise SystemExit(f"{trial}: no capture: {found.stderr[-500:]}")


@dataclass
class Prepared:
    """Two files, and their contents."""

    files: tuple[Path, Path]
    table: pl.DataFrame
    #: By capture: of each of its packets the row of `table`, and whether it passes there first.
    rows: tuple[np.ndarray, np.ndarray]
    sent: tuple[np.ndarray, np.ndarray]
    plan: dict[str, Any]
    #: Flows with feedback on each packet.
    fed: tuple[int, ...]


def leave(table: pl.DataFrame, frames: Frames, row_of: np.ndarray, begin: int, folder: Path) -> pl.DataFrame:
    """Finds the rows of the frames that leave, and returns the table with these frames' times.

    Both are in one order. In emu a packet leaves a little after the time that the link meant.
    """
    rows, lengths = table.with_row_index(), table["ip_bytes"].to_numpy()
    out = table["t_out"].to_numpy().copy()
    for way in (0, 1):
        own = rows.filter((pl.col("dir") == way) & pl.col("t_out").is_not_null()).sort("t_out", "index")[
            "index"
        ]
        gone = np.flatnonzero(~frames.inbound & (frames.interface == 1 - way))
        gone = gone[np.argsort(frames.at_ns[gone], kind="stable")]
        if len(own) != len(gone) or (lengths[own] + ETHERNET != frames.length[gone]).any():
            raise SystemExit(f"{folder}: frames that leave are others than the record has")
        row_of[gone] = own.to_numpy()
        out[own] = frames.at_ns[gone] - begin
    return table.with_columns(t_out=pl.Series(out, dtype=pl.Float64).cast(pl.Int64, strict=False))


def prepare(folder: Path, into: Path, seed: int) -> Prepared:
    """Splits, strips, shifts, skews, cuts and drops."""
    trial = json.loads((folder / "trial.json").read_text())
    plan = trial["plan"]
    table = journeys(folder, plan)
    frames, names = read_pcapng(folder / "capture.pcapng")
    if len(names) > 2:
        raise SystemExit(f"{folder}: flows that enter at the router are at neither place")
    inbound = np.flatnonzero(frames.inbound)
    if len(inbound) != len(table):
        raise SystemExit(f"{folder}: {len(inbound)} frames enter, the record has {len(table)}")
    t_in = table["t_in"].to_numpy()
    begin = int(frames.at_ns[inbound[0]] - t_in[0])
    row_of = np.full(len(frames.data), -1)
    row_of[inbound] = np.arange(len(table))
    table = leave(table, frames, row_of, begin, folder)
    chance = random.Random(seed)
    is_ip = np.array([frame[12:14] == b"\x08\x00" for frame in frames.data])
    files, rows, sent = [], [], []
    for side in range(2):
        mine = np.flatnonzero((frames.interface == side) & is_ip)
        kept = np.array([at for at in mine.tolist() if chance.random() >= MISSING])
        stamps = frames.at_ns[kept].astype(np.int64)
        if side == 1:
            stamps = stamps + SHIFT_NS + np.round((stamps - int(frames.at_ns[0])) * SKEW).astype(np.int64)
        order = np.argsort(stamps, kind="stable")
        kept, stamps = kept[order], stamps[order]
        file = into / f"{side}.pcap"
        write_pcap(file, stamps, [frames.data[at] for at in kept.tolist()], frames.length[kept])
        files.append(file)
        rows.append(row_of[kept])
        sent.append(frames.inbound[kept])
    fed = tuple(flow["id"] for flow in trial["flows"] if flow.get("system") in SYSTEMS_WITH_FEEDBACK)
    return Prepared((files[0], files[1]), table, (rows[0], rows[1]), (sent[0], sent[1]), plan, fed)


def judge(folder: Path, trial: str, mode: str, mutant: str | None = None) -> Judged:
    """Analyses and compares."""
    seed = 1
    with tempfile.TemporaryDirectory() as scratch:
        made = prepare(folder, Path(scratch), seed)
        a, b = ((file, None) for file in made.files)
        table = made.table
        delays = (table["t_out"] - table["t_in"]).to_numpy().astype(float)
        way = table["dir"].to_numpy()
        payload = [float(table.filter(pl.col("dir") == one)["ip_bytes"].sum()) for one in (0, 1)]
        main = int(payload[1] > payload[0])
        in_both = np.intersect1d(made.rows[0], made.rows[1])
        least = [np.nanmin(delays[in_both][way[in_both] == one]) for one in (0, 1)]
        base_s = None if mutant == "base delay" else float(least[main]) / 1e9
        without = None if mutant == "base delay" else mutant
        known_json, columns = _native.match_captures(a, b, base_s, without)
        free_json, _ = _native.match_captures(a, b, None, without)
    known, free = json.loads(known_json)["path"], json.loads(free_json)["path"]
    validity = json.loads((folder / "trial.json").read_text())["validity"]
    found = Judged(trial, mode, packets=len(table), seconds=float(table["t_in"].max() or 0) / 1e9)
    if validity is not None and not validity["valid"]:
        found.invalid = validity["why"][0]
    fates(found, made, columns)
    first_ns = float(table["t_in"].to_numpy()[made.rows[0][0]])
    true_offset_s = SHIFT_NS / 1e9 + (first_ns - float(table["t_in"].min() or 0)) * SKEW / 1e9
    found.offset_us = (known["offset_s"] - true_offset_s) * 1e6
    if is_even(made.plan):
        found.free_offset_us = (free["offset_s"] - true_offset_s) * 1e6
    found.interval_holds = abs(free["offset_s"] - true_offset_s) <= free["offset_error_s"] + 50e-6
    found.skew_ppm, found.skew_error_ppm = free["skew_ppm"], free["skew_error_ppm"]
    found.empties = empties(table, main, least[main])
    of_the_path(found, folder, made.plan, main, free["main"], first_ns)
    found.judge()
    return found


MUTANTS: Final = {
    "gap test": "ccn/tcp-narrow-reno",
    "acknowledgements": "ccn/tcp-narrow-reno",
    "skew": "ccn/tcp-narrow-reno",
    "least delay": "ccn/tcp-narrow-reno",
    "base delay": "darwin/2qt2tcp-const",
    "balance": "ccn/tcp-narrow-reno",
    "sides without skew": "hessler/real-no",
    "median rate": "hessler/wmp-no",
    "placement": "darwin/1qt1tcp-square",
    "queue model": "dash/bloat-shallow-cubic",
    "refusals": "dash/buffer-30-bola",
    "feedback": "today/call-claims-gcc-cubic",
}
"""Mechanisms of matching that are left out, and a trial that misses an aim then."""


def fates(found: Judged, made: Prepared, columns: list[bytes]) -> None:
    """Compares each packet's fate."""
    number = np.frombuffer(columns[2], np.uint64).astype(np.int64)
    fate = np.frombuffer(columns[3], np.uint8)
    forward = np.frombuffer(columns[4], np.uint8)
    table = made.table
    lost = table["dropped"].to_numpy()
    left = table["t_out"].is_not_null().to_numpy()
    way = table["dir"].to_numpy()
    t_in = table["t_in"].to_numpy()
    kept = [np.zeros(len(table), bool) for _ in range(2)]
    for side in range(2):
        kept[side][made.rows[side]] = True
    sender = way  # down is from the first place
    has_sent = np.where(sender == 0, kept[0], kept[1])
    has_got = np.where(sender == 0, kept[1], kept[0]) & left
    truth = np.full(len(table), 255)
    truth[has_sent & has_got] = DELIVERED
    truth[has_sent & lost] = LOST
    truth[has_sent & left & ~has_got] = NOT_CAPTURED
    truth[~has_sent & has_got] = NOT_CAPTURED_BEFORE
    said = np.full(len(table), 255)
    at_receiver = (fate == NOT_CAPTURED_BEFORE) | (fate == DUPLICATED)
    side = np.where(at_receiver, forward == 1, forward == 0).astype(int)
    for one in range(2):
        of_it = side == one
        said[made.rows[one][number[of_it]]] = fate[of_it]
    ends = t_in.max() - EDGE_NS
    counts = (truth != 255) & (t_in < ends)
    is_tcp = counts & is_acknowledged(table)
    found.tcp = int(is_tcp.sum())
    found.wrong = int((said[is_tcp] != truth[is_tcp]).sum())
    found.losses = int((truth[is_tcp] == LOST).sum())
    gap = is_tcp & ((truth == NOT_CAPTURED) | (truth == NOT_CAPTURED_BEFORE))
    found.gaps, found.gaps_told = int(gap.sum()), int((said[gap] == truth[gap]).sum())
    other = counts & ~is_tcp
    found.other = int(other.sum())
    undecided = (truth == LOST) | (truth == NOT_CAPTURED)
    right = (said == truth) | (undecided & (said == OPEN))
    found.guessed = int((other & ~right).sum())
    found.unmatched = int((other & undecided).sum())
    found.settled = int((other & undecided & (said == truth)).sum())
    is_media = np.isin(table["kind"].to_numpy(), MEDIA) & np.isin(table["flow"].to_numpy(), made.fed)
    fed = other & is_media
    found.fed, found.fed_wrong = int(fed.sum()), int((said[fed] != truth[fed]).sum())


def is_even(plan: dict[str, Any]) -> bool:
    """Returns whether propagation is equal both ways, without jitter, and nothing but a packet's bits takes
    time."""
    delays = []
    for way in ("down", "up"):
        sums = 0
        for stage in plan["path"][way]:
            ((kind, of),) = stage["kind"].items()
            if kind == "delay" and not of.get("jitter") and not of["steps"]:
                sums += of["delay"]
            elif kind != "bottleneck" or "shaper" in of or "constant" not in of["rate"]:
                return False
        delays.append(sums)
    return delays[0] == delays[1]


def is_acknowledged(table: pl.DataFrame) -> np.ndarray:
    """Returns whether a packet calls for an acknowledgement: TCP's SYN and data. Acknowledgements and resets
    do not: their fate stays open."""
    payload, kind = table["payload_bytes"].to_numpy(), table["kind"].to_numpy()
    return (table["protocol"].to_numpy() == 0) & (
        (payload > 0) | ((kind == SIGNALLING) & (table["ip_bytes"].to_numpy() == SYN_BYTES))
    )


def empties(table: pl.DataFrame, main: int, least: float) -> bool:
    """Returns whether the queue empties in each tenth of the trial: a packet is within 100 us of the least
    delay."""
    own = table.filter((pl.col("dir") == main) & pl.col("t_out").is_not_null())
    delay = (own["t_out"] - own["t_in"]).to_numpy()
    tenth = (own["t_in"].to_numpy() * 10 // (int(own["t_in"].max() or 0) + 1)).astype(int)
    return len(set(tenth[delay < least + 100_000].tolist())) == 10


def of_the_path(
    found: Judged, folder: Path, plan: dict[str, Any], main: int, row: dict[str, Any], begin_ns: float
) -> None:
    """Compares rate and queue: the record's values of the bottleneck while it was busy, and the plan's
    limit."""
    stages = plan["path"]["up" if main else "down"]
    places = [at for at, stage in enumerate(stages) if "bottleneck" in stage["kind"]]
    if len(places) != 1:
        return
    neck = stages[places[0]]["kind"]["bottleneck"]
    at = places[0] + (len(plan["path"]["down"]) if main else 0)
    rows = pl.read_parquet(folder / "packets.parquet", hive_partitioning=False)
    own = rows.filter((pl.col("stage") == at) & (pl.col("fate") == 0)).sort("t_out")
    t_in, t_out, wire = (own[name].to_numpy() for name in ("t_in", "t_out", "wire_bytes"))
    busy = t_in[1:] <= t_out[:-1]
    bits, ns, ends = wire[1:][busy] * 8.0, (t_out[1:] - t_out[:-1])[busy], t_out[1:][busy]
    if row["rate_bps"] is not None and "constant" in neck["rate"]:
        # A shaper that lets bursts pass is busy at the rate of its credit: the plan's counts.
        has_credit = any(kind in neck.get("shaper", {}) for kind in ("cbq", "token_bucket"))
        rate = neck["rate"]["constant"] if has_credit else bits.sum() * 1e9 / ns.sum()
        found.rate = row["rate_bps"] / rate - 1
    elif len(row["rate_course"]) > 1:
        # A rate that changes: bin by bin. Times count from the first packet, and behind the path.
        at = (
            np.array([one for one, _ in row["rate_course"]]) * 1e9
            + begin_ns
            - (row["base_delay_s"] or 0) * 1e9
        )
        width = np.diff(at).min()
        place = np.searchsorted(at, ends, side="right") - 1
        is_in = (place >= 0) & (ends < at[np.maximum(place, 0)] + width)
        sums = [np.bincount(place[is_in], weights=what[is_in], minlength=len(at)) for what in (bits, ns)]
        with np.errstate(invalid="ignore", divide="ignore"):
            errors = np.array([rate for _, rate in row["rate_course"]]) / (sums[0] * 1e9 / sums[1]) - 1
        found.rate = float(np.nanmedian(np.abs(errors)))
    limit = neck["queue"].get("droptail", {}).get("bytes")
    if limit and row["queue_bytes"] is not None:
        factor = wire.sum() / own["ip_bytes"].sum() if neck["layer"] == "ip" else 1.0
        found.queue = row["queue_bytes"] / (limit * factor) - 1
        # Between the most that was accepted and the least that was refused nothing shows the limit.
        accepted, refused = row["queue_bounds_bytes"]
        is_near = refused is not None and refused - accepted <= LARGEST_FRAME
        is_within = accepted <= limit * factor * 1.001 and limit * factor <= (refused or 0)
        found.queue_is_bounded = bool(is_near and is_within)


def line_of(one: Judged) -> str:
    """Returns a line of the table."""
    percent = lambda value: "–" if value is None else f"{100 * value:+.2f}"  # noqa: E731
    skew = "–" if one.skew_ppm is None else f"{one.skew_ppm - SKEW * 1e6:+.3f} ± {one.skew_error_ppm:.3f}"
    return (
        f"| `{one.trial}` | {one.mode} | {one.packets} | {one.tcp - one.wrong} of {one.tcp} | {one.losses} | "
        f"{one.gaps_told} of {one.gaps} | {one.offset_us:+.1f} | {skew} | {percent(one.rate)} | "
        f"{percent(one.queue)} | {f'{one.fed - one.fed_wrong} of {one.fed}' if one.fed else '–'} | "
        f"{one.settled} of {one.unmatched} |"
    )


HEAD: Final = (
    "| trial | mode | packets | fates of TCP right | lost | gaps found | offset (us) | skew (ppm) | rate (%) "
    "| queue (%) | fates by feedback right | UDP settled |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|"
)


BEGIN, END = "<!-- measured: judged -->\n", "<!-- end -->"


def summary_of(judged: list[Judged]) -> str:
    """Returns the sums of all trials that count."""
    invalid = sum(one.invalid is not None for one in judged)
    judged = [one for one in judged if one.invalid is None]
    total = {
        name: sum(getattr(one, name) for one in judged) for name in ("tcp", "wrong", "gaps", "gaps_told")
    }
    met = sum(not one.failed for one in judged)
    right = 100 * (1 - total["wrong"] / max(1, total["tcp"]))
    missed = "; ".join(f"{one.trial}: {', '.join(one.failed)}" for one in judged if one.failed)
    return (
        f"{met} of {len(judged)} trials meet every aim. {total['tcp'] - total['wrong']} of {total['tcp']} "
        f"fates are right ({right:.4f} %), {total['gaps_told']} of {total['gaps']} gaps are no losses."
        + (f" {invalid} more were invalid: the machine was too busy for emu." if invalid else "")
        + (f"\n\nMisses: {missed}." if missed else "")
    )


def write_docs(judged: list[Judged]) -> None:
    """Puts the table between its marks."""
    page = Path(__file__).resolve().parents[1] / "docs" / "captures.md"
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    table = "\n".join([HEAD, *(line_of(one) for one in judged if one.invalid is None)])
    page.write_text(f"{before}{BEGIN}\n{summary_of(judged)}\n\n{table}\n\n{END}{after}")


def main() -> int:
    """Runs, prints, writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("ids", nargs="*", default=list(TRIALS))
    parser.add_argument("--mode", choices=("sim", "emu"), help="of all; without it, as in the table")
    parser.add_argument("--runs", type=Path, help="keep trials here, and use those that are there")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--docs", action="store_true", help="write the table into docs/captures.md")
    parser.add_argument("--mutant", choices=MUTANTS, help="leave this mechanism out")
    given = parser.parse_args()
    judged: list[Judged] = []
    print(HEAD)
    with tempfile.TemporaryDirectory() as scratch:
        for trial in given.ids:
            out = given.runs or Path(scratch) / trial.replace("/", "-")
            mode = given.mode or mode_of(trial)
            one = judge(run(trial, mode, out), trial, mode, given.mutant)
            judged.append(one)
            print(
                line_of(one), *one.failed, *([f"invalid: {one.invalid}"] if one.invalid else []), flush=True
            )
    failed = [one for one in judged if one.failed]
    print(summary_of(judged))
    if given.docs:
        write_docs(judged)
    if given.json:
        given.json.write_text(json.dumps([asdict(one) for one in judged], indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
