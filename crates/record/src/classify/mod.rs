//! One classifier for both modes: the content of a packet, from its headers and its flow's protocol.
//!
//! It sits where packets enter the path, so that it sees each one once and in the order it was sent. Facts that only a
//! machine has (a retransmission under RFC 4588, which has an SSRC of its own) are in events.
//!
//! For protocols with messages that have a start line of text it also returns each message when it is first sent
//! ([`Message`]), as far as that line begins a segment or follows another message in one.
//!
//! A protocol is a file here, a variant of [`StreamProtocol`] or [`DatagramProtocol`] (or of both), and its line in
//! [`stream_reader`] or [`datagram_reader`].

mod http;
mod messages;
mod ndn;
mod quic;
mod rdt;
mod reader;
mod reliable_udp;
mod rist;
mod rtp;
mod rtsp;
mod sources;
mod srt;
mod tcp;

use streamgauge_base::{
    Direction, Event, FlowId, Headers, Instant, PacketInfo, PacketKind, TransportHeader, packet_flags,
};
use streamgauge_plan::{DatagramProtocol, Protocols, Role, StreamProtocol, direction_name};

use reader::{Datagram, DatagramReader, Segment, StreamReader};

/// Returns the reader of a connection's protocol; none where there is nothing to be read.
fn stream_reader(protocol: StreamProtocol) -> Option<Box<dyn StreamReader>> {
    match protocol {
        StreamProtocol::Opaque => None,
        StreamProtocol::Http => Some(Box::new(http::Http::default())),
        StreamProtocol::Ndn => Some(Box::new(ndn::Streams)),
        StreamProtocol::Rtsp => Some(Box::new(rtsp::Rtsp::with_rtp())),
        StreamProtocol::RtspRdt => Some(Box::new(rtsp::Rtsp::with_rdt())),
    }
}

/// Returns the reader of a datagram protocol; none where there is nothing to be read.
fn datagram_reader(protocol: DatagramProtocol) -> Option<Box<dyn DatagramReader>> {
    match protocol {
        DatagramProtocol::Opaque => None,
        DatagramProtocol::Ndn => Some(Box::new(ndn::Datagrams::default())),
        DatagramProtocol::Quic => Some(Box::new(quic::Quic { told: true })),
        DatagramProtocol::Rdt => Some(Box::new(rdt::Rdt::default())),
        DatagramProtocol::ReliableUdp => Some(Box::new(reliable_udp::ReliableUdp::told())),
        DatagramProtocol::Rtp => Some(Box::new(rtp::Rtp::told())),
        DatagramProtocol::Srt => Some(Box::new(srt::Srt)),
        DatagramProtocol::Rist => Some(Box::new(rist::Rist)),
    }
}

/// Returns the readers for connections without a given protocol: those that are certain at first sight.
fn guessed_streams() -> Vec<Box<dyn StreamReader>> {
    vec![Box::new(rtsp::Rtsp::with_rtp()), Box::new(http::Http::default())]
}

/// Returns the readers for datagrams without a given protocol.
fn guessed_datagrams() -> Vec<Box<dyn DatagramReader>> {
    vec![Box::new(reliable_udp::ReliableUdp::guessed()), Box::new(quic::Quic { told: false })]
}

/// Keeps, per flow, the state that recognises messages and retransmissions.
pub struct Classifier {
    /// By code; the last is "other".
    flows: Vec<Flow>,
    /// Not yet returned.
    messages: Vec<Message>,
}

/// A message of an application that was sent for the first time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// The sender's flow.
    pub flow: FlowId,
    /// Its direction.
    pub direction: Direction,
    /// On which of its flow's connections, as [`PacketInfo::connection`].
    pub connection: u32,
    /// A request's method and target, an answer's code and phrase.
    pub text: String,
}

impl Message {
    /// Returns it as the record has it: the event `message`, with the connection's number as value and its direction
    /// and content as reason, as in `up GET /clip.mp4`. `at` is when the path was given the packet that it begins in.
    pub fn event(self, at: Instant) -> Event {
        Event {
            at,
            flow: Some(self.flow),
            name: "message".into(),
            value: Some(f64::from(self.connection)),
            unit: "1".into(),
            reason: format!("{} {}", direction_name(self.direction), self.text).into(),
        }
    }
}

struct Flow {
    /// Kind of its payload.
    payload: PacketKind,
    connections: tcp::Connections,
    /// `None`: no protocol is given for connections, and no payload was sent on any.
    streams: Option<Vec<Box<dyn StreamReader>>>,
    /// `None`: no protocol is given for datagrams, and none was sent.
    datagrams: Option<Vec<Box<dyn DatagramReader>>>,
}

impl Flow {
    fn new(payload: PacketKind, told: &Protocols) -> Self {
        let streams = told.tcp.iter().filter_map(|&protocol| stream_reader(protocol));
        let streams = (!told.tcp.is_empty()).then(|| streams.collect());
        let datagrams = told.udp.iter().filter_map(|&protocol| datagram_reader(protocol));
        let datagrams = (!told.udp.is_empty()).then(|| datagrams.collect());
        Flow { payload, connections: tcp::Connections::default(), streams, datagrams }
    }
}

impl Classifier {
    /// Makes a classifier for flows, by code, of this role with these protocols.
    pub fn new(flows: impl IntoIterator<Item = (Role, Protocols)>) -> Self {
        let flows = flows.into_iter().map(|(role, protocols)| {
            let payload = match role {
                Role::Subject => PacketKind::Media,
                Role::Rival => PacketKind::Cross,
            };
            Flow::new(payload, &protocols)
        });
        let other = Flow::new(PacketKind::Other, &Protocols::default());
        Classifier { flows: flows.chain([other]).collect(), messages: Vec::new() }
    }

    /// Returns whether there may be messages in a flow's TCP data.
    #[inline]
    pub fn reads_messages(&self, flow: FlowId) -> bool {
        let flow = &self.flows[usize::from(flow.0).min(self.flows.len() - 1)];
        flow.streams.as_ref().is_none_or(|readers| !readers.is_empty())
    }

    /// Returns whether [`take_messages`](Self::take_messages) has any.
    #[inline]
    pub fn has_messages(&self) -> bool {
        !self.messages.is_empty()
    }

    /// Returns the messages that began in the packets classified since the last call, in order.
    pub fn take_messages(&mut self) -> impl Iterator<Item = Message> {
        self.messages.drain(..)
    }

    /// Classifies a packet. `ports` identifies the two ends of its TCP connection, the same for both directions.
    ///
    /// - TCP without payload: SYN, FIN and RST are signalling, the rest acknowledgements.
    /// - TCP payload and UDP: the result of the reader of the flow's protocol. Where no protocol is given for the
    ///   carrier, only certain RTSP, HTTP, RTP, Reliable UDP or QUIC is recognised. The rest is media of a subject,
    ///   cross traffic of another flow.
    /// - ICMP echo is a probe.
    ///
    /// `seq` is TCP's or, in UDP, RTP's, RDT's or that of a segment of NDN. The retransmit flag shows that some of the
    /// TCP bytes (or the SYN or FIN), or this number of the same source, were sent before.
    pub fn classify(
        &mut self,
        flow: FlowId,
        direction: Direction,
        ports: u64,
        headers: &Headers<'_>,
    ) -> PacketInfo {
        let other = self.flows.len() - 1;
        let index = usize::from(flow.0).min(other);
        let Classifier { flows, messages } = self;
        let Flow { payload, connections, streams, datagrams } = &mut flows[index];
        let (bytes, head) = (headers.payload_bytes, headers.payload_head);
        let mut connection = None;
        let (kind, seq, again) = match headers.transport {
            TransportHeader::Tcp { seq, flags, .. } => {
                let sent = connections.sent(ports, direction, seq, bytes, flags);
                connection = Some(sent.connection);
                let kind = if flags & (tcp::SYN | tcp::RST) != 0 {
                    PacketKind::Signalling
                } else if bytes == 0 {
                    if flags & tcp::FIN != 0 { PacketKind::Signalling } else { PacketKind::Ack }
                } else {
                    let segment = Segment { direction, connection: sent.connection, seq, bytes, head };
                    let streams = streams.get_or_insert_with(guessed_streams);
                    let connection = sent.connection;
                    let mut say = |text| {
                        // A packet of no flow belongs to no message.
                        if index < other {
                            messages.push(Message { flow, direction, connection, text });
                        }
                    };
                    streams.iter_mut().find_map(|reader| reader.read(&segment, &mut say)).unwrap_or(*payload)
                };
                (kind, Some(seq), sent.again)
            }
            TransportHeader::Udp => {
                let datagram = Datagram { direction, bytes, head };
                let datagrams = datagrams.get_or_insert_with(guessed_datagrams);
                let shown =
                    datagrams.iter_mut().find_map(|reader| reader.read(&datagram)).unwrap_or_default();
                (shown.kind.unwrap_or(*payload), shown.seq, shown.again)
            }
            TransportHeader::IcmpEcho { seq } => (PacketKind::Probe, Some(u32::from(seq)), false),
            TransportHeader::Other => (PacketKind::Other, None, false),
        };
        let flags = if again { packet_flags::RETRANSMIT } else { 0 };
        PacketInfo { kind, flags, header_bytes: headers.header_bytes, payload_bytes: bytes, seq, connection }
    }
}

#[cfg(test)]
mod tests;
