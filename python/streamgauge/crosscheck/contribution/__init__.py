"""Crosscheck of contribution: our machines beside the programs of others (docs/fidelity-contribution.md)."""

from streamgauge.crosscheck.contribution.matter import contribution_matter

__all__ = ["contribution_matter"]
