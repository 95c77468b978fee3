"""Cases: a session of one system of ours on a link, drawn by a seed, as ordinary scenarios.

`COMPARED` times conditions are the cases. A draw depends on `DRAW`, the case's id and the name of the drawn
value alone: another system, another condition, or one more drawn value changes no other.

============  ==============================================================================================
drawn         from
============  ==============================================================================================
rate          the system's shares of what its clip asks for at most, evenly between their logarithms
queue         0.1 to 0.8 s of that rate, 6 kB at least; drop-tail
RTT           4 to 200 ms, likewise, the same both ways
loss          none in every other condition, else 0.3 to 3 %, likewise
beside it     in turn nothing, constant rate of 0.2 to 0.5 of the link, a TCP (Reno or CUBIC) without end
============  ==============================================================================================

Which of the last two a system begins with is drawn as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from streamgauge.crosscheck.cases import MARK
from streamgauge.scenario import Scenario
from streamgauge.scenario.draws import draw
from streamgauge.systems.compared import COMPARED, ComparedSystem
from streamgauge.systems.registry import CONSTANT_RATE, GREEDY_TCP, SYSTEMS

__all__ = ["CONDITIONS", "FLOW", "RIVAL", "SystemsCase", "case_id", "cases"]

Json = dict[str, Any]
Beside = Literal["none", "paced", "greedy"]
_Value = TypeVar("_Value")

CONDITIONS: Final = 10
"""Default number for each system."""
DRAW: Final = 20261126
"""The seed of the conditions."""
FLOW: Final = "media"
RIVAL: Final = "beside"
LENGTH_S: Final = 22
QUICK_S: Final = 12
"""Windows Media's silence of 5 s leaves time to play."""
PHASE: Final = "100 ms"
"""Sessions begin within this span: no threshold is met in every trial alike."""
BESIDE: Final[tuple[Beside, ...]] = ("none", "paced", "greedy")
CONTROLS: Final = ("reno", "cubic")
_PACED_BYTES: Final = 1000
_PACED_HEADERS: Final = 42
"""IPv4, UDP and the 14 bytes of Ethernet that the link counts."""


@dataclass(frozen=True)
class SystemsCase:
    """One comparison: a session that runs in both modes, and how often."""

    id: str
    """``realvideo-udp/03``: the system, and its condition."""
    kind: str
    """Traffic beside it."""
    scenario: Scenario
    emu: int
    """Valid real trials asked for."""
    sim: int
    """Simulated trials."""
    conditions: Mapping[str, str]
    """Drawn values, in words: ``rate``, ``rtt``, ``queue``, ``loss``, ``beside``."""
    quick: bool
    is_mix: bool = False

    @property
    def subject(self) -> str:
        """Returns which of `COMPARED`."""
        return self.id.partition("/")[0]

    @property
    def chooses(self) -> bool:
        """Returns whether its player chooses among levels."""
        return "ladder" in COMPARED[self.subject].clip


def case_id(subject: str, number: int) -> str:
    """Returns the id of a system's condition, from 1."""
    return f"{subject}/{number:02}"


def cases(*, quick: bool = False, conditions: int = CONDITIONS) -> list[SystemsCase]:
    """Returns every case. `quick`: 12 s and fewer runs; for looking, never for docs."""
    return [_case(subject, number, quick) for subject in COMPARED for number in range(1, conditions + 1)]


@dataclass(frozen=True)
class _Draws:
    """Draws for one case."""

    case: str

    def between(self, name: str, low: float, high: float) -> float:
        """Evenly distributed between the logarithms: half of all is below the geometric mean."""
        steps = 1_000_000
        return float(low * (high / low) ** (draw(DRAW, self.case, name, 0, steps) / steps))

    def one_of(self, name: str, values: Sequence[_Value]) -> _Value:
        return values[draw(DRAW, self.case, name, 0, len(values) - 1)]


def _case(subject: str, number: int, quick: bool) -> SystemsCase:
    name = case_id(subject, number)
    played = COMPARED[subject]
    drawn, first = _Draws(name), _Draws(subject)
    kbps = round(played.asks_bps / 1000 * drawn.between("rate", *played.rates))
    queue = max(6000, round(kbps * 125 * drawn.between("queue", 0.1, 0.8), -2))
    one_way_ms = round(drawn.between("rtt", 4, 200) / 2)
    lossy = (number + first.one_of("first loss", (0, 1))) % 2 == 1
    loss = f"{drawn.between('loss', 0.3, 3):.1f} %" if lossy else ""
    beside = BESIDE[(number + first.one_of("first beside", (0, 1, 2))) % len(BESIDE)]
    rival, words = _beside(beside, drawn, kbps)
    delay, rate = f"{one_way_ms} ms", f"{kbps} kbit/s"
    down = {"rate": rate, "queue": f"droptail {queue:.0f} B", "delay": delay} | (
        {"loss": loss} if loss else {}
    )
    length = QUICK_S if quick else LENGTH_S
    scenario = Scenario.model_validate(
        {
            "id": f"{MARK}systems/{'quick/' if quick else ''}{name}",
            "title": f"{subject} on {rate}, {2 * one_way_ms} ms, beside {words}",
            "path": {"down": down, "up": {"delay": delay}},
            "flows": {FLOW: _flow(played), **({RIVAL: rival} if rival else {})},
            "until": {"time": f"{length} s"},
            "measure": {"window": ["0 s", f"{length} s"]},
            "start_phase": PHASE,
        }
    )
    emu, sim = (2, 6) if quick else (3, 12)
    told = {
        "rate": rate,
        "rtt": f"{2 * one_way_ms} ms",
        "queue": f"{queue / 1000:.1f} kB",
        "loss": loss or "none",
        "beside": words,
    }
    return SystemsCase(name, beside, scenario, emu, sim, told, quick)


def _flow(played: ComparedSystem) -> Json:
    flow: Json = {"role": "subject", "system": played.system, "clip": dict(played.clip)}
    if played.told:
        flow["parameters"] = dict(played.told)
    assert SYSTEMS[played.system].ours >= {"sim", "emu"}
    return flow


def _beside(kind: Beside, drawn: _Draws, kbps: float) -> tuple[Json | None, str]:
    """Returns the traffic that shares the link, from a drawn time on, and that in words."""
    if kind == "none":
        return None, "nothing"
    start = round(drawn.between("begin", 3, 8), 1)
    flow: Json = {"role": "rival", "start": f"{start:g} s"}
    if kind == "greedy":
        control = drawn.one_of("control", CONTROLS)
        return flow | {"traffic": GREEDY_TCP, "congestion_control": control}, f"{control} from {start:g} s"
    share = drawn.between("share", 0.2, 0.5)
    packets = 1000 * kbps * share / (8 * (_PACED_BYTES + _PACED_HEADERS))
    parameters = {"rate": f"{packets:.2f} packets/s", "size": f"{_PACED_BYTES} B"}
    words = f"{kbps * share:.0f} kbit/s from {start:g} s"
    return flow | {"traffic": CONSTANT_RATE, "parameters": parameters}, words
