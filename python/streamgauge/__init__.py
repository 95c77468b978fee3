"""StreamGauge: the test bed for streaming media under congestion."""

__version__ = "0.1.0"
