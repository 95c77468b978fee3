"""Crosscheck: does the simulation match the real thing? Sim's TCP against the kernel's, sim's players against
dash.js, hls.js and Shaka, systems of ours against themselves on real sockets: both run the same scenarios,
and their difference is compared with the spread between real runs (docs/fidelity.md, docs/fidelity-abr.md,
docs/fidelity-systems.md)."""

from streamgauge.crosscheck.abr import ABR
from streamgauge.crosscheck.run import CrosscheckRequest, crosscheck
from streamgauge.crosscheck.tcp import TCP

__all__ = ["ABR", "TCP", "CrosscheckRequest", "crosscheck"]
