"""Errors of a trial after it has started."""

from __future__ import annotations

from streamgauge.errors import StreamGaugeError


class TrialBrokenError(StreamGaugeError):
    """A trial that ended before there was a record: one of its own processes died. Nothing is wrong with the
    scenario or the machine; running it again is the remedy."""

    exit_status = 2
