"""Our own systems, as their machines describe themselves (crates/systems).

The machines' own settings define the parameters, their kinds, defaults, bounds and words, and their places in
a plan: no table here can differ.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache, reduce
from typing import Any, Literal

from streamgauge import _native
from streamgauge.systems.actions import pauses, stopped_at
from streamgauge.systems.parameter import (
    NONE,
    Kind,
    Maybe,
    Number,
    Parameter,
    ParameterValue,
    Quantiles,
    Several,
    Windows,
    WordsOrFunction,
)
from streamgauge.units import Frequency, Packets, Percent, Quantity, Rate, Size, Time

__all__ = [
    "MACHINES",
    "PACED_CLIP",
    "RELAYS",
    "Facts",
    "Hosted",
    "Machine",
    "Pace",
    "Player",
    "Presets",
    "Server",
    "begins_ns",
    "facts",
    "lacking_library",
    "origin",
    "relay_protocols",
]

Json = dict[str, Any]
MediaOver = Literal["tcp", "udp", "icmp"]
_SWITCH = ("on", "off")
_KINDS: dict[str, Kind] = {
    "switch": _SWITCH,
    "count": Number(whole=True),
    "number": Number(),
    "size": Size,
    "rate": Rate,
    "percent": Percent,
    "time": Time,
    "packets": Packets,
    "frequency": Frequency,
    "windows": Windows,
    "quantiles": Quantiles,
}
_SMALL_BYTES = 10_000
"""Sizes of packets and segments are written in bytes."""


@dataclass(frozen=True, kw_only=True)
class Presets:
    """Sets of settings; a flow chooses one by the parameter `name`, and the first is the default."""

    name: str
    #: Owner of the settings.
    at: str
    sets: Mapping[str, Json]


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server outside trials (``streamgauge serve``)."""

    #: That of its URLs.
    scheme: str
    #: Names of sets of settings; the first is the usual one.
    presets: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Player:
    """A player outside trials (``streamgauge play``)."""

    #: That of the URLs that it plays.
    scheme: str
    #: Players, and carriers of the media; the first is the usual one.
    players: tuple[str, ...]
    transports: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Hosted:
    """A library of others that a system runs unmodified, in both modes."""

    library: str
    version: str
    #: This build has it.
    is_built: bool
    #: The command that builds it.
    build: str


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A parameter that is no less, or no more, than another one, where both have a value."""

    #: The parameter, and the keys that lead to its value in the settings.
    of: str
    keys: tuple[str, ...]
    #: The other one.
    by: str
    by_keys: tuple[str, ...]
    #: The other is the least, not the most.
    is_least: bool


@dataclass(frozen=True, kw_only=True)
class Excess:
    """A parameter that is beyond another one."""

    #: The one of the two that a scenario gives.
    name: str
    #: The fault in words, and a remedy.
    why: str
    hint: str


def is_on_tcp(transport: ParameterValue | None) -> bool:
    """Returns whether this transport rides on TCP, or may: all except those that end in ``udp``."""
    return not str(transport).endswith("udp")


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A system of ours."""

    name: str
    title: str
    #: Raised when it would behave differently with the same settings.
    version: int
    #: Kind of media.
    content: Literal["none", "clip", "ladder", "live"]
    #: The library that it is, if others wrote it.
    hosted: Hosted | None
    #: It plays pictures that are shown in another order than sent.
    b_frames: bool
    #: Default carrier of its media.
    media_over: MediaOver
    #: Default protocols of its channels, by carrier.
    protocols: Mapping[str, tuple[str, ...]]
    presets: tuple[Presets, ...]
    parameters: dict[str, Parameter]
    #: Place of each parameter's value in the settings, by the keys of the route to it.
    places: Mapping[str, tuple[tuple[str, ...], ...]]
    #: Settings of a flow with defaults alone, but for its clip.
    usual: Json
    #: Parts that are left out, or present, by the parameter that asks for them with its last word.
    parts: Mapping[str, tuple[str, Json]]
    #: Parameters that bound each other.
    limits: tuple[Limit, ...]
    #: The events that it has: by name, the unit of each one's value.
    events: Mapping[str, str]
    #: Whether a flow of it may be many short transfers (`settings` have them under ``arrivals``).
    arrivals: bool
    #: Its server outside trials.
    server: Server | None
    player: Player | None

    def settings(self, given: Mapping[str, ParameterValue]) -> Json:
        """Returns the settings in full as in a plan, but for the clip: those of the presets that `given`
        chooses, with the values of `given` in their places."""
        whole: Json = _copied(self.usual)
        for presets in self.presets:
            whole[presets.at] |= presets.sets[str(given.get(presets.name, next(iter(presets.sets))))]
        for name, (key, part) in self.parts.items():
            if (chosen := given.get(name)) is not None:
                whole[key] = _copied(part) if chosen == self.parameters[name].words[-1] else None
        for name, value in given.items():
            if name not in self.parts and name in self.places:
                planned = _in_plan(value, self.parameters[name].kind)
                for keys in self.places[name]:
                    _put(whole, keys, planned)
        return whole

    def over_tcp(self, given: Mapping[str, ParameterValue]) -> bool:
        """Returns whether its media rides on TCP with the values of `given`, or may."""
        transport = self.parameters.get("transport")
        if transport is None:
            return self.media_over == "tcp"
        return is_on_tcp(given.get("transport", transport.default))

    def value(self, given: Mapping[str, ParameterValue], name: str) -> ParameterValue | None:
        """Returns the value of a parameter, its default filled in."""
        if name in given:
            return given[name]
        default = self.parameters[name].default
        return None if default is None else self.parameters[name].parse(default)

    def excess(self, given: Mapping[str, ParameterValue], blamed: Collection[str] = ()) -> Excess | None:
        """Returns the first of the parameters in `given` that is beyond another one, given or of the presets
        that `given` chooses; None if all is well. Where both are given, one of `blamed` is named."""
        choosers = {presets.name for presets in self.presets}
        if not given.keys() & ({name for one in self.limits for name in (one.of, one.by)} | choosers):
            return None
        whole = self.settings(given)
        for limit in self.limits:
            value, bound = (_found(whole, keys) for keys in (limit.keys, limit.by_keys))
            if value is None or bound is None or (value >= bound if limit.is_least else value <= bound):
                continue
            kind = self.parameters[limit.of].kind
            kind = kind.kind if isinstance(kind, Maybe) else kind
            of, by = (_in_words(one, kind) for one in (value, bound))
            what, other = ("less", "more") if limit.is_least else ("more", "less")
            if limit.of in given and (limit.of in blamed or limit.by not in blamed):
                why = f"{of} is {what} than {limit.by}, which is {by}"
                return Excess(name=limit.of, why=why, hint=f"give {by} or {other}, or change {limit.by}")
            why = f"{by} is {other} than {limit.of}, which is {of}"
            name = limit.by if limit.by in given else next(iter(choosers & given.keys()), limit.of)
            return Excess(name=name, why=why, hint=f"give {of} or {what}, or change {limit.of}")
        return None


def _found(settings: Json, keys: tuple[str, ...]) -> Any:
    """Returns a value; None where the part that it belongs to is left out."""
    return reduce(lambda part, key: None if part is None else part[key], keys, settings)


def _put(settings: Json, keys: tuple[str, ...], value: Any) -> None:
    """Sets a value; nothing where the part that it belongs to is left out."""
    inner = reduce(lambda part, key: None if part is None else part[key], keys[:-1], settings)
    if inner is not None:
        inner[keys[-1]] = value


def _in_plan(value: ParameterValue, kind: Kind | Maybe) -> Any:
    """Returns a scenario's value, of a parameter of that kind, as the plan has it."""
    if isinstance(kind, Maybe):
        return None if value == NONE else _in_plan(value, kind.kind)
    match value:
        case Frequency():
            return float(value.amount)
        case Quantity():
            return int(value.amount)
        case str() if kind == _SWITCH:
            return value == "on"
        case tuple():
            return [_part_in_plan(part) for part in value]
    return value


def _part_in_plan(part: str | Time | tuple[Time, Time]) -> Any:
    if isinstance(part, str):
        return part
    return part.ns if isinstance(part, Time) else [time.ns for time in part]


def _kind(told: Any) -> Kind:
    if isinstance(told, Mapping):
        ((name, words),) = told.items()
        if name == "words_or_function":
            return WordsOrFunction(tuple(words))
        return Several(tuple(words)) if name == "several" else tuple(words)
    return _KINDS[told]


def _in_words(value: Any, kind: Kind) -> str | None:
    """Returns a value of the plan as a scenario writes it; None for none."""
    if value is None or value == []:
        return None
    if kind == _SWITCH:
        return "on" if value else "off"
    if kind is Quantiles:
        times = [str(Time.of(one)) for one in value]
        return times[0] if len(times) == 1 else f"[{', '.join(times)}]"
    if kind is Packets:
        return f"{value:g} packet{'' if value == 1 else 's'}"
    if kind is Frequency:
        return f"{Decimal(str(value)).normalize():f} packets/s"
    if kind is Size and value < _SMALL_BYTES:
        return f"{value:g} B"
    if isinstance(kind, Number):
        return f"{value:g}"
    return str(kind.of(value)) if isinstance(kind, type) and issubclass(kind, Quantity) else str(value)


def _bound(value: float | None, kind: Kind) -> str | None:
    whole = isinstance(kind, type) and issubclass(kind, Quantity) and kind is not Frequency
    return _in_words(int(value) if value is not None and whole else value, kind)


def _at(settings: Any, keys: tuple[str, ...]) -> Any:
    return reduce(lambda part, key: part[key], keys, settings)


def _machine(told: Json) -> Machine:
    presets = tuple(
        Presets(name=one["name"], at=one["at"], sets=dict(one["sets"])) for one in told["presets"]
    )
    chosen = [
        Parameter(
            name=one["name"],
            kind=tuple(name for name, _ in one["sets"]),
            default=one["sets"][0][0],
            help=one["help"].rstrip("."),
        )
        for one in told["presets"]
    ]
    whole = told["usual"] | told["parts"]
    parameters = {parameter.name: parameter for parameter in chosen}
    places: dict[str, tuple[tuple[str, ...], ...]] = {}
    parts: dict[str, tuple[str, Json]] = {}
    names = {tuple(field["at"]): field["name"] for field in told["parameters"]}
    limits: list[Limit] = []
    for field in told["parameters"]:
        name, keys = field["name"], tuple(field["at"])
        made = _parameter(field, keys, whole, told["parts"], presets, names)
        if isinstance(field["kind"], Mapping) and "presence" in field["kind"]:
            (part,) = keys
            parts[name] = (part, whole[part])
        if (other := parameters.get(name)) is not None:
            # One name for both ends sets both.
            usual = f"{other.usual}; {made.group}: {made.usual}"
            sources = dict.fromkeys(source for source in (other.source, made.source) if source)
            made = replace(other, help=f"{other.help}. {made.help}", usual=usual, source="; ".join(sources))
        for is_least in (True, False):
            for key in field["not_below" if is_least else "not_above"]:
                at = (*keys[:-1], key)
                limits.append(Limit(of=name, keys=keys, by=names[at], by_keys=at, is_least=is_least))
        parameters[name] = made
        places[name] = (*places.get(name, ()), keys)
    return Machine(
        name=told["name"],
        title=told["title"],
        version=told["version"],
        content=told["content"],
        hosted=Hosted(**hosted) if (hosted := told.get("hosted")) else None,
        b_frames=told["b_frames"],
        media_over=told["media_over"],
        protocols={carrier: tuple(named) for carrier, named in told["protocols"].items()},
        presets=presets,
        parameters=parameters,
        places=places,
        usual=told["usual"],
        parts=parts,
        limits=tuple(limits),
        events={event["name"]: event["unit"] for event in told["events"]},
        arrivals=told["arrivals"],
        server=None if (server := told["server"]) is None else _server(server),
        player=None if (player := told["player"]) is None else _player(player),
    )


def _server(told: Json) -> Server:
    return Server(scheme=told["scheme"], presets=tuple(told["presets"]))


def _player(told: Json) -> Player:
    players, transports = tuple(told["players"]), tuple(told["transports"])
    return Player(scheme=told["scheme"], players=players, transports=transports)


def _parameter(
    field: Json,
    keys: tuple[str, ...],
    whole: Json,
    parts: Json,
    presets: tuple[Presets, ...],
    names: Mapping[tuple[str, ...], str],
) -> Parameter:
    kind = _kind(field["kind"])
    owner = next((one for one in presets if keys[0] == one.at and keys[1] in _first(one)), None)
    usual, default = None, None
    if owner is not None:
        values = {name: _in_words(one[keys[1]], kind) or NONE for name, one in owner.sets.items()}
        alike = len(set(values.values())) == 1
        usual = "; ".join(f"{name}: {value}" for name, value in values.items())
        usual = next(iter(values.values())) if alike else usual
    elif isinstance(field["kind"], Mapping) and "presence" in field["kind"]:
        # The usual settings leave out a part that `parts` lists, and have any other.
        without, with_it = field["kind"]["presence"]
        default = without if keys[0] in parts else with_it
    elif not field["required"]:
        default = _in_words(_at(whole, keys), kind)
    return Parameter(
        name=field["name"],
        # Elsewhere a key without a value is left out; a preset may have one, which must be removed.
        kind=Maybe(kind) if field["optional"] and owner is not None else kind,
        default=default,
        help=field["help"].rstrip("."),
        source=field["source"],
        required=field["required"],
        least=_bound(field["least"], kind),
        most=_bound(field["most"], kind),
        above=_bound(field["above"], kind),
        not_below=tuple(names[(*keys[:-1], key)] for key in field["not_below"]),
        not_above=tuple(names[(*keys[:-1], key)] for key in field["not_above"]),
        whole=kind is Percent,
        group="" if owner is None else owner.at,
        usual=usual,
    )


def _first(presets: Presets) -> Json:
    return next(iter(presets.sets.values()))


PACED_CLIP = "rtp"
"""Machine that sends a clip at its own rate: the reference for a third-party player of it."""

#: Our own systems by name.
MACHINES: dict[str, Machine] = {told["name"]: _machine(told) for told in json.loads(_native.systems())}


def origin(system: str, *, ours: bool) -> Literal["ours", "hosted", "third-party"]:
    """Returns the origin of the code of a flow of that system; `ours` if both ends were machines of ours."""
    machine = MACHINES.get(system)
    if not ours:
        return "third-party"
    return "ours" if machine is None or machine.hosted is None else "hosted"


def lacking_library(system: str) -> str | None:
    """Returns why this build has no machine of that system, with the remedy; None if it has, or the system
    has none."""
    machine = MACHINES.get(system)
    if machine is None or machine.hosted is None or machine.hosted.is_built:
        return None
    library = f"{machine.hosted.library} {machine.hosted.version}"
    return f"system {system} is {library}, which this build lacks; run `{machine.hosted.build}`"


def _relay(told: Json) -> Machine:
    plays = {"content": "none", "b_frames": True, "media_over": "tcp", "presets": [], "parts": {}}
    lacks = {"arrivals": False, "server": None, "player": None, "hosted": None}
    return _machine(told | plays | lacks)


#: Machines of ours that several flows can share at one side of the path, by name.
RELAYS: dict[str, Machine] = {told["name"]: _relay(told) for told in json.loads(_native.relays())}


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Packets at a constant rate, whatever becomes of them."""

    #: Datagrams per second.
    packets_per_s: float
    #: Datagrams at each tick, back to back.
    burst: int
    #: Packets of a datagram: the host fragments datagrams that Ethernet does not carry whole.
    fragments: int


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Facts about a flow that one of our systems runs, by its plan."""

    #: Carrier of its media.
    media_over: MediaOver
    #: Its protocols, by ``tcp`` and ``udp``.
    protocols: Mapping[str, tuple[str, ...]]
    #: The rate at which it sends by itself, of IP packets and of Ethernet frames without their check
    #: sequence; None if it takes any.
    wanted_ip_bps: float | None
    wanted_ethernet_bps: float | None
    #: When it sends at all, ns of trial time, each [on, off); empty for always.
    windows: tuple[tuple[int, int], ...]
    #: Whether it ends by itself, after it sent all of its data.
    is_finite: bool
    #: When it sends for the first time if that is after its start, ns of trial time.
    begins: int
    #: The clock of its sender; None where the sender reacts to the fate of its packets.
    pace: Pace | None


def _copied(settings: Any) -> Any:
    """Returns a copy of JSON, to be written to, in a third of the time that a deep copy of any object
    takes."""
    if isinstance(settings, dict):
        return {key: _copied(value) for key, value in settings.items()}
    return [_copied(value) for value in settings] if isinstance(settings, list) else settings


def facts(app: Any) -> Facts | None:
    """Returns the facts about a flow with this `app` in its plan; None for a third-party system. The plan may
    be of an older version."""
    return _facts(json.dumps(app))


@lru_cache(maxsize=256)
def _facts(app: str) -> Facts | None:
    told = json.loads(_native.facts(app))
    if told is None:
        return None
    pace = None if told["pace"] is None else Pace(**told["pace"])
    protocols = {over: tuple(spoken) for over, spoken in told["protocols"].items()}
    windows = tuple((on, off) for on, off in told["windows"])
    return Facts(**{**told, "protocols": protocols, "windows": windows, "pace": pace})


def relay_protocols(app: Any) -> Mapping[str, tuple[str, ...]]:
    """Returns the protocols of a relay with this `app` in its plan, by ``tcp`` and ``udp``."""
    told = json.loads(_native.relay_protocols(json.dumps(app)))
    return {over: tuple(spoken) for over, spoken in told.items()}


def begins_ns(flow: Json) -> int:
    """Returns the time at which a flow, by its entry in the plan, sends first, ns of trial time, if that is
    after its start; 0 for a third-party system.

    Transfers that are due in a pause, or after a stop, are left out: a flow without others begins after every
    trial's end.
    """
    app = flow["app"]
    if isinstance(app, Mapping):
        app = {kind: _but_left_out(settings, flow) for kind, settings in app.items()}
    told = facts(app)
    return 0 if told is None else told.begins


def _but_left_out(settings: Json, flow: Json) -> Json:
    if not settings.get("arrivals"):
        return settings
    end = stopped_at(flow, settings["arrivals"][-1]["at"] + 1)
    held = pauses(flow, end)
    kept = [
        one
        for one in settings["arrivals"]
        if one["at"] < end and not any(since <= one["at"] < until for since, until in held)
    ]
    return {**settings, "arrivals": kept}
