"""Crosscheck of adaptive bit rate: sim's rules and players beside dash.js, hls.js and Shaka themselves
(docs/fidelity-abr.md)."""

from streamgauge.crosscheck.abr.matter import ABR

__all__ = ["ABR"]
