"""qlog: what congestion control did, written of a record and read of any QUIC stack."""

from streamgauge.qlog.reading import Qlog, read_qlog
from streamgauge.qlog.writing import write_qlogs

__all__ = ["Qlog", "read_qlog", "write_qlogs"]
