//! Pictures in an MPEG-2 transport stream as a live link carries it (ISO/IEC 13818-1): written, and read where parts of it
//! are missing.
//!
//! [`segment`](super::segment) counts the pictures of whole segments. Here each picture is followed: whether all of it came.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::{PictureReader, ReadPicture};
pub use write::{FIRST_STAMP, Muxer, packets_of};

/// Bytes of a packet.
pub const PACKET_BYTES: usize = 188;

/// The first byte of every packet.
const SYNC: u8 = 0x47;

/// Time stamps count 90 kHz (section 2.4.3.7).
pub const TICKS_PER_S: u64 = 90_000;

/// Time stamps have 33 bits.
pub const STAMPS: u64 = 1 << 33;
