//! One classifier for both modes: what a packet carries, from its headers alone.
//!
//! It sits where packets enter the path, so that it sees each one once and in the order it was sent. What a
//! machine itself knows (a retransmission under RFC 4588, which has an SSRC of its own) goes to events.

mod rtp;
mod rtsp;
mod tcp;

use streamgauge_base::{Direction, FlowId, Headers, PacketInfo, PacketKind, Transport, packet_flags};

/// Keeps, per flow and direction, what it needs to know a retransmission.
pub struct Classifier {
    /// Two a flow, down then up; the last two are those of "other".
    senders: Vec<Sender>,
}

#[derive(Default)]
struct Sender {
    /// `None` for the flow "other", whose payload is neither media nor cross traffic.
    subject: Option<bool>,
    tcp: tcp::Connections,
    rtp: rtp::Sources,
}

impl Classifier {
    /// For flows of which `subjects` says, by code, whether their role is subject.
    pub fn new(subjects: &[bool]) -> Self {
        let roles = subjects.iter().map(|&s| Some(s)).chain([None]);
        let senders = roles.flat_map(|subject| [(); 2].map(|()| Sender { subject, ..Sender::default() }));
        Classifier { senders: senders.collect() }
    }

    /// Says what a packet carries. `connection` tells the flow's transport connections apart: the hash of
    /// addresses and ports in [`Item::hash`](streamgauge_base::Item::hash).
    ///
    /// - TCP without payload: SYN, FIN and RST are signalling, the rest acknowledgements.
    /// - TCP payload: RTSP text (RFC 2326) is signalling. An interleaved frame that fills its segment and holds
    ///   RTCP is RTCP; all other payload is media of a subject, cross traffic of a rival.
    /// - UDP: RTCP by its payload type (RFC 5761 section 4), and with an acknowledgement of Apple's Reliable UDP in it
    ///   an acknowledgement; else payload as above. RTP gives `seq`.
    /// - ICMP echo is a probe.
    ///
    /// `seq` is TCP's or RTP's. The retransmit flag says that some of the TCP bytes (or the SYN or FIN), or this
    /// RTP sequence number, were sent before.
    pub fn classify(
        &mut self,
        flow: FlowId,
        direction: Direction,
        connection: u32,
        headers: &Headers<'_>,
    ) -> PacketInfo {
        let flow = usize::from(flow.0).min(self.senders.len() / 2 - 1);
        let sender = &mut self.senders[2 * flow + direction as usize];
        let payload = match sender.subject {
            Some(true) => PacketKind::Media,
            Some(false) => PacketKind::Cross,
            None => PacketKind::Other,
        };
        let head = headers.payload_head;
        let (kind, seq, again) = match headers.transport {
            Transport::Tcp { seq, flags, .. } => {
                let again = sender.tcp.sent(connection, seq, headers.payload_bytes, flags);
                let kind = if flags & (tcp::SYN | tcp::RST) != 0 {
                    PacketKind::Signalling
                } else if headers.payload_bytes == 0 {
                    if flags & tcp::FIN != 0 { PacketKind::Signalling } else { PacketKind::Ack }
                } else if rtsp::is_message(head) {
                    PacketKind::Signalling
                } else if rtsp::is_interleaved_rtcp(head, headers.payload_bytes) {
                    PacketKind::Rtcp
                } else {
                    payload
                };
                (kind, Some(seq), again)
            }
            Transport::Udp if rtp::is_rtcp(head, headers.payload_bytes) => {
                let kind = if rtp::acknowledges(head) { PacketKind::Ack } else { PacketKind::Rtcp };
                (kind, None, false)
            }
            Transport::Udp => match rtp::parse(head) {
                Some(packet) => {
                    (payload, Some(u32::from(packet.seq)), sender.rtp.sent(packet.ssrc, packet.seq))
                }
                None => (payload, None, false),
            },
            Transport::IcmpEcho { seq } => (PacketKind::Probe, Some(u32::from(seq)), false),
            Transport::Other => (PacketKind::Other, None, false),
        };
        let flags = if again { packet_flags::RETRANSMIT } else { 0 };
        let (header_bytes, payload_bytes) = (headers.header_bytes, headers.payload_bytes);
        PacketInfo { kind, flags, header_bytes, payload_bytes, seq }
    }
}

#[cfg(test)]
mod tests;
