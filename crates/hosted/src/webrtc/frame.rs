//! A frame of a live encoder as the bytes that str0m cuts into packets: a head, then zeros.

use streamgauge_base::Instant;

/// Bytes of the head; no frame is shorter.
pub const HEAD_BYTES: u32 = 13;
/// The bit of VP8's first byte by which a receiver finds frames that need others (RFC 6386 section 9.1).
const NEEDS_OTHERS: u8 = 1;

/// A frame's head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameHead {
    /// From 0.
    pub number: u32,
    /// It needs no other frame.
    pub is_key: bool,
    /// When it was captured, by the sender's clock.
    pub captured: Instant,
}

impl FrameHead {
    /// Returns the frame with `bytes` bytes, or [`HEAD_BYTES`] if those are more.
    pub fn write(&self, bytes: u32) -> Vec<u8> {
        let mut frame = vec![0; bytes.max(HEAD_BYTES) as usize];
        frame[0] = if self.is_key { 0 } else { NEEDS_OTHERS };
        frame[1..5].copy_from_slice(&self.number.to_be_bytes());
        frame[5..13].copy_from_slice(&self.captured.as_nanos().to_be_bytes());
        frame
    }

    /// Reads the output of `write`; `None` for anything shorter.
    pub fn read(frame: &[u8]) -> Option<Self> {
        let head: &[u8; HEAD_BYTES as usize] = frame.first_chunk()?;
        let [first, rest @ ..] = head;
        let (number, captured) = rest.split_at(4);
        Some(FrameHead {
            number: u32::from_be_bytes(number.try_into().ok()?),
            is_key: first & NEEDS_OTHERS == 0,
            captured: Instant::from_nanos(u64::from_be_bytes(captured.try_into().ok()?)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_back_and_a_stub_is_none() {
        for (number, is_key, ns, bytes) in [(0, true, 0, 1), (7, false, u64::MAX, 500)] {
            let head = FrameHead { number, is_key, captured: Instant::from_nanos(ns) };
            let frame = head.write(bytes);
            assert_eq!(frame.len() as u32, bytes.max(HEAD_BYTES));
            assert_eq!(FrameHead::read(&frame), Some(head));
            assert_eq!(FrameHead::read(&frame[..12]), None);
        }
    }
}
