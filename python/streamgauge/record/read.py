"""Reads the record of a trial."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from streamgauge import _native
from streamgauge.errors import RecordError
from streamgauge.input_files import UnfitInputError, check_file
from streamgauge.record.header import read_object, read_trial
from streamgauge.record.schema import (
    EVENTS,
    KNOWN,
    OTHER,
    OTHER_CODE,
    PACKETS,
    PROVENANCE,
    TRIAL,
    check_version,
)
from streamgauge.record.seal import check_seal

Column = npt.NDArray[Any]

Saying = tuple[str, str | None, npt.NDArray[np.int64], npt.NDArray[np.float64], list[str]]
"""Events of one flow under one name: the name, the flow (None: the path's), times, values and their units."""


def stage_labels(stages: Sequence[Mapping[str, str]]) -> list[str]:
    """Returns one name a stage, unique across directions: `bottleneck`, `up.bottleneck`."""
    return [stage["name"] if stage["direction"] == "down" else f"up.{stage['name']}" for stage in stages]


@dataclass(frozen=True)
class Record:
    """The record in one directory. Tables are read when they are asked for."""

    directory: Path
    trial: dict[str, Any]
    """`trial.json`: scenario and plan as run, mode, seed, digests, stages, flows, balance, validity."""

    @classmethod
    def open(cls, directory: str | Path) -> Record:
        """Opens a record and checks that it is whole.

        That is: versions of schemas, numbers of rows, and that each file is the one that `trial.json` speaks
        of. `verify` checks every value.

        Raises:
            RecordError: naming the file that is missing, cut short, of an unknown version or another trial's.
        """
        directory = Path(directory)
        trial = read_trial(directory / TRIAL)
        check_version(directory / TRIAL, trial.get("schema"), KNOWN[TRIAL])
        for name, key in ((PACKETS, "packets_digest"), (EVENTS, "events_digest")):
            if name in trial.get("kept", ()):
                _check_kind(directory / name)
                _check(directory / name, trial.get(key))
        return cls(directory, trial)

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Returns `provenance.json`: host, kernel, versions, wall time.

        Raises:
            RecordError: if it is missing or damaged.
        """
        return read_object(self.directory / PROVENANCE)

    @cached_property
    def codes(self) -> pl.DataFrame:
        """Returns `packets` with the codes of the file instead of names: cheaper, and enough for metrics.

        `flow` is 65535 for packets of no flow.

        Raises:
            RecordError: if the packets were not kept, or the file is damaged.
        """
        path = self._kept(PACKETS)
        _footer(path)
        return _read_table(path)

    @cached_property
    def columns(self) -> dict[str, Column]:
        """Returns the columns of `codes` that metrics need, as arrays (not to be written to) without nulls:
        in `t_out` and `t_drop` the least int64 replaces null, in `seq` -1.

        Raises:
            RecordError: if the packets were not kept, or the file is damaged.
        """
        return dict(_native.packet_columns(self._kept(PACKETS)))

    @cached_property
    def told(self) -> dict[tuple[str, str | None], tuple[Column, Column]]:
        """Returns `events` by name and flow: times (int64, ns, ascending) and values (float64, NaN for null,
        of events in ms in s), not to be written to. Reasons are left out.

        Raises:
            RecordError: if the events were not kept, or the file is damaged.
        """
        return _told(self._said)

    @cached_property
    def _said(self) -> list[Saying]:
        return _native.told(self._kept(EVENTS))

    @cached_property
    def units(self) -> dict[tuple[str, str | None], tuple[str, ...]]:
        """Returns the units of `told`'s values, by name and flow, in alphabetical order: one each, unless the
        sender changed the unit. Events without a value have none.

        Raises:
            RecordError: if the events were not kept, or the file is damaged.
        """
        return _units(self._said)

    @cached_property
    def packets(self) -> pl.DataFrame:
        """Returns one row per packet per stage, in the order in which fates were decided.

        Columns: `pkt`, `copy` (0 the original), `fragment_offset` (units of 8 bytes), `flow`, `dir`, `stage`,
        `kind`, `t_in`, `t_out`, `t_drop` (ns since the trial's start; null if it did not leave, was not
        dropped), `fate`, `cause`, `wire_bytes` (IP + 14), `ip_bytes`, `payload_bytes` (above the transport
        header), `seq` (RTP or TCP; null if hidden), `flags` (bits: 1 retransmit, 2 ECN-capable on arrival, 4
        CE set here, 8 corrupted, 16 more fragments, 32 arrived with ECT(1), 64 arrived with CE, 128 not to be
        fragmented), `queue_bytes`, `queue_packets` (at arrival, before itself), `hash` (of addresses and
        ports), `protocol` (0 TCP, 1 UDP, 2 ICMP, 3 other). `flow`, `dir`, `stage`, `kind`, `fate` and `cause`
        are enumerations. `connection` counts the flow's TCP connections from 0, in order of their first
        packets (null: no TCP). Records of packets/1 have neither `fragment_offset`, `t_drop`, `hash` nor
        `protocol`; those before packets/3 have no `connection`.

        Raises:
            RecordError: if the packets were not kept, or the file is damaged.
        """
        return self.packets_of(self._kept(PACKETS))

    @cached_property
    def events(self) -> pl.DataFrame:
        """Events of machines and stages, by time.

        Columns: `time` (ns since the trial's start), `flow` (null: the path's), `name`, `value`, `unit`,
        `reason`.

        Raises:
            RecordError: if the events were not kept, or the file is damaged.
        """
        path = self._kept(EVENTS)
        return _read_table(path)

    @staticmethod
    def packets_of(path: Path) -> pl.DataFrame:
        """Returns the rows of one `packets.parquet`, with names for codes; see `packets`.

        Raises:
            RecordError: if the file is missing or damaged.
        """
        _check_kind(path)
        footer = _footer(path)
        legend = json.loads(footer["legend"])
        names: dict[str, list[str]] = {
            "flow": [*legend["flow"], OTHER],
            "stage": stage_labels(legend["stage"]),
            **{column: legend[column] for column in ("dir", "kind", "fate", "cause")},
        }
        table = _read_table(path)
        flow = pl.when(pl.col("flow") == OTHER_CODE).then(len(legend["flow"])).otherwise(pl.col("flow"))
        try:
            # A look-up in the list of names: versions of polars differ in how they cast codes to an Enum.
            codes = table.with_columns(flow.alias("flow"))
            return codes.with_columns(
                pl.Series(column, values, dtype=pl.Enum(values)).gather(codes[column])
                for column, values in names.items()
            )
        except pl.exceptions.PolarsError as error:
            raise _damaged(path, f"a code that its legend does not explain ({error})") from error

    def verify(self) -> str:
        """Runs `check` and returns the digest alone."""
        return self.check().digest

    def check(self) -> CheckedRecord:
        """Recomputes the digests of all files, and the verdict from the measurements.

        Raises:
            RecordError: naming the first file with changed content, and the difference.
        """
        digest = str(json.loads(_native.verify(self.directory))["digest"])
        left_out = [f"{name} (not kept)" for name in (PACKETS, EVENTS) if name not in self.trial["kept"]]
        return CheckedRecord(digest, (*left_out, *check_seal(self.directory, self.trial)))

    def replay(self) -> dict[str, Any]:
        """Lets the arrivals of `packets` enter a fresh path of the trial's plan and compares every fate.

        A path is deterministic, so every row must come out again, to the nanosecond.

        Returns:
            ``{"packets": those that entered, "rows": in the record, "different": rows that are in the record
            or the replay alone or differ, "first": the first of these in words, or None}``

        Raises:
            RecordError: if the packets were not kept, are damaged or of a version before 2, which lacks
                inputs of a path.
            ScenarioError: if this version cannot build the path.
        """
        self._kept(PACKETS)
        if "plan" not in self.trial:
            raise RecordError(f"{self.directory}: the record has no plan, so nothing can be replayed.")
        found: dict[str, Any] = json.loads(_native.replay(json.dumps(self.trial["plan"]), self.directory))
        return found

    def _kept(self, name: str) -> Path:
        if name not in self.trial["kept"]:
            keep = name.removesuffix(".parquet")
            raise RecordError(f"{self.directory / name}: not kept; run the trial again with --keep {keep}.")
        _check_kind(self.directory / name)
        return self.directory / name


@dataclass(frozen=True)
class CheckedRecord:
    """Result of the check of an undamaged record."""

    digest: str
    """The trial's."""
    left_out: tuple[str, ...]
    """Parts that could not be checked, with the reason."""


@dataclass(frozen=True)
class RecordInMemory:
    """Data for the metrics of a record whose packets and events were never written (`--keep metrics`)."""

    directory: Path
    """Folder of the kept parts."""
    trial: dict[str, Any]
    """As that of `Record`."""
    columns: dict[str, Column]
    """As those of `Record`."""
    told: dict[tuple[str, str | None], tuple[Column, Column]]
    """As that of `Record`."""
    units: dict[tuple[str, str | None], tuple[str, ...]]
    """As those of `Record`."""

    @classmethod
    def of(
        cls,
        directory: Path,
        trial: dict[str, Any],
        columns: Sequence[tuple[str, Column]],
        said: Sequence[Saying],
    ) -> RecordInMemory:
        """Returns the trial from the results of `_native.simulate_in_memory`."""
        return cls(directory, trial, dict(columns), _told(said), _units(said))


def _told(said: Sequence[Saying]) -> dict[tuple[str, str | None], tuple[Column, Column]]:
    return {(name, flow): (times, values) for name, flow, times, values, _ in said}


def _units(said: Sequence[Saying]) -> dict[tuple[str, str | None], tuple[str, ...]]:
    return {(name, flow): tuple(units) for name, flow, _, _, units in said if units}


def _damaged(path: Path, what: str) -> RecordError:
    return RecordError(f"{path}: damaged: {what}; run the trial again or fetch the record anew.")


def _check_kind(path: Path) -> None:
    """Readers of Parquet open a file by its name. Raises RecordError for a pipe or a device."""
    try:
        check_file(path)
    except UnfitInputError as error:
        raise RecordError(f"{path}: {error}.") from None


def _read_table(path: Path) -> pl.DataFrame:
    try:
        # A Hive directory name above it must not become a column here: trials are read one at a time.
        return pl.read_parquet(path, hive_partitioning=False)
    except FileNotFoundError:
        raise RecordError(f"{path}: missing; the record is not complete, run the trial again.") from None
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _damaged(path, str(error)) from error


def _footer(path: Path) -> dict[str, Any]:
    footer: dict[str, Any] = json.loads(_native.footer(path))
    check_version(path, footer["schema"], KNOWN[path.name])
    return footer


def _check(path: Path, digest: object) -> None:
    footer = _footer(path)
    if footer["digest"] != digest:
        raise _damaged(path, f"its digest is {footer['digest']}, {TRIAL} says {digest}")
