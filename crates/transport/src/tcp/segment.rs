//! A segment on the wire, and how long Linux makes its headers.

use streamgauge_base::{Chunk, Ecn, TcpFlags};

/// Bits of [`Segment::flags`] (RFC 9293 section 3.1).
pub mod flags {
    use streamgauge_base::TcpFlags;

    /// No more data from the sender.
    pub const FIN: TcpFlags = 1;
    /// Start of a stream.
    pub const SYN: TcpFlags = 2;
    /// The connection is void.
    pub const RST: TcpFlags = 4;
    /// The last of the data written so far.
    pub const PSH: TcpFlags = 8;
    /// `ack` is valid.
    pub const ACK: TcpFlags = 16;
    /// The receiver has seen congestion experienced (RFC 3168 section 6.1).
    pub const ECE: TcpFlags = 64;
    /// The sender has reduced its window.
    pub const CWR: TcpFlags = 128;
}

/// IP and TCP headers without options.
const BASE_BYTES: u32 = 20 + 20;
/// The timestamps option with its two NOPs.
const TIMESTAMP_BYTES: u32 = 12;
/// On a SYN: MSS, SACK permitted with timestamps, window scale.
const SYN_OPTION_BYTES: u32 = 20;

/// SACK blocks, at most three, as fit beside the timestamps option.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlocks {
    blocks: [(u32, u32); SackBlocks::MAX],
    len: u8,
}

impl SackBlocks {
    /// Most blocks of one segment.
    pub const MAX: usize = 3;
    /// Header bytes of that many blocks.
    pub const MAX_BYTES: usize = 4 + 8 * Self::MAX;

    /// Adds the block `[left, right)`; without effect if there is no room.
    pub fn push(&mut self, left: u32, right: u32) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.len)) {
            *slot = (left, right);
            self.len += 1;
        }
    }
    /// Returns the blocks as `(left edge, right edge)`, in the order sent.
    #[inline]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.len)]
    }
    /// Returns whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The timestamps option (RFC 7323 section 3), in milliseconds as Linux counts it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timestamps {
    /// The sender's clock.
    pub value: u32,
    /// The peer's clock as echoed; meaningful with ACK.
    pub echo: u32,
}

/// One TCP segment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// Sequence number of the first payload byte (of the SYN or FIN if there is none).
    pub seq: u32,
    /// The next byte expected from the peer; valid with ACK.
    pub ack: u32,
    /// Bits of [`flags`].
    pub flags: TcpFlags,
    /// The AE flag (RFC 9768 section 3.1), with CWR and ECE the field of three bits that counts marks.
    pub ae: bool,
    /// Bytes that may follow `ack`. Not scaled, and not rounded to the values of a scaled field.
    pub window: u32,
    /// SACK blocks, most recent first.
    pub sack: SackBlocks,
    /// The timestamps option.
    pub timestamps: Timestamps,
    /// The payload.
    pub payload: Chunk,
    /// The IP header's ECN bits.
    pub ecn: Ecn,
}

impl Segment {
    /// Returns whether all of `bits` are set.
    #[inline]
    pub fn has(&self, bits: TcpFlags) -> bool {
        self.flags & bits == bits
    }
    /// Returns the bytes of the IPv4 and TCP headers with the options that Linux sends.
    #[inline]
    pub fn header_bytes(&self) -> u32 {
        if self.has(flags::SYN) {
            return BASE_BYTES + SYN_OPTION_BYTES;
        }
        if self.has(flags::RST) && self.timestamps == Timestamps::default() {
            // It answers a segment of no connection, and has no options.
            return BASE_BYTES;
        }
        let sack = match u32::from(self.sack.len) {
            0 => 0,
            n => 4 + 8 * n,
        };
        BASE_BYTES + TIMESTAMP_BYTES + sack
    }
    /// Returns the bytes of the whole IP packet.
    #[inline]
    pub fn ip_bytes(&self) -> u32 {
        self.header_bytes() + self.payload.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_as_long_as_linux_makes_them() {
        let mut segment = Segment { flags: flags::ACK, payload: Chunk::filler(1448), ..Segment::default() };
        assert_eq!(segment.ip_bytes(), 1500);
        segment.payload = Chunk::default();
        for bytes in [52, 64, 72, 80, 80] {
            assert_eq!(segment.ip_bytes(), bytes);
            segment.sack.push(1, 2);
        }
        assert_eq!(Segment { flags: flags::SYN, ..Segment::default() }.ip_bytes(), 60);
        assert_eq!(Segment { flags: flags::RST, ..Segment::default() }.ip_bytes(), 40);
    }
}
