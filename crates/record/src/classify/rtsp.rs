//! RTSP on a TCP connection: its text, and frames interleaved with it (RFC 2326 section 10.12), which are RTP's or RDT's.
//!
//! A segment that consists of messages, with their bodies, is signalling; one of whole frames of RTCP is RTCP, and one
//! of whole frames of RDT without media has the kind of the first of these. All others carry payload.

use streamgauge_base::PacketKind;

use super::messages::{Grammar, Messages, is_request};
use super::reader::{Say, Segment, StreamReader};
use super::{rdt, rtp};

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
pub struct Rtsp {
    messages: Messages,
    /// Returns the kind of a frame from its first bytes and its length; `None` if it is payload.
    frame: fn(&[u8], u32) -> Option<PacketKind>,
}

impl Rtsp {
    /// Makes a reader with RTP and RTCP.
    pub fn with_rtp() -> Self {
        let frame = |head: &[u8], bytes| rtp::is_rtcp(head, bytes).then_some(PacketKind::Rtcp);
        Rtsp { messages: Messages::default(), frame }
    }

    /// Makes a reader with RDT.
    pub fn with_rdt() -> Self {
        Rtsp { messages: Messages::default(), frame: |head, _| rdt::kind(head) }
    }
}

impl StreamReader for Rtsp {
    fn read(&mut self, segment: &Segment<'_>, say: &mut Say<'_>) -> Option<PacketKind> {
        if self.messages.fill(GRAMMAR, segment, say) {
            return Some(PacketKind::Signalling);
        }
        frames(segment, self.frame)
    }
}

/// Returns the kind of a segment of whole interleaved frames (`$`, channel, length) without payload: that of the first.
fn frames(segment: &Segment<'_>, kind: fn(&[u8], u32) -> Option<PacketKind>) -> Option<PacketKind> {
    let (mut rest, mut left, mut first) = (segment.head, segment.bytes, None);
    while let [b'$', _channel, high, low, frame @ ..] = rest {
        let length = u16::from_be_bytes([*high, *low]);
        let whole = 4 + u32::from(length);
        let known = &frame[..frame.len().min(length.into())];
        let kind = kind(known, length.into())?;
        left = left.checked_sub(whole)?;
        let first = *first.get_or_insert(kind);
        if left == 0 {
            return Some(first);
        }
        rest = frame.get(usize::from(length)..).unwrap_or_default();
    }
    None
}
