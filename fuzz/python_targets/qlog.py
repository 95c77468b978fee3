"""Any bytes are traces of qlog with finite numbers, or one error."""

from __future__ import annotations

import math

from streamgauge.qlog.reading import parse_qlog


def target(data: bytes) -> None:
    for trace in parse_qlog(data, "fuzz.qlog"):
        assert trace.skipped >= 0 and all(count > 0 for count in trace.events.values())
        for _, points in trace.series.values():
            assert all(math.isfinite(at) and math.isfinite(value) for at, value in points)
