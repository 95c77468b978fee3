//! RTP packets: the fixed header and the first bytes of the payload, so that a receiver knows whether it has a
//! frame's first packet (`media::h264`). The rest of the payload is filler.

use rtp_types::{RtpPacket, RtpPacketBuilder};

use crate::media::h264;

/// The first dynamic payload type (RFC 3551 section 6).
const PAYLOAD_TYPE: u8 = 96;

const RTP_HEADER_BYTES: usize = 12;

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
    /// The packet's real bytes: its header and `payload`, the real bytes of its payload.
    pub fn head(&self, payload: &[u8]) -> Vec<u8> {
        let mut head = vec![0; RTP_HEADER_BYTES + payload.len()];
        RtpPacketBuilder::<&[u8], &[u8]>::new()
            .payload_type(PAYLOAD_TYPE)
            .marker_bit(self.last)
            .sequence_number(self.sequence)
            .timestamp(self.timestamp)
            .ssrc(self.ssrc)
            .payload(payload)
            .write_into(&mut head)
            .expect("a header and its payload fit the sum of their lengths");
        head
    }

    /// `None` if `bytes` are not one of our packets.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let packet = RtpPacket::parse(bytes).ok()?;
        let payload = bytes.get(RTP_HEADER_BYTES..).filter(|payload| !payload.is_empty())?;
        Some(MediaPacket {
            sequence: packet.sequence_number(),
            timestamp: packet.timestamp(),
            ssrc: packet.ssrc(),
            first: h264::begins_nal_unit(payload),
            last: packet.marker_bit(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let frame: Vec<_> = h264::filler(h264::IDR_SLICE, 4000, 1400).collect();
        for (number, (payload, _)) in frame.iter().enumerate() {
            let (first, last) = (number == 0, number + 1 == frame.len());
            let packet = MediaPacket { sequence: 65_535, timestamp: 0xdead_beef, ssrc: 7, first, last };
            assert_eq!(MediaPacket::parse(&packet.head(payload)), Some(packet));
        }
        assert_eq!(MediaPacket::parse(&[0x80; 5]), None);
    }
}
