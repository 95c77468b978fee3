"""Any bytes are a baseline or a file that is refused by name."""

from __future__ import annotations

import tempfile
from pathlib import Path

from streamgauge.compare.baseline import load_baseline
from streamgauge.errors import RecordError

FILE = Path(tempfile.mkdtemp(prefix="streamgauge-fuzz-")) / "baseline.json"


def target(data: bytes) -> None:
    FILE.write_bytes(data)
    try:
        load_baseline(FILE)
    except RecordError as error:
        assert FILE.name in str(error)
