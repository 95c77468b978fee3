//! Named Data Networking (NDN Packet Format Specification 0.3, NDNLPv2): Interests ask and are signalling, Data are payload,
//! by the numbers of their segments.

use std::collections::HashSet;

use streamgauge_base::{Direction, PacketKind};

use super::reader::{Datagram, DatagramReader, Say, Segment, Shown, StreamReader};

const INTEREST: u64 = 5;
const DATA: u64 = 6;
const NAME: u64 = 7;
const SEGMENT: u64 = 50;
const FRAGMENT: u64 = 80;
const FRAG_INDEX: u64 = 82;
const LP_PACKET: u64 = 100;
const NACK: u64 = 800;

/// Names that are kept to recognise repeats: a trial has no more of them that matter.
const MOST_NAMES: usize = 1 << 20;

/// NDN over UDP.
#[derive(Default)]
pub struct Datagrams {
    /// Digests of the names of Data that were sent.
    sent: HashSet<u64>,
}

/// NDN over TCP: the consumer sends Interests alone, the producer Data.
#[derive(Default)]
pub struct Streams;

impl DatagramReader for Datagrams {
    fn read(&mut self, datagram: &Datagram<'_>) -> Option<Shown> {
        let signalling = Some(Shown::kind(PacketKind::Signalling));
        match outer(datagram.head)? {
            Outer::Packet(INTEREST, _) | Outer::Nack => signalling,
            Outer::Packet(DATA, value) => Some(self.data(value)),
            // A fragment of a packet that begins in another datagram.
            Outer::Rest => Some(Shown::default()),
            Outer::Packet(..) => None,
        }
    }
}

impl Datagrams {
    fn data(&mut self, value: &[u8]) -> Shown {
        let Some((NAME, name, _)) = element(value) else { return Shown::default() };
        let seq = segment(name);
        let again = !self.sent.insert(digest(name)) && seq.is_some();
        if self.sent.len() > MOST_NAMES {
            self.sent.clear();
        }
        Shown { seq, again, ..Shown::default() }
    }
}

impl StreamReader for Streams {
    fn read(&mut self, segment: &Segment<'_>, _: &mut Say<'_>) -> Option<PacketKind> {
        (segment.direction == Direction::Up).then_some(PacketKind::Signalling)
    }
}

enum Outer<'a> {
    Packet(u64, &'a [u8]),
    Nack,
    Rest,
}

/// Returns the content of a datagram.
fn outer(head: &[u8]) -> Option<Outer<'_>> {
    let (kind, mut value, _) = element(head)?;
    if kind != LP_PACKET {
        return Some(Outer::Packet(kind, value));
    }
    let (mut is_nack, mut index) = (false, 0);
    while let Some((kind, inside, rest)) = element(value) {
        match kind {
            NACK => is_nack = true,
            FRAG_INDEX => index = inside.iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte)),
            FRAGMENT if index > 0 => return Some(Outer::Rest),
            FRAGMENT if is_nack => return Some(Outer::Nack),
            FRAGMENT => return element(inside).map(|(kind, value, _)| Outer::Packet(kind, value)),
            _ => {}
        }
        value = rest;
    }
    None
}

/// Returns the number of the segment that a name ends with.
fn segment(mut name: &[u8]) -> Option<u32> {
    let mut last = None;
    while let Some((kind, value, rest)) = element(name) {
        last = Some((kind, value));
        name = rest;
    }
    let (_, value) = last.filter(|(kind, value)| *kind == SEGMENT && matches!(value.len(), 1 | 2 | 4 | 8))?;
    u32::try_from(value.iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte))).ok()
}

/// Returns the FNV-1a hash.
fn digest(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Returns type and value of the first element, and the bytes behind it. A truncated value is returned as far as it is
/// there.
fn element(bytes: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let (kind, rest) = number(bytes)?;
    let (length, rest) = number(rest)?;
    let length = usize::try_from(length).unwrap_or(usize::MAX).min(rest.len());
    Some((kind, &rest[..length], &rest[length..]))
}

/// Reads a TLV-VAR-NUMBER.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let length = match first {
        253 => 2,
        254 => 4,
        255 => 8,
        _ => return Some((u64::from(*first), rest)),
    };
    let value = rest.get(..length)?;
    Some((value.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)), &rest[length..]))
}
