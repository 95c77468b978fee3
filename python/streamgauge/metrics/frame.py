"""A record cut up for measuring: where flows enter and leave, what is dropped, and the grid of samples."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from streamgauge.errors import RecordError
from streamgauge.metrics.dimension import TIME, UNITS

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]
Layer = Literal["ethernet", "ip", "payload"]
LAYER_COLUMN: dict[Layer, str] = {"ethernet": "wire_bytes", "ip": "ip_bytes", "payload": "payload_bytes"}

DOWN, UP = 0, 1
DELIVERED, DROPPED, HELD = 0, 1, 2
PROBE = 4
RETRANSMIT = 1
SECOND_NS = 1e9
DEFAULT_SAMPLE_S = 0.5
"""De Cicco et al. average over 0.5 s."""


class RecordLike(Protocol):
    """What measuring needs of a record: `streamgauge.record.Record` has it."""

    @property
    def trial(self) -> dict[str, Any]: ...
    @property
    def packets(self) -> pl.DataFrame: ...
    @property
    def events(self) -> pl.DataFrame: ...


@dataclass(frozen=True)
class Grid:
    """Samples from the trial's begin to its end.

    `edges_ns` are the samples' bounds, ascending; those of the measurement window are among them, so that
    sums over samples `first` to `last` (exclusive) are exactly sums over the window.
    """

    edges_ns: Ints
    first: int
    last: int
    sample_s: float

    @property
    def begin_s(self) -> float:
        """The window's begin."""
        return float(self.edges_ns[self.first]) / SECOND_NS

    @property
    def end_s(self) -> float:
        """The window's end, itself outside."""
        return float(self.edges_ns[self.last]) / SECOND_NS

    @property
    def starts_s(self) -> Floats:
        """Begin of each sample."""
        return self.edges_ns[:-1] / SECOND_NS

    @property
    def widths_s(self) -> Floats:
        """Length of each sample."""
        return np.diff(self.edges_ns) / SECOND_NS

    def __len__(self) -> int:
        return len(self.edges_ns) - 1

    def slice(self, begin_s: float | None = None, end_s: float | None = None) -> slice:
        """The samples of a stretch of time, its bounds rounded to the nearest edges; None is the window's.

        Raises:
            ValueError: if no sample lies in it.
        """
        edges_s = self.edges_ns / SECOND_NS
        first = self.first if begin_s is None else int(np.abs(edges_s - begin_s).argmin())
        last = self.last if end_s is None else int(np.abs(edges_s - end_s).argmin())
        if last <= first:
            low = self.begin_s if begin_s is None else begin_s
            high = self.end_s if end_s is None else end_s
            raise ValueError(
                f"{low:g} s to {high:g} s holds no sample: the trial lasts {edges_s[-1]:g} s and a sample "
                f"{self.sample_s:g} s"
            )
        return slice(first, last)

    def place(self, times_ns: Ints) -> Ints:
        """The sample of each time; times outside the trial get -1."""
        found = np.searchsorted(self.edges_ns, times_ns, side="right") - 1
        return np.where((found < 0) | (found >= len(self)), -1, found).astype(np.int64)

    def total(self, times_ns: Ints, weights: npt.NDArray[Any] | None = None) -> Floats:
        """Sum of `weights` (or the count) per sample."""
        where = self.place(times_ns)
        inside = where >= 0
        chosen = None if weights is None else weights[inside]
        return np.bincount(where[inside], weights=chosen, minlength=len(self)).astype(np.float64)


class Rows:
    """Rows cut once by two columns, so that many flows cost no more than their own rows."""

    def __init__(self, frame: pl.DataFrame, by: tuple[str, str] = ("flow", "dir")) -> None:
        self.frame = frame
        self._by = by

    @cached_property
    def _parts(self) -> dict[tuple[Any, ...], pl.DataFrame]:
        return self.frame.partition_by(list(self._by), as_dict=True, maintain_order=True)

    def part(self, *values: int) -> pl.DataFrame:
        """The rows with these values, in their order; none is no rows."""
        return self._parts.get(values, self.frame.clear())


@dataclass(frozen=True)
class StageInfo:
    """One stage of the path."""

    id: int
    name: str
    direction: int
    is_bottleneck: bool
    settings: Mapping[str, Any]
    """The stage as in the plan: kind, rate, queue ..."""

    @property
    def label(self) -> str:
        """How checks and figures call it: ``bottleneck``, ``up.bottleneck``."""
        return self.name if self.direction == DOWN else f"up.{self.name}"


@dataclass(frozen=True)
class FlowInfo:
    """One flow of the trial."""

    id: int
    name: str
    role: str
    system: str
    ours: bool
    is_ping: bool


@dataclass(frozen=True)
class Trial:
    """A record made ready. Frames keep the record's columns, with codes as integers.

    - `offered`: each packet where it enters its direction; router-entry flows enter at the bottleneck.
    - `delivered`: each packet where it leaves the last stage of its direction.
    - `dropped`: each packet where a stage dropped it.

    Copies that the path made are in `packets` alone.
    """

    grid: Grid
    layer: Layer
    duration_s: float
    flows: tuple[FlowInfo, ...]
    stages: tuple[StageInfo, ...]
    packets: pl.DataFrame
    events: pl.DataFrame
    offered: Rows
    delivered: Rows
    dropped: Rows
    at_stages: Rows
    """Every row, by stage and flow."""

    def bottleneck(self, direction: int = DOWN) -> StageInfo | None:
        """The first bottleneck of a direction."""
        found = (stage for stage in self.stages if stage.direction == direction and stage.is_bottleneck)
        return next(found, None)

    @property
    def bytes_column(self) -> str:
        """The column that counts bytes at the chosen layer."""
        return LAYER_COLUMN[self.layer]


def of(rows: Rows, flow: int, direction: int = DOWN) -> pl.DataFrame:
    """The rows of one flow in one direction."""
    return rows.part(flow, direction)


def column(frame: pl.DataFrame, name: str) -> Ints:
    """An integer column without nulls as int64."""
    return frame[name].cast(pl.Int64).to_numpy()


def prepare(
    record: RecordLike, scenario: Mapping[str, Any] | None = None, layer: Layer | None = None
) -> Trial:
    """Cuts a record up. `scenario` defaults to the one in the record.

    Raises:
        RecordError: if the record lacks a column, or its measurement window lies outside the trial.
    """
    trial = record.trial
    scenario = trial.get("scenario", {}) if scenario is None else scenario
    measure: Mapping[str, Any] = scenario.get("measure") or {}
    duration_s = float(trial["duration_s"])
    chosen = layer or measure.get("layer") or "ip"
    if chosen not in LAYER_COLUMN:
        raise RecordError(f"measure.layer is {chosen!r}; it must be one of {', '.join(LAYER_COLUMN)}.")
    packets = _codes(record.packets)
    ours = pl.col("copy") == 0
    stages = _stages(trial)
    last = {way: max((s.id for s in stages if s.direction == way), default=-1) for way in (DOWN, UP)}
    entry = packets.group_by("flow", "dir").agg(pl.col("stage").min().alias("entry"))
    offered = packets.filter(ours).join(entry, on=["flow", "dir"]).filter(pl.col("stage") == pl.col("entry"))
    leaving = ((pl.col("dir") == DOWN) & (pl.col("stage") == last[DOWN])) | (
        (pl.col("dir") == UP) & (pl.col("stage") == last[UP])
    )
    return Trial(
        grid=_grid(measure, duration_s),
        layer=chosen,
        duration_s=duration_s,
        flows=_flows(trial),
        stages=stages,
        packets=packets,
        events=record.events,
        offered=Rows(offered.sort("t_in", maintain_order=True)),
        delivered=Rows(
            packets.filter(ours & leaving & pl.col("t_out").is_not_null()).sort("t_out", maintain_order=True)
        ),
        dropped=Rows(packets.filter(ours & (pl.col("fate") == DROPPED)).sort("t_in", maintain_order=True)),
        at_stages=Rows(packets, ("stage", "flow")),
    )


def seconds(value: Any) -> float:
    """A time as a scenario may hold it: seconds as a number, text with a unit, or a quantity object.

    Raises:
        RecordError: if it is none of these.
    """
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        match = re.fullmatch(r"\s*([0-9.eE+-]+)\s*([A-Za-zµ]*)\s*", value)
        if match and UNITS.get(match.group(2) or "s", (0, None))[1] == TIME:
            return float(match.group(1)) * UNITS[match.group(2) or "s"][0]
    for name in ("s", "seconds"):
        found = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        if isinstance(found, int | float):
            return float(found)
    raise RecordError(f"{value!r} is not a time; write it with a unit, such as `0.5 s`.")


def _grid(measure: Mapping[str, Any], duration_s: float) -> Grid:
    sample_s = seconds(measure.get("sample") or DEFAULT_SAMPLE_S)
    window = measure.get("window") or (0.0, duration_s)
    begin_s, end_s = seconds(window[0]), min(seconds(window[1]), duration_s)
    if not 0 <= begin_s < end_s or sample_s <= 0:
        raise RecordError(
            f"measure.window [{begin_s:g} s, {end_s:g} s] with samples of {sample_s:g} s does not fit "
            f"a trial that lasted {duration_s:g} s; choose a window inside it."
        )
    duration = round(duration_s * SECOND_NS)
    step = max(1, round(sample_s * SECOND_NS))
    begin, end = round(begin_s * SECOND_NS), round(end_s * SECOND_NS)
    # Samples are aligned with the window's begin, so that a whole number of them fills a round window.
    edges = np.arange(begin % step, duration + 1, step, dtype=np.int64)
    edges = np.unique(np.concatenate([edges, np.array([0, begin, end, duration], dtype=np.int64)]))
    first, last = np.searchsorted(edges, [begin, end])
    return Grid(edges, int(first), int(last), sample_s)


_COLUMNS = (
    "pkt", "copy", "flow", "dir", "stage", "kind", "t_in", "t_out", "fate", "cause", "wire_bytes", "ip_bytes",
    "payload_bytes", "seq", "flags", "queue_bytes", "queue_packets",
)  # fmt: skip
_CODED = ("flow", "dir", "stage", "kind", "fate", "cause")


def _codes(packets: pl.DataFrame) -> pl.DataFrame:
    missing = [name for name in _COLUMNS if name not in packets.columns]
    if missing:
        raise RecordError(f"packets.parquet lacks {', '.join(missing)}; run the trial again.")
    # A pl.Enum's physical value is its place in the legend: the code that the file holds.
    return packets.select(_COLUMNS).with_columns(
        pl.col(name).to_physical().cast(pl.Int64)
        for name in _CODED
        if packets.schema[name] in (pl.Enum, pl.Categorical)
    )


def _stages(trial: Mapping[str, Any]) -> tuple[StageInfo, ...]:
    path = (trial.get("plan") or {}).get("path") or {}
    specs = {
        (way, str(spec.get("name"))): spec.get("kind") or {}
        for way, key in ((DOWN, "down"), (UP, "up"))
        for spec in path.get(key) or []
    }
    stages = []
    for entry in trial["stages"]:
        direction = UP if str(entry["direction"]).lower() in ("up", "1") else DOWN
        name = str(entry["name"]).removeprefix("up.").removeprefix("down.")
        kind = specs.get((direction, name), {})
        settings = kind.get("bottleneck") or {}
        is_bottleneck = "bottleneck" in kind if kind else name == "bottleneck"
        stages.append(StageInfo(int(entry["id"]), name, direction, is_bottleneck, settings))
    return tuple(stages)


def _flows(trial: Mapping[str, Any]) -> tuple[FlowInfo, ...]:
    apps = {str(flow.get("name")): flow.get("app") for flow in (trial.get("plan") or {}).get("flows") or []}
    flows = []
    for entry in trial["flows"]:
        if int(entry["id"]) == 65535:
            continue
        name = str(entry["name"])
        app = apps.get(name)
        system = str(entry.get("system") or entry.get("traffic") or "")
        is_ping = system == "ping" or (isinstance(app, Mapping) and "ping" in app)
        role, ours = str(entry.get("role", "subject")), bool(entry.get("ours", True))
        flows.append(FlowInfo(int(entry["id"]), name, role, system, ours, is_ping))
    return tuple(flows)
