"""Cost of adaptive sessions: one of ten minutes step by step, and a thousand of them over rules and traces.

    python benches/abr.py [--sessions N] [--seconds S] [--json]

The first part is one session of 600 s in segments of 2 s over a link of 1 to 5 Mbit/s, with packets; only the
metrics are kept. The second is one campaign of ten rules over N/10 links that a Markov chain draws, 300
kbit/s to 6 Mbit/s, each session S seconds long. CPU time counts every thread and process; wall time means
something on an idle machine alone.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import tempfile
import time
from pathlib import Path

from figures import document
from streamgauge import _native
from streamgauge.campaign import run
from streamgauge.metrics import compute
from streamgauge.record import Record, finish_trial
from streamgauge.scenario import Scenario, from_text, lower

RULES = (
    "throughput", "bola", "bola-e", "dynamic", "dashjs-dynamic", "hlsjs", "shaka", "exoplayer", "bba-2",
    "robust-mpc",
)  # fmt: skip
LEVELS_MBPS = (0.3, 0.6, 1.0, 1.5, 2.5, 4.0, 6.0)
MEAN_STAY_S = 8
LADDER = "[235k, 375k, 560k, 750k, 1050k, 1750k, 2350k, 3M, 4.3M]"
ROUNDS = 5

SCENARIO = """\
id: {id}
title: Adaptive streaming over a link that changes
path:
  down: {{rate: {{steps: [{steps}]}}, queue: droptail 100 packets, delay: 25 ms}}
  up: {{delay: 25 ms}}
flows:
  video:
    role: subject
    system: dash
    clip: {{source: bigbuckbunny, ladder: {ladder}, segment: 2 s}}
    parameters: {{rule: {rule}}}
until: {{time: {seconds} s}}
"""


def scenario(id_: str, rule: str, steps: list[tuple[float, float]], seconds: int) -> Scenario:
    """Returns a session at that rule over a link of those rates, Mbit/s, from those times on, s."""
    said = ", ".join(f"{{at: {at:g} s, rate: {rate:g} Mbit/s}}" for at, rate in steps)
    text = SCENARIO.format(id=id_, rule=rule, steps=said, seconds=seconds, ladder=LADDER)
    (made,) = from_text(text, file=f"{id_}.yaml")
    return made


def drawn(number: int, seconds: int) -> list[tuple[float, float]]:
    """Returns a link's rates: each second it moves to another level with probability 1/8."""
    draws = random.Random(f"abr {number}")
    steps = [(0.0, draws.choice(LEVELS_MBPS))]
    for second in range(1, seconds):
        if draws.random() < 1 / MEAN_STAY_S:
            steps.append((float(second), draws.choice([one for one in LEVELS_MBPS if one != steps[-1][1]])))
    return steps


def cpu_s() -> float:
    """CPU time so far, of this process and those that it has waited for, s."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def one_session(folder: Path, *, as_json: bool) -> None:
    """Prints the CPU time of a session of ten minutes, by its steps, in the best of several rounds."""
    rates = [(100.0 * at, rate) for at, rate in enumerate((5, 1, 3, 2, 5, 1))]
    made = scenario("bench/session", "dashjs-dynamic", rates, 600)
    plan = lower(made, "sim", 1, keep="metrics")
    found: dict[str, list[float]] = {"simulate": [], "metrics": []}
    for number in range(ROUNDS):
        directory = folder / f"session-{number}"
        directory.mkdir()
        began = time.process_time()
        _native.simulate(json.dumps(plan), str(directory))
        found["simulate"].append(time.process_time() - began)
        whole = folder / f"whole-{number}"
        whole.mkdir()
        summary = json.loads(_native.simulate(json.dumps({**plan, "keep": "packets"}), str(whole)))
        finish_trial(
            whole,
            scenario=made.in_mode("sim").normalised(),
            plan=plan,
            mode="sim",
            seed=1,
            validity={"valid": True, "why": [], "bounds": {}, "measured": {}},
            provenance={},
            resume_key="",
            summary=summary,
        )
        began = time.process_time()
        compute(Record.open(whole), made)
        found["metrics"].append(time.process_time() - began)
    if as_json:
        print(
            document("ms", {f"a session of 600 s, {step}": 1e3 * min(took) for step, took in found.items()})
        )
        return
    print("one session of 600 s, 2 s segments, 1 to 5 Mbit/s, ms CPU, least of", ROUNDS)
    for step, took in found.items():
        print(f"  {step:10}{1e3 * min(took):8.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=180)
    parser.add_argument("--json", action="store_true", help="the first part alone")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        one_session(Path(folder), as_json=asked.json)
        if asked.json:
            return
        links = [drawn(number, asked.seconds) for number in range(max(1, asked.sessions // len(RULES)))]
        made = [
            scenario(f"bench/{rule}-{number}", rule, steps, asked.seconds)
            for number, steps in enumerate(links)
            for rule in RULES
        ]
        began, before = time.perf_counter(), cpu_s()
        done = run(made, {one.id: ["sim"] for one in made}, Path(folder) / "all", repeat=1, keep="metrics")
        wall, cpu = time.perf_counter() - began, cpu_s() - before
        count = len(done.outcomes)
        print(
            f"{count} sessions of {asked.seconds} s, {len(RULES)} rules over {len(links)} links: "
            f"{wall:.1f} s, CPU {cpu:.1f} s, {1e3 * cpu / count:.1f} ms a session"
        )


if __name__ == "__main__":
    main()
