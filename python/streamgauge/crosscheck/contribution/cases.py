"""Cases: a contribution by a program of others on a drawn link, and by our machine in its place in sim.

A draw depends on `DRAW`, the case's id and the name of the drawn value alone.

=========  =================================================================================================
drawn      from
=========  =================================================================================================
RTT        10 to 200 ms, evenly between their logarithms, the same both ways
loss       none in every fifth condition, else 0.5 to 8 %, likewise, the same both ways
latency    1.2 to 8 round trips, likewise, 40 ms at least
=========  =================================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from streamgauge.crosscheck.cases import MARK
from streamgauge.scenario import Scenario
from streamgauge.scenario.draws import draw
from streamgauge.systems.machines import MACHINES
from streamgauge.systems.registry import SYSTEMS

__all__ = ["CONDITIONS", "FLOW", "SUBJECTS", "ContributionCase", "cases"]

CONDITIONS: Final = 20
"""Default number for each system."""
DRAW: Final = 20261130
"""The seed of the conditions."""
FLOW: Final = "media"
_WAIT: Final = "picture_wait"
"""The event by which a receiver of a contribution reports how long each picture waits."""
SUBJECTS: Final[Mapping[str, str]] = {
    theirs: ours
    for theirs, entry in SYSTEMS.items()
    for ours in entry.stood_in_by
    if ours in MACHINES and _WAIT in MACHINES[ours].events
}
"""Each compared system of others, with our machine that stands in for it; those that have one."""
CLIP_S: Final = 12
LENGTH_S: Final = 20
QUICK_S: Final = 6
PHASE: Final = "100 ms"
_EVERY: Final = 5
_STEPS: Final = 1_000_000


@dataclass(frozen=True)
class ContributionCase:
    """One comparison: a contribution that runs in both modes, and how often."""

    id: str
    """``srt-libsrt/03``: the system, and its condition."""
    kind: str
    """Our machine."""
    scenario: Scenario
    emu: int
    """Valid real trials asked for."""
    sim: int
    """Simulated trials."""
    conditions: Mapping[str, str]
    """Drawn values, in words: ``rtt``, ``loss``, ``latency``."""
    quick: bool
    is_mix: bool = False

    @property
    def subject(self) -> str:
        """Returns which of `SUBJECTS`."""
        return self.id.partition("/")[0]


def cases(*, quick: bool = False, conditions: int = CONDITIONS) -> list[ContributionCase]:
    """Returns every case. `quick`: a shorter clip and fewer runs; for looking, never for docs."""
    return [_case(subject, number, quick) for subject in SUBJECTS for number in range(1, conditions + 1)]


def _between(case: str, name: str, low: float, high: float) -> float:
    return float(low * (high / low) ** (draw(DRAW, case, name, 0, _STEPS) / _STEPS))


def _case(subject: str, number: int, quick: bool) -> ContributionCase:
    name = f"{subject}/{number:02}"
    one_way_ms = round(_between(name, "rtt", 10, 200) / 2)
    loss = "" if number % _EVERY == 0 else f"{_between(name, 'loss', 0.5, 8):.1f} %"
    latency_ms = max(40, round(2 * one_way_ms * _between(name, "latency", 1.2, 8)))
    way = {"delay": f"{one_way_ms} ms", **({"loss": loss} if loss else {})}
    clip_s, length_s = (QUICK_S, QUICK_S + 8) if quick else (CLIP_S, LENGTH_S)
    told = {"rtt": f"{2 * one_way_ms} ms", "loss": loss or "none", "latency": f"{latency_ms} ms"}
    scenario = Scenario.model_validate(
        {
            "id": f"{MARK}contribution/{'quick/' if quick else ''}{name}",
            "title": f"{subject} at {told['rtt']}, loss {told['loss']}, latency {told['latency']}",
            "path": {"down": {"rate": "4 Mbit/s", "queue": "droptail 300 ms", **way}, "up": way},
            "flows": {
                FLOW: {
                    "role": "subject",
                    "system": subject,
                    "parameters": {"latency": told["latency"]},
                    "clip": {"source": "carphone", "rate": "600 kbit/s", "duration": f"{clip_s} s"},
                    "sim": {"system": SUBJECTS[subject]},
                }
            },
            "until": {"time": f"{length_s} s", "media_end": FLOW},
            "measure": {"window": ["0 s", f"{length_s} s"]},
            "start_phase": PHASE,
        }
    )
    emu, sim = (2, 6) if quick else (3, 12)
    return ContributionCase(name, SUBJECTS[subject], scenario, emu, sim, told, quick)
