//! The packets of a datagram.

use streamgauge_base::Chunk;

use super::ack::AckPacket;
use super::control::{self, BandwidthReport, StreamEnd, TransportInfo, TransportInfoRequest};
use super::data::DataPacket;
use super::fault::Problem;
use super::fields::Fields;
use super::sequence::SequenceNumber;
use crate::body::{Body, Written};

/// Types of packets other than data, which have them where data has its sequence number.
pub mod types {
    /// Takes ASM rules on and off; RTSP does that instead.
    pub const ASM_ACTION: u16 = 0xff00;
    /// [`BandwidthReport`](super::BandwidthReport).
    pub const BANDWIDTH_REPORT: u16 = 0xff01;
    /// [`AckPacket`](super::AckPacket).
    pub const ACK: u16 = 0xff02;
    /// Asks for an [`RTT_RESPONSE`].
    pub const RTT_REQUEST: u16 = 0xff03;
    /// The sender's time.
    pub const RTT_RESPONSE: u16 = 0xff04;
    /// Two multipliers of rates.
    pub const CONGESTION: u16 = 0xff05;
    /// [`StreamEnd`](super::StreamEnd).
    pub const STREAM_END: u16 = 0xff06;
    /// Something between RealNetworks' own ends.
    pub const REPORT: u16 = 0xff07;
    /// The server's time.
    pub const LATENCY_REPORT: u16 = 0xff08;
    /// [`TransportInfoRequest`](super::TransportInfoRequest).
    pub const TRANSPORT_INFO_REQUEST: u16 = 0xff09;
    /// [`TransportInfo`](super::TransportInfo).
    pub const TRANSPORT_INFO: u16 = 0xff0a;
    /// Bytes by which a receiver measures the rate of the path.
    pub const BANDWIDTH_PROBE: u16 = 0xff0b;
}

/// One packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Packet<'a> {
    /// Media.
    Data(DataPacket<'a>),
    /// Received and lost packets.
    Ack(AckPacket),
    /// The round trip is to be measured.
    RttRequest,
    /// The answer: the sender's time of day, which the asker does not read.
    RttResponse {
        /// Seconds.
        seconds: u32,
        /// The microseconds.
        micros: u32,
    },
    /// How to change rates. RealNetworks' players ignore it.
    Congestion {
        /// Buffer for sending.
        send: i32,
        /// Buffer for receiving.
        receive: i32,
    },
    /// A stream has ended.
    StreamEnd(StreamEnd<'a>),
    /// The server's time as it sends this, in ms. It precedes a data packet in the same datagram.
    LatencyReport {
        /// In ms.
        server_time_ms: u32,
    },
    /// A player's received rate.
    BandwidthReport(BandwidthReport),
    /// Asks a player how it fares.
    TransportInfoRequest(TransportInfoRequest),
    /// The answer.
    TransportInfo(TransportInfo),
    /// Well-formed as far as can be determined, and not read. It is written as received.
    Other {
        /// Its type, from 0xff00 on; see [`types`].
        packet_type: u16,
        /// Its first byte.
        flags: u8,
        /// The bytes behind the type, with the length if it has one.
        body: Body<'a>,
    },
}

/// Returns the packets of a datagram, in their order. The first problem is the last item.
pub fn parse<'a>(datagram: impl Into<Body<'a>>) -> Packets<'a> {
    Packets { fields: Fields::of(datagram.into(), 0) }
}

/// See [`parse`].
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    fields: Fields<'a>,
}

impl<'a> Iterator for Packets<'a> {
    type Item = Result<Packet<'a>, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.fields.is_empty() {
            return None;
        }
        let packet = read(&mut self.fields);
        if packet.is_err() {
            self.fields.rest();
        }
        Some(packet)
    }
}

fn read<'a>(fields: &mut Fields<'a>) -> Result<Packet<'a>, Problem> {
    let start = fields.at();
    let flags = fields.u8()?;
    let number = fields.u16()?;
    if let Some(sequence) = SequenceNumber::new(number) {
        return Ok(Packet::Data(DataPacket::read(flags, sequence, start, fields)?));
    }
    Ok(match number {
        types::BANDWIDTH_REPORT => {
            let mut after = fields.clone();
            match BandwidthReport::read(flags, start, &mut after)? {
                Some(report) => {
                    *fields = after;
                    Packet::BandwidthReport(report)
                }
                None => other(number, flags, start, fields)?,
            }
        }
        types::ACK => Packet::Ack(AckPacket::read(flags, start, fields)?),
        types::RTT_REQUEST => Packet::RttRequest,
        types::RTT_RESPONSE => Packet::RttResponse { seconds: fields.u32()?, micros: fields.u32()? },
        types::CONGESTION => {
            Packet::Congestion { send: fields.u32()?.cast_signed(), receive: fields.u32()?.cast_signed() }
        }
        types::STREAM_END => Packet::StreamEnd(StreamEnd::read(flags, fields)?),
        types::LATENCY_REPORT => {
            Packet::LatencyReport { server_time_ms: control::read_latency(flags, start, fields)? }
        }
        types::TRANSPORT_INFO_REQUEST => {
            Packet::TransportInfoRequest(TransportInfoRequest::read(flags, fields)?)
        }
        types::TRANSPORT_INFO => Packet::TransportInfo(TransportInfo::read(flags, fields)?),
        _ => other(number, flags, start, fields)?,
    })
}

/// Returns a packet that is not read. The place of the length in an unknown type is unknown: the packet
/// extends to the end.
fn other<'a>(
    packet_type: u16,
    flags: u8,
    start: usize,
    fields: &mut Fields<'a>,
) -> Result<Packet<'a>, Problem> {
    let at = fields.at();
    let mut inside = fields.clone();
    if packet_type == types::ASM_ACTION {
        // Its sequence number among reliable packets precedes the length.
        inside.u16()?;
    }
    let says_length = flags & control::HAS_LENGTH != 0 && packet_type <= types::BANDWIDTH_PROBE;
    inside.of_length(start, says_length)?;
    let body = fields.part(inside.at() - at)?.rest();
    Ok(Packet::Other { packet_type, flags, body })
}

/// Returns the datagram of `packets`. All but the last have a length, if their type can; filler before
/// another packet becomes zeros. Panics if a packet with a length is above 65535 B.
pub fn write(packets: &[Packet<'_>]) -> Chunk {
    let mut out = Written::with_capacity(packets.iter().map(Packet::room).sum());
    for (index, packet) in packets.iter().enumerate() {
        packet.write_to(index + 1 < packets.len(), &mut out);
    }
    out.into_chunk()
}

impl Packet<'_> {
    /// Returns the packet alone: see [`write`](fn@write).
    pub fn write(&self) -> Chunk {
        write(std::slice::from_ref(self))
    }

    /// Returns the real bytes that it may need; exact for data.
    fn room(&self) -> usize {
        match self {
            Packet::Data(data) => data.header_bytes(false) + data.payload.head().len(),
            Packet::Other { body, .. } => 3 + body.head().len(),
            _ => 16,
        }
    }

    fn write_to(&self, with_length: bool, out: &mut Written) {
        let plain = |out: &mut Written, packet_type: u16, numbers: &[u32]| {
            out.put(&[0]);
            out.put(&packet_type.to_be_bytes());
            numbers.iter().for_each(|number| out.put(&number.to_be_bytes()));
        };
        match self {
            Packet::Data(data) => data.write(with_length, out),
            Packet::Ack(ack) => ack.write(types::ACK, with_length, out),
            Packet::RttRequest => plain(out, types::RTT_REQUEST, &[]),
            Packet::RttResponse { seconds, micros } => plain(out, types::RTT_RESPONSE, &[*seconds, *micros]),
            Packet::Congestion { send, receive } => {
                plain(out, types::CONGESTION, &[send.cast_unsigned(), receive.cast_unsigned()]);
            }
            Packet::StreamEnd(end) => end.write(types::STREAM_END, out),
            Packet::LatencyReport { server_time_ms } => {
                control::write_latency(types::LATENCY_REPORT, *server_time_ms, with_length, out);
            }
            Packet::BandwidthReport(report) => report.write(types::BANDWIDTH_REPORT, with_length, out),
            Packet::TransportInfoRequest(request) => request.write(types::TRANSPORT_INFO_REQUEST, out),
            Packet::TransportInfo(info) => info.write(types::TRANSPORT_INFO, out),
            Packet::Other { packet_type, flags, body } => {
                out.put(&[*flags]);
                out.put(&packet_type.to_be_bytes());
                out.put_body(*body);
            }
        }
    }
}
