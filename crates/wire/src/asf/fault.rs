//! What is wrong with a file or a packet.

use super::guid::Guid;

/// What is wrong, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("at byte {at}: {fault}")]
pub struct Problem {
    /// Bytes of the file, or of the packet, before it.
    pub at: u64,
    /// What it is.
    pub fault: Fault,
}

/// What is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// It begins with something else.
    #[error("no file of the Advanced Systems Format (.asf, .wmv, .wma), which begins with a Header Object")]
    NotAsf,
    /// It ends too early.
    #[error("{missing} B more of {what} are needed than there are: the file or packet is cut short")]
    Truncated {
        /// What it ends within.
        what: &'static str,
        /// How many more bytes there should be.
        missing: u64,
    },
    /// An object that says that it is shorter than its own header.
    #[error("the {object} says that it has {bytes} B, fewer than its header")]
    ObjectLength {
        /// Which.
        object: Guid,
        /// What it says.
        bytes: u64,
    },
    /// A field goes on beyond its object.
    #[error("the {object} ends {missing} B before its {field} does")]
    Field {
        /// Which.
        object: Guid,
        /// What did not fit.
        field: &'static str,
        /// By how much.
        missing: u64,
    },
    /// More than the number in front of it can count.
    #[error("a {field} of {length} in the {object}, of which there may be {limit}")]
    TooLong {
        /// Where.
        object: Guid,
        /// What of.
        field: &'static str,
        /// How many.
        length: usize,
        /// How many there may be.
        limit: usize,
    },
    /// A second one of what there is one of.
    #[error("a second {0}")]
    Repeated(Guid),
    /// None of what there has to be.
    #[error("no {0} in it")]
    Missing(Guid),
    /// A number that no stream has.
    #[error("stream number {0} instead of 1 to 127")]
    StreamNumber(u8),
    /// Two streams of one number.
    #[error("a second stream {0}")]
    SameStream(u8),
    /// Packets of a file are all of one size, of which there is a least.
    #[error("packets of {min} to {max} B, instead of one size from {least} to {most} B")]
    PacketSizes {
        /// The smallest, as the file says.
        min: u32,
        /// The largest.
        max: u32,
        /// What there may be at least.
        least: u32,
        /// And at most.
        most: u32,
    },
    /// Fewer packets than are counted.
    #[error("the Data Object says that it has {count} packets, and {taken} are in it")]
    FewerPackets {
        /// What it says.
        count: u64,
        /// How many it has.
        taken: u64,
    },
    /// Error correction whose form nobody describes.
    #[error("error correction data with flags {0:#04x}, which are reserved")]
    ErrorCorrection(u8),
    /// A packet with a length that no packet has.
    #[error("a packet that says that it has {said} B, and {found} are there")]
    PacketLength {
        /// What it says.
        said: u32,
        /// How many there are.
        found: u32,
    },
    /// Padding that is longer than what it is behind.
    #[error("{padding} B of padding, and {found} B are left of the packet")]
    Padding {
        /// What it says.
        padding: u32,
        /// How many there are.
        found: u32,
    },
    /// Many payloads, of which there are none, or whose lengths are not said.
    #[error("payload flags {0:#04x}, which count no payloads or do not say how long they are")]
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
    #[error("a media object of {bytes} B, of which there may be {limit}")]
    ObjectTooLong {
        /// What it says.
        bytes: u32,
        /// What there may be.
        limit: u32,
    },
}

impl Fault {
    /// It is at this byte.
    pub(crate) fn at(self, at: usize) -> Problem {
        Problem { at: at as u64, fault: self }
    }
}
