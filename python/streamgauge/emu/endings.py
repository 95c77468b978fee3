"""Processes of a flow that ended before the trial did, and the harm of each.

``measured`` has "endings", the processes that ended by themselves, in order: "flow", "side", "name", "at_s",
"status" (as in `subprocess.Popen.returncode`), "how" in words, "may_end", whether their adapter expects it,
"essential", whether the trial is void without it, and "is_main", whether its end is its side's. It also has
"actions", the scenario's actions on the flows: "flow", "action", "at_s"; and "first_packets_s" by flow.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any

from streamgauge.emu.expectation import stopped_s
from streamgauge.systems.adapter import whose

Ending = Mapping[str, Any]


def deaths(measured: Mapping[str, Any]) -> list[str]:
    """Returns a sentence for each process with a harmful end; a relay's "flow" is its own name. No
    harm is done by

    - one that is not essential;
    - one that may end by its adapter, with status 0;
    - one with a flow that the scenario had stopped: nothing more is expected of it, and a server may well end
      with an error, or by SIGPIPE, after its player left;
    - a server that ends with status 0 when its flow has begun, if its player ends by itself with status 0
      too, before it or after it: it had sent everything.
    """
    stopped = stopped_s(measured)
    faults = []
    for one in measured["endings"]:
        flow, at_s, status = one["flow"], one["at_s"], one["status"]
        if not one["essential"] or (status == 0 and one["may_end"]):
            continue
        if at_s >= stopped.get(flow, float("inf")) and (status >= 0 or status == -signal.SIGPIPE):
            continue
        if (why := _harm(one, measured)) is not None:
            who = whose(one["side"], one["name"], flow)
            faults.append(f"the {who} {one['how']}, {at_s:.1f} s into the trial{why}")
    return faults


def _harm(one: Ending, measured: Mapping[str, Any]) -> str | None:
    """Returns the criterion that makes an end a death, to precede the manner and the time; None if there is
    none."""
    if one["side"] == "relay":
        return f"; see logs/{one['flow']}-relay-*"
    if one["side"] != "server" or one["status"] != 0:
        return ""
    began_s = measured["first_packets_s"][one["flow"]]
    if began_s is None or began_s > one["at_s"]:
        return ", before its player had come"
    done = any(
        other["flow"] == one["flow"]
        and other["side"] == "player"
        and other["is_main"]
        and other["status"] == 0
        for other in measured["endings"]
    )
    return None if done else ", and its player did not end with status 0"
