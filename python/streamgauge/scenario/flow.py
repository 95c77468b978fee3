"""Flows: system or traffic, role, clip, start and later actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Annotated, Any, Literal, Protocol

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    ValidationInfo,
    field_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from streamgauge.scenario.commands import Command
from streamgauge.scenario.problems import problems_of
from streamgauge.scenario.tcp import FIXED, tcp_problem
from streamgauge.scenario.values import Instant, Model, Problem, issue, nearest
from streamgauge.systems.parameter import FUNCTION_PATTERN, function_of
from streamgauge.systems.registry import SYSTEMS, TRAFFIC, Mode, Parameter, ParameterValue, System
from streamgauge.systems.tcp import CONGESTION_CONTROLS, bpf_object, kernel_congestion_controls
from streamgauge.units import Frequency, Quantity, Rate, Size, Time, UnitError

__all__ = [
    "Arrivals",
    "Clip",
    "Command",
    "Congestion",
    "Flow",
    "FlowEvent",
    "StandIn",
    "plain",
    "typed_parameters",
]


def _short_rate(value: Any) -> Any:
    """Returns ``235k``, as in a clip's name."""
    if isinstance(value, str):
        from streamgauge.media.ladder import rate_named

        rate = rate_named(value)
        return value if rate is None else Rate.of(rate)
    return value


ShortRate = Annotated[
    Rate, BeforeValidator(_short_rate, json_schema_input_type=Annotated[str, Field(examples=["235k"])])
]


class Clip(Model):
    """Content at a bit rate, or at several: a built-in ``source``, or a ``file`` of the user's own, or the
    ``files`` of a ladder of the user's own, which are taken as they are."""

    source: str | None = None
    """One of the built-in sequences."""
    file: str | None = None
    """A media file; from a scenario file, relative to it."""
    files: tuple[str, ...] | None = None
    """Media files that are a ladder already, one of each rate; paths as of ``file``."""
    rate: Rate | None = None
    """Everything encoded, sound included."""
    ladder: tuple[ShortRate, ...] | None = None
    """Rates of its pictures in place of one ``rate``, the lowest first; sound is a track of its own."""
    segment: Time | None = None
    """The time from key frame to key frame, 2 s if left out; of ``files`` how long segments are at least,
    from key frame to key frame if left out."""
    duration: Time | None = None
    """How long it plays; as long as the trial if left out."""
    audio: Rate = Field(default=Rate.of(0))
    """Sound's share of ``rate``."""
    frame_rate: Frequency = Field(default=Frequency.of(25))
    """Whole frames per second."""
    rate_control: Literal["constant", "variable"] = "constant"
    """Whether ``rate`` is held over each second, or on average over the clip."""
    codec: Literal["h264", "mpeg4"] = "h264"
    """H.264, or MPEG-4 part 2 at a variable rate."""

    @model_validator(mode="after")
    def _sound(self) -> Clip:
        named = [key for key in ("source", "file", "files") if getattr(self, key) is not None]
        if len(named) != 1:
            raise issue("a clip has either a 'source', a 'file' or 'files'", named[-1] if named else "source")
        if self.files is not None:
            self._as_they_are(self.files)
            return self
        if (self.rate is None) == (self.ladder is None):
            raise issue(
                "a clip has either a 'rate' or a 'ladder' of several",
                () if self.rate is None else "ladder",
                "add such as 'rate: 550 kbit/s'" if self.rate is None else None,
            )
        if self.ladder is not None and len(self.ladder) < 2:
            raise issue("a ladder has two rates or more", "ladder", "write 'rate' for one")
        if self.ladder is not None and (self.rate_control, self.codec) != ("constant", "h264"):
            raise issue(
                "a ladder is H.264 at constant rates", "ladder", "leave 'rate_control' and 'codec' out"
            )
        if self.frame_rate.amount < 1 or self.frame_rate.amount != int(self.frame_rate.amount):
            raise issue(f"{self.frame_rate} is not a whole number of frames per second", "frame_rate")
        if self.codec == "mpeg4" and self.rate_control == "constant":
            raise issue(
                "MPEG-4 is encoded at a variable rate only",
                "codec",
                "add 'rate_control: variable', or write 'codec: h264'",
            )
        if self.audio.bps and self.rate_control == "variable":
            raise issue("a variable rate is of video alone", "audio", "leave 'audio' out")
        if self.duration is not None and self.duration.ns == 0:
            raise issue("a clip of 0 s has nothing to play", "duration")
        return self

    def _as_they_are(self, files: tuple[str, ...]) -> None:
        if len(files) < 2:
            what = (
                f"such as 'file: {files[0]}' with a 'rate'"
                if files
                else "such as 'files: [low.mp4, high.mp4]'"
            )
            raise issue("a ladder of files has two or more, one of each rate", "files", f"write {what}")
        for key, field in type(self).model_fields.items():
            if key not in ("files", "segment") and getattr(self, key) != field.default:
                raise issue("files are taken as they are", key, f"leave '{key}' out")
        names = [PurePath(file).name for file in files]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise issue(
                    f"two files are called {name}, and programs get all of them in one folder",
                    ("files", index),
                    "rename one of them" if files.count(files[index]) < 2 else "name each file once",
                )
        if self.segment is not None and self.segment.ns == 0:
            raise issue("a segment of 0 s holds nothing", "segment", "leave it out")

    @property
    def own_files(self) -> tuple[str, ...]:
        """Returns the user's own files that it is made of; none of built-in content."""
        return self.files or (() if self.file is None else (self.file,))

    @property
    def is_ladder(self) -> bool:
        """Returns whether it has several encodings of its pictures."""
        return self.ladder is not None or self.files is not None


ClipValue = Annotated[
    Annotated[str, Tag("~name")] | Annotated[Clip, Tag("~clip")],
    Discriminator(lambda value: "~clip" if isinstance(value, dict | Clip) else "~name"),
]


SystemValue = Annotated[
    Annotated[str, Tag("~name")] | Annotated[Command, Tag("~commands")],
    Discriminator(lambda value: "~commands" if isinstance(value, dict | Command) else "~name"),
]


class FlowEvent(Model):
    """Something done to a running flow."""

    at: Instant
    do: Literal["pause", "resume", "stop"]


class Arrivals(Model):
    """Short flows that arrive at random, each carrying some bytes on a connection of its own."""

    process: Literal["poisson"] = "poisson"
    """Gaps between arrivals are exponential."""
    rate: Frequency
    """Arrivals per second, such as ``2 /s``."""
    size: Size
    """Bytes of each, or their mean."""
    sizes: Literal["constant", "exponential"] = "constant"
    """Distribution of the bytes of each transfer."""

    @model_validator(mode="after")
    def _sound(self) -> Arrivals:
        if self.rate.amount <= 0:
            raise issue(f"at a rate of {self.rate} nothing ever arrives", "rate")
        if self.size.bytes < 1:
            raise issue("transfers of 0 B carry nothing", "size")
        return self


def _known(
    name: Any, table: Mapping[str, System], what: str, other: Mapping[str, System], other_key: str
) -> str:
    if name in table:
        return str(name)
    if name in other:
        raise issue(f"'{name}' is not a {what}", hint=f"write '{other_key}: {name}'")
    close = nearest(str(name), table)
    raise issue(
        f"unknown {what} '{name}'; expected one of {', '.join(table)}",
        hint=f"did you mean '{close}'?" if close else None,
    )


def _system_name(value: Any) -> Any:
    if isinstance(value, dict | Command):
        return value
    return _known(value, SYSTEMS, "system", TRAFFIC, "traffic")


def _traffic_name(value: Any) -> Any:
    return value if value is None else _known(value, TRAFFIC, "traffic", SYSTEMS, "system")


def _congestion_control(value: Any) -> Any:
    if isinstance(value, dict) and list(value) == ["bpf"]:
        value = value["bpf"]
        if bpf_object(value) is None:
            raise issue(f"'{value}' is no object file", ("bpf",), "name a file that ends with .o")
    if value is None or value in CONGESTION_CONTROLS or function_of(value) is not None:
        return value
    if bpf_object(value) is not None:
        return value
    if value in kernel_congestion_controls():
        return value
    close = nearest(str(value), CONGESTION_CONTROLS)
    raise issue(
        f"unknown congestion control '{value}'; expected one of {', '.join(CONGESTION_CONTROLS)}, "
        "FILE.py:NAME, or {bpf: FILE.o}",
        hint=f"did you mean '{close}'?" if close else None,
    )


_BPF = {"type": "object", "properties": {"bpf": {"pattern": r".+\.o$"}}, "required": ["bpf"]}
Congestion = Annotated[
    str,
    BeforeValidator(_congestion_control),
    Field(
        json_schema_extra={
            "anyOf": [{"enum": list(CONGESTION_CONTROLS)}, {"pattern": FUNCTION_PATTERN}, _BPF]
        }
    ),
]


def _ecn_word(value: Any) -> Any:
    if isinstance(value, bool):  # as YAML 1.1 reads `on` and `off`
        return "classic" if value else "off"
    return "classic" if value == "on" else value


EcnWord = Annotated[
    Literal["off", "classic", "l4s"], BeforeValidator(_ecn_word, json_schema_input_type=str | bool)
]
SystemField = Annotated[
    SystemValue,
    BeforeValidator(_system_name, json_schema_input_type=Literal[SYSTEMS.known_names()] | Command),
]
TrafficField = Annotated[
    str, BeforeValidator(_traffic_name), Field(json_schema_extra={"enum": list(TRAFFIC.known_names())})
]


class HasParameters(Protocol):
    """Owner of parameters."""

    @property
    def name(self) -> str:
        """As a scenario names it."""
        ...

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """By their names."""
        ...


def typed_parameters(given: dict[str, Any], system: HasParameters | None) -> dict[str, Any]:
    """Parameters as quantities, or as text for a system given as commands."""
    if system is None:
        for key, value in given.items():
            if not isinstance(value, str):
                raise issue(f"{value!r} is not text", ("parameters", key), f"write '{value}' in quotes")
        return given
    typed: dict[str, Any] = {}
    for key, value in given.items():
        parameter = system.parameters.get(key)
        if parameter is None:
            names = ", ".join(system.parameters)
            close = nearest(key, system.parameters)
            raise issue(
                f"'{system.name}' has no parameter '{key}'; expected one of {names}",
                ("parameters", key),
                f"did you mean '{close}'?" if close else None,
            )
        try:
            typed[key] = parameter.parse(value)
        except UnitError as error:
            given_words = value if isinstance(value, list | tuple) else [value]
            unknown = [str(word) for word in given_words if word not in parameter.words]
            close = nearest(unknown[0], parameter.words) if parameter.words and unknown else None
            raise issue(
                str(error), ("parameters", key), f"did you mean '{close}'?" if close else None
            ) from None
    for name, parameter in system.parameters.items():
        if parameter.required and name not in given:
            raise issue(f"'{system.name}' needs the parameter '{name}' ({parameter.help})", ("parameters",))
    return typed


def plain(value: Any) -> Any:
    """Returns a parameter's value as text, or a list of such."""
    if isinstance(value, Quantity):
        return str(value)
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value


def _one_way(value: Any) -> Any:
    if value == "both":
        raise issue(
            "media that goes both ways are two flows",
            hint="write one flow with 'direction: down' and one with 'direction: up'",
        )
    return value


def _one_encoding(system: str, clip: Clip) -> Exception:
    why = f"'{system}' plays one encoding, not a ladder"
    if clip.files is not None:
        one = f"'file: {clip.files[-1]}' and a 'rate', at which it is encoded,"
        return issue(why, ("clip", "files"), f"write such as {one} in their place")
    assert clip.ladder is not None
    return issue(why, ("clip", "ladder"), f"write such as 'rate: {clip.ladder[-1]}' in its place")


class StandIn(Model):
    """Replacement of a flow in one mode. Missing keys stay as in the flow; of the flow's parameters, it keeps
    those that it has too."""

    system: SystemField | None = None
    traffic: TrafficField | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    clip: ClipValue | None = None
    congestion_control: Congestion | None = None
    ecn: EcnWord | None = None

    @field_serializer("parameters", when_used="json")
    def _parameters_as_text(self, value: dict[str, Any]) -> dict[str, Any]:
        return {key: plain(part) for key, part in value.items()}


_OF_STAND_IN = "parameters of the stand-in"
"""In a validation's context: those of a flow's parameters that a stand-in gave."""


def _at_stand_in(mode: Mode, problem: Problem) -> Problem:
    """Returns a problem that a sound flow has in a mode: at its stand-in, if that may have such a key."""
    known = not problem.path or problem.path[0] in StandIn.model_fields
    return replace(problem, path=(mode, *problem.path)) if known else problem


class Flow(Model):
    """One exchange across the path."""

    role: Literal["subject", "rival"]
    """The question is about a subject; cross traffic competes with it."""
    system: SystemField | None = None
    """A streaming technology by name, or as commands."""
    traffic: TrafficField | None = None
    """Other traffic, by name."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Settings of the system or traffic; ``streamgauge systems`` lists them."""
    clip: ClipValue | None = None
    """Clip that a system plays: SOURCE-RATE such as ``carphone-550k``, or a mapping."""
    congestion_control: Congestion | None = None
    """The sender's TCP congestion control; cubic, Linux's default, if left out."""
    ecn: EcnWord | None = None
    """Whether its TCP asks for ECN (RFC 3168). Off if left out, as Linux's servers and clients are."""
    start: Instant = Field(default_factory=Instant)
    """When it starts."""
    stop: Instant | None = None
    """When it is ended."""
    events: tuple[FlowEvent, ...] = ()
    """Actions on the flow in between."""
    entry: Literal["server", "router"] = Field(default="server", alias="from")
    """Where its packets enter: at the server's end, or at the bottleneck."""
    direction: Annotated[Literal["down", "up"], BeforeValidator(_one_way)] = "down"
    """Direction of the media: up from a camera, or for an upload. The media comes from its server."""
    via: str | None = None
    """Relay on its route."""
    arrivals: Arrivals | None = None
    """Many short transfers in place of one exchange: traffic ``bulk``."""
    sim: StandIn | None = None
    """Replacement in sim."""
    emu: StandIn | None = None
    """Replacement in emu."""

    @model_validator(mode="before")
    @classmethod
    def _typed(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not isinstance(data.get("parameters", {}), dict):
            return data
        system, traffic = data.get("system"), data.get("traffic")
        if (system is None) == (traffic is None):
            why = (
                "has neither 'system' nor 'traffic'" if system is None else "has both 'system' and 'traffic'"
            )
            raise issue(f"the flow {why}; expected one of them", () if system is None else "traffic")
        entry = None
        if isinstance(system, str):
            entry = SYSTEMS.get(system)
        elif isinstance(traffic, str):
            entry = TRAFFIC.get(traffic)
        if entry is None and not isinstance(system, dict | Command):
            return data  # the field's own validator refuses the name
        return {**data, "parameters": typed_parameters(data.get("parameters", {}), entry)}

    @model_validator(mode="after")
    def _sound(self, info: ValidationInfo) -> Flow:
        entry = self.registered
        if entry is not None:
            takes_clip = entry.plays and entry.clips
            if takes_clip and self.clip is None:
                raise issue(
                    f"'{entry.name}' plays a clip, and none is given", (), "add such as 'clip: carphone-550k'"
                )
            if takes_clip and not entry.ladders and isinstance(self.clip, Clip) and self.clip.is_ladder:
                raise _one_encoding(entry.name, self.clip)
            if not takes_clip and self.clip is not None:
                raise issue(f"'{entry.name}' plays no clip", "clip")
            if self.congestion_control is not None and not entry.over_tcp(self.parameters):
                raise issue(
                    f"'{entry.name}' does not run over TCP here, so it has no congestion control to choose",
                    "congestion_control",
                )
            if self.ecn is not None and not entry.over_tcp(self.parameters):
                own = "write it among its parameters" if "ecn" in entry.parameters else None
                raise issue(f"'{entry.name}' does not run over TCP here, so it negotiates no ECN", "ecn", own)
        if self.arrivals is not None:
            self._transfers(entry)
        if self.direction == "up" and self.entry == "router":
            raise issue(
                "what enters at the bottleneck goes down, as its sender is before the clients",
                "direction",
                "leave out 'direction' or 'from'",
            )
        if (problem := tcp_problem(self)) is not None:
            raise issue(problem.why, problem.path, problem.hint)
        blamed = (info.context or {}).get(_OF_STAND_IN, ())
        if entry is not None and (excess := entry.excess(self.parameters, blamed)) is not None:
            raise issue(excess.why, ("parameters", excess.name), excess.hint)
        for mode in ("sim", "emu"):
            try:
                self.in_mode(mode)
            except UnitError as error:
                raise issue(str(error), mode) from None
            except ValidationError as error:
                found = [_at_stand_in(mode, problem) for problem in problems_of(error)]
                raise PydanticCustomError(
                    "issues", "{why}", {"why": "; ".join(p.why for p in found), "issues": found}
                ) from None
        return self

    def _transfers(self, entry: System | None) -> None:
        if entry is None or not entry.arrivals:
            who = "a system given as commands" if entry is None else f"'{entry.name}'"
            able = " or ".join(f"'traffic: {name}'" for name, one in TRAFFIC.items() if one.arrivals)
            raise issue(f"{who} has no transfers that could arrive", "arrivals", f"write {able}")
        if "bytes" in self.parameters:
            raise issue(
                "a flow of arrivals has a size for each of them, and none as a whole",
                ("parameters", "bytes"),
                "leave it out",
            )

    @property
    def registered(self) -> System | None:
        """Returns its entry in the registry; ``None`` for a system given as commands."""
        if self.traffic is not None:
            return TRAFFIC[self.traffic]
        return SYSTEMS[self.system] if isinstance(self.system, str) else None

    def in_mode(self, mode: Mode) -> Flow:
        """Returns the flow as it runs in ``mode``: its stand-in there, or itself."""
        stand_in: StandIn | None = getattr(self, mode)
        if stand_in is None:
            return self
        changes: dict[str, Any] = {"sim": None, "emu": None}
        replaced = stand_in.system is not None or stand_in.traffic is not None
        kept = dict(self.parameters)
        if replaced:
            changes |= {"system": stand_in.system, "traffic": stand_in.traffic}
            name = stand_in.system if stand_in.system is not None else stand_in.traffic
            table = SYSTEMS if stand_in.system is not None else TRAFFIC
            if isinstance(name, str):
                kept = {key: value for key, value in kept.items() if key in table[name].parameters}
                if not (table[name].plays and table[name].clips):
                    changes["clip"] = None
        if (stand_in.congestion_control or FIXED) != FIXED:
            kept.pop("window", None)  # which no other controller has
        changes["parameters"] = {**kept, **self._as_played(changes), **stand_in.parameters}
        if stand_in.clip is not None:
            changes["clip"] = stand_in.clip
        if stand_in.congestion_control is not None:
            changes["congestion_control"] = stand_in.congestion_control
        if stand_in.ecn is not None:
            changes["ecn"] = stand_in.ecn
        return self.changed(context={_OF_STAND_IN: stand_in.parameters.keys()}, **changes)

    def _as_played(self, changes: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns changes by which its stand-in behaves as the programs that it replaces."""
        entry, stand_in = self.registered, changes.get("system")
        if entry is None or not isinstance(stand_in, str) or stand_in not in entry.stood_in_by:
            return {}
        return entry.stood_in_by[stand_in](entry.values(self.parameters))

    def parameter(self, name: str) -> ParameterValue | None:
        """Returns the value of a registered system's parameter, its default filled in."""
        entry = self.registered
        assert entry is not None, "a system given as commands has no table of parameters"
        return entry.value(self.parameters, name)

    @field_serializer("parameters", when_used="json")
    def _parameters_as_text(self, value: dict[str, Any]) -> dict[str, Any]:
        return {key: plain(part) for key, part in value.items()}
