"""The nine average indices that De Cicco, Mascolo and Palmisano print, from their own rates.

Tables I and II give throughput (TP) and loss rate (LR) of each flow in kbit/s, and Jain's index to two
decimals. All nine follow from TP - LR; from TP alone, five do not.
"""

from __future__ import annotations

import math

import pytest
from streamgauge.metrics import jain

TABLES = {
    "2 QT constant": ([(208.34, 18.36), (171.97, 26.83)], 0.98),
    "4 QT constant": ([(217.81, 30.56), (183.37, 37.15), (178.14, 48.21), (154.34, 51.54)], 0.96),
    "4 QT variable": ([(212.52, 24.96), (202.49, 31.35), (195.53, 36.32), (163.05, 28.73)], 0.99),
    "1 QT 1 TCP constant": ([(265.96, 22.24), (150.30, 13.71)], 0.93),
    "1 QT 3 TCP constant": ([(250.44, 27.09), (198.18, 24.45), (150.50, 23.94), (179.20, 23.61)], 0.96),
    "2 QT 2 TCP constant": ([(278.82, 22.52), (215.62, 31.61), (87.70, 18.49), (121.14, 21.92)], 0.81),
    "3 QT 1 TCP constant": ([(249.55, 27.32), (216.97, 36.67), (144.67, 33.40), (93.76, 18.46)], 0.87),
    "1 QT 1 TCP variable": ([(262.96, 15.65), (453.86, 24.17)], 0.93),
    "2 QT 2 TCP variable": ([(253.24, 20.76), (252.64, 20.28), (195.46, 24.23), (172.51, 23.55)], 0.97),
}


def printed(index: float, published: float) -> bool:
    """Whether `index` is `published` to two decimals; 0.955 may be printed as 0.95 or 0.96."""
    return abs(index - published) <= 0.005 + 5e-4


@pytest.mark.parametrize("experiment", TABLES)
def test_index_of_goodputs_is_the_published_one(experiment: str) -> None:
    rates, published = TABLES[experiment]
    assert printed(jain([tp - lr for tp, lr in rates]), published)


def test_index_of_throughputs_is_not() -> None:
    wrong = [
        name
        for name, (rates, published) in TABLES.items()
        if not printed(jain([tp for tp, _ in rates]), published)
    ]
    assert wrong == [
        "2 QT constant", "4 QT constant", "1 QT 3 TCP constant", "2 QT 2 TCP constant", "3 QT 1 TCP constant",
    ]  # fmt: skip


def test_no_rate_at_all_has_no_index() -> None:
    assert math.isnan(jain([0.0, 0.0]))
    with pytest.raises(ValueError, match="negative"):
        jain([1.0, -1.0])
