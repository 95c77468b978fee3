"""``streamgauge gateway``: this machine as the bottleneck of a network segment."""
