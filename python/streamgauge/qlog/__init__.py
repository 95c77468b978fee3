"""qlog: the actions of congestion control, written from a record and read from any QUIC stack."""

from streamgauge.qlog.reading import Qlog, read_qlog
from streamgauge.qlog.writing import write_qlogs

__all__ = ["Qlog", "read_qlog", "write_qlogs"]
