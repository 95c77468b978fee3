"""A record prepared for metrics: where flows enter and leave, drops, and the grid of samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar

import numpy as np

from streamgauge.errors import RecordError
from streamgauge.media import with_frames
from streamgauge.metrics.datagrams import are_plain, datagrams
from streamgauge.metrics.grid import Codes, Floats, Grid, Ints, Mask, grid_of
from streamgauge.metrics.passage import NEVER, Passage
from streamgauge.metrics.reported import EventSeries, ReportedEvents
from streamgauge.scenario.recorded import recorded_flows
from streamgauge.systems.machines import MACHINES, Facts, facts

MetricLayer = Literal["ethernet", "ip", "payload"]
LAYER_COLUMN: dict[MetricLayer, str] = {
    "ethernet": "wire_bytes",
    "ip": "ip_bytes",
    "payload": "payload_bytes",
}

DOWN, UP = 0, 1
DELIVERED, DROPPED, HELD = 0, 1, 2
RTCP, SIGNALLING, PROBE = 2, 3, 4
RETRANSMIT = 1
CE_MARKED = 4

Given = ParamSpec("Given")
Made = TypeVar("Made")


class RecordLike(Protocol):
    """Interface of a record for metrics: `streamgauge.record.Record` has it."""

    @property
    def directory(self) -> Path: ...
    @property
    def trial(self) -> dict[str, Any]: ...
    @property
    def columns(self) -> Mapping[str, Codes]: ...
    @property
    def told(self) -> Mapping[tuple[str, str | None], EventSeries]: ...
    @property
    def units(self) -> Mapping[tuple[str, str | None], tuple[str, ...]]: ...


@dataclass(frozen=True)
class StageInfo:
    """One stage of the path."""

    id: int
    name: str
    direction: int
    is_bottleneck: bool
    settings: Mapping[str, Any] = field(hash=False)
    """The stage as in the plan: kind, rate, queue ..."""

    @property
    def label(self) -> str:
        """Returns how checks and figures call it: ``bottleneck``, ``up.bottleneck``."""
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
    direction: int = DOWN
    """Direction of its media."""


@dataclass(frozen=True)
class Trial:
    """A record made ready. Flows go by their place in `flows`.

    Each pair is (the way of the media, the way back), which of a flow with ``direction: up`` are (up, down),
    without the copies that the path made; a datagram in fragments is one packet:

    - `offered`: each packet where it enters its direction; router-entry flows enter at the bottleneck.
    - `delivered`: each packet when it has left the last stage of its direction, whole and sound.
    - `dropped`: each packet when a stage dropped it or a part of it, or when it arrived corrupted, unless a
      copy of it is delivered.
    """

    grid: Grid
    layer: MetricLayer
    duration_s: float
    flows: tuple[FlowInfo, ...]
    folder: Path
    """The record's."""
    plans: tuple[Mapping[str, Any], ...]
    """Each flow's entry in the plan; empty where the record has none."""
    recorded: Mapping[str, Any]
    """The trial's own data in the record."""
    stages: tuple[StageInfo, ...]
    table: Mapping[str, Codes]
    """Columns of `packets.parquet`, every row, codes as integers. `flow` is the place in `flows`, or their
    number for packets of none; `t_out` and `t_drop` may be `NEVER`, `seq` may be `HIDDEN`."""
    leaving: Mask
    """The rows of `table` with which something leaves the path."""
    said: ReportedEvents
    """Reports of the flows' machines."""
    offered: tuple[Passage, Passage]
    delivered: tuple[Passage, Passage]
    dropped: tuple[Passage, Passage]
    _made: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Results of `once`."""

    def once(
        self, function: Callable[Concatenate[Trial, Given], Made], *of: Given.args, **named: Given.kwargs
    ) -> Made:
        """Returns `function(trial, *of)`, which is called at the first request alone: metrics share what they
        are made of. The result is not to be written to."""
        assert not named, "only positional arguments"
        key = (function, *of)
        if key not in self._made:
            self._made[key] = function(self, *of, **named)
        found: Made = self._made[key]
        return found

    def row(self, counts: Callable[[Trial], Floats], flow: int) -> Floats:
        """Returns one flow's row of a function that counts for all flows at once, [sample]: the same array at
        each request, so that a record of metrics stores it once."""
        return self.once(_row, counts, flow)

    @cached_property
    def entries(self) -> tuple[Ints, Ints]:
        """Returns for each packet of `delivered` its place in `offered`, -1 if it is not there."""
        down, up = (self.offered[way].find(self.delivered[way]) for way in (DOWN, UP))
        return down, up

    @cached_property
    def lost(self) -> tuple[Mask, Mask]:
        """Returns which of the packets of `offered` are lost on their way."""
        both = []
        for offered, dropped in zip(self.offered, self.dropped, strict=True):
            found = offered.find(dropped)
            lost = np.zeros(len(offered), dtype=np.bool_)
            lost[found[found != -1]] = True
            both.append(lost)
        down, up = both
        return down, up

    @cached_property
    def asked(self) -> tuple[Mapping[str, Any], ...]:
        """Returns each flow's entry in the scenario as it was run; empty where the record has none."""
        # Few metrics need it, and a population's draw is repeated for it.
        asked = recorded_flows(self.recorded)
        return tuple(asked.get(flow.name) or {} for flow in self.flows)

    @cached_property
    def facts(self) -> tuple[Facts | None, ...]:
        """Returns the facts about each flow by its machine in the plan; None for a third-party system."""
        return tuple(facts(plan.get("app", "external")) for plan in self.plans)

    @cached_property
    def apps(self) -> tuple[str | Mapping[str, Any], ...]:
        """Returns each flow's machine in the plan with its settings, a clip's frames among them; ``external``
        for a third-party system."""
        return tuple(with_frames(plan.get("app", "external"), self.folder) for plan in self.plans)

    def machine(self, flow: int) -> str:
        """Returns the plan's name for the machine of a flow: ``rtp``, ``bulk`` ...; ``external`` if it has
        none."""
        app = self.plans[flow].get("app", "external")
        return app if isinstance(app, str) else str(next(iter(app)))

    def bottleneck(self, direction: int = DOWN) -> StageInfo | None:
        """That of a direction (`bottleneck_of`)."""
        return bottleneck_of((stage for stage in self.stages if stage.is_bottleneck), direction)

    @property
    def bytes_column(self) -> str:
        """Returns the column that counts bytes at the chosen layer."""
        return LAYER_COLUMN[self.layer]

    def passage(self, rows: Mask, *, at: str) -> Passage:
        """Some rows by their time in the column `at`."""
        return Passage(self.grid, len(self.flows), self.table, rows, at=at)


def _row(trial: Trial, counts: Callable[[Trial], Floats], flow: int) -> Floats:
    found: Floats = trial.once(counts)[flow]
    return found


def bottleneck_of(stages: Iterable[StageInfo], direction: int = DOWN) -> StageInfo | None:
    """Returns the stage called ``bottleneck`` of a direction's stages with a rate, or else the first of
    them."""
    found = [stage for stage in stages if stage.direction == direction]
    return next((stage for stage in found if stage.name == "bottleneck"), next(iter(found), None))


def prepare(
    record: RecordLike, scenario: Mapping[str, Any] | None = None, layer: MetricLayer | None = None
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
    grid = grid_of(measure, duration_s)
    flows, stages = _flows(trial), _stages(trial)
    plans = {str(flow.get("name")): flow for flow in (trial.get("plan") or {}).get("flows") or []}
    table = _table(record.columns, flows)

    entering = table["stage"] == _entry_stage(table, len(flows))
    leaving = (table["stage"] == _last_stage(table, stages)) & (table["t_out"] != NEVER)
    ours = table["flow"] < len(flows)
    if are_plain(table):
        packets: Mapping[str, Codes] = table
        offered, delivered, dropped = ours & entering, ours & leaving, ours & (table["t_drop"] != NEVER)
    else:
        packets = datagrams(table, ours & entering, ours & leaving)
        offered = np.ones(len(packets["pkt"]), dtype=np.bool_)
        delivered, dropped = packets["t_out"] != NEVER, packets["t_drop"] != NEVER

    ways = np.array([*(flow.direction for flow in flows), DOWN], dtype=np.uint8)
    # 0 the direction of the media, 1 the reverse one, as the constants of both directions mean here.
    with_media = packets["dir"].astype(np.uint8) ^ ways[packets["flow"]] if ways.any() else packets["dir"]

    def both(rows: Mask, at: str) -> tuple[Passage, Passage]:
        there, back = (
            Passage(grid, len(flows), packets, rows & (with_media == way), at=at) for way in (DOWN, UP)
        )
        return there, back

    return Trial(
        grid=grid,
        layer=chosen,
        duration_s=duration_s,
        flows=flows,
        folder=record.directory,
        plans=tuple(plans.get(flow.name, {}) for flow in flows),
        recorded=trial,
        stages=stages,
        table=table,
        said=ReportedEvents(record.told, [flow.name for flow in flows], lambda: record.units),
        leaving=leaving,
        offered=both(offered, "t_in"),
        delivered=both(delivered, "t_out"),
        dropped=both(dropped, "t_drop"),
    )


def _entry_stage(table: Mapping[str, Codes], flows: int) -> Codes:
    """Returns for each row the first stage that its flow meets in its direction."""
    way = 2 * table["flow"].astype(np.int64) + table["dir"]
    stage = table["stage"]
    # The first of the stages that hold any of its rows.
    stages = int(stage.max(initial=0)) + 1
    rows = np.bincount(stages * way + stage, minlength=2 * (flows + 1) * stages).reshape(-1, stages)
    entry: Codes = (rows > 0).argmax(axis=1).astype(stage.dtype)[way]
    return entry


def _last_stage(table: Mapping[str, Codes], stages: tuple[StageInfo, ...]) -> Codes:
    """Returns for each row the last stage of its direction."""
    last = [max((s.id for s in stages if s.direction == way), default=-1) for way in (DOWN, UP)]
    leaving: Codes = np.array(last, dtype=np.int16)[table["dir"]]
    return leaving


_COLUMNS = (
    "pkt", "copy", "flow", "dir", "stage", "kind", "t_in", "t_out", "fate", "wire_bytes", "ip_bytes",
    "payload_bytes", "seq", "flags",
)  # fmt: skip
_LATER_COLUMNS = ("fragment_offset", "t_drop")
"""Those that packets/1 has not."""


def _table(columns: Mapping[str, Codes], flows: tuple[FlowInfo, ...]) -> dict[str, Codes]:
    missing = [name for name in _COLUMNS if name not in columns]
    if missing:
        raise RecordError(f"packets.parquet lacks {', '.join(missing)}; run the trial again.")
    # As narrow as they are: for arrays past 128 kB the allocator asks the kernel each time, which costs more
    # than the computation.
    table = {name: columns[name] for name in (*_COLUMNS, *_LATER_COLUMNS) if name in columns}
    if "t_drop" not in table:
        # Before packets/2 no packet was fragmented, and every drop was at arrival.
        table["t_drop"] = np.where(table["fate"] == DROPPED, table["t_in"], NEVER)
        table["fragment_offset"] = np.zeros(len(table["pkt"]), dtype=np.uint16)
    # A flow's code has 16 bits.
    row = np.full(1 << 16, len(flows), dtype=np.uint16)
    row[[flow.id for flow in flows]] = np.arange(len(flows))
    table["flow"] = row[table["flow"]]
    if (table["dir"] > UP).any():
        raise RecordError("packets.parquet holds packets that go neither down nor up; run the trial again.")
    return table


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
    planned = (trial.get("plan") or {}).get("flows") or []
    apps = {str(flow.get("name")): flow.get("app") for flow in planned}
    rising = {str(flow.get("name")) for flow in planned if flow.get("direction") == "up"}
    flows = []
    for entry in trial["flows"]:
        if int(entry["id"]) == 65535:
            continue
        name = str(entry["name"])
        app = apps.get(name)
        system = str(entry.get("system") or entry.get("traffic") or "")
        # A missing plan, or one of another program, leaves the name.
        named = [
            MACHINES[one] for one in (system, *(app if isinstance(app, Mapping) else ())) if one in MACHINES
        ]
        is_ping = any(machine.media_over == "icmp" for machine in named)
        role, ours = str(entry.get("role", "subject")), bool(entry.get("ours", True))
        # A record without a plan has it in the flow.
        direction = UP if name in rising or entry.get("direction") == "up" else DOWN
        flows.append(FlowInfo(int(entry["id"]), name, role, system, ours, is_ping, direction))
    return tuple(flows)
