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
    /// A length too small for the required fields.
    #[error("a packet declares {0} B")]
    Length(u16),
    /// Bytes that have to be there are counted only.
    #[error("filler where real bytes are needed")]
    Filler,
    /// A number that packet types have.
    #[error("a sequence number of {0}, which are below 65280")]
    Sequence(u16),
    /// More bits than the bytes behind them hold.
    #[error("{bits} bits in a bitmap of {bytes} B")]
    Bitmap {
        /// Its declared bits.
        bits: u16,
        /// Bytes that it has.
        bytes: u8,
    },
    /// The extension that later servers and players agree on; nothing here asks for it.
    #[error("a packet with an extension")]
    Extension,
}

impl Fault {
    /// Returns the problem of this fault at this byte.
    pub(super) fn at(self, at: usize) -> Problem {
        Problem { at: at as u64, fault: self }
    }
}
