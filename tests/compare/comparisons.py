"""Comparisons for tests: drawn ones, of made-up readings."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from streamgauge.compare import COMPARED, Comparison, SubjectTrials, answered, compare
from streamgauge.compare.origin import TrialsOrigin

SCENARIO: dict[str, Any] = {
    "id": "test/line",
    "path": {"down": {"rate": "1 Mbit/s", "queue": {"droptail": "20 packets"}}, "up": {}},
    "flows": {"video": {"role": "subject", "system": "rtp"}, "cross": {"role": "rival", "traffic": "bulk"}},
    "until": {"time": "40 s"},
}
METRICS = ("rebuffer_ratio", "startup_delay", "goodput", "loss", "jain")
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(str.strip)
"""With control characters, markup, anything."""
finite = st.floats(-1e9, 1e9, allow_nan=False)
values = st.dictionaries(st.sampled_from(METRICS), finite, min_size=1)
trials = st.dictionaries(st.integers(0, 2**31), values, max_size=6)
origins = st.builds(
    TrialsOrigin,
    simulators=st.lists(st.integers(1, 20), max_size=2).map(tuple),
    systems=st.dictionaries(names, st.lists(names, max_size=2).map(tuple), max_size=2),
    releases=st.lists(names, max_size=2).map(tuple),
    machines=st.lists(names, max_size=2).map(tuple),
)


def line(rate: str = "1 Mbit/s", id_: str = "test/line") -> dict[str, Any]:
    found = copy.deepcopy(SCENARIO)
    found["id"] = id_
    found["path"]["down"]["rate"] = rate
    return found


def case(
    subject: str,
    read: Mapping[int, Mapping[str, float]],
    *,
    mode: str = "sim",
    scenario: Mapping[str, Any] = SCENARIO,
    **more: Any,
) -> SubjectTrials:
    return SubjectTrials(
        subject=subject, id=str(scenario["id"]), scenario=scenario, mode=mode, trials=read, **more
    )


@st.composite
def cases(draw: st.DrawFn, subject: str | None = None) -> SubjectTrials:
    """Of a subject on one of two lines."""
    rate = draw(st.sampled_from(("1 Mbit/s", "2 Mbit/s")))
    return case(
        draw(names) if subject is None else subject,
        draw(trials),
        mode=draw(st.sampled_from(("sim", "emu"))),
        scenario=line(rate, draw(st.sampled_from(("test/line", "test/other")))),
        base=draw(st.none() | st.just(line(rate))),
        of=draw(st.just("") | names),
        invalid=draw(st.integers(0, 5)),
        origin=draw(st.none() | origins),
        note=draw(st.just("") | names),
    )


@st.composite
def comparisons(draw: st.DrawFn) -> Comparison:
    """Up to three subjects in up to two scenarios and modes."""
    subjects = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    metrics = draw(st.lists(st.sampled_from(METRICS), min_size=1, unique=True))
    level = {name: draw(finite) for name in metrics}
    found = []
    for subject in subjects:
        for mode in draw(st.lists(st.sampled_from(("sim", "emu")), min_size=1, max_size=2, unique=True)):
            better = draw(st.sampled_from((0.0, 1.0, 100.0)))
            read = {
                seed: {name: level[name] + better + draw(st.floats(0, 1e-3)) for name in metrics}
                for seed in range(draw(st.integers(0, 4)))
            }
            more = {"invalid": draw(st.integers(0, 3)), "note": draw(st.just("") | names)}
            found.append(case(subject, read, mode=mode, **more))
    return answered(compare(found))


def two(before: Mapping[str, float], after: Mapping[str, float], n: int = 3, **more: Any) -> Comparison:
    """`after` held against `before`, in `n` trials that do not vary."""
    assert set(before) <= set(COMPARED)
    sides = [case("before", dict.fromkeys(range(1, n + 1), before))]
    sides.append(case("after", dict.fromkeys(range(1, n + 1), after), **more))
    return answered(compare(sides))
