"""Outages of a flow: an example of a package that extends StreamGauge."""
