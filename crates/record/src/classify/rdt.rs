//! RealNetworks Data Transport, as Wireshark's dissector and FFmpeg's `rdt.c` read it: over UDP, and in frames interleaved
//! with RTSP.

use std::iter;

use streamgauge_base::PacketKind;

use super::reader::{Datagram, DatagramReader, Shown};
use super::sources::Sources;

/// Where data has its sequence number, other packets have their types, from here on.
const SEQUENCE_NUMBERS: u32 = 0xff00;
const ACK: u16 = 0xff02;
const RTT_REQUEST: u16 = 0xff03;
const RTT_RESPONSE: u16 = 0xff04;
const CONGESTION: u16 = 0xff05;
const STREAM_END: u16 = 0xff06;
const TRANSPORT_INFO_REQUEST: u16 = 0xff09;
const TRANSPORT_INFO: u16 = 0xff0a;
const BANDWIDTH_PROBE: u16 = 0xff0b;

/// The RDT of one flow. Every datagram is RDT; nothing in it would identify it.
#[derive(Default)]
pub struct Rdt([Sources<SEQUENCE_NUMBERS>; 2]);

impl DatagramReader for Rdt {
    fn read(&mut self, datagram: &Datagram<'_>) -> Option<Shown> {
        let sources = &mut self.0[datagram.direction as usize];
        let mut first = None;
        let data = packets(datagram.head).filter_map(|packet| Some((stream(packet), sequence(packet)?)));
        for (stream, seq) in data {
            let again = sources.sent(stream, seq);
            first.get_or_insert(Shown { seq: Some(seq.into()), again, kind: None });
        }
        // Where a datagram has several data packets, the first is shown.
        first.or_else(|| kind(datagram.head).map(Shown::kind))
    }
}

/// Returns the kind of packets without media, if they all have none and the first is known: an acknowledgement if one
/// is, or else a probe.
pub fn kind(head: &[u8]) -> Option<PacketKind> {
    let mut found = None;
    for packet in packets(head) {
        let one = match number(packet)? {
            ACK => PacketKind::Ack,
            RTT_REQUEST | RTT_RESPONSE | BANDWIDTH_PROBE => PacketKind::Probe,
            number if u32::from(number) < SEQUENCE_NUMBERS => return None,
            _ => PacketKind::Signalling,
        };
        found = match (found, one) {
            (Some(PacketKind::Ack), _) | (_, PacketKind::Ack) => Some(PacketKind::Ack),
            (Some(PacketKind::Probe), _) => Some(PacketKind::Probe),
            _ => Some(one),
        };
    }
    found
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Returns a sequence number, or a type.
fn number(packet: &[u8]) -> Option<u16> {
    u16_at(packet, 1)
}

/// Returns the number of a data packet.
fn sequence(packet: &[u8]) -> Option<u16> {
    number(packet).filter(|number| u32::from(*number) < SEQUENCE_NUMBERS)
}

/// Returns the stream of a data packet. Where the stream is in 16 bits that are not known, all such streams are one.
fn stream(packet: &[u8]) -> u32 {
    const EXTENDED: u8 = 31;
    match packet[0] >> 1 & EXTENDED {
        EXTENDED => {
            u16_at(packet, if says_length(packet) { 10 } else { 8 }).unwrap_or(EXTENDED.into()).into()
        }
        stream => stream.into(),
    }
}

fn says_length(packet: &[u8]) -> bool {
    packet[0] & 0x80 != 0
}

/// Returns the packets of a datagram or frame that have at least a known number, each with all that is known after it.
fn packets(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let known = |head: &&[u8]| head.len() >= 3;
    iter::successors(Some(head).filter(known), move |packet| packet.get(length(packet)?..).filter(known))
}

/// Returns the length of a packet; `None` if it extends to the end.
fn length(packet: &[u8]) -> Option<usize> {
    let flags = usize::from(packet[0]);
    let bits = |mask: usize| (flags & mask).count_ones() as usize;
    match number(packet)? {
        RTT_REQUEST => Some(3),
        RTT_RESPONSE | CONGESTION => Some(11),
        // Its extensions: the stream, where five bits are too few for it, and the reliable packets.
        STREAM_END if bits(1) == 0 => Some(9 + 2 * usize::from(flags >> 2 & 31 == 31) + 2 * bits(0x80)),
        TRANSPORT_INFO_REQUEST => Some(3 + 4 * bits(2)),
        STREAM_END | TRANSPORT_INFO => None,
        // The action's number is before its length.
        0xff00 if says_length(packet) => u16_at(packet, 5).map(usize::from).filter(|length| *length >= 7),
        _ if says_length(packet) => u16_at(packet, 3).map(usize::from).filter(|length| *length >= 5),
        _ => None,
    }
}
