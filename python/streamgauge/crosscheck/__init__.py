"""Crosscheck: is the simulated TCP the kernel's? Both run the same scenarios, and what tells congestion
controls apart is held against the spread between real runs (docs/fidelity.md)."""

from streamgauge.crosscheck.run import CrosscheckRequest, crosscheck
from streamgauge.crosscheck.tcp import TCP

__all__ = ["TCP", "CrosscheckRequest", "crosscheck"]
