"""Checks of a scenario across its keys, before anything starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamgauge.claims.dimension import plain
from streamgauge.claims.expression import parse
from streamgauge.claims.names import named
from streamgauge.scenario.arrivals import MOST, expected
from streamgauge.scenario.clips import clip_problems
from streamgauge.scenario.flow import Clip, Command, Flow
from streamgauge.scenario.limits import MOST_SAMPLES
from streamgauge.scenario.mutation import kind_of, mutants_of
from streamgauge.scenario.overrides import OverrideError, check_address
from streamgauge.scenario.path.semantics import late_changes, path_problems
from streamgauge.scenario.relay import relay_problems, via_unsupported
from streamgauge.scenario.shape import Shape
from streamgauge.scenario.tcp import tcp_unsupported
from streamgauge.scenario.values import FLOW_NAME, Instant, Problem, nearest
from streamgauge.systems.adapters import ADAPTERS
from streamgauge.systems.registry import Mode
from streamgauge.units import Time

__all__ = ["Problem", "end_ns", "problems", "resolve_times", "unsupported"]

_RESERVED = ("other",)
_LONGEST_NS = 24 * 3600 * 10**9


class TimesError(Exception):
    """Relative times that cannot be resolved."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.why)
        self.problem = problem


def problems(scenario: Shape) -> list[Problem]:
    """Everything wrong with it; empty if it makes sense. Later rules rely on earlier ones, so the first kind
    of problem found is all that is reported."""
    first = (_names, _references, _relays, _path, _clips, _population)
    for rule in (*first, _times, _arrivals, _samples, _windows, _changes, _randomize, _checks):
        found = list(rule(scenario))
        if found:
            return found
    return []


def _names(scenario: Shape) -> Iterator[Problem]:
    for name in scenario.flows:
        if not FLOW_NAME.fullmatch(name):
            yield Problem(
                ("flows", name),
                f"{name!r} is not a flow's name; expected a letter, then letters, digits or _, 100 at most",
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


def _unknown_flow(scenario: Shape, name: str) -> tuple[str, str | None]:
    close = nearest(name, scenario.flows)
    return (
        f"there is no flow '{name}'; the flows are {', '.join(scenario.flows)}",
        f"did you mean '{close}'?" if close else None,
    )


def _instants(scenario: Shape) -> Iterator[tuple[tuple[str | int, ...], Instant]]:
    for name, flow in scenario.flows.items():
        yield ("flows", name, "start"), flow.start
        if flow.stop is not None:
            yield ("flows", name, "stop"), flow.stop
        for index, event in enumerate(flow.events):
            yield ("flows", name, "events", index, "at"), event.at


def _references(scenario: Shape) -> Iterator[Problem]:
    for where, instant in _instants(scenario):
        if instant.flow is not None and instant.flow not in scenario.flows:
            yield Problem(where, *_unknown_flow(scenario, instant.flow))
    media_end = scenario.until.media_end
    if media_end is not None:
        if media_end not in scenario.flows:
            yield Problem(("until", "media_end"), *_unknown_flow(scenario, media_end))
        elif scenario.flows[media_end].clip is None:
            yield Problem(("until", "media_end"), f"'{media_end}' plays no clip, so its media never ends")


def _relays(scenario: Shape) -> Iterator[Problem]:
    for name in scenario.relays:
        if name in _RESERVED:
            yield Problem(
                ("relays", name), f"'{name}' is what the record calls packets of no flow; choose another name"
            )
    yield from relay_problems(scenario.flows, scenario.relays)


def _path(scenario: Shape) -> Iterator[Problem]:
    yield from path_problems(scenario.path, scenario.flows)


def _population(scenario: Shape) -> Iterator[Problem]:
    population = scenario.population
    if population is None:
        return
    playing = [name for name, flow in scenario.flows.items() if flow.clip is not None]
    if population.flow is None and len(playing) != 1:
        said = "more than one flow plays a clip" if playing else "no flow plays a clip that could be drawn"
        yield Problem(("population",), said, f"write such as 'flow: {playing[0]}'" if playing else None)
    for player in population.players or ():
        if player not in playing:
            close = nearest(player, playing)
            yield Problem(
                ("population", "flow"),
                f"no flow '{player}' plays a clip; those that do are {', '.join(playing) or 'none'}",
                f"did you mean '{close}'?" if close else None,
            )
    for key, stage, ways in (("rtt", "delay", ("down", "up")), ("loss", "loss", ("down",))):
        for way in ways if population.sets(key) else ():
            names = [one.name for one in getattr(scenario.path, way).stages or ()]
            if stage in names:
                yield Problem(
                    ("path", way, "stages", names.index(stage), "name"),
                    f"the stage that 'population' adds for '{key}' is called '{stage}'",
                    "give this one another name",
                )
    down, up = scenario.path.down, scenario.path.up
    stated: dict[str, tuple[tuple[str, Any], ...]] = {
        "rtt": (("path.down.delay", down.delay), ("path.up.delay", up.delay)),
        "loss": (("path.down.loss", down.loss),),
    }
    for key, places in stated.items():
        for address, value in places if population.sets(key) else ():
            drawn = f"'population.{key}' draws it"
            said = drawn if population.members is None else "'population.members' have it"
            why = said, "leave one of them out"
            if value is not None:
                yield Problem(tuple(address.split(".")), *why)
            for also in ("randomize", "assumed"):
                if address in getattr(scenario, also):
                    yield Problem((also, address), *why)
    yield from _of_files(scenario)
    yield from _encodings(scenario)
    for where, clip in population.keyed_clips():
        if isinstance(clip, Clip) and clip.is_ladder and not _play_ladders(scenario):
            key = "ladder" if clip.files is None else "files"
            yield Problem((*where, key), "a member plays one encoding, not a ladder", "write its 'rate'")
        yield from clip_problems(where, clip)


def _play_ladders(scenario: Shape) -> bool:
    """Returns whether all that plays a member's clip plays ladders, in every mode."""
    played = [flow.in_mode(mode).registered for flow in _drawn_for(scenario) for mode in scenario.modes]
    return all(entry is not None and entry.ladders for entry in played)


def _of_files(scenario: Shape) -> Iterator[Problem]:
    """Yields draws of a clip that its files do not allow."""
    population = scenario.population
    assert population is not None
    if population.played is not None:
        return  # they are played in place of the files
    for flow in _drawn_for(scenario):
        played = {f"what plays in {mode}": flow.in_mode(mode).clip for mode in scenario.modes}
        for key in ("rate", "duration", "encodings"):
            # The flow's own clip decides the end of a trial, whether it is played or not.
            own = {"the flow's clip": flow.clip} if key == "duration" or flow.clip in played.values() else {}
            files = [
                what
                for what, clip in (own | played).items()
                if isinstance(clip, Clip) and clip.files is not None
            ]
            if files and getattr(population, key) is not None:
                yield Problem(
                    ("population", key),
                    f"{files[0]} is of files, which are taken as they are",
                    "leave it out, or write a 'source' or 'file' for the clip",
                )


def _drawn_for(scenario: Shape) -> list[Flow]:
    """Returns the flow that plays the population's clips; several if the population does not name one."""
    population = scenario.population
    assert population is not None
    return [
        flow for name, flow in scenario.flows.items() if flow.clip is not None and population.is_for(name)
    ]


def _encodings(scenario: Shape) -> Iterator[Problem]:
    """Yields the fault of a population with more encodings than its ladder has, or without a ladder."""
    population = scenario.population
    if population is None or population.encodings is None:
        return
    clips = [flow.in_mode(mode).clip for flow in _drawn_for(scenario) for mode in scenario.modes]
    ladders = [clip.ladder for clip in clips if isinstance(clip, Clip) and clip.ladder is not None]
    if not ladders and not any(isinstance(clip, Clip) and clip.files is not None for clip in clips):
        yield Problem(
            ("population", "encodings"),
            "are drawn from a ladder, and the flow's clip is none",
            "write such as 'ladder: [56k, 150k, 300k]' in place of its 'rate'",
        )
    for ladder in ladders:
        if population.encodings[1] > len(ladder):
            yield Problem(
                ("population", "encodings"),
                f"the most, {population.encodings[1]}, are more than the ladder's {len(ladder)}",
            )


def _clips(scenario: Shape) -> Iterator[Problem]:
    for name, flow in scenario.flows.items():
        places: list[tuple[tuple[str, ...], str | Clip | None]] = [(("flows", name, "clip"), flow.clip)]
        places += [
            (("flows", name, mode, "clip"), stand_in.clip)
            for mode in ("sim", "emu")
            if (stand_in := getattr(flow, mode)) is not None
        ]
        for where, clip in places:
            if clip is not None:
                yield from clip_problems(where, clip)


def end_ns(scenario: Shape) -> int:
    """Returns when a trial ends at the latest, ns."""
    until = scenario.until
    if until.time is not None:
        return until.time.ns
    if until.media_end is not None:
        clip = scenario.flows[until.media_end].clip
        if isinstance(clip, Clip) and clip.duration is not None:
            # As long again and half a minute for a player that stalls.
            return _nominal(scenario)[until.media_end, "start"] + 2 * clip.duration.ns + 30 * 10**9
    return _LONGEST_NS


def _nominal(scenario: Shape) -> dict[tuple[str, str], int]:
    return resolve_times(scenario, {})


def resolve_times(scenario: Shape, delays_ns: dict[str, int]) -> dict[tuple[str, str], int]:
    """Returns every flow's start and stop in ns since the trial's start, by (flow, edge).

    ``delays_ns`` delays flows' starts; times relative to them move along. Raises `TimesError`.
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
                Problem(("flows", name, edge), f"{instant} is {plain(-at / 1e9)} s before the trial's start")
            )
        known[name, edge] = at
        return at

    for name, flow in scenario.flows.items():
        resolve(name, "start")
        if flow.stop is not None:
            resolve(name, "stop")
    return known


def event_ns(at: Instant, times: dict[tuple[str, str], int]) -> int:
    """Returns an event's time in ns, given the flows' resolved times."""
    return at.offset_ns + (0 if at.flow is None else times[at.flow, at.edge])


def _length_is_drawn(scenario: Shape, name: str) -> bool:
    """Returns whether each member of the population has a length of its own for this flow's clip, in either
    mode."""
    population = scenario.population
    return population is not None and population.duration is not None and population.is_for(name)


def _endless(scenario: Shape, name: str) -> Iterator[Problem]:
    """Yields clips of the flow without a stated length: such media never ends."""
    if _length_is_drawn(scenario, name):
        return
    population = scenario.population
    if population is not None and population.played is not None and population.is_for(name):
        # Its members are played, and never its own clip.
        for where, clip in population.keyed_clips():
            if not isinstance(clip, Clip) or clip.duration is None:
                yield Problem(
                    where,
                    f"this clip of '{name}' has no duration of its own, so its media never ends",
                    "add 'time' beside 'media_end', or a 'duration' to the clip or to the population",
                )
        return
    own = scenario.flows[name].clip
    if not isinstance(own, Clip) or own.duration is None:
        of_files = isinstance(own, Clip) and own.files is not None
        yield Problem(
            ("until", "media_end"),
            f"the clip of '{name}' has no duration of its own, so its media never ends",
            "add 'time' beside 'media_end'" + ("" if of_files else ", or a 'duration' to the clip"),
        )


def _times(scenario: Shape) -> Iterator[Problem]:
    try:
        times = resolve_times(scenario, {})
    except TimesError as error:
        yield error.problem
        return
    until = scenario.until
    if until.time is None and until.idle is None and until.media_end is not None:
        found = list(_endless(scenario, until.media_end))
        if found:
            yield from found
            return
    end = end_ns(scenario)
    for name, flow in scenario.flows.items():
        start = times[name, "start"]
        where = ("flows", name)
        if start >= end:
            yield Problem(
                (*where, "start"),
                f"'{name}' starts at {plain(start / 1e9)} s, but the trial ends at {plain(end / 1e9)} s",
            )
            continue
        stop = times.get((name, "stop"))
        if stop is not None and stop <= start:
            yield Problem(
                (*where, "stop"),
                f"'{name}' stops at {plain(stop / 1e9)} s, but it starts at {plain(start / 1e9)} s",
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
                    (*key, "at"),
                    f"{event.at} ({plain(at / 1e9)} s) is before {after} ({plain(before / 1e9)} s)",
                )
            elif at >= latest:
                why = "its stop" if stop is not None else "the trial's end"
                yield Problem(
                    (*key, "at"),
                    f"{event.at} ({plain(at / 1e9)} s) is not before {why} ({plain(latest / 1e9)} s)",
                )
            elif stopped:
                yield Problem((*key, "do"), f"'{name}' has already been stopped")
            elif event.do == "resume" and not paused:
                yield Problem((*key, "do"), f"'{name}' is not paused, so it cannot resume")
            elif event.do == "pause" and paused:
                yield Problem((*key, "do"), f"'{name}' is paused already")
            before, paused, stopped = at, event.do == "pause", event.do == "stop"


def _arrivals(scenario: Shape) -> Iterator[Problem]:
    times, end = _nominal(scenario), end_ns(scenario)
    for name, flow in scenario.flows.items():
        if flow.arrivals is None:
            continue
        wanted = expected(flow.arrivals, times[name, "start"], min(times.get((name, "stop"), end), end))
        if wanted > MOST:
            yield Problem(
                ("flows", name, "arrivals", "rate"),
                f"{flow.arrivals.rate} are {wanted:.0f} transfers until the trial's end or the flow's stop; "
                f"expected {MOST} at most",
                "lower the rate, or give an earlier 'until: {time: ...}' or 'stop'",
            )


def _samples(scenario: Shape) -> Iterator[Problem]:
    """A day in place of an end that only an idle path gives is no bound for samples."""
    end, until, measure = end_ns(scenario), scenario.until, scenario.measure
    if until.time is None and until.media_end is None:
        return
    sampled = {"sample": measure.sample}
    if measure.tcp_sample != "off":
        sampled["tcp_sample"] = measure.tcp_sample
    for key, sample in sampled.items():
        if end // sample.ns > MOST_SAMPLES:
            longest = plain(MOST_SAMPLES * sample.ns / 1e9)
            yield Problem(
                ("until", "time") if until.time is not None else ("measure", key),
                f"{plain(end / 1e9)} s are {end // sample.ns:,} samples of {sample} (measure.{key}); "
                f"expected {MOST_SAMPLES:,} at most",
                f"end after {longest} s at the latest, or give a longer 'measure: {{{key}: ...}}'",
            )


def _windows(scenario: Shape) -> Iterator[Problem]:
    end = end_ns(scenario)
    if scenario.measure.window is not None and scenario.measure.window[1].ns > end:
        last = scenario.measure.window[1]
        yield Problem(
            ("measure", "window"), f"the window ends at {last}, but the trial ends at {plain(end / 1e9)} s"
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
                    f"the window [{window[0]}, {window[1]}] begins after the trial's end at "
                    f"{plain(end / 1e9)} s",
                )


def _changes(scenario: Shape) -> Iterator[Problem]:
    yield from late_changes(scenario.path, end_ns(scenario))


def _randomize(scenario: Shape) -> Iterator[Problem]:
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


def _checks(scenario: Shape) -> Iterator[Problem]:
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
            of = named(reference.metric).of
            if reference.subject in {*scenario.flows, *scenario.relays} and "flow" in of:
                continue
            if "stage" in of and reference.subject in stages:
                continue
            why, hint = _unknown_flow(scenario, reference.subject)
            yield Problem(("checks", name, "that"), f"'{reference.metric}.{reference.subject}': {why}", hint)
        for key, changes in mutants_of(check).items():
            for address in changes:
                try:
                    check_address(scenario, address)
                except OverrideError as error:
                    yield Problem(("checks", name, key, address), error.why, error.hint)
        if check.without and kind_of(scenario, check.without) != "mechanism":
            yield Problem(
                ("checks", name, "without"),
                "changes no parameter, rule or system of a subject",
                "put a change of path, rival or content into breaks",
            )
    for address in scenario.assumed:
        try:
            check_address(scenario, address)
        except OverrideError as error:
            yield Problem(("assumed", address), error.why, error.hint)


def unsupported(scenario: Shape, mode: Mode) -> str | None:
    """Returns why it cannot run in ``mode`` on any machine; ``None`` if it can."""
    if mode not in scenario.modes:
        return f"the scenario is not meant for {mode}"
    for name, whole in scenario.flows.items():
        flow = whole.in_mode(mode)
        entry = flow.registered
        if (why := _not_drawn(scenario, name, flow, mode)) is not None:
            return why
        if entry is None:
            assert isinstance(flow.system, Command)
            if mode == "sim":
                return f"flows.{name}: sim cannot run commands; name a stand-in with 'sim: {{system: rtp}}'"
        elif mode not in entry.modes:
            remedy = f"name a stand-in with '{mode}: {{system: rtp}}'"
            return f"flows.{name}: '{entry.name}' does not run in {mode}; {remedy}"
        why = tcp_unsupported(flow, mode) or _action_unsupported(flow, mode)
        if (why := why or via_unsupported(flow, scenario.relays, mode)) is not None:
            return f"flows.{name}.{why}"
    for name, relay in scenario.relays.items():
        if (why := tcp_unsupported(relay, mode, has_stand_ins=False)) is not None:
            return f"relays.{name}.{why}"
    return None


def _not_drawn(scenario: Shape, name: str, flow: Flow, mode: Mode) -> str | None:
    """Returns why a population's encodings, or its rates, cannot be drawn for the flow in `mode`."""
    population = scenario.population
    if population is None or not population.is_for(name) or flow.clip is None:
        return None
    has_several = isinstance(flow.clip, Clip) and flow.clip.is_ladder
    if population.encodings is not None and not has_several:
        return (
            f"population.encodings: what plays '{name}' in {mode} has one encoding and none to draw from; "
            f"leave it out, or run a system in {mode} that plays a ladder"
        )
    if population.rate is not None and population.played is None and has_several:
        return (
            f"population.rate: what plays '{name}' in {mode} has a ladder, whose rates are its own; draw "
            "'encodings' in its place"
        )
    return None


def _action_unsupported(flow: Flow, mode: Mode) -> str | None:
    """Returns which of a flow's events cannot be done to it in ``mode``, by the event's address below the
    flow."""
    entry = flow.registered
    able = (
        ADAPTERS["command"].actions({})
        if entry is None
        else entry.actions(mode, flow.parameters, arrivals=flow.arrivals is not None)
    )
    for index, event in enumerate(flow.events):
        if event.do not in able:
            who = "a command" if entry is None else f"'{entry.name}' as {entry.modes[mode]}"
            return (
                f"events.{index}.do: {who} cannot {event.do} in {mode}, only {', '.join(able)}; "
                "leave the event out, or run the scenario in another mode"
            )
    return None
