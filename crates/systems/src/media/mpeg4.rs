//! MPEG-4 Visual in RTP (RFC 6416 section 5): the elementary stream, cut anywhere. A unit is one video object plane
//! with the headers before it, which the first packet begins with, so that none is split.

use super::payload::Payload;

const START_CODE_PREFIX: [u8; 3] = [0, 0, 1];

/// Returns the packets of a unit.
pub fn packets(unit: &[u8], max_payload: u32) -> Vec<Payload> {
    unit.chunks(max_payload as usize).map(|piece| Payload::real(piece.to_vec())).collect()
}

/// Returns true if the payload begins with a start code. None is within a video object plane, except those of
/// video packets, which are not byte strings of this form (ISO/IEC 14496-2 section 6.2.1, E.1.2.1).
pub fn begins(payload: &[u8]) -> bool {
    // A caller may have only two bytes of it.
    let seen = payload.len().min(START_CODE_PREFIX.len());
    seen >= 2 && payload[..seen] == START_CODE_PREFIX[..seen]
}
