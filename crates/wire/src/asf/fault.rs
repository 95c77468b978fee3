//! Faults of a file or a packet.

use super::guid::Guid;

/// A fault and its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("at byte {at}: {fault}")]
pub struct Problem {
    /// Bytes of the file, or of the packet, before it.
    pub at: u64,
    /// The fault.
    pub fault: Fault,
}

/// The kinds of fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// It begins with something else.
    #[error("no Advanced Systems Format file (.asf, .wmv, .wma), which begins with a Header Object")]
    NotAsf,
    /// It ends too early.
    #[error("{missing} B of {what} are missing: the file or packet is cut short")]
    Truncated {
        /// The element that the data end within.
        what: &'static str,
        /// How many more bytes there should be.
        missing: u64,
    },
    /// An object with a declared length shorter than its own header.
    #[error("the {object} declares {bytes} B, fewer than its header")]
    ObjectLength {
        /// Which.
        object: Guid,
        /// The declared length.
        bytes: u64,
    },
    /// A field extends beyond its object.
    #[error("the {object} ends {missing} B before its {field} does")]
    Field {
        /// Which.
        object: Guid,
        /// The field that did not fit.
        field: &'static str,
        /// By how much.
        missing: u64,
    },
    /// More than the number in front of it can count.
    #[error("a {field} of {length} in the {object}, at most {limit}")]
    TooLong {
        /// Where.
        object: Guid,
        /// The field.
        field: &'static str,
        /// How many.
        length: usize,
        /// How many there may be.
        limit: usize,
    },
    /// A second instance of a unique element.
    #[error("a second {0}")]
    Repeated(Guid),
    /// A required element is missing.
    #[error("no {0} in it")]
    Missing(Guid),
    /// A number that no stream has.
    #[error("stream number {0} instead of 1 to 127")]
    StreamNumber(u8),
    /// Two streams of one number.
    #[error("a second stream {0}")]
    SameStream(u8),
    /// Packets of a file all have one size, at or above a minimum.
    #[error("packets of {min} to {max} B, instead of one size from {least} to {most} B")]
    PacketSizes {
        /// The smallest, as declared in the file.
        min: u32,
        /// The largest.
        max: u32,
        /// The least allowed size.
        least: u32,
        /// The greatest allowed size.
        most: u32,
    },
    /// Fewer packets than are counted.
    #[error("the Data Object declares {count} packets and has {taken}")]
    FewerPackets {
        /// The declared count.
        count: u64,
        /// How many it has.
        taken: u64,
    },
    /// Error correction of an undocumented form.
    #[error("error correction data with flags {0:#04x}, which are reserved")]
    ErrorCorrection(u8),
    /// A packet with a length that no packet has.
    #[error("a packet declares {said} B and has {found}")]
    PacketLength {
        /// The declared value.
        said: u32,
        /// How many there are.
        found: u32,
    },
    /// Padding that is longer than the rest of the packet.
    #[error("{padding} B of padding, and {found} B are left of the packet")]
    Padding {
        /// The declared padding.
        padding: u32,
        /// How many there are.
        found: u32,
    },
    /// Several payloads with a count of zero, or without lengths.
    #[error("payload flags {0:#04x} without a count of payloads or their length")]
    PayloadFlags(u8),
    /// Replicated data that are neither left out, nor of a compressed payload, nor long enough.
    #[error("{0} B of replicated data, instead of 0, 1, or 8 and more")]
    ReplicatedData(u32),
    /// A part of a media object that lies outside it.
    #[error("bytes {offset} to {end} of a media object of {object_bytes} B")]
    OutsideObject {
        /// Its first byte in the media object.
        offset: u32,
        /// Behind its last.
        end: u64,
        /// Bytes of the media object.
        object_bytes: u32,
    },
    /// A media object that is longer than any that we take.
    #[error("a media object of {bytes} B, at most {limit}")]
    ObjectTooLong {
        /// The declared length.
        bytes: u32,
        /// The allowed length.
        limit: u32,
    },
}

impl Fault {
    /// Returns the problem of this fault at this byte.
    pub(crate) fn at(self, at: usize) -> Problem {
        Problem { at: at as u64, fault: self }
    }
}
