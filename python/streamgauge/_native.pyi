"""Sim and record in Rust (crates/python). Everything that fails raises an error of `streamgauge.errors`; what
the operating system refuses raises OSError with its number."""

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

_Saying = tuple[str, str | None, NDArray[np.int64], NDArray[np.float64], list[str]]
"""What one flow said under one name: the name, the flow, times, values and their units."""

MODEL_VERSION: int
"""Goes up whenever the same plan and seed would give another record."""
CONGESTION_CONTROLS: tuple[str, ...]
"""Congestion controllers of the simulated TCP, by name."""
CONTROL_MARKS: list[tuple[str, str]]
"""The feedback of marks that each of them can work with: echo, counts or either."""
DEFAULT_CONGESTION_CONTROL: str
"""What a connection has whose flow does not choose."""
HYSTARTS: tuple[str, ...]
"""Ways in which its CUBIC leaves slow start, by name; the first is Linux's."""
TCP_MECHANISMS: tuple[str, ...]
"""Mechanisms of it that can be switched off, by name."""

def relays() -> str:
    """What each relay of ours says of itself, as a list of `{"name", "title", "version", "protocols",
    "parameters", "usual", "events"}` (JSON).
    """

def relay_protocols(app_json: str) -> str:
    """What the channels of a relay speak whose plan has this `app`: lists under "tcp" and "udp", but for
    empty ones (JSON).

    Raises:
        RecordError: it is no system of a plan.
    """

def systems() -> str:
    """What each system of ours says of itself, as a list of `{"name", "title", "version", "content",
    "media_over", "presets", "parameters", "usual", "parts", "events"}` (JSON).

    `parameters` are `{"name", "at": keys in the plan's settings, "kind", "optional", "required", "least",
    "most", "above", "not_below", "not_above", "help", "source"}`, where `not_below` and `not_above` are keys
    of settings beside it; `kind` is "switch", "count", "number", "size" (bytes), "rate" (bit/s),
    "percent", "time" (ns), "packets", "frequency" (/s), "windows", `{"words": [...]}`, `{"several": [...]}`
    or `{"presence": [...]}`.
    `presets` are `{"name", "at", "help", "sets": [[name, settings], ...]}`, `events` `{"name", "unit"}`.
    """

def facts(app_json: str) -> str:
    """What holds of a flow whose plan has this `app`: `{"media_over", "wanted_ip_bps", "wanted_ethernet_bps",
    "windows", "is_finite", "pace": {"packets_per_s", "burst", "fragments"} or null}` (JSON), or null for
    somebody else's system. The plan may be of an older version.

    Raises:
        RecordError: if it names no system.
    """

def asf_streams(file: bytes) -> list[tuple[int, str]]:
    """The streams of a file of ASF, in its order: the number of each, and "video", "audio" or "other".

    Raises:
        MediaError: it is no ASF, or is broken.
    """

def multiplex_asf(files: Sequence[tuple[str, bytes, Sequence[int]]], id: bytes) -> bytes:
    """One file of ASF with streams of several, numbered from 1: of those of video, and of those of audio, a
    player takes one.

    `files` are what each is called, its bytes and the numbers of its streams that are taken, 127 together;
    `id` is the name of the new file, of 16 bytes. The rate of a stream is that of its packets.

    Raises:
        MediaError: a file is broken, or has no such stream; names it.
    """

class Contents:
    """Contents by their digests, for plans that name them: read once, shared by all flows and trials."""

    def add(self, digest: str, content_json: str) -> None:
        """Adds the content that `digest` names, as `Content.save` writes it. Raises MediaError."""

def simulate(
    plan_json: str, directory: str | PathLike[str], contents: Contents | None = None, *, capture: bool = False
) -> str:
    """Runs a trial in virtual time and returns its summary as JSON.

    `plan_json` is a trial's plan (crates/plan/src/trial.rs); `packets.parquet` and `events.parquet` are
    written to `directory`, which exists, as its `keep` says. Other Python threads run meanwhile.

    Raises:
        ScenarioError: if the plan cannot be run.
        OSError: if the record cannot be written.
    """

def function_calls() -> list[tuple[int, int]]:
    """Thread and number of each call into a congestion controller of Python that is under way."""

def simulate_live(
    plan_json: str, directory: str | PathLike[str], fd: int, pace: float, contents: Contents | None = None
) -> tuple[str, str]:
    """As `simulate` with all packets kept, at `pace` seconds of the trial a second, shown and steered over
    the Unix stream socket `fd`, which it closes (crates/engine/PROTOCOL.md).

    Returns the summary and the list of what was changed, both as JSON.
    """

def simulate_in_memory(
    plan_json: str, contents: Contents | None = None
) -> tuple[str, list[tuple[str, NDArray[Any]]], list[_Saying]]:
    """As `simulate` when it keeps packets, to the same summary, but nothing is written: the summary, and what
    `packet_columns` and `told` would return of the files.

    Raises:
        ScenarioError: if the plan cannot be run.
    """

def survey_capture(path: str | PathLike[str]) -> str:
    """A first look at a capture: `{"interfaces", "places": [index, index] or null, "has_copies"}` (JSON).

    Raises:
        CaptureFileError: it cannot be read, or is no capture.
    """

def analyse_capture(path: str | PathLike[str], only: int | None = None, at: str | None = None) -> str:
    """The figures of one capture: `{"capture", "flows"}` (JSON); docs/captures.md has their keys. `only` is
    the index of the interface that is read, `at` "sender", "receiver" or None.

    Raises:
        CaptureFileError: it cannot be read, or is no capture.
    """

def match_captures(
    a: tuple[str | PathLike[str], int | None],
    b: tuple[str | PathLike[str], int | None],
    base_delay_s: float | None = None,
    without: str | None = None,
) -> tuple[str, list[bytes]]:
    """The figures as `analyse_captures` returns them, and its packets as little-endian columns: when each
    passed the sender's capture and the receiver's (i64, ns on the first clock; 0 for never), its number
    among the IP packets of the sender's capture (u64; of one that this missed, of the receiver's), fate (u8:
    delivered, lost, not captured, open, not captured before, duplicated), direction (u8: 1 from `a` to `b`).
    `without` is a mechanism that judges leave out.

    Raises:
        CaptureFileError: one cannot be read, is no capture, or both have too few packets in common.
    """

def analyse_captures(
    a: tuple[str | PathLike[str], int | None],
    b: tuple[str | PathLike[str], int | None],
    at: str | None = None,
    base_delay_s: float | None = None,
    renamed: Sequence[tuple[str, str]] = (),
) -> str:
    """The figures of two captures of one path: `{"captures", "flows", "path", "translated"}` (JSON).

    Each is a file and the index of the interface that is read, or None. `base_delay_s` is the least one-way
    delay in the direction of most payload, if it is known. `renamed` are ends of the second by their names in
    the first. Without any, translation is looked for where both have nothing in common.

    Raises:
        CaptureFileError: one cannot be read, is no capture, or both have too few packets in common.
    """

def record_captures(
    a: tuple[str | PathLike[str], int | None],
    b: tuple[str | PathLike[str], int | None],
    into: tuple[str | PathLike[str], str | None],
    at: str | None = None,
    base_delay_s: float | None = None,
    renamed: Sequence[tuple[str, str]] = (),
) -> str:
    """As `analyse_captures`, and writes the packets of a record without a plan into a folder. The JSON has
    `record` besides: `{"legend", "rows", "zero_ns", "duration_ns", "flows", "others", "delay_is_known"}`.
    `into` has the folder, and a text: flows with it in their names have a name in the record.

    Raises:
        CaptureFileError: as `analyse_captures`.
        OSError: the packets cannot be written.
    """

def legend(plan_json: str) -> str:
    """What the codes in a record of this plan mean: `{"flow": names, "subject": whether each is one, "stage":
    [{"name", "direction"}], ...}` as JSON.

    Raises:
        ScenarioError: if the plan does not read.
    """

def addresses(index: int, at_router: bool, up: bool = False) -> tuple[str, str]:
    """The IPv4 addresses of the flow with that index in the plan: its server's (10.1.INDEX.1), or its
    source's at the router (10.3.INDEX.1), and its player's (10.2.INDEX.1); the other way about if its media
    goes up."""

def path_pairs(plan_json: str) -> list[tuple[int, str, str]]:
    """Between whom packets cross the path: for each flow of the plan, in order, whose its packets are there
    (the code of the flow, or of the relay that it shares), and the IPv4 addresses at the server's and at the
    player's side, one of which is the relay's where the flow goes through one.

    Raises:
        ScenarioError: if the plan does not read.
    """

def write_events(directory: str | PathLike[str], events_json: str, legend_json: str) -> str:
    """Writes `events.parquet`, sorted by time, and returns its digest.

    `events_json` is a list of `{"t_ns", "flow", "name", "value", "unit", "reason"}`: ns since the trial's
    start, a flow's name or null, what, a finite number or null, its unit, why.

    Raises:
        RecordError: if an event names a flow that the legend has not.
        OSError: if the file cannot be written.
    """

def trial_digest(scenario_json: str, packets_digest: str, events_digest: str) -> str:
    """The trial's digest, "blake3:<hex>". A digest is "" where the file was not kept."""

def verify(directory: str | PathLike[str]) -> str:
    """Recomputes every digest of a record and compares them with what its files say.

    Returns `{"packets": {"rows", "digest"} or null, "events": likewise, "digest"}` as JSON.

    Raises:
        RecordError: naming the first file that differs, and how.
    """

def replay(plan_json: str, directory: str | PathLike[str]) -> str:
    """Lets the arrivals of a record's packets enter a fresh path of its plan and compares every fate.

    `plan_json` is the trial's plan, of which `path` and `seed` count. Returns `{"packets", "rows",
    "different", "first"}` as JSON: packets that entered, rows of the record, rows that are in the record or
    the replay alone or differ, and the first of them in words, or null. Other Python threads run meanwhile.

    Raises:
        RecordError: if `packets.parquet` is missing, damaged or of an older schema.
        ScenarioError: if the path cannot be built.
    """

def footer(path: str | PathLike[str]) -> str:
    """What a Parquet file of a record says of itself: `{"schema", "legend", "rows", "digest"}` as JSON.

    Raises:
        RecordError: if the file is missing, cut short or not a record's.
    """

def packet_columns(path: str | PathLike[str]) -> list[tuple[str, NDArray[Any]]]:
    """What measuring needs of a `packets.parquet`, of any version: of each column its name and its integers,
    not to be written to. Of `t_out` and `t_drop` the least int64 stands for null, of `seq` -1.

    Raises:
        RecordError: if the file is missing, damaged or of an unknown version.
    """

def told(path: str | PathLike[str]) -> list[_Saying]:
    """The events of an `events.parquet` by name and flow (None: the path's): times (ns, ascending) and values
    (NaN for none, seconds where the file says ms), not to be written to, and the units of the values.

    Raises:
        RecordError: if the file is missing, damaged or of an unknown version.
    """

def write_metrics(
    path: str | PathLike[str],
    trial: str,
    valid: bool,
    window_s: tuple[float, float],
    about: str,
    rows: Sequence[
        tuple[
            str | None,
            str | None,
            str,
            float | None,
            float | None,
            float | None,
            str,
            tuple[int | None, int | None, int | None, int | None],
        ]
    ],
    lists: NDArray[np.float64],
) -> None:
    """Writes a `metrics.parquet`, whole or not at all.

    `rows` are (flow, stage, metric, value, min, max, unit, lists), where the last are which of `lists` are
    its numerator, denominator, low and high; `lists` are [list, sample] in C's order; `about`
    is JSON.

    Raises:
        RecordError: if a row names a list that is not there.
        TypeError: if the lists are in another order.
        OSError: if the file cannot be written.
    """

def about_metrics(path: str | PathLike[str]) -> str:
    """What a `metrics.parquet` says that is no table (JSON).

    Raises:
        RecordError: if the file is missing, damaged or of an unknown version.
    """

def read_metrics(
    path: str | PathLike[str],
) -> tuple[
    str,
    list[tuple[str | None, str | None, str, tuple[int | None, int | None, int | None, int | None]]],
    NDArray[np.float64],
]:
    """Reads a `metrics.parquet`: what is no table (JSON), (flow, stage, metric, lists) of each row, and all
    lists, [list, sample], of which none is there twice.

    Raises:
        RecordError: if the file is missing, damaged or of an unknown version.
    """

def queue_depth(
    arrived: NDArray[np.int64],
    left: NDArray[np.int64],
    sizes: NDArray[np.float64],
    edges: NDArray[np.int64],
) -> list[list[NDArray[np.float64]]]:
    """What is in a queue, by size and in packets, in each of the samples between `edges` (ns, ascending and
    distinct): its integral over the sample (its unit times s), least and most.

    Packet i is in it from `arrived[i]`, which ascend, until `left[i]` (ns), and has `sizes[i]`, a whole
    number.

    Raises:
        ValueError: if the lengths differ.
        TypeError: if an array does not lie in one piece.
    """

def canonical_json(text: str) -> str:
    """The canonical text of a JSON text: RFC 8785, with integers beyond 2^53 exact."""

def parse_trace(text: str, format: str | None = None, lasts_ns: int | None = None) -> str:
    """Reads a trace of a link (crates/path/src/trace lists the formats and their sources).

    `format` is "mahimahi", "csv", "pensieve", "byte_log", "ucc" or "ucc_up"; by default it is told from the
    first line. Returns `{"format", "samples", "duration_ns", "mean_bps", "rate", "delay", "loss",
    "faults"}` as JSON. `delay` (ns) and `loss` (parts of 1) are steps of their columns, written once; null
    where `faults` has the reason. `rate` is a bottleneck's rate in the plan: opportunities, which repeat by
    themselves, or steps, written out again and again until `lasts_ns` (once without it, and the last rate
    stays).

    Raises:
        ScenarioError: naming the line, what was expected, and the remedy.
    """
