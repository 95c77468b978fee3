"""The pairs with packets that cross the path. Packets between an end of a flow and a relay beside it do not
cross it. Packets between the servers and a relay at the client's side count as the relay's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from streamgauge import _native

Json = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class PathPair:
    """Two addresses between which packets cross the path."""

    #: Their owners in the record: a flow, or a relay.
    name: str
    server_ip: str
    player_ip: str

    def as_data(self) -> dict[str, str]:
        """As the engine takes it."""
        return asdict(self)


def path_pairs(plan: Json) -> list[PathPair]:
    """Those of a plan, one for each of its flows, in their order."""
    names = [one["name"] for one in counted(plan)]
    return [
        PathPair(name=names[code], server_ip=server, player_ip=player)
        for code, server, player in _native.path_pairs(json.dumps(plan))
    ]


def counted(plan: Json) -> list[Json]:
    """Returns the possible owners of a record's packets, by code: the plan's flows, then its relays."""
    return [*plan["flows"], *(plan.get("relays") or ())]


def relay_of(plan: Json, flow: Json) -> Json | None:
    """Returns the relay of a flow of the plan."""
    return next((one for one in plan.get("relays") or () if one["name"] == flow.get("via")), None)


def crosses(plan: Json, flow: Json) -> bool:
    """Whether any packet that crosses the path is that flow's, or relay's, own."""
    if "at" in flow:
        return bool(flow["at"] == "client")
    relay = relay_of(plan, flow)
    return relay is None or relay["at"] == "server"


def codes(plan: Json) -> list[int]:
    """Returns by place of a flow in the plan the code that its packets on the path count for."""
    names = {one["name"]: code for code, one in enumerate(counted(plan))}
    return [names[flow["name"] if crosses(plan, flow) else flow["via"]] for flow in plan["flows"]]


def senders(plan: Json, one: Json) -> list[Json]:
    """Returns those of the plan with TCP that sends down across the path under the name of `one`, a flow or a
    relay.

    A relay at the client has its flows' servers at the other end, a flow behind one at the server that relay.
    """
    if "at" in one:
        return [flow for flow in plan["flows"] if flow.get("via") == one["name"]]
    relay = relay_of(plan, one)
    return [relay] if relay is not None and relay["at"] == "server" else [one]
