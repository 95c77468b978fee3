//! RTP packets of a call: the fixed header with a transport-wide number (RFC 8285's one-byte form), and the
//! head of the payload, by which the receiver identifies the packet's frame. A repeated packet has a source
//! of its own and begins with the original's sequence number (RFC 4588).

use streamgauge_base::{Chunk, Instant};

/// Bytes of IP, UDP, RTP and the extension.
pub(super) const HEADERS: u32 = 20 + 8 + RTP_BYTES as u32;
/// Bytes of RTP's header with its extension.
const RTP_BYTES: usize = 20;
/// Payload types (RFC 3551 section 6): media, and repeated packets.
const MEDIA_TYPE: u8 = 96;
const REPEATED_TYPE: u8 = 97;
/// The extension's profile (RFC 8285 section 4.2), and its element: number 1, two bytes.
const PROFILE: [u8; 2] = [0xbe, 0xde];
const ELEMENT: u8 = 0x11;
/// Bytes of the payload's head.
const HEAD_BYTES: usize = 18;

/// Where a packet belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The frame, from 0.
    pub frame: u32,
    /// The packet's place in it.
    pub packet: u16,
    /// Packets of the frame.
    pub packets: u16,
    /// The frame needs no other.
    pub is_key: bool,
    /// When the frame was captured, by the sender's clock.
    pub captured: Instant,
}

/// A packet but for its filler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CallPacket {
    pub ssrc: u32,
    pub sequence: u16,
    /// The number that counts the packets of all sources.
    pub transport: u16,
    /// The sequence number of the packet that this one repeats.
    pub repeats: Option<u16>,
    pub place: Place,
}

impl CallPacket {
    /// Returns the packet with a payload of this many bytes.
    pub fn write(&self, payload: u32) -> Chunk {
        let marker = u8::from(self.place.packet + 1 == self.place.packets) << 7;
        let kind = if self.repeats.is_some() { REPEATED_TYPE } else { MEDIA_TYPE };
        let timestamp = (u128::from(self.place.captured.as_nanos()) * 90_000 / 1_000_000_000) as u32;
        let mut head = Vec::with_capacity(RTP_BYTES + 2 + HEAD_BYTES);
        head.extend([2 << 6 | 1 << 4, marker | kind]);
        head.extend(self.sequence.to_be_bytes());
        head.extend(timestamp.to_be_bytes());
        head.extend(self.ssrc.to_be_bytes());
        head.extend(PROFILE);
        head.extend([0, 1, ELEMENT]);
        head.extend(self.transport.to_be_bytes());
        head.push(0);
        if let Some(original) = self.repeats {
            head.extend(original.to_be_bytes());
        }
        head.extend(self.place.frame.to_be_bytes());
        head.extend(self.place.packet.to_be_bytes());
        head.extend(self.place.packets.to_be_bytes());
        head.extend([u8::from(self.place.is_key), 0]);
        head.extend(self.place.captured.as_nanos().to_be_bytes());
        Chunk::with_filler(head, payload.saturating_sub(HEAD_BYTES as u32))
    }

    /// Reads the output of `write`; `None` for anything else.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (header, rest) = bytes.split_at_checked(RTP_BYTES)?;
        let repeated = match header[1] & 0x7f {
            MEDIA_TYPE => false,
            REPEATED_TYPE => true,
            _ => return None,
        };
        if header[0] != 2 << 6 | 1 << 4 || header[12..14] != PROFILE || header[16] != ELEMENT {
            return None;
        }
        let half = |bytes: &[u8], at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let (repeats, head) =
            if repeated { (Some(half(rest.get(..2)?, 0)), &rest[2..]) } else { (None, rest) };
        let (head, _) = head.split_at_checked(HEAD_BYTES)?;
        let place = Place {
            frame: u32::from_be_bytes(*head.first_chunk()?),
            packet: half(head, 4),
            packets: half(head, 6),
            is_key: head[8] & 1 == 1,
            captured: Instant::from_nanos(u64::from_be_bytes(*head[10..].first_chunk()?)),
        };
        (place.packet < place.packets).then_some(CallPacket {
            ssrc: u32::from_be_bytes(*header[8..].first_chunk()?),
            sequence: half(header, 2),
            transport: half(header, 17),
            repeats,
            place,
        })
    }
}

/// Returns the bytes of the IP packet of `payload` bytes of media; of a repeated one two more.
pub(super) fn ip_bytes(payload: u32, is_repeated: bool) -> u32 {
    HEADERS + payload.max(HEAD_BYTES as u32) + if is_repeated { 2 } else { 0 }
}

/// Returns the number that `low` are the lowest bits of and that is nearest to `near`.
pub(super) fn unwrapped(low: u16, near: u64) -> u64 {
    let ahead = i64::from(low.wrapping_sub(near as u16).cast_signed());
    near.checked_add_signed(ahead).unwrap_or(u64::from(low))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            ssrc in any::<u32>(), sequence in any::<u16>(), transport in any::<u16>(),
            repeats in prop::option::of(any::<u16>()), frame in any::<u32>(), packet in 0u16..50, more in 1u16..50,
            is_key in any::<bool>(), ns in any::<u64>(), payload in 18u32..1400,
        ) {
            let captured = Instant::from_nanos(ns);
            let place = Place { frame, packet, packets: packet + more, is_key, captured };
            let packet = CallPacket { ssrc, sequence, transport, repeats, place };
            let written = packet.write(payload);
            prop_assert_eq!(CallPacket::read(written.head()), Some(packet));
            prop_assert_eq!(written.len() as u32 + 28, ip_bytes(payload, repeats.is_some()));
        }

        #[test]
        fn any_bytes_are_a_packet_or_none(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = CallPacket::read(&bytes);
        }

        #[test]
        fn a_number_is_found_by_its_lowest_bits(number in 40_000u64..u64::MAX / 2, off in -32_000i64..32_000) {
            let near = number.checked_add_signed(off).unwrap();
            prop_assert_eq!(unwrapped(number as u16, near), number);
        }
    }
}
