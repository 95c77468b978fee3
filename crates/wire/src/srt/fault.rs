//! Faults of bytes that should be a packet.

/// A fault and its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("at byte {at}: {fault}")]
pub struct Problem {
    /// Bytes of the datagram before it.
    pub at: u64,
    /// The fault.
    pub fault: Fault,
}

/// The kinds of fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// It ends within a field, or before its declared length.
    #[error("{missing} B more are needed than there are")]
    Truncated {
        /// How many more bytes there should be.
        missing: u64,
    },
    /// Bytes that have to be real are counted only.
    #[error("filler where real bytes are needed")]
    Filler,
    /// A number of more than 31 bits.
    #[error("a sequence number with its highest bit set")]
    Sequence,
    /// A range of lost packets whose last number is before its first.
    #[error("a range of lost packets that ends before it begins")]
    Range,
    /// A list of lost packets without any.
    #[error("a loss report without a sequence number")]
    NoLoss,
    /// Bytes behind the last extension of a handshake that are none.
    #[error("{0} B behind the extensions of a handshake")]
    Tail(u64),
}

impl Fault {
    /// Returns the problem of this fault at this byte.
    pub(super) fn at(self, at: usize) -> Problem {
        Problem { at: at as u64, fault: self }
    }
}
