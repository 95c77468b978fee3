"""The least latency that shows enough pictures, by loss and round trip.

A trial runs with a long latency. Its receiver reports of each picture how long its slowest packet took beyond
the usual way: the least latency that would have shown it. One trial answers for all latencies.
"""

from streamgauge.latency_table.cells import LatencyCell, LatencyTable, Waits, cell_of
from streamgauge.latency_table.running import LatencyQuestion, able, run_table
from streamgauge.latency_table.theory import arq_latency_s, arq_rounds, arq_share

__all__ = [
    "LatencyCell",
    "LatencyQuestion",
    "LatencyTable",
    "Waits",
    "able",
    "arq_latency_s",
    "arq_rounds",
    "arq_share",
    "cell_of",
    "run_table",
]
