//! One packet several times in one file: at each interface of `-i any`, or at two places.

use std::collections::{HashMap, VecDeque};

use crate::hash::{Mixed, mix};
use crate::packet::{Packet, PacketTransport};

/// Packets among which a copy is looked for.
const REMEMBERED: usize = 4096;
/// Copies of one packet are no farther apart (ns).
const APART_NS: i64 = 200_000_000;
/// At least two of so many of the first packets must be copies: of a packet seen twice every second one is.
const SHARE: usize = 5;
const FEWEST: usize = 8;
/// Bytes of the payload that identify a packet.
pub const PAYLOAD_BYTES: usize = 16;

/// Identifies a packet wherever it passes: no field that routers change, and no checksum, which cards fill in late.
/// `payload` bytes of its payload count, as many as both captures have.
pub fn fingerprint(packet: &Packet<'_>, payload: usize) -> u64 {
    let mut hash = mix(packet.source.address.0 as u64 ^ (packet.source.address.0 >> 64) as u64, 1);
    hash = mix(hash ^ packet.destination.address.0 as u64 ^ (packet.destination.address.0 >> 64) as u64, 2);
    let ports = u64::from(packet.source.port) << 16 | u64::from(packet.destination.port);
    hash =
        mix(hash ^ ports << 32 ^ u64::from(packet.identification.unwrap_or(0)), u64::from(packet.protocol));
    hash = mix(hash ^ u64::from(packet.ip_bytes), u64::from(packet.fragment_offset));
    if let PacketTransport::Tcp(tcp) = packet.transport {
        hash = mix(
            hash ^ (u64::from(tcp.seq) << 32 | u64::from(tcp.ack)),
            u64::from(tcp.flags) << 16 | u64::from(tcp.window),
        );
        // Time stamps and SACK blocks distinguish acknowledgements.
        for word in tcp.options.chunks_exact(4) {
            hash = mix(hash ^ u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]])), 3);
        }
    }
    let known = &packet.payload[..packet.payload.len().min(payload)];
    for part in known.chunks(8) {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        hash = mix(hash ^ u64::from_le_bytes(word), 4);
    }
    hash
}

/// Finds copies as packets come.
#[derive(Default)]
pub struct Copies {
    seen: HashMap<u64, (i64, u32), Mixed>,
    order: VecDeque<u64>,
}

impl Copies {
    /// When, and at which interface, the packet was seen lately.
    pub fn before(&mut self, packet: &Packet<'_>) -> Option<(i64, u32)> {
        let print = fingerprint(packet, PAYLOAD_BYTES);
        if let Some(&(at_ns, interface)) = self.seen.get(&print)
            && (packet.at_ns - at_ns).abs() <= APART_NS
        {
            return Some((at_ns, interface));
        }
        if self.seen.insert(print, (packet.at_ns, packet.interface)).is_none() {
            self.order.push_back(print);
            if self.order.len() > REMEMBERED {
                self.order.pop_front().map(|oldest| self.seen.remove(&oldest));
            }
        }
        None
    }
}

/// The findings of the first packets of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Survey {
    /// Packets that were looked at.
    pub packets: usize,
    /// Copies of others among them.
    pub copies: usize,
    /// Times between copies at two interfaces (ns).
    pub apart_ns: Vec<i64>,
    /// Bytes of the payload that all of them have, or all that they had on the wire.
    pub payload: usize,
}

impl Default for Survey {
    fn default() -> Self {
        Survey { packets: 0, copies: 0, apart_ns: Vec::new(), payload: PAYLOAD_BYTES }
    }
}

impl Survey {
    /// Whether the rest of the file is to be searched for copies.
    pub fn has_copies(&self) -> bool {
        self.packets >= FEWEST && self.copies * SHARE >= self.packets * 2
    }

    /// Adds a packet.
    pub fn add(&mut self, copies: &mut Copies, packet: &Packet<'_>) {
        self.packets += 1;
        if (packet.payload.len() as u32) < packet.payload_bytes {
            self.payload = self.payload.min(packet.payload.len());
        }
        if let Some((at_ns, interface)) = copies.before(packet) {
            self.copies += 1;
            if interface != packet.interface {
                self.apart_ns.push(packet.at_ns - at_ns);
            }
        }
    }
}
