"""Traffic and path of a calibration: passes as plain data.

Each pass is one run of the emulator, as in a trial, with one load that the engine's gauge offers at the
server's end. The rows that come of them are in `streamgauge.calibrate.rows`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

FULL_FRAME = 1514
"""Ethernet bytes of a full frame, without its check sequence."""
SMALL_FRAME = 100

LOSS = 0.02
GILBERT_GOOD, GILBERT_BAD = 95.0, 5.0
JITTER_SPREAD_S, JITTER_DEVIATION_S, JITTER_DELAY_S = 0.0015, 0.0005, 0.010
LIMIT_PACKETS, LIMIT_BYTES, LIMIT_FRAME = 50, 20_000, 600
STEP_BEFORE, STEP_AFTER, STEP_FRAME = 4_000_000, 1_000_000, 500
CEILING = (10_000, 20_000, 30_000, 40_000, 50_000, 60_000, 70_000, 83_000)
"""Packets/s of full frames; 83,000 is 1 Gbit/s."""
RATES = (1_000_000, 10_000_000, 100_000_000)
DELAYS_MS = (20, 1)


@dataclass(frozen=True, kw_only=True)
class Pass:
    """One load over one path."""

    name: str
    down: list[dict[str, Any]]
    packets_per_s: float
    frame: int
    seconds: float
    burst: int = 1
    #: Passes of a group are left out after two that lost packets.
    group: str = ""
    #: From the trial's start until the load's, s.
    after_s: float = 0.02
    #: After the last packet is sent, s.
    linger_s: float = 0.1
    #: Kernel stamps at the sender too, which cost CPU; else the sender's own reading before each send.
    stamp_sent: bool = True
    #: Over a veth of its own, without the emulator.
    bare: bool = False
    #: Through the kernel's own disciplines in the emulator's place: lines of ``tc -batch``.
    kernel: list[str] = field(default_factory=list)

    @property
    def packets(self) -> int:
        """Returns how many are offered."""
        return max(1, round(self.packets_per_s * self.seconds))

    @property
    def wall_s(self) -> float:
        """Returns how long it takes, s, without the start-up."""
        return self.after_s + self.packets / self.packets_per_s + self.linger_s

    def plan(self, seed: int) -> dict[str, Any]:
        """Returns the plan of its trial."""
        return {
            "scenario": f"calibrate/{self.name}",
            "seed": seed,
            "duration": round((self.wall_s + 30) * 1e9),
            "path": {"down": self.down, "up": [delay(0.0)]},
            "flows": [{"name": "gauge", "role": "subject", "start": 0, "app": "external"}],
        }


def bottleneck(rate: Any, limit: dict[str, int]) -> dict[str, Any]:
    """Returns the stage; `rate` in bit/s, or as in the plan."""
    spec = {"rate": {"constant": rate} if isinstance(rate, int) else rate, "queue": {"droptail": limit}}
    return {"name": "bottleneck", "kind": {"bottleneck": spec}}


def delay(seconds: float, jitter: dict[str, Any] | None = None) -> dict[str, Any]:
    """Returns the stage."""
    kind: dict[str, Any] = {"delay": round(seconds * 1e9)}
    if jitter is not None:
        kind["jitter"] = {"distribution": jitter}
    return {"name": "delay", "kind": {"delay": kind}}


def loss(model: dict[str, Any]) -> dict[str, Any]:
    """Returns the stage."""
    return {"name": "loss", "kind": {"loss": {"model": model}}}


def passes(*, quick: bool) -> list[Pass]:
    """Returns all of them, in order. `quick` takes a third of the time and is less precise."""
    short = 0.3 if quick else 1.0
    found = [
        Pass(name="unshaped", down=[], bare=True, packets_per_s=1000, frame=1042, seconds=1.5 * short),
        Pass(
            name="departures",
            down=[bottleneck(10_000_000, {"bytes": 60_000}), delay(0.020)],
            packets_per_s=1000,
            frame=1042,
            seconds=6 * short,
        ),
    ]
    for rate, seconds in zip(RATES, (9, 5, 4), strict=True):
        found.append(
            Pass(
                name=f"rate-{rate // 10**6}M",
                # A sender that is kept from the processor for up to 0.1 s leaves no hole.
                down=[bottleneck(rate, {"bytes": max(10 * FULL_FRAME, rate // 80)})],
                packets_per_s=1.25 * rate / 8 / FULL_FRAME,
                frame=FULL_FRAME,
                seconds=seconds * short,
                linger_s=0.3,
            )
        )
    for milliseconds in DELAYS_MS:
        found.append(
            Pass(
                name=f"delay-{milliseconds}ms",
                down=[bottleneck(10_000_000, {"bytes": 60_000}), delay(milliseconds / 1e3)],
                packets_per_s=150,
                frame=SMALL_FRAME,
                seconds=2.5 * short,
            )
        )
    for name, distribution in (
        ("uniform", {"uniform": {"spread": round(JITTER_SPREAD_S * 1e9)}}),
        ("normal", {"normal": {"deviation": round(JITTER_DEVIATION_S * 1e9)}}),
    ):
        found.append(
            Pass(
                name=f"jitter-{name}",
                # Farther apart than the jitter is wide, so that keeping the order changes nothing.
                down=[delay(JITTER_DELAY_S, distribution)],
                packets_per_s=240,
                frame=SMALL_FRAME,
                seconds=4 * short,
            )
        )
    for name, limit in (("packets", {"packets": LIMIT_PACKETS}), ("bytes", {"bytes": LIMIT_BYTES})):
        found.append(
            Pass(
                name=f"limit-{name}",
                down=[bottleneck(1_000_000, limit)],
                # All at once: twice the capacity, long before the first has left.
                packets_per_s=1_000_000,
                burst=100,
                frame=LIMIT_FRAME,
                seconds=0.0001,
                linger_s=0.4,
            )
        )
    for name, model in (
        ("bernoulli", {"bernoulli": {"probability": LOSS}}),
        ("gilbert", {"gilbert": {"good_packets": GILBERT_GOOD, "bad_packets": GILBERT_BAD}}),
    ):
        found.append(
            Pass(
                name=f"loss-{name}",
                down=[loss(model), delay(0.001)],
                packets_per_s=5000,
                frame=SMALL_FRAME,
                seconds=4 * short,
                stamp_sent=False,
            )
        )
    found.append(
        Pass(
            name="rate-step",
            down=[bottleneck({"steps": [[0, STEP_BEFORE], [10**9, STEP_AFTER]]}, {"bytes": 10 * STEP_FRAME})],
            packets_per_s=1.25 * STEP_BEFORE / 8 / STEP_FRAME,
            frame=STEP_FRAME,
            seconds=1.8,
        )
    )
    for rate in (10_000, 40_000) if quick else CEILING:
        found.append(
            Pass(
                name=f"ceiling-{rate}",
                group="ceiling",
                down=[bottleneck(2_000_000_000, {"packets": 4000}), delay(0.010)],
                packets_per_s=rate,
                # As many at once as a sender's own queue hands over at such rates.
                burst=max(1, rate // 10_000),
                frame=FULL_FRAME,
                seconds=0.4 if quick else 0.8,
                stamp_sent=False,
                linger_s=0.3,
            )
        )
    return found
