//! RTP packets: the fixed header and, within the payload, H.264's fragmentation units, so that a receiver
//! knows whether it has a frame's first packet (RFC 6184 section 5.8). The rest of the payload is filler.

use rtp_types::{RtpPacket, RtpPacketBuilder};

/// The first dynamic payload type (RFC 3551 section 6).
const PAYLOAD_TYPE: u8 = 96;

/// RTP header, FU indicator and FU header: the real bytes of a packet.
pub const HEAD_BYTES: usize = 14;

const RTP_HEADER_BYTES: usize = 12;
const FU_BYTES: u32 = 2;
const NAL_HEADER_BYTES: u32 = 1;

/// nal_ref_idc 3, type 5 (a slice) and the same with type 28 (FU-A).
const NAL_SLICE: u8 = 0x65;
const NAL_TYPE_BITS: u8 = 0x1f;
const FU_INDICATOR: u8 = 0x7c;
const FU_START: u8 = 0x80;
const FU_END: u8 = 0x40;

/// A media packet as both ends see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MediaPacket {
    pub sequence: u16,
    pub timestamp: u32,
    pub ssrc: u32,
    /// The first packet of its frame.
    pub first: bool,
    /// The last packet of its frame: the marker bit.
    pub last: bool,
}

impl MediaPacket {
    pub fn head(&self) -> [u8; HEAD_BYTES] {
        let fu: [u8; 2] = match (self.first, self.last) {
            // Alone: a NAL unit with its one-byte header, then the first byte of the slice.
            (true, true) => [NAL_SLICE, 0],
            (first, last) => {
                let start = if first { FU_START } else { 0 };
                let end = if last { FU_END } else { 0 };
                [FU_INDICATOR, start | end | (NAL_SLICE & NAL_TYPE_BITS)]
            }
        };
        let mut head = [0; HEAD_BYTES];
        RtpPacketBuilder::<&[u8], &[u8]>::new()
            .payload_type(PAYLOAD_TYPE)
            .marker_bit(self.last)
            .sequence_number(self.sequence)
            .timestamp(self.timestamp)
            .ssrc(self.ssrc)
            .payload(&fu)
            .write_into(&mut head)
            .expect("12 bytes of header and 2 of payload fit 14");
        head
    }

    /// `None` if `bytes` are not one of our packets.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let packet = RtpPacket::parse(bytes).ok()?;
        let payload = bytes.get(RTP_HEADER_BYTES..)?;
        let first = match payload.first()? & NAL_TYPE_BITS {
            28 => payload.get(1)? & FU_START != 0,
            _ => true,
        };
        Some(MediaPacket {
            sequence: packet.sequence_number(),
            timestamp: packet.timestamp(),
            ssrc: packet.ssrc(),
            first,
            last: packet.marker_bit(),
        })
    }
}

/// The RTP payload bytes of each packet of a frame of `frame_bytes`, at most `max_payload` each. The frame is
/// one NAL unit, whose one-byte header each fragment's two replace.
pub fn fragments(frame_bytes: u32, max_payload: u32) -> impl Iterator<Item = u32> {
    let whole = frame_bytes <= max_payload;
    let mut left = if whole { frame_bytes } else { frame_bytes - NAL_HEADER_BYTES };
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let overhead = if whole { 0 } else { FU_BYTES };
        let piece = left.min(max_payload - overhead);
        left -= piece;
        Some(piece + overhead)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_cut_into_full_payloads_and_a_rest() {
        assert_eq!(fragments(1400, 1400).collect::<Vec<_>>(), [1400]);
        assert_eq!(fragments(1401, 1400).collect::<Vec<_>>(), [1400, 4]);
        assert_eq!(fragments(5000, 1400).collect::<Vec<_>>(), [1400, 1400, 1400, 807]);
        for bytes in 1401..9000 {
            let cut: Vec<_> = fragments(bytes, 1400).collect();
            assert_eq!(cut.iter().sum::<u32>(), bytes - 1 + 2 * cut.len() as u32);
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for (first, last) in [(true, true), (true, false), (false, true), (false, false)] {
            let packet = MediaPacket { sequence: 65_535, timestamp: 0xdead_beef, ssrc: 7, first, last };
            assert_eq!(MediaPacket::parse(&packet.head()), Some(packet));
        }
        assert_eq!(MediaPacket::parse(&[0x80; 5]), None);
    }
}
