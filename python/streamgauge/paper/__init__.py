"""A paper reproduced: tables beside ours, figures in its own form, and which reading of it explains it."""

from streamgauge.paper.by_reading import PaperByReading, by_reading_json, by_reading_text, joined
from streamgauge.paper.claims import claims_of, claims_text
from streamgauge.paper.comparison import ComparedCheck, compare, comparison_text
from streamgauge.paper.figures import draw
from streamgauge.paper.numbered import outcomes_of, stating
from streamgauge.paper.page import write_page
from streamgauge.paper.published import Paper, papers
from streamgauge.paper.reading import Reading, read
from streamgauge.paper.sent import SentPackets, flows_of_packets
from streamgauge.paper.tables import table_json, tables_text

__all__ = [
    "ComparedCheck",
    "Paper",
    "PaperByReading",
    "Reading",
    "SentPackets",
    "by_reading_json",
    "by_reading_text",
    "claims_of",
    "claims_text",
    "compare",
    "comparison_text",
    "draw",
    "flows_of_packets",
    "joined",
    "outcomes_of",
    "papers",
    "read",
    "stating",
    "table_json",
    "tables_text",
    "write_page",
]
