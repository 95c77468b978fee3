//! Datagrams between our machines, which have real bytes and filler, and libraries, which have bytes alone.

use streamgauge_base::{Chunk, Ecn, Instant};

/// A datagram for a library.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// All of it.
    pub bytes: &'a Chunk,
    /// Its mark.
    pub ecn: Ecn,
    /// When it reached this host.
    pub at: Instant,
}

/// A datagram of a library.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SentDatagram {
    /// All of it; zeros at its end are filler.
    pub bytes: Chunk,
    /// Its mark.
    pub ecn: Ecn,
}

/// Returns `bytes` with the zeros at their end as filler, which costs a simulator no memory.
pub fn without_zeros(bytes: &[u8]) -> Chunk {
    let real = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    Chunk::with_filler(&bytes[..real], (bytes.len() - real) as u32)
}

/// Returns all bytes of `chunk`, its filler as zeros in `room`.
pub fn with_zeros<'a>(chunk: &'a Chunk, room: &'a mut Vec<u8>) -> &'a [u8] {
    if chunk.len() == chunk.head().len() {
        return chunk.head();
    }
    room.clear();
    room.extend_from_slice(chunk.head());
    room.resize(chunk.len(), 0);
    room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_whatever_their_zeros() {
        let mut room = Vec::new();
        for bytes in [&b""[..], b"\0\0\0", b"a", b"a\0b\0\0", b"\0\0c"] {
            let chunk = without_zeros(bytes);
            assert_eq!(with_zeros(&chunk, &mut room), bytes);
            assert!(chunk.head().last().is_none_or(|last| *last != 0));
        }
    }
}
