//! RTP packets: the fixed header and the first bytes of the payload, so that a receiver recognises a frame's first
//! packet (`media::h264`). The rest of the payload is filler.

use rtp_types::RtpPacketBuilder;

/// The first dynamic payload type (RFC 3551 section 6).
pub const PAYLOAD_TYPE: u8 = 96;

const RTP_HEADER_BYTES: usize = 12;

/// A media packet but for its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MediaPacket {
    pub sequence: u16,
    pub timestamp: u32,
    pub ssrc: u32,
    /// The last packet of its frame: the marker bit.
    pub last: bool,
}

impl MediaPacket {
    /// Returns the packet's real bytes: its header and `payload`, the real bytes of its payload.
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
}

#[cfg(test)]
mod tests {
    use streamgauge_base::{Chunk, Instant};

    use super::*;
    use crate::media::{Codec, h264};
    use crate::reception::{Announced, Late, Place, Source};

    #[test]
    fn what_is_written_is_read_back() {
        let frame: Vec<_> = h264::filler(h264::IDR_SLICE, 4000, 1400).collect();
        for (number, (payload, filler)) in frame.iter().enumerate() {
            let (first, last) = (number == 0, number + 1 == frame.len());
            let packet = MediaPacket { sequence: 65_535, timestamp: 0xdead_beef, ssrc: 7, last };
            let mut source = Source::new(Announced {
                payload_type: PAYLOAD_TYPE,
                clock_rate: 90_000,
                codec: Some(Codec::Sizes),
                is_video: true,
                late: Late::Reordered,
            });
            let packet = Chunk::with_filler(packet.head(payload), *filler);
            let rtp = source.accept(&packet).unwrap();
            assert_eq!(rtp.ssrc(), 7);
            let place = Place { sequence: 65_535, timestamp: 0xdead_beef, first, last };
            assert_eq!(source.take(Instant::ZERO, &rtp, &packet).map(|media| media.place), Some(place));
            assert!(source.accept(&Chunk::bytes([0x80; 5])).is_none());
        }
    }
}
