"""What the ends of a link count by themselves, of /proc/net/dev."""

from __future__ import annotations

import pytest
from streamgauge.emu.errors import TrialBrokenError
from streamgauge.link_command.testbed import _received

TEXT = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls
    lo:     840      10    0    0    0     0          0         0      840      10    0    0    0     0
  eth0:   64230      45    0    0    0     0          0         0     3120      52    0    0    0     0
"""


def test_packets_of_an_interface() -> None:
    assert _received(TEXT, "eth0") == 45
    assert _received(TEXT, "lo") == 10


@pytest.mark.parametrize("text", ["", TEXT])
def test_what_is_not_counted_is_not_zero(text: str) -> None:
    with pytest.raises(TrialBrokenError, match="no interface eth1"):
        _received(text, "eth1")
