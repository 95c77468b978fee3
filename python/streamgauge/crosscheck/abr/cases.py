"""The cases: a session of one player on a link, drawn by a seed, as ordinary scenarios.

A subject is a player that ships with one of its rules. Every subject meets every length of segments in
`SEGMENTS_S`, each length on two kinds of link, and over its lengths all of `KINDS` (`kinds_of`). The ladder,
the buffer, the position where play begins and the link are drawn. A case's conditions depend on `DRAW`, its
id and the name of the drawn value alone: another case, or one more drawn value, changes no other.

============  ============================================================================================
kind          the bottleneck's rate
============  ============================================================================================
``constant``  1.03 to 1.25 times a level's rate, so that a rule's share of it shows
``steps``     four rates, 7 to 11 s apart
``square``    1 to 1.6 times the highest level, then 1.3 to 2.5 times the lowest; 16 to 24 s a period; for
              BOLA by `FALL`
``trace``     a shipped trace from a second that is drawn, scaled to a mean that is drawn
============  ============================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, Literal, TypeVar

import numpy as np

from streamgauge.crosscheck.cases import MARK
from streamgauge.media import prepare_ladder
from streamgauge.media.ladder import short_name
from streamgauge.scenario import Scenario
from streamgauge.scenario.clips import media_ladder
from streamgauge.scenario.draws import draw
from streamgauge.scenario.flow import Clip
from streamgauge.scenario.overrides import override
from streamgauge.scenario.path import TraceFile, shipped_traces
from streamgauge.scenario.path.capacity import bits_until
from streamgauge.systems.registry import ADAPTIVE, ADAPTIVE_ELSEWHERE

__all__ = ["KINDS", "SUBJECTS", "AbrCase", "AbrKind", "ComparedPlayer", "cases", "kinds_of", "with_files"]

AbrKind = Literal["constant", "steps", "square", "trace"]
Json = dict[str, Any]
_Value = TypeVar("_Value")

KINDS: Final[tuple[AbrKind, ...]] = ("constant", "steps", "square", "trace")
DRAW: Final = 20261135
"""The seed of the conditions: one with which each player meets each ladder, buffer and position."""
FLOW: Final = "video"
QUICK_S: Final = 20.0
MEDIA_S: Final = 108
"""A whole number of segments of each length, and more than a session from any position and its buffer."""
PHASE: Final = "100 ms"
"""Sessions begin within so much of each other: no threshold of a rule is met in every trial alike."""
LADDERS: Final[tuple[tuple[str, tuple[int, ...]], ...]] = (
    ("bigbuckbunny", (235, 560, 1050, 1750, 3000)),
    ("carphone", (100, 250, 500, 800, 1500)),
    ("bikes", (300, 700, 1500, 3000)),
)
"""The content: a source, and its levels in kbit/s."""
SEGMENTS_S: Final = (2, 4, 6)
POSITIONS_S: Final = (0, 10, 21)
"""Where in the media play begins: at its start, and where few segments begin, or none."""
_LINKS: Final[tuple[tuple[AbrKind, AbrKind], ...]] = (("constant", "square"), ("steps", "trace"))
TRIALS: Final = 8
"""Valid real ones of each case."""
SIMULATED: Final = 48
"""They cost little, and sessions of one case take several courses."""


@dataclass(frozen=True)
class SquareRange:
    """The ranges of a square wave: shares of the ladder's level of that index, and seconds."""

    first: tuple[float, float, int] = (1, 1.6, -1)
    second: tuple[float, float, int] = (1.3, 2.5, 0)
    period_s: tuple[float, float] = (16, 24)


FALL: Final = SquareRange((2.3, 2.8, -1), (0.8, 0.92, -1), (30, 40))
"""It fills the buffer at the highest level, then bears less than that. Here alone BOLA, which stays while the
buffer is full, and the throughput rule, which falls at once, surely differ: BOLA begins as that rule
and may rise no higher, and abandonment decides the effect of a rate near the lowest level."""


@dataclass(frozen=True)
class ComparedPlayer:
    """A real player, and its model in sim."""

    name: str
    rule: str
    """Its rule in the program's settings, ``default`` for its own."""
    simulated: str
    """The rule of system `dash`."""
    told: Mapping[str, str] = field(default_factory=dict)
    """Further settings of both: none, as its authors set it."""
    buffers_s: tuple[int, ...] = (10, 14, 18)
    """How much it may hold, one of them: small, so that a buffer is full, and requests pause."""
    square: SquareRange = SquareRange()
    length_s: float = 36
    """The length of a session."""
    tells_shown: bool = True
    """The program reports which level it shows, besides the one that it chooses."""
    told_real: Mapping[str, str] = field(default_factory=dict)
    """Further settings of the program alone."""


ALONE: Final = {"fast_switch": "off"}
"""Nothing that is held is fetched again, in both modes, so that the rule alone is compared."""
SUBJECTS: Final[Mapping[str, ComparedPlayer]] = {
    "dashjs": ComparedPlayer("dashjs", "default", "dashjs-dynamic"),
    "dashjs-throughput": ComparedPlayer("dashjs", "throughput", "dashjs-throughput", ALONE),
    # It reckons with 18 s at least: with less it decides as the throughput rule does.
    "dashjs-bola": ComparedPlayer("dashjs", "bola", "dashjs-bola", ALONE, (24, 30), square=FALL, length_s=48),
    "hlsjs": ComparedPlayer("hlsjs", "default", "hlsjs"),
    # A busy machine drops pictures, for which it would leave out a level: that is no property of the path.
    "shaka": ComparedPlayer(
        "shaka", "default", "shaka", told_real={"dropped_frames": "off"}, tells_shown=False
    ),
}


@dataclass(frozen=True)
class AbrCase:
    """One comparison: a session that runs in both modes, and how often."""

    id: str
    """``dashjs-bola/4s-square``: who, how long segments are, and how the link's rate changes."""
    kind: AbrKind
    scenario: Scenario
    emu: int
    """Valid real trials asked for."""
    sim: int
    """Simulated trials."""
    levels_bps: tuple[int, ...]
    """The ladder, ascending."""
    segment_s: int
    buffer_s: int
    begin_s: int
    """Where in the media play begins."""
    conditions: Mapping[str, str]
    """The draws, in words: ``rate``, ``rtt``, ``queue``, ``ladder``, ``segment``, ``buffer``, ``begin``
    (where in the media play begins)."""
    quick: bool
    is_mix: bool = False

    @property
    def subject(self) -> str:
        """A player with its rule."""
        return self.id.partition("/")[0]


def cases(*, quick: bool = False) -> list[AbrCase]:
    """Every case. `quick`: 20 s and fewer runs; for looking, never for docs."""
    return [
        _case(subject, segment_s, kind, quick)
        for subject in SUBJECTS
        for segment_s in SEGMENTS_S
        for kind in kinds_of(subject, segment_s)
    ]


def kinds_of(subject: str, segment_s: int) -> tuple[AbrKind, AbrKind]:
    """The links on which a subject plays segments of that length: the two pairs by turns."""
    turn = list(SUBJECTS).index(subject) + SEGMENTS_S.index(segment_s)
    return _LINKS[turn % len(_LINKS)]


def _case(subject: str, segment: int, kind: AbrKind, quick: bool) -> AbrCase:
    name = f"{subject}/{segment}s-{kind}"
    player = SUBJECTS[subject]
    length = QUICK_S if quick else player.length_s
    drawn = _Draws(name, player.square, length)
    source, levels = drawn.one_of("ladder", LADDERS)
    buffer, begin = drawn.one_of("buffer", player.buffers_s), drawn.one_of("begin", POSITIONS_S)
    rate, words, mean_kbps = _RATES[kind](drawn, levels)
    one_way_ms = round(drawn.between("rtt", 20, 200) / 2)
    queue = max(20_000, round(mean_kbps * 125 * drawn.between("queue", 0.1, 0.6), -3))
    if isinstance(rate, dict) and "steps" in rate:
        rate = {"steps": [step for step in rate["steps"] if float(step["at"].split()[0]) < length]}
    delay = f"{one_way_ms:g} ms"
    held = {"buffer": f"{buffer} s", "begin_at": f"{begin} s"}
    scenario = Scenario.model_validate(
        {
            "id": f"{MARK}abr/{'quick/' if quick else ''}{name}",
            "title": f"{subject}, segments of {segment} s, rate {kind}, {2 * one_way_ms} ms",
            "path": {
                "down": {"rate": rate, "queue": f"droptail {queue:.0f} B", "delay": delay},
                "up": {"delay": delay},
            },
            "flows": {
                FLOW: {
                    "role": "subject",
                    "system": ADAPTIVE_ELSEWHERE,
                    "parameters": {
                        "player": player.name,
                        "rule": player.rule,
                        **player.told,
                        **player.told_real,
                        **held,
                    },
                    "clip": {
                        "source": source,
                        "ladder": [f"{level}k" for level in levels],
                        "segment": f"{segment} s",
                        "duration": f"{MEDIA_S} s",
                    },
                    "sim": {
                        "system": ADAPTIVE,
                        "parameters": {
                            "player": player.name,
                            "rule": player.simulated,
                            **player.told,
                            **held,
                        },
                    },
                }
            },
            "until": {"time": f"{length:g} s"},
            "measure": {"window": ["0 s", f"{length:g} s"]},
            "start_phase": PHASE,
        }
    )
    emu, sim = (2, 6) if quick else (TRIALS, SIMULATED)
    return AbrCase(
        id=name,
        kind=kind,
        scenario=scenario,
        emu=emu,
        sim=sim,
        levels_bps=tuple(1000 * level for level in levels),
        segment_s=segment,
        buffer_s=buffer,
        begin_s=begin,
        conditions={
            "rate": words,
            "rtt": f"{2 * one_way_ms} ms",
            "queue": f"{queue / 1000:.0f} kB",
            "ladder": f"{source} {'/'.join(map(str, levels))} kbit/s",
            "segment": f"{segment} s",
            "buffer": f"{buffer} s",
            "begin": f"{begin} s",
        },
        quick=quick,
    )


def with_files(case: AbrCase) -> AbrCase:
    """The case with the files that its real trials play, in sim too: a ladder's own frames, not those that
    ship scaled to its rates. Encoded on first use. Raises MediaError, CannotRunError."""
    clip = case.scenario.flows[FLOW].clip
    assert isinstance(clip, Clip) and clip.ladder is not None and clip.duration is not None
    ladder = media_ladder(clip, clip.duration)
    folder = prepare_ladder(ladder)
    files = [str(folder / f"{short_name(rate)}.mp4") for rate in ladder.rates_bps]
    played = {"files": files, "segment": f"{case.segment_s} s"}
    return replace(case, scenario=override(case.scenario, {f"flows.{FLOW}.clip": played}))


_Drawn = tuple[Any, str, float]
"""A rate as a scenario has it, in words, and its mean in kbit/s."""


@dataclass(frozen=True)
class _Draws:
    """The draws of one case."""

    case: str
    square: SquareRange
    length_s: float

    def between(self, name: str, low: float, high: float) -> float:
        """Evenly distributed between the logarithms: half of all is below the geometric mean."""
        steps = 1_000_000
        share = draw(DRAW, self.case, name, 0, steps) / steps
        return float(low * (high / low) ** share)

    def one_of(self, name: str, values: Sequence[_Value]) -> _Value:
        return values[draw(DRAW, self.case, name, 0, len(values) - 1)]


def _constant(drawn: _Draws, levels: Sequence[int]) -> _Drawn:
    rate = drawn.one_of("level", levels[1:]) * drawn.between("rate", 1.03, 1.25)
    return f"{rate:.0f} kbit/s", f"{rate:.0f} kbit/s", rate


def _steps(drawn: _Draws, levels: Sequence[int]) -> _Drawn:
    at, rates, steps = 0.0, [], []
    for number in range(4):
        rate = drawn.between(f"rate {number}", 1.2 * levels[0], 1.3 * levels[-1])
        rates.append(rate)
        steps.append({"at": f"{at:.0f} s", "rate": f"{rate:.0f} kbit/s"})
        at += drawn.between(f"length {number}", 7, 11)
    words = ", ".join(f"{one['rate'].split()[0]} from {one['at']}" for one in steps) + " (kbit/s)"
    return {"steps": steps}, words, sum(rates) / len(rates)


def _square(drawn: _Draws, levels: Sequence[int]) -> _Drawn:
    square = drawn.square
    first, second = (
        levels[level] * drawn.between(name, low, high)
        for name, (low, high, level) in (("first", square.first), ("second", square.second))
    )
    # A short session sees it fall too.
    period = min(drawn.between("period", *square.period_s), drawn.length_s)
    rate = {"first": f"{first:.0f} kbit/s", "second": f"{second:.0f} kbit/s", "period": f"{period:.0f} s"}
    words = f"{first:.0f} and {second:.0f} kbit/s, {period:.0f} s a period"
    return {"square": rate}, words, (first + second) / 2


def _trace(drawn: _Draws, levels: Sequence[int]) -> _Drawn:
    name = drawn.one_of("trace", sorted(shipped_traces()))
    seconds = _by_second(name)
    begin = draw(DRAW, drawn.case, "from", 0, len(seconds) - 1)
    some = [seconds[(begin + second) % len(seconds)] for second in range(round(drawn.length_s))]
    mean = drawn.between("mean", levels[1], levels[-1])
    scale = mean / (sum(some) / len(some))
    steps = [
        {"at": f"{second} s", "rate": f"{rate * scale:.0f} kbit/s"}
        for second, rate in enumerate(some)
        if second == 0 or rate != some[second - 1]
    ]
    words = f"`{name}` from {begin} s, mean {mean:.0f} kbit/s"
    return {"steps": steps}, words, mean


_RATES: Final[Mapping[AbrKind, Callable[[_Draws, Sequence[int]], _Drawn]]] = {
    "constant": _constant,
    "steps": _steps,
    "square": _square,
    "trace": _trace,
}


@cache
def _by_second(name: str) -> tuple[float, ...]:
    """A shipped trace as its mean rate in each second, kbit/s."""
    trace = TraceFile.model_validate(name)
    length = trace.duration_ns() // 1_000_000_000
    plan = trace.rate_plan()
    until = bits_until(plan, [second * 1_000_000_000 for second in range(length + 1)])
    assert until is not None, "a trace is steps or opportunities"
    return tuple(float(each) / 1000 for each in np.diff(until))
