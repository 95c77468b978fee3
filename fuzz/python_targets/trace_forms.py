"""Any bytes are the text of a trace, or one error; a table that is read has times that ascend."""

from __future__ import annotations

from streamgauge.input_files import UnfitInputError
from streamgauge.scenario.path.trace_forms import text_of_trace

HEADER = "time_s,rate_kbps\n"


def target(data: bytes) -> None:
    try:
        text = text_of_trace(data, 1_000_000)
    except (UnfitInputError, UnicodeDecodeError) as error:
        assert str(error), "an error without a word"
        return
    if text.startswith(HEADER) and not data.startswith(HEADER.encode()):
        for row in text[len(HEADER) :].splitlines():
            at, rate = row.split(",")
            assert float(at) >= 0 and float(rate) >= 0, row
