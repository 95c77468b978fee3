"""A player of Windows Media of a few lines, for saying to a server what no player would."""

from __future__ import annotations

import re
import struct

from rtsp_client import Answer, Client, Pair, udp_pair

RTP_BYTES = 12
PAYLOAD_BYTES = 4
"""What is in front of a packet of ASF that is whole and says no time."""


def stream_of(datagram: bytes) -> int:
    """The number of the stream that a packet of RTP has media of."""
    packet = datagram[RTP_BYTES + PAYLOAD_BYTES :]
    is_multiple = packet[3] & 1
    return packet[13 + is_multiple] & 0x7F


def nack(rtx_ssrc: int, media_ssrc: int, *sequences: int) -> bytes:
    """A compound of RTCP that says that these packets are lost ([MS-RTSP] section 2.2.4)."""
    cname = f"{rtx_ssrc}@WMS:7ff42e07-3c7c-4eb5-9c17-6bdd11ad90de".encode()
    item = struct.pack("!IBB", rtx_ssrc, 1, len(cname)) + cname
    item += bytes(4 - len(item) % 4)
    lost = b"".join(struct.pack("!HH", sequence, 0) for sequence in sequences)
    return (
        struct.pack("!BBHI", 0x80, 201, 1, rtx_ssrc)
        + struct.pack("!BBH", 0x81, 202, len(item) // 4)
        + item
        + struct.pack("!BBHII", 0x91, 205, 2 + len(lost) // 4, rtx_ssrc, media_ssrc)
        + lost
    )


class WmsClient(Client):
    """One connection. All streams share one pair of ports; what is sent again has another."""

    again: Pair | None = None

    def set_up(self, *streams: int, transport: str = "udp") -> None:
        """As far as SETUP: of these streams, over UDP behind that of what is sent again."""
        if transport == "udp":
            self.again = self._set_up_pair("rtx", None)
            pair: Pair | None = None
            for number in streams:
                pair = self._set_up_pair(f"stream={number}", pair)
            return
        for place, number in enumerate(streams):
            wanted = f"RTP/AVP/TCP;unicast;interleaved={2 * place}-{2 * place + 1}"
            self._made(self.ask("SETUP", f"{self.url}/stream={number}", Transport=wanted))

    def _set_up_pair(self, control: str, pair: Pair | None) -> Pair:
        if pair is None:
            pair = udp_pair()
            self.pairs.append(pair)
        port = pair.rtp.getsockname()[1]
        wanted = f"RTP/AVP/UDP;unicast;client_port={port}-{port + 1}"
        made = self._made(self.ask("SETUP", f"{self.url}/{control}", Transport=wanted))
        found = re.search(r"server_port=(\d+)-(\d+)", made.headers["transport"])
        assert found, made
        pair.server_rtcp = int(found.group(2))
        return pair

    def _made(self, made: Answer) -> Answer:
        assert made.status == 200, made
        self.session = made.headers["session"].partition(";")[0]
        return made

    def play_streams(self, *streams: int, transport: str = "udp", **headers: str) -> Answer:
        """As far as PLAY."""
        self.set_up(*streams, transport=transport)
        played = self.ask("PLAY", Range="npt=0.000-", **headers)
        assert played.status == 200, played
        return played

    def tell(self, kind: str, body: str) -> Answer:
        """SET_PARAMETER with a body of that kind."""
        self.send_body(kind, body)
        return self.answer()

    def send_body(self, kind: str, body: str) -> None:
        """The same, for whose answer it does not wait."""
        self._cseq += 1
        lines = [f"SET_PARAMETER {self.url} RTSP/1.0", f"CSeq: {self._cseq}"]
        lines += [f"Session: {self.session}"] if self.session else []
        lines += [f"Content-Type: {kind}", f"Content-Length: {len(body)}", "", body]
        self.say("\r\n".join(lines).encode())

    def switch(self, old: int, new: int, level: int = 0) -> Answer:
        """Asks for one stream in another's place."""
        urls = f"{self.url}/stream={old} {self.url}/stream={new}"
        return self.tell("application/x-wms-streamswitch", f"SSEntry: {old} {new} {level} {urls}\r\n")

    def say_lost(self, datagram: bytes) -> None:
        """RTCP, on the ports of what is sent again."""
        assert self.again is not None
        self.again.rtcp.sendto(datagram, ("127.0.0.1", self.again.server_rtcp))
