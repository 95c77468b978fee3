//! The payload of one RTP packet.

use streamgauge_base::Chunk;

/// All of an RTP packet that its system decides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Payload {
    /// All after the RTP header.
    pub chunk: Chunk,
    /// The marker bit: the last packet of its unit.
    pub marker: bool,
}

impl Payload {
    pub(super) fn real(bytes: Vec<u8>) -> Self {
        Payload { chunk: Chunk::bytes(bytes), marker: false }
    }
}
