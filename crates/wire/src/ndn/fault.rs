//! Faults of bytes that should be a packet, or of text that should be a name.

use super::types::{MOST_COMPONENTS, MOST_FRAGMENTS, MOST_NAME_BYTES};

/// A fault and its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("at byte {at}: {fault}")]
pub struct Problem {
    /// Bytes before it: of the packet, of the text, or of the stream since it began.
    pub at: u64,
    /// The fault.
    pub fault: Fault,
}

/// The kinds of fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// It ends within a type, a length or a value.
    #[error("{missing} B more are needed than there are")]
    Truncated {
        /// How many more bytes there should be.
        missing: u64,
    },
    /// A type or a length in more bytes than it takes.
    #[error("a number that is not in its shortest form")]
    NotShortest,
    /// TLV-TYPE 0, or one of more than 32 bits; of a component more than 16.
    #[error("a TLV-TYPE out of range")]
    TypeRange,
    /// Another element has to be here.
    #[error("an element of type {expected} is missing")]
    Missing {
        /// The type that is required here.
        expected: u32,
    },
    /// An element that has to be understood and is not known, or not here.
    #[error("an element of the critical type {0}, which is unknown, repeated or out of order")]
    Critical(u32),
    /// A field of an LpPacket that may not be ignored and is not known, or not here.
    #[error("a header field of type {0}, which is unknown, repeated or out of order")]
    HeaderField(u32),
    /// Neither Interest nor Data nor LpPacket.
    #[error("a packet of type {0} instead of Interest, Data or LpPacket")]
    PacketType(u32),
    /// A value that cannot be that long.
    #[error("an element of type {element} with a value of {bytes} B")]
    Length {
        /// Its type.
        element: u32,
        /// Bytes of its value.
        bytes: u64,
    },
    /// More than a packet may have.
    #[error("a packet of {bytes} B, at most {limit}")]
    TooLong {
        /// Bytes that it has.
        bytes: u64,
        /// Bytes that it may have.
        limit: u64,
    },
    /// Something behind the packet.
    #[error("{0} B after the packet's end")]
    Trailing(u64),
    /// Bytes that have to be there are counted only.
    #[error("filler where real bytes are needed")]
    Filler,
    /// A packet may end in filler; no real bytes follow it.
    #[error("real bytes behind filler in one packet")]
    RealAfterFiller,
    /// A name exceeds the limits.
    #[error("a name of more than {MOST_COMPONENTS} components or {MOST_NAME_BYTES} B")]
    NameTooLong,
    /// An Interest for nothing.
    #[error("an Interest with a name of no components")]
    EmptyName,
    /// ApplicationParameters and ParametersSha256DigestComponent come together, and there is one of the latter.
    #[error("ApplicationParameters without one digest component in the name, or that without these")]
    ParametersDigest,
    /// A digest that is another one's.
    #[error("a digest that is not that of the bytes")]
    Digest,
    /// FragIndex is not below FragCount, there are too many, or Sequence is missing.
    #[error("fragment {index} of {count}; at most {MOST_FRAGMENTS}, each with its Sequence")]
    Fragment {
        /// FragIndex.
        index: u64,
        /// FragCount.
        count: u64,
    },
    /// Fragments of this size have no room for anything.
    #[error("{bytes} B are too few for a fragment and its header fields")]
    NoRoom {
        /// Bytes that a fragment may have.
        bytes: u64,
    },
    /// A name begins with `/`, after the scheme `ndn:` if that is there.
    #[error("a name that does not begin with '/' or 'ndn:/'")]
    NoName,
    /// A component's percent-encoding or periods, its type, number or digest.
    #[error("a component of which {0}")]
    Component(&'static str),
}

impl Fault {
    /// Returns the problem of this fault at this byte.
    pub(crate) fn at(self, at: usize) -> Problem {
        Problem { at: at as u64, fault: self }
    }
}
