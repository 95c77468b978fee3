//! QUIC (RFC 9000, RFC 9369): its packets show how a connection begins; the rest is encrypted.

use streamgauge_base::PacketKind;

use super::reader::{Datagram, DatagramReader, Shown};

const VERSION_1: u32 = 1;
/// RFC 9369 section 3.1.
const VERSION_2: u32 = 0x6b33_43cf;
/// Versions 0xff0000xx are drafts of version 1.
const DRAFTS: u32 = 0xff00_0000;
/// Longest connection id (RFC 9000 section 17.2).
const LONGEST_ID: u8 = 20;

/// The QUIC of one flow. A datagram of nothing but Initial, Handshake, Retry or Version Negotiation packets is
/// signalling; any other carries payload, acknowledgements among it, which QUIC hides.
pub struct Quic {
    /// Whether the flow is declared as QUIC: any datagram is its own.
    pub told: bool,
}

impl DatagramReader for Quic {
    fn read(&mut self, datagram: &Datagram<'_>) -> Option<Shown> {
        if !self.told && !is_certain(datagram.head) {
            return None;
        }
        let is_beginning = is_beginning(datagram.head, datagram.bytes);
        Some(if is_beginning { Shown::kind(PacketKind::Signalling) } else { Shown::default() })
    }
}

fn version(head: &[u8]) -> Option<u32> {
    head.get(1..)?.first_chunk().map(|version| u32::from_be_bytes(*version))
}

/// Returns whether it is a long header of a known version, which no other protocol resembles.
fn is_certain(head: &[u8]) -> bool {
    let is_known = |version| version == VERSION_1 || version == VERSION_2 || version & !0xff == DRAFTS;
    head.first().is_some_and(|first| first & 0xc0 == 0xc0)
        && version(head).is_some_and(is_known)
        && head.get(5).is_some_and(|&length| length <= LONGEST_ID)
}

/// Returns whether all of the datagram, perhaps of several packets (RFC 9000 section 12.2), sets a connection up.
fn is_beginning(head: &[u8], bytes: u32) -> bool {
    let mut at = 0;
    loop {
        let rest = head.get(at..).unwrap_or_default();
        match rest.first() {
            Some(first) if first & 0x80 != 0 => match long_packet(rest) {
                Some(Long::Fills) => return true,
                Some(Long::Takes(length)) => at = at.saturating_add(length),
                None => return false,
            },
            // Zeros that pad the datagram are no packet: the fixed bit is not set.
            Some(first) => return at > 0 && first & 0xc0 == 0,
            None => return at > 0 && at as u64 >= u64::from(bytes),
        }
    }
}

/// A packet with a long header that sets a connection up.
enum Long {
    /// All that is left of the datagram.
    Fills,
    /// It has this many bytes of the datagram.
    Takes(usize),
}

fn long_packet(packet: &[u8]) -> Option<Long> {
    let version = version(packet)?;
    if version == 0 {
        return Some(Long::Fills);
    }
    if packet[0] & 0x40 == 0 {
        return None;
    }
    // Section 17.2, and RFC 9369 section 3.2, where the types count on by one.
    let shift = u8::from(version == VERSION_2);
    let kind = (packet[0] >> 4 & 3).wrapping_sub(shift) & 3;
    const INITIAL: u8 = 0;
    const ZERO_RTT: u8 = 1;
    const RETRY: u8 = 3;
    let mut fields = Fields(packet.get(5..)?);
    let destination = fields.byte()?;
    fields.skip(u64::from(destination))?;
    let source = fields.byte()?;
    fields.skip(u64::from(source))?;
    match kind {
        ZERO_RTT => return None,
        RETRY => return Some(Long::Fills),
        INITIAL => {
            let token = fields.integer()?;
            fields.skip(token)?;
        }
        _ => {}
    }
    let length = usize::try_from(fields.integer()?).ok()?;
    Some(Long::Takes((packet.len() - fields.0.len()).checked_add(length)?))
}

/// The rest of a header.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn skip(&mut self, bytes: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    /// Reads an integer by RFC 9000 section 16.
    fn integer(&mut self) -> Option<u64> {
        let first = self.byte()?;
        (1..1 << (first >> 6))
            .try_fold(u64::from(first & 0x3f), |value, _| Some(value << 8 | u64::from(self.byte()?)))
    }
}
