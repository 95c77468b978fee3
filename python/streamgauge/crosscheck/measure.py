"""The quantities of one trial, taken from its packets while they are there and kept beside its record."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from streamgauge.crosscheck.cases import CONTROL, Case, CaseKind
from streamgauge.crosscheck.compared import Found
from streamgauge.crosscheck.quantities import completion_s, of_flow, of_pair, of_start, window
from streamgauge.crosscheck.taken import Taken, is_taken, keep
from streamgauge.crosscheck.trace import FlowTrace, traces
from streamgauge.record import Record
from streamgauge.systems.registry import GREEDY_TCP

__all__ = ["SCHEMA", "keep_quantities", "of_traces"]

SCHEMA: Final = "streamgauge.crosscheck-trial/1"
"""Raised when a quantity is computed otherwise: older files are then made again."""
_POINTS: Final = 600
"""Points over time that are kept of the window for figures."""
_PAIR = ("loss_percent", "retransmitted_percent", "rtt_p50_s")
_BESIDE = (
    "loss_percent",
    "loss_interval_mean_s",
    "rtt_p50_s",
    "rtt_p95_s",
    "retransmitted_percent",
    "goodput_bps",
)


def of_traces(case: Case, flows: Mapping[str, FlowTrace]) -> Found:
    """Returns every quantity of a case from the connections of one run, by name as rows have it.

    `flows` has one entry a TCP flow of the case's scenario, by its name.
    """
    return _of(case.kind, case.has_start, case.window_ns, flows)


def _of(kind: CaseKind, start: bool, span: tuple[int, int], flows: Mapping[str, FlowTrace]) -> Found:
    begin, end = span
    names = list(flows)
    match kind:
        case "short":
            found: Found = {f"{name}.completion_s": completion_s(trace) for name, trace in flows.items()}
            return found | {
                f"{name}.retransmitted_percent": _repeated(trace) for name, trace in flows.items()
            }
        case "single":
            (trace,) = flows.values()
            return of_flow(trace, begin, end) | (of_start(trace, begin) if start else {})
        case "paced":
            (trace,) = flows.values()
            every = of_flow(trace, begin, end)
            return {name: every[name] for name in _BESIDE}
        case "pair":
            shares = of_pair(flows[names[0]], flows[names[1]], begin, end)
            found = {f"{names[0]}.{name}": value for name, value in shares.items()}
            if names[0].endswith("_a"):
                # Which of two alike gets more is chance.
                share = found.pop(f"{names[0]}.share")
                found |= {"larger.share": None if share is None else max(share, 1 - share)}
            for flow, trace in flows.items():
                every = of_flow(trace, begin, end)
                found |= {f"{flow}.{name}": every[name] for name in _PAIR}
            return found


def _repeated(trace: FlowTrace) -> float:
    return 100 * float(trace.repeat.sum()) / len(trace.sent)


class Keeper:
    """Takes a case's quantities from a record before its packets go; see `campaign.plan.Extra`."""

    def __init__(self, case: Case) -> None:
        self.case = case

    @property
    def key(self) -> str:
        """Returns the inputs of the result besides the record."""
        begin, end = self.case.window_ns
        return f"{SCHEMA} {self.case.kind} {self.case.has_start} {begin} {end}"

    def take(self, directory: Path) -> None:
        """Computes and keeps them, and ``"windows": {flow: {"t_s": [...], "packets": [...]}}``, the most
        packets in flight in each of some hundred steps of the trial."""
        record = Record.open(directory)
        flows = self.case.scenario.flows.items()
        tcp = [name for name, flow in flows if flow.traffic == GREEDY_TCP and name != CONTROL]
        found = {name: trace for name, trace in traces(record).items() if name in tcp}
        data: Taken = {"schema": SCHEMA, "key": self.key, "quantities": {}, "windows": {}}
        # A flow of an invalid trial may never have sent.
        if len(found) == len(tcp):
            data["quantities"] = of_traces(self.case, {name: found[name] for name in tcp})
            data["windows"] = {name: _drawn(trace, self.case.window_ns[1]) for name, trace in found.items()}
        keep(directory, data)

    def has(self, directory: Path) -> bool:
        """Returns whether it was taken, and by the same rule."""
        return is_taken(directory, self.key)


def keep_quantities(case: Case) -> Keeper:
    """Returns the keeper of a trial's quantities for the case."""
    return Keeper(case)


def _drawn(trace: FlowTrace, end_ns: int) -> dict[str, list[float]]:
    times, packets = window(trace, 0, end_ns, -(-end_ns // _POINTS))
    return {"t_s": np.round(times, 4).tolist(), "packets": packets.tolist()}
