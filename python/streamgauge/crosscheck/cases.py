"""Cases: flows on links, as ordinary scenarios.

=================  =========================  =====================================================
link               path                       note
=================  =========================  =====================================================
``480k-10kb``      480 kbit/s, 10 kB          8 packets of queue
``1m-75kb``        1 Mbit/s, 75 kB            a queue of 0.6 s
``10m-25kb``       10 Mbit/s, 25 kB           one bandwidth-delay product at 20 ms
``100m-Npct``      100 Mbit/s, 62.5 kB, N %   one bandwidth-delay product at 5 ms, random loss
=================  =========================  =====================================================

RTT 20 ms and 60 s, without the first 10 s, on the first two, 30 s less 5 s on the third, where the queue adds
least; on the last 5 ms and 6 s, less 1 s: a thousand round trips. Flows start within half a second of each
other, at a time that the seed draws.

The links of the five papers, as they are in the catalogue or without their delay, 60 s less 10 s too:

=================  ================================  ==============================================
link               path                              source
=================  ================================  ==============================================
``1m-100p``        1 Mbit/s, 100 packets, no delay   Hessler and Welzl
``480k-0ms``       480 kbit/s, 10 kB, no delay       De Cicco et al.; ``480k-10kb`` has their 10 ms
``480k-tbf``       the same by a TBF of 1600 B       the queue at a sender's start decides
``725k-80p``       725 kbit/s, 80 packets, 45 ms     Nichols; NIST Net's queue
``150k-tbf``       150 kbit/s, 10 kB, TBF of 1600 B  Chung et al., no delay
``700k-20kb``      700 kbit/s, 20 kB, 10 ms          Muto et al.
=================  ================================  ==============================================

There also Reno with a receive window of 17,520 B, Windows 2000's over Ethernet. And on ``10m-0ms``, 10 Mbit/s
with 25 kB and no delay, CUBIC and BBR where the one or the other begins 2 s before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

from streamgauge.scenario import Scenario
from streamgauge.scenario.semantics import end_ns
from streamgauge.systems.registry import CONSTANT_RATE, GREEDY_TCP

__all__ = ["CONTROL", "MARK", "PAPERS", "Case", "cases"]

CaseKind = Literal["single", "pair", "paced", "short"]
Json = dict[str, Any]

SINGLES: Final = ("reno", "bic", "cubic", "vegas", "bbr")
ON_PAPERS_LINKS: Final = ("reno", "cubic", "vegas", "bbr")
PAIRS: Final = (("reno", "cubic"), ("reno", "vegas"), ("cubic", "bbr"), ("reno", "reno"))
BESIDE_CBR: Final = ("reno", "cubic")
SHORT: Final = ("reno", "cubic", "bbr")
SMALL_WINDOW: Final = "17520 B"
LATER: Final = "2 s"
"""The second flow to begin finds the first one's queue."""
SIZES: Final[Mapping[str, int]] = {"14kb": 14_000, "100kb": 100_000, "1mb": 1_000_000}
"""Payload of the short flows, bytes: an initial window of ten packets holds 14,480."""
CONTROL: Final = "control"
"""Key of a variant: a flow that is not compared."""
MARK: Final = "crosscheck/"
"""With which the ids of these scenarios begin."""
_CBR_BYTES: Final = 1000
_CBR_HEADERS: Final = 42
"""IPv4, UDP and the 14 bytes of Ethernet that the link counts."""


@dataclass(frozen=True)
class CasePath:
    """A path, and how long a trial on it lasts."""

    name: str
    down: Mapping[str, str]
    up: Mapping[str, str]
    rate_bps: int
    length_s: float
    omit_s: float
    short_at_s: tuple[float, float, float]
    """When the short flows start ..."""
    short_end_s: float
    """... and when their trial ends."""

    @property
    def is_lossy(self) -> bool:
        """Returns whether it loses packets at random."""
        return "loss" in self.down


def _slow(
    name: str,
    rate: str,
    bps: int,
    queue: str,
    at: tuple[float, float, float],
    end: float,
    *,
    length: float = 60,
    omit: float = 10,
) -> CasePath:
    down = {"rate": rate, "queue": f"droptail {queue}", "delay": "10 ms"}
    return CasePath(name, down, {"delay": "10 ms"}, bps, length, omit, at, end)


def _lossy(percent: str) -> CasePath:
    down = {"rate": "100 Mbit/s", "queue": "droptail 62500 B", "delay": "2500 us", "loss": f"{percent} %"}
    return CasePath(f"100m-{percent}pct", down, {"delay": "2500 us"}, 100_000_000, 6, 1, (0, 1, 3), 8)


PATHS: Final = (
    _slow("480k-10kb", "480 kbit/s", 480_000, "10 kB", (0, 3, 8), 35),
    _slow("1m-75kb", "1 Mbit/s", 1_000_000, "75 kB", (0, 3, 8), 25),
    _slow("10m-25kb", "10 Mbit/s", 10_000_000, "25 kB", (0, 2, 4), 8, length=30, omit=5),
)
LOSSY: Final = (_lossy("0.1"), _lossy("1"), _lossy("5"))


def _paper(name: str, bps: int, queue: str, down: str = "", up: str = "", shaper: str = "") -> CasePath:
    told = {"rate": f"{bps // 1000} kbit/s", "queue": queue, "delay": down, "shaper": shaper}
    path = {key: value for key, value in told.items() if value}
    return CasePath(name, path, {"delay": up} if up else {}, bps, 60, 10, (0, 3, 8), 35)


_TBF: Final = "token_bucket 1600 B"
PAPERS: Final = (
    _paper("1m-100p", 1_000_000, "droptail 100 packets"),
    _paper("480k-0ms", 480_000, "droptail 10 kB"),
    _paper("480k-tbf", 480_000, "droptail 10 kB", shaper=_TBF),
    _paper("725k-80p", 725_000, "nistnet 80 packets", "22 ms", "23 ms"),
    _paper("150k-tbf", 150_000, "droptail 10 kB", shaper=_TBF),
    _paper("700k-20kb", 700_000, "droptail 20 kB", "5 ms", "5 ms"),
)
NEXT_DOOR: Final = _paper("10m-0ms", 10_000_000, "droptail 25 kB")


@dataclass(frozen=True)
class Case:
    """One comparison: a scenario that runs in both modes, and how often."""

    id: str
    """``reno/10m-25kb``: the flows, and their link."""
    kind: CaseKind
    scenario: Scenario
    emu: int
    """Valid real trials asked for."""
    sim: int
    """Simulated trials."""
    is_mix: bool
    """Its outcome varies from run to run: distributions are compared."""
    quick: bool

    @cached_property
    def window_ns(self) -> tuple[int, int]:
        """Returns the measurement window, ns since the trial's start."""
        window = self.scenario.measure.window
        return (window[0].ns, window[1].ns) if window is not None else (0, end_ns(self.scenario))

    @property
    def has_start(self) -> bool:
        """Returns whether how it begins is compared: alone, and where no loss at random decides it."""
        return self.kind == "single" and "pct" not in self.id


def cases(*, quick: bool = False) -> list[Case]:
    """Returns every case. `quick`: 15 s, without the first 5 s, and fewer runs; for a first look, never for
    docs."""
    found = [
        _case(control, "single", path, {control: _bulk(control)}, quick)
        for control in SINGLES
        for path in (*PATHS, *LOSSY)
    ]
    for first, second in PAIRS:
        names = (first, second) if first != second else (f"{first}_a", f"{second}_b")
        flows = {name: _bulk(control) for name, control in zip(names, (first, second), strict=True)}
        found += [_case(f"{first}-{second}", "pair", path, flows, quick) for path in PATHS]
    for control in BESIDE_CBR:
        found += [
            _case(f"{control}-{CONSTANT_RATE}", "paced", path, _beside(control, path), quick)
            for path in PATHS
        ]
    for control in SHORT:
        for path in PATHS:
            flows = {
                f"{control}_{name}": {**_bulk(control, size), "start": f"{at:g} s"}
                for (name, size), at in zip(SIZES.items(), path.short_at_s, strict=True)
            }
            found.append(_case(f"{control}-short", "short", path, flows, quick))
    return found + _of_papers(quick)


def _of_papers(quick: bool) -> list[Case]:
    found = []
    for path in PAPERS:
        found += [
            _case(control, "single", path, {control: _bulk(control)}, quick) for control in ON_PAPERS_LINKS
        ]
        windowed = _bulk("reno") | {"parameters": {"receive_window": SMALL_WINDOW}}
        found.append(_case("reno-17520", "single", path, {"reno": windowed}, quick))
    for first, second in (("cubic", "bbr"), ("bbr", "cubic")):
        flows = {first: _bulk(first), second: _bulk(second) | {"start": LATER}}
        found.append(_case(f"{first}-before-{second}", "pair", NEXT_DOOR, flows, quick))
    return found


def _bulk(control: str, size: int | None = None) -> Json:
    flow: Json = {"role": "subject", "traffic": GREEDY_TCP, "congestion_control": control}
    if size is not None:
        flow["parameters"] = {"bytes": f"{size} B"}
    return flow


def _beside(control: str, path: CasePath) -> Json:
    return {control: _bulk(control), CONSTANT_RATE: _half(path)}


def _half(path: CasePath) -> Json:
    packets = path.rate_bps / 2 / (8 * (_CBR_BYTES + _CBR_HEADERS))
    parameters = {"rate": f"{packets:.3f} packets/s", "size": f"{_CBR_BYTES} B"}
    return {"role": "rival", "traffic": CONSTANT_RATE, "parameters": parameters}


def _case(who: str, kind: CaseKind, path: CasePath, flows: Mapping[str, Json], quick: bool) -> Case:
    name = f"{who}/{path.name}"
    is_mix = kind == "pair" and "bbr" in who and path is not NEXT_DOOR
    if kind == "short":
        length, omit = path.short_end_s, 0.0
    else:
        length, omit = (15.0, 5.0) if quick else (path.length_s, path.omit_s)
        length, omit = min(length, path.length_s), min(omit, path.omit_s)
    emu, sim = (20, 40) if is_mix else (5, 20)
    if quick:
        emu, sim = (5, 20) if is_mix else (3, 6)
    scenario = Scenario.model_validate(
        {
            # A shorter trial is another scenario: records of both may lie side by side.
            "id": f"{MARK}{'quick/' if quick and kind != 'short' else ''}{name}",
            "title": f"{' and '.join(flows)} on {path.down['rate']}",
            "path": {"down": dict(path.down), "up": dict(path.up)},
            "flows": dict(flows),
            "until": {"time": f"{length:g} s"},
            "measure": {"window": [f"{omit:g} s", f"{length:g} s"]},
            "start_phase": "20 ms" if kind == "short" or path is NEXT_DOOR else "500 ms",
        }
    )
    return Case(name, kind, scenario, emu, sim, is_mix, quick)
