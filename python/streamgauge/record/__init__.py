"""The record: the files of a trial, the same from sim and from emu.

`Record.open` reads one; `finish_trial` completes one with its packets and events already written;
`write_events` writes the events of a trial in emu (sim writes its own).
"""

from streamgauge.record.provenance import collect as collect_provenance
from streamgauge.record.read import CheckedRecord, Record, RecordInMemory
from streamgauge.record.write import finish_trial, legend, prune, rewrite_trial, write_events

__all__ = [
    "CheckedRecord",
    "Record",
    "RecordInMemory",
    "collect_provenance",
    "finish_trial",
    "legend",
    "prune",
    "rewrite_trial",
    "write_events",
]
