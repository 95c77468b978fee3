//! What is wrong with a body's bytes.

use crate::mms;

/// What is wrong, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("packet {packet}: {fault}")]
pub struct Problem {
    /// Packets of the body before it.
    pub packet: u64,
    /// What it is.
    pub fault: Fault,
}

/// What is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// No packet begins here.
    #[error("it does not begin with $")]
    NotFramed,
    /// A length that a packet of this sort cannot have.
    #[error("a ${} packet that says it has {length} B", char::from(*.id))]
    Length {
        /// The sort.
        id: u8,
        /// What it says.
        length: u16,
    },
    /// A packet of a packet pair that says it is behind more than 504 B.
    #[error("a packet pair behind a head of {0} B, which is to be at most 504")]
    Head(u32),
    /// A fourth packet of a packet pair.
    #[error("a fourth packet of a packet pair")]
    PacketPair,
    /// Media or a header in it is wrong.
    #[error(transparent)]
    Media(mms::Problem),
    /// What a $M packet says of the content is not as it should be.
    #[error("metadata without {0}")]
    Metadata(&'static str),
}
