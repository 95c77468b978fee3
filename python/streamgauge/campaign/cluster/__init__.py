"""Campaigns beyond one machine: on an existing Dask cluster (docs/cluster.md).

Nothing of Dask is imported before `connected` is called.
"""

from streamgauge.campaign.cluster.connect import Cluster, connected, scheduler_address

__all__ = ["Cluster", "connected", "scheduler_address"]
