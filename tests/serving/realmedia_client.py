"""A player of RDT of a few lines, for saying to a server what no player would."""

from __future__ import annotations

import re
import struct

from rtsp_client import Answer, Client, udp_pair

ACK = 0xFF02


def nak(stream: int, last: int, before: int) -> bytes:
    """Says that packet `last` of a stream and as many `before` it are lost."""
    lost_high = 0x40
    bitmap = bytes((before + 7) // 8)
    return struct.pack("!BHHHHB", lost_high, ACK, stream, last, before, len(bitmap)) + bitmap


class RealClient(Client):
    """One connection."""

    def set_up(self, *, transport: str, tracks: int | None = None) -> None:
        """As far as SETUP. Of a UDP pair the first alone is used."""
        for number, control in enumerate(self.controls()[:tracks]):
            wanted = f"x-pn-tng/tcp;mode=play;interleaved={number}"
            if transport == "udp":
                self.pairs.append(udp_pair())
                port = self.pairs[-1].rtp.getsockname()[1]
                wanted = f"x-real-rdt/udp;client_port={port};mode=play"
            made = self.ask("SETUP", control, Transport=wanted)
            assert made.status == 200, made
            self.session = made.headers["session"].partition(";")[0]
            if transport == "udp":
                found = re.search(r"server_port=(\d+)", made.headers["transport"])
                assert found, made
                self.pairs[-1].server_rtcp = int(found.group(1))

    def play_rdt(self, *, transport: str = "udp", tracks: int | None = None, **headers: str) -> Answer:
        """As far as PLAY."""
        self.set_up(transport=transport, tracks=tracks)
        played = self.ask("PLAY", Range="npt=0-", **headers)
        assert played.status == 200, played
        return played

    def tell_parameter(self, header: str, value: str) -> None:
        """SET_PARAMETER, for whose answer it does not wait."""
        self._cseq += 1
        lines = [f"SET_PARAMETER {self.url} RTSP/1.0", f"CSeq: {self._cseq}", f"Session: {self.session}"]
        self.say("\r\n".join([*lines, f"{header}: {value}", "", ""]).encode())

    def tell(self, datagram: bytes) -> None:
        """RDT by UDP, on the first stream's ports."""
        pair = self.pairs[0]
        pair.rtp.sendto(datagram, ("127.0.0.1", pair.server_rtcp))
