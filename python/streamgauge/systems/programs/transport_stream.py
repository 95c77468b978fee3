"""The pictures in an MPEG transport stream (ISO/IEC 13818-1), as a receiver's program delivers it.

Copied beside the scripts that use it. Needs nothing but the standard library.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

PACKET_BYTES = 188
SYNC = 0x47
VIDEO_TYPES = frozenset({0x01, 0x02, 0x10, 0x1B, 0x24})
"""Stream types of pictures: MPEG-1, MPEG-2, MPEG-4, H.264, H.265."""
TICKS_PER_S = 90_000
STAMPS = 1 << 33
"""Time stamps begin anew after so many ticks."""


@dataclass
class Picture:
    """One picture, as far as it was delivered."""

    stamp: int
    """Presentation time, ticks of 90 kHz."""
    at_s: float
    """When its last packet was delivered."""
    is_whole: bool = True


class PictureReader:
    """Reads pictures out of packets that may be missing.

    A picture is whole if no packet of its stream is missing from its first to its last, by their continuity
    counters. A run of exactly 16 missing packets is not noticed (section 2.4.3.3: the counter has 4 bits).
    """

    def __init__(self) -> None:
        self.faults = 0
        """Bytes that were passed over, as they are no packet."""
        self._is_in_step = True
        self._rest = b""
        self._programs: set[int] = set()
        self._video: int | None = None
        self.counter: int | None = None
        self._picture: Picture | None = None

    def push(self, data: bytes, at_s: float) -> Iterator[Picture]:
        """Yields the pictures that are known to be over, with `data` delivered at `at_s`."""
        data = self._rest + data
        place, end = 0, len(data)
        while end - place >= PACKET_BYTES:
            follows = place + PACKET_BYTES
            # After a fault one byte may look like a packet's first: the next packet's first decides.
            is_next = self._is_in_step or follows >= end or data[follows] == SYNC
            self._is_in_step = data[place] == SYNC and is_next
            if not self._is_in_step:
                place += 1
                self.faults += 1
                continue
            done = self._packet(data[place:follows], at_s)
            if done is not None:
                yield done
            place = follows
        self._rest = data[place:]

    def finish(self) -> Iterator[Picture]:
        """Yields the last picture."""
        if self._picture is not None:
            yield self._picture
        self._picture = None

    def _packet(self, packet: bytes, at_s: float) -> Picture | None:
        pid = (packet[1] & 0x1F) << 8 | packet[2]
        begins, control, counter = bool(packet[1] & 0x40), packet[3] >> 4 & 3, packet[3] & 15
        start = 4
        if control & 2:
            start += 1 + packet[4]
        if not control & 1 or start >= PACKET_BYTES:
            return None
        if pid == 0 or pid in self._programs:
            if begins:
                self._table(pid, packet[start:])
            return None
        if pid != self._video:
            return None
        missing = self.counter is not None and counter != (self.counter + 1) & 15
        repeated = self.counter == counter
        self.counter = counter
        if repeated:
            return None
        picture, done = self._picture, None
        if missing and picture is not None:
            picture.is_whole = False
        if begins:
            stamp = _stamp(packet[start:])
            done, self._picture = picture, None if stamp is None else Picture(stamp, at_s)
        elif picture is not None:
            picture.at_s = at_s
        return done

    def _table(self, pid: int, payload: bytes) -> None:
        """Reads the program association or program map (sections 2.4.4.3, 2.4.4.8) of one packet."""
        section = payload[1 + payload[0] :]
        if len(section) < 12:
            return
        body = section[: 3 + ((section[1] & 0x0F) << 8 | section[2]) - 4]
        if pid == 0 and body[0] == 0:
            for place in range(8, len(body) - 3, 4):
                if body[place] or body[place + 1]:
                    self._programs.add((body[place + 2] & 0x1F) << 8 | body[place + 3])
        elif body[0] == 2 and len(body) >= 12:
            place = 12 + ((body[10] & 0x0F) << 8 | body[11])
            while place + 4 < len(body):
                if self._video is None and body[place] in VIDEO_TYPES:
                    self._video = (body[place + 1] & 0x1F) << 8 | body[place + 2]
                place += 5 + ((body[place + 3] & 0x0F) << 8 | body[place + 4])


def _stamp(payload: bytes) -> int | None:
    """Returns the presentation time in the header of a packetised elementary stream (section 2.4.3.6)."""
    if len(payload) < 14 or payload[:3] != b"\0\0\1" or not payload[7] & 0x80:
        return None
    one, two, three, four, five = payload[9:14]
    return (one >> 1 & 7) << 30 | two << 22 | (three >> 1) << 15 | four << 7 | five >> 1


class Numbered:
    """The pictures of a clip by number: each is delivered or missing."""

    DEPTH = 16
    """Pictures that may be sent before one that is shown earlier (ISO/IEC 14496-10, max_num_reorder)."""

    def __init__(self, interval_s: float, count: int) -> None:
        self._ticks = interval_s * TICKS_PER_S
        self.count = count
        self.after = 0
        """One more than the highest number that was delivered."""
        self._judged = 0
        self._delivered: set[int] = set()

    def number(self, picture: Picture) -> int | None:
        """Returns the number of a picture of the clip, from 0; None for a repeated or a foreign one."""
        signed = (picture.stamp + STAMPS // 2) % STAMPS - STAMPS // 2
        number = round(signed / self._ticks)
        if not self._judged <= number < self.count or number in self._delivered:
            return None
        self._delivered.add(number)
        self.after = max(self.after, number + 1)
        return number

    def missing(self, before: int) -> list[int]:
        """Returns the missing pictures before that number, each once."""
        before = min(before, self.count)
        found = [number for number in range(self._judged, before) if number not in self._delivered]
        self._judged = max(self._judged, before)
        self._delivered = {number for number in self._delivered if number >= self._judged}
        return found
