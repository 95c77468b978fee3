"""Files for other programs: JUnit XML, Markdown for a job's summary, each written whole or not at all."""

from streamgauge.documents.files import check_place, write_whole
from streamgauge.documents.junit import JunitCase, JunitOutcome, JunitSuite, junit_xml
from streamgauge.documents.markdown import Summary, plain, table

__all__ = [
    "JunitCase",
    "JunitOutcome",
    "JunitSuite",
    "Summary",
    "check_place",
    "junit_xml",
    "plain",
    "table",
    "write_whole",
]
