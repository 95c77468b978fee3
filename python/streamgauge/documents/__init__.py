"""Files for other programs: JUnit XML, Markdown for a job's summary, each written whole or not at all."""

from streamgauge.documents.files import cannot_write, check_place, write_whole
from streamgauge.documents.junit import JunitCase, JunitOutcome, JunitSuite, junit_xml
from streamgauge.documents.markdown import Summary, plain, table
from streamgauge.documents.plot import PlottedInterval, interval_plot

__all__ = [
    "JunitCase",
    "JunitOutcome",
    "JunitSuite",
    "PlottedInterval",
    "Summary",
    "cannot_write",
    "check_place",
    "interval_plot",
    "junit_xml",
    "plain",
    "table",
    "write_whole",
]
