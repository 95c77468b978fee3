"""Files of a record, versions of their schemas, and the keys that every version has."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

from streamgauge.errors import RecordError

TRIAL: Final = "trial.json"
PROVENANCE: Final = "provenance.json"
PACKETS: Final = "packets.parquet"
EVENTS: Final = "events.parquet"
METRICS_FILE: Final = "metrics.parquet"
"""Metrics of the others; no part of the verified data."""
OLD_METRICS: Final = "metrics.json"
"""The same of older versions, without a digest."""

TRIAL_SCHEMA: Final = "streamgauge.trial/2"
PROVENANCE_SCHEMA: Final = "streamgauge.provenance/1"
PACKETS_SCHEMA: Final = "streamgauge.packets/3"
EVENTS_SCHEMA: Final = "streamgauge.events/1"

#: Every version that this program reads. A version is added here, and its reader beside it, never taken away.
KNOWN: Final = {
    TRIAL: ("streamgauge.trial/1", TRIAL_SCHEMA),
    PACKETS: ("streamgauge.packets/1", "streamgauge.packets/2", PACKETS_SCHEMA),
    EVENTS: (EVENTS_SCHEMA,),
}

OTHER: Final = "other"
"""The flow of packets of no flow of the scenario; its code is 65535."""
OTHER_CODE: Final = 65535


def check_version(path: Path, found: object, known: Collection[str]) -> str:
    """Returns the schema named by a file, if it is one that can be read.

    Raises:
        RecordError: if it is not.
    """
    if isinstance(found, str) and found in known:
        return found
    raise RecordError(
        f"{path}: schema {found!r} is not one this version reads ({', '.join(known)}); "
        "read it with the StreamGauge that wrote it."
    )
