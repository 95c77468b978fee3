//! RTSP on a TCP connection: its text, and frames interleaved with it (RFC 2326 section 10.12).
//!
//! A segment all of which is messages, with their bodies, is signalling; one that is whole frames of RTCP is RTCP. All
//! others carry payload.

use streamgauge_base::PacketKind;

use super::messages::{Grammar, Messages, is_request};
use super::reader::{Say, Segment, StreamReader};
use super::rtp;

/// RFC 2326 section 10, and `PLAY_NOTIFY` of RFC 7826.
const METHODS: [&[u8]; 12] = [
    b"OPTIONS ",
    b"DESCRIBE ",
    b"SETUP ",
    b"PLAY ",
    b"PAUSE ",
    b"TEARDOWN ",
    b"GET_PARAMETER ",
    b"SET_PARAMETER ",
    b"ANNOUNCE ",
    b"RECORD ",
    b"REDIRECT ",
    b"PLAY_NOTIFY ",
];

const GRAMMAR: Grammar = Grammar { begins, version: b"RTSP/", with_body: true };

fn begins(head: &[u8]) -> bool {
    head.starts_with(b"RTSP/") || is_request(head, &METHODS, b" RTSP/")
}

/// The RTSP of one flow.
#[derive(Default)]
pub struct Rtsp(Messages);

impl StreamReader for Rtsp {
    fn read(&mut self, segment: &Segment<'_>, say: &mut Say<'_>) -> Option<PacketKind> {
        if self.0.fill(GRAMMAR, segment, say) {
            return Some(PacketKind::Signalling);
        }
        are_frames_of_rtcp(segment).then_some(PacketKind::Rtcp)
    }
}

/// The segment is interleaved frames (`$`, channel, length), all of RTCP.
fn are_frames_of_rtcp(segment: &Segment<'_>) -> bool {
    let (mut rest, mut left) = (segment.head, segment.bytes);
    while let [b'$', _channel, high, low, frame @ ..] = rest {
        let length = u16::from_be_bytes([*high, *low]);
        let whole = 4 + u32::from(length);
        if whole > left || !rtp::is_rtcp(frame, u32::from(length)) {
            return false;
        }
        left -= whole;
        if left == 0 {
            return true;
        }
        rest = frame.get(usize::from(length)..).unwrap_or_default();
    }
    false
}
