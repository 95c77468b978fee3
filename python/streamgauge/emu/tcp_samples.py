"""The state of the flows' TCP connections, which the witnesses at the sending ends asked the kernel for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streamgauge.emu.controls import by_linux_name
from streamgauge.emu.witness_files import samples_file
from streamgauge.systems.adapters import begins_with_control

READ_BACK_NS = 1_000_000_000
"""How often connections are looked at where no samples are wanted: for their congestion control."""

_COLUMNS = (
    # (event, unit, factor) of each value of a sample after its time and congestion control.
    ("tcp_cwnd", "B", 1.0),
    ("tcp_ssthresh", "B", 1.0),
    ("tcp_srtt", "s", 1e-6),
    ("tcp_retransmits", "1", 1.0),
    ("tcp_pacing_rate", "bit/s", 8.0),
    ("tcp_in_flight", "B", 1.0),
)


def settings(plan: Mapping[str, Any], directory: Path, end: str) -> dict[str, Any] | None:
    """Returns the arguments of the witness at `end`; None where no flow sends."""
    if end == "client" and not any(flow.get("direction") == "up" for flow in plan["flows"]):
        return None
    every_ns = plan.get("tcp_sample") or READ_BACK_NS
    return {"every_ns": every_ns, "out": str(samples_file(directory, end))}


def connections(directory: Path, registered: Mapping[str, str]) -> list[dict[str, Any]]:
    """Returns every connection that the witnesses saw, congestion controls by their Linux names. Removes
    their files.

    `registered` is the result of `controls.names`.
    """
    found: list[dict[str, Any]] = []
    for file in sorted(directory.glob("tcp-*.json")):
        found += json.loads(file.read_text(encoding="utf-8"))["connections"]
        file.unlink()
    for one in found:
        names = [by_linux_name(name, registered) for name in one["congestion_controls"]]
        samples = [[at, by_linux_name(name, registered), *values] for at, name, *values in one["samples"]]
        one |= {"congestion_controls": names, "samples": samples}
    return found


def used(found: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """For each flow with a connection: the congestion controls of its servers, and ``ecn`` among them if both
    ends of one agreed on it."""
    names: dict[str, set[str]] = {}
    for one in found:
        names.setdefault(one["flow"], set()).update(one["congestion_controls"])
        if one["ecn"]:
            names[one["flow"]].add("ecn")
    return {flow: sorted(some) for flow, some in names.items()}


def events(
    found: Sequence[Mapping[str, Any]], plan: Mapping[str, Any], t0_ns: int, duration_ns: int
) -> list[dict[str, Any]]:
    """Samples as events of the record, as sim has them; none if the plan wants none.

    A flow may have several connections (one after another over HTTP): at each time, those of the one count
    that carries most in all. iperf3's first connection carries no data and has no samples. The reason names
    the congestion control, and of any but the flow's first connection the server's and the player's port too.
    A sample's time is when the kernel answered, not its place on the grid.
    """
    step = plan.get("tcp_sample")
    if step is None:
        return []
    best: dict[tuple[str, int], tuple[int, Sequence[Any], str]] = {}
    first: dict[str, tuple[int, int]] = {}
    controlled = {flow["name"] for flow in plan["flows"] if begins_with_control(flow)}
    for one in found:
        ports = (one["server_port"], one["player_port"])
        if one["flow"] not in first and one["flow"] in controlled:
            first[one["flow"]] = ports
            continue
        name = "" if first.setdefault(one["flow"], ports) == ports else f" {ports[0]}:{ports[1]}"
        for sample in one["samples"]:
            at = sample[0] - t0_ns
            if not 0 <= at < duration_ns:
                continue
            # All connections of a round are asked within far less than half a step of each other.
            place = (one["flow"], (at + step // 2) // step)
            if place not in best or one["acked_bytes"] > best[place][0]:
                best[place] = (one["acked_bytes"], sample, name)
    made: list[dict[str, Any]] = []
    for (flow, _), (_, sample, connection) in best.items():
        at, control, *values = sample
        for (event, unit, factor), value in zip(_COLUMNS, values, strict=True):
            if value is not None:
                made.append(
                    {
                        "t_ns": at - t0_ns,
                        "flow": flow,
                        "name": event,
                        "value": value * factor,
                        "unit": unit,
                        "reason": control + connection,
                    }
                )
    return made
