"""What `benches/emulator_peers.py` reads from stamps, from ones that a perfect shaper leaves."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamgauge.calibrate.analyse import Flight

FILE = Path(__file__).parent.parent.parent / "benches" / "emulator_peers.py"


@pytest.fixture(scope="module")
def bench() -> Any:
    spec = importlib.util.spec_from_file_location("emulator_peers", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_each_shaper_has_a_pass_and_a_file_of_its_own(bench: Any) -> None:
    names = [one.name for comparison in bench.comparisons(1.0, bench.RATES) for one in comparison.passes()]
    assert len(set(names)) == len(names) > 20
    assert not [name for name in names if "/" in name]


def test_a_perfect_queue_has_the_ideal_figures(bench: Any) -> None:
    rate, seconds = 10_000_000, 2.0
    comparison = bench.rate_of(rate, seconds)
    frame, room = bench.FULL_FRAME, comparison.ours[0]["kind"]["bottleneck"]["queue"]["droptail"]["bytes"]
    service = frame * 8e9 / rate
    sent = np.arange(round(1.25 * rate / 8 / frame * seconds)) * service / 1.25
    received = np.full(len(sent), np.nan)
    free: list[float] = []
    for number, at in enumerate(sent):
        if sum(one > at for one in free[-room // frame - 1 :]) < room // frame:
            free.append(max(at, free[-1] if free else 0) + service)
            received[number] = free[-1]
    found = comparison.figures(Flight(sent, received, frame), 0.0)
    assert found == pytest.approx(comparison.ideal, abs=0.2)


def test_a_perfect_delay_and_bucket_have_the_ideal_figures(bench: Any) -> None:
    sent = np.arange(100) * 2e6
    comparison = bench.delay_of(20, 1.0)
    found = comparison.figures(Flight(sent, sent + 20e6 + 1000, 100), 1e-6)
    assert found == pytest.approx(comparison.ideal, abs=1e-3)
    comparison = bench.burst_of()
    service = bench.FULL_FRAME * 8e9 / bench.SLOW
    later = np.maximum(np.arange(bench.BURST) - 9, 0) * service
    found = comparison.figures(Flight(np.zeros(bench.BURST), later, bench.FULL_FRAME), 0.0)
    assert found == pytest.approx(comparison.ideal)
    slow = comparison.figures(Flight(np.zeros(bench.BURST), later * 1.02, bench.FULL_FRAME), 0.0)
    assert slow["further gaps, mean"] == pytest.approx(1.02)
