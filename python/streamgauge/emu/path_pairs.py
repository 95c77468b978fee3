"""Who crosses the path. What goes between an end of a flow and a relay beside it does not, and what a relay
at the client's side and the servers exchange is counted as the relay's."""

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

    #: Whose they are by the record: a flow's, or a relay's.
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
    """What packets of a record may be of, by code: the plan's flows, then its relays."""
    return [*plan["flows"], *(plan.get("relays") or ())]


def relay_of(plan: Json, flow: Json) -> Json | None:
    """The relay that a flow of the plan goes through."""
    return next((one for one in plan.get("relays") or () if one["name"] == flow.get("via")), None)


def crosses(plan: Json, flow: Json) -> bool:
    """Whether any packet that crosses the path is that flow's, or relay's, own."""
    if "at" in flow:
        return bool(flow["at"] == "client")
    relay = relay_of(plan, flow)
    return relay is None or relay["at"] == "server"


def codes(plan: Json) -> list[int]:
    """By place of a flow in the plan: the code of whom its packets on the path are counted as."""
    names = {one["name"]: code for code, one in enumerate(counted(plan))}
    return [names[flow["name"] if crosses(plan, flow) else flow["via"]] for flow in plan["flows"]]


def senders(plan: Json, one: Json) -> list[Json]:
    """Those of the plan whose TCP sends down across the path under the name of `one`, a flow or a relay.

    A relay at the client has its flows' servers at the other end, a flow behind one at the server that relay.
    """
    if "at" in one:
        return [flow for flow in plan["flows"] if flow.get("via") == one["name"]]
    relay = relay_of(plan, one)
    return [relay] if relay is not None and relay["at"] == "server" else [one]
