//! Faults of a body's bytes.

use crate::mms;

/// A fault and its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("packet {packet}: {fault}")]
pub struct Problem {
    /// Packets of the body before it.
    pub packet: u64,
    /// The fault.
    pub fault: Fault,
}

/// The kinds of fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// No packet begins here.
    #[error("it does not begin with $")]
    NotFramed,
    /// A length that a packet of this sort cannot have.
    #[error("a ${} packet declares {length} B", char::from(*.id))]
    Length {
        /// The sort.
        id: u8,
        /// The declared length.
        length: u16,
    },
    /// A packet of a packet pair with a declared head of more than 504 B.
    #[error("a packet pair behind a head of {0} B, which is to be at most 504")]
    Head(u32),
    /// A fourth packet of a packet pair.
    #[error("a fourth packet of a packet pair")]
    PacketPair,
    /// Media or a header in it is wrong.
    #[error(transparent)]
    Media(mms::Problem),
    /// The description of the content in a $M packet is faulty.
    #[error("metadata without {0}")]
    Metadata(&'static str),
}
