"""Any bytes are what a trial says of itself, or a record that is refused by name."""

from __future__ import annotations

import tempfile
from pathlib import Path

from streamgauge.errors import RecordError
from streamgauge.record import Record

FOLDER = Path(tempfile.mkdtemp(prefix="streamgauge-fuzz-"))


def target(data: bytes) -> None:
    (FOLDER / "trial.json").write_bytes(data)
    try:
        Record.open(FOLDER)
    except RecordError as error:
        assert str(FOLDER) in str(error)
