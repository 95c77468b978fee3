"""Crosscheck of systems: each of ours in sim beside itself on real sockets (docs/fidelity-systems.md)."""

from streamgauge.crosscheck.systems.matter import patterns_of, systems_matter

__all__ = ["patterns_of", "systems_matter"]
