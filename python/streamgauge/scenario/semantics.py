"""What no single key can tell: whether a scenario as a whole makes sense, found before anything starts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from streamgauge.errors import MediaError
from streamgauge.scenario.flow import Clip, Command, Flow
from streamgauge.scenario.path.semantics import late_changes, path_problems
from streamgauge.scenario.tcp import tcp_unsupported
from streamgauge.scenario.values import FLOW_NAME, Instant, Problem, nearest
from streamgauge.systems.registry import COMMAND_ACTIONS, Mode
from streamgauge.units import Time

if TYPE_CHECKING:
    from streamgauge.media import Clip as MediaClip
    from streamgauge.scenario.model import Scenario

__all__ = ["Problem", "end_ns", "media_clip", "problems", "recorded_clip", "resolve_times", "unsupported"]

_RESERVED = ("other",)
_IS_A_FILE = re.compile(r"/|\.[A-Za-z]\w*$")
_LONGEST_NS = 24 * 3600 * 10**9


class TimesError(Exception):
    """Relative times that cannot be resolved."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.why)
        self.problem = problem


def problems(scenario: Scenario) -> list[Problem]:
    """Everything wrong with it; empty if it makes sense. Later rules rely on earlier ones, so the first kind
    of problem found is all that is reported."""
    rules = (_names, _references, path_problems, _clips, _times, _windows, _changes, _randomize, _checks)
    for rule in rules:
        found = list(rule(scenario))
        if found:
            return found
    return []


def _names(scenario: Scenario) -> Iterator[Problem]:
    for name in scenario.flows:
        if not FLOW_NAME.fullmatch(name):
            yield Problem(
                ("flows", name),
                f"{name!r} is not a flow's name; expected a letter, then letters, digits or _",
            )
        elif name in _RESERVED:
            yield Problem(
                ("flows", name), f"'{name}' is what the record calls packets of no flow; choose another name"
            )
    if len(scenario.flows) > 60_000:
        yield Problem(
            ("flows",), f"{len(scenario.flows)} flows are more than the 60,000 that a record can number"
        )
    if not scenario.modes:
        yield Problem(("modes",), "names no mode; expected sim, emu or both")


def _unknown_flow(scenario: Scenario, name: str) -> tuple[str, str | None]:
    close = nearest(name, scenario.flows)
    return (
        f"there is no flow '{name}'; the flows are {', '.join(scenario.flows)}",
        f"did you mean '{close}'?" if close else None,
    )


def _instants(scenario: Scenario) -> Iterator[tuple[tuple[str | int, ...], Instant]]:
    for name, flow in scenario.flows.items():
        yield ("flows", name, "start"), flow.start
        if flow.stop is not None:
            yield ("flows", name, "stop"), flow.stop
        for index, event in enumerate(flow.events):
            yield ("flows", name, "events", index, "at"), event.at


def _references(scenario: Scenario) -> Iterator[Problem]:
    for where, instant in _instants(scenario):
        if instant.flow is not None and instant.flow not in scenario.flows:
            yield Problem(where, *_unknown_flow(scenario, instant.flow))
    media_end = scenario.until.media_end
    if media_end is not None:
        if media_end not in scenario.flows:
            yield Problem(("until", "media_end"), *_unknown_flow(scenario, media_end))
        elif scenario.flows[media_end].clip is None:
            yield Problem(("until", "media_end"), f"'{media_end}' plays no clip, so its media never ends")


def media_clip(clip: str | Clip, duration: Time) -> MediaClip:
    """The clip as `streamgauge.media` knows it. Raises MediaError if there is no such content."""
    from streamgauge.media import Clip as MediaClip

    if isinstance(clip, str):
        return MediaClip.named(clip, duration_s=duration.s)
    return MediaClip(
        source=clip.file if clip.file is not None else str(clip.source),
        bit_rate_bps=clip.rate.bps,
        duration_s=(clip.duration or duration).s,
        audio_bps=clip.audio.bps,
        frame_rate=int(clip.frame_rate.amount),
        rate_control=clip.rate_control,
        codec=clip.codec,
    )


def recorded_clip(trial: Mapping[str, Any], flow: str) -> MediaClip | None:
    """The clip that `flow` played in a trial (`trial.json`), as `streamgauge.media` knows it; None if it
    played none."""
    from streamgauge.scenario.model import Scenario

    scenario = Scenario.model_validate(trial["scenario"]).in_mode(trial["mode"])
    clip = scenario.flows[flow].clip if flow in scenario.flows else None
    return None if clip is None else media_clip(clip, Time.of(trial["plan"]["duration"]))


def _clips(scenario: Scenario) -> Iterator[Problem]:
    from streamgauge.media import BUILT_IN

    for name, flow in scenario.flows.items():
        places: list[tuple[tuple[str, ...], str | Clip | None]] = [(("flows", name, "clip"), flow.clip)]
        places += [
            (("flows", name, mode, "clip"), stand_in.clip)
            for mode in ("sim", "emu")
            if (stand_in := getattr(flow, mode)) is not None
        ]
        for where, clip in places:
            if clip is None:
                continue
            if isinstance(clip, Clip) and clip.source is not None and clip.source not in BUILT_IN:
                close = nearest(clip.source, BUILT_IN)
                yield Problem(
                    (*where, "source"),
                    f"there is no content called '{clip.source}'; expected one of {', '.join(BUILT_IN)}",
                    f"did you mean '{close}'?" if close else "name a file of your own with 'file:'",
                )
                continue
            if isinstance(clip, str) and _IS_A_FILE.search(clip):
                yield Problem(
                    where,
                    f"'{clip}' is a file, and a file needs the bit rate that it is encoded at",
                    f"write 'clip: {{file: {clip}, rate: 550 kbit/s}}'",
                )
                continue
            try:
                media_clip(clip, Time("10 s"))
            except MediaError as error:
                stem = clip.rpartition("-") if isinstance(clip, str) else None
                close = nearest(stem[0], BUILT_IN) if stem and stem[0] else None
                yield Problem(
                    where,
                    str(error).rstrip("."),
                    f"did you mean '{close}-{stem[2]}'?" if stem and close else None,
                )


def end_ns(scenario: Scenario) -> int:
    """When a trial ends at the latest, ns."""
    until = scenario.until
    if until.time is not None:
        return until.time.ns
    if until.media_end is not None:
        clip = scenario.flows[until.media_end].clip
        if isinstance(clip, Clip) and clip.duration is not None:
            # As long again and half a minute for a player that stalls.
            return _nominal(scenario)[until.media_end, "start"] + 2 * clip.duration.ns + 30 * 10**9
    return _LONGEST_NS


def _nominal(scenario: Scenario) -> dict[tuple[str, str], int]:
    return resolve_times(scenario, {})


def resolve_times(scenario: Scenario, delays_ns: dict[str, int]) -> dict[tuple[str, str], int]:
    """Every flow's start and stop in ns since the trial's start, by (flow, edge).

    ``delays_ns`` delays flows' starts; what is relative to them moves along. Raises `TimesError`.
    """
    known: dict[tuple[str, str], int] = {}
    pending: list[tuple[str, str]] = []

    def resolve(name: str, edge: str) -> int:
        if (name, edge) in known:
            return known[name, edge]
        if (name, edge) in pending:
            loop = [*pending[pending.index((name, edge)) :], (name, edge)]
            said = " -> ".join(f"{flow}.{what}" for flow, what in loop)
            raise TimesError(Problem(("flows", name, edge), f"the times go in a circle: {said}"))
        flow = scenario.flows[name]
        instant = flow.start if edge == "start" else flow.stop
        if instant is None:
            asker = pending[-1] if pending else (name, edge)
            raise TimesError(Problem(("flows", *asker), f"'{name}' has no 'stop' to be relative to"))
        pending.append((name, edge))
        base = 0 if instant.flow is None else resolve(instant.flow, instant.edge)
        pending.pop()
        at = base + instant.offset_ns + (delays_ns.get(name, 0) if edge == "start" else 0)
        if at < 0:
            raise TimesError(
                Problem(("flows", name, edge), f"{instant} is {-at / 1e9:g} s before the trial's start")
            )
        known[name, edge] = at
        return at

    for name, flow in scenario.flows.items():
        resolve(name, "start")
        if flow.stop is not None:
            resolve(name, "stop")
    return known


def event_ns(at: Instant, times: dict[tuple[str, str], int]) -> int:
    """An event's time in ns, given the flows' resolved times."""
    return at.offset_ns + (0 if at.flow is None else times[at.flow, at.edge])


def _times(scenario: Scenario) -> Iterator[Problem]:
    try:
        times = resolve_times(scenario, {})
    except TimesError as error:
        yield error.problem
        return
    until = scenario.until
    if until.time is None and until.idle is None and until.media_end is not None:
        clip = scenario.flows[until.media_end].clip
        if not (isinstance(clip, Clip) and clip.duration is not None):
            yield Problem(
                ("until", "media_end"),
                f"the clip of '{until.media_end}' has no duration of its own, so its media never ends",
                "add 'time' beside 'media_end', or a 'duration' to the clip",
            )
            return
    end = end_ns(scenario)
    for name, flow in scenario.flows.items():
        start = times[name, "start"]
        where = ("flows", name)
        if start >= end:
            yield Problem(
                (*where, "start"),
                f"'{name}' starts at {start / 1e9:g} s, but the trial ends at {end / 1e9:g} s",
            )
            continue
        stop = times.get((name, "stop"))
        if stop is not None and stop <= start:
            yield Problem(
                (*where, "stop"), f"'{name}' stops at {stop / 1e9:g} s, but it starts at {start / 1e9:g} s"
            )
            continue
        before, paused, stopped = start, False, False
        for index, event in enumerate(flow.events):
            key = (*where, "events", index)
            if event.at.flow is not None and (event.at.flow, event.at.edge) not in times:
                yield Problem((*key, "at"), f"'{event.at.flow}' has no 'stop' to be relative to")
                break
            at = event_ns(event.at, times)
            latest = stop if stop is not None else end
            if at < before:
                after = "its start" if index == 0 else "the event before it"
                yield Problem(
                    (*key, "at"), f"{event.at} ({at / 1e9:g} s) is before {after} ({before / 1e9:g} s)"
                )
            elif at >= latest:
                why = "its stop" if stop is not None else "the trial's end"
                yield Problem(
                    (*key, "at"), f"{event.at} ({at / 1e9:g} s) is not before {why} ({latest / 1e9:g} s)"
                )
            elif stopped:
                yield Problem((*key, "do"), f"'{name}' has already been stopped")
            elif event.do == "resume" and not paused:
                yield Problem((*key, "do"), f"'{name}' is not paused, so it cannot resume")
            elif event.do == "pause" and paused:
                yield Problem((*key, "do"), f"'{name}' is paused already")
            before, paused, stopped = at, event.do == "pause", event.do == "stop"


def _windows(scenario: Scenario) -> Iterator[Problem]:
    end = end_ns(scenario)
    if scenario.measure.window is not None and scenario.measure.window[1].ns > end:
        last = scenario.measure.window[1]
        yield Problem(
            ("measure", "window"), f"the window ends at {last}, but the trial ends at {end / 1e9:g} s"
        )
    elif scenario.measure.sample.ns > end:
        yield Problem(
            ("measure", "sample"), f"a sample of {scenario.measure.sample} is longer than the trial"
        )
    for name, flow in scenario.flows.items():
        for window in (
            flow.parameters.get("windows", ()) if isinstance(flow.parameters.get("windows"), tuple) else ()
        ):
            if window[0].ns >= end:
                yield Problem(
                    ("flows", name, "parameters", "windows"),
                    f"the window [{window[0]}, {window[1]}] begins after the trial's end at {end / 1e9:g} s",
                )


def _changes(scenario: Scenario) -> Iterator[Problem]:
    yield from late_changes(scenario, end_ns(scenario))


def _randomize(scenario: Scenario) -> Iterator[Problem]:
    from streamgauge.scenario.overrides import OverrideError, check_address

    for address, draw in scenario.randomize.items():
        flow, _, edge = address.partition(".")
        if edge == "start":
            if flow not in scenario.flows:
                yield Problem(("randomize", address), *_unknown_flow(scenario, flow))
            elif not isinstance(draw.low, Time):
                yield Problem(("randomize", address), f"a start is delayed by a time, not by '{draw}'")
            continue
        try:
            check_address(scenario, address)
        except OverrideError as error:
            yield Problem(("randomize", address), error.why, error.hint)


def _checks(scenario: Scenario) -> Iterator[Problem]:
    if not scenario.checks and not scenario.assumed:
        return  # what follows loads the metrics, and polars with them
    from streamgauge.checks.expression import parse
    from streamgauge.metrics.names import METRICS
    from streamgauge.scenario.overrides import OverrideError, check_address

    stages = {
        spelt
        for direction in ("down", "up")
        for stage in getattr(scenario.path, direction).chain()
        for spelt in (stage.name, f"{direction}.{stage.name}")
    }
    for name, check in scenario.checks.items():
        for reference in parse(check.that).references():
            if reference.scenario or not reference.subject:
                continue
            of = METRICS[reference.metric].of
            if reference.subject in scenario.flows and "flow" in of:
                continue
            if "stage" in of and reference.subject in stages:
                continue
            why, hint = _unknown_flow(scenario, reference.subject)
            yield Problem(("checks", name, "that"), f"'{reference.metric}.{reference.subject}': {why}", hint)
        for address in check.breaks:
            try:
                check_address(scenario, address)
            except OverrideError as error:
                yield Problem(("checks", name, "breaks", address), error.why, error.hint)
    for address in scenario.assumed:
        try:
            check_address(scenario, address)
        except OverrideError as error:
            yield Problem(("assumed", address), error.why, error.hint)


def unsupported(scenario: Scenario, mode: Mode) -> str | None:
    """Why it cannot run in ``mode`` on any machine; ``None`` if it can."""
    if scenario.population is not None:
        return "populations of clips do not run yet"
    if mode not in scenario.modes:
        return f"the scenario is not meant for {mode}"
    for name, whole in scenario.flows.items():
        if whole.arrivals is not None:
            return f"flows.{name}.arrivals: arrivals of short flows do not run yet"
        if whole.direction != "down":
            return f"flows.{name}.direction: media towards the server does not run yet"
        flow = whole.in_mode(mode)
        entry = flow.registered
        if entry is None:
            assert isinstance(flow.system, Command)
            if mode == "sim":
                return f"flows.{name}: sim cannot run commands; name a stand-in with 'sim: {{system: rtp}}'"
        elif mode not in entry.modes:
            remedy = f"name a stand-in with '{mode}: {{system: rtp}}'"
            return f"flows.{name}: '{entry.name}' does not run in {mode}; {remedy}"
        if (why := tcp_unsupported(flow, mode) or _action_unsupported(flow, mode)) is not None:
            return f"flows.{name}.{why}"
    return None


def _action_unsupported(flow: Flow, mode: Mode) -> str | None:
    """Which of a flow's events cannot be done to it in ``mode``, by the event's address below the flow."""
    entry = flow.registered
    able = COMMAND_ACTIONS if entry is None else entry.actions(mode, flow.parameters)
    for index, event in enumerate(flow.events):
        if event.do not in able:
            who = "a command" if entry is None else f"'{entry.name}' as {entry.modes[mode]}"
            return (
                f"events.{index}.do: {who} cannot {event.do} in {mode}, only {', '.join(able)}; "
                "leave the event out, or run the scenario in another mode"
            )
    return None
