//! Faults of a file or a packet.

use std::fmt;

/// A fault and its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("at byte {at}: {fault}")]
pub struct Problem {
    /// Bytes of the file, or of the packet's payload, before it.
    pub at: u64,
    /// The fault.
    pub fault: Fault,
}

/// The kinds of fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// It begins with something else.
    #[error("no RealMedia file, which begins with '.RMF'")]
    NotRealMedia,
    /// Sound of before RealMedia, without chunks.
    #[error(
        "a RealAudio file without RealMedia's chunks; put it into one with `ffmpeg -i FILE -c copy OUT.rm`"
    )]
    RealAudio,
    /// It ends too early.
    #[error("{missing} B of {what} are missing: the file or packet is cut short")]
    Truncated {
        /// The element that the data end within.
        what: &'static str,
        /// How many more bytes there should be.
        missing: u64,
    },
    /// A chunk with a declared length shorter than its own header.
    #[error("chunk {chunk} declares {bytes} B, fewer than its header")]
    ChunkLength {
        /// Which.
        chunk: ChunkName,
        /// The declared length.
        bytes: u32,
    },
    /// A field extends beyond its chunk.
    #[error("chunk {chunk} ends {missing} B before its {field} does")]
    Field {
        /// Which.
        chunk: ChunkName,
        /// The field that did not fit.
        field: &'static str,
        /// By how much.
        missing: u64,
    },
    /// A chunk of another version than 0, without fields in the draft.
    #[error("chunk {chunk} has version {version} instead of 0")]
    Version {
        /// Which.
        chunk: ChunkName,
        /// Its version.
        version: u16,
    },
    /// A second instance of a unique chunk.
    #[error("a second chunk {0}")]
    Repeated(ChunkName),
    /// A chunk is missing that is required before the media, or at all.
    #[error("no chunk {0} before it")]
    Missing(ChunkName),
    /// More streams than are read.
    #[error("more than {limit} streams")]
    TooManyStreams {
        /// How many there may be.
        limit: usize,
    },
    /// Two streams of one number.
    #[error("a second stream {0}")]
    SameStream(u16),
    /// A media packet of an undocumented version.
    #[error("a media packet of version {0} instead of 0 or 1")]
    PacketVersion(u16),
    /// A media packet with a declared length shorter than its header.
    #[error("a media packet declares {0} B, fewer than its header")]
    PacketLength(u16),
    /// A media packet of a stream that has no properties.
    #[error("a media packet of stream {0}, which no MDPR describes")]
    UnknownStream(u16),
    /// A media chunk that ends before the packets that it counts do.
    #[error("the media chunk declares {count} packets and has {taken}")]
    FewerPackets {
        /// The declared count.
        count: u32,
        /// How many it has.
        taken: u32,
    },
    /// A part of a frame that lies outside it.
    #[error("bytes {offset} to {end} of a frame of {frame_bytes} B")]
    OutsideFrame {
        /// Its first byte in the frame.
        offset: u32,
        /// Behind its last.
        end: u64,
        /// Bytes of the frame.
        frame_bytes: u32,
    },
    /// A frame that is longer than any that we take.
    #[error("a frame of {bytes} B, at most {limit}")]
    FrameTooLong {
        /// The declared length.
        bytes: u32,
        /// The allowed length.
        limit: u32,
    },
    /// Bytes that have to be there are counted only.
    #[error("real bytes behind filler in one frame")]
    RealAfterFiller,
}

impl Fault {
    /// Returns the problem of this fault at this byte.
    pub(crate) fn at(self, at: usize) -> Problem {
        Problem { at: at as u64, fault: self }
    }
}

/// The four letters of a chunk, shown with other characters escaped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChunkName(pub [u8; 4]);

impl fmt::Display for ChunkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'", self.0.escape_ascii())
    }
}
