//! RTSP on a TCP connection: its text, and frames interleaved with it (RFC 2326 section 10.12).

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

/// The segment begins with an RTSP message. A request's first line must name RTSP as far as the line is known.
pub fn is_message(head: &[u8]) -> bool {
    if head.starts_with(b"RTSP/") {
        return true;
    }
    if !METHODS.iter().any(|method| head.starts_with(method)) {
        return false;
    }
    match head.iter().position(|&b| b == b'\r' || b == b'\n') {
        Some(end) => head[..end].windows(6).any(|w| w == b" RTSP/"),
        None => true,
    }
}

/// The segment is one interleaved frame (`$`, channel, length) and that frame is RTCP.
pub fn is_interleaved_rtcp(head: &[u8], payload_bytes: u32) -> bool {
    let [b'$', _channel, high, low, frame @ ..] = head else { return false };
    let length = u32::from(u16::from_be_bytes([*high, *low]));
    length + 4 == payload_bytes && rtp::is_rtcp(frame, length)
}
