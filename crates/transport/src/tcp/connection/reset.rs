//! Resets for a peer whose connection is void (RFC 9293 section 3.10.7.1).

use crate::tcp::segment::{Segment, flags};

/// A reset that waits for `poll_transmit`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reset {
    /// The reset of a connection by `abort`.
    Abort,
    /// The answer to a segment of no connection: its sequence number, and its acknowledgement number.
    Answer { seq: u32, ack: Option<u32> },
}

impl Reset {
    /// Makes the reset to a segment that is no reset (RFC 9293 section 3.10.7.1).
    pub(super) fn answer(segment: &Segment) -> Self {
        if segment.has(flags::ACK) {
            return Reset::Answer { seq: segment.ack, ack: None };
        }
        let marks = [flags::SYN, flags::FIN].into_iter().filter(|&bit| segment.has(bit)).count() as u32;
        let length = segment.payload.len() as u32 + marks;
        Reset::Answer { seq: 0, ack: Some(segment.seq.wrapping_add(length)) }
    }
}

/// Returns the reset that a host sends for a segment without a connection (RFC 9293 section 3.10.7.1); none for a reset.
pub fn reset_without_connection(segment: &Segment) -> Option<Segment> {
    if segment.has(flags::RST) {
        return None;
    }
    let Reset::Answer { seq, ack } = Reset::answer(segment) else { return None };
    Some(answer(seq, ack))
}

pub(super) fn answer(seq: u32, ack: Option<u32>) -> Segment {
    let flags = flags::RST | if ack.is_some() { flags::ACK } else { 0 };
    Segment { seq, ack: ack.unwrap_or(0), flags, ..Segment::default() }
}
